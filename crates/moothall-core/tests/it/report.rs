//! Tests the reports of a consultation: memo, export, files, and a receipt that proves them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::LazyLock;

use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::claims::ClaimChecker;
use moothall_core::consult::{
    Consult, ConsultInput, ConsultOptions, EvidenceSource, GatherRequest, MoveApproval, RoleModels,
    VERDICT_APPROVAL, VerdictMode, VerdictRequest, board, demonstration, settle,
};
use moothall_core::debate::{CallSettings, Debate, DebateResult};
use moothall_core::evidence::{
    CalendarDay, CompanyFacts, CompanyProfile, Evidence, FactSheet, Provenance,
};
use moothall_core::model::{
    CallPurpose, ModelName, ModelReply, StopReason, TokenUsage, UsageBasis,
};
use moothall_core::receipt::{
    EffectRecord, FORMAT, Receipt, ReceiptManifest, ReceiptNotes, verify,
};
use moothall_core::report::{
    ConsultReport, PaperSize, RunFacts, UnsupportedNumber, VerdictSummary, artifacts, export, html,
    markdown, matched_moves, memo, proposed_moves, scores_csv, unsupported_numbers,
};
use moothall_core::verdict::{PanelCheck, VerdictTier};
use moothall_core::view::CostBreakdown;
use moothall_core::{
    Effect, EffectId, EffectResult, MicroUsd, Outcome, RunEventBody, RunVerdict, Step, TextKind,
    Workflow, text,
};
use serde_json::Value;

fn input() -> ConsultInput {
    let model: ModelName = ModelName::DEMO.parse().unwrap();
    let mut committee = board();
    committee.rounds = 2;
    ConsultInput {
        gather: GatherRequest {
            ticker: "HLXI".to_owned(),
            source: EvidenceSource::Filings,
            as_of: None,
            allow_stale: false,
            name: None,
            documents: None,
            news: None,
        },
        committee,
        moves: Some(5),
        models: RoleModels::all(model),
        calls: CallSettings::default(),
        accept_findings: false,
        terms: ConsultOptions::default(),
        parent: None,
    }
}

fn evidence() -> Evidence {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../moothall/recordings/hlxi");
    let bytes = fs_err::read(recordings.join("companyfacts/CIK0009990001.json")).unwrap();
    let facts = CompanyFacts::parse(&bytes).unwrap();
    let sheet = FactSheet::build(&facts, CalendarDay::parse("2026-08-13").unwrap()).unwrap();
    Evidence {
        company: CompanyProfile {
            name: sheet.entity.clone(),
            ticker: Some("HLXI".parse().unwrap()),
            cik: Some(sheet.cik),
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            fictional: true,
        },
        provenance: Provenance::Recorded { name: "HLXI".to_owned() },
        sheet: Some(sheet),
        events: Vec::new(),
        passages: Vec::new(),
        documents: Vec::new(),
        headlines: Vec::new(),
        missing: Vec::new(),
        sources: Vec::new(),
    }
}

/// A run with all its results.
struct Played {
    input: ConsultInput,
    effects: BTreeMap<EffectId, EffectRecord>,
    outcome: Outcome,
}

impl Played {
    fn view(&self, approvals: &[MoveApproval]) -> ConsultReport {
        let answer = |id: &EffectId| self.effects.get(id).map(|record| &record.result);
        ConsultReport::of(&self.input, answer, approvals).unwrap()
    }

    fn receipt(&self, approvals: &[MoveApproval]) -> Receipt {
        let settled = settle(self.outcome.clone(), approvals);
        Receipt {
            manifest: ReceiptManifest {
                receipt: FORMAT,
                workflow: Consult::NAME.to_owned(),
                build: "0.1.0".to_owned(),
                model: "demo".to_owned(),
                demonstration: true,
                models: BTreeMap::new(),
                texts: BTreeMap::new(),
            },
            input: Some(Box::new(self.input.clone())),
            effects: self.effects.clone(),
            approvals: approvals.to_vec(),
            conclusion: Some(Box::new(settled.conclusion)),
            findings: settled.findings,
            notes: ReceiptNotes {
                run_id: "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap(),
                started_at_ms: 1_762_000_000_000,
                timing: BTreeMap::new(),
            },
        }
    }
}

fn replied(text: String) -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text,
        stop: StopReason::End,
        model: "demo".to_owned(),
        usage: TokenUsage { input: 900, output: 120, ..TokenUsage::default() },
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: Some(MicroUsd::ZERO),
    })
}

/// Drives a workflow with the demo model's answers; `change` can replace them.
fn drive(
    machine: &mut dyn Workflow,
    effects: &mut BTreeMap<EffectId, EffectRecord>,
    change: &dyn Fn(&EffectId, String) -> String,
) -> Outcome {
    let Step { perform, .. } = machine.start();
    let mut open: VecDeque<(EffectId, Effect)> = perform.into();
    loop {
        let (id, effect) = open.pop_front().expect("it waits for nothing");
        let result = match &effect {
            Effect::Gather(_) => EffectResult::Gathered(Box::new(evidence())),
            Effect::CallModel(request) => {
                replied(change(&id, demonstration::answer(request).expect("words")))
            }
            Effect::StartChild(ChildRequest::Debate(input)) => {
                let mut debate = Debate::new((**input).clone()).unwrap();
                let outcome = drive(&mut debate, effects, change);
                let isolation = ChildIsolation::none(None);
                EffectResult::ChildEnded(Box::new(ChildEnd { outcome, isolation }))
            }
            Effect::AskPerson(_) => EffectResult::PersonSaid(Box::default()),
            Effect::Execute(_) | Effect::Draft(_) => unreachable!("a consultation runs no program"),
        };
        let request_sha256 = effect.request_hash().unwrap();
        let record = EffectRecord { request_sha256, result: result.clone() };
        effects.insert(id.clone(), record);
        let step = machine.resume(&id, result).unwrap();
        open.extend(step.perform);
        if let Some(outcome) = step.outcome {
            return outcome;
        }
    }
}

