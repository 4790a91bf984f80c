//! Where the bus is, and how to log in there.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::Url;

/// The port of NATS where none is named.
const PORT: u16 = 4222;

/// Where a NATS server is, and the user it is used as. Shown without password or token.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    is_tls: bool,
    /// An IPv6 address stands in brackets.
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
}

/// Reasons why a text is no address of a bus. None repeats the text, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected nats://[USER[:PASSWORD]@]HOST[:PORT], or tls://..; {0}")]
pub struct AddressError(&'static str);

/// What else a NATS server may want to see, or show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// File with the credentials of a user: a JWT and the seed of its key, as `nsc` writes them.
    pub credentials: Option<PathBuf>,
    /// File with the certificates of who signs the server's, where the system does not know them.
    pub authorities: Option<PathBuf>,
    /// What this end shows of itself in TLS, where the server asks for it.
    pub identity: Option<Identity>,
}

/// A certificate, and what proves whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// File with the certificate, and with those of who signed it up to one that the server knows: PEM.
    pub certificate: PathBuf,
    /// File with its key: PEM, not encrypted.
    pub key: PathBuf,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url = Url::parse(text).map_err(|_| AddressError("this is no URL"))?;
        let is_tls = match url.scheme() {
            "nats" => false,
            "tls" => true,
            _ => return Err(AddressError("the scheme is another")),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(AddressError("a host is missing"))?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError("nothing follows the port"));
        }
        let decoded = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded.map(String::from).map_err(|_| AddressError("user or password is not text"))
        };
        let given = |text: &str| if text.is_empty() { Ok(None) } else { decoded(text).map(Some) };
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port: url.port().unwrap_or(PORT),
            user: given(url.username())?,
            password: given(url.password().unwrap_or_default())?,
        })
    }
}

impl Address {
    /// Whether it holds the password of its user.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether it holds a password or a token.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.password.is_some() || self.token().is_some()
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same with a password for its user, or with a token where it names none.
    #[must_use]
    pub fn with_secret(self, secret: String) -> Self {
        match self.user {
            Some(_) => Self { password: Some(secret), ..self },
            None => Self { user: Some(secret), ..self },
        }
    }

    /// A user without a password is a token, as NATS has it.
    pub(crate) fn token(&self) -> Option<&str> {
        self.user.as_deref().filter(|_| self.password.is_none())
    }

    pub(crate) fn user_and_password(&self) -> Option<(&str, &str)> {
        self.user.as_deref().zip(self.password.as_deref())
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }
}

/// Without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", if self.is_tls { "tls" } else { "nats" }, self.host, self.port)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_have_a_port_and_are_shown_without_what_is_secret() {
        for (text, shown) in [
            ("nats://bus", "nats://bus:4222"),
            ("nats://ann:open%40sesame@10.0.0.7:4333/", "nats://10.0.0.7:4333"),
            ("tls://token@[::1]:7", "tls://[::1]:7"),
        ] {
            assert_eq!(address(text).to_string(), shown);
            assert_eq!(format!("{:?}", address(text)), shown);
        }
        assert_eq!(address("nats://ann:open%40sesame@bus").user_and_password(), Some(("ann", "open@sesame")));
    }

    #[test]
    fn a_user_alone_is_a_token_until_a_password_comes() {
        assert_eq!(address("nats://t0ken@bus").token(), Some("t0ken"));
        assert!(address("nats://t0ken@bus").has_secret() && !address("nats://bus").has_secret());
        let with = address("nats://ann@bus").with_secret("sesame".into());
        assert_eq!((with.token(), with.user_and_password()), (None, Some(("ann", "sesame"))));
        assert_eq!(address("nats://bus").with_secret("t0ken".into()).token(), Some("t0ken"));
    }

    #[test]
    fn what_is_no_bus_is_refused_without_repeating_it() {
        for text in [
            "bus:4222",
            "http://bus",
            "nats://",
            "nats://bus:0x",
            "nats://sesame@bus/x",
            "nats://bus?a=sesame",
        ] {
            let refused = text.parse::<Address>().expect_err(text).to_string();
            assert!(
                refused.contains("nats://[USER[:PASSWORD]@]HOST[:PORT]") && !refused.contains("sesame"),
                "{refused}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}", rest in "[-a-z0-9@:%\\[\\]./]{0,30}") {
            let _ = text.parse::<Address>();
            let _ = format!("nats://{rest}").parse::<Address>();
        }
    }
}
