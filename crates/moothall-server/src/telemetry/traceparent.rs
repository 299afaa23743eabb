//! The `traceparent` header of W3C Trace Context, and ids that are derived from a run.

use std::fmt;

use moothall_core::Sha256Hex;

/// The caller's trace and span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace_id, self.span_id)
    }
}

/// The trace of a run that no traced request started.
pub(crate) fn trace_id_of_run(run_id: &str) -> u128 {
    let hash = Sha256Hex::of(format!("moothall trace {run_id}").as_bytes());
    hash.as_bytes().iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte)).max(1)
}

/// The id of the span with this key, such as `run` or `m3`.
pub(crate) fn span_id_of_run(run_id: &str, key: &str) -> u64 {
    let hash = Sha256Hex::of(format!("moothall span {run_id} {key}").as_bytes());
    hash.as_bytes().iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte)).max(1)
}

impl TraceParent {
    /// Parses `00-<32 digits>-<16 digits>-<2 digits>`. Invalid and all-zero values are ignored, as
    /// the standard requires.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let digits = |part: &str, count: usize| {
            part.len() == count && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        // Later versions may append fields.
        let more = parts.next().is_some();
        let known = digits(version, 2) && version != "ff" && (version != "00" || !more);
        if !known || !digits(trace, 32) || !digits(span, 16) || !digits(flags, 2) {
            return None;
        }
        let trace_id = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span_id = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        Some(Self { trace_id, span_id })
    }
}

#[cfg(test)]
#[path = "traceparent_tests.rs"]
mod tests;
