//! A fake engine for this crate's tests. Each test supplies the behaviour of its agents.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use moothall_core::Sha256Hex;
use moothall_core::guest::{
    FrameReader, GuestFrame, GuestMessage, GuestStream, HostMessage, PROTOCOL, write_data,
    write_message,
};
use moothall_core::sandbox::{IsolationClass, LimitName, SandboxLabels, SandboxLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::{
    AgentSession, EngineFuture, EngineName, SandboxEngine, SandboxError, SandboxHandle,
    SandboxSpec, StartedSandbox,
};

/// The agent's end of a session.
pub(crate) struct FakeAgent {
    stream: DuplexStream,
    reader: FrameReader,
    /// Whether it answers requests for new randomness by itself, as the real agent does.
    answers_reseed: bool,
}

impl FakeAgent {
    /// Creates a session and the fake agent at its other end.
    pub(crate) fn pair() -> (AgentSession, Self) {
        let (host, guest) = tokio::io::duplex(1 << 20);
        let (from, to) = tokio::io::split(host);
        let session = AgentSession::new(Box::new(from), Box::new(to));
        let reader = FrameReader::default();
        (session, Self { stream: guest, reader, answers_reseed: false })
    }

    pub(crate) async fn send(&mut self, message: &GuestMessage) {
        let mut frame = Vec::new();
        write_message(&mut frame, message).unwrap();
        self.bytes(&frame).await;
    }

    pub(crate) async fn data(&mut self, channel: GuestStream, bytes: &[u8]) {
        let mut frames = Vec::new();
        write_data(&mut frames, channel, bytes);
        self.bytes(&frames).await;
    }

    /// Sends raw bytes. Write errors are ignored because the host may have closed the connection.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn ready(&mut self) {
        self.send(&GuestMessage::Ready { protocol: PROTOCOL }).await;
    }

    /// The next frame from the host; `None` after it closed the connection.
    pub(crate) async fn receive(&mut self) -> Option<GuestFrame<HostMessage>> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.reader.next().unwrap() {
                Some(GuestFrame::Message(HostMessage::Reseed { .. })) if self.answers_reseed => {
                    self.send(&GuestMessage::Done).await;
                    continue;
                }
                Some(frame) => return Some(frame),
                None => {}
            }
            match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.reader.push(&buffer[..read]),
            }
        }
    }

    /// Reads frames until the host sends `message`.
    pub(crate) async fn receive_until(&mut self, message: &HostMessage) {
        loop {
            match self.receive().await {
                Some(GuestFrame::Message(heard)) if heard == *message => return,
                Some(_) => {}
                None => panic!("the host closed the connection before it sent {message:?}"),
            }
        }
    }
}

type Behaviour =
    dyn Fn(FakeAgent) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static;

/// Starts sandboxes whose agents run the given behaviour, and counts them.
pub(crate) struct FakeEngine {
    behaviour: Box<Behaviour>,
    pub(crate) class: IsolationClass,
    pub(crate) footprint: u64,
    /// How many of the next starts fail.
    pub(crate) failures: AtomicUsize,
    pub(crate) started: AtomicUsize,
    pub(crate) alive: Arc<AtomicUsize>,
    pub(crate) labels: Arc<Mutex<Vec<SandboxLabels>>>,
}

impl std::fmt::Debug for FakeEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeEngine").finish_non_exhaustive()
    }
}

impl FakeEngine {
    pub(crate) fn new<F: Future<Output = ()> + Send + 'static>(
        behaviour: impl Fn(FakeAgent) -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            behaviour: Box::new(move |agent| Box::pin(behaviour(agent))),
            class: IsolationClass::EmulatedVm,
            footprint: 100 << 20,
            failures: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            alive: Arc::default(),
            labels: Arc::default(),
        }
    }
}

impl SandboxEngine for FakeEngine {
    fn name(&self) -> EngineName {
        EngineName::Microvm
    }

    fn version(&self) -> &str {
        "fake 1"
    }

    fn class(&self) -> IsolationClass {
        self.class
    }

    fn enforced_limits(&self) -> BTreeMap<LimitName, String> {
        BTreeMap::from([(LimitName::Wall, "host".to_owned())])
    }

    fn footprint_bytes(&self, _: &SandboxSpec) -> u64 {
        self.footprint
    }

    fn is_worth_pooling(&self) -> bool {
        true
    }

    fn start<'a>(
        &'a self,
        _: &'a SandboxSpec,
        _: &'a SandboxLabels,
    ) -> EngineFuture<'a, StartedSandbox> {
        Box::pin(async move {
            let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
            let fails = self
                .failures
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if fails.is_ok() {
                let (engine, problem) = ("fake".to_owned(), "requested by the test".to_owned());
                return Err(SandboxError::Start { engine, problem });
            }
            let (mut session, mut agent) = FakeAgent::pair();
            agent.answers_reseed = true;
            let task = tokio::spawn((self.behaviour)(agent));
            session.ready(std::time::Duration::from_secs(5)).await?;
            self.alive.fetch_add(1, Ordering::SeqCst);
            let end = FakeHandle {
                name: format!("fake-{number}"),
                task,
                alive: Arc::clone(&self.alive),
                labels: Arc::clone(&self.labels),
            };
            Ok(StartedSandbox {
                session,
                end: Box::new(end),
                image_sha256: Sha256Hex::of(b"image"),
                guest_sha256: Sha256Hex::of(b"guest"),
            })
        })
    }
}

#[derive(Debug)]
struct FakeHandle {
    name: String,
    task: tokio::task::JoinHandle<()>,
    alive: Arc<AtomicUsize>,
    labels: Arc<Mutex<Vec<SandboxLabels>>>,
}

impl Drop for FakeHandle {
    fn drop(&mut self) {
        self.task.abort();
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SandboxHandle for FakeHandle {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&mut self, labels: &SandboxLabels) {
        self.labels.lock().unwrap().push(labels.clone());
    }

    fn was_out_of_memory(&mut self) -> bool {
        false
    }

    fn stderr_tail(&mut self) -> String {
        String::new()
    }

    fn finish(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { drop(self) })
    }
}

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() }
}

/// The behaviour of an agent that does nothing.
pub(crate) async fn idle(mut agent: FakeAgent) {
    agent.ready().await;
    while agent.receive().await.is_some() {}
}

pub(crate) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}
