//! Reads the first request header of a connection before the HTTP implementation takes over.
//!
//! The HTTP implementation allocates about 20 kB per connection on the first byte. Until a header
//! is complete, a connection here costs only the bytes it has sent plus about 1 kB.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longer headers are left to the HTTP implementation, which has its own limit.
const MAX_HEADER_BYTES: usize = 16 * 1024;

const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until an HTTP/1 request header or the HTTP/2 preface is complete, or the header is too
/// long. Returns `None` if the client closes the connection first.
pub(crate) async fn read_first_header<I>(io: &mut I) -> io::Result<Option<Bytes>>
where
    I: AsyncRead + Unpin,
{
    let mut header = Vec::new();
    loop {
        let seen = header.len();
        let read = poll_fn(|context| {
            // On the stack, so that waiting connections do not hold it.
            let mut chunk = [0; 4096];
            let mut buffer = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut *io).poll_read(context, &mut buffer))?;
            let mut bytes = buffer.filled();
            // HTTP ignores empty lines before a request, so they are not buffered.
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

/// Reports whether the header ends after the first `seen` bytes, or cannot be HTTP; a TLS client
/// then gets its error immediately.
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

/// A stream with a prefix of bytes that have already been read.
#[derive(Debug)]
pub(crate) struct PrefixedStream<I> {
    prefix: Bytes,
    inner: I,
}

impl<I> PrefixedStream<I> {
    pub(crate) fn new(prefix: Bytes, inner: I) -> Self {
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
            // Free the buffer early; the connection may stay open for long.
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
