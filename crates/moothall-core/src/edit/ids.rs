//! The names of the effects.

use crate::{EffectId, InvalidId};

/// The effects of one attempt.
pub(super) struct Ids {
    pub(super) list: EffectId,
    pub(super) choose: EffectId,
    pub(super) read: EffectId,
    pub(super) propose: EffectId,
    /// The same proposal, asked for again in other words.
    pub(super) again: [EffectId; 2],
    pub(super) submit: EffectId,
    pub(super) wait: EffectId,
}

impl Ids {
    /// `attempt-1/propose`, and so on.
    pub(super) fn of(attempt: u32) -> Result<Self, InvalidId> {
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
