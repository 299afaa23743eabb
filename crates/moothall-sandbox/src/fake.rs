//! An engine for the tests of this crate whose agents do what a test tells them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use moothall_core::Sha256Hex;
use moothall_core::guest::{
    Channel, Frame, FrameReader, FromGuest, PROTOCOL, ToGuest, write_data, write_message,
};
use moothall_core::sandbox::{IsolationClass, Labels, LimitName, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::{Engine, EngineFuture, EngineName, SandboxError, Session, Spec, Vessel, VesselEnd};

/// The agent's side of a conversation.
pub(crate) struct FakeAgent {
    stream: DuplexStream,
    reader: FrameReader,
}

impl FakeAgent {
    /// A session and the agent at its other end.
    pub(crate) fn pair() -> (Session, Self) {
        let (host, guest) = tokio::io::duplex(1 << 20);
        let (from, to) = tokio::io::split(host);
        let session = Session::new(Box::new(from), Box::new(to));
        (session, Self { stream: guest, reader: FrameReader::default() })
    }

    pub(crate) async fn say(&mut self, message: &FromGuest) {
        let mut frame = Vec::new();
        write_message(&mut frame, message).unwrap();
        self.bytes(&frame).await;
    }

    pub(crate) async fn data(&mut self, channel: Channel, bytes: &[u8]) {
        let mut frames = Vec::new();
        write_data(&mut frames, channel, bytes);
        self.bytes(&frames).await;
    }

    /// Anything at all; the host may have hung up.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn ready(&mut self) {
        self.say(&FromGuest::Ready { protocol: PROTOCOL }).await;
    }

    /// The next frame of the host; `None` when it hung up.
    pub(crate) async fn hear(&mut self) -> Option<Frame<ToGuest>> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(frame) = self.reader.next().unwrap() {
                return Some(frame);
            }
            match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.reader.push(&buffer[..read]),
            }
        }
    }

    /// Hears frames until the host says this.
    pub(crate) async fn hear_until(&mut self, message: &ToGuest) {
        loop {
            match self.hear().await {
                Some(Frame::Message(heard)) if heard == *message => return,
                Some(_) => {}
                None => panic!("the host hung up before it said {message:?}"),
            }
        }
    }
}

type Behaviour =
    dyn Fn(FakeAgent) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static;

/// Starts vessels whose agents behave as told, and counts.
pub(crate) struct FakeEngine {
    behaviour: Box<Behaviour>,
    pub(crate) class: IsolationClass,
    pub(crate) footprint: u64,
    /// The next starts fail so often.
    pub(crate) failures: AtomicUsize,
    pub(crate) started: AtomicUsize,
    pub(crate) alive: Arc<AtomicUsize>,
    pub(crate) labels: Arc<Mutex<Vec<Labels>>>,
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

impl Engine for FakeEngine {
    fn name(&self) -> EngineName {
        EngineName::Microvm
    }

    fn version(&self) -> &str {
        "fake 1"
    }

    fn class(&self) -> IsolationClass {
        self.class
    }

    fn holds(&self) -> BTreeMap<LimitName, String> {
        BTreeMap::from([(LimitName::Wall, "host".to_owned())])
    }

    fn footprint_bytes(&self, _: &Spec) -> u64 {
        self.footprint
    }

    fn is_worth_pooling(&self) -> bool {
        true
    }

    fn start<'a>(&'a self, _: &'a Spec, _: &'a Labels) -> EngineFuture<'a, Vessel> {
        Box::pin(async move {
            let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
            let fails = self
                .failures
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if fails.is_ok() {
                let (engine, problem) = ("fake".to_owned(), "as told".to_owned());
                return Err(SandboxError::Start { engine, problem });
            }
            let (mut session, agent) = FakeAgent::pair();
            let task = tokio::spawn((self.behaviour)(agent));
            session.ready(std::time::Duration::from_secs(5)).await?;
            self.alive.fetch_add(1, Ordering::SeqCst);
            let end = FakeEnd {
                name: format!("fake-{number}"),
                task,
                alive: Arc::clone(&self.alive),
                labels: Arc::clone(&self.labels),
            };
            Ok(Vessel {
                session,
                end: Box::new(end),
                image_sha256: Sha256Hex::of(b"image"),
                guest_sha256: Sha256Hex::of(b"guest"),
            })
        })
    }
}

#[derive(Debug)]
struct FakeEnd {
    name: String,
    task: tokio::task::JoinHandle<()>,
    alive: Arc<AtomicUsize>,
    labels: Arc<Mutex<Vec<Labels>>>,
}

impl Drop for FakeEnd {
    fn drop(&mut self) {
        self.task.abort();
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl VesselEnd for FakeEnd {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&mut self, labels: &Labels) {
        self.labels.lock().unwrap().push(labels.clone());
    }

    fn was_out_of_memory(&mut self) -> bool {
        false
    }

    fn last_words(&mut self) -> String {
        String::new()
    }

    fn finish(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { drop(self) })
    }
}

pub(crate) fn spec() -> Spec {
    Spec { image: "python".to_owned(), limits: Limits::default() }
}
