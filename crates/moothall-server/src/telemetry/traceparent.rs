//! Where a request comes from, as W3C Trace Context writes it.

/// The trace and the span that a caller says a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
}

impl TraceParent {
    /// Reads `00-<32 digits>-<16 digits>-<2 digits>`. What is anything else, or all zeros, is ignored,
    /// as the standard wants it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let digits = |part: &str, count: usize| {
            part.len() == count && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        // A later version may say more behind what we know.
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
