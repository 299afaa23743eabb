//! The gateway to all models: API formats, retries, rate limits, budget, cost, recording and
//! replay.
//!
//! Every model call of every workflow goes through [`Gateway::call`]. `moothall-core` decides what
//! a call contains; the pure functions in [`wire`] convert it to and from a provider's API format.

mod api_key;
mod backend;
pub mod catalog;
pub mod connection;
mod demo;
mod fair_slots;
mod gateway;
mod http;
mod http_client;
mod key_supply;
mod key_test;
mod ledger;
mod model_availability;
mod model_limiter;
mod model_limiters;
mod provider_connections;
mod recording;
mod repetition;
mod reply_check;
mod request_target;
mod schema_check;
mod scripted_backend;
mod scripted_judge;
pub mod settings;
mod shared_limiter;
mod sigv4;
pub mod wire;

pub use crate::api_key::ApiKey;
pub use crate::backend::{
    AnswerFuture, BackendReply, BillingRisk, FailedAttempt, ModelAttempt, ModelBackend,
    ReplyListener,
};
pub use crate::catalog::Catalog;
pub use crate::demo::{DEMO_MODEL, DemoBackend};
pub use crate::gateway::{CallReport, Gateway, GatewayOptions, RecordingMode};
pub use crate::http_client::build_http_client;
pub use crate::key_supply::{KeyFuture, KeyResolver, KeySupply, ProviderSecrets};
pub use crate::key_test::{
    KeyTestResult, ServedModel, list_models, list_provider_models, test_key,
};
pub use crate::ledger::{Budget, BudgetReservation, CallCost, RunLedger, SpendTotals};
pub use crate::provider_connections::{ConnectionStatus, ProviderConnections, ProviderOutage};
pub use crate::recording::RecordingStore;
pub use crate::schema_check::{SchemaCheck, UnusableSchema};
pub use crate::scripted_backend::{ScriptedBackend, said};
pub use crate::scripted_judge::ScriptedJudgeBackend;
pub use crate::shared_limiter::{EnterFuture, MinuteQuota, Pass, QuotaFuture, SharedLimiter};
pub use crate::sigv4::AwsCredentials;
