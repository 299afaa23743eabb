//! Provider-independent requests to models and their replies.

mod failure;
mod model_list;
mod prompt_text;
mod reply;
mod request;

pub use self::failure::{FailureKind, ModelFailure};
pub use self::model_list::{InvalidModelList, ModelChoice, ModelList};
pub use self::prompt_text::PromptText;
pub use self::reply::{ModelFallback, ModelReply, StopReason, TokenUsage, UsageBasis};
pub use self::request::{
    CacheDuration, CallPurpose, InvalidModelName, InvalidSchema, ModelName, ModelRequest,
    OutputSchema, PromptBlock, PromptRole, PromptTurn, ReasoningEffort, Temperature,
};
