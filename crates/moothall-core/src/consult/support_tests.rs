//! Shared test fixtures: a small company with filed numbers, scripted agents, and a driver that
//! performs effects in any order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::child::{ChildEnd, ChildIsolation, ChildRequest};
use crate::debate::{CallSettings, DebateResult, ScoreBasis, Scorecard};
use crate::evidence::{
    CalendarDay, CompanyFacts, CompanyProfile, Evidence, FactSheet, FilingEvent, FilingPassage,
    ItemCode, Provenance, Ticker,
};
use crate::model::{
    CallPurpose, FailureKind, ModelFailure, ModelName, ModelReply, ModelRequest, StopReason,
    TokenUsage, UsageBasis,
};
use crate::{Conclusion, Effect, EffectId, EffectResult, Outcome, RunEvent, Step, Workflow};

/// Filed amounts of three fiscal years, by tag.
const FILED: [(&str, [i64; 3]); 9] = [
    ("Revenues", [1_000, 1_100, 1_250]),
    ("CostOfRevenue", [600, 650, 725]),
    ("OperatingIncomeLoss", [120, 140, 170]),
    ("NetIncomeLoss", [90, 100, 125]),
    ("ResearchAndDevelopmentExpense", [80, 90, 100]),
    ("NetCashProvidedByUsedInOperatingActivities", [130, 150, 180]),
    ("PaymentsToAcquirePropertyPlantAndEquipment", [40, 45, 50]),
    ("Assets", [2_000, 2_200, 2_500]),
    ("StockholdersEquity", [1_200, 1_250, 1_300]),
];

/// The sheet of a small company, in millions of dollars.
pub(crate) fn sheet() -> FactSheet {
    let mut tags = serde_json::Map::new();
    for (tag, amounts) in FILED {
        let rows: Vec<Value> =
            (2023..).zip(amounts).map(|(year, amount)| row(tag, year, amount)).collect();
        tags.insert(tag.to_owned(), json!({"units": {"USD": rows}}));
    }
    let file = json!({"cik": 9990009, "entityName": "Small Works", "facts": {"us-gaap": tags}});
    let facts = CompanyFacts::parse(file.to_string().as_bytes()).unwrap();
    FactSheet::build(&facts, day("2026-03-01")).unwrap()
}

fn row(tag: &str, year: i32, amount: i64) -> Value {
    let mut row = json!({
        "end": format!("{year}-12-31"), "val": amount * 1_000_000,
        "accn": format!("0009990009-{}-000001", year - 1999), "fy": year, "fp": "FY",
        "form": "10-K", "filed": format!("{}-02-15", year + 1),
    });
    if !matches!(tag, "Assets" | "StockholdersEquity") {
        row["start"] = json!(format!("{year}-01-01"));
    }
    row
}

pub(crate) fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

/// All evidence about the small company.
pub(crate) fn evidence() -> Evidence {
    Evidence {
        company: CompanyProfile {
            name: "Small Works".to_owned(),
            ticker: Some(Ticker::parse("SMW").unwrap()),
            cik: None,
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            fictional: false,
        },
        provenance: Provenance::Filings,
        sheet: Some(sheet()),
        events: vec![FilingEvent {
            accession: "0009990009-26-000004".to_owned(),
            form: "8-K".to_owned(),
            filed: day("2026-02-10"),
            report_date: Some(day("2026-02-09")),
            items: ItemCode::list("2.02,9.01"),
        }],
        passages: vec![FilingPassage {
            accession: "0009990009-26-000001".to_owned(),
            form: "10-K".to_owned(),
            item: "1A".to_owned(),
            paragraph: 1,
            text: "We depend on one supplier for a part that is used in all of our products."
                .to_owned(),
        }],
        documents: Vec::new(),
        headlines: Vec::new(),
        missing: Vec::new(),
        sources: Vec::new(),
    }
}

/// Evidence of a run with synthetic evidence.
pub(crate) fn made_up() -> Evidence {
    Evidence {
        provenance: Provenance::Synthetic,
        sheet: None,
        events: Vec::new(),
        passages: Vec::new(),
        ..evidence()
    }
}

