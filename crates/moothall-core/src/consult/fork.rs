//! Forks: a new consultation takes over the results of an earlier one up to a point and continues
//! from there with other settings.
//!
//! The results are copied into the journal of the fork, which replays them like a resumed run.
//! Every request is built again from the fork's own input and compared with the recorded one, so a
//! setting that would have changed an earlier request is refused.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::committee::{Committee, InferenceAgents};
use super::input::{ConsultInput, InvalidConsult};
use super::member_models::group_by_model;
use super::review::{MAX_CHANGES, MoveReview, ReviewChange};
use super::workflow::Consult;
use crate::model::{CallPurpose, ModelList};
use crate::receipt::EffectRecord;
use crate::replay::{RecordedResult, ReplayFault, ReplayResult, replay};
use crate::{EffectId, EffectResult, RunId, Sha256Hex};

/// The first stage that a fork executes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ForkPoint {
    /// Moves are proposed again; evidence and inference are reused.
    Moves,
    /// Moves are debated again; evidence, inference and moves are reused.
    Debates,
}

impl ForkPoint {
    /// The name in flags and stored forms.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Moves => "moves",
            Self::Debates => "debates",
        }
    }

    /// Whether calls with this purpose come before the fork point.
    pub(crate) fn reuses(self, purpose: CallPurpose) -> bool {
        match purpose {
            CallPurpose::SynthesizeFinancials
            | CallPurpose::SynthesizeNews
            | CallPurpose::InferFinancial
            | CallPurpose::InferTrend => true,
            CallPurpose::Analyst => self == Self::Debates,
            _ => false,
        }
    }
}

impl fmt::Display for ForkPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The run that a fork continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkParent {
    /// The run.
    pub run: RunId,
    /// The first stage that the fork executes itself.
    pub from: ForkPoint,
    /// Hash of the inherited results, see [`inherited_sha256`].
    pub journal_sha256: Sha256Hex,
    /// The review of the inherited moves: that of the parent, and the edits of the fork. No person
    /// is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<MoveReview>,
}

/// A request to fork a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkRequest {
    /// The run to fork.
    pub parent: RunId,
    /// The first stage to execute again.
    pub from: ForkPoint,
    /// The input of the parent with the requested changes.
    pub input: ConsultInput,
    /// New texts of moves. Only allowed from the debates.
    pub edits: Vec<ReviewChange>,
}

/// A fork that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// Its input, which names the parent.
    pub input: ConsultInput,
    /// The journal it starts with.
    pub effects: BTreeMap<EffectId, EffectRecord>,
}

/// Why a run cannot be forked as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkFault {
    /// The changed input is invalid.
    #[error(transparent)]
    Input(#[from] InvalidConsult),
    /// The parent stopped before the fork point.
    #[error("the run stopped before its {from}")]
    NotReached {
        /// The requested fork point.
        from: ForkPoint,
    },
    /// A change affects a stage before the fork point.
    #[error("the changes affect `{effect}`, which comes before the {from}")]
    Altered {
        /// The requested fork point.
        from: ForkPoint,
        /// The first effect with another request.
        effect: EffectId,
        /// An earlier fork point that allows the changes, if there is one.
        possible: Option<ForkPoint>,
    },
    /// Moves that are proposed again cannot be edited.
    #[error("a fork from the moves proposes all moves again, so none can be edited")]
    EditFromMoves,
    /// The move does not exist.
    #[error("no move `{move_id}`")]
    UnknownMove {
        /// The requested move.
        move_id: String,
        /// The moves of the parent.
        known: Vec<String>,
    },
    /// An edited text is invalid.
    #[error("invalid edit: {0}")]
    Edit(String),
    /// The parent's journal does not match its input.
    #[error("the run does not match its journal: {0}")]
    Journal(String),
}

/// Whether an effect comes before the fork point. The review of the moves is not included: a fork
/// has its own, in its input.
fn is_before(input: &ConsultInput, from: ForkPoint, id: &EffectId) -> bool {
    let mut parts = id.as_str().split('/');
    let (agent, what) = (parts.next().unwrap_or_default(), parts.next());
    match agent {
        "gather" | "synthesize" | "F1" | "F2" => true,
        _ if from == ForkPoint::Moves => false,
        _ if input.committee.analysts.iter().any(|analyst| analyst.id == agent) => true,
        // `m7/rewrite`; the other effects below a move belong to its debate.
        _ => what == Some("rewrite") && parts.next().is_none(),
    }
}

impl ConsultInput {
    /// Whether the result of this effect was inherited from the parent of a fork. Such a result
    /// costs the fork nothing.
    pub fn is_inherited(&self, id: &EffectId) -> bool {
        self.parent.as_ref().is_some_and(|parent| is_before(self, parent.from, id))
    }

    /// The review that a fork starts with.
    pub fn inherited_review(&self) -> Option<&MoveReview> {
        self.parent.as_ref()?.review.as_ref()
    }
}

