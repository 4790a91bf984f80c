//! Where an agent is to run: a command whose standard input and output are the stream, or a host to reach by ssh.

use std::fmt;
use std::str::FromStr;

use crate::open::OpenStream;

/// Where an agent is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Beside this process. No text is read as this: whoever has a word for it makes it.
    Here,
    /// The words of a command that runs `nstar agent` somewhere.
    Command(Vec<String>),
    /// A host.
    Ssh(SshHost),
    /// A stream to one that runs already. No text is read as this.
    Open(OpenStream),
}

/// A host as ssh knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// The user, where ssh is not to choose.
    pub user: Option<String>,
    /// The host, or a name from ssh's own configuration.
    pub host: String,
    /// The port, where ssh is not to choose.
    pub port: Option<u16>,
}

/// Reasons why a text names nothing to observe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// A quotation mark or a backslash at the end stands alone.
    #[error("the command has a quotation mark that nothing closes")]
    Quotation,
    /// There is no word in it.
    #[error("the command is empty; write one that runs `nstar agent`, or ssh://[USER@]HOST[:PORT]")]
    Empty,
    /// A host is missing, or what stands in its place is none.
    #[error("expected ssh://[USER@]HOST[:PORT]; {0}")]
    Ssh(&'static str),
}

const SCHEME: &str = "ssh://";

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if let Some(rest) = text.strip_prefix(SCHEME) {
            return ssh_host(rest).map(Endpoint::Ssh).map_err(EndpointError::Ssh);
        }
        let words = shlex::split(text).ok_or(EndpointError::Quotation)?;
        if words.first().is_none_or(String::is_empty) {
            Err(EndpointError::Empty)
        } else {
            Ok(Endpoint::Command(words))
        }
    }
}

/// Reads `[USER@]HOST[:PORT]`, with an IPv6 address in brackets.
fn ssh_host(text: &str) -> Result<SshHost, &'static str> {
    let (user, address) = match text.rsplit_once('@') {
        Some((user, address)) => (Some(user), address),
        None => (None, text),
    };
    let (host, port) = match address.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']').ok_or("a bracket is not closed")?;
            (
                host,
                if rest.is_empty() {
                    None
                } else {
                    Some(rest.strip_prefix(':').ok_or("a port follows a colon")?)
                },
            )
        }
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    // ssh takes a word that begins with a dash for an option, wherever it stands.
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('-') && !name.contains(is_odd);
    if !is_name(host) || user.is_some_and(|user| !is_name(user)) {
        return Err("a host or a user is missing or has a character that none has");
    }
    let port = port.map(|port| {
        port.parse().ok().filter(|port| *port > 0).ok_or("the port is no number from 1 to 65535")
    });
    Ok(SshHost { user: user.map(str::to_owned), host: host.to_owned(), port: port.transpose()? })
}

/// Characters of no host and no user, some of which ssh or a shell would take for something else.
fn is_odd(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "/?#'\"\\`$&|;<>(){}*!@".contains(c)
}

/// A short text for people: the command, or the URL.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Here => f.write_str("here"),
            Endpoint::Open(stream) => stream.fmt(f),
            Endpoint::Command(words) => write!(f, "`{}`", words.join(" ")),
            Endpoint::Ssh(SshHost { user, host, port }) => {
                f.write_str(SCHEME)?;
                user.iter().try_for_each(|user| write!(f, "{user}@"))?;
                if host.contains(':') {
                    write!(f, "[{host}]")?
                } else {
                    f.write_str(host)?
                }
                port.iter().try_for_each(|port| write!(f, ":{port}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ssh(user: Option<&str>, host: &str, port: Option<u16>) -> Endpoint {
        Endpoint::Ssh(SshHost { user: user.map(Into::into), host: host.into(), port })
    }

    #[test]
    fn commands_are_split_as_a_shell_splits_words() {
        let words = |text: &str| match text.parse() {
            Ok(Endpoint::Command(words)) => words,
            other => panic!("{other:?}"),
        };
        assert_eq!(words("ip netns exec s nstar agent"), ["ip", "netns", "exec", "s", "nstar", "agent"]);
        assert_eq!(words("sh -c 'a \"b\"' \"c d\" e\\ f"), ["sh", "-c", "a \"b\"", "c d", "e f"]);
        assert_eq!("sh -c 'a".parse::<Endpoint>(), Err(EndpointError::Quotation));
        assert_eq!(" ".parse::<Endpoint>(), Err(EndpointError::Empty));
        assert_eq!("''".parse::<Endpoint>(), Err(EndpointError::Empty));
    }

    #[test]
    fn hosts_may_have_a_user_and_a_port() {
        for (text, expected) in [
            ("ssh://web", ssh(None, "web", None)),
            ("ssh://ann@web:2222", ssh(Some("ann"), "web", Some(2222))),
            ("ssh://10.0.0.7:22", ssh(None, "10.0.0.7", Some(22))),
            ("ssh://ann@[::1]:22", ssh(Some("ann"), "::1", Some(22))),
            ("ssh://[fe80::1%eth0]", ssh(None, "fe80::1%eth0", None)),
        ] {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), text);
        }
    }

    #[test]
    fn what_ssh_would_take_for_an_option_is_no_host() {
        for text in [
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://-l@web",
            "ssh://a b",
            "ssh://web:0",
            "ssh://web:x",
            "ssh://[::1",
            "ssh://web/x",
            "ssh://@web",
        ] {
            assert!(matches!(text.parse::<Endpoint>(), Err(EndpointError::Ssh(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}", host in "[-a-z0-9@:\\[\\]./]{0,30}") {
            let _ = text.parse::<Endpoint>();
            let _ = format!("ssh://{host}").parse::<Endpoint>();
        }
    }
}
