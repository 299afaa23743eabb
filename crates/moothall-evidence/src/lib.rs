//! Evidence and what may be said of it: fact sheets of filings and documents, and the claims that texts make about them.
//!
//! Pure: bytes and texts in, facts and findings out.

#![warn(missing_docs)]

pub mod claims;
pub mod evidence;

use moothall_types::{Finding, RuleId, Severity, Sha256Hex, text, tokens_expected};
