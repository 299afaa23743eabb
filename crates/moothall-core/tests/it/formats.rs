//! Journals, event streams and receipts outlive the build that wrote them. A changed snapshot here
//! is a changed file format and needs a migration note in CHANGELOG.md.

use std::collections::BTreeMap;

use insta::assert_json_snapshot;
use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::claims::CalculatedValue;
use moothall_core::consult::committee::{
    CommitteeMember, InferenceAgents, MetricLevel, ScoreMetric,
};
use moothall_core::consult::{
    Committee, ConsultInput, ConsultOptions, ConsultResult, EvidenceSource, ForkParent, ForkPoint,
    GatherFailure, GatherFailureKind, GatherRequest, Move, MoveReview, MoveReviewDecision,
    Proposal, RankedMove, ReviewAction, ReviewChange, ReviewQuestion, RoleModels, SupportCount,
};
use moothall_core::debate::{
    BaselineScores, CalculationOutcome, CalculationResult, CallSettings, DebateDegradation,
    DebateInput, DebateResult, DebateStance, Objection, ObjectionSeverity, ObjectionState,
    ScoreBasis, Scorecard,
};
use moothall_core::evidence::{
    CalendarDay, CompanyProfile, Evidence, FilingEvent, FilingPassage, ItemCode, Provenance,
    SourceFile,
};
use moothall_core::model::{
    CacheDuration, CallPurpose, FailureKind, ModelFailure, ModelName, ModelReply, ModelRequest,
    OutputSchema, PromptBlock, PromptTurn, ReasoningEffort, StopReason, Temperature, TokenUsage,
    UsageBasis,
};
use moothall_core::program::{
    AnswerFormat, OutputExpectation, ProgramContract, ProgramInput, ProgramResult, ProgramRun,
};
use moothall_core::sandbox::{
    CapturedOutput, ExecuteRequest, ExecutionExit, FileRef, GuestPath, IsolationClass, LimitName,
    SandboxAttestation, SandboxExecution, SandboxFailure, SandboxFailureKind, SandboxLimits,
    SelfTest,
};
use moothall_core::{
    Conclusion, Effect, EffectId, EffectResult, FindingSeverity, MicroUsd, Outcome, PauseReason,
    RoundStatus, RuleId, RunEvent, RunEventBody, RunFinding, RunVerdict, SequencedEvent, Sha256Hex,
    StageStatus, Step,
};
use serde::de::DeserializeOwned;
use serde_json::json;

pub(crate) fn model() -> ModelName {
    "anthropic/claude-haiku-5-5".parse().unwrap()
}

fn effect_id() -> EffectId {
    "answer/ask-2".parse().unwrap()
}

fn request() -> ModelRequest {
    ModelRequest {
        fallbacks: Vec::new(),
        model: model(),
        purpose: CallPurpose::Ask,
        system: vec![
            PromptBlock::new("Evidence.").cached(CacheDuration::OneHour),
            PromptBlock::new("You are terse."),
        ],
        turns: vec![
            PromptTurn::user("How many?"),
            PromptTurn::assistant("Three."),
            PromptTurn {
                block: PromptBlock::new("Sure?").cached(CacheDuration::FiveMinutes),
                ..PromptTurn::user("")
            },
        ],
        max_tokens: 64,
        temperature: Temperature::from_thousandths(700),
        effort: Some(ReasoningEffort::Low),
        schema: Some(
            OutputSchema::parse(
                "answer",
                r#"{"type":"object","properties":{"count":{"type":"integer"}}}"#,
            )
            .unwrap(),
        ),
        timeout_ms: Some(30_000),
    }
}

fn usage() -> TokenUsage {
    TokenUsage {
        input: 12,
        cache_read: 4096,
        cache_write_5m: 300,
        cache_write_1h: 20,
        output: 41,
        reasoning: 7,
    }
}

fn reply() -> ModelReply {
    ModelReply {
        fallback: None,
        text: r#"{"count":3}"#.to_owned(),
        stop: StopReason::End,
        model: "claude-haiku-5-5".to_owned(),
        usage: usage(),
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: Some(MicroUsd::new(125)),
    }
}

fn failure() -> ModelFailure {
    ModelFailure::new(FailureKind::RateLimited, "slow down").with_status(429)
}

fn finding() -> RunFinding {
    RunFinding {
        rule: RuleId::new("output.schema"),
        severity: FindingSeverity::Block,
        subject: effect_id().to_string(),
        message: "count is missing".to_owned(),
        evidence: vec!["line 1".to_owned()],
    }
}

fn files(name: &str) -> BTreeMap<GuestPath, FileRef> {
    let file = FileRef { sha256: Sha256Hex::of(b"file"), bytes: 4 };
    BTreeMap::from([(name.parse().unwrap(), file)])
}