fn played_with(change: &dyn Fn(&EffectId, String) -> String) -> Played {
    played_input(input(), change)
}

fn played_input(input: ConsultInput, change: &dyn Fn(&EffectId, String) -> String) -> Played {
    let mut effects = BTreeMap::new();
    let mut consult = Consult::new(input.clone()).unwrap();
    let outcome = drive(&mut consult, &mut effects, change);
    Played { input, effects, outcome }
}

/// Fifteen moves that a panel judges.
fn panel_input() -> ConsultInput {
    let mut input = input();
    input.moves = None;
    input.terms.do_nothing = true;
    let mode = Some(VerdictMode::Full);
    let request = VerdictRequest { mode, ..VerdictRequest::default() };
    input.committee.request_verdict(&request).unwrap();
    input
}

fn judged() -> &'static Played {
    static JUDGED: LazyLock<Played> =
        LazyLock::new(|| played_input(panel_input(), &|_, words| words));
    &JUDGED
}

/// A panel that scores the opposite of what it sees.
fn misjudged() -> &'static Played {
    static MISJUDGED: LazyLock<Played> =
        LazyLock::new(|| played_input(panel_input(), &reversed_card));
    &MISJUDGED
}

fn reversed_card(id: &EffectId, words: String) -> String {
    match id.as_str().contains("/panel/") {
        true => changed_card(&words, |score| 11 - score),
        false => words,
    }
}

fn changed_card(words: &str, change: impl Fn(i64) -> i64) -> String {
    let mut card: Value = serde_json::from_str(words).unwrap();
    for (_, score) in card.as_object_mut().unwrap().iter_mut() {
        if let Some(number) = score.as_i64() {
            *score = Value::from(change(number));
        }
    }
    card.to_string()
}

/// A panel that gives everything to one move, and the lowest scores to planted moves.
fn card_for_one_move(id: &EffectId, words: String) -> String {
    let Some((case, _)) = id.as_str().split_once("/panel/") else { return words };
    // Weakened copies and their originals have no debate.
    let Some((move_id, _)) = case.split_once("/d") else { return words };
    let score = match move_id {
        "m12" => 10,
        planted if planted.starts_with("control") => 1,
        _ => 5,
    };
    changed_card(&words, |_| score)
}

fn played() -> &'static Played {
    static PLAYED: LazyLock<Played> = LazyLock::new(|| played_with(&|_, words| words));
    &PLAYED
}

/// A run in which the analysts write a wrong number and keep it in the rewrite.
fn stubborn() -> &'static Played {
    static STUBBORN: LazyLock<Played> = LazyLock::new(|| played_with(&wrong));
    &STUBBORN
}

fn wrong(id: &EffectId, words: String) -> String {
    let wrong = "Revenue was $9,999 million [F0:Revenue:FY2025]. ";
    match id.as_str() {
        "analyst_1" | "m1/rewrite" => {
            words.replacen("\"thesis\":\"", &format!("\"thesis\":\"{wrong}"), 1)
        }
        _ => words,
    }
}

