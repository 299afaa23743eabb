//! Where the chain of the journal stands.

use moothall_core::Sha256Hex;

/// Where a chain stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number of the last record; 0 where there is none.
    pub seq: u64,
    /// Its hash; that of nothing where there is none.
    pub hash: Sha256Hex,
}

impl Head {
    pub(super) fn start() -> Self {
        Self { seq: 0, hash: Sha256Hex::of(b"") }
    }
}