fn execute_request() -> ExecuteRequest {
    ExecuteRequest {
        image: "python".to_owned(),
        sources: BTreeMap::from([("main.py".parse().unwrap(), "print(1)".to_owned())]),
        inputs: files("sales.csv"),
        argv: vec!["python3".to_owned(), "main.py".to_owned()],
        env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        stdin: "3".to_owned(),
        limits: SandboxLimits::default(),
        collect: true,
    }
}

fn execution() -> SandboxExecution {
    SandboxExecution {
        exit: ExecutionExit::Exited { code: 1 },
        stdout: CapturedOutput { text: "half".to_owned(), truncated: true },
        stderr: CapturedOutput { text: "no".to_owned(), truncated: false },
        files: files("out.png"),
        left_behind: vec!["a: a link".to_owned()],
        attestation: SandboxAttestation {
            engine: "microvm".to_owned(),
            engine_version: "11.0".to_owned(),
            class: IsolationClass::EmulatedVm,
            image: "python".to_owned(),
            image_sha256: Sha256Hex::of(b"image"),
            guest_sha256: Sha256Hex::of(b"guest"),
            limits: SandboxLimits::default(),
            held_by: BTreeMap::from([(LimitName::Wall, "host".to_owned())]),
            self_tests: vec![SelfTest { rule: RuleId::new("sandbox.no-network"), held: true }],
        },
    }
}

fn attempted() -> ProgramResult {
    ProgramResult {
        attempts: 2,
        code_from: Some("attempt-2/generate".parse().unwrap()),
        code_sha256: Some(Sha256Hex::of(b"print(1)")),
        exit: Some(ExecutionExit::Exited { code: 0 }),
        class: Some(IsolationClass::HardwareVm),
        stdout: CapturedOutput { text: "1\n".to_owned(), truncated: false },
        stderr: CapturedOutput::default(),
        files: files("out.png"),
    }
}

fn gather_request() -> GatherRequest {
    GatherRequest {
        ticker: "MOOT".to_owned(),
        source: EvidenceSource::Filings,
        as_of: Some(day("2026-01-31")),
        allow_stale: true,
        name: None,
        documents: None,
        news: None,
    }
}

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn evidence() -> Evidence {
    Evidence {
        company: CompanyProfile {
            name: "Moot Inc.".to_owned(),
            ticker: Some("MOOT".parse().unwrap()),
            cik: Some(serde_json::from_value(json!(320_193)).unwrap()),
            industry: Some("Halls".to_owned()),
            fiscal_year_end: Some("09-26".to_owned()),
            former_names: vec!["Moo Inc.".to_owned()],
            fictional: true,
        },
        provenance: Provenance::Recorded { name: "halls".to_owned() },
        sheet: None,
        events: vec![FilingEvent {
            accession: "0000000001-26-000001".to_owned(),
            form: "8-K".to_owned(),
            filed: day("2026-01-30"),
            report_date: Some(day("2026-01-29")),
            items: ItemCode::list("2.02,9.01"),
        }],
        passages: vec![FilingPassage {
            accession: "0000000001-25-000009".to_owned(),
            form: "10-K".to_owned(),
            item: "1A".to_owned(),
            paragraph: 3,
            text: "Halls may stand empty.".to_owned(),
        }],
        documents: Vec::new(),
        headlines: Vec::new(),
        missing: vec!["no facts".to_owned()],
        sources: vec![SourceFile {
            url: "recording:facts".to_owned(),
            sha256: Sha256Hex::of(b"facts"),
            bytes: 5,
        }],
    }
}

fn seat(id: &str) -> CommitteeMember {
    CommitteeMember {
        id: id.to_owned(),
        name: "A member".to_owned(),
        lens: "Looks twice.".to_owned(),
        model: None,
    }
}

fn metric() -> ScoreMetric {
    ScoreMetric {
        id: "risk".to_owned(),
        name: "Risk".to_owned(),
        asks: "How safe is it?".to_owned(),
        levels: vec![MetricLevel { from: 1, means: "Not at all.".to_owned() }],
    }
}

fn debate_input() -> DebateInput {
    DebateInput {
        move_id: "m7".to_owned(),
        company: "Moot Inc.".to_owned(),
        dossier: "Evidence.".into(),
        move_markdown: "# m7: Build".into(),
        machine_findings: vec!["9% is not cited".to_owned()],
        rounds: 2,
        critic: seat("critic"),
        decision_makers: vec![seat("D1")],
        metrics: vec![metric()],
        critic_model: model().into(),
        decision_maker_model: model().into(),
        calls: calls(),
        prompts: moothall_core::OwnTexts::default(),
        scoring: moothall_core::debate::DebateScoring::default(),
        calculations: None,
    }
}

