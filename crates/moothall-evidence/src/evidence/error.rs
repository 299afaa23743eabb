//! Errors from reading evidence.

use super::day::CalendarDay;

/// Rejects a document larger than `limit` bytes.
pub(crate) fn check_size(
    limit: usize,
    what: &'static str,
    document: &[u8],
) -> Result<(), EvidenceError> {
    let bytes = document.len();
    if bytes > limit { Err(EvidenceError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

/// External data that is too large or invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// The document exceeds the size limit.
    #[error("the {what} is too large: {bytes} bytes (limit: {limit})")]
    TooLarge {
        /// The kind of document.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The size limit in bytes.
        limit: usize,
    },
    /// The document is not the expected JSON.
    #[error("cannot parse the {what}")]
    Json {
        /// The kind of document.
        what: &'static str,
        /// Position and cause of the error.
        #[source]
        source: serde_json::Error,
    },
    /// The document was parsed but contains an invalid value.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// The kind of document.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no annual report, so there are no fiscal years and no period labels.
    #[error("no annual report was filed on or before {as_of}")]
    NoAnnualReport {
        /// The day up to which filings were considered.
        as_of: CalendarDay,
    },
}
