//! Statistics that tests compare with their own.

use crate::reply::ReplyUsage;

/// The calls that the server received and what a provider would bill for them.
///
/// A call is counted as ended just before the last bytes of its response are sent, so a client that
/// has read a response always finds it here. `received == answered + abandoned + in_flight` holds
/// at all times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderStats {
    /// Calls that arrived completely.
    pub received: u64,
    /// Calls that were handled as their behaviour requires, including errors and resets.
    pub answered: u64,
    /// Calls whose client disconnected before that.
    pub abandoned: u64,
    /// Calls in progress.
    pub in_flight: u64,
    /// The maximum number of concurrent calls. A client that abandons a call and immediately makes
    /// another may briefly count twice.
    pub max_concurrent: u64,
    /// Requests that are not model calls: an unknown path (404), a body that is not JSON (400) or
    /// too large (413), broken HTTP (400).
    pub rejected: u64,
    /// The sum of all bills.
    pub billed: ReplyUsage,
    /// One bill per billed call, ordered by call number.
    pub bills: Vec<CallBill>,
}

/// What a provider would bill for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallBill {
    /// The call number.
    pub call: u64,
    /// The billed usage.
    pub usage: ReplyUsage,
    /// The usage that a client learns if it reads the whole response. `None` if the response was
    /// cut off or corrupted, or reports no usage.
    pub reported: Option<ReplyUsage>,
}