fn calls() -> CallSettings {
    CallSettings {
        temperature: Temperature::from_thousandths(700),
        timeout_ms: Some(30_000),
        ..CallSettings::default()
    }
}

fn objection() -> Objection {
    Objection {
        id: "D1-O2".to_owned(),
        severity: ObjectionSeverity::Fatal,
        text: "Nobody comes.".to_owned(),
        evidence: vec!["F0:Revenue:FY2025".to_owned()],
        round: 2,
        state: ObjectionState::Open,
        open_in: vec!["D1".to_owned()],
        reply: None,
    }
}

fn degradations() -> Vec<DebateDegradation> {
    let name = || "D1".to_owned();
    vec![
        DebateDegradation::EndedEarly { thread: name(), after_round: 1, why: "server".to_owned() },
        DebateDegradation::Unstructured { thread: "opening".to_owned(), messages: 2 },
        DebateDegradation::ScoreFromText { decision_maker: name() },
        DebateDegradation::NeutralScore { decision_maker: name() },
        DebateDegradation::Truncated { chain: "critic-D1".to_owned() },
    ]
}

fn debated() -> DebateResult {
    DebateResult {
        move_id: "m7".to_owned(),
        rounds: 2,
        rounds_done: 1,
        scorecards: BTreeMap::from([(
            "D1".to_owned(),
            Scorecard {
                scores: BTreeMap::from([("risk".to_owned(), 6)]),
                reasoning: "It holds.".to_owned(),
                basis: ScoreBasis::FromText,
            },
        )]),
        total_score: 6,
        top_score: 10,
        spread: 0,
        objections: vec![objection()],
        stances: BTreeMap::from([("D1".to_owned(), DebateStance::Partial)]),
        degraded: degradations(),
        calculations: Vec::new(),
    }
}

fn ranked() -> ConsultResult {
    let best = RankedMove {
        move_id: "m7".to_owned(),
        title: "Build".to_owned(),
        rank: Some(1),
        debated: Some(debated()),
        isolation: Some(IsolationClass::None),
        findings: vec![finding()],
        similar_to: ["m8".to_owned()].into(),
        support: SupportCount { supported: 2, total: 3 },
        said: None,
    };
    let last = RankedMove {
        move_id: "m8".to_owned(),
        title: "Wait".to_owned(),
        rank: None,
        debated: None,
        isolation: None,
        findings: Vec::new(),
        similar_to: [].into(),
        support: SupportCount::default(),
        said: None,
    };
    ConsultResult {
        company: "Moot Inc.".to_owned(),
        sheet_sha256: Some(Sha256Hex::of(b"sheet")),
        recommended: vec![best],
        other: vec![last],
        missing: vec!["analyst_2 failed".to_owned()],
        do_nothing: None,
        baseline: Vec::new(),
        verdict: None,
    }
}

/// Every snapshot must also deserialize to the same value.
#[track_caller]
pub(crate) fn round_trip<T: serde::Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    value: &T,
) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
}

#[test]
fn effects_keep_their_serialized_form() {
    let effect = Effect::CallModel(Box::new(request()));
    round_trip(&effect);
    assert_json_snapshot!(effect);
}

#[test]
fn request_hashes_are_stable() {
    insta::assert_snapshot!(Effect::CallModel(Box::new(request())).request_hash().unwrap(), @"025a7a9742667dd216eeb3535f76e60ce6e8b1b47033973db038bd62aa96d43d");
}

#[test]
fn effect_results_keep_their_serialized_form() {
    let results = [EffectResult::ModelReplied(reply()), EffectResult::ModelFailed(failure())];
    results.iter().for_each(round_trip);
    assert_json_snapshot!(results);
}

#[test]
fn events_keep_their_serialized_form() {
    let id = effect_id();
    let bodies = [
        RunEventBody::RunStarted { workflow: "ask".to_owned() },
        RunEventBody::ModelReplied {
            instead_of: None,
            effect_id: id.clone(),
            purpose: CallPurpose::Ask,
            model: model(),
            usage: usage(),
            usage_basis: UsageBasis::Estimated,
            cost_micro_usd: None,
        },
        RunEventBody::ModelFailed {
            effect_id: id.clone(),
            purpose: CallPurpose::Probe,
            model: model(),
            kind: FailureKind::Overloaded,
            detail: "no room".to_owned(),
        },
        RunEventBody::OutputRejected {
            effect_id: id,
            problems: vec!["count is missing".to_owned()],
        },
        RunEventBody::RunPaused {
            number: 2,
            reason: PauseReason::Budget,
            detail: "more money".to_owned(),
        },
        RunEventBody::RunFinished { verdict: RunVerdict::NeedsPerson },
        RunEventBody::RunFailed {
            detail: "no key".to_owned(),
            model_failure: Some(FailureKind::Auth),
        },
        RunEventBody::RunCancelled,
    ];
    let events: Vec<_> = (1..)
        .zip(bodies)
        .map(|(seq, body)| SequencedEvent {
            run_id: "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap(),
            seq,
            event: match body.effect_id().cloned() {
                Some(id) => RunEvent::about(&id, body),
                None => RunEvent::of_run(body),
            },
        })
        .collect();
    events.iter().for_each(round_trip);
    assert_json_snapshot!(events);
}

