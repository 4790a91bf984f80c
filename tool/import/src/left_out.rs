//! What an import leaves out or cannot keep as it was, as data.

/// Something that an imported scenario does not have, or has in another form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOut {
    /// A secret, which the scenario takes from the environment.
    Secret {
        /// Name of the header, field or parameter that holds it.
        name: String,
        /// The variable to set before a run.
        variable: String,
    },
    /// More texts under the name of a secret than get variables: one variable stands for the rest of them.
    SharedVariable {
        /// Name of the header, field or parameter that holds them.
        name: String,
        /// The variable that is sent in place of each.
        variable: String,
        /// How many texts have no variable of their own.
        others: usize,
    },
    /// A body that may hold a secret under this name, written as it was.
    SecretInBody {
        /// The request.
        request: String,
        /// Name of the field.
        name: String,
    },
    /// An example of a parameter that may hold a secret under this name, written as it was.
    SecretInParameter {
        /// Name of the parameter.
        parameter: String,
        /// Name of the field.
        name: String,
    },
    /// All examples of a parameter but the first: with secrets in them, they are no list to choose from.
    Examples {
        /// Name of the parameter.
        parameter: String,
        /// How many.
        others: usize,
    },
    /// Bodies were written as they were: what is secret in them has no name that says so.
    Bodies,
    /// Requests to other servers.
    OtherServer {
        /// The other server.
        server: String,
        /// How many requests.
        requests: usize,
    },
    /// Requests that are not HTTP, such as WebSockets.
    NotHttp {
        /// How many.
        requests: usize,
    },
    /// Requests without a response from the server: blocked, cancelled, or answered from a cache.
    Unanswered {
        /// How many.
        requests: usize,
    },
    /// A request that a scenario cannot hold.
    Request {
        /// Its method and path.
        request: String,
        /// Why not.
        why: Why,
    },
    /// Headers that belong to one connection or one browser.
    Headers {
        /// Their names.
        names: Vec<String>,
    },
    /// The order of the requests: users pick them by weight.
    Order,
    /// Requests that were made over another version of HTTP.
    Version {
        /// How many.
        requests: usize,
    },
    /// Statuses outside 200 to 399 that count as success because they were recorded.
    Expected {
        /// The request.
        request: String,
        /// The status.
        status: u16,
    },
    /// An option of curl that does not change what is sent.
    CurlOption {
        /// The option.
        option: String,
    },
    /// A value that was made up for a parameter.
    Invented {
        /// Its name in the scenario.
        value: String,
    },
    /// Parameters that are optional.
    Optional {
        /// How many.
        parameters: usize,
    },
    /// Requests that may change or delete what the server keeps.
    Changes {
        /// How many.
        requests: usize,
    },
    /// The server: the description names none.
    NoServer,
    /// The other servers that the description names.
    Servers {
        /// How many.
        others: usize,
    },
    /// A part of the server's URL that may have several values: it has its default.
    ServerVariable {
        /// Its name.
        name: String,
        /// Its default.
        value: String,
    },
    /// The servers of requests that have ones of their own.
    OwnServers {
        /// How many requests.
        requests: usize,
    },
    /// What references stand for that lead to another file, to nothing or back to themselves.
    References {
        /// Where they lead.
        to: Vec<String>,
    },
    /// A body that is optional.
    Body {
        /// The request.
        request: String,
        /// Why a scenario cannot hold it.
        why: Why,
    },
    /// The rest of a body whose schema holds itself, or goes on for too long.
    Cut {
        /// The request.
        request: String,
    },
    /// Bodies of which no example tells all.
    MadeUp {
        /// How many requests have one.
        requests: usize,
    },
    /// Requests into which too much would be copied that they share with others.
    Copies {
        /// How many.
        requests: usize,
    },
    /// The server's certificate is not checked.
    Insecure,
}

/// Why a scenario cannot hold a request or its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its method is not of capital letters.
    Method,
    /// Its body is binary.
    Binary,
    /// Its body is a form of several parts, which may be files.
    Multipart,
    /// Its body is not JSON.
    NotJson,
    /// The bodies of the requests up to it have more than 16 MiB together.
    TooLong,
    /// Its body begins with `@`, which in a scenario names a file.
    LikeFile,
}
