//! Builds the state machine of a child from its request, for this process and for a guest sandbox.

use moothall_core::child::{ChildEnd, ChildRequest};
use moothall_core::debate::InvalidDebate;
use moothall_core::guest::{GuestStateMachine, GuestWorkflow};
use moothall_core::receipt::EffectTiming;
use moothall_core::{
    Conclusion, EffectId, EffectResult, FindingSeverity, Outcome, RunFinding, Sha256Hex,
};
use moothall_store::JournalEntry;

/// Builds the child's state machine, not yet started.
pub(crate) fn build(request: &ChildRequest) -> Result<GuestStateMachine, InvalidDebate> {
    match request {
        ChildRequest::Debate(input) => GuestStateMachine::new((**input).clone()),
    }
}

/// The same workflow in the form that is sent to a guest.
pub(crate) fn guest_workflow(request: &ChildRequest) -> GuestWorkflow {
    match request {
        ChildRequest::Debate(input) => GuestWorkflow::Debate { input: input.clone() },
    }
}

/// The journal entry for a finished child.
pub(crate) fn entry_of(request_sha256: Sha256Hex, end: ChildEnd) -> JournalEntry {
    let result = EffectResult::ChildEnded(Box::new(end));
    // The child's own calls are timed separately.
    let timing = EffectTiming { latency_ms: 0, tries: 0 };
    JournalEntry { request_sha256, result, timing }
}

/// The outcome of a child that could not run. It counts as failed: a debate that did not take place
/// must not pass.
pub(crate) fn failed_outcome(id: &EffectId, rule: &'static str, why: String) -> Outcome {
    let finding = RunFinding::new(rule, FindingSeverity::Block, id.as_str(), &why);
    Outcome::new(vec![finding], Conclusion::NotDebated { why })
}
