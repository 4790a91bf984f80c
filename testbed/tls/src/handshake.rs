//! Shaking hands, on either side.

use std::{io, time::Duration};

use engine::service::{self, Waiting};
use rustls::{AlertDescription, CertificateError};

use crate::{
    connection::{Connection, take_in},
    identity::Identity,
    keyed::Unlisted,
    keys::PublicKey,
    session::Session,
    trust::Peer,
};

/// The first byte of a handshake's first record (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// Why there was no handshake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The peer closed before it said anything.
    #[error("it closed the connection without a word")]
    Silent,
    /// The peer speaks, but not TLS.
    #[error("it does not speak TLS")]
    NotTls,
    /// The peer does not say what is due in time.
    #[error("the TLS handshake took too long")]
    TimedOut,
    /// The connection failed.
    #[error("the connection failed during the TLS handshake: {0}")]
    Connection(io::Error),
    /// The peer's certificate is signed by no authority that is trusted here.
    #[error(
        "its certificate is signed by no authority trusted here: name the file of the one that signed it, or of \
             the certificate itself where it has signed itself"
    )]
    UnknownIssuer,
    /// The peer's certificate is for other names.
    #[error("its certificate is not for {asked}: {detail}")]
    WrongName {
        /// The name asked for.
        asked: String,
        /// Which names it is for, where that is known.
        detail: String,
    },
    /// The peer's certificate is good no more, or not yet.
    #[error("its certificate has expired, or one clock is wrong: {0}")]
    Expired(CertificateError),
    /// The peer's certificate is one that signs others.
    #[error(
        "its certificate is an authority's (CA:TRUE), which a server may not show; make one for a server \
         (CA:FALSE), signed by itself or by that authority"
    )]
    AuthorityShown,
    /// The peer shows a key, but none that is known here.
    #[error("it shows the key {0}, which is not on the list here")]
    UnknownKey(PublicKey),
    /// The peer shows a certificate, where a key is wanted.
    #[error("it shows no key of a member, but a certificate")]
    NoKey,
    /// The peer does not accept this side.
    #[error("it broke the TLS handshake off: {0:?}")]
    Refused(AlertDescription),
    /// Something else is wrong.
    #[error("the TLS handshake failed: {0}")]
    Protocol(rustls::Error),
}

/// A connection that could not be secured, and why. It can still be told something, if it is of [`Failure::NotTls`].
pub struct Unsecured<C> {
    /// The connection; what came is still in its input, where it was not TLS.
    pub connection: C,
    /// Why.
    pub failure: Failure,
}

/// Shakes hands with a client, for as long as `patience`.
///
/// # Errors
/// When the client does not, or not in time.
pub async fn accept<C: service::Connection>(
    mut connection: C,
    identity: &Identity,
    patience: Duration,
) -> Result<Connection<C>, Unsecured<C>> {
    connection.set_deadline(Some(patience));
    match greet(&mut connection, identity).await {
        Ok(session) => {
            connection.set_deadline(None);
            Ok(Connection::encrypted(connection, session))
        }
        Err(failure) => Err(Unsecured { connection, failure }),
    }
}

/// Shakes hands with a server, within the connection's deadline.
///
/// # Errors
/// When the server does not, or cannot show that it is `peer`.
pub async fn connect<C: service::Connection>(
    mut connection: C,
    peer: &Peer,
) -> Result<Connection<C>, Failure> {
    let mut session = Session::new(peer.session().map_err(Failure::Protocol)?.into());
    shake(&mut connection, &mut session).await.map_err(|failure| failure.about(peer))?;
    Ok(Connection::encrypted(connection, session))
}

async fn greet<C: service::Connection>(connection: &mut C, identity: &Identity) -> Result<Session, Failure> {
    if connection.input().is_empty() && connection.fill().await.map_err(broken)? == 0 {
        return Err(Failure::Silent);
    }
    if connection.input().first() != Some(&HANDSHAKE_RECORD) {
        return Err(Failure::NotTls);
    }
    let mut session = Session::new(identity.session().map_err(Failure::Protocol)?.into());
    shake(connection, &mut session).await?;
    session.awaits(Waiting::First);
    Ok(session)
}

/// The handshake from its beginning to its end.
async fn shake<C: service::Connection>(connection: &mut C, session: &mut Session) -> Result<(), Failure> {
    while session.is_handshaking() {
        if !connection.input().is_empty() {
            take_in(connection, session).await.map_err(Failure::from)?;
            continue;
        }
        send_records(connection, session).await?;
        if session.is_accepted() {
            connection.awaits(Waiting::Within);
        }
        if session.has_ended() || connection.fill().await.map_err(broken)? == 0 {
            return Err(Failure::Connection(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    // Tickets for later sessions go out with the first answer, if it is due already. They are not kept for one that is
    // still to come: a client's request may be waiting in its kernel for a sign that its last record has arrived.
    let requested = !connection.input().is_empty() || session.has_decrypted();
    if requested && !session.owes_the_end() { Ok(()) } else { send_records(connection, session).await }
}

async fn send_records<C: service::Connection>(
    connection: &mut C,
    session: &mut Session,
) -> Result<(), Failure> {
    session.write_records(connection.output()).map_err(broken)?;
    if connection.output().is_empty() { Ok(()) } else { connection.flush().await.map_err(broken) }
}

fn broken(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Failure::TimedOut,
        _ => Failure::Connection(error),
    }
}

impl From<rustls::Error> for Failure {
    fn from(error: rustls::Error) -> Self {
        use CertificateError as Wrong;
        match error {
            rustls::Error::InvalidMessage(_) => Self::NotTls,
            rustls::Error::AlertReceived(alert) => Self::Refused(alert),
            rustls::Error::InvalidCertificate(wrong) => match wrong {
                // The last two: by another authority of the same name, as after a certificate was made anew.
                Wrong::UnknownIssuer
                | Wrong::BadSignature
                | Wrong::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => Self::UnknownIssuer,
                Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
                    Self::WrongName { asked: String::new(), detail: wrong.to_string() }
                }
                Wrong::Expired
                | Wrong::ExpiredContext { .. }
                | Wrong::NotValidYet
                | Wrong::NotValidYetContext { .. } => Self::Expired(wrong),
                Wrong::Other(ref other) if other.to_string().contains("CaUsedAsEndEntity") => {
                    Self::AuthorityShown
                }
                Wrong::Other(ref other) => match other.0.downcast_ref::<Unlisted>() {
                    Some(Unlisted(Some(key))) => Self::UnknownKey(*key),
                    Some(Unlisted(None)) => Self::NoKey,
                    None => Self::Protocol(wrong.into()),
                },
                wrong => Self::Protocol(wrong.into()),
            },
            error => Self::Protocol(error),
        }
    }
}

impl Failure {
    fn about(self, peer: &Peer) -> Self {
        match self {
            Self::WrongName { detail, .. } => Self::WrongName { asked: peer.name().to_owned(), detail },
            other => other,
        }
    }
}
