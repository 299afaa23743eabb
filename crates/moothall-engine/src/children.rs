//! What a child is: the machine that its request stands for, here and in a room.

use moothall_core::child::{ChildEnd, ChildRequest};
use moothall_core::debate::InvalidDebate;
use moothall_core::guest::{GuestMachine, GuestWorkflow};
use moothall_core::receipt::Timing;
use moothall_core::{Conclusion, EffectId, EffectResult, Finding, Outcome, Severity, Sha256Hex};
use moothall_store::JournalEntry;

/// The machine that a request stands for, ready to start.
pub(crate) fn build(request: &ChildRequest) -> Result<GuestMachine, InvalidDebate> {
    match request {
        ChildRequest::Debate(input) => GuestMachine::new((**input).clone()),
    }
}

/// The same machine, as a room is told of it.
pub(crate) fn inside(request: &ChildRequest) -> GuestWorkflow {
    match request {
        ChildRequest::Debate(input) => GuestWorkflow::Debate { input: input.clone() },
    }
}

/// The end of a child as the journal keeps it.
pub(crate) fn entry_of(request_sha256: Sha256Hex, end: ChildEnd) -> JournalEntry {
    let result = EffectResult::ChildEnded(Box::new(end));
    // Its calls have times of their own.
    let timing = Timing { latency_ms: 0, tries: 0 };
    JournalEntry { request_sha256, result, timing }
}

/// The end of a child that never came to one. It fails: a trial that could not be held was not
/// passed.
pub(crate) fn not_tried(id: &EffectId, rule: &'static str, why: String) -> Outcome {
    let finding = Finding::new(rule, Severity::Block, id.as_str(), &why);
    Outcome::new(vec![finding], Conclusion::NotDebated { why })
}
