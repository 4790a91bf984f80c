//! A TLS session: plain bytes on one side, records on the other, no I/O.

use std::io::{self, BufRead, Write};

use engine::service::Waiting;
use rustls::{HandshakeKind, ProtocolVersion};

use crate::keys::PublicKey;

/// How many plain bytes a service is given at once, unless it sets another limit.
const DELIVERED_MAX: usize = 64 << 10;
/// How much buffer an idle connection keeps, bytes.
const KEPT_MAX: usize = 4 << 10;

/// A TLS session: input that was not consumed yet, output, and the state of the protocol.
pub(crate) struct TlsSession {
    tls: rustls::Connection,
    input: Vec<u8>,
    /// How many of `input` have been consumed.
    consumed: usize,
    /// How many plain bytes are delivered at once at most.
    at_most: usize,
    /// Plain bytes to send.
    pub(crate) output: Vec<u8>,
    /// What the next input is for if all plain input is consumed. Always [`Waiting::Within`] on connections that this side
    /// opened.
    next: Waiting,
    accepted: bool,
    /// Whether the peer has sent close_notify.
    ended: bool,
}

impl TlsSession {
    pub(crate) fn new(mut tls: rustls::Connection) -> Self {
        // Output is passed on at once, in pieces whose size the connection bounds.
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

    /// Decrypts some of the records in `received`, whose first one may continue an earlier call. Returns how many bytes it
    /// used.
    pub(crate) fn decrypt(&mut self, mut received: &[u8]) -> Result<usize, rustls::Error> {
        self.next = Waiting::Within;
        // Fails only if plain bytes were left over from before, which `deliver` prevents.
        let used =
            self.tls.read_tls(&mut received).map_err(|error| rustls::Error::General(error.to_string()))?;
        let state = self.tls.process_new_packets()?;
        self.ended |= state.peer_has_closed();
        Ok(used)
    }

    /// Moves decrypted bytes to the input. Returns how many.
    pub(crate) fn deliver(&mut self) -> usize {
        let mut delivered = 0;
        let mut reader = self.tls.reader();
        // An error means that there are none yet.
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

    /// Whether there are decrypted bytes to deliver.
    pub(crate) fn has_decrypted(&mut self) -> bool {
        self.tls.reader().fill_buf().is_ok_and(|ready| !ready.is_empty())
    }

    /// Whether the peer has sent close_notify.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Encrypts `plain` and appends it to `records`, after pending records of the protocol itself.
    pub(crate) fn encrypt(&mut self, plain: &[u8], records: &mut Vec<u8>) -> io::Result<()> {
        self.tls.writer().write_all(plain)?;
        if self.accepted && !plain.is_empty() {
            self.next = Waiting::Next;
        }
        self.write_records(records)
    }

    /// Encrypts the output, appends it to `records` and clears it.
    pub(crate) fn encrypt_output(&mut self, records: &mut Vec<u8>) -> io::Result<()> {
        let mut output = std::mem::take(&mut self.output);
        let encrypted = self.encrypt(&output, records);
        output.clear();
        self.output = output;
        encrypted
    }

    /// Appends pending records of the protocol itself, such as its part of a handshake.
    pub(crate) fn write_records(&mut self, records: &mut Vec<u8>) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(records)?;
        }
        Ok(())
    }

    /// Ends the output with close_notify.
    pub(crate) fn close_notify(&mut self) {
        self.tls.send_close_notify();
    }

    pub(crate) fn awaits(&mut self, what: Waiting) {
        self.next = what;
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the peer waits for the last record of the handshake. Not so with TLS 1.3.
    pub(crate) fn owes_finished(&self) -> bool {
        self.tls.protocol_version() != Some(ProtocolVersion::TLSv1_3)
    }

    /// The key that the peer has proved.
    pub(crate) fn proven_key(&self) -> Option<PublicKey> {
        PublicKey::in_certificate(self.tls.peer_certificates()?.first()?)
    }

    pub(crate) fn was_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns what the next input is for, and frees memory that an idle connection does not need.
    pub(crate) fn prepare_to_wait(&mut self) -> Waiting {
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
