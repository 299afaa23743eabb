//! Decodes bodies in chunked transfer encoding as they arrive.

use bytes::{Buf, Bytes, BytesMut};

use super::{MAX_BODY_BYTES, MAX_HEAD_BYTES};
use crate::error_response::ErrorResponse;

#[derive(Debug, Default)]
pub(crate) struct ChunkedDecoder {
    decoded: BytesMut,
    expects: ChunkedState,
}

#[derive(Debug, Default, Clone, Copy)]
enum ChunkedState {
    #[default]
    Size,
    Data(usize),
    LineEnd,
    Trailer,
}

impl ChunkedDecoder {
    /// Consumes as much of `buffer` as possible. Returns the body when it is complete, and `None`
    /// if more bytes are needed.
    pub(crate) fn feed(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, ErrorResponse> {
        loop {
            match self.expects {
                ChunkedState::Size => match httparse::parse_chunk_size(buffer) {
                    Ok(httparse::Status::Complete((start, size))) => {
                        let size = usize::try_from(size).map_err(|_| ErrorResponse::TooLarge)?;
                        if size > MAX_BODY_BYTES - self.decoded.len() {
                            return Err(ErrorResponse::TooLarge);
                        }
                        buffer.advance(start);
                        self.expects = if size == 0 {
                            ChunkedState::Trailer
                        } else {
                            ChunkedState::Data(size)
                        };
                    }
                    Ok(httparse::Status::Partial) => return waiting(buffer),
                    Err(_) => return Err(ErrorResponse::BrokenHttp),
                },
                ChunkedState::Data(left) => {
                    let piece = buffer.split_to(left.min(buffer.len()));
                    self.decoded.extend_from_slice(&piece);
                    if piece.len() < left {
                        self.expects = ChunkedState::Data(left - piece.len());
                        return Ok(None);
                    }
                    self.expects = ChunkedState::LineEnd;
                }
                ChunkedState::LineEnd => {
                    if buffer.len() < 2 {
                        return Ok(None);
                    }
                    if !buffer.starts_with(b"\r\n") {
                        return Err(ErrorResponse::BrokenHttp);
                    }
                    buffer.advance(2);
                    self.expects = ChunkedState::Size;
                }
                ChunkedState::Trailer => {
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
fn waiting(buffer: &BytesMut) -> Result<Option<Bytes>, ErrorResponse> {
    if buffer.len() < MAX_HEAD_BYTES { Ok(None) } else { Err(ErrorResponse::BrokenHttp) }
}