#[test]
fn executions_keep_their_serialized_form() {
    let effect = Effect::Execute(Box::new(execute_request()));
    let failure = SandboxFailure { kind: SandboxFailureKind::Lost, detail: "no answer".to_owned() };
    let results =
        [EffectResult::Executed(Box::new(execution())), EffectResult::NotExecuted(failure)];
    round_trip(&effect);
    results.iter().for_each(round_trip);
    let request_sha256 = effect.request_hash().unwrap();
    assert_json_snapshot!(
        json!({"effect": effect, "request_sha256": request_sha256, "results": results})
    );
    let exits = [
        ExecutionExit::Exited { code: 0 },
        ExecutionExit::Signalled { signal: 9 },
        ExecutionExit::TimedOut,
        ExecutionExit::OutOfMemory,
        ExecutionExit::SandboxDied { detail: "gone".to_owned() },
    ];
    exits.iter().for_each(round_trip);
    assert_json_snapshot!("every_exit_keeps_its_form", exits);
}

#[test]
fn program_events_keep_their_serialized_form() {
    let id = |text: &str| -> EffectId { text.parse().unwrap() };
    let bodies = [
        RunEventBody::AttemptStarted { effect_id: id("attempt-1/generate"), attempt: 1, of: 3 },
        RunEventBody::CodeGenerated {
            effect_id: id("attempt-1/generate/ask-2"),
            attempt: 1,
            code_sha256: Sha256Hex::of(b"print(1)"),
            code_lines: 1,
            dependencies: vec!["numpy".to_owned()],
            confidence_permille: Some(900),
        },
        RunEventBody::Executed {
            effect_id: id("attempt-1/execute"),
            attempt: 1,
            exit: ExecutionExit::SandboxDied { detail: "gone".to_owned() },
            engine: "microvm".to_owned(),
            class: IsolationClass::EmulatedVm,
            stdout_bytes: 4,
            stderr_bytes: 2,
            files: files("out.png"),
        },
        RunEventBody::Judged {
            effect_id: id("attempt-1/execute"),
            attempt: 1,
            findings: vec![finding()],
        },
        RunEventBody::Critiqued {
            effect_id: id("attempt-1/critique"),
            attempt: 1,
            text: "Count them.".to_owned(),
        },
    ];
    let events = bodies.map(|body| RunEvent::about(&body.effect_id().unwrap().clone(), body));
    events.iter().for_each(round_trip);
    assert_json_snapshot!(events);
}

#[test]
fn program_inputs_keep_their_serialized_form() {
    let usual = ProgramInput::new("Dance", model(), "python");
    let full = ProgramInput {
        critic: Some("openai/gpt-5-mini".parse().unwrap()),
        answer_form: AnswerFormat::Fenced,
        timeout_ms: Some(30_000),
        packages: vec!["numpy".to_owned()],
        inputs: files("sales.csv"),
        contract: ProgramContract {
            expect: Some(OutputExpectation::Text { text: "55".to_owned() }),
            check: Some("assert True".to_owned()),
            outputs: vec!["out.png".parse().unwrap()],
        },
        ..usual.clone()
    };
    let expectations = [
        OutputExpectation::Schema { schema: OutputSchema::parse("s", "{}").unwrap() },
        OutputExpectation::Pattern { pattern: "^a+$".parse().unwrap() },
    ];
    [&usual, &full].into_iter().for_each(round_trip);
    expectations.iter().for_each(round_trip);
    assert_json_snapshot!(json!({
        "workflow": ProgramRun::NAME,
        "usual": usual,
        "full": full,
        "expectations": expectations,
    }));
    // Missing fields have their defaults, and no revision means the first.
    let least = json!({"task": "Dance", "model": model(), "image": "python"});
    let first = ProgramInput { prompts: moothall_core::PromptRevision::V1, ..usual };
    assert_eq!(serde_json::from_value::<ProgramInput>(least).unwrap(), first);
}

