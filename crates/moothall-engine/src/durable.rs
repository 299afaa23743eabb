//! Runs the same workflows on a durable execution engine that spans several machines.
//!
//! The engine behind [`DurableEngine`] records *that* a step completed; the store holds its *results*.
//! This keeps the engine's journal small, and a result in the store is never requested again, even
//! if its step has to be repeated.
//!
//! ```text
//! machine ─ effects ─► batch ─ Durable::step ─► performed concurrently, each result stored as it arrives
//!    ▲                                                     │
//!    └────────────── results, from the store ◄─────────────┘
//! ```
//!
//! A replay runs this code from the start and must make the same steps in the same order. So code
//! outside a step may only branch on journaled results, which never change.

mod child;
mod control_poller;
mod effect_batch;
mod engine;
mod guest_lease;
mod run;

pub use self::child::drive_child;
pub use self::control_poller::ControlPoller;
pub use self::effect_batch::{PerformerFactory, RecentResults, RunContext};
pub use self::engine::{ChildCall, ChildExit, DurableEngine, StepRecord, StopCause, Work};
pub use self::run::{DurableRunExit, drive_run};
