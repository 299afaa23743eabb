//! The panel's part of a consultation: every finished debate becomes a case that all members score,
//! controls test the panel, and the best moves are debated again.
//!
//! ```text
//! debates ─► cards ─► weakened copies ─► verdict ─► debate the best again ─► cards ─► verdict ─► …
//! and m0, planted moves                     └────────────► rank if it is decided or the panel failed
//! ```
//!
//! With `repeat`, all of this happens several times for the same moves. The ids of later passes start
//! with `r2/`, and the cards of all passes are pooled into one verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::baseline::{ScoreTarget, ScoreTask};
use super::do_nothing::DO_NOTHING_ID;
use super::ids::RequestIds;
use super::input::ConsultInput;
use super::moves::{Move, Proposal};
use super::panel_prompt;
use super::panel_record::{PanelRecord, PanelVerdict};
use super::planted_controls::{known_bad_moves, weakened_copy};
use super::state::{ConsultState, DebateRecord, MoveRecord};
use super::verdict_plan::VerdictPlan;
use super::workflow::{Consult, ConsultStage, ConsultTask, PendingConsultEffect};
use crate::child::ChildRequest;
use crate::debate::{DebateInput, DebateResult, DebateScoring, Scorecard};
use crate::model::{ModelList, ModelName};
use crate::verdict::{
    CaseFile, CaseKind, ControlCase, ControlKind, PanelCard, PanelCase, PanelJudge, PanelLabel,
};
use crate::{Effect, InvalidId, RunEvent, RunEventBody, Sha256Hex, Step, canonical_json};

/// Parts of the ids of cases that are scored without a debate.
const ORIGINAL: &str = "original";
const WEAKENED: &str = "weakened";

/// What the panel has done so far. It only grows, like the state that it is part of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PanelState {
    /// Debates besides the first one of each move, by case: `m7/d2`, `m0/d1`, `control-1/d1`.
    pub debates: BTreeMap<String, DebateRecord>,
    /// Cards by case and member. Other cases: `m7/d1`, `m7/original`, `m7/weakened`.
    pub cards: BTreeMap<String, BTreeMap<String, Scorecard>>,
    /// Planted moves that the facts refute.
    pub known_bad: Vec<Move>,
    /// Moves that are also scored as weakened copies in this pass.
    pub weakened: Vec<String>,
    /// The moves that are debated again in this pass, by stage.
    pub repeats: Vec<Vec<String>>,
    /// The verdicts of finished passes, each from its own cards.
    pub passes: Vec<PanelVerdict>,
    /// Finished stages of all passes.
    pub stages: u32,
    /// The verdict of the last finished stage.
    pub verdict: Option<Box<PanelVerdict>>,
}

impl PanelState {
    /// The number of the current pass, starting at 1.
    fn pass(&self) -> u32 {
        u32::try_from(self.passes.len()).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// Starts the ids of a pass.
fn pass_prefix(pass: u32) -> String {
    match pass {
        1 => String::new(),
        pass => format!("r{pass}/"),
    }
}

/// One debate of a move, of doing nothing or of a planted move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebateKey {
    /// `m7`, `m0`, `control-1`.
    pub(crate) move_id: String,
    /// Starting at 1.
    pub(crate) number: u32,
    /// The pass, starting at 1.
    pub(crate) pass: u32,
}

impl DebateKey {
    pub(crate) fn first(move_id: &str) -> Self {
        Self { move_id: move_id.to_owned(), number: 1, pass: 1 }
    }

    /// The id of the effect that starts the debate: `m7`, then `m7/d2`; `r2/m7` in the second pass.
    pub(crate) fn effect_id(&self) -> String {
        let prefix = pass_prefix(self.pass);
        match self.number {
            1 => format!("{prefix}{}", self.move_id),
            number => format!("{prefix}{}/d{number}", self.move_id),
        }
    }

    /// The id of the case: `m7/d1`.
    pub(crate) fn case_id(&self) -> String {
        format!("{}{}/d{}", pass_prefix(self.pass), self.move_id, self.number)
    }

    /// Whether the defenders score it too.
    pub(crate) fn is_first(&self) -> bool {
        (self.number, self.pass) == (1, 1)
    }
}

impl ConsultState {
    /// A move by its id, including doing nothing and planted moves.
    fn any_move(&self, move_id: &str) -> Option<&Move> {
        let moves = self.moves.values().map(|tried| &tried.proposed);
        let others = self.nothing.iter().chain(&self.panel.known_bad);
        moves.chain(others).find(|one| one.move_id == move_id)
    }

    fn record_of(&self, move_id: &str) -> Option<&MoveRecord> {
        self.moves.values().find(|tried| tried.proposed.move_id == move_id)
    }
}

impl Consult {
    pub(crate) fn plan(&self) -> Option<&VerdictPlan> {
        self.input.committee.verdict.as_ref()
    }

