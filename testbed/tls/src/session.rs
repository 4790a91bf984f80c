//! One TLS session between plain bytes and records, without I/O.

use std::io::{self, BufRead, Write};

use engine::service::Waiting;
use rustls::{HandshakeKind, ProtocolVersion};

use crate::keys::PublicKey;

/// Plain bytes offered to a service at once, where it has not said how many.
const DELIVERED_MAX: usize = 64 << 10;
/// Room for plain bytes that is kept while a connection is idle.
const KEPT_MAX: usize = 4 << 10;

/// One session: what came and is not consumed, what is to be sent, and the state of the protocol.
pub(crate) struct Session {
    tls: rustls::Connection,
    input: Vec<u8>,
    /// How many of `input` have been consumed.
    consumed: usize,
    /// Most plain bytes to be delivered at once.
    at_most: usize,
    /// Plain bytes to be sent.
    pub(crate) output: Vec<u8>,
    /// What the next input is for, should all plain input be used up by then. Never anything but within a request on
    /// a connection that this side opened.
    next: Waiting,
    accepted: bool,
    /// The peer has said that it will send no more.
    ended: bool,
}

impl Session {
    pub(crate) fn new(mut tls: rustls::Connection) -> Self {
        // What is handed in is handed on at once, in pieces that are bounded there.
        tls.set_buffer_limit(None);
        let accepted = matches!(tls, rustls::Connection::Server(_));
        Self {
            tls,
            input: Vec::new(),
            consumed: 0,
            at_most: DELIVERED_MAX,
            output: Vec::new(),
            next: Waiting::Within,
            accepted,
            ended: false,
        }
    }

    pub(crate) fn input(&self) -> &[u8] {
        self.input.get(self.consumed..).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.consumed = self.consumed.saturating_add(count).min(self.input.len());
        if self.consumed == self.input.len() {
            self.input.clear();
            self.consumed = 0;
        }
    }

    pub(crate) fn read_at_most(&mut self, bytes: usize) {
        self.at_most = bytes.max(1);
    }

    /// Takes in some of the records in `received`, the first of them perhaps begun before; tells how many bytes.
    pub(crate) fn take_in(&mut self, mut received: &[u8]) -> Result<usize, rustls::Error> {
        self.next = Waiting::Within;
        // Fails only when what was decrypted before has not been fetched, and it has been.
        let taken =
            self.tls.read_tls(&mut received).map_err(|error| rustls::Error::General(error.to_string()))?;
        let state = self.tls.process_new_packets()?;
        self.ended |= state.peer_has_closed();
        Ok(taken)
    }

    /// Moves plain bytes that have been decrypted to the input; tells how many.
    pub(crate) fn deliver(&mut self) -> usize {
        let mut delivered = 0;
        let mut reader = self.tls.reader();
        // An error means that there is nothing yet.
        while let Ok(ready) = reader.fill_buf() {
            let piece = ready.get(..self.at_most - delivered).unwrap_or(ready);
            if piece.is_empty() {
                break;
            }
            self.input.drain(..self.consumed);
            self.consumed = 0;
            self.input.extend_from_slice(piece);
            delivered += piece.len();
            let count = piece.len();
            reader.consume(count);
        }
        delivered
    }

    /// Whether there are plain bytes to be delivered.
    pub(crate) fn has_decrypted(&mut self) -> bool {
        self.tls.reader().fill_buf().is_ok_and(|ready| !ready.is_empty())
    }

    /// Whether the peer has said that no more will come.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Appends `plain` to `records`, encrypted, after whatever the protocol itself has to say.
    pub(crate) fn encrypt(&mut self, plain: &[u8], records: &mut Vec<u8>) -> io::Result<()> {
        self.tls.writer().write_all(plain)?;
        if self.accepted && !plain.is_empty() {
            self.next = Waiting::Next;
        }
        self.write_records(records)
    }

    /// Appends the output to `records`, encrypted; it is empty then.
    pub(crate) fn encrypt_output(&mut self, records: &mut Vec<u8>) -> io::Result<()> {
        let mut output = std::mem::take(&mut self.output);
        let encrypted = self.encrypt(&output, records);
        output.clear();
        self.output = output;
        encrypted
    }

    /// Appends what the protocol has to say, such as its part of a handshake.
    pub(crate) fn write_records(&mut self, records: &mut Vec<u8>) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(records)?;
        }
        Ok(())
    }

    /// The last that is said.
    pub(crate) fn say_goodbye(&mut self) {
        self.tls.send_close_notify();
    }

    pub(crate) fn awaits(&mut self, what: Waiting) {
        self.next = what;
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the peer waits for the end of the handshake: TLS 1.3 has nothing left that it would wait for.
    pub(crate) fn owes_the_end(&self) -> bool {
        self.tls.protocol_version() != Some(ProtocolVersion::TLSv1_3)
    }

    /// The key that the peer has proved to have.
    pub(crate) fn proven_key(&self) -> Option<PublicKey> {
        PublicKey::in_certificate(self.tls.peer_certificates()?.first()?)
    }

    pub(crate) fn was_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// What the next input is awaited for. Gives memory back that is not in use meanwhile.
    pub(crate) fn rest(&mut self) -> Waiting {
        if !self.input().is_empty() {
            return Waiting::Within;
        }
        self.input.shrink_to(KEPT_MAX);
        if self.output.is_empty() {
            self.output.shrink_to(KEPT_MAX);
        }
        self.next
    }

    pub(crate) const fn is_accepted(&self) -> bool {
        self.accepted
    }
}
