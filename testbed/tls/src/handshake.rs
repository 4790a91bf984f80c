//! Handshakes, on either side.

use std::{io, time::Duration};

use engine::service::{self, Waiting};
use rustls::{AlertDescription, CertificateError};

use crate::{
    connection::{Connection, decrypt},
    identity::Identity,
    keyed::Unlisted,
    keys::PublicKey,
    tls_session::TlsSession,
    trust::Peer,
};

/// The first byte of a handshake's first record (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The peer closed the connection before it sent anything.
    #[error("it closed the connection without sending anything")]
    Silent,
    /// The peer sent something other than TLS.
    #[error("it does not speak TLS")]
    NotTls,
    /// The peer was too slow.
    #[error("the TLS handshake took too long")]
    TimedOut,
    /// The connection failed.
    #[error("the connection failed during the TLS handshake: {0}")]
    Connection(io::Error),
    /// The issuer of the peer's certificate is not trusted.
    #[error(
        "the issuer of its certificate is not trusted here: name the file of the authority that signed it, or of the \
         certificate itself if it is self-signed"
    )]
    UnknownIssuer,
    /// The peer's certificate is for other names.
    #[error("its certificate is not for {asked}: {detail}")]
    WrongName {
        /// The expected name.
        asked: String,
        /// The names it is for, if known.
        detail: String,
    },
    /// The peer's certificate has expired, or is not valid yet.
    #[error("its certificate has expired or is not valid yet, or a clock is wrong: {0}")]
    Expired(CertificateError),
    /// The peer's certificate is that of an authority.
    #[error(
        "its certificate is an authority's (CA:TRUE), which a server must not use; create one for a server (CA:FALSE), \
         self-signed or signed by that authority"
    )]
    AuthorityShown,
    /// The peer proved a key that is not on the list.
    #[error("it has the key {0}, which is not on the list here")]
    UnknownKey(PublicKey),
    /// The peer presented a certificate instead of a key.
    #[error("it has no member's key, but a certificate")]
    NoKey,
    /// The peer refused this side.
    #[error("it aborted the TLS handshake: {0:?}")]
    Refused(AlertDescription),
    /// Anything else.
    #[error("the TLS handshake failed: {0}")]
    Protocol(rustls::Error),
}

/// A connection whose handshake failed. After [`Failure::NotTls`] it can still be used unencrypted.
pub struct Unsecured<C> {
    /// The connection. If the peer does not speak TLS, what it sent is still in the input.
    pub connection: C,
    /// Why it failed.
    pub failure: Failure,
}

/// Carries out the handshake with a client, for `patience` at most.
///
/// # Errors
/// When the handshake fails or takes too long.
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

/// Carries out the handshake with a server, within the connection's deadline.
///
/// # Errors
/// When the handshake fails, or the server cannot prove that it is `peer`.
pub async fn connect<C: service::Connection>(
    mut connection: C,
    peer: &Peer,
) -> Result<Connection<C>, Failure> {
    let mut session = TlsSession::new(peer.session().map_err(Failure::Protocol)?.into());
    shake(&mut connection, &mut session).await.map_err(|failure| failure.with_name(peer))?;
    Ok(Connection::encrypted(connection, session))
}

async fn greet<C: service::Connection>(
    connection: &mut C,
    identity: &Identity,
) -> Result<TlsSession, Failure> {
    if connection.input().is_empty() && connection.fill().await.map_err(broken)? == 0 {
        return Err(Failure::Silent);
    }
    if connection.input().first() != Some(&HANDSHAKE_RECORD) {
        return Err(Failure::NotTls);
    }
    let mut session = TlsSession::new(identity.session().map_err(Failure::Protocol)?.into());
    shake(connection, &mut session).await?;
    session.awaits(Waiting::First);
    Ok(session)
}

/// Exchanges records until the handshake is complete.
async fn shake<C: service::Connection>(connection: &mut C, session: &mut TlsSession) -> Result<(), Failure> {
    while session.is_handshaking() {
        if !connection.input().is_empty() {
            decrypt(connection, session).await.map_err(Failure::from)?;
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
    // Session tickets go out with the first response if its request has arrived. Otherwise they are sent now: the client's
    // kernel may hold back its request until its last record is acknowledged.
    let requested = !connection.input().is_empty() || session.has_decrypted();
    if requested && !session.owes_finished() { Ok(()) } else { send_records(connection, session).await }
}

async fn send_records<C: service::Connection>(
    connection: &mut C,
    session: &mut TlsSession,
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
                // The last two: signed by another authority of the same name, such as a previous one.
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
    fn with_name(self, peer: &Peer) -> Self {
        match self {
            Self::WrongName { detail, .. } => Self::WrongName { asked: peer.name().to_owned(), detail },
            other => other,
        }
    }
}
