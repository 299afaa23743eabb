//! What we ask a model and what comes back, in our own words; no provider's wire format appears
//! here.

mod failure;
mod reply;
mod request;
mod text;

pub use self::failure::{FailureKind, ModelFailure};
pub use self::reply::{ModelReply, StopReason, Usage, UsageBasis};
pub use self::request::{
    Block, CacheFor, Effort, InvalidModelName, InvalidSchema, ModelName, ModelRequest,
    OutputSchema, Purpose, Role, Temperature, Turn,
};
pub use self::text::PromptText;
