use std::pin::pin;
use std::task::{Context, Poll, Waker};

use moothall_core::model::{OutputSchema, PromptTurn};
use moothall_core::structured::OutputCheck;

use super::*;
use crate::SchemaCheck;
use crate::backend::ReplyListener;
use crate::catalog::Catalog;
use crate::ledger::{CallCost, RunLedger};

#[derive(Default)]
struct Pieces(Vec<String>);

impl ReplyListener for Pieces {
    fn text(&mut self, piece: &str) {
        self.0.push(piece.to_owned());
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

fn ask(question: &str) -> ModelRequest {
    ModelRequest::ask("demo".parse().unwrap(), question, 1000)
}

fn ask_for(schema: &str) -> ModelRequest {
    ModelRequest { schema: Some(OutputSchema::parse("s", schema).unwrap()), ..ask("Fill it in.") }
}

fn answer(request: &ModelRequest) -> (RawReply, Vec<String>) {
    let card = Catalog::built_in().unwrap().card(&request.model);
    let mut pieces = Pieces::default();
    let ledger = RunLedger::unlimited();
    let mut context = Context::from_waker(Waker::noop());
    let reserved = pin!(ledger.reserve(CallCost::default())).as_mut().poll(&mut context);
    let Poll::Ready(Ok(reservation)) = reserved else { panic!("missing cap") };
    let listener: Option<&mut dyn ReplyListener> = Some(&mut pieces);
    let call = ModelAttempt { request, card: &card, reservation: &reservation, listener };
    let polled = pin!(DemoBackend.answer(call)).as_mut().poll(&mut context);
    let Poll::Ready(Ok(answered)) = polled else { panic!("the demonstration always answers") };
    (answered.answer, pieces.0)
}

#[test]
fn the_demo_model_says_what_it_is_and_how_to_get_a_real_answer() {
    let (answer, _) = answer(&ask("What is a moot hall?"));
    let text = "This is a demonstration: the demo model makes no API call. Your question has 20 characters. To get a real answer, set an API key such as ANTHROPIC_API_KEY, or run a local model, and select it with --model.";
    assert_eq!(
        answer,
        RawReply {
            text: text.to_owned(),
            stop: RawStopReason::End,
            usage: Some(TokenUsage {
                input: ask("What is a moot hall?").prompt_tokens_expected(),
                output: tokens_expected(text),
                ..TokenUsage::default()
            }),
            model: Some(DEMO_MODEL.to_owned()),
        }
    );
}

#[test]
fn the_demo_model_answers_the_last_user_turn() {
    let mut request = ask("one");
    request.turns.extend([PromptTurn::assistant("a b c d"), PromptTurn::user("one two three")]);
    request.turns.push(PromptTurn::assistant("x"));
    assert!(answer(&request).0.text.contains("Your question has 13 characters."));
}

#[test]
fn the_same_request_always_has_the_same_answer() {
    for request in [ask("Why?"), ask_for(SCHEMAS[0])] {
        assert_eq!(answer(&request), answer(&request));
    }
}

#[test]
fn streamed_pieces_of_the_demo_model_add_up_to_its_answer() {
    for request in [ask("Why?"), ask_for(SCHEMAS[0])] {
        let (answer, pieces) = answer(&request);
        assert_eq!(pieces.concat(), answer.text);
        assert!(pieces.iter().all(|piece| !piece.is_empty()));
    }
}

const SCHEMAS: [&str; 34] = [
    r#"{"type":"object","properties":{"summary":{"type":"string"},"score":{"type":"integer","minimum":3,"maximum":10}},"required":["summary","score"]}"#,
    r#"{"type":"string","enum":["cost","risk"]}"#,
    r#"{"const":{"version":2}}"#,
    r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]}}}"##,
    r##"{"$ref":"#/definitions/a~1b","definitions":{"a/b":{"type":"integer"}}}"##,
    r#"{"anyOf":[{"type":"integer","minimum":7},{"type":"null"}]}"#,
    r#"{"oneOf":[{"type":"string","const":"pass"},{"type":"string","const":"fail"}]}"#,
    r#"{"type":"string","minLength":50}"#,
    r#"{"type":"string","minLength":14,"maxLength":14}"#,
    r#"{"type":"string","maxLength":3}"#,
    r#"{"type":"string","maxLength":0}"#,
    r#"{"type":"array","items":{"type":"string"},"minItems":4}"#,
    r#"{"type":"array","items":{"type":"string"},"maxItems":0}"#,
    r#"{"type":"array","items":{"type":"integer","minimum":1,"maximum":5},"minItems":2,"maxItems":2}"#,
    r#"{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"minItems":2,"maxItems":2}"#,
    r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"array","items":{"type":"object","properties":{"d":{"type":"number"}},"required":["d"]}}},"required":["c"]}},"required":["b"]}},"required":["a"]}"#,
    r#"{"type":"number","minimum":0.25,"maximum":0.75}"#,
    r#"{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}"#,
    r#"{"type":"number","maximum":-2.5}"#,
    r#"{"type":"integer","exclusiveMinimum":3}"#,
    r#"{"type":"integer","exclusiveMinimum":3.5}"#,
    r#"{"type":"integer","minimum":-10,"maximum":-5}"#,
    r#"{"type":"integer","exclusiveMaximum":0}"#,
    r#"{"type":"integer","minimum":1,"multipleOf":5}"#,
    r#"{"type":"integer","minimum":0.5,"maximum":1.5}"#,
    r#"{"type":["null","string"]}"#,
    r#"{"type":["string","null"],"minLength":3}"#,
    r#"{"type":"boolean"}"#,
    r#"{"type":"null"}"#,
    r#"{"properties":{"a":{"type":"string"}},"required":["a"]}"#,
    r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
    r#"{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}"#,
    r##"{"type":"object","properties":{"kind":{"allOf":[{"$ref":"#/$defs/Kind"}]}},"required":["kind"],"$defs":{"Kind":{"type":"string","enum":["x"]}}}"##,
    r#"{"type":"object","properties":{"any":true,"also":{}},"required":["any","also"]}"#,
];