fn costs() -> CostBreakdown {
    let replied = |purpose| RunEventBody::ModelReplied {
        instead_of: None,
        effect_id: "m1/round-1/critic".parse().unwrap(),
        purpose,
        model: "demo".parse().unwrap(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: Some(MicroUsd::ZERO),
    };
    CostBreakdown::of_events(&[CallPurpose::Analyst, CallPurpose::Critic].map(replied))
}

fn facts() -> RunFacts {
    RunFacts {
        run_id: "019a85c0-2f6e".to_owned(),
        build: "0.1.0".to_owned(),
        started_on: "2026-11-15".to_owned(),
        calls: 77,
        extra_calls: 1,
        usage: TokenUsage { input: 9_000, output: 1_200, ..TokenUsage::default() },
        cost: Some(MicroUsd::ZERO),
        costs: costs(),
        fallbacks: Vec::new(),
        demonstration: true,
    }
}

#[test]
fn every_number_of_a_memo_is_supported_or_marked() {
    for run in [played(), stubborn(), judged(), misjudged()] {
        let memo = markdown(&memo(&run.view(&[]), &facts()));
        let evidence = evidence();
        let checker = ClaimChecker::new((&evidence).into());
        let mut read = 0;
        for line in memo.lines().filter(|line| !line.starts_with("- ⚠")) {
            for claim in checker.check(line) {
                read += 1;
                let fine = !claim.verdict.is_flagged() || line.contains('⚠');
                assert!(fine, "{}: {} in: {line}", claim.printed, claim.verdict);
            }
        }
        // The memo of a panel that failed its controls recommends nothing.
        assert!(read > 10, "only {read} numbers were read");
    }
}

#[test]
fn a_memo_matches_its_snapshot() {
    insta::assert_snapshot!(markdown(&memo(&stubborn().view(&[]), &facts())));
}

#[test]
fn a_memo_with_a_verdict_starts_with_its_headline_and_shows_every_move() {
    let run = judged();
    let text = markdown(&memo(&run.view(&[]), &facts()));
    insta::assert_snapshot!(text);
    for number in 1..=15 {
        assert!(text.contains(&format!("m{number}: ")), "m{number} is missing");
    }
}

#[test]
fn every_report_names_the_unsupported_numbers_that_it_counts() {
    let view = stubborn().view(&[]);
    let found = UnsupportedNumber {
        number: "$9,999 million".to_owned(),
        move_id: "m1".to_owned(),
        section: "Thesis",
        analyst: "analyst_1".to_owned(),
        reason: "wrong value; Revenue:FY2025 = 1214900000".to_owned(),
    };
    assert_eq!(export(&view)["unsupported_numbers"], serde_json::json!([found]));
    assert_eq!(unsupported_numbers(&view), [found]);
    let document = memo(&view, &facts());
    let line = "m1, Thesis (analyst_1): “$9,999 million”, wrong value; Revenue:FY2025 = 1214900000";
    let (text, page) = (markdown(&document), html(&document, PaperSize::A4));
    assert!(text.contains(&format!("- ⚠ {}", line.replace('_', "\\_"))), "{text}");
    assert!(page.contains(line), "{page}");
    for run in [played(), stubborn(), judged()] {
        let view = run.view(&[]);
        let support = view.ranked.iter().flat_map(|ranked| ranked.moves()).map(|one| one.support);
        let left: u32 = support.map(|support| support.total - support.supported).sum();
        assert_eq!(unsupported_numbers(&view).len(), left as usize);
    }
}

#[test]
fn a_memo_lists_ten_unsupported_numbers_and_counts_the_others() {
    let amounts: Vec<String> = (0..11).map(|at| format!("${} million", 9_000 + at)).collect();
    let cited = format!("{} [F0:Revenue:FY2025]. ", amounts.join(", "));
    let view = played_with(&|id, words| match id.as_str() {
        "analyst_1" | "m1/rewrite" => words
            .replacen("\"thesis\":\"", &format!("\"thesis\":\"Revenue was {cited}"), 1)
            .replacen(
                "\"risks\":[\"",
                "\"risks\":[\"Costs were $7,777 million [F0:Revenue:FY2025]. ",
                1,
            ),
        _ => words,
    })
    .view(&[]);
    let numbers = unsupported_numbers(&view);
    let places: Vec<(&str, &str)> =
        numbers.iter().map(|one| (one.number.as_str(), one.section)).collect();
    let mut expected: Vec<(&str, &str)> =
        amounts.iter().map(|amount| (amount.as_str(), "Thesis")).collect();
    expected.push(("$7,777 million", "Risks"));
    assert_eq!(places, expected);
    let text = markdown(&memo(&view, &facts()));
    let (_, list) = text.split_once("### Unsupported numbers\n\n").unwrap();
    let items: Vec<&str> = list.lines().take_while(|line| line.starts_with("- ")).collect();
    assert_eq!(items.len(), 11, "{list}");
    assert!(items[..10].iter().all(|item| item.starts_with("- ⚠ m1, Thesis ")), "{list}");
    assert_eq!(items[10], "- and 2 more [A0: record of this run]");
}

#[test]
fn a_memo_says_that_a_reading_repeats_its_prompt_or_cites_nothing() {
    let lines = |f1: &str| {
        let run = played_with(&|id, words| match id.as_str() {
            "F1" | "F1/rewrite" => f1.to_owned(),
            _ => words,
        });
        let text = markdown(&memo(&run.view(&[]), &facts()));
        let (_, behind) = text.split_once("# What is missing\n").unwrap();
        behind.lines().filter(|line| line.starts_with("- F1: ")).collect::<Vec<_>>().join("\n")
    };
    let echo = include_str!("../../src/consult/prompts/financial.md");
    assert_eq!(
        [lines(echo), lines("The company is in a good position.")],
        ["- F1: the answer repeats the prompt", "- F1: the text cites no evidence"]
    );
    assert!(!markdown(&memo(&played().view(&[]), &facts())).contains("- F1: "));
}

#[test]
fn every_open_objection_of_a_memo_has_its_severity_and_state() {
    for run in [stubborn(), judged()] {
        let view = run.view(&[]);
        let text = markdown(&memo(&view, &facts()));
        let ranked = view.ranked.as_ref().unwrap();
        let mut checked = 0;
        for one in &ranked.other {
            let Some(objection) = one.debated.as_ref().and_then(DebateResult::hardest_open) else {
                continue;
            };
            let (_, table) = text.split_once("## Other moves\n").unwrap();
            let start = format!("| {}: ", one.move_id);
            let row = table.lines().find(|line| line.contains(&start)).unwrap();
            let (severity, state) = (objection.severity.word(), objection.state.word());
            let cell = format!(" | **{severity}, {state}:** {} | ", objection.text);
            assert!(row.contains(&cell), "{cell} is not in {row}");
            checked += 1;
        }
        assert!(checked > 0, "{text}");
    }
}

#[test]
fn a_memo_explains_its_highest_score_and_names_the_decision_makers() {
    let legend = |run: &Played, members: usize, metrics: usize| {
        let mut view = run.view(&[]);
        view.input.committee.decision_makers.truncate(members);
        view.input.committee.metrics.truncate(metrics);
        let text = markdown(&memo(&view, &facts()));
        let paragraphs = first_paragraphs(&text);
        let at = paragraphs.iter().position(|part| part.starts_with("A score is ")).unwrap();
        paragraphs[at..at + 2].join("\n")
    };
    assert_eq!(
        legend(played(), 3, 4),
        "A score is the sum of the points that the decision makers give, at most 3 decision makers \
         × 4 metrics × 10 points = 120 [A0: the committee]. The range is the difference between \
         the highest and the lowest decision maker.\n\
         The decision makers are D1 Growth Strategist, D2 Operational Pragmatist, D3 Stakeholder \
         Value Advocate."
    );
    assert_eq!(
        legend(judged(), 2, 1),
        "A score is the average of the points that the panel gives, on the scale of the decision \
         makers: at most 2 decision makers × 1 metric × 10 points = 20 [A0: the committee].\n\
         The decision makers are D1 Growth Strategist, D2 Operational Pragmatist."
    );
}

#[test]
fn a_memo_of_a_failed_panel_recommends_nothing() {
    let view = misjudged().view(&[]);
    let text = markdown(&memo(&view, &facts()));
    assert!(text.contains("There is no verdict: the panel"), "{text}");
    assert!(text.contains("✗ The panel missed"), "{text}");
    assert!(view.ranked.as_ref().unwrap().recommended.is_empty());
    assert_eq!(view.outcome.as_ref().unwrap().verdict, RunVerdict::NeedsPerson);
    let exported = export(&view);
    assert_eq!(exported["panel_verdict"]["check"], "failed");
    assert_eq!(exported["recommended_moves"], Value::Array(Vec::new()));
}

#[test]
fn moves_that_a_panel_judged_have_no_rank_in_any_report() {
    let run = judged();
    let answer = |id: &EffectId| run.effects.get(id).map(|record| &record.result);
    let mut input = run.input.clone();
    // The built-in heading with one more line.
    let own = "# {{rank}}. {{title}} ({{move}})\n\nNote.\n\n{{content}}\n";
    input.committee.memo.add(TextKind::Memo, "recommended_move", own).unwrap();
    let view = ConsultReport::of(&input, answer, &[]).unwrap();
    let ranked = view.ranked.as_ref().unwrap();
    assert_eq!(ranked.recommended.len(), 3);
    let text = markdown(&memo(&view, &facts()));
    for one in &ranked.recommended {
        let heading = format!("## {} ({})\n", one.title, one.move_id);
        assert!(text.contains(&heading), "{heading} is not in {text}");
    }
    for one in matched_moves(&view, &view) {
        let place = one.after.unwrap();
        assert_eq!((place.rank, place.tier.is_some()), (None, true), "{place:?}");
    }
    let exported = export(&view);
    let ranks = ["recommended_moves", "other_moves"].map(|name| {
        let moves = exported[name].as_array().unwrap();
        moves.iter().map(|one| one["rank"].clone()).collect::<Vec<_>>()
    });
    assert_eq!(ranks.concat(), vec![Value::Null; 15]);
    let csv = scores_csv(&view);
    assert!(csv.lines().skip(1).all(|row| row.starts_with(",m")), "{csv}");
}

/// Changes one card after another by one point: each metric in turn, up and down. Every change makes
/// the receipt invalid.
fn check_changed_cards(step: usize) {
    let run = judged();
    verify(run.receipt(&[]).write().unwrap().as_bytes()).unwrap();
    let cards: Vec<&EffectId> =
        run.effects.keys().filter(|id| id.as_str().contains("/panel/")).collect();
    assert!(cards.len() > 150, "{}", cards.len());
    let metrics = &run.input.committee.metrics;
    for (place, id) in cards.into_iter().step_by(step).enumerate() {
        let metric = metrics[place % metrics.len()].id.as_str();
        let mut receipt = run.receipt(&[]);
        let record = receipt.effects.get_mut(id).unwrap();
        let EffectResult::ModelReplied(reply) = &mut record.result else { panic!("{id}") };
        let mut card: Value = serde_json::from_str(&reply.text).unwrap();
        let changed = match (card[metric].as_i64().unwrap(), (place / metrics.len()) % 2) {
            (10, _) => 9,
            (1, _) => 2,
            (score, 0) => score + 1,
            (score, _) => score - 1,
        };
        card[metric] = Value::from(changed);
        reply.text = card.to_string();
        let is_found = verify(receipt.write().unwrap().as_bytes()).is_err();
        assert!(is_found, "{metric} of {id} is now {changed}");
    }
}

#[test]
fn a_receipt_derives_the_tiers_again_and_finds_a_change_of_one_point() {
    check_changed_cards(17);
}

#[test]
#[ignore = "takes minutes in a debug build; `bash .ci/long verdict` runs it"]
fn a_receipt_finds_a_change_of_one_point_of_every_card() {
    check_changed_cards(1);
}

#[test]
fn a_run_that_stopped_between_stages_shows_the_tiers_of_the_finished_ones() {
    let run = judged();
    let answer = |id: &EffectId| {
        let is_repeat = id.as_str().contains("/d2");
        run.effects.get(id).filter(|_| !is_repeat).map(|record| &record.result)
    };
    let view = ConsultReport::of(&run.input, answer, &[]).unwrap();
    assert!(view.outcome.is_none());
    let summary = VerdictSummary::of(&view).unwrap();
    assert_eq!(summary.progress().as_deref(), Some("stopped after stage 1"));
    assert_eq!(summary.rows().len(), 16);
    let csv = scores_csv(&view);
    assert!(csv.lines().next().unwrap().ends_with("tier,panel_score,low,high,chance_top3,debates"));
    assert_eq!(csv.lines().filter(|line| line.contains(",total,total,")).count(), 15);
}

#[test]
fn a_memo_of_a_paused_run_contains_the_results_so_far() {
    let run = played();
    let answer = |id: &EffectId| {
        let known = id.as_str() != "m2" && id.as_str() != "m3";
        run.effects.get(id).filter(|_| known).map(|record| &record.result)
    };
    let view = ConsultReport::of(&run.input, answer, &[]).unwrap();
    assert!(view.outcome.is_none());
    let text = markdown(&memo(&view, &facts()));
    assert!(text.contains("Not finished"), "{text}");
    assert!(text.contains("| m2: "), "{text}");
    let scored = view.ranked.unwrap();
    let debated: BTreeSet<String> =
        scored.moves().filter(|one| one.debated.is_some()).map(|one| one.move_id.clone()).collect();
    assert_eq!(debated, ["m1", "m4", "m5"].map(str::to_owned).into());
}

#[test]
fn proposed_moves_are_read_without_debates_and_cards() {
    for run in [played(), judged()] {
        let asked = RefCell::new(BTreeSet::new());
        let answer = |id: &EffectId| {
            asked.borrow_mut().insert(id.to_string());
            run.effects.get(id).map(|record| &record.result)
        };
        let moves = proposed_moves(&run.input, answer).unwrap();
        assert_eq!(moves, run.view(&[]).moves().cloned().collect::<Vec<_>>());
        assert!(!moves.is_empty());
        let asked = asked.into_inner();
        let of_debates = asked.iter().find(|id| id.starts_with("m1/") || id.contains("/panel/"));
        assert_eq!(of_debates, None, "{asked:?}");
    }
}

/// Texts that some output format would interpret as markup.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</td></table></style><svg onload=alert(1)>",
    "' onmouseover='alert(1)' x='",
    "[click](https://evil.example) ![x](https://evil.example/x.png) [a][b]",
    "[b]: https://evil.example 'title'",
    "https://evil.example www.evil.example javascript:alert(1)",
    "# head - item | cell | `code` ``` fence **bold** __bold__ ~~gone~~",
    "&#x202e;reversed &lt;b&gt; &copy;",
    "=HYPERLINK(https://evil.example) =cmd|'/C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1 -1 \\u0009=1",
    "\u{202e}txet desrever\u{202c} \u{2066}isolate\u{2069} zero\u{200b}width \u{feff}\u{e0041}tag",
    "#panic() $x$ #import 'x' @ref <label> \\end{document} {{paper}}",
];

