use std::collections::{BTreeMap, BTreeSet};

use super::super::support::{day, drive, input, reply, synthetic};
use super::super::{ConsultInput, ConsultResult, RankedMove};
use super::*;
use crate::child::{ChildEnd, ChildIsolation, ChildRequest};
use crate::claims::ClaimChecker;
use crate::debate::{Debate, DebateInput, DebateLogEntry, DebateStance};
use crate::evidence::events::events;
use crate::evidence::passages::passages;
use crate::evidence::{
    CompanyFacts, CompanyProfile, Evidence, FactSheet, FilerSubmissions, Provenance, Ticker,
};
use crate::test_data::{
    APPLE, JPMORGAN, LOGISTIC_PROPERTIES, MICROSOFT, NVIDIA, SNOWFLAKE, Sample, read,
};
use crate::{Effect, EffectResult, Outcome, RunVerdict, Workflow};

/// Evidence of a company in the recorded data.
fn gathered(sample: &Sample, ticker: &str, filings: Option<&str>) -> Evidence {
    let sheet = sample.sheet.clone();
    let events = filings.map(|file| {
        let submissions =
            FilerSubmissions::parse(&read(&format!("submissions/{file}.json"))).unwrap();
        events(submissions.until(day("2026-12-31")))
    });
    Evidence {
        company: CompanyProfile {
            name: sheet.entity.clone(),
            ticker: Some(Ticker::parse(ticker).unwrap()),
            cik: Some(sheet.cik),
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            fictional: false,
        },
        provenance: Provenance::Filings,
        sheet: Some(sheet),
        documents: Vec::new(),
        headlines: Vec::new(),
        missing: if events.is_none() { vec!["the list of filings".to_owned()] } else { Vec::new() },
        events: events.unwrap_or_default(),
        passages: Vec::new(),
        sources: Vec::new(),
    }
}

/// Outcome and transcript of a demo debate.
struct Debated {
    outcome: Outcome,
    logs: BTreeMap<String, Vec<DebateLogEntry>>,
    stances: Vec<DebateStance>,
    calls: usize,
    /// Tokens of all prompts and of all replies.
    used: (u64, u64),
}

fn used(request: &ModelRequest, answer: &str) -> (u64, u64) {
    (request.prompt_tokens_expected(), crate::tokens_expected(answer))
}

fn debate(input: DebateInput) -> Debated {
    let mut machine = Debate::new(input).unwrap();
    let mut open: std::collections::VecDeque<_> = machine.start().perform.into();
    let (mut calls, mut stances, mut sum) = (0, Vec::new(), (0, 0));
    loop {
        let (id, effect) = open.pop_front().expect("it waits for nothing");
        let Effect::CallModel(request) = effect else { panic!("{effect:?}") };
        let text = answer(&request).unwrap_or_else(|| panic!("no words for {id}"));
        assert!(text.contains(MARK), "{id} does not say what it is: {text}");
        if let Ok(turn) = serde_json::from_str::<crate::debate::DecisionMakerTurn>(&text) {
            stances.push(turn.stance);
        }
        calls += 1;
        let (prompt, output) = used(&request, &text);
        sum = (sum.0 + prompt, sum.1 + output);
        let step = machine.resume(&id, EffectResult::ModelReplied(reply(text))).unwrap();
        open.extend(step.perform);
        if let Some(outcome) = step.outcome {
            return Debated { outcome, logs: machine.logs(), stances, calls, used: sum };
        }
    }
}

/// A complete demo run, including its debates.
struct Shown {
    ran: super::super::support::Ran,
    debates: BTreeMap<String, Debated>,
    rewrites: Vec<String>,
}

fn show(input: ConsultInput, evidence: &Evidence) -> Shown {
    let mut debates = BTreeMap::new();
    let ran = drive(
        input,
        |id, effect| match effect {
            Effect::Gather(_) => EffectResult::Gathered(Box::new(evidence.clone())),
            Effect::CallModel(request) => {
                let text = answer(request).unwrap_or_else(|| panic!("no words for {id}"));
                assert!(text.contains(MARK), "{id} does not say what it is: {text}");
                EffectResult::ModelReplied(reply(text))
            }
            Effect::StartChild(ChildRequest::Debate(input)) => {
                let debated = debate((**input).clone());
                let outcome = debated.outcome.clone();
                debates.insert(id.to_string(), debated);
                let isolation = ChildIsolation::none(None);
                EffectResult::ChildEnded(Box::new(ChildEnd { outcome, isolation }))
            }
            Effect::AskPerson(_) => panic!("nobody is asked"),
            Effect::Execute(_) | Effect::Draft(_) => panic!("a consultation runs no program"),
        },
        |_| 0,
    );
    let rewrites = ran.asked.keys().filter(|id| id.ends_with("rewrite")).cloned().collect();
    Shown { ran, debates, rewrites }
}

