//! The names of the effects.

use crate::{EffectId, InvalidId};

/// The effects of one attempt.
pub(super) struct Ids {
    pub(super) generate: EffectId,
    pub(super) again: EffectId,
    pub(super) execute: EffectId,
    pub(super) check: EffectId,
    pub(super) critique: EffectId,
}

impl Ids {
    /// `attempt-1/generate`, `attempt-1/generate/ask-2`, and so on.
    pub(super) fn of(attempt: u32) -> Result<Self, InvalidId> {
        let root: EffectId = format!("attempt-{attempt}").parse()?;
        let generate = root.child("generate")?;
        Ok(Self {
            again: generate.child("ask-2")?,
            generate,
            execute: root.child("execute")?,
            check: root.child("check")?,
            critique: root.child("critique")?,
        })
    }
}
