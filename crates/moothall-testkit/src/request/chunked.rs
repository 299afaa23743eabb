//! Bodies in the chunked transfer encoding, decoded as they arrive.

use bytes::{Buf, Bytes, BytesMut};

use super::{LARGEST_BODY, LARGEST_HEAD};
use crate::problem::Problem;

/// Takes a chunked body apart.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    decoded: BytesMut,
    expects: Expects,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expects {
    #[default]
    Size,
    Data(usize),
    LineEnd,
    Trailer,
}

impl Decoder {
    /// Consumes what it can of `buffer`. Gives the body once it is whole, and `None` while more
    /// must be read.
    pub(crate) fn feed(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, Problem> {
        loop {
            match self.expects {
                Expects::Size => match httparse::parse_chunk_size(buffer) {
                    Ok(httparse::Status::Complete((start, size))) => {
                        let size = usize::try_from(size).map_err(|_| Problem::TooLarge)?;
                        if size > LARGEST_BODY - self.decoded.len() {
                            return Err(Problem::TooLarge);
                        }
                        buffer.advance(start);
                        self.expects =
                            if size == 0 { Expects::Trailer } else { Expects::Data(size) };
                    }
                    Ok(httparse::Status::Partial) => return waiting(buffer),
                    Err(_) => return Err(Problem::BrokenHttp),
                },
                Expects::Data(left) => {
                    let piece = buffer.split_to(left.min(buffer.len()));
                    self.decoded.extend_from_slice(&piece);
                    if piece.len() < left {
                        self.expects = Expects::Data(left - piece.len());
                        return Ok(None);
                    }
                    self.expects = Expects::LineEnd;
                }
                Expects::LineEnd => {
                    if buffer.len() < 2 {
                        return Ok(None);
                    }
                    if !buffer.starts_with(b"\r\n") {
                        return Err(Problem::BrokenHttp);
                    }
                    buffer.advance(2);
                    self.expects = Expects::Size;
                }
                Expects::Trailer => {
                    let Some(line) = buffer.windows(2).position(|pair| pair == b"\r\n") else {
                        return waiting(buffer);
                    };
                    buffer.advance(line + 2);
                    if line == 0 {
                        return Ok(Some(self.decoded.split().freeze()));
                    }
                }
            }
        }
    }
}

/// More bytes are needed, which is fine unless there are already too many for what should be one
/// line.
fn waiting(buffer: &BytesMut) -> Result<Option<Bytes>, Problem> {
    if buffer.len() < LARGEST_HEAD { Ok(None) } else { Err(Problem::BrokenHttp) }
}
