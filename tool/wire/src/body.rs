//! Taking a body apart, whatever its framing, without touching its bytes.
//!
//! The decoder says how many of the next bytes are what; the caller moves them, or leaves them in the kernel.

use crate::{
    Framing, Limits, ParseError,
    syntax::{is_token_byte, is_value_byte},
};

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// So many bytes at the front are framing, already dealt with: drop them, and ask again.
    Framing(usize),
    /// So many bytes at the front belong to the body. Tell [`Decoder::advance`] how many of them were taken.
    Data(usize),
    /// Nothing more can be said without more bytes.
    NeedMore,
    /// The body is over; what follows belongs to the next message.
    End,
}

/// Follows one body to its end.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// Body bytes certain to come before the next framing.
    pending: u64,
    /// Body bytes that may still come before the body is too long.
    allowance: u64,
    extension_bytes_left: usize,
    trailer_bytes_left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length,
    UntilClose,
    /// In a chunk size: its value and how many digits have come.
    Size {
        value: u64,
        digits: u8,
    },
    /// Blanks between the size and its extension's `;`.
    SizeBlank {
        value: u64,
    },
    Extension {
        value: u64,
    },
    SizeLf {
        value: u64,
    },
    ChunkData,
    ChunkCr,
    ChunkLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    FinalLf,
    End,
}

const FIRST_SIZE: State = State::Size { value: 0, digits: 0 };

impl Decoder {
    /// A decoder for one body.
    ///
    /// # Errors
    /// [`ParseError::BodyTooLong`] if the announced length passes [`Limits::body_bytes`].
    pub fn new(framing: Framing, limits: &Limits) -> Result<Self, ParseError> {
        let (state, pending) = match framing {
            Framing::None => (State::End, 0),
            Framing::Length(0) => (State::End, 0),
            Framing::Length(length) => (State::Length, length),
            Framing::Chunked => (FIRST_SIZE, 0),
            Framing::UntilClose => (State::UntilClose, limits.body_bytes),
        };
        if pending > limits.body_bytes {
            return Err(ParseError::BodyTooLong);
        }
        Ok(Self {
            state,
            pending,
            allowance: limits.body_bytes - pending,
            extension_bytes_left: limits.chunk_extension_bytes,
            trailer_bytes_left: limits.trailer_bytes,
        })
    }

    /// What `input`, the bytes not yet taken, begins with.
    ///
    /// # Errors
    /// When the chunked coding is broken, or a limit is passed. The decoder is of no use after that.
    pub fn next(&mut self, input: &[u8]) -> Result<Event, ParseError> {
        match self.state {
            State::End => Ok(Event::End),
            _ if input.is_empty() => Ok(Event::NeedMore),
            State::UntilClose if self.pending == 0 => Err(ParseError::BodyTooLong),
            State::Length | State::UntilClose | State::ChunkData => {
                Ok(Event::Data(usize::try_from(self.pending).unwrap_or(usize::MAX).min(input.len())))
            }
            _ => self.framing(input).map(Event::Framing),
        }
    }

    /// Body bytes that are certain to come next, before any framing: what may be received or discarded
    /// in one go without looking at it. For a body that lasts until close: as many as the limit allows.
    pub fn pending(&self) -> u64 {
        match self.state {
            State::Length | State::UntilClose | State::ChunkData => self.pending,
            _ => 0,
        }
    }

    /// Says that `taken` body bytes have been moved or discarded; no more than [`pending`](Self::pending) count.
    pub fn advance(&mut self, taken: u64) {
        self.pending = self.pending.saturating_sub(taken);
        if self.pending > 0 {
            return;
        }
        match self.state {
            State::Length => self.state = State::End,
            State::ChunkData => self.state = State::ChunkCr,
            _ => {}
        }
    }

