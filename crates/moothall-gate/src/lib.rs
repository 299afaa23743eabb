//! The gate: what becomes of a draft, and what a submission is judged by.
//!
//! Pure: drafts, policies and file contents in, events and findings out. No model decides, and nothing here touches a file.

#![warn(missing_docs)]

pub mod drafts;
pub mod gate;

use moothall_types::{Severity, Sha256Hex, access, model, sandbox, structured, text};
