//! The HTTP API (start, follow, read and control runs; review drafts) and the web UI.
//!
//! ```text
//! browser ─► connections.rs   limits on connections, header timeout
//!            guard.rs         Host, Origin, security headers
//!              └─ access/, caller.rs   authentication and permissions
//!                   ├─ runs.rs, control.rs, company.rs   through run_service.rs: the program that executes runs
//!                   ├─ documents.rs, calls.rs            conversations, documents, exports; model calls
//!                   ├─ drafts.rs                         drafts for review, from their journal
//!                   └─ event_stream.rs, event_pages.rs   events, from feed.rs
//! ```
//!
//! The server executes no runs itself. Reads come from the store; runs are started through a
//! [`RunService`], as the command line does. Events are on disk before any client receives them, and slow
//! clients read them from there.

#![warn(missing_docs)]

mod access;
mod app;
mod assets;
mod caller;
mod calls;
mod company;
mod connections;
mod consultation_cache;
mod control;
mod documents;
mod drafts;
pub mod dto;
mod event_pages;
mod event_stream;
mod extract;
mod feed;
mod guard;
mod openapi;
mod plain_page;
mod problem;
mod review_links;
mod router;
mod run_list;
mod run_service;
mod runs;
mod team_limiter;
mod telemetry;
mod times;

pub use crate::access::{AccessControl, AccessError, AccessMode, login_code, login_link};
pub use crate::app::{AppState, EventStreamOptions};
pub use crate::caller::CallerIdentity;
pub use crate::caller::RoutePermission;
pub use crate::connections::{ClientAddress, ConnectionLimits, serve_connections};
pub use crate::drafts::{ServedWorkspace, WorkspaceRegistry};
pub use crate::feed::{EventFeed, FeedTiming};
pub use crate::guard::OriginGuard;
pub use crate::problem::ApiProblem;
pub use crate::review_links::{ReviewLink, ReviewLinkError, ReviewLinkStore, ReviewToken};
pub use crate::router::{ApiRoute, ServerLimits, router, routes, serve};
pub use crate::run_service::{
    RunService, RunServiceFuture, StartIdempotencyKey, StartOutcome, StartRequest, StartTerms,
};
pub use crate::telemetry::{
    OtlpProtocol, OtlpSettings, ServerMetrics, SpanExporter, SpanLayer, TraceParent,
    current_trace_parent, exporter,
};
pub use axum::http::StatusCode;

#[cfg(test)]
#[path = "generated_tests.rs"]
mod generated_tests;