    /// Whether the body is over.
    pub fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// Says that the other side has closed.
    ///
    /// # Errors
    /// [`ParseError::ClosedEarly`] unless the body was over, or lasts until close.
    pub fn close(&mut self) -> Result<(), ParseError> {
        match self.state {
            State::End | State::UntilClose => {
                self.state = State::End;
                Ok(())
            }
            _ => Err(ParseError::ClosedEarly),
        }
    }

    /// Reads framing bytes until body bytes or the end come, and counts them.
    fn framing(&mut self, input: &[u8]) -> Result<usize, ParseError> {
        for (index, &byte) in input.iter().enumerate() {
            self.state = self.step(byte)?;
            if matches!(self.state, State::ChunkData | State::End) {
                return Ok(index + 1);
            }
        }
        Ok(input.len())
    }

    /// RFC 9112 section 7.1, one byte at a time.
    fn step(&mut self, byte: u8) -> Result<State, ParseError> {
        match self.state {
            State::Size { value, digits } => self.size(value, digits, byte),
            State::SizeBlank { value } => self.blank(value, byte),
            State::Extension { value } => self.extension(value, byte),
            State::SizeLf { value } => self.size_end(value, byte),
            State::ChunkCr => expect(b'\r', byte, State::ChunkLf),
            State::ChunkLf => expect(b'\n', byte, FIRST_SIZE),
            State::FinalLf => expect(b'\n', byte, State::End),
            _ => self.trailer(byte),
        }
    }

    fn size(&mut self, value: u64, digits: u8, byte: u8) -> Result<State, ParseError> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            // 16 digits fill 64 bits; leading zeros beyond that have no honest use.
            if digits == 16 {
                return Err(ParseError::ChunkSize);
            }
            return Ok(State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 });
        }
        match byte {
            _ if digits == 0 => Err(ParseError::ChunkSize),
            b'\r' => Ok(State::SizeLf { value }),
            b';' | b' ' | b'\t' => self.blank(value, byte),
            _ => Err(ParseError::ChunkSize),
        }
    }

    fn blank(&mut self, value: u64, byte: u8) -> Result<State, ParseError> {
        self.spend_extension()?;
        match byte {
            b' ' | b'\t' => Ok(State::SizeBlank { value }),
            b';' => Ok(State::Extension { value }),
            _ => Err(ParseError::ChunkSize),
        }
    }

    fn extension(&mut self, value: u64, byte: u8) -> Result<State, ParseError> {
        match byte {
            b'\r' => Ok(State::SizeLf { value }),
            byte if is_value_byte(byte) => {
                self.spend_extension()?;
                Ok(State::Extension { value })
            }
            _ => Err(ParseError::Chunk),
        }
    }

    fn spend_extension(&mut self) -> Result<(), ParseError> {
        self.extension_bytes_left =
            self.extension_bytes_left.checked_sub(1).ok_or(ParseError::ChunkExtensionTooLong)?;
        Ok(())
    }

    fn size_end(&mut self, value: u64, byte: u8) -> Result<State, ParseError> {
        if byte != b'\n' {
            return Err(ParseError::Chunk);
        }
        if value == 0 {
            return Ok(State::TrailerStart);
        }
        self.allowance = self.allowance.checked_sub(value).ok_or(ParseError::BodyTooLong)?;
        self.pending = value;
        Ok(State::ChunkData)
    }

    fn trailer(&mut self, byte: u8) -> Result<State, ParseError> {
        if self.state == State::TrailerStart && byte == b'\r' {
            return Ok(State::FinalLf);
        }
        self.trailer_bytes_left = self.trailer_bytes_left.checked_sub(1).ok_or(ParseError::TrailerTooLong)?;
        match (self.state, byte) {
            (State::TrailerStart | State::TrailerName, byte) if is_token_byte(byte) => Ok(State::TrailerName),
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerValue, byte) if is_value_byte(byte) => Ok(State::TrailerValue),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            _ => Err(ParseError::Trailer),
        }
    }
}

fn expect(wanted: u8, byte: u8, then: State) -> Result<State, ParseError> {
    if byte == wanted { Ok(then) } else { Err(ParseError::Chunk) }
}