pub(crate) fn input() -> ConsultInput {
    ConsultInput {
        gather: GatherRequest {
            ticker: "SMW".to_owned(),
            source: EvidenceSource::Filings,
            as_of: None,
            allow_stale: false,
            name: None,
            documents: None,
            news: None,
        },
        committee: board(),
        moves: None,
        models: RoleModels::all("openai/gpt-5-mini".parse::<ModelName>().unwrap()),
        calls: CallSettings::default(),
        accept_findings: false,
        terms: ConsultOptions::default(),
        parent: None,
    }
}

/// Two analysts with one move each.
pub(crate) fn small_input() -> ConsultInput {
    ConsultInput { moves: Some(2), ..input() }
}

pub(crate) fn synthetic(input: ConsultInput) -> ConsultInput {
    let gather = GatherRequest { source: EvidenceSource::Synthetic, ..input.gather };
    ConsultInput { gather, ..input }
}

pub(crate) fn reply(text: impl Into<String>) -> ModelReply {
    ModelReply {
        fallback: None,
        text: text.into(),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: TokenUsage { input: 10, output: 3, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    }
}

pub(crate) fn said(text: impl Into<String>) -> EffectResult {
    EffectResult::ModelReplied(reply(text))
}

pub(crate) fn failed() -> EffectResult {
    EffectResult::ModelFailed(ModelFailure::new(FailureKind::Overloaded, "as planned"))
}

/// A move with correct numbers and unique words.
pub(crate) fn proposal(title: &str) -> Value {
    let own: Vec<String> = ('a'..='l').map(|letter| format!("{title}{letter}")).collect();
    json!({
        "title": title,
        "thesis": format!("{title} is right because revenue was $1,250 million in FY2025 [F0:Revenue:FY2025]."),
        "actions": [own.join(" ")],
        "what_must_be_true": ["Buyers want it"],
        "evidence": ["F0:Revenue:FY2025"],
        "risks": ["Nobody wants it"],
        "cost": "Little",
        "horizon": "Two years",
        "kill_criteria": ["Nobody asks for it"],
    })
}

/// The same move with another thesis.
pub(crate) fn claiming(title: &str, thesis: &str) -> Value {
    let mut proposal = proposal(title);
    proposal["thesis"] = json!(thesis);
    proposal
}

pub(crate) fn moves(moves: impl IntoIterator<Item = Value>) -> EffectResult {
    said(json!({"moves": moves.into_iter().collect::<Vec<_>>()}).to_string())
}

/// Titles without a common word.
pub(crate) const WORDS: [&str; 15] = [
    "alphabet", "bicycles", "cinnamon", "dolphins", "elevator", "firewood", "gondolas", "hospital",
    "icebergs", "jamboree", "kangaroo", "lemonade", "mountain", "notebook", "orchards",
];

/// Result of a debate that gave every metric the same score.
pub(crate) fn debated(input: &crate::debate::DebateInput, score: u8) -> EffectResult {
    let scores: BTreeMap<String, u8> =
        input.metrics.iter().map(|metric| (metric.id.clone(), score)).collect();
    let card =
        Scorecard { scores, reasoning: "It is so.".to_owned(), basis: ScoreBasis::Structured };
    let cells = u32::try_from(input.metrics.len() * input.decision_makers.len()).unwrap();
    let scorecards: BTreeMap<String, Scorecard> =
        input.decision_makers.iter().map(|seat| (seat.id.clone(), card.clone())).collect();
    ended(Outcome::new(
        Vec::new(),
        Conclusion::Debated(Box::new(DebateResult {
            move_id: input.move_id.clone(),
            rounds: input.rounds,
            rounds_done: input.rounds,
            scorecards,
            total_score: cells * u32::from(score),
            top_score: cells * 10,
            spread: 0,
            objections: Vec::new(),
            stances: BTreeMap::new(),
            degraded: Vec::new(),
            calculations: Vec::new(),
        })),
    ))
}

pub(crate) fn ended(outcome: Outcome) -> EffectResult {
    EffectResult::ChildEnded(Box::new(ChildEnd { outcome, isolation: ChildIsolation::none(None) }))
}

/// Default result of an effect: success.
pub(crate) fn well(id: &EffectId, effect: &Effect) -> EffectResult {
    match effect {
        Effect::Gather(request) if request.source == EvidenceSource::Synthetic => {
            EffectResult::Gathered(Box::new(made_up()))
        }
        Effect::Gather(_) => EffectResult::Gathered(Box::new(evidence())),
        Effect::CallModel(request) => match request.purpose {
            CallPurpose::Analyst => {
                // Each analyst's moves start where those of the previous analyst ended.
                let number: usize = id.as_str()["analyst_".len()..].parse().unwrap();
                let share = share_of(request);
                let from = (number - 1) * share;
                moves((from..from + share).map(|at| proposal(WORDS[at])))
            }
            CallPurpose::ScoreNothing => scores(4),
            CallPurpose::ScoreBaseline => {
                let number: u8 = id.as_str().split('/').next().unwrap()[1..].parse().unwrap();
                scores(1 + (number + 1) % 9)
            }
            // Evidence that a model invented has no ids.
            _ if request.blocks().any(|block| block.text.contains("[F0:")) => {
                said("All of it is as the table says [F0:Revenue:FY2025].")
            }
            _ => said("All of it is as the table says."),
        },
        Effect::StartChild(ChildRequest::Debate(input)) => {
            let number: u8 = input.move_id[1..].parse().unwrap();
            debated(input, 1 + number % 9)
        }
        Effect::AskPerson(_) => EffectResult::PersonSaid(Box::default()),
        Effect::Execute(_) | Effect::Draft(_) => panic!("a consultation runs no program"),
    }
}

/// A decision maker's reply that gives every metric of the board the same score.
pub(crate) fn scores(score: u8) -> EffectResult {
    let mut scores = json!({"reasoning": "It is so."});
    for metric in board().metrics {
        scores[&metric.id] = json!(score);
    }
    said(
        json!({"message": "", "stance": "hold", "answers": [], "conceded": [], "scores": scores})
            .to_string(),
    )
}

fn share_of(request: &ModelRequest) -> usize {
    let persona = &request.system[1].text;
    let (_, behind) = persona.split_once("exactly ").unwrap();
    behind.split(' ').next().unwrap().parse().unwrap()
}

/// Result of a test run.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<RunEvent>,
    pub(crate) asked: BTreeMap<String, Effect>,
    pub(crate) consult: Consult,
}

