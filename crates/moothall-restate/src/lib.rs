//! Runs on many machines: the workflows of `moothall-core` as services of Restate.
//!
//! ```text
//! moothall consult ─ Cluster ─► Restate ─ HTTP/2 ─► worker ─► moothall_engine::waves
//!                                                                  │ answers, events, budgets
//!                                                                  ▼
//!                                                                store
//! ```
//!
//! | service | key | what it is |
//! |---|---|---|
//! | `Consultation` | run | the workflow of a run; stands still on durable promises |
//! | `CodeRun` | run | the same for a run that writes a program, whose steps may last for hours |
//! | `Debate-BUILD` | run, move, pauses | one child, on whichever worker of its run's build is free |
//!
//! Only `sdk` knows Restate's SDK, and `cargo xtask tidy` keeps it so. Restate's journal holds that
//! steps were made and no words of models; those are in the store.

#![warn(missing_docs)]

mod build;
mod cluster;
mod sdk;
mod worker;

pub use crate::build::{Build, InvalidBuild};
pub use crate::cluster::{Admin, Cluster, ClusterError, Service};
pub use crate::worker::{OpenError, OpenFuture, Opened, Program, Worker};
