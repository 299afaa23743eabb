//! Shared types of Moothall: ids, hashes, money, findings, and the requests to models and
//! sandboxes.
//!
//! Pure data: no access to clocks, files, sockets or random numbers, and no decisions about runs.

#![warn(missing_docs)]

pub mod access;
mod canonical;
mod error_chain;
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

pub use crate::canonical::{CanonicalJsonError, canonical_json};
pub use crate::error_chain::{causes, with_causes};
pub use crate::error_code::ErrorCode;
pub use crate::finding::{FindingSeverity, RuleId, RunFinding, RunVerdict};
pub use crate::hash::Sha256Hex;
pub use crate::id::{EffectId, InvalidId, RunId};
pub use crate::money::MicroUsd;
pub use crate::tokens::{tokens_at_most, tokens_expected};
