//! Evidence and claim checking: fact sheets from filings and documents, and checks of a text's
//! claims against them.
//!
//! This crate does no I/O: bytes and text in, facts and findings out.

#![warn(missing_docs)]

pub mod claims;
pub mod evidence;

use moothall_types::{FindingSeverity, RuleId, RunFinding, Sha256Hex, text, tokens_expected};