/// A run in which all model output, titles first, is hostile.
fn hostile(words: &str) -> ConsultReport {
    let quoted = serde_json::to_string(words).unwrap();
    let inside = quoted[1..quoted.len() - 1].to_owned();
    let run = played_with(&|id, said| match id.as_str() {
        id if id.starts_with("analyst") => {
            ["title", "thesis", "cost", "horizon"].iter().fold(said, |said, field| {
                said.replace(&format!("\"{field}\":\""), &format!("\"{field}\":\"{inside} "))
            })
        }
        id if id.contains("critic") => {
            said.replace("\"text\":\"", &format!("\"text\":\"{inside} "))
        }
        _ => said,
    });
    run.view(&[])
}

fn is_hidden(c: char) -> bool {
    c.is_control() || text::is_unseen(c)
}

/// Hidden characters, except for line breaks.
fn hidden(text: &str) -> Vec<char> {
    text.chars().filter(|c| is_hidden(*c) && !matches!(c, '\n' | '\r')).collect()
}

/// All strings of a JSON value.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(fields) => fields.values().map(texts).collect(),
        _ => String::new(),
    }
}

/// The first and last character of every class of hidden characters, a few per text.
fn hidden_classes() -> Vec<String> {
    let next = |c: char, step: i64| {
        u32::try_from(i64::from(u32::from(c)) + step).ok().and_then(char::from_u32)
    };
    let edge = |c: &char| [-1, 1].iter().any(|step| !next(*c, *step).is_some_and(is_hidden));
    let edges: Vec<char> = ('\0'..=char::MAX).filter(|c| is_hidden(*c)).filter(edge).collect();
    edges.chunks(12).map(|some| some.iter().flat_map(|c| ['x', *c]).collect()).collect()
}

