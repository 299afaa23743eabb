//! Times as the wire has them.

use std::time::{Duration, UNIX_EPOCH};

/// RFC 3339 in UTC with milliseconds, of milliseconds since 1970.
pub(crate) fn rfc3339(at_ms: u64) -> String {
    // The last moment of the year 9999: what is beyond cannot be written.
    let at_ms = at_ms.min(253_402_300_799_999);
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(at_ms)).to_string()
}
