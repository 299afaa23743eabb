//! One client's connection, from its first byte to its last.
//!
//! HTTP/1.1 by hand on a TCP stream, because resets, half bodies and slow drips need control below
//! any HTTP framework.

use std::{future::pending, io, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    answer::{Answer, Delivery, Ending, answer, refusal},
    call::Call,
    desk::{Desk, Turn},
    problem::Problem,
    request::{Framing, Head, chunked::Decoder, parse_head},
    wire::Wire,
};

/// Room made for a read. Most requests of a test fit, and thousands of idle connections stay cheap.
const READ_SIZE: usize = 4 << 10;

/// Room below which more is made, lest a request arrive in crumbs.
const SMALLEST_READ: usize = 512;

/// How much of an answer goes out after its call is counted as ended. Small answers, which are
/// most, leave in one write; of a long one the rest fits into the socket's buffer.
const LAST_WRITE: usize = 64 << 10;

/// How much a client may send ahead while it waits for an answer.
const MOST_READ_AHEAD: usize = 64 << 10;

/// Serves one client until it leaves or a behaviour ends the connection.
pub(crate) async fn serve(stream: TcpStream, desk: Arc<Desk>) {
    // Without this option small answers only leave later, so its failure does not matter.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection { stream, buffer: BytesMut::new() };
    // An I/O error means that the client is gone, and there is nobody left to tell.
    while let Ok(Next::Request) = connection.exchange(&desk).await {}
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Request,
    Close,
}

#[derive(Debug, PartialEq, Eq)]
enum Client {
    Present,
    Gone,
}

enum Received {
    Request { head: Head, head_bytes: Bytes, body: Bytes },
    Problem(Problem),
    Closed,
}

struct Connection {
    stream: TcpStream,
    /// What was read and not yet understood.
    buffer: BytesMut,
}

impl Connection {
    /// One request and its answer.
    async fn exchange(&mut self, desk: &Desk) -> io::Result<Next> {
        let (head, head_bytes, body) = match self.receive().await? {
            Received::Request { head, head_bytes, body } => (head, head_bytes, body),
            Received::Closed => return Ok(Next::Close),
            Received::Problem(problem) => {
                // Where the next request would begin is unknown, so there is none.
                self.reject(desk, Wire::OpenAi, problem).await?;
                return Ok(Next::Close);
            }
        };
        let after = if head.keep_alive { Next::Request } else { Next::Close };
        let Some(wire) = head.wire else {
            self.reject(desk, Wire::OpenAi, Problem::NotFound).await?;
            return Ok(after);
        };
        let call = match Call::read(wire, head_bytes, body) {
            Ok(call) => call,
            Err(problem) => {
                self.reject(desk, wire, problem).await?;
                return Ok(after);
            }
        };
        let (mut turn, choice) = desk.open(call);
        let behaviour = choice.behaviour(&turn.call);
        if self.pause(behaviour.latency).await == Client::Gone {
            return Ok(Next::Close);
        }
        match answer(&turn.call, &behaviour) {
            Answer::Hang => {
                self.client_leaves().await;
                Ok(Next::Close)
            }
            Answer::Deliver(delivery) => {
                Ok(if self.deliver(delivery, &mut turn).await? == Next::Request {
                    after
                } else {
                    Next::Close
                })
            }
        }
    }

    async fn deliver(&mut self, delivery: Delivery, turn: &mut Turn<'_>) -> io::Result<Next> {
        let Delivery { head, body, drip, ending, bill } = delivery;
        if let Some(bill) = bill {
            turn.bill(bill);
        }
        if let Some(drip) = drip {
            self.stream.write_all(head.as_bytes()).await?;
            let mut pieces = body.chunks(drip.chunk).peekable();
            while let Some(piece) = pieces.next() {
                if self.pause(drip.every).await == Client::Gone {
                    return Ok(Next::Close);
                }
                if pieces.peek().is_none() {
                    turn.end();
                }
                self.stream.write_all(piece).await?;
            }
        } else {
            let (early, late) = body.split_at(body.len().saturating_sub(LAST_WRITE));
            let mut first = Buf::chain(head.as_bytes(), early);
            if !early.is_empty() {
                self.stream.write_all_buf(&mut first).await?;
            }
            turn.end();
            self.stream.write_all_buf(&mut Buf::chain(first, late)).await?;
        }
        match ending {
            Ending::KeepAlive => Ok(Next::Request),
            Ending::Close => Ok(Next::Close),
            Ending::Reset => {
                self.stream.set_zero_linger()?;
                Ok(Next::Close)
            }
        }
    }

    /// Answers a request that is no call.
    async fn reject(&mut self, desk: &Desk, wire: Wire, problem: Problem) -> io::Result<()> {
        desk.reject();
        let Delivery { head, body, .. } = refusal(wire, problem, "req_rejected", None);
        self.stream.write_all_buf(&mut Buf::chain(head.as_bytes(), &body[..])).await
    }

    async fn receive(&mut self) -> io::Result<Received> {
        let head = loop {
            match parse_head(&self.buffer) {
                Ok(Some(head)) => break head,
                Ok(None) if self.fill().await? == Client::Gone => return Ok(Received::Closed),
                Ok(None) => {}
                Err(problem) => return Ok(Received::Problem(problem)),
            }
        };
        let head_bytes = match head.framing {
            // Taken together with the body below, which saves a copy of both.
            Framing::Length(_) => Bytes::new(),
            Framing::Chunked => self.buffer.split_to(head.length).freeze(),
        };
        if head.expects_continue {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        match head.framing {
            Framing::Length(length) => {
                let whole = head.length + length;
                self.buffer.reserve(whole.saturating_sub(self.buffer.len()));
                while self.buffer.len() < whole {
                    if self.fill().await? == Client::Gone {
                        return Ok(Received::Closed);
                    }
                }
                let mut head_bytes = self.buffer.split_to(whole).freeze();
                let body = head_bytes.split_off(head.length);
                Ok(Received::Request { head, head_bytes, body })
            }
            Framing::Chunked => {
                let mut decoder = Decoder::default();
                loop {
                    match decoder.feed(&mut self.buffer) {
                        Ok(Some(body)) => return Ok(Received::Request { head, head_bytes, body }),
                        Ok(None) if self.fill().await? == Client::Gone => {
                            return Ok(Received::Closed);
                        }
                        Ok(None) => {}
                        Err(problem) => return Ok(Received::Problem(problem)),
                    }
                }
            }
        }
    }

    /// Reads what there is.
    async fn fill(&mut self) -> io::Result<Client> {
        if self.buffer.capacity() - self.buffer.len() < SMALLEST_READ {
            self.buffer.reserve(READ_SIZE);
        }
        let read = self.stream.read_buf(&mut self.buffer).await?;
        Ok(if read == 0 { Client::Gone } else { Client::Present })
    }

    /// Waits, but not for a client that has left.
    async fn pause(&mut self, duration: Duration) -> Client {
        if duration.is_zero() {
            return Client::Present;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(duration) => Client::Present,
            () = self.client_leaves() => Client::Gone,
        }
    }

    /// Ends when the client closes its side. Requests sent ahead are kept.
    async fn client_leaves(&mut self) {
        if self.buffer.is_empty() {
            // Gives the memory back: this is where thousands of connections wait.
            self.buffer = BytesMut::new();
        }
        loop {
            if self.buffer.len() > MOST_READ_AHEAD {
                pending::<()>().await;
            }
            if self.stream.readable().await.is_err() {
                return;
            }
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}