/// The names of all elements of a page and of all attributes that have an effect.
fn elements(page: &str) -> BTreeSet<String> {
    let body = page.split("</style>").nth(1).unwrap();
    let tags = body.split('<').skip(1).map(|rest| rest.split('>').next().unwrap());
    let known = ["class", "id", "href", "viewBox", "aria-hidden"];
    let drawn = ["x", "y", "cx", "cy", "r", "rx", "width", "height"];
    tags.map(|tag| {
        // Attributes come only from the renderer: quotes in text are escaped.
        for (at, _) in tag.match_indices("=\"") {
            let attribute = tag[..at].rsplit(' ').next().unwrap();
            let fine = known.contains(&attribute) || drawn.contains(&attribute);
            assert!(fine, "{attribute} in {tag}");
        }
        tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap_or_default().to_owned()
    })
    .collect()
}

#[test]
fn hostile_text_is_escaped_in_every_report_format() {
    let plain = elements(&html(&memo(&played().view(&[]), &facts()), PaperSize::A4));
    let classes = hidden_classes();
    assert_eq!(classes.len(), 3, "{classes:?}");
    for words in HOSTILE.iter().copied().chain(classes.iter().map(String::as_str)) {
        let view = hostile(words);
        let document = memo(&view, &facts());
        let (text, page, csv) =
            (markdown(&document), html(&document, PaperSize::Letter), scores_csv(&view));
        // The PDF typesetter reads the document as JSON.
        let json = texts(&serde_json::to_value(&document).unwrap());
        for (format, made) in [("md", &text), ("html", &page), ("csv", &csv), ("pdf", &json)] {
            assert_eq!(hidden(made), Vec::<char>::new(), "{format} of {words:?}");
            assert!(made.contains("Write down what stays liquid"), "{format} of {words:?}");
        }
        for forbidden in ["<script", "<img", "<svg", "](https://evil", "![", "`", "://evil", "&#x"]
        {
            assert!(!text.contains(forbidden), "{forbidden} of {words:?} in:\n{text}");
        }
        assert!(!text.lines().any(|line| line.starts_with("[b]:")), "{words:?} defines a link");
        assert_eq!(elements(&page), plain, "{words:?} makes elements");
        for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let fine = link.starts_with('#') || link.starts_with("https://www.sec.gov/Archives/");
            assert!(fine, "{words:?} makes the link {link}");
        }
        for row in csv.lines() {
            let cells = row.split(',').map(|cell| cell.trim_matches('"'));
            for cell in cells.filter(|cell| !cell.starts_with(' ')) {
                let is_formula = cell.starts_with(['=', '+', '@', '-', '|', '%']);
                assert!(!is_formula, "{cell} of {words:?} is a formula in: {row}");
            }
        }
    }
}

