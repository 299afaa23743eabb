//! The numbers that a test compares with its own.

use crate::reply::Usage;

/// What the server saw and what a provider would bill for it.
///
/// A call is counted as ended just before the last bytes of its answer leave, so a client that has
/// read an answer always finds it here. At all times `received == answered + abandoned +
/// in_flight`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls that arrived whole.
    pub received: u64,
    /// Calls that were treated as their behaviour says, errors and resets included.
    pub answered: u64,
    /// Calls whose client left before that.
    pub abandoned: u64,
    /// Calls that are being treated now.
    pub in_flight: u64,
    /// The most calls ever in flight at once. A client that gives up a call and at once makes
    /// another may be seen with both for a moment.
    pub max_concurrent: u64,
    /// Requests that were no call: an unknown path (404), a body that is not JSON (400) or too
    /// large (413), broken HTTP (400).
    pub rejected: u64,
    /// The sum of all bills.
    pub billed: Usage,
    /// One bill per billed call, in the order of the call numbers.
    pub bills: Vec<Bill>,
}

/// What a provider would bill for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    /// The number of the call.
    pub call: u64,
    /// What is billed.
    pub usage: Usage,
    /// What a client that read the whole answer was told. `None` if the answer was cut or spoilt,
    /// or said nothing of usage.
    pub reported: Option<Usage>,
}