#[track_caller]
fn check(schema: &str) {
    let request = ask_for(schema);
    let (answer, _) = answer(&request);
    let value: Value = serde_json::from_str(&answer.text).unwrap();
    let problems = SchemaCheck::new(request.schema.as_ref().unwrap()).unwrap().problems(&value);
    assert_eq!(problems, Vec::<String>::new(), "{schema} gave {value}");
}

#[test]
fn a_schema_is_answered_with_a_value_that_follows_it() {
    for schema in SCHEMAS {
        check(schema);
    }
}

#[test]
fn the_demo_model_answers_the_schemas_of_our_types() {
    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read matters")]
    struct Trial {
        verdict: Verdict,
        aspects: Vec<Aspect>,
        pair: (u8, String),
        note: Option<String>,
        unique: std::collections::BTreeSet<String>,
        weights: std::collections::BTreeMap<String, f64>,
    }
    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read matters")]
    enum Verdict {
        /// The claim is correct.
        Holds,
        /// The claim is wrong.
        Fails { why: String },
    }
    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[serde(tag = "kind")]
    #[expect(dead_code, reason = "only whether it can be read matters")]
    enum Aspect {
        Cost { amount: u32 },
        Risk,
    }
    let schema = OutputSchema::of::<Trial>("trial");
    check(schema.text());
    let (answer, _) = answer(&ask_for(schema.text()));
    assert!(serde_json::from_str::<Trial>(&answer.text).is_ok(), "{}", answer.text);
}

#[test]
fn a_schema_that_refers_to_itself_is_answered_with_a_value_that_follows_it() {
    check(
        r##"{"$ref":"#/$defs/Node","$defs":{"Node":{"type":"object","properties":{"name":{"type":"string"},"next":{"anyOf":[{"$ref":"#/$defs/Node"},{"type":"null"}]}},"required":["name","next"]}}}"##,
    );
    check(
        r##"{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name","children"]}"##,
    );
    check(
        r##"{"type":"object","properties":{"name":{"type":"string"},"parent":{"$ref":"#"}},"required":["name"]}"##,
    );
}

