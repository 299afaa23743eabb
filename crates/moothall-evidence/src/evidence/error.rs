//! Why evidence could not be read.

use super::day::Day;

/// Refuses what is larger than we are willing to read.
pub(super) fn within(
    limit: usize,
    what: &'static str,
    document: &[u8],
) -> Result<(), EvidenceError> {
    let bytes = document.len();
    if bytes > limit { Err(EvidenceError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

/// Foreign data that is not what it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// More bytes than we are willing to read.
    #[error("the {what} has {bytes} bytes; at most {limit} are read")]
    TooLarge {
        /// What was to be read.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The most we read.
        limit: usize,
    },
    /// Not the JSON that this kind of document has.
    #[error("cannot read the {what}")]
    Json {
        /// What was to be read.
        what: &'static str,
        /// Where and why reading stopped.
        #[source]
        source: serde_json::Error,
    },
    /// Readable, but something in it cannot be.
    #[error("the {what} is not valid: {reason}")]
    Invalid {
        /// What was read.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Without an annual report there are no fiscal years, and so no labels.
    #[error("no annual report was filed on or before {as_of}")]
    NoAnnualReport {
        /// The day up to which filings were used.
        as_of: Day,
    },
}
