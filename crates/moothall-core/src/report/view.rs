//! Where a consultation stands, as far as its answers go.

use std::collections::BTreeMap;

use super::derive::DeriveFault;
use crate::child::{ChildRequest, Isolation};
use crate::consult::{
    Approval, Consult, ConsultInput, Move, Proceedings, Ranked, outcome_of, settle,
};
use crate::debate::{Debate, Debated, Entry};
use crate::evidence::{Day, Evidence, UserPassage};
use crate::replay::{Known, replay};
use crate::{Conclusion, EffectId, EffectResult, Outcome};

/// A consultation, finished or not.
#[derive(Debug, Clone)]
pub struct ConsultView {
    /// What was asked for.
    pub input: ConsultInput,
    /// Evidence, documents and moves.
    pub proceedings: Proceedings,
    /// The debates that were begun, by move.
    pub debates: BTreeMap<String, DebateView>,
    /// The ranking of what was scored, settled with the approvals; without an outcome it is of what
    /// there is so far.
    pub ranked: Option<Ranked>,
    /// The end, settled with the approvals, where there is one.
    pub outcome: Option<Outcome>,
    /// What persons said.
    pub approvals: Vec<Approval>,
}

/// A debate, finished or not.
#[derive(Debug, Clone)]
pub struct DebateView {
    /// Conversations by name: `i1`, `i2`, `i3`.
    pub logs: BTreeMap<String, Vec<Entry>>,
    /// What it came to, where it came to scores.
    pub debated: Option<Debated>,
    /// Where it ran, where it ended.
    pub isolation: Option<Isolation>,
}

impl ConsultView {
    /// Replays a run as far as its answers go. Hashes are not compared: showing a run is not
    /// verifying it.
    pub fn of<'a>(
        input: &ConsultInput,
        answer: impl Fn(&EffectId) -> Option<&'a EffectResult>,
        approvals: &[Approval],
    ) -> Result<Self, DeriveFault> {
        let known = |id: &EffectId| Some(Known { request_sha256: None, result: answer(id)? });
        let consult = Consult::new(input.clone()).map_err(|error| DeriveFault::input(&error))?;
        let replayed = replay(consult, known)?;
        let mut debates = BTreeMap::new();
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
            debates.insert(id.to_string(), DebateView { logs, debated, isolation });
        }
        let proceedings = replayed.workflow.proceedings().clone();
        let outcome = replayed.outcome.map(|outcome| settle(outcome, approvals));
        let so_far = || settle(outcome_of(input, &proceedings), approvals);
        let ranked = match outcome.clone().unwrap_or_else(so_far).conclusion {
            Conclusion::Ranked(ranked) => Some(*ranked),
            _ => None,
        };
        let (input, approvals) = (input.clone(), approvals.to_vec());
        Ok(Self { input, proceedings, debates, ranked, outcome, approvals })
    }

    /// The evidence, where there is some.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.proceedings.evidence.as_deref()
    }

    /// A move by its id; `m0` is doing nothing.
    pub fn find_move(&self, move_id: &str) -> Option<&Move> {
        self.moves().chain(&self.proceedings.nothing).find(|one| one.move_id == move_id)
    }

    /// The moves as their authors left them, in the order of their numbers.
    pub fn moves(&self) -> impl Iterator<Item = &Move> {
        self.proceedings.moves.values().map(|tried| &tried.proposed)
    }

    /// The day that the evidence is of.
    pub fn as_of(&self) -> Option<Day> {
        self.evidence()?.sheet.as_ref().map(|sheet| sheet.as_of)
    }

    /// The numbers that the agents were given, as text.
    pub fn financial_data(&self) -> Option<String> {
        let invented = self.proceedings.financials.clone();
        invented.or_else(|| Some(self.evidence()?.sheet.as_ref()?.table(u64::MAX)))
    }

    /// The events and passages that the agents were given, as text.
    pub fn news_data(&self) -> Option<String> {
        let invented = self.proceedings.news.clone();
        invented.or_else(|| self.evidence().map(news))
    }
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