#[test]
fn the_demo_model_answers_unsatisfiable_and_infinite_schemas() {
    let wide: Vec<_> = (0..100).map(|field| format!(r##""f{field}":{{"$ref":"#"}}"##)).collect();
    let wide = format!(r#"{{"type":"object","properties":{{{}}}}}"#, wide.join(","));
    let nested = (0..10).fold(r#"{"type":"string"}"#.to_owned(), |inner, _| {
        format!(r#"{{"type":"array","minItems":100,"items":{inner}}}"#)
    });
    for schema in [
        wide.as_str(),
        nested.as_str(),
        r##"{"$ref":"#"}"##,
        r#"{"enum":[]}"#,
        r#"{"anyOf":[]}"#,
        r#"{"type":[]}"#,
        r#"{"type":"string","minLength":18446744073709551615}"#,
        r#"{"type":"array","minItems":18446744073709551615}"#,
        r#"{"type":"integer","minimum":1e300}"#,
        r#"{"type":"number","multipleOf":0}"#,
    ] {
        let (answer, _) = answer(&ask_for(schema));
        assert!(serde_json::from_str::<Value>(&answer.text).is_ok(), "{schema}");
        assert!(answer.text.len() < 1024 * 1024, "{schema}: {} bytes", answer.text.len());
    }
}

mod plays_reflexion {
    use std::collections::BTreeMap;

    use moothall_core::model::{ModelReply, StopReason, UsageBasis};
    use moothall_core::program::{OutputExpectation, ProgramContract, ProgramInput, ProgramRun};
    use moothall_core::sandbox::{
        CapturedOutput, ExecutionExit, FileRef, IsolationClass, SandboxAttestation,
        SandboxExecution, SandboxLimits,
    };
    use moothall_core::{
        Conclusion, Effect, EffectResult, Outcome, RunVerdict, Sha256Hex, Workflow as _,
    };

    use super::*;

    fn input(task: &str) -> ProgramInput {
        ProgramInput::new(task, "demo".parse::<ModelName>().unwrap(), "python")
    }

    /// Exit code, output and errors of a program.
    type Ran = (i32, &'static str, &'static str);

    fn executed((code, stdout, stderr): Ran) -> EffectResult {
        let output = |text: &str| CapturedOutput { text: text.to_owned(), truncated: false };
        EffectResult::Executed(Box::new(SandboxExecution {
            exit: ExecutionExit::Exited { code },
            stdout: output(stdout),
            stderr: output(stderr),
            files: BTreeMap::new(),
            left_behind: Vec::new(),
            attestation: SandboxAttestation {
                engine: "runsc".to_owned(),
                engine_version: "1".to_owned(),
                class: IsolationClass::UserKernel,
                image: "python".to_owned(),
                image_sha256: Sha256Hex::of(b"image"),
                guest_sha256: Sha256Hex::of(b"guest"),
                limits: SandboxLimits::default(),
                held_by: BTreeMap::new(),
                self_tests: Vec::new(),
            },
        }))
    }

    /// Plays a run with the demo model. `ends` maps a fragment of a program's text to its result.
    fn play(input: ProgramInput, ends: &[(&str, Ran)]) -> Outcome {
        let mut workflow = ProgramRun::new(input, Box::new(|_: &Value| Vec::new())).unwrap();
        let mut step = workflow.start();
        loop {
            if let Some(outcome) = step.outcome {
                return outcome;
            }
            let (id, effect) = &step.perform[0];
            let result = match effect {
                Effect::CallModel(request) => EffectResult::ModelReplied(ModelReply {
                    fallback: None,
                    text: answer(request).0.text,
                    stop: StopReason::End,
                    model: DEMO_MODEL.to_owned(),
                    usage: TokenUsage::default(),
                    usage_basis: UsageBasis::Estimated,
                    cost_micro_usd: None,
                }),
                Effect::Execute(request) => {
                    let code = request.sources.values().next().unwrap();
                    let (_, ran) = ends.iter().find(|(piece, _)| code.contains(piece)).unwrap();
                    executed(*ran)
                }
                other => panic!("{other:?} is no effect of this workflow"),
            };
            step = workflow.resume(id, result).unwrap();
        }
    }

    fn expecting(task: &str, text: &str) -> ProgramInput {
        let expect = Some(OutputExpectation::Text { text: text.to_owned() });
        ProgramInput {
            contract: ProgramContract { expect, ..ProgramContract::default() },
            ..input(task)
        }
    }

    #[test]
    fn the_demo_primes_task_passes_at_the_first_attempt() {
        let primes = "2\n3\n5\n7\n11\n13\n17\n19\n23\n29\n31\n37\n41\n43\n47\n53\n59\n61\n67\n71\n";
        let outcome = play(
            expecting("print the first 20 primes", primes),
            &[("while len(primes) < 20:", (0, primes, ""))],
        );
        assert_eq!((outcome.verdict, outcome.findings), (RunVerdict::Pass, Vec::new()));
        assert!(matches!(outcome.conclusion, Conclusion::Passed(last) if last.attempts == 1));
    }

    #[test]
    fn the_demo_sales_task_passes_at_the_second_attempt() {
        let file = FileRef { sha256: Sha256Hex::of(b"sales"), bytes: 5 };
        let input = ProgramInput {
            inputs: BTreeMap::from([("sales.csv".parse().unwrap(), file)]),
            ..expecting("parse the given sales.csv and print the total", "12.50")
        };
        let stumbled = "ValueError: could not convert string to float: 'amount'";
        let outcome =
            play(input, &[("next(rows)", (0, "12.50\n", "")), ("csv", (1, "", stumbled))]);
        assert_eq!((outcome.verdict, outcome.findings), (RunVerdict::Pass, Vec::new()));
        assert!(matches!(outcome.conclusion, Conclusion::Passed(last) if last.attempts == 2));
    }

    #[test]
    fn the_demo_task_with_fabricated_users_does_not_pass() {
        let missing = "FileNotFoundError: [Errno 2] No such file or directory: 'users.json'";
        let outcome = play(
            input("Read data from users.json and print usernames"),
            &[("sample_data", (0, "alice\nbob\ncharlie\n", "")), ("open", (1, "", missing))],
        );
        assert_eq!(outcome.verdict, RunVerdict::Fail);
        assert!(matches!(outcome.conclusion, Conclusion::NotPassed(_)));
        assert_eq!(outcome.findings[0].rule.to_string(), "input.fabricated");
    }

    #[test]
    fn a_task_unknown_to_the_demo_fails_after_two_attempts() {
        let outcome = play(input("dance"), &[("sys.exit", (1, "", "This is a demonstration"))]);
        assert_eq!(outcome.verdict, RunVerdict::Fail);
        assert!(matches!(outcome.conclusion, Conclusion::NotPassed(last) if last.attempts == 2));
    }
}

mod plays_consult {
    use std::collections::VecDeque;

    use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
    use moothall_core::consult::{
        Consult, ConsultInput, ConsultOptions, EvidenceSource, GatherRequest, RoleModels, board,
    };
    use moothall_core::debate::{CallSettings, Debate};
    use moothall_core::evidence::{CompanyProfile, Evidence, Provenance, Ticker};
    use moothall_core::model::{ModelReply, StopReason, UsageBasis};
    use moothall_core::{Conclusion, Effect, EffectResult, Outcome, RunVerdict, Workflow};

    use super::*;

    fn evidence() -> Evidence {
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
            provenance: Provenance::Synthetic,
            sheet: None,
            events: Vec::new(),
            passages: Vec::new(),
            documents: Vec::new(),
            headlines: Vec::new(),
            missing: Vec::new(),
            sources: Vec::new(),
        }
    }

    fn play(workflow: &mut dyn Workflow) -> Outcome {
        let mut open: VecDeque<_> = workflow.start().perform.into();
        loop {
            let (id, effect) = open.pop_front().unwrap();
            let result = match effect {
                Effect::Gather(_) => EffectResult::Gathered(Box::new(evidence())),
                Effect::CallModel(request) => EffectResult::ModelReplied(ModelReply {
                    fallback: None,
                    text: answer(&request).0.text,
                    stop: StopReason::End,
                    model: DEMO_MODEL.to_owned(),
                    usage: TokenUsage::default(),
                    usage_basis: UsageBasis::Estimated,
                    cost_micro_usd: None,
                }),
                Effect::StartChild(ChildRequest::Debate(input)) => {
                    let outcome = play(&mut Debate::new(*input).unwrap());
                    let isolation = ChildIsolation::none(None);
                    EffectResult::ChildEnded(Box::new(ChildEnd { outcome, isolation }))
                }
                other => panic!("{other:?} is no effect of this workflow"),
            };
            let step = workflow.resume(&id, result).unwrap();
            open.extend(step.perform);
            if let Some(outcome) = step.outcome {
                return outcome;
            }
        }
    }

    #[test]
    fn a_demo_consultation_finishes_without_findings() {
        let mut committee = board();
        committee.rounds = 2;
        let input = ConsultInput {
            gather: GatherRequest {
                ticker: "SMW".to_owned(),
                source: EvidenceSource::Synthetic,
                as_of: None,
                allow_stale: false,
                name: None,
                documents: None,
                news: None,
            },
            committee,
            moves: Some(5),
            models: RoleModels::all("demo".parse::<ModelName>().unwrap()),
            calls: CallSettings::default(),
            accept_findings: false,
            terms: ConsultOptions::default(),
            parent: None,
        };
        let outcome = play(&mut Consult::new(input).unwrap());
        assert_eq!(outcome.verdict, RunVerdict::Pass);
        let Conclusion::Ranked(ranked) = outcome.conclusion else { panic!("{outcome:?}") };
        assert_eq!((ranked.recommended.len(), ranked.other.len()), (3, 2));
        let debates = ranked.moves().map(|one| one.debated.as_ref().unwrap());
        assert!(debates.into_iter().all(|debate| debate.degraded.is_empty()));
    }
}
