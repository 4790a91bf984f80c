//! Why somebody is not spoken with, and what to do about it.

use http_io::client::{Insecurity, Response};

/// Why there is no secure connection to another peer, or to the index.
pub(crate) fn explain(why: &Insecurity) -> String {
    match why {
        Insecurity::NotTls => {
            "it does not speak TLS, as this peer does; start it with --tls-cert or --allow too".into()
        }
        Insecurity::UnknownKey(key) => format!("{why}; `--allow {key}` puts it there"),
        Insecurity::NoKey => format!("{why}; start it with --allow too"),
        Insecurity::UnknownIssuer => format!(
            "{why} (--ca FILE); where members are known by their keys, start this peer with --allow too"
        ),
        why => format!("{why} (--ca FILE says who is trusted)"),
    }
}

/// What is said of a peer or an index that was spoken with unencrypted and wants TLS.
pub(crate) fn wants_tls(answer: &Response) -> Option<String> {
    answer
        .wants_tls()
        .then(|| "it speaks TLS, as this peer does not; start this one with --tls-cert or --allow too".into())
}
