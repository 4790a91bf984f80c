//! Why something cannot be imported. No message repeats what may hold a secret.

/// Why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is not what can be imported.
    #[error(
        "this is neither a recording of a browser (HAR, whose top has `log`), nor the description of an API (OpenAPI 3 in \
         JSON or YAML, whose top has `openapi`), nor a curl command line, which begins with `curl`"
    )]
    Unknown,
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// It is no YAML that can be imported.
    #[error("line {line}, column {column}: {reason}")]
    Yaml {
        /// The line, from 1.
        line: u64,
        /// The character in that line, from 1.
        column: u64,
        /// What is wrong there, and what to do.
        reason: String,
    },
    /// It is too long for YAML.
    #[error("a description in YAML may have {0} MiB at most: convert it to JSON, such as with `yq -o json`")]
    Long(usize),
    /// It seems to be YAML, which this program was built without.
    #[error(
        "this looks like YAML, which this program was built without (feature `yaml`): convert it to JSON, such as with \
         `yq -o json`"
    )]
    NoYaml,
    /// It describes an API in another version.
    #[error("`openapi` must be 3.0 or 3.1: descriptions of Swagger 2 have to be converted first")]
    Version,
    /// A part of it is not as its format has it.
    #[error("{path}: {reason}")]
    Field {
        /// Where, such as `log.entries[3].request.url`.
        path: String,
        /// What is wrong there.
        reason: String,
    },
    /// It holds no request that a scenario can hold.
    #[error("it holds no request that a scenario can hold{0}")]
    Nothing(&'static str),
    /// The URL of the server to keep is not valid.
    #[error("the URL of the server is not valid: {0}")]
    Base(#[from] url::ParseError),
    /// A curl command line that cannot be read.
    #[error(transparent)]
    Curl(#[from] CurlError),
}

/// Why a curl command line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurlError {
    /// It does not begin with `curl`.
    #[error("a curl command line begins with `curl`")]
    NotCurl,
    /// It is quoted for another shell.
    #[error("the command is quoted for cmd.exe (`^\"`); in the browser, choose `Copy as cURL (bash)`")]
    ForCmd,
    /// A quotation mark has no partner.
    #[error("the command ends within quotation marks or after a backslash")]
    Quotes,
    /// An option that curl does not have, or that changes the request in a way that cannot be imported.
    #[error("`{0}` is not an option of curl that can be imported; leave it out")]
    Option(String),
    /// An option without its value.
    #[error("`{0}` needs a value")]
    Value(String),
    /// A header that is not `Name: value`.
    #[error("a header of -H must be `Name: value`")]
    Header,
    /// Nothing is requested.
    #[error("the command has no URL")]
    NoUrl,
    /// A URL that is not valid.
    #[error("the URL is not valid: {0}")]
    Url(url::ParseError),
    /// A URL of another scheme.
    #[error("the URL must be one of http or https")]
    Scheme,
    /// Data of a file together with other data.
    #[error("data of a file (`@`) can be imported by itself alone, and not from stdin")]
    File,
    /// A method that a scenario cannot hold.
    #[error("the method must be of capital letters, such as GET")]
    Method,
}
