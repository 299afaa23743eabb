//! Rooms: places apart from this process in which the machine of a child runs.
//!
//! A room holds a machine and nothing else: the journal, the budget and every key stay here, and
//! what the machine in the room asks for is performed here. So a room can be given back at any time,
//! and the machine is replayed into another one.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moothall_core::guest::{GuestWorkflow, SaidStep};
use moothall_core::sandbox::{Attestation, GuestPath, SandboxFailure};
use moothall_core::{EffectId, EffectResult, RunId};
use tokio::sync::watch;

/// How long a room may stand idle while others wait for one, where nothing else is said.
const USUAL_IDLE: Duration = Duration::from_secs(20);

/// The future of one request to a room. Boxed because rooms are chosen at run time.
pub type RoomFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SandboxFailure>> + Send + 'a>>;

/// Gives rooms.
///
/// What implementors promise:
/// - A room is new: nobody was in it before.
/// - Who asks when there is no room left waits; a failure means that waiting does not help, after
///   all retries.
/// - Dropping the future leaves nothing behind.
pub trait Rooms: Debug + Send + Sync {
    /// A room for the child that this effect of the run started.
    fn enter<'a>(&'a self, run_id: &'a RunId, id: &'a EffectId) -> RoomFuture<'a, Box<dyn Room>>;
}

/// A room with a machine in it. What it says is the machine's word and not trusted.
///
/// What implementors promise: every wait is bounded; after a failure the room is spent; dropping it
/// ends it.
pub trait Room: Debug + Send {
    /// Starts the machine; its first step.
    fn start(&mut self, workflow: GuestWorkflow) -> RoomFuture<'_, SaidStep>;

    /// Tells the machine a result; its next step.
    fn tell(&mut self, id: EffectId, result: EffectResult) -> RoomFuture<'_, SaidStep>;

    /// A file that the machine left, of at most so many bytes.
    fn read<'a>(&'a mut self, path: &'a GuestPath, most_bytes: u64) -> RoomFuture<'a, Vec<u8>>;

    /// What is known about the walls.
    fn attestation(&self) -> &Attestation;

    /// Nobody needs it any more. What there is to clean up goes on by itself.
    fn leave(self: Box<Self>);
}

/// Where the children of a run live.
#[derive(Debug, Clone)]
pub enum Walls {
    /// In this process, as was asked for.
    None,
    /// Each in a room of its own.
    Rooms {
        /// Where rooms are got.
        lobby: Arc<Lobby>,
        /// What happens to a child that cannot have one, or whose rooms fail.
        on_failure: OnFailure,
    },
}

/// What happens to a child whose room fails or cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It goes on in this process, and its end says so and why.
    Fallback,
    /// It ends without a result.
    Fail,
}

/// Where rooms are got, and where one sees whether others wait for one. Runs may share it.
#[derive(Debug)]
pub struct Lobby {
    rooms: Box<dyn Rooms>,
    idle: Duration,
    /// How many wait for a room.
    waiting: watch::Sender<usize>,
    /// Whether somebody was told that there is no room. Fifteen debates need not say it fifteen
    /// times.
    warned: AtomicBool,
}

impl Lobby {
    /// Gives these rooms.
    pub fn new(rooms: impl Rooms + 'static) -> Self {
        let (waiting, warned) = (watch::Sender::new(0), AtomicBool::new(false));
        Self { rooms: Box::new(rooms), idle: USUAL_IDLE, waiting, warned }
    }

    /// There are no rooms here, for this reason: who asks for one hears it at once.
    pub fn closed(why: SandboxFailure) -> Self {
        Self::new(Closed(why))
    }

    /// How long a room may stand idle while others wait for one.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    pub(crate) async fn enter(
        &self,
        run_id: &RunId,
        id: &EffectId,
    ) -> Result<Box<dyn Room>, SandboxFailure> {
        let _one_more = Waiter::new(&self.waiting);
        let room = self.rooms.enter(run_id, id).await;
        if let Err(SandboxFailure { detail, .. }) = &room
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(child = id.as_str(), detail, "there is no sandbox for a debate");
        }
        room
    }

    /// Returns when a room that stands idle from now on should be given back.
    pub(crate) async fn wants_back(&self) {
        tokio::time::sleep(self.idle).await;
        let mut waiting = self.waiting.subscribe();
        // The sender lives as long as we do, so this cannot fail.
        let _ = waiting.wait_for(|waiting| *waiting > 0).await;
    }
}

/// Somebody who waits for a room, counted as long as it lives.
struct Waiter<'a>(&'a watch::Sender<usize>);

impl<'a> Waiter<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Self(waiting)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

/// No rooms at all.
#[derive(Debug)]
struct Closed(SandboxFailure);

impl Rooms for Closed {
    fn enter<'a>(&'a self, _: &'a RunId, _: &'a EffectId) -> RoomFuture<'a, Box<dyn Room>> {
        Box::pin(async { Err(self.0.clone()) })
    }
}
