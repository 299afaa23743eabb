//! The gate: the draft state machine, and the policy that judges submissions.
//!
//! Pure: takes drafts, policies and file contents and returns events and findings. It calls no
//! model and touches no file.

#![warn(missing_docs)]

pub mod drafts;
pub mod gate;

use moothall_types::{FindingSeverity, Sha256Hex, access, model, sandbox, structured, text};
