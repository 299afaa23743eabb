//! What is asked for, by whom, and the answer on its way back.

use moothall_core::{Effect, EffectId, EffectResult, Sha256Hex};
use moothall_store::JournalEntry;

/// The machine that asked for an effect. An id alone does not tell: `m7/rewrite` is asked for by
/// the workflow that also asks for the child `m7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asker {
    /// The workflow of the run.
    Root,
    /// The child that this effect started.
    Child(EffectId),
}

/// An effect that somebody waits for and nobody performs yet.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) by: Asker,
    pub(super) id: EffectId,
    pub(super) request_sha256: Sha256Hex,
    pub(super) effect: Effect,
}

/// A result on its way to the machine that asked for it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) to: Asker,
    pub(super) id: EffectId,
    pub(super) result: EffectResult,
    /// What goes into the journal; nothing where the result came from there.
    pub(super) entry: Option<JournalEntry>,
}