impl Ran {
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.key.as_str()).collect()
    }

    pub(crate) fn ranked(&self) -> &ConsultResult {
        match &self.outcome.conclusion {
            Conclusion::Ranked(ranked) => ranked,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn rules(&self) -> Vec<String> {
        let findings = self.outcome.findings.iter();
        findings
            .map(|found| format!("{:?} {} {}", found.severity, found.rule, found.subject))
            .collect()
    }

    pub(crate) fn question(&self, id: &str) -> &ModelRequest {
        match self.asked.get(id) {
            Some(Effect::CallModel(request)) => request,
            other => panic!("{id}: {other:?}"),
        }
    }

    pub(crate) fn debate(&self, id: &str) -> &crate::debate::DebateInput {
        match self.asked.get(id) {
            Some(Effect::StartChild(ChildRequest::Debate(input))) => input,
            other => panic!("{id}: {other:?}"),
        }
    }
}

/// Runs a consultation. `answer` returns the result of an effect; `next` picks the pending effect
/// to complete next.
pub(crate) fn drive(
    input: ConsultInput,
    mut answer: impl FnMut(&EffectId, &Effect) -> EffectResult,
    mut next: impl FnMut(usize) -> usize,
) -> Ran {
    let mut consult = Consult::new(input).unwrap();
    let (mut events, mut asked) = (Vec::new(), BTreeMap::new());
    let mut open: Vec<(EffectId, Effect)> = Vec::new();
    let mut step = consult.start();
    loop {
        let Step { perform, publish, outcome } = step;
        events.extend(publish);
        for (id, effect) in perform {
            let before = asked.insert(id.to_string(), effect.clone());
            assert!(before.is_none(), "{id} is asked for twice");
            open.push((id, effect));
        }
        if let Some(outcome) = outcome {
            assert!(open.is_empty(), "it ends while {open:?} is open");
            return Ran { outcome, events, asked, consult };
        }
        assert!(!open.is_empty(), "it waits for nothing");
        let (id, effect) = open.remove(next(open.len()) % open.len());
        step = consult.resume(&id, answer(&id, &effect)).unwrap();
    }
}

/// Runs a consultation in which all effects succeed except the given ones.
pub(crate) fn run(input: ConsultInput, other: &[(&str, EffectResult)]) -> Ran {
    drive(
        input,
        |id, effect| {
            let told = other.iter().find(|(name, _)| *name == id.as_str());
            told.map_or_else(|| well(id, effect), |(_, result)| result.clone())
        },
        |_| 0,
    )
}
