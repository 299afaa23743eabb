//! The head of the journal's hash chain.

use moothall_core::Sha256Hex;

/// The last record of a hash chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHead {
    /// Sequence number of the last record, or 0 if none exists.
    pub seq: u64,
    /// Hash of the last record, or of the empty string if none exists.
    pub hash: Sha256Hex,
}

impl JournalHead {
    pub(crate) fn start() -> Self {
        Self { seq: 0, hash: Sha256Hex::of(b"") }
    }
}
