//! Runs the workflows of `moothall-core` on several machines, as Restate services.
//!
//! ```text
//! moothall consult ─ Cluster ─► Restate ─ HTTP/2 ─► worker ─► moothall_engine
//!                                                                  │ results, events, budgets
//!                                                                  ▼
//!                                                                store
//! ```
//!
//! | service | key | purpose |
//! |---|---|---|
//! | `Consultation` | run | the workflow of a run; pauses on durable promises |
//! | `CodeRun` | run | the same for a run that writes a program, whose steps may take hours |
//! | `Debate-BUILD` | run, move, pauses | one child, on any free worker of its run's build |
//!
//! Only the module `sdk` uses Restate's SDK; `cargo xtask tidy` enforces this. Restate's journal
//! records only that steps completed. Model output is in the store.

#![warn(missing_docs)]

mod build;
mod cluster;
mod sdk;
mod worker;

pub use crate::build::{InvalidBuild, WorkerBuild};
pub use crate::cluster::{ClusterError, RestateAdmin, RestateIngress, RestateService};
pub use crate::worker::{OpenError, OpenFuture, OpenedRun, RestateWorker, WorkerHost};
