//! The first request header of a connection, read before anything else is made for it.
//!
//! The HTTP implementation takes about 20 kB for a connection as soon as it has sent a byte. Until a
//! connection has sent a whole header, it costs what it has sent and about 1 kB.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A longer header is left to the HTTP implementation, which has its own limit.
const MAX_HEADER_BYTES: usize = 16 * 1024;

const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until a request header of HTTP/1 or the preface of HTTP/2 is complete, or too long. `None`
/// if the client closes the connection before that.
pub(super) async fn read_first_header<I>(io: &mut I) -> io::Result<Option<Bytes>>
where
    I: AsyncRead + Unpin,
{
    let mut header = Vec::new();
    loop {
        let seen = header.len();
        let read = poll_fn(|context| {
            // On the stack, so that a waiting connection does not hold it.
            let mut chunk = [0; 4096];
            let mut buffer = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut *io).poll_read(context, &mut buffer))?;
            let mut bytes = buffer.filled();
            // Empty lines before a request are ignored, so they are not kept either.
            if header.is_empty() {
                bytes = trim_newlines(bytes);
            }
            header.extend_from_slice(bytes);
            Poll::Ready(Ok::<_, io::Error>(buffer.filled().len()))
        })
        .await?;
        if read == 0 {
            return Ok(None);
        }
        if is_complete(&header, seen) || header.len() >= MAX_HEADER_BYTES {
            return Ok(Some(Bytes::from(header)));
        }
    }
}

/// Whether a header ends behind the bytes that were looked at before, or cannot be one: a client that
/// speaks TLS here gets its error at once.
fn is_complete(header: &[u8], seen: usize) -> bool {
    if header.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
        return true;
    }
    if HTTP2_PREFACE.starts_with(&header[..header.len().min(HTTP2_PREFACE.len())]) {
        return header.len() >= HTTP2_PREFACE.len();
    }
    let fresh = &header[seen.saturating_sub(2)..];
    fresh.windows(2).any(|end| end == b"\n\n") || fresh.windows(3).any(|end| end == b"\n\r\n")
}

fn trim_newlines(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    &bytes[start.unwrap_or(bytes.len())..]
}

/// A stream whose first bytes were read already.
#[derive(Debug)]
pub(super) struct PrefixedStream<I> {
    prefix: Bytes,
    inner: I,
}

impl<I> PrefixedStream<I> {
    pub(super) fn new(prefix: Bytes, inner: I) -> Self {
        Self { prefix, inner }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for PrefixedStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let length = self.prefix.len().min(buffer.remaining());
        buffer.put_slice(&self.prefix[..length]);
        self.prefix.advance(length);
        if self.prefix.is_empty() {
            // The rest of the connection does not need the memory.
            self.prefix = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for PrefixedStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
#[path = "first_header_tests.rs"]
mod tests;