    /// Starts the debates about doing nothing and about planted moves, beside those of the moves.
    pub(crate) fn start_panel_debates(&mut self, step: &mut Step) {
        let Some(plan) = self.plan() else { return };
        let known_bad = known_bad_moves(&self.known, plan.controls.known_bad);
        self.known.panel.known_bad = known_bad;
        self.debate_planted(step);
    }

    fn debate_planted(&mut self, step: &mut Step) {
        let pass = self.known.panel.pass();
        let planted = self.known.panel.known_bad.iter().chain(&self.known.nothing);
        let keys = planted.map(|one| DebateKey { pass, ..DebateKey::first(&one.move_id) });
        for key in keys.collect::<Vec<_>>() {
            self.start_short_debate(step, key);
        }
    }

    /// Debates all moves once more, as if for the first time.
    fn start_pass(&mut self, step: &mut Step) {
        self.stage = ConsultStage::Debating;
        let pass = self.known.panel.pass();
        let moves = self.known.moves.values().filter(|tried| !tried.is_vetoed());
        let keys =
            moves.map(|tried| DebateKey { pass, ..DebateKey::first(&tried.proposed.move_id) });
        for key in keys.collect::<Vec<_>>() {
            self.start_short_debate(step, key);
        }
        self.debate_planted(step);
    }

    /// Starts a debate that only the panel scores.
    fn start_short_debate(&mut self, step: &mut Step, key: DebateKey) {
        let Some(input) = self.short_debate(&key) else { return };
        let Ok(id) = key.effect_id().parse() else { return };
        let effect = Effect::StartChild(ChildRequest::Debate(Box::new(input)));
        self.perform(step, id, effect, PendingConsultEffect::Debate(key));
    }

    fn short_debate(&self, key: &DebateKey) -> Option<DebateInput> {
        let known = &self.known;
        let found = known.any_move(&key.move_id)?;
        let is_planted = known.panel.known_bad.contains(found);
        // A planted move has the next free number in its heading: no speaker of the debate may know.
        let place = known.panel.known_bad.iter().position(|one| one == found).unwrap_or(0);
        let last = known.moves.keys().next_back().copied().unwrap_or(0);
        let next = usize::try_from(last).unwrap_or(0).saturating_add(place + 1);
        let shown = match is_planted {
            true => Move { move_id: format!("m{next}"), ..found.clone() },
            false => found.clone(),
        };
        let tried = known.record_of(&key.move_id);
        let findings = tried.map(MoveRecord::machine_findings).unwrap_or_default();
        let markdown = known.marked(shown.markdown()).into();
        let input = self.debate_about(&key.effect_id(), known.dossier.clone()?, markdown);
        let is_whole = key.number == 1 && tried.is_some();
        let rounds = if is_whole { input.rounds } else { self.plan()?.rounds_again };
        let scoring = DebateScoring::Panel;
        Some(DebateInput { machine_findings: findings, rounds, scoring, ..input })
    }

    /// Sends a finished debate to all members.
    pub(crate) fn score_debate(&mut self, step: &mut Step, key: &DebateKey) {
        if self.plan().is_none() {
            return;
        }
        let known = &self.known;
        let case_id = key.case_id();
        let first = known.record_of(&key.move_id).filter(|_| key.is_first());
        let debate = match first {
            Some(tried) => tried.debate.as_ref(),
            None => known.panel.debates.get(&case_id),
        };
        let Some(Ok(debated)) = debate.map(|debate| &debate.result) else { return };
        let Some(found) = known.any_move(&key.move_id) else { return };
        let DebateResult { objections, calculations, .. } = debated;
        let hidden = panel_prompt::hidden_names(&self.input);
        let case = CaseFile::of_debate(&found.proposal, objections, calculations, &hidden);
        self.request_cards(step, &case_id, &case);
    }

    fn case_file(&self, proposal: &Proposal) -> CaseFile {
        CaseFile::of(proposal, None, &panel_prompt::hidden_names(&self.input))
    }

    fn request_cards(&mut self, step: &mut Step, case_id: &str, case: &CaseFile) {
        let members = self.input.committee.panel.clone();
        for member in members {
            let request = panel_prompt::score_case(&self.input, &self.known, &member, case);
            let Ok(RequestIds { ask, again }) = card_ids(case_id, &member.id) else { continue };
            let target = ScoreTarget::Panel { case_id: case_id.to_owned(), member: member.id };
            let task = ScoreTask { target, again: Some(again), first: None };
            self.call(step, ask, ConsultTask::Score(task), request);
        }
    }

