//! Serves one client connection.
//!
//! Implements HTTP/1.1 directly on a TCP stream, because resets, half bodies and slow responses
//! need more control than HTTP frameworks give.

use std::{future::pending, io, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    call::ProviderCall,
    error_response::ErrorResponse,
    protocol::ProviderProtocol,
    provider_state::{ActiveCall, ProviderState},
    request::{BodyFraming, RequestHead, chunked::ChunkedDecoder, parse_head},
    response::{ConnectionEnd, ProviderResponse, ResponseDelivery, answer, refusal},
};

/// Buffer space reserved for a read. Enough for most test requests, and small enough for thousands
/// of idle connections.
const READ_SIZE: usize = 4 << 10;

/// More buffer space is reserved below this size, to avoid many small reads.
const MIN_READ: usize = 512;

/// How many bytes of a response are sent after its call is counted as ended. Most responses are
/// smaller and are sent in one write; the last part of a longer one fits into the socket buffer.
const FINAL_WRITE_BYTES: usize = 64 << 10;

/// How many bytes a client may send ahead while it waits for a response.
const MAX_READ_AHEAD: usize = 64 << 10;

/// Serves one client until it disconnects or a behaviour ends the connection.
pub(crate) async fn serve(stream: TcpStream, state: Arc<ProviderState>) {
    // Failure is harmless: without this option small responses are only sent later.
    let _ = stream.set_nodelay(true);
    let mut connection = ClientConnection { stream, buffer: BytesMut::new() };
    // An I/O error means that the client has disconnected, so the error cannot be reported.
    while let Ok(NextAction::Request) = connection.exchange(&state).await {}
}

#[derive(Debug, PartialEq, Eq)]
enum NextAction {
    Request,
    Close,
}

#[derive(Debug, PartialEq, Eq)]
enum ClientPresence {
    Present,
    Gone,
}

enum ReceiveOutcome {
    Request { head: RequestHead, head_bytes: Bytes, body: Bytes },
    Problem(ErrorResponse),
    Closed,
}

struct ClientConnection {
    stream: TcpStream,
    /// Bytes that are read but not parsed yet.
    buffer: BytesMut,
}

impl ClientConnection {
    /// Handles one request.
    async fn exchange(&mut self, state: &ProviderState) -> io::Result<NextAction> {
        let (head, head_bytes, body) = match self.receive().await? {
            ReceiveOutcome::Request { head, head_bytes, body } => (head, head_bytes, body),
            ReceiveOutcome::Closed => return Ok(NextAction::Close),
            ReceiveOutcome::Problem(problem) => {
                // The start of the next request is unknown, so the connection is closed.
                self.reject(state, ProviderProtocol::OpenAi, problem).await?;
                return Ok(NextAction::Close);
            }
        };
        let after = if head.keep_alive { NextAction::Request } else { NextAction::Close };
        let Some(wire) = head.wire else {
            self.reject(state, ProviderProtocol::OpenAi, ErrorResponse::NotFound).await?;
            return Ok(after);
        };
        let call = match ProviderCall::read(wire, head_bytes, body) {
            Ok(call) => call,
            Err(problem) => {
                self.reject(state, wire, problem).await?;
                return Ok(after);
            }
        };
        let (mut turn, choice) = state.open(call);
        let behaviour = choice.behaviour(&turn.call);
        if self.pause(behaviour.latency).await == ClientPresence::Gone {
            return Ok(NextAction::Close);
        }
        match answer(&turn.call, &behaviour) {
            ProviderResponse::Hang => {
                self.client_leaves().await;
                Ok(NextAction::Close)
            }
            ProviderResponse::Deliver(delivery) => {
                Ok(if self.deliver(delivery, &mut turn).await? == NextAction::Request {
                    after
                } else {
                    NextAction::Close
                })
            }
        }
    }

