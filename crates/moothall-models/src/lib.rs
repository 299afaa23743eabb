//! One gateway to every model: wires, retry, rate limits, budget, cost, record and replay.
//!
//! Every model call of every workflow goes through [`Gateway::call`], so each of those is solved
//! once. What a call says is decided in `moothall-core`; what a provider's bytes mean is decided by
//! the pure functions in [`wire`].

mod backend;
pub mod catalog;
pub mod connection;
mod demo;
mod gateway;
mod http;
mod judge;
mod lane;
mod lanes;
mod ledger;
mod recording;
mod schema_check;
mod scripted;
mod secret;
pub mod settings;
mod turnstile;
pub mod wire;

pub use crate::backend::{AnswerFuture, Answered, Backend, Bill, Call, FailedTry, Listener};
pub use crate::catalog::Catalog;
pub use crate::demo::{DEMO_MODEL, Demo};
pub use crate::gateway::{CallReport, Gateway, GatewayOptions, RecordingMode};
pub use crate::ledger::{Amount, Budget, Ledger, Reservation, Spent};
pub use crate::recording::Recordings;
pub use crate::schema_check::{SchemaCheck, UnusableSchema};
pub use crate::scripted::{Scripted, said};
pub use crate::secret::Secret;
pub use crate::turnstile::{EnterFuture, Pass, Turnstile};