#[test]
fn a_memo_links_to_filings_unless_the_company_is_fictional() {
    let links = |fictional: bool| -> BTreeSet<String> {
        let run = played();
        let answer = |id: &EffectId| run.effects.get(id).map(|record| &record.result);
        let real = EffectResult::Gathered(Box::new(Evidence {
            company: CompanyProfile { fictional, ..evidence().company },
            ..evidence()
        }));
        let view = ConsultReport::of(
            &run.input,
            |id| if id.as_str() == "gather" { Some(&real) } else { answer(id) },
            &[],
        )
        .unwrap();
        let document = memo(&view, &facts());
        let (page, text) = (html(&document, PaperSize::A4), markdown(&document));
        let found: BTreeSet<String> = page
            .split("href=\"https://")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect();
        for link in &found {
            assert!(text.contains(link.as_str()), "{link} is not in the Markdown");
        }
        found
    };
    insta::assert_json_snapshot!(links(false));
    assert_eq!(links(true), BTreeSet::new());
}

#[test]
fn the_html_page_and_the_score_table_match_their_snapshots() {
    let view = stubborn().view(&[]);
    insta::assert_snapshot!("memo_html", html(&memo(&view, &facts()), PaperSize::A4));
    insta::assert_snapshot!("scores_csv", scores_csv(&view).replace('\r', ""));
    for (name, run) in [("memo_html_verdict", judged()), ("memo_html_failed_panel", misjudged())] {
        let page = html(&memo(&run.view(&[]), &facts()), PaperSize::A4);
        let (_, body) = page.split_once("<body>").unwrap();
        insta::assert_snapshot!(name, body);
    }
}

/// The text of the HTML page must equal the text of the Markdown.
#[test]
fn html_and_markdown_memos_have_the_same_text() {
    let document = memo(&stubborn().view(&[]), &facts());
    let page = html(&document, PaperSize::A4);
    let text = markdown(&document);
    let body = page.split("<main>").nth(1).unwrap();
    let mut said = String::new();
    for part in body.split('<').skip(1) {
        said.push(' ');
        said.push_str(part.split_once('>').unwrap().1);
    }
    let said = said.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
    let words = |text: &str| -> BTreeSet<String> {
        let is_word = |c: char| c.is_alphanumeric();
        text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(words(&said), words(&text));
}

/// The names of all fields, without those that differ between runs.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect()
        }
        Value::Array(items) => {
            items.first().map_or(Value::Null, |first| Value::Array(vec![shape(first)]))
        }
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        other => other.clone(),
    }
}

#[test]
fn the_export_uses_the_field_names_of_the_source_documents() {
    let run = played();
    let export = export(&run.view(&[]));
    insta::assert_json_snapshot!(shape(&export));
    assert_eq!(export["policy_scores"].as_array().unwrap().len(), 5);
    assert_eq!(export["conversation_logs"][0]["i1"][0]["role"], "critic");
}