    async fn deliver(
        &mut self,
        delivery: ResponseDelivery,
        turn: &mut ActiveCall<'_>,
    ) -> io::Result<NextAction> {
        let ResponseDelivery { head, body, drip, ending, bill } = delivery;
        if let Some(bill) = bill {
            turn.bill(bill);
        }
        if let Some(drip) = drip {
            self.stream.write_all(head.as_bytes()).await?;
            let mut pieces = body.chunks(drip.chunk).peekable();
            while let Some(piece) = pieces.next() {
                if self.pause(drip.every).await == ClientPresence::Gone {
                    return Ok(NextAction::Close);
                }
                if pieces.peek().is_none() {
                    turn.end();
                }
                self.stream.write_all(piece).await?;
            }
        } else {
            let (early, late) = body.split_at(body.len().saturating_sub(FINAL_WRITE_BYTES));
            let mut first = Buf::chain(head.as_bytes(), early);
            if !early.is_empty() {
                self.stream.write_all_buf(&mut first).await?;
            }
            turn.end();
            self.stream.write_all_buf(&mut Buf::chain(first, late)).await?;
        }
        match ending {
            ConnectionEnd::KeepAlive => Ok(NextAction::Request),
            ConnectionEnd::Close => Ok(NextAction::Close),
            ConnectionEnd::Reset => {
                self.stream.set_zero_linger()?;
                Ok(NextAction::Close)
            }
        }
    }

    /// Responds to a request that is not a model call.
    async fn reject(
        &mut self,
        state: &ProviderState,
        wire: ProviderProtocol,
        problem: ErrorResponse,
    ) -> io::Result<()> {
        state.reject();
        let ResponseDelivery { head, body, .. } = refusal(wire, problem, "req_rejected", None);
        self.stream.write_all_buf(&mut Buf::chain(head.as_bytes(), &body[..])).await
    }

    async fn receive(&mut self) -> io::Result<ReceiveOutcome> {
        let head = loop {
            match parse_head(&self.buffer) {
                Ok(Some(head)) => break head,
                Ok(None) if self.fill().await? == ClientPresence::Gone => {
                    return Ok(ReceiveOutcome::Closed);
                }
                Ok(None) => {}
                Err(problem) => return Ok(ReceiveOutcome::Problem(problem)),
            }
        };
        let head_bytes = match head.framing {
            // Split off together with the body below, which avoids copying both.
            BodyFraming::Length(_) => Bytes::new(),
            BodyFraming::Chunked => self.buffer.split_to(head.length).freeze(),
        };
        if head.expects_continue {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        match head.framing {
            BodyFraming::Length(length) => {
                let total_length = head.length + length;
                self.buffer.reserve(total_length.saturating_sub(self.buffer.len()));
                while self.buffer.len() < total_length {
                    if self.fill().await? == ClientPresence::Gone {
                        return Ok(ReceiveOutcome::Closed);
                    }
                }
                let mut head_bytes = self.buffer.split_to(total_length).freeze();
                let body = head_bytes.split_off(head.length);
                Ok(ReceiveOutcome::Request { head, head_bytes, body })
            }
            BodyFraming::Chunked => {
                let mut decoder = ChunkedDecoder::default();
                loop {
                    match decoder.feed(&mut self.buffer) {
                        Ok(Some(body)) => {
                            return Ok(ReceiveOutcome::Request { head, head_bytes, body });
                        }
                        Ok(None) if self.fill().await? == ClientPresence::Gone => {
                            return Ok(ReceiveOutcome::Closed);
                        }
                        Ok(None) => {}
                        Err(problem) => return Ok(ReceiveOutcome::Problem(problem)),
                    }
                }
            }
        }
    }

    /// Reads the available bytes.
    async fn fill(&mut self) -> io::Result<ClientPresence> {
        if self.buffer.capacity() - self.buffer.len() < MIN_READ {
            self.buffer.reserve(READ_SIZE);
        }
        let read = self.stream.read_buf(&mut self.buffer).await?;
        Ok(if read == 0 { ClientPresence::Gone } else { ClientPresence::Present })
    }

    /// Waits, but returns early if the client disconnects.
    async fn pause(&mut self, duration: Duration) -> ClientPresence {
        if duration.is_zero() {
            return ClientPresence::Present;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(duration) => ClientPresence::Present,
            () = self.client_leaves() => ClientPresence::Gone,
        }
    }

    /// Returns when the client disconnects. Requests sent ahead are kept.
    async fn client_leaves(&mut self) {
        if self.buffer.is_empty() {
            // Frees the memory: thousands of connections may wait here.
            self.buffer = BytesMut::new();
        }
        loop {
            if self.buffer.len() > MAX_READ_AHEAD {
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
