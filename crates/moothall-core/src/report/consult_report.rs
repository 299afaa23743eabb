//! The state of a consultation, derived from its recorded results.

use std::collections::BTreeMap;

use super::derive::DeriveFault;
use crate::child::{ChildIsolation, ChildRequest};
use crate::claims::CitableCalculation;
use crate::consult::{
    Consult, ConsultInput, ConsultResult, ConsultState, DO_NOTHING_ID, Move, MoveApproval,
    outcome_of, settle,
};
use crate::debate::{CalculationResult, Debate, DebateLogEntry, DebateResult};
use crate::evidence::{CalendarDay, Evidence, UserPassage};
use crate::replay::{RecordedResult, replay};
use crate::view::is_move_id;
use crate::{Conclusion, EffectId, EffectResult, Outcome};

/// A consultation, finished or not.
#[derive(Debug, Clone)]
pub struct ConsultReport {
    /// The input.
    pub input: ConsultInput,
    /// Evidence, documents and moves.
    pub proceedings: ConsultState,
    /// The first debate of each move, by move.
    pub debates: BTreeMap<String, DebateReport>,
    /// Other debates: repeats (`m7/d2`), doing nothing (`m0`) and planted moves (`control-1`).
    pub other_debates: BTreeMap<String, DebateReport>,
    /// What memos may cite from the calculations of first debates.
    pub calculations: Vec<CitableCalculation>,
    /// The ranking with approvals applied; provisional if there is no outcome yet.
    pub ranked: Option<ConsultResult>,
    /// The outcome with approvals applied, if the run has finished.
    pub outcome: Option<Outcome>,
    /// The approvals.
    pub approvals: Vec<MoveApproval>,
}

/// A debate, finished or not.
#[derive(Debug, Clone)]
pub struct DebateReport {
    /// Conversations by name: `i1`, `i2`, `i3`.
    pub logs: BTreeMap<String, Vec<DebateLogEntry>>,
    /// The result, if it has scores.
    pub debated: Option<DebateResult>,
    /// Where it ran, if it has ended.
    pub isolation: Option<ChildIsolation>,
}

impl ConsultReport {
    /// Replays a run as far as its results go. Hashes are not compared, because this only shows a
    /// run and does not verify it.
    pub fn of<'a>(
        input: &ConsultInput,
        answer: impl Fn(&EffectId) -> Option<&'a EffectResult>,
        approvals: &[MoveApproval],
    ) -> Result<Self, DeriveFault> {
        let known = |id: &EffectId| answer(id).map(unverified);
        let consult = Consult::new(input.clone()).map_err(|error| DeriveFault::input(&error))?;
        let replayed = replay(consult, known)?;
        let (mut debates, mut other_debates) = (BTreeMap::new(), BTreeMap::new());
        for (id, ChildRequest::Debate(debate)) in replayed.children {
            let debate = Debate::new(*debate).map_err(|error| DeriveFault::input(&error))?;
            let logs = replay(debate, known)?.workflow.logs();
            let end = match answer(&id) {
                Some(EffectResult::ChildEnded(end)) => Some(end),
                _ => None,
            };
            let debated = end.and_then(|end| match &end.outcome.conclusion {
                Conclusion::Debated(debated) => Some((**debated).clone()),
                _ => None,
            });
            let isolation = end.map(|end| end.isolation.clone());
            let is_first = is_move_id(id.as_str()) && id.as_str() != DO_NOTHING_ID;
            let list = if is_first { &mut debates } else { &mut other_debates };
            list.insert(id.to_string(), DebateReport { logs, debated, isolation });
        }
        let proceedings = replayed.workflow.state().clone();
        let outcome = replayed.outcome.map(|outcome| settle(outcome, approvals));
        let so_far = || settle(outcome_of(input, &proceedings), approvals);
        let ranked = match outcome.clone().unwrap_or_else(so_far).conclusion {
            Conclusion::Ranked(ranked) => Some(*ranked),
            _ => None,
        };
        let (input, approvals) = (input.clone(), approvals.to_vec());
        let debated = debates.values().filter_map(|debate: &DebateReport| debate.debated.as_ref());
        let calculations =
            debated.flat_map(|debated| &debated.calculations).map(CalculationResult::citable);
        let calculations = calculations.collect();
        Ok(Self {
            input,
            proceedings,
            debates,
            other_debates,
            calculations,
            ranked,
            outcome,
            approvals,
        })
    }

    /// The evidence, if it has been gathered.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.proceedings.evidence.as_deref()
    }

    /// Finds a move by its id; `m0` is the do-nothing option.
    pub fn find_move(&self, move_id: &str) -> Option<&Move> {
        self.moves().chain(&self.proceedings.nothing).find(|one| one.move_id == move_id)
    }

    /// The final versions of the moves, ordered by number.
    pub fn moves(&self) -> impl Iterator<Item = &Move> {
        self.proceedings.moves.values().map(|tried| &tried.proposed)
    }

    /// The date of the evidence.
    pub fn as_of(&self) -> Option<CalendarDay> {
        self.evidence()?.sheet.as_ref().map(|sheet| sheet.as_of)
    }

    /// The financial data given to the agents, as text.
    pub fn financial_data(&self) -> Option<String> {
        let invented = self.proceedings.financials.clone();
        invented.or_else(|| Some(self.evidence()?.sheet.as_ref()?.table(u64::MAX)))
    }

    /// The events and passages given to the agents, as text.
    pub fn news_data(&self) -> Option<String> {
        let invented = self.proceedings.news.clone();
        invented.or_else(|| self.evidence().map(news))
    }
}

/// The final versions of the moves so far, ordered by number. Replays nothing after the start of the
/// debates, so it costs little even late in a run.
pub fn proposed_moves<'a>(
    input: &ConsultInput,
    answer: impl Fn(&EffectId) -> Option<&'a EffectResult>,
) -> Result<Vec<Move>, DeriveFault> {
    let before_debates = |id: &EffectId| {
        answer(id).filter(|result| !matches!(result, EffectResult::ChildEnded(_))).map(unverified)
    };
    let consult = Consult::new(input.clone()).map_err(|error| DeriveFault::input(&error))?;
    let replayed = replay(consult, before_debates)?;
    Ok(replayed.workflow.state().moves.values().map(|tried| tried.proposed.clone()).collect())
}

/// The result of any request.
fn unverified(result: &EffectResult) -> RecordedResult<'_> {
    RecordedResult { request_sha256: None, result }
}

fn news(evidence: &Evidence) -> String {
    let events = evidence.events.iter().map(|event| {
        format!("- {} {}: {} [E0:{}]\n", event.filed, event.form, event.subjects(), event.accession)
    });
    let passages = evidence.passages.iter().map(|passage| {
        let (accession, item, number) = (&passage.accession, &passage.item, passage.paragraph);
        format!("- {} [T0:{accession}:{item}:{number}]\n", passage.text)
    });
    let documents = evidence.documents.iter().flat_map(|document| {
        let line = |passage: &UserPassage| {
            format!("- {} [{}]\n", passage.text, document.citation(passage))
        };
        document.passages.iter().map(line)
    });
    let headlines = evidence.headlines.iter().map(|one| {
        let day = one.published.map(|day| format!("{day} ")).unwrap_or_default();
        format!("- {day}{}: {} [N0:{}] {}\n", one.source, one.text, one.number, one.url)
    });
    events.chain(passages).chain(documents).chain(headlines).collect()
}