#[test]
fn program_conclusions_keep_their_serialized_form() {
    let conclusions = [
        Conclusion::Ran(Box::new(attempted())),
        Conclusion::Passed(Box::new(attempted())),
        Conclusion::Questioned(Box::new(attempted())),
        Conclusion::NotPassed(Box::new(ProgramResult {
            code_from: None,
            code_sha256: None,
            exit: None,
            class: None,
            files: BTreeMap::new(),
            ..attempted()
        })),
        Conclusion::NotExecuted { kind: SandboxFailureKind::NoEngine },
    ];
    conclusions.iter().for_each(round_trip);
    assert_json_snapshot!(conclusions);
}

#[test]
fn consultation_inputs_keep_their_serialized_form() {
    let input = ConsultInput {
        gather: gather_request(),
        committee: Committee {
            name: "pair".to_owned(),
            title: "Two who disagree".to_owned(),
            rounds: 2,
            moves_per_analyst: 1,
            analysts: vec![seat("analyst_1")],
            critic: seat("critic"),
            decision_makers: vec![seat("D1")],
            metrics: vec![metric()],
            panel: Vec::new(),
            verdict: None,
            inference: InferenceAgents::default(),
            prompts: moothall_core::OwnTexts::default(),
            memo: moothall_core::OwnTexts::default(),
        },
        moves: Some(1),
        models: RoleModels {
            default: model().into(),
            inference: Some(model().into()),
            analyst: Some(model().into()),
            critic: Some(model().into()),
            decision_maker: Some(model().into()),
        },
        calls: calls(),
        accept_findings: true,
        terms: ConsultOptions::default(),
        parent: None,
    };
    round_trip(&input);
    assert_json_snapshot!(input);
    let terms = ConsultOptions {
        brief: Some("Shall we build?".to_owned()),
        moves: vec![proposal()],
        pause_after_moves: true,
        do_nothing: true,
        baseline: true,
        calculations: false,
    };
    round_trip(&terms);
    assert_json_snapshot!("terms", terms);
    let what = ReviewAction::Edit { move_id: "m5".to_owned(), proposal: proposal() };
    let changes = vec![ReviewChange { by: "Ada".to_owned(), at_ms: 1_763_200_000_000, what }];
    let parent = ForkParent {
        run: "01a1dd22-30af-720e-bd62-e1beb0920949".parse().unwrap(),
        from: ForkPoint::Debates,
        journal_sha256: Sha256Hex::of(b"journal"),
        review: Some(MoveReview { changes }),
    };
    round_trip(&parent);
    assert_json_snapshot!("fork_parent", parent);
}

#[test]
fn review_questions_and_answers_keep_their_serialized_form() {
    let one =
        Move { move_id: "m7".to_owned(), analyst: "analyst_3".to_owned(), proposal: proposal() };
    let question = Effect::AskPerson(Box::new(ReviewQuestion::ReviewMoves { moves: vec![one] }));
    let (by, at_ms) = ("Ada".to_owned(), 1_763_200_000_000);
    let whats = [
        ReviewAction::Veto { move_id: "m3".to_owned(), why: "We tried it.".to_owned() },
        ReviewAction::Edit { move_id: "m5".to_owned(), proposal: proposal() },
        ReviewAction::Add { proposal: proposal() },
    ];
    let changes = whats.map(|what| ReviewChange { by: by.clone(), at_ms, what }).into();
    let said = EffectResult::PersonSaid(Box::new(MoveReview { changes }));
    let id: EffectId = "moves/review".parse().unwrap();
    let event = RunEvent::about(
        &id,
        RunEventBody::MovesReviewed {
            effect_id: id.clone(),
            vetoed: vec!["m3".to_owned()],
            edited: vec!["m5".to_owned()],
            added: vec!["m16".to_owned()],
            titles: BTreeMap::from([("m16".to_owned(), "Sell the yards".to_owned())]),
        },
    );
    let words = [
        MoveReviewDecision::Vetoed { by: by.clone(), why: "We tried it.".to_owned() },
        MoveReviewDecision::Edited { by: by.clone() },
        MoveReviewDecision::Added { by },
    ];
    let debated = debated();
    let alone = BaselineScores {
        move_id: "m0".to_owned(),
        scorecards: debated.scorecards,
        total_score: 6,
        top_score: 10,
        spread: 0,
    };
    round_trip(&question);
    round_trip(&said);
    round_trip(&event);
    words.iter().for_each(round_trip);
    let last = words[0].clone();
    let mut ranked = ranked();
    ranked.other[0].said = Some(last);
    ranked.do_nothing = Some(alone.clone());
    ranked.baseline = vec![alone];
    let ranked = Conclusion::Ranked(Box::new(ranked));
    round_trip(&ranked);
    assert_json_snapshot!(json!({
        "question": question,
        "request_sha256": question.request_hash().unwrap(),
        "said": said,
        "event": event,
        "last_words": words,
        "ranked": ranked,
    }));
}

