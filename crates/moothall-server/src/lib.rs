//! The HTTP API: runs started, followed event by event, read and controlled; and the web UI.
//!
//! ```text
//! browser ─► connections.rs   limits on connections, header timeout
//!            guard.rs   Host, Origin, headers of every answer
//!              └─ access/, caller.rs   who calls, and what they may do
//!                   ├─ runs.rs, control.rs, company.rs   asks the Desk (desk.rs): the program behind this
//!                   ├─ reading.rs                        snapshots, conversations, documents, exports
//!                   ├─ drafts/                           what waits for a person, from its journal
//!                   └─ stream.rs, pages.rs               events, from the Feed (feed.rs)
//! ```
//!
//! The server decides nothing and drives nothing. What is read comes from the store; what is started
//! goes through a [`Desk`], which is how the program's own commands start it, too. Events are on the
//! disk before anybody hears of them, and whoever reads slowly reads from there.

#![warn(missing_docs)]

mod access;
mod app;
mod asked;
mod assets;
mod caller;
mod company;
mod connections;
mod control;
mod desk;
mod drafts;
mod feed;
mod guard;
mod openapi;
mod pages;
mod plain_page;
mod problem;
mod reading;
mod router;
mod runs;
mod shelf;
mod stream;
mod team_limiter;
mod telemetry;
mod times;
pub mod wire;

pub use crate::access::{Access, AccessError, Admits, login_code, login_link};
pub use crate::app::{App, Options};
pub use crate::caller::Needs;
pub use crate::caller::Who;
pub use crate::connections::{ClientAddress, ConnectionLimits, serve_connections};
pub use crate::desk::{Begun, Desk, DeskFuture, Once, Order};
pub use crate::drafts::{Workspace, Workspaces};
pub use crate::feed::{Feed, Timing};
pub use crate::guard::Guard;
pub use crate::problem::Problem;
pub use crate::router::{Limits, Route, router, routes, serve};
pub use crate::telemetry::{Exporter, Metrics, Spans, exporter};
pub use axum::http::StatusCode;

#[cfg(test)]
#[path = "generated_tests.rs"]
mod generated_tests;
