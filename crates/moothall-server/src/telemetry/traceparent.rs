//! The `traceparent` header of W3C Trace Context.

/// The caller's trace and span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
}

impl TraceParent {
    /// Parses `00-<32 digits>-<16 digits>-<2 digits>`. Invalid and all-zero values are ignored, as
    /// the standard requires.
    pub(crate) fn parse(text: &str) -> Option<Self> {
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
