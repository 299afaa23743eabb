//! Requests for effects and their results, with the machine that issued them.

use moothall_core::{EffectId, EffectResult};
use moothall_store::JournalEntry;

use crate::requested_effect::RequestedEffect;

/// The machine that requested an effect. The id alone does not identify it: `m7/rewrite` is
/// requested by the workflow that also starts the child `m7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EffectOrigin {
    Root,
    /// The child started by this effect.
    Child(EffectId),
}

/// A requested effect that has not been started.
#[derive(Debug)]
pub(crate) struct PendingEffect {
    pub(crate) by: EffectOrigin,
    pub(crate) request: RequestedEffect,
}

/// A result to deliver to the machine that requested it.
#[derive(Debug)]
pub(crate) struct EffectCompletion {
    pub(crate) to: EffectOrigin,
    pub(crate) id: EffectId,
    pub(crate) result: EffectResult,
    /// The entry to journal; `None` if the result came from the journal.
    pub(crate) entry: Option<JournalEntry>,
}
