//! What people say about drafts.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Command, Draft, DraftId, Principal, Refusal, Say, State};

use super::error::DraftError;
use super::{Caller, DraftStore};

impl DraftStore {
    /// A person's word on a submission that was escalated, bound to the seal that was shown. What
    /// is approved is applied at once.
    pub fn review(
        &self,
        caller: &Caller,
        id: DraftId,
        seal: Sha256Hex,
        say: Say,
        reason: &str,
    ) -> Result<Vec<Draft>, DraftError> {
        let reason = self.recordable(reason);
        self.with(|store, inner| {
            let policy = store.policy.hash();
            let command = Command::Review { draft: id, seal, policy, say, reason };
            store.tell(inner, caller, command)?;
            let ids = store.together(&store.known(inner, id)?);
            if say == Say::Approve {
                store.apply(inner, &Caller::new(Principal::gate()), &ids)?;
            }
            ids.iter().map(|id| store.known(inner, *id)).collect()
        })
    }

    /// Takes the submission of an applied draft back.
    pub fn undo(&self, caller: &Caller, id: DraftId) -> Result<Vec<Draft>, DraftError> {
        self.with(|store, inner| {
            let draft = inner.drafts.of(&caller.who, id).ok_or(Refusal::Unknown)?.clone();
            if draft.state != State::Applied {
                return Err(Refusal::State { state: draft.state, what: "undone" }.into());
            }
            let ids = store.together(&draft);
            // Without the old contents there is nothing to go back to.
            for id in &ids {
                if let Some(base) = store.known(inner, *id)?.base {
                    store.blobs.get(base.sha256)?;
                }
            }
            store.revert(inner, caller, &ids)?;
            ids.iter().map(|id| store.known(inner, *id)).collect()
        })
    }

    fn together(&self, draft: &Draft) -> Vec<DraftId> {
        let submission = draft.submission.as_ref();
        submission.map_or_else(|| vec![draft.id], |submission| submission.drafts.clone())
    }
}