fn all(ranked: &ConsultResult) -> Vec<&RankedMove> {
    ranked.recommended.iter().chain(&ranked.other).collect()
}

#[track_caller]
fn check(sample: &Sample, ticker: &str, filings: Option<&str>) {
    check_evidence(&gathered(sample, ticker, filings));
}

/// Every number in every text is supported or marked, except for the deliberate error.
#[track_caller]
fn check_evidence(evidence: &Evidence) {
    // Four rounds cover all topics and all kinds of turns.
    let mut input = input();
    input.committee.rounds = 4;
    let shown = show(input, evidence);
    let ranked = shown.ran.ranked();
    assert_eq!(ranked.recommended.len(), 3);
    assert_eq!(ranked.other.len(), 12);
    assert_eq!(shown.ran.outcome.verdict, RunVerdict::Pass, "{:?}", shown.ran.rules());
    let claims: Vec<String> =
        shown.ran.rules().into_iter().filter(|rule| rule.contains(" claims.")).collect();
    assert_eq!(claims, ["Warn claims.projection m8"]);
    assert_eq!(shown.rewrites, ["m4/rewrite", "m8/rewrite"]);
    assert!(shown.debates.values().all(|debate| debate.calls == 25));

    let checker = ClaimChecker::new(evidence.into());
    let mut numbers = 0;
    for (id, debate) in &shown.debates {
        for (thread, entries) in &debate.logs {
            for DebateLogEntry { role, content, round } in entries {
                let claims = checker.check(content);
                numbers += claims.len();
                let bad: Vec<_> =
                    claims.iter().filter(|claim| claim.verdict.is_flagged()).collect();
                assert!(bad.is_empty(), "{id} {thread} {role} {round}: {bad:?}\n{content}");
            }
        }
    }
    assert!(numbers > 400, "{numbers} numbers");

    let titles: BTreeSet<&str> = all(ranked).iter().map(|one| one.title.as_str()).collect();
    assert_eq!(titles.len(), 15);
    let alike = all(ranked).into_iter().filter(|one| !one.similar_to.is_empty()).count();
    assert_eq!(alike, 0);
    let numbers: u32 = all(ranked).iter().map(|one| one.support.total).sum();
    assert!(numbers >= 45, "{numbers} numbers in 15 moves");
}

/// The built-in fictional company, with passages of its report.
#[test]
fn the_demo_runs_on_the_bundled_company() {
    let file = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../moothall/recordings/hlxi/");
        fs_err::read(format!("{folder}{name}")).unwrap()
    };
    let as_of = day("2026-12-31");
    let facts = CompanyFacts::parse(&file("companyfacts/CIK0009990001.json")).unwrap();
    let filings = FilerSubmissions::parse(&file("submissions/CIK0009990001.json")).unwrap();
    let annual = filings.newest_annual(as_of).unwrap();
    let report = format!(
        "archives/9990001/{}/{}",
        annual.accession.digits(),
        annual.primary_document.as_deref().unwrap_or_default()
    );
    let mut evidence = gathered(&APPLE, "HLXI", None);
    evidence.company.fictional = true;
    evidence.missing.clear();
    evidence.sheet = Some(FactSheet::build(&facts, as_of).unwrap());
    evidence.events = events(filings.until(as_of));
    evidence.passages = passages(&file(&report), annual).unwrap();
    assert!(evidence.passages.len() > 3, "{:?}", evidence.passages);
    check_evidence(&evidence);
}

#[test]
fn the_demo_runs_on_a_phone_maker_with_events() {
    check(&APPLE, "AAPL", Some("CIK0000320193"));
}

#[test]
fn the_demo_runs_on_a_chip_maker_with_stock_splits() {
    check(&NVIDIA, "NVDA", Some("CIK0001045810"));
}

#[test]
fn the_demo_runs_on_a_bank() {
    check(&JPMORGAN, "JPM", None);
}