fn proposal() -> Proposal {
    Proposal {
        title: "Build".to_owned(),
        thesis: "It pays.".to_owned(),
        actions: vec!["Buy land.".to_owned()],
        what_must_be_true: vec!["Land is cheap.".to_owned()],
        evidence: vec!["F0:Revenue:FY2025".to_owned()],
        risks: vec!["Water.".to_owned()],
        cost: "Little.".to_owned(),
        horizon: "Two years.".to_owned(),
        kill_criteria: vec!["No permit.".to_owned()],
    }
}

#[test]
fn consultation_effects_keep_their_serialized_form() {
    let effects = [
        Effect::Gather(Box::new(gather_request())),
        Effect::StartChild(ChildRequest::Debate(Box::new(debate_input()))),
    ];
    let end = |isolation| {
        let conclusion = Conclusion::Debated(Box::new(debated()));
        let outcome = Outcome::new(vec![finding()], conclusion);
        EffectResult::ChildEnded(Box::new(ChildEnd { outcome, isolation }))
    };
    let walls = ChildIsolation {
        class: IsolationClass::EmulatedVm,
        fallback: None,
        attestation: Some(Box::new(execution().attestation)),
        logs: BTreeMap::from([("i1.json".to_owned(), Sha256Hex::of(b"log"))]),
    };
    let results = [
        EffectResult::Gathered(Box::new(evidence())),
        EffectResult::NotGathered(GatherFailure {
            kind: GatherFailureKind::Stale,
            detail: "too old".to_owned(),
        }),
        end(walls),
        end(ChildIsolation::none(Some("no engine".to_owned()))),
    ];
    effects.iter().for_each(round_trip);
    results.iter().for_each(round_trip);
    let request_sha256 = effects.each_ref().map(|effect| effect.request_hash().unwrap());
    assert_json_snapshot!(
        json!({"effects": effects, "request_sha256": request_sha256, "results": results})
    );
}

#[test]
fn calculations_keep_their_serialized_form() {
    let id: EffectId = "m7/round-2/D1/calculation".parse().unwrap();
    let calculation = |outcome| CalculationResult {
        id: "X0:m7-D1-1".to_owned(),
        speaker: "D1".to_owned(),
        thread: "D1".to_owned(),
        round: 2,
        purpose: "What it shows.".to_owned(),
        code: "result(\"margin\", 14, \"%\")".to_owned(),
        code_sha256: Sha256Hex::of(b"code"),
        facts: vec!["Revenue:FY2025".to_owned()],
        constants: vec!["0.08".to_owned()],
        outcome,
    };
    let values = vec![CalculatedValue {
        name: "margin".to_owned(),
        value: "14.2".parse().unwrap(),
        unit: "%".to_owned(),
    }];
    let outcomes = [
        CalculationOutcome::Values { values },
        CalculationOutcome::Failed { why: "exit code 1".to_owned() },
        CalculationOutcome::NotRun { why: "there is no sandbox".to_owned() },
    ];
    let events = outcomes.map(|outcome| {
        let calculation = Box::new(calculation(outcome));
        let move_id = "m7".to_owned();
        RunEvent::about(
            &id,
            RunEventBody::Calculated { effect_id: id.clone(), move_id, calculation },
        )
    });
    events.iter().for_each(round_trip);
    let input = DebateInput { calculations: Some(FileRef::of(b"{}")), ..debate_input() };
    let terms = ConsultOptions { calculations: true, ..ConsultOptions::default() };
    round_trip(&terms);
    round_trip(&input);
    let request = events.first().map(|event| match &event.body {
        RunEventBody::Calculated { calculation, .. } => {
            calculation.request(FileRef::of(b"{}")).limits
        }
        _ => panic!("another event"),
    });
    assert_json_snapshot!(
        json!({"events": events, "facts": input.calculations, "limits": request, "terms": terms})
    );
}

