//! Review operations: approve, reject, send back and undo.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    Draft, DraftId, DraftOperation, DraftRefusal, DraftState, Principal, ReviewDecision,
};

use super::apply::in_state;
use super::error::DraftError;
use super::{DraftCaller, DraftStore};

impl DraftStore {
    /// Reviews an escalated submission. The decision is bound to the seal that was shown; an
    /// approved submission is applied immediately.
    pub fn review(
        &self,
        caller: &DraftCaller,
        id: DraftId,
        seal: Sha256Hex,
        say: ReviewDecision,
        reason: &str,
    ) -> Result<Vec<Draft>, DraftError> {
        let reason = self.recordable(reason);
        self.with(|store, inner| {
            let policy = store.policy.hash();
            let command = DraftOperation::Review { draft: id, seal, policy, say, reason };
            store.execute_command(inner, caller, command)?;
            let ids = store.submitted_with(&store.draft_by_id(inner, id)?);
            if say == ReviewDecision::Approve {
                store.apply(inner, &DraftCaller::new(Principal::gate()), &ids)?;
            }
            ids.iter().map(|id| store.draft_by_id(inner, *id)).collect()
        })
    }

    /// Reverts the submission of an applied draft.
    pub fn undo(&self, caller: &DraftCaller, id: DraftId) -> Result<Vec<Draft>, DraftError> {
        self.with(|store, inner| {
            let draft =
                inner.drafts.of(&caller.principal, id).ok_or(DraftRefusal::Unknown)?.clone();
            if draft.state != DraftState::Applied {
                return Err(DraftRefusal::State { state: draft.state, what: "undone" }.into());
            }
            let ids = in_state(inner, &store.submitted_with(&draft), DraftState::Applied);
            // Check first that the old contents are still stored.
            for id in &ids {
                if let Some(base) = store.draft_by_id(inner, *id)?.base {
                    store.blobs.get(base.sha256)?;
                }
            }
            store.revert(inner, caller, &ids)?;
            ids.iter().map(|id| store.draft_by_id(inner, *id)).collect()
        })
    }

    pub(crate) fn submitted_with(&self, draft: &Draft) -> Vec<DraftId> {
        let submission = draft.submission.as_ref();
        submission.map_or_else(|| vec![draft.id], |submission| submission.drafts.clone())
    }
}
