//! What an import leaves out of a scenario, in words.

use import::{LeftOut, Why};

const BODIES: &str = "bodies are as they were: look whether they hold a secret that no name tells";
const ORDER: &str = "the order of the requests and the pauses between them are not kept: users pick requests by \
                     weight, and --think sets pauses";
const NO_SERVER: &str = "the description names no server: add a line base = \"http://HOST:PORT\"";
const INSECURE: &str = "the scenario does not say that any certificate will do: give -k to nstar";

/// What a scenario does not have, or has in another form.
pub(crate) fn left_out(what: &LeftOut) -> String {
    match what {
        LeftOut::Secret { name, variable } => {
            format!("the secret `{name}` is not in the file: set it before a run with `export {variable}=..`")
        }
        LeftOut::SharedVariable { name, variable, others } => shared_variable(name, variable, *others),
        LeftOut::SecretInBody { request, name } => {
            format!("the body of `{request}` holds `{name}`, which may be a secret, as it was")
        }
        LeftOut::SecretInParameter { parameter, name } => {
            format!("an example of `{parameter}` holds `{name}`, which may be a secret, as it was")
        }
        LeftOut::Examples { parameter, others } => examples(parameter, *others),
        LeftOut::Bodies => BODIES.to_owned(),
        LeftOut::OtherServer { server, requests } => requests_of(*requests, &format!("to {server} left out")),
        LeftOut::NotHttp { requests } => requests_of(*requests, "of other protocols than HTTP left out"),
        LeftOut::Unanswered { requests } => requests_of(*requests, "without an answer of a server left out"),
        LeftOut::Request { request, why } => format!("`{request}` left out: {}", reason(*why)),
        LeftOut::Headers { names } => {
            format!("headers of one connection or one browser left out: {}", names.join(", "))
        }
        LeftOut::Order => ORDER.to_owned(),
        LeftOut::Version { requests } => {
            requests_of(*requests, "made over HTTP/2 or HTTP/3 will be sent over HTTP/1.1")
        }
        LeftOut::Expected { request, status } => {
            format!("`{request}` was answered with status {status}, which counts as success (`expect`)")
        }
        LeftOut::CurlOption { option } => format!("{option} of curl left out"),
        LeftOut::Invented { value } => {
            format!("`{value}` is made up: put values under [values] that the server knows")
        }
        LeftOut::Optional { parameters } => format!("optional parameters left out: {parameters}"),
        LeftOut::Changes { requests } => requests_of(*requests, "may change or delete what the server keeps"),
        LeftOut::NoServer => NO_SERVER.to_owned(),
        LeftOut::Servers { others } => {
            format!("the first server of the description is taken, of {}: --base names another", others + 1)
        }
        LeftOut::ServerVariable { name, value } => {
            format!("`{name}` in the server's URL is its default, {value}: --base names another server")
        }
        LeftOut::OwnServers { requests } => {
            format!("requests described with servers of their own, which go to the one above: {requests}")
        }
        LeftOut::References { to } => references(to),
        LeftOut::Body { request, why } => {
            format!("the body of `{request}`, which is optional, left out: {}", reason(*why))
        }
        LeftOut::Cut { request } => {
            format!("the body of `{request}` ends where its schema holds itself, or goes on for too long")
        }
        LeftOut::MadeUp { requests } => {
            format!("requests with bodies made up from schemas, which the server may not take: {requests}")
        }
        LeftOut::Copies { requests } => requests_of(
            *requests,
            "left out: what they share with others would be copied to more than 16 MiB",
        ),
        LeftOut::Insecure => INSECURE.to_owned(),
    }
}

fn shared_variable(name: &str, variable: &str, others: usize) -> String {
    format!(
        "{others} more texts of the secret `{name}` have no variable of their own: ${variable} is sent in place of each"
    )
}

fn examples(parameter: &str, others: usize) -> String {
    format!(
        "`{parameter}` is always its first example: with a secret in one, {others} more cannot be drawn from"
    )
}

fn references(to: &[String]) -> String {
    format!(
        "references that lead to another file, to nothing or back to themselves left out: {} (put a \
         description of several files into one first, such as with `redocly bundle`)",
        some_of(to)
    )
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::Method => "its method is not of capital letters",
        Why::Binary => "its body is binary, which the recording may not hold whole",
        Why::Multipart => "its body is a form of several parts",
        Why::NotJson => "its body is not JSON",
        Why::TooLong => "its body would bring those of all requests to more than 16 MiB",
        Why::LikeFile => "its body begins with `@`, which in a scenario names a file",
    }
}

/// The first of several names, and how many follow.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// How many requests, and what is said of them.
fn requests_of(count: usize, what: &str) -> String {
    if count == 1 { format!("1 request {what}") } else { format!("{count} requests {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_about_a_secret_is_told() {
        let secret = LeftOut::Secret { name: "X-Api-Key".into(), variable: "X_API_KEY".into() };
        assert!(left_out(&secret).contains("export X_API_KEY=.."));
        assert_eq!(
            left_out(&LeftOut::NotHttp { requests: 1 }),
            "1 request of other protocols than HTTP left out"
        );
    }

    #[test]
    fn many_names_are_cut_short() {
        let names: Vec<_> = (1..=7).map(|name| name.to_string()).collect();
        assert_eq!(some_of(&names), "1, 2, 3, 4, 5 and 2 more");
        assert_eq!(some_of(&names[..5]), "1, 2, 3, 4, 5");
    }
}