#[test]
fn consultation_events_keep_their_serialized_form() {
    let id = |text: &str| -> EffectId { text.parse().unwrap() };
    let m7 = || "m7".to_owned();
    let round = |status| RunEventBody::SandboxRound { move_id: m7(), round: 2, status };
    let bodies = [
        RunEventBody::ConsultStarted {
            ticker: "MOOT".to_owned(),
            listed: false,
            rounds: 2,
            moves: 1,
            provenance: EvidenceSource::Synthetic,
            est_calls: 8,
        },
        RunEventBody::LayerStart { layer: 3, status: StageStatus::Running },
        RunEventBody::LayerComplete {
            layer: 3,
            status: StageStatus::Done,
            artifacts: vec!["i7.json".to_owned()],
            total_policies_scored: Some(1),
            gathered: None,
        },
        RunEventBody::AgentStart {
            layer: 2,
            agent_id: "analyst_3".to_owned(),
            persona: "The sceptic".to_owned(),
        },
        RunEventBody::AgentComplete {
            layer: 2,
            agent_id: "analyst_3".to_owned(),
            output: Some("m7.md".to_owned()),
            outputs: vec!["m7.md".to_owned(), "m8.md".to_owned()],
            titles: BTreeMap::from([("m7".to_owned(), "Buy a rival".to_owned())]),
        },
        RunEventBody::ClaimChecked {
            effect_id: id("analyst_3"),
            document: "m7.md".to_owned(),
            numbers: 3,
            supported: 2,
            flagged: vec![finding()],
            rewrite: true,
        },
        RunEventBody::Isolation {
            effect_id: id("m7"),
            move_id: m7(),
            class: IsolationClass::None,
            fallback: Some("no engine".to_owned()),
        },
        round(RoundStatus::CriticResponding),
        round(RoundStatus::CriticResponded),
        round(RoundStatus::DmResponding),
        round(RoundStatus::DmResponded),
        RunEventBody::SandboxTurn {
            effect_id: id("m7/round-2/D1"),
            move_id: m7(),
            thread: "D1".to_owned(),
            round: 2,
            role: "D1".to_owned(),
            preview: "They will come.".to_owned(),
            stance: Some(DebateStance::Hold),
            cites: vec!["F0:Revenue:FY2025".to_owned()],
        },
        RunEventBody::SandboxScored {
            move_id: m7(),
            score: 6,
            out_of: 10,
            breakdown: BTreeMap::from([(
                "D1".to_owned(),
                BTreeMap::from([("risk".to_owned(), 6)]),
            )]),
            rounds_done: 1,
            degraded: degradations(),
            key_objection: Some(objection()),
            reasoning: BTreeMap::from([("D1".to_owned(), "The cash is there.".to_owned())]),
        },
        RunEventBody::PipelineComplete {
            verdict: RunVerdict::NeedsPerson,
            recommended: vec![m7()],
            other: vec!["m8".to_owned()],
            close_calls: Vec::new(),
        },
    ];
    let events = bodies.map(|body| match body.effect_id().cloned() {
        Some(id) => RunEvent::about(&id, body),
        None => RunEvent::of_run(body),
    });
    events.iter().for_each(round_trip);
    assert_json_snapshot!(events);
}

#[test]
fn consultation_conclusions_keep_their_serialized_form() {
    let conclusions = [
        Conclusion::Debated(Box::new(debated())),
        Conclusion::NotDebated { why: "no answer".to_owned() },
        Conclusion::Ranked(Box::new(ranked())),
        Conclusion::NotGathered { kind: GatherFailureKind::UnknownTicker },
    ];
    conclusions.iter().for_each(round_trip);
    assert_json_snapshot!(conclusions);
}

#[test]
fn steps_and_outcomes_keep_their_serialized_form() {
    let conclusions = [
        Conclusion::Answered { text: "{}".to_owned(), value: Some(json!({})) },
        Conclusion::Unusable { text: "three".to_owned() },
        Conclusion::Failed { kind: FailureKind::Auth },
    ];
    let steps = conclusions.map(|conclusion| Step {
        perform: Vec::new(),
        publish: vec![RunEvent::of_run(RunEventBody::RunCancelled)],
        outcome: Some(Outcome::new(vec![finding()], conclusion)),
    });
    steps.iter().for_each(round_trip);
    assert_json_snapshot!(steps);
}

#[test]
fn inconsistent_outcomes_and_invalid_rule_ids_cannot_be_deserialized() {
    use serde_json::from_value;
    let outcome = Outcome::new(vec![finding()], Conclusion::Unusable { text: String::new() });
    let mut forged = serde_json::to_value(&outcome).unwrap();
    forged["verdict"] = json!("pass");
    assert!(from_value::<Outcome>(forged).is_err(), "a verdict against its findings");

    let body = RunEventBody::OutputRejected { effect_id: effect_id(), problems: Vec::new() };
    let mut forged = serde_json::to_value(RunEvent::about(&effect_id(), body)).unwrap();
    forged["key"] = json!("run:run_finished");
    assert!(from_value::<RunEvent>(forged).is_err(), "a key that is another event's");

    for rule in ["output.schema", "Output.schema", "output", "output.", "a.b\nverdict.pass"] {
        let read = from_value::<RuleId>(json!(rule)).is_ok();
        assert_eq!(read, rule == "output.schema", "{rule:?}");
    }
}

