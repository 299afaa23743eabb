//! Tests the reports of a consultation: memo, export, files, and a receipt that proves them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::LazyLock;

use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::claims::ClaimChecker;
use moothall_core::consult::{
    Consult, ConsultInput, ConsultOptions, EvidenceSource, GatherRequest, MoveApproval, RoleModels,
    VERDICT_APPROVAL, VerdictMode, VerdictRequest, board, demonstration, settle,
};
use moothall_core::debate::{CallSettings, Debate};
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
    ConsultReport, PaperSize, RunFacts, VerdictSummary, artifacts, export, html, markdown, memo,
    scores_csv,
};
use moothall_core::verdict::{PanelCheck, VerdictTier};
use moothall_core::view::CostBreakdown;
use moothall_core::{
    Effect, EffectId, EffectResult, MicroUsd, Outcome, RunEventBody, RunVerdict, Step, Workflow,
    text,
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
    if !id.as_str().contains("/panel/") {
        return words;
    }
    let mut card: Value = serde_json::from_str(&words).unwrap();
    for (_, score) in card.as_object_mut().unwrap().iter_mut() {
        if let Some(number) = score.as_i64() {
            *score = Value::from(11 - number);
        }
    }
    card.to_string()
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
fn a_receipt_derives_the_tiers_again_and_finds_a_change_of_one_point() {
    let run = judged();
    verify(run.receipt(&[]).write().unwrap().as_bytes()).unwrap();
    let cards: Vec<&EffectId> =
        run.effects.keys().filter(|id| id.as_str().contains("/panel/")).collect();
    assert!(cards.len() > 150, "{}", cards.len());
    for id in cards.iter().step_by(29) {
        let mut receipt = run.receipt(&[]);
        let record = receipt.effects.get_mut(id).unwrap();
        let EffectResult::ModelReplied(reply) = &mut record.result else { panic!("{id}") };
        let mut card: Value = serde_json::from_str(&reply.text).unwrap();
        let impact = card["impact"].as_i64().unwrap();
        card["impact"] = Value::from(if impact == 10 { 9 } else { impact + 1 });
        reply.text = card.to_string();
        assert!(verify(receipt.write().unwrap().as_bytes()).is_err(), "{id}");
    }
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
    for seed in 0..40 {
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
        // Behind the colon are titles.
        let words = opening.split(':').next().unwrap();
        assert!(!words.contains("first") && !words.contains("second"), "{seed}: {opening}");
        sizes.insert(moves.len());
    }
    assert!(sizes.len() > 1, "{sizes:?}");
}
