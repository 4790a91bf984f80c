//! A connection whose bytes are encrypted, or, without TLS, as they are.

use std::{fs::File, io, net::SocketAddr, os::unix::fs::FileExt, sync::Arc, time::Duration};

use engine::service::{self, Pace, Waiting};

use crate::{keys::PublicKey, tls_session::TlsSession};

/// How many plain bytes are encrypted before they are sent: a few records of 16 KiB.
const SENT_MAX: usize = 64 << 10;

/// A connection over `C`. [`connect`](service::Connection::connect) opens one without encryption; for one with it use
/// [`connect`](crate::connect).
pub struct Connection<C> {
    pub(crate) inner: C,
    /// `None` without encryption.
    pub(crate) session: Option<Box<TlsSession>>,
    /// The key that the peer has proved.
    key: Option<PublicKey>,
}

impl<C: service::Connection> Connection<C> {
    /// A connection without encryption.
    pub fn plain(inner: C) -> Self {
        Self { inner, session: None, key: None }
    }

    /// A connection after its handshake.
    pub(crate) fn encrypted(inner: C, session: TlsSession) -> Self {
        Self { inner, key: session.proven_key(), session: Some(Box::new(session)) }
    }

    /// The underlying connection.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    /// Whether the handshake was shortened by resuming an earlier session.
    pub fn was_resumed(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.was_resumed())
    }
}

/// Encrypts and sends plain bytes, in bounded pieces.
async fn send<C: service::Connection>(
    inner: &mut C,
    session: &mut TlsSession,
    plain: &[u8],
) -> io::Result<()> {
    for piece in plain.chunks(SENT_MAX) {
        session.encrypt(piece, inner.output())?;
        inner.flush().await?;
    }
    Ok(())
}

/// Encrypts and sends the output.
async fn send_output<C: service::Connection>(inner: &mut C, session: &mut TlsSession) -> io::Result<()> {
    let mut output = std::mem::take(&mut session.output);
    let sent = send(inner, session, &output).await;
    if sent.is_ok() {
        output.clear();
    }
    session.output = output;
    sent
}

/// Decrypts the records that have arrived. A malformed one ends the session, and the peer is told why.
pub(crate) async fn decrypt<C: service::Connection>(
    inner: &mut C,
    session: &mut TlsSession,
) -> Result<(), rustls::Error> {
    match session.decrypt(inner.input()) {
        Ok(taken) => {
            inner.consume(taken);
            Ok(())
        }
        Err(error) => {
            // Whether the peer receives that does not matter.
            if session.write_records(inner.output()).is_ok() {
                let _ = inner.flush().await;
            }
            Err(error)
        }
    }
}

async fn fill<C: service::Connection>(inner: &mut C, session: &mut TlsSession) -> io::Result<usize> {
    loop {
        match session.deliver() {
            0 if session.has_ended() => return Ok(0),
            0 => {}
            delivered => return Ok(delivered),
        }
        if !inner.input().is_empty() {
            let taken = decrypt(inner, session).await;
            taken.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            continue;
        }
        let waiting = session.prepare_to_wait();
        if session.is_accepted() {
            inner.awaits(waiting);
        }
        if inner.fill().await? == 0 {
            // Between requests nothing more was due. Elsewhere the stream may have been cut short.
            return if waiting == Waiting::Within { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(0) };
        }
    }
}

/// Sends the output and then a part of a file, which is read into the output so that both go out together.
async fn send_file<C: service::Connection>(
    inner: &mut C,
    session: &mut TlsSession,
    (file, mut offset, length): (&File, u64, u64),
) -> io::Result<()> {
    let end = offset.saturating_add(length);
    while offset < end {
        let before = session.output.len() % SENT_MAX;
        let room = SENT_MAX - before;
        let take = usize::try_from(end - offset).map_or(room, |left| left.min(room));
        let filled = session.output.len();
        session.output.resize(filled + take, 0);
        let room = session.output.get_mut(filled..).unwrap_or_default();
        if let Err(error) = file.read_exact_at(room, offset) {
            session.output.truncate(filled);
            return Err(error);
        }
        offset += take as u64;
        send_output(inner, session).await?;
    }
    send_output(inner, session).await
}

impl<C: service::Connection> service::Connection for Connection<C> {
    fn peer(&self) -> SocketAddr {
        self.inner.peer()
    }

    fn proven_key(&self) -> Option<&[u8]> {
        self.key.as_ref().map(|key| &key.as_bytes()[..])
    }

    fn input(&self) -> &[u8] {
        match &self.session {
            Some(session) => session.input(),
            None => self.inner.input(),
        }
    }

    fn consume(&mut self, count: usize) {
        match &mut self.session {
            Some(session) => session.consume(count),
            None => self.inner.consume(count),
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => fill(&mut self.inner, session).await,
            None => self.inner.fill().await,
        }
    }

    fn awaits(&mut self, what: Waiting) {
        match &mut self.session {
            Some(session) => session.awaits(what),
            None => self.inner.awaits(what),
        }
    }

    fn read_at_most(&mut self, bytes: usize) {
        self.inner.read_at_most(bytes);
        if let Some(session) = &mut self.session {
            session.read_at_most(bytes);
        }
    }

    fn output(&mut self) -> &mut Vec<u8> {
        match &mut self.session {
            Some(session) => &mut session.output,
            None => self.inner.output(),
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        match &mut self.session {
            Some(session) => send_output(&mut self.inner, session).await,
            None => self.inner.flush().await,
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.session else { return self.inner.finish().await };
        // A short output goes out together with close_notify.
        if session.output.len() > SENT_MAX {
            send_output(&mut self.inner, session).await?;
        }
        session.encrypt_output(self.inner.output())?;
        session.close_notify();
        session.write_records(self.inner.output())?;
        self.inner.finish().await
    }

    async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(session) = &mut self.session else { return self.inner.send_bytes(bytes).await };
        session.encrypt_output(self.inner.output())?;
        if bytes.is_empty() {
            return self.inner.flush().await;
        }
        send(&mut self.inner, session, bytes).await
    }

    async fn send_file(&mut self, file: &Arc<File>, offset: u64, length: u64) -> io::Result<()> {
        match &mut self.session {
            Some(session) => send_file(&mut self.inner, session, (file, offset, length)).await,
            None => self.inner.send_file(file, offset, length).await,
        }
    }

    fn set_deadline(&mut self, after: Option<Duration>) {
        self.inner.set_deadline(after);
    }

    fn set_pace(&mut self, pace: Pace) {
        self.inner.set_pace(pace);
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.inner.shutdown_write()
    }

    fn draining(&self) -> bool {
        self.inner.draining()
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self> {
        self.inner.connect(to).await.map(Self::plain)
    }

    async fn sleep(&self, how_long: Duration) {
        self.inner.sleep(how_long).await;
    }

    fn is_stale(&mut self) -> bool {
        let unread =
            self.session.as_ref().is_some_and(|session| !session.input().is_empty() || session.has_ended());
        unread || self.inner.is_stale()
    }
}
