//! The user's own moves, and changes made in the review. Their texts are checked like any other,
//! but no agent rewrites them.

use super::ids::MoveIds;
use super::moves::Proposal;
use super::options::MAX_ADDED_MOVES;
use super::replies::claim_checked;
use super::review::{
    MAX_CHANGES, MoveReview, MoveReviewDecision, ReviewAction, ReviewChange, ReviewQuestion,
};
use super::similarity::similar;
use super::workflow::{Consult, ConsultStage, PendingConsultEffect};
use crate::{Effect, EffectId, FindingSeverity, RunEvent, RunEventBody, RunFinding, Step};

/// Author of moves that a person adds.
pub const USER_AUTHOR: &str = "you";

impl Consult {
    /// Adds the moves that the user supplied at the start.
    pub(crate) fn take_own_moves(&mut self, step: &mut Step) {
        let own = self.input.terms.moves.clone();
        if own.is_empty() {
            return;
        }
        self.agent_start(step, 2, USER_AUTHOR, "Your own moves");
        let first = self.input.proposed_moves().saturating_add(1);
        let mut made = Vec::new();
        for (number, proposal) in (first..).zip(own) {
            // There was no model call, so the check is reported under the id of the move's debate.
            let Ok(MoveIds { debate, .. }) = MoveIds::of(number) else { continue };
            self.store_user_move(&debate, number, USER_AUTHOR, proposal, None, step);
            made.push(format!("m{number}.md"));
        }
        self.agent_complete(step, 2, USER_AUTHOR, made);
    }

    /// Requests a review of the moves.
    pub(crate) fn start_reviewing(&mut self, step: &mut Step) {
        self.stage = ConsultStage::Reviewing;
        self.mark_similar();
        let moves = self.known.moves.values().map(|tried| tried.proposed.clone()).collect();
        let question = ReviewQuestion::ReviewMoves { moves };
        let id = self.ids.review.clone();
        self.perform(step, id, Effect::AskPerson(Box::new(question)), PendingConsultEffect::Review);
    }

    /// Applies the review that a fork starts with, without asking anyone.
    pub(crate) fn apply_inherited_review(&mut self, step: &mut Step) {
        self.stage = ConsultStage::Reviewing;
        let (id, review) = (self.ids.review.clone(), self.input.inherited_review().cloned());
        self.reviewed(&id, review.unwrap_or_default(), step);
    }

    /// Applies a person's review.
    pub(crate) fn reviewed(&mut self, id: &EffectId, review: MoveReview, step: &mut Step) {
        let left_out = review.changes.len().saturating_sub(MAX_CHANGES);
        for change in review.changes.into_iter().take(MAX_CHANGES) {
            if let Err(why) = self.change(id, change, step) {
                self.ignored(&why);
            }
        }
        if left_out > 0 {
            self.ignored(&format!("{left_out} changes are too many"));
        }
        let said = self.known.moves.values();
        let (mut vetoed, mut edited, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for tried in said {
            match &tried.said {
                Some(MoveReviewDecision::Vetoed { .. }) => {
                    vetoed.push(tried.proposed.move_id.clone())
                }
                Some(MoveReviewDecision::Edited { .. }) => {
                    edited.push(tried.proposed.move_id.clone())
                }
                Some(MoveReviewDecision::Added { .. }) => {
                    added.push(tried.proposed.move_id.clone())
                }
                None => {}
            }
        }
        let titles = self.titles(edited.iter().chain(&added));
        let effect_id = id.clone();
        let body = RunEventBody::MovesReviewed { effect_id, vetoed, edited, added, titles };
        step.publish.push(RunEvent::about(id, body));
    }

    /// Reports a change that cannot be applied. Review data is untrusted.
    fn ignored(&mut self, why: &str) {
        let message = format!("a change was left out: {why}");
        let id = self.ids.review.as_str();
        let found = RunFinding::new("consult.change-ignored", FindingSeverity::Warn, id, &message);
        self.known.ignored_changes.push(found);
    }

    fn change(
        &mut self,
        id: &EffectId,
        change: ReviewChange,
        step: &mut Step,
    ) -> Result<(), String> {
        if let Some(fault) = change.fault() {
            return Err(fault);
        }
        let ReviewChange { by, what, at_ms: _ } = change;
        match what {
            ReviewAction::Veto { move_id, why } => {
                let number = self.number_of(&move_id)?;
                if let Some(tried) = self.known.moves.get_mut(&number) {
                    tried.said = Some(MoveReviewDecision::Vetoed { by, why });
                }
            }
            ReviewAction::Edit { move_id, proposal } => {
                let number = self.number_of(&move_id)?;
                let before = self.known.moves.get(&number);
                let author = before.map(|tried| tried.proposed.analyst.clone());
                let was_added = before
                    .is_some_and(|one| matches!(one.said, Some(MoveReviewDecision::Added { .. })));
                let said = match was_added {
                    true => MoveReviewDecision::Added { by },
                    false => MoveReviewDecision::Edited { by },
                };
                self.store_user_move(
                    id,
                    number,
                    &author.unwrap_or_default(),
                    proposal,
                    Some(said),
                    step,
                );
            }
            ReviewAction::Add { proposal } => {
                let first = self.input.all_moves().saturating_add(1);
                let newest = self.known.moves.keys().next_back().copied().unwrap_or(0);
                let number = newest.saturating_add(1).max(first);
                if (number - first) as usize >= MAX_ADDED_MOVES {
                    return Err(format!("more than {MAX_ADDED_MOVES} moves are added"));
                }
                self.store_user_move(
                    id,
                    number,
                    USER_AUTHOR,
                    proposal,
                    Some(MoveReviewDecision::Added { by }),
                    step,
                );
            }
        }
        Ok(())
    }

    fn number_of(&self, move_id: &str) -> Result<u32, String> {
        let moves = self.known.moves.iter();
        let mut found = moves.filter(|(_, tried)| tried.proposed.move_id == move_id);
        let number = found.next().map(|(number, _)| *number);
        number.ok_or_else(|| "unknown move".to_owned())
    }

    /// Checks a person's move and stores it under its number.
    fn store_user_move(
        &mut self,
        id: &EffectId,
        number: u32,
        author: &str,
        proposal: Proposal,
        said: Option<MoveReviewDecision>,
        step: &mut Step,
    ) {
        let Some(mut tried) = self.tried(number, author, proposal) else { return };
        tried.said = said;
        let event = claim_checked(id, &format!("m{number}.md"), &tried.check, false);
        // One event per document: only the last version of a move counts.
        step.publish.retain(|before| before.key != event.key);
        step.publish.push(event);
        self.known.moves.insert(number, tried);
    }

    /// Marks nearly identical moves; vetoed moves are not compared.
    pub(crate) fn mark_similar(&mut self) {
        let debated = self.known.moves.values().filter(|tried| !tried.is_vetoed());
        let alike = similar(debated.map(|tried| &tried.proposed));
        for tried in self.known.moves.values_mut() {
            tried.similar_to = alike.get(&tried.proposed.move_id).cloned().unwrap_or_default();
        }
    }
}

#[cfg(test)]
#[path = "apply_review_tests.rs"]
mod tests;