#[test]
fn the_files_of_a_run_have_fixed_names() {
    let run = played();
    let files: Vec<String> = artifacts(&run.view(&[])).into_keys().collect();
    insta::assert_json_snapshot!(files);
}

#[test]
fn a_receipt_of_a_consultation_proves_its_ranking() {
    let run = stubborn();
    let text = run.receipt(&[]).write().unwrap();
    let verified = verify(text.as_bytes()).unwrap();
    assert_eq!(verified.verdict, RunVerdict::NeedsPerson);
    let approval = MoveApproval {
        move_id: "m1".to_owned(),
        by: "ada".to_owned(),
        note: String::new(),
        at_ms: 1_762_000_100_000,
    };
    let approved = run.receipt(&[approval]).write().unwrap();
    assert_eq!(verify(approved.as_bytes()).unwrap().verdict, RunVerdict::Pass);
}

/// Recomputing every hash of a receipt is not enough to change what follows from the results.
#[test]
fn a_recomputed_receipt_with_changed_results_is_detected() {
    let run = stubborn();
    let found = |change: &dyn Fn(&mut Receipt)| {
        let mut receipt = run.receipt(&[]);
        change(&mut receipt);
        match verify(receipt.write().unwrap().as_bytes()) {
            Ok(_) => "not found".to_owned(),
            Err(fault) => fault.to_string(),
        }
    };
    let id = |text: &str| -> EffectId { text.parse().unwrap() };
    let edit = |receipt: &mut Receipt, of: &str, edit: &dyn Fn(String) -> String| {
        let record = receipt.effects.get_mut(&id(of)).unwrap();
        if let EffectResult::ModelReplied(reply) = &mut record.result {
            reply.text = edit(reply.text.clone());
        }
    };
    let faults = [
        // A changed score: the debate's outcome no longer follows.
        found(&|receipt| {
            edit(receipt, "m3/score/D2", &|text| text.replace("\"impact\":", "\"impact\":1"))
        }),
        // A changed word in the debate: the next request differs.
        found(&|receipt| edit(receipt, "m3/round-1/critic", &|text| text.replace("the", "teh"))),
        // A result that was not requested.
        found(&|receipt| {
            let copy = receipt.effects[&id("F1")].clone();
            receipt.effects.insert(id("F3"), copy);
        }),
        // A missing result.
        found(&|receipt| drop(receipt.effects.remove(&id("m2/score/D1")))),
        // A changed ranking.
        found(&|receipt| {
            if let Some(moothall_core::Conclusion::Ranked(ranked)) =
                receipt.conclusion.as_deref_mut()
            {
                ranked.recommended.swap(0, 1);
            }
        }),
        // A removed finding.
        found(&|receipt| drop(receipt.findings.pop())),
        // A removed input.
        found(&|receipt| receipt.input = None),
    ];
    insta::assert_json_snapshot!(faults);
}

#[test]
fn a_flipped_byte_anywhere_in_a_consultation_receipt_is_detected() {
    let text = played().receipt(&[]).write().unwrap().into_bytes();
    let step = (text.len() / 60).max(1);
    for at in (0..text.len()).step_by(step) {
        let mut flipped = text.clone();
        flipped[at] ^= 1;
        assert!(verify(&flipped).is_err(), "the flip at byte {at} was not found");
    }
}

/// The paragraphs below the first heading of a memo.
fn first_paragraphs(text: &str) -> Vec<&str> {
    let (_, behind) = text.split_once("## Recommendation\n\n").unwrap_or_else(|| panic!("{text}"));
    behind.split("\n\n").collect()
}

#[test]
fn a_memo_starts_with_the_headline_and_keeps_the_sign_after_an_approval() {
    let sign = "✗ The panel missed 5 of 5 planted controls. No move is recommended; the order below \
                is shown for inspection only.";
    let failed = memo(&misjudged().view(&[]), &facts());
    let text = markdown(&failed);
    let paragraphs = first_paragraphs(&text);
    let opening = "There is no verdict: the panel that scores the moves failed its test.";
    assert_eq!(paragraphs[0], opening);
    assert!(paragraphs[1].contains(sign), "{}", paragraphs[1]);
    assert!(!text.contains("Told apart"), "{text}");
    let page = html(&failed, PaperSize::A4);
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} is not in {page}"));
    assert!(at(opening) < at(sign));

    let approval = MoveApproval {
        move_id: VERDICT_APPROVAL.to_owned(),
        by: "ada".to_owned(),
        note: "agrees with our own review".to_owned(),
        at_ms: 1,
    };
    let text = markdown(&memo(&misjudged().view(&[approval]), &facts()));
    let paragraphs = first_paragraphs(&text);
    assert!(paragraphs[0].contains("a person accepted its verdict: "), "{}", paragraphs[0]);
    let approved = format!("{sign} Approved by ada: agrees with our own review.");
    assert!(paragraphs.iter().any(|part| part.contains(&approved)), "{text}");
}