/// Hash of the results that a fork inherited: the SHA-256 of one JSON line per effect with id,
/// request hash and result, sorted by id.
pub fn inherited_sha256(
    input: &ConsultInput,
    effects: &BTreeMap<EffectId, EffectRecord>,
) -> Result<Sha256Hex, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'a> {
        id: &'a EffectId,
        request_sha256: &'a Sha256Hex,
        result: &'a EffectResult,
    }
    let mut text = String::new();
    for (id, EffectRecord { request_sha256, result }) in effects {
        if input.is_inherited(id) {
            text.push_str(&serde_json::to_string(&Line { id, request_sha256, result })?);
            text.push('\n');
        }
    }
    Ok(Sha256Hex::of(text.as_bytes()))
}

/// The first result that a fork inherited but that differs in the parent's journal, if any.
pub fn other_than_parent<'a>(
    fork: &ConsultInput,
    effects: &'a BTreeMap<EffectId, EffectRecord>,
    parent: &BTreeMap<EffectId, EffectRecord>,
) -> Option<&'a EffectId> {
    let mut inherited = effects.iter().filter(|(id, _)| fork.is_inherited(id));
    inherited.find(|(id, record)| parent.get(*id) != Some(*record)).map(|(id, _)| id)
}

/// Prepares a fork of the run with this input and journal.
pub fn fork(
    parent_input: &ConsultInput,
    journal: &BTreeMap<EffectId, EffectRecord>,
    request: ForkRequest,
) -> Result<Fork, ForkFault> {
    let ForkRequest { parent, from, mut input, edits } = request;
    if from == ForkPoint::Moves && !edits.is_empty() {
        return Err(ForkFault::EditFromMoves);
    }
    if let Err(stop) = advance(parent_input, from, journal) {
        return Err(match stop {
            ReplayStop::Missing(_) | ReplayStop::Ended => ForkFault::NotReached { from },
            ReplayStop::Fault(fault) => fault,
            ReplayStop::OtherRequest(id) => ForkFault::Journal(format!("another request `{id}`")),
        });
    }
    let review = match from {
        ForkPoint::Moves => None,
        ForkPoint::Debates => review(parent_input, journal, &edits)?,
    };
    if review.is_some() {
        input.terms.pause_after_moves = false;
    }
    // Set before the replay, which applies the review. Requests do not depend on the hash.
    let journal_sha256 = Sha256Hex::of(&[]);
    let mut named = ForkParent { run: parent, from, journal_sha256, review };
    input.parent = Some(named.clone());
    let reached = advance(&input, from, journal).map_err(|stop| match stop {
        ReplayStop::OtherRequest(effect) | ReplayStop::Missing(effect) => {
            let is_earlier_possible = from == ForkPoint::Debates
                && edits.is_empty()
                && advance(&input, ForkPoint::Moves, journal).is_ok();
            let possible = is_earlier_possible.then_some(ForkPoint::Moves);
            ForkFault::Altered { from, effect, possible }
        }
        ReplayStop::Ended => ForkFault::NotReached { from },
        ReplayStop::Fault(fault) => fault,
    })?;
    let moves = reached.workflow.state().moves.values();
    let known: Vec<String> = moves.map(|one| one.proposed.move_id.clone()).collect();
    let mut edited = edits.iter().filter_map(|edit| edit.what.move_id());
    if let Some(unknown) = edited.find(|id| !known.iter().any(|one| one == id)) {
        return Err(ForkFault::UnknownMove { move_id: unknown.to_owned(), known });
    }
    let answered = reached.answered.into_keys();
    let effects: BTreeMap<EffectId, EffectRecord> =
        answered.filter_map(|id| Some((id.clone(), journal.get(&id)?.clone()))).collect();
    named.journal_sha256 = inherited_sha256(&input, &effects)
        .map_err(|error| ForkFault::Journal(error.to_string()))?;
    input.parent = Some(named);
    Ok(Fork { input, effects })
}

/// The review that a fork starts with: that of the parent, extended by the edits.
fn review(
    parent_input: &ConsultInput,
    journal: &BTreeMap<EffectId, EffectRecord>,
    edits: &[ReviewChange],
) -> Result<Option<MoveReview>, ForkFault> {
    let said = journal.iter().find(|(id, _)| id.as_str() == Consult::REVIEW);
    let said = said.and_then(|(_, record)| MoveReview::of(&record.result));
    let before = said.or_else(|| parent_input.inherited_review());
    if before.is_none() && edits.is_empty() {
        return Ok(None);
    }
    if let Some(fault) = edits.iter().find_map(ReviewChange::fault) {
        return Err(ForkFault::Edit(fault));
    }
    let mut review = before.cloned().unwrap_or_default();
    review.changes.extend(edits.iter().cloned());
    match review.changes.len() {
        0..=MAX_CHANGES => Ok(Some(review)),
        _ => Err(ForkFault::Edit(format!("too many changes (limit: {MAX_CHANGES})"))),
    }
}

