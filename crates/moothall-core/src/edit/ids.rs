//! Effect ids of the edit workflow.

use crate::{EffectId, InvalidId};

/// The effect ids of one attempt.
pub(crate) struct EditIds {
    pub(crate) list: EffectId,
    pub(crate) choose: EffectId,
    pub(crate) read: EffectId,
    pub(crate) propose: EffectId,
    /// Retries of the same proposal with different prompts.
    pub(crate) again: [EffectId; 2],
    pub(crate) submit: EffectId,
    pub(crate) wait: EffectId,
}

impl EditIds {
    /// `attempt-1/propose`, ….
    pub(crate) fn of(attempt: u32) -> Result<Self, InvalidId> {
        let root: EffectId = format!("attempt-{attempt}").parse()?;
        Ok(Self {
            list: root.child("list")?,
            choose: root.child("choose")?,
            read: root.child("read")?,
            propose: root.child("propose")?,
            again: [root.child("propose-2")?, root.child("propose-3")?],
            submit: root.child("submit")?,
            wait: root.child("wait")?,
        })
    }
}