    /// Sends weakened copies to all members, each beside its original in the same form.
    pub(crate) fn start_checking(&mut self, step: &mut Step) {
        self.stage = ConsultStage::Checking;
        let weakened = self.moves_to_weaken();
        let prefix = pass_prefix(self.known.panel.pass());
        for move_id in &weakened {
            let Some(found) = self.known.any_move(move_id) else { continue };
            let original = self.case_file(&found.proposal);
            let worse = self.case_file(&weakened_copy(&found.proposal));
            self.request_cards(step, &format!("{prefix}{move_id}/{ORIGINAL}"), &original);
            self.request_cards(step, &format!("{prefix}{move_id}/{WEAKENED}"), &worse);
        }
        self.known.panel.weakened = weakened;
    }

    /// The best move, the middle one, and others by the hash of their text.
    fn moves_to_weaken(&self) -> Vec<String> {
        let count = self.plan().map_or(0, |plan| plan.controls.weakened);
        let verdict = PanelVerdict::of(panel_record(&self.input, &self.known), 0);
        let mut left: Vec<String> = verdict.iter().flat_map(PanelVerdict::by_estimate).collect();
        let mut chosen = Vec::new();
        for place in 0..count {
            let at = match place {
                0 => 0,
                1 => left.len() / 2,
                _ => {
                    let places = left.iter().enumerate();
                    let least = places.min_by_key(|(_, move_id)| self.text_hash(move_id));
                    least.map_or(0, |(at, _)| at)
                }
            };
            if at < left.len() {
                chosen.push(left.remove(at));
            }
        }
        chosen
    }

    fn text_hash(&self, move_id: &str) -> Option<Sha256Hex> {
        let found = self.known.any_move(move_id)?;
        canonical_json(&found.proposal).ok().map(|text| Sha256Hex::of(text.as_bytes()))
    }

    /// Derives the verdict of the stage that just ended, and debates the best moves again unless it
    /// is final.
    pub(crate) fn close_panel_stage(&mut self, step: &mut Step) {
        let repeated = self.known.panel.repeats.len();
        let stages = self.known.panel.stages.saturating_add(1);
        let Some(verdict) = PanelVerdict::of(panel_record(&self.input, &self.known), stages) else {
            return self.start_ranking(step);
        };
        let again = match self.plan() {
            // More debates cannot repair a panel that fails its controls.
            Some(plan) if !verdict.is_failed() => {
                plan.schedule().next_moves(repeated, &verdict.tiers)
            }
            _ => Vec::new(),
        };
        self.publish_verdict(step, verdict.clone(), &again);
        if again.is_empty() {
            return self.close_pass(step, verdict);
        }
        self.stage = ConsultStage::Repeating;
        let debates: Vec<DebateKey> =
            again.iter().map(|move_id| self.next_debate(move_id)).collect();
        self.known.panel.repeats.push(again);
        for key in debates {
            self.start_short_debate(step, key);
        }
    }

    fn publish_verdict(&mut self, step: &mut Step, verdict: PanelVerdict, again: &[String]) {
        let body = RunEventBody::VerdictUpdated {
            stage: verdict.stages,
            again: again.to_vec(),
            headline: verdict.tiers.headline.text(),
            warning: verdict.tiers.controls.warning(),
            stability: verdict.stability,
            control_scores: verdict.record.control_scores(),
            tiers: Box::new(verdict.tiers.clone()),
        };
        step.publish.push(RunEvent::of_run(body));
        self.known.panel.stages = verdict.stages;
        self.known.panel.verdict = Some(Box::new(verdict));
    }

    /// Starts the next pass, or pools the passes. A failed panel ends them: it would fail again.
    fn close_pass(&mut self, step: &mut Step, verdict: PanelVerdict) {
        let is_failed = verdict.is_failed();
        let panel = &mut self.known.panel;
        panel.passes.push(verdict);
        let done = u32::try_from(panel.passes.len()).unwrap_or(u32::MAX);
        let wanted = self.input.committee.verdict.as_ref().map_or(1, |plan| plan.repeat);
        if done < wanted && !is_failed {
            (panel.weakened, panel.repeats) = (Vec::new(), Vec::new());
            return self.start_pass(step);
        }
        if done > 1
            && let Some(pooled) = PanelVerdict::pooled(&panel.passes, panel.stages + 1)
        {
            self.publish_verdict(step, pooled, &[]);
        }
        self.start_forecasting(step);
    }

