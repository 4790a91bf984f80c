//! Decoding bodies of any framing without touching their bytes.
//!
//! The decoder says what the next bytes are; the caller moves them, or leaves them in the kernel.

use crate::{
    Framing, Limits, ParseError,
    syntax::{is_token_byte, is_value_byte},
};

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This many bytes are framing and have been processed: drop them and call again.
    Framing(usize),
    /// This many bytes belong to the body. Report to [`Decoder::advance`] how many of them were taken.
    Data(usize),
    /// More bytes are needed.
    NeedMore,
    /// The body has ended. What follows belongs to the next message.
    End,
}

/// Finds the end of one body.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// Body bytes before the next framing.
    pending: u64,
    /// Body bytes that may still follow before the body is too long.
    allowance: u64,
    extension_bytes_left: usize,
    trailer_bytes_left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length,
    UntilClose,
    /// In a chunk size: its value and number of digits so far.
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
    /// Makes a decoder for one body.
    ///
    /// # Errors
    /// [`ParseError::BodyTooLong`] if the announced length exceeds [`Limits::body_bytes`].
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

    /// Returns what `input`, the bytes not yet taken, starts with.
    ///
    /// # Errors
    /// The chunked coding is malformed or exceeds a limit. The decoder cannot be used after that.
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

    /// Number of body bytes that come next, before any framing, and so can be received or discarded in one go. For a body
    /// that lasts until close, as many as the limit allows.
    pub fn pending(&self) -> u64 {
        match self.state {
            State::Length | State::UntilClose | State::ChunkData => self.pending,
            _ => 0,
        }
    }

    /// Notes that `taken` body bytes have been moved or discarded, at most [`pending`](Self::pending).
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

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// Notes that the other side has closed the connection.
    ///
    /// # Errors
    /// [`ParseError::ClosedEarly`] unless the body had ended or lasts until close.
    pub fn close(&mut self) -> Result<(), ParseError> {
        match self.state {
            State::End | State::UntilClose => {
                self.state = State::End;
                Ok(())
            }
            _ => Err(ParseError::ClosedEarly),
        }
    }

    /// Processes framing bytes up to the next body bytes or the end. Returns their number.
    fn framing(&mut self, input: &[u8]) -> Result<usize, ParseError> {
        for (index, &byte) in input.iter().enumerate() {
            self.state = self.step(byte)?;
            if matches!(self.state, State::ChunkData | State::End) {
                return Ok(index + 1);
            }
        }
        Ok(input.len())
    }

    /// Processes one byte of the chunked coding (RFC 9112 section 7.1).
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
            // 16 digits fill 64 bits, and no honest sender writes more leading zeros.
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

fn expect(expected: u8, byte: u8, then: State) -> Result<State, ParseError> {
    if byte == expected { Ok(then) } else { Err(ParseError::Chunk) }
}