#[test]
fn failure_kinds_and_other_enums_keep_their_serialized_names() {
    use FailureKind as F;
    let kinds = [
        F::RateLimited,
        F::Overloaded,
        F::Server,
        F::Transport,
        F::TimedOut,
        F::Truncated,
        F::Malformed,
        F::EmptyReply,
        F::Auth,
        F::ContextOverflow,
        F::ContextTruncated,
        F::Refused,
        F::BadRequest,
        F::OverBudget,
        F::PriceUnknown,
        F::NotFound,
    ];
    for kind in kinds {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.code());
    }
    assert_json_snapshot!(json!({
        "failure_kinds": kinds.map(|kind| json!({"code": kind, "retryable": kind.is_retryable(), "asks_for_less": kind.is_throttling()})),
        "severities": [FindingSeverity::Note, FindingSeverity::Warn, FindingSeverity::Escalate, FindingSeverity::Block],
        "verdicts": [RunVerdict::Pass, RunVerdict::NeedsPerson, RunVerdict::Fail],
        "pause_reasons": [PauseReason::Budget, PauseReason::Person, PauseReason::Failure, PauseReason::Question],
        "stop_reasons": [StopReason::End, StopReason::MaxTokens, StopReason::Other],
        "usage_bases": [UsageBasis::Reported, UsageBasis::Estimated, UsageBasis::Bounded],
        "purposes": [
            CallPurpose::Ask,
            CallPurpose::Probe,
            CallPurpose::Generate,
            CallPurpose::Critique,
            CallPurpose::SynthesizeFinancials,
            CallPurpose::SynthesizeNews,
            CallPurpose::InferFinancial,
            CallPurpose::InferTrend,
            CallPurpose::Analyst,
            CallPurpose::Critic,
            CallPurpose::DecisionMaker,
            CallPurpose::Score,
            CallPurpose::ScoreNothing,
            CallPurpose::ScoreBaseline,
            CallPurpose::Edit,
            CallPurpose::Review,
        ],
        "isolation_classes": [
            IsolationClass::None,
            IsolationClass::SharedKernel,
            IsolationClass::EmulatedVm,
            IsolationClass::UserKernel,
            IsolationClass::HardwareVm,
        ],
        "gather_failures": [
            GatherFailureKind::UnknownTicker,
            GatherFailureKind::AmbiguousTicker,
            GatherFailureKind::Stale,
            GatherFailureKind::NoFacts,
            GatherFailureKind::NoContact,
            GatherFailureKind::Unavailable,
            GatherFailureKind::Unreadable,
        ],
        "evidence_sources": [EvidenceSource::Filings, EvidenceSource::Synthetic],
        "provenances": [Provenance::Filings, Provenance::Synthetic],
        "stances": [DebateStance::Hold, DebateStance::Partial, DebateStance::Concede],
        "score_bases": [ScoreBasis::Structured, ScoreBasis::FromText, ScoreBasis::Neutral],
        "objection_severities":
            [ObjectionSeverity::Minor, ObjectionSeverity::Major, ObjectionSeverity::Fatal],
        "objection_states": [
            ObjectionState::Answered,
            ObjectionState::Partly,
            ObjectionState::Open,
            ObjectionState::Conceded,
        ],
    }));
}

#[test]
fn receipts_keep_their_serialized_form() {
    use moothall_core::receipt::{
        EffectRecord, EffectTiming, FORMAT, Receipt, ReceiptManifest, ReceiptNotes,
    };
    use std::collections::BTreeMap;
    let receipt = Receipt {
        manifest: ReceiptManifest {
            receipt: FORMAT,
            workflow: "ask".to_owned(),
            build: "0.1.0".to_owned(),
            model: model().to_string(),
            demonstration: false,
            models: BTreeMap::new(),
            texts: BTreeMap::new(),
        },
        effects: BTreeMap::from([(
            effect_id(),
            EffectRecord {
                request_sha256: request().hash().unwrap(),
                result: EffectResult::ModelFailed(failure()),
            },
        )]),
        input: None,
        approvals: Vec::new(),
        conclusion: None,
        findings: vec![finding()],
        notes: ReceiptNotes {
            run_id: "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap(),
            started_at_ms: 1_762_000_000_000,
            timing: BTreeMap::from([(effect_id(), EffectTiming { latency_ms: 812, tries: 4 })]),
        },
    };
    insta::assert_snapshot!(receipt.write().unwrap());
}