#[test]
fn the_demo_runs_on_a_company_with_losses() {
    check(&SNOWFLAKE, "SNOW", None);
}

#[test]
fn the_demo_runs_on_an_ifrs_filer() {
    check(&LOGISTIC_PROPERTIES, "LPA", None);
}

#[test]
fn the_demo_runs_on_a_software_maker() {
    check(&MICROSOFT, "MSFT", Some("CIK0000789019"));
}

#[test]
fn demo_debates_progress_and_differ_from_each_other() {
    let shown = show(input(), &gathered(&APPLE, "AAPL", None));
    assert!(shown.debates.values().all(|debate| debate.calls == 61));
    let totals: Vec<u32> = all(shown.ran.ranked())
        .iter()
        .map(|one| one.debated.as_ref().unwrap().total_score)
        .collect();
    assert!(totals.iter().collect::<BTreeSet<_>>().len() >= 8, "{totals:?}");
    assert!(totals.iter().all(|total| (40..=105).contains(total)), "{totals:?}");
    let stances: Vec<&DebateStance> =
        shown.debates.values().flat_map(|debate| &debate.stances).collect();
    for stance in [DebateStance::Hold, DebateStance::Partial, DebateStance::Concede] {
        assert!(stances.contains(&&stance), "nobody says {stance:?}");
    }
    let ranked = all(shown.ran.ranked());
    let debates: Vec<_> = ranked.iter().map(|one| one.debated.as_ref().unwrap()).collect();
    assert!(debates.iter().all(|debate| debate.degraded.is_empty()));
    assert!(debates.iter().all(|debate| debate.objections.len() >= 5));
    let states: BTreeSet<_> =
        debates.iter().flat_map(|debate| &debate.objections).map(|one| one.state).collect();
    assert!(states.len() >= 3, "{states:?}");
    let lengths: Vec<usize> = shown
        .debates
        .values()
        .flat_map(|debate| debate.logs.values().flatten())
        .map(|entry| entry.content.len())
        .collect();
    let mean = lengths.iter().sum::<usize>() / lengths.len();
    assert!((350..=750).contains(&mean), "messages have {mean} bytes");
}

#[test]
fn the_demo_runs_on_synthetic_evidence() {
    let mut evidence = gathered(&APPLE, "AAPL", None);
    evidence.provenance = Provenance::Synthetic;
    evidence.sheet = None;
    let shown = show(synthetic(input()), &evidence);
    assert_eq!(shown.ran.ranked().recommended.len(), 3);
    assert_eq!(shown.rewrites, [""; 0]);
}

#[test]
fn the_demo_is_deterministic() {
    let evidence = gathered(&APPLE, "AAPL", None);
    let small = || ConsultInput { moves: Some(2), ..input() };
    assert_eq!(show(small(), &evidence).ran.outcome, show(small(), &evidence).ran.outcome);
}

#[test]
fn a_demo_document_matches_its_snapshot() {
    let shown = show(
        ConsultInput { moves: Some(3), ..input() },
        &gathered(&APPLE, "AAPL", Some("CIK0000320193")),
    );
    let known = shown.ran.consult.state();
    insta::assert_snapshot!("f1", known.f1.as_ref().unwrap().text);
    insta::assert_snapshot!("f2", known.f2.as_ref().unwrap().text);
    insta::assert_snapshot!("m2", known.moves[&2].proposed.markdown());
    insta::assert_snapshot!("m2_i2", crate::debate::transcript(&shown.debates["m2"].logs["i2"]));
}

#[test]
fn the_estimate_range_contains_the_usage_of_the_demo() {
    let evidence = gathered(&APPLE, "AAPL", Some("CIK0000320193"));
    let shown = show(input(), &evidence);
    let estimate = super::super::estimate(&input(), None);
    let in_debates = shown.debates.values().map(|debate| debate.used);
    let asked = shown.ran.asked.values().filter_map(|effect| match effect {
        Effect::CallModel(request) => Some(used(request, &answer(request).unwrap())),
        _ => None,
    });
    let (prompt, output) =
        in_debates.chain(asked).fold((0, 0), |(a, b), (prompt, output)| (a + prompt, b + output));
    let (low, high) = (estimate.low(), estimate.high());
    let told = format!("{prompt} in, {output} out; {low:?} to {high:?}");
    assert!((low.prompt()..=high.prompt()).contains(&prompt), "{told}");
    assert!((low.output..=high.output).contains(&output), "{told}");
}