/// The first words of a memo about its verdict, as Markdown and as an HTML page.
#[test]
fn headlines_and_signs_are_the_same_in_markdown_and_html() {
    let mut cautious = panel_input();
    let models = vec!["demo/cautious".parse().unwrap()];
    let mode = Some(VerdictMode::Panel);
    let request = VerdictRequest { mode, panel_models: models, ..VerdictRequest::default() };
    cautious.committee.request_verdict(&request).unwrap();
    let missed = judged().effects.keys().find_map(|id| id.as_str().split_once("/weakened/panel/"));
    let (missed, _) = missed.unwrap();
    let copy = format!("{missed}/weakened/panel/");
    let doubtful = |id: &EffectId, words: String| match id.as_str().starts_with(&copy) {
        true => changed_card(&words, |_| 10),
        false => words,
    };
    let sign = format!(
        "! The panel missed 1 of 5 planted controls (weakened copy of {missed}). Treat the tiers \
         with care."
    );
    let nothing = "The panel cannot tell doing nothing apart from the best moves: ".to_owned();
    let one =
        "One move leads: Acquire one small firm for a skill that is missing (m12).".to_owned();
    for (run, name, expected) in [
        (played_input(cautious, &|_, words| words), "memo_html_doing_nothing", nothing),
        (played_input(panel_input(), &doubtful), "memo_html_doubtful_panel", sign),
        (played_input(panel_input(), &card_for_one_move), "memo_html_one_move", one),
    ] {
        let document = memo(&run.view(&[]), &facts());
        let text = markdown(&document);
        let opening = first_paragraphs(&text).into_iter().take(3).collect::<Vec<_>>();
        assert!(opening.join("\n").contains(&expected), "{expected} is not in {opening:?}");
        let page = html(&document, PaperSize::A4);
        let (_, behind) = page.split_once(">Recommendation</h").unwrap();
        let (opening, _) = behind.split_once("<table").unwrap();
        assert!(opening.contains(&expected), "{expected} is not in {opening}");
        insta::assert_snapshot!(name, opening);
    }
}

/// No words of a memo order the moves of a tier. The words of models are not checked.
fn check_no_order(text: &str, view: &ConsultReport) {
    let words = |text: &str| -> BTreeSet<String> {
        let is_part = |c: char| c.is_alphanumeric() || c == '#';
        text.to_lowercase().split(|c| !is_part(c)).map(str::to_owned).collect()
    };
    assert!(!words(text).contains("rank"), "{text}");
    for line in text.lines().filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches(['#', ' ']);
        assert!(!heading.starts_with(|c: char| c.is_ascii_digit()), "{line}");
    }
    let (_, behind) = text.split_once("## Recommendation\n").unwrap();
    let mut summary = behind.split("\n## ").next().unwrap().to_owned();
    for one in view.moves() {
        summary = summary.replace(&one.proposal.title, "");
    }
    // It says how well another run would agree.
    let summary = words(&summary.replace("A second run", ""));
    for word in ["first", "second", "third", "1st", "2nd", "3rd", "#1", "#2", "#3"] {
        assert!(!summary.contains(word), "{word}: {text}");
    }
}

/// Six moves, debated in one round, whose panel scores at random around what it sees.
fn noisy(seed: u8) -> Played {
    let mut input = panel_input();
    (input.moves, input.committee.rounds) = (Some(6), 1);
    input.committee.verdict.as_mut().unwrap().again = Vec::new();
    played_input(input, &|id, words| {
        if !id.as_str().contains("/panel/") {
            return words;
        }
        let mut card: Value = serde_json::from_str(&words).unwrap();
        for (at, (_, score)) in (0_u8..).zip(card.as_object_mut().unwrap().iter_mut()) {
            if let Some(number) = score.as_i64() {
                let hash = id
                    .as_str()
                    .bytes()
                    .fold(seed ^ at, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte));
                *score = Value::from((number + i64::from(hash >> 4) % 5 - 2).clamp(1, 10));
            }
        }
        card.to_string()
    })
}

#[test]
fn forty_headlines_name_exactly_the_moves_of_the_lead_in_no_order() {
    let mut sizes = BTreeSet::new();
    let mut named_leads = 0;
    for seed in 0..60 {
        let view = noisy(seed).view(&[]);
        let summary = VerdictSummary::of(&view).unwrap();
        let rows = summary.rows();
        let lead = rows.iter().filter(|row| row.tier == Some(VerdictTier::Lead));
        let lead: BTreeSet<String> = lead.map(|row| row.move_id.clone()).collect();
        let moves: Vec<&String> = lead.iter().filter(|id| *id != "m0").collect();
        let text = markdown(&memo(&view, &facts()));
        let opening = first_paragraphs(&text)[0];
        let named: Vec<String> = opening
            .split('(')
            .skip(1)
            .filter_map(|part| part.split_once(')').map(|(id, _)| id.to_owned()))
            .filter(|id| id.starts_with('m') && id[1..].parse::<u32>().is_ok())
            .collect();
        let check = summary.verdict.tiers.controls.check;
        if check == PanelCheck::Failed {
            assert!(named.is_empty(), "{seed}: {opening}");
            continue;
        }
        assert_eq!(named.iter().collect::<Vec<_>>(), moves, "{seed}: {opening}");
        check_no_order(&text, &view);
        sizes.insert(moves.len());
        named_leads += 1;
        if named_leads == 40 {
            break;
        }
    }
    assert_eq!(named_leads, 40);
    assert!(sizes.len() > 1, "{sizes:?}");
}
