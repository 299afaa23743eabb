//! The vocabulary of Moothall: ids, hashes, money, findings, and the requests that models and sandboxes are sent.
//!
//! Nothing here reads a clock, a file, a socket or a random number, and nothing decides about a run.

#![warn(missing_docs)]

pub mod access;
mod canonical;
mod causes;
mod error_code;
pub mod fenced;
mod finding;
mod hash;
mod id;
pub mod model;
pub mod money;
pub mod sandbox;
pub mod structured;
pub mod text;
mod tokens;

pub use crate::canonical::{NotCanonical, canonical_json};
pub use crate::causes::{causes, with_causes};
pub use crate::error_code::ErrorCode;
pub use crate::finding::{Finding, RuleId, Severity, Verdict};
pub use crate::hash::Sha256Hex;
pub use crate::id::{EffectId, InvalidId, RunId};
pub use crate::money::MicroUsd;
pub use crate::tokens::{tokens_at_most, tokens_expected};
