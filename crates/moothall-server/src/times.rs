//! Time format of the API.

use std::time::{Duration, UNIX_EPOCH};

/// Formats milliseconds since 1970 as RFC 3339 in UTC with milliseconds.
pub(crate) fn rfc3339(at_ms: u64) -> String {
    // The end of the year 9999, the largest time the format can represent.
    let at_ms = at_ms.min(253_402_300_799_999);
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(at_ms)).to_string()
}