    fn next_debate(&self, move_id: &str) -> DebateKey {
        let stages = self.known.panel.repeats.iter();
        let before = stages.filter(|moves| moves.iter().any(|one| one == move_id)).count();
        let number = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(2);
        DebateKey { move_id: move_id.to_owned(), number, pass: self.known.panel.pass() }
    }
}

fn card_ids(case_id: &str, member: &str) -> Result<RequestIds, InvalidId> {
    RequestIds::of(&format!("{case_id}/panel/{member}"), "ask-2")
}

/// The cards of the current pass so far, with everything else that a verdict follows from.
pub(crate) fn panel_record(input: &ConsultInput, known: &ConsultState) -> PanelRecord {
    let committee = &input.committee;
    let judges: Vec<PanelJudge> = committee
        .panel
        .iter()
        .map(|member| PanelJudge {
            id: member.id.clone(),
            model: input.panel_model(member).first().to_string(),
        })
        .collect();
    let debating = committee.decision_makers.iter().map(|maker| input.decision_maker_model(maker));
    let debating: BTreeSet<&ModelName> =
        debating.chain([input.critic_model()]).flat_map(ModelList::iter).collect();
    // A member whose fallback speaks in the debates is not independent of them.
    let of_panel = committee.panel.iter().map(|member| input.panel_model(member));
    let shared: BTreeSet<String> = of_panel
        .filter(|models| models.iter().any(|model| debating.contains(model)))
        .map(|models| models.first().to_string())
        .collect();
    let cases = cases(input, known);
    let is_case = |move_id: &str| cases.iter().any(|case| case.move_id == move_id);
    let prefix = pass_prefix(known.panel.pass());
    let debated = known.panel.cards.iter().filter_map(|(case_id, cards)| {
        let (move_id, debate) = case_id.strip_prefix(&prefix)?.split_once("/d")?;
        Some((move_id, debate.parse::<u32>().ok()?, cards)).filter(|_| is_case(move_id))
    });
    let cards = debated.flat_map(|(move_id, debate, cards)| {
        cards.iter().map(move |(member, card)| PanelCard {
            move_id: move_id.to_owned(),
            debate,
            member: member.clone(),
            scorecard: without_reasoning(card),
        })
    });
    PanelRecord {
        metrics: committee.metrics.iter().map(|metric| metric.id.clone()).collect(),
        top_score: committee.top_score(),
        label: PanelLabel::of(&judges, &shared),
        judges,
        rules: committee.verdict.as_ref().map(VerdictPlan::rules).unwrap_or_default(),
        cards: cards.collect(),
        cases,
        controls: controls(known),
    }
}

/// Doing nothing, then the moves that are not vetoed, by number.
fn cases(input: &ConsultInput, known: &ConsultState) -> Vec<PanelCase> {
    let nothing = known
        .nothing
        .iter()
        .map(|_| PanelCase { move_id: DO_NOTHING_ID.to_owned(), kind: CaseKind::DoNothing });
    let moves = known.moves.values().filter(|tried| !tried.is_vetoed()).map(|tried| {
        let is_held = tried.unranked().is_held() && !input.accept_findings;
        let kind = if is_held { CaseKind::HeldMove } else { CaseKind::Move };
        PanelCase { move_id: tried.proposed.move_id.clone(), kind }
    });
    nothing.chain(moves).collect()
}

/// The controls that members scored. One whose debate or calls failed shows nothing about the
/// panel.
fn controls(known: &ConsultState) -> Vec<ControlCase> {
    let cards = |case_id: &str| -> BTreeMap<String, Scorecard> {
        let cards = known.panel.cards.get(case_id).into_iter().flatten();
        cards.map(|(member, card)| (member.clone(), without_reasoning(card))).collect()
    };
    let pass = known.panel.pass();
    let prefix = pass_prefix(pass);
    let known_bad = known.panel.known_bad.iter().map(|one| ControlCase {
        id: one.move_id.clone(),
        kind: ControlKind::KnownBad,
        cards: cards(&DebateKey { pass, ..DebateKey::first(&one.move_id) }.case_id()),
        original_cards: BTreeMap::new(),
    });
    let weakened = known.panel.weakened.iter().map(|move_id| ControlCase {
        id: format!("{move_id}-{WEAKENED}"),
        kind: ControlKind::WeakenedCopy(move_id.clone()),
        cards: cards(&format!("{prefix}{move_id}/{WEAKENED}")),
        original_cards: cards(&format!("{prefix}{move_id}/{ORIGINAL}")),
    });
    let is_given = |cards: &BTreeMap<String, Scorecard>| cards.values().any(|card| card.is_given());
    let is_scored = |control: &ControlCase| {
        let has_original =
            control.kind == ControlKind::KnownBad || is_given(&control.original_cards);
        is_given(&control.cards) && has_original
    };
    known_bad.chain(weakened).filter(is_scored).collect()
}

fn without_reasoning(card: &Scorecard) -> Scorecard {
    Scorecard { reasoning: String::new(), ..card.clone() }
}

#[cfg(test)]
#[path = "panel_tests.rs"]
mod tests;
