//! Effect ids of the program workflow.

use crate::{EffectId, InvalidId};

/// The effect ids of one attempt.
pub(crate) struct ProgramIds {
    pub(crate) generate: EffectId,
    pub(crate) again: EffectId,
    pub(crate) execute: EffectId,
    pub(crate) check: EffectId,
    pub(crate) critique: EffectId,
}

impl ProgramIds {
    /// `attempt-1/generate`, `attempt-1/generate/ask-2`, ….
    pub(crate) fn of(attempt: u32) -> Result<Self, InvalidId> {
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