/// Why a replay does not reach the fork point.
enum ReplayStop {
    /// This effect has no result.
    Missing(EffectId),
    /// The recorded result belongs to another request.
    OtherRequest(EffectId),
    /// The run ended.
    Ended,
    Fault(ForkFault),
}

/// Replays a consultation up to the fork point.
fn advance(
    input: &ConsultInput,
    from: ForkPoint,
    journal: &BTreeMap<EffectId, EffectRecord>,
) -> Result<ReplayResult<Consult>, ReplayStop> {
    let known = |id: &EffectId| {
        let record = journal.get(id).filter(|_| is_before(input, from, id))?;
        Some(RecordedResult { request_sha256: Some(record.request_sha256), result: &record.result })
    };
    let consult =
        Consult::new(input.clone()).map_err(|error| ReplayStop::Fault(ForkFault::Input(error)))?;
    let reached = replay(consult, known).map_err(|fault| match fault {
        ReplayFault::OtherQuestion { id, .. } => ReplayStop::OtherRequest(id),
        fault => ReplayStop::Fault(ForkFault::Journal(fault.to_string())),
    })?;
    if reached.outcome.is_some() {
        return Err(ReplayStop::Ended);
    }
    match reached.open.keys().find(|id| is_before(input, from, id)) {
        Some(id) => Err(ReplayStop::Missing(id.clone())),
        None => Ok(reached),
    }
}

/// A setting that differs between a fork and its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ForkChange {
    /// The setting, as in `--set` or a flag.
    pub setting: String,
    /// Its value in the parent.
    pub before: String,
    /// Its value in the fork.
    pub after: String,
}

/// The settings that differ between two inputs. Edited moves are part of the review.
pub fn fork_changes(before: &ConsultInput, after: &ConsultInput) -> Vec<ForkChange> {
    let model = ModelList::to_string;
    let brief = |input: &ConsultInput| input.terms.brief.clone().unwrap_or_default();
    let rounds = |input: &ConsultInput| input.committee.rounds.to_string();
    let (old, new) = (&before.models, &after.models);
    let mut changes = vec![
        ("inference", model(old.inference()), model(new.inference())),
        ("analyst", model(old.analyst()), model(new.analyst())),
        ("critic", model(old.critic()), model(new.critic())),
        ("decision-maker", model(old.decision_maker()), model(new.decision_maker())),
        ("rounds", rounds(before), rounds(after)),
        ("verdict", verdict(&before.committee), verdict(&after.committee)),
        ("brief", brief(before), brief(after)),
    ];
    changes.retain(|(_, before, after)| before != after);
    // A panel that is added or removed is a change of the verdict.
    let has_panel = |input: &ConsultInput| !input.committee.panel.is_empty();
    let are_panels_compared = has_panel(before) && has_panel(after);
    let panel = |input: &ConsultInput| group_by_model(&input.panel_models());
    if are_panels_compared && panel(before) != panel(after) {
        changes.push(("panel", panel(before), panel(after)));
    }
    let members = |input: &ConsultInput| group_by_model(&input.member_models());
    if changes.is_empty() && members(before) != members(after) {
        changes.push(("models", members(before), members(after)));
    }
    let rest = |input: &ConsultInput| without_settings(&input.committee, are_panels_compared);
    if rest(before) != rest(after) {
        let (before, after) = (&before.committee.name, &after.committee.name);
        let after = if before == after { format!("{after} (changed)") } else { after.clone() };
        changes.push(("committee", before.clone(), after));
    }
    let named = |(setting, before, after): (&str, String, String)| ForkChange {
        setting: setting.to_owned(),
        before,
        after,
    };
    changes.into_iter().map(named).collect()
}

/// How the verdict is reached, in the words of the flags.
fn verdict(committee: &Committee) -> String {
    let mut words = committee.verdict_mode().as_str().to_owned();
    if let Some(plan) = &committee.verdict {
        if !plan.again.is_empty() {
            let again: Vec<String> = plan.again.iter().map(u32::to_string).collect();
            words.push_str(&format!(", again {}", again.join(",")));
        }
        if plan.repeat > 1 {
            words.push_str(&format!(", repeat {}", plan.repeat));
        }
    }
    words
}

/// A committee without the settings that are compared separately: rounds, verdict and models.
fn without_settings(committee: &Committee, has_panel: bool) -> Committee {
    let inference = InferenceAgents::default();
    let mut rest = Committee { rounds: 0, inference, ..committee.clone() };
    let Committee { analysts, critic, decision_makers, panel, verdict, .. } = &mut rest;
    match verdict {
        Some(plan) if has_panel => {
            (plan.again, plan.repeat, plan.rounds_again) = (Vec::new(), 1, 0);
        }
        _ => (*verdict, *panel) = (None, Vec::new()),
    }
    for member in analysts.iter_mut().chain([critic]).chain(decision_makers).chain(panel) {
        member.model = None;
    }
    rest
}

#[cfg(test)]
#[path = "fork_tests.rs"]
mod tests;
