//! What readers of a consultation get: memo, export, files, and a receipt that proves them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::LazyLock;

use moothall_core::child::{ChildEnd, ChildRequest, Isolation};
use moothall_core::claims::Checker;
use moothall_core::consult::{
    Approval, Consult, ConsultInput, EvidenceSource, GatherRequest, RoleModels, board,
    demonstration, settle,
};
use moothall_core::debate::{Calls, Debate};
use moothall_core::evidence::{Company, CompanyFacts, Day, Evidence, Provenance, Sheet};
use moothall_core::model::{ModelName, ModelReply, StopReason, Usage, UsageBasis};
use moothall_core::receipt::{EffectRecord, FORMAT, Manifest, Notes, Receipt, verify};
use moothall_core::report::{ConsultView, RunFacts, artifacts, export, memo};
use moothall_core::{Effect, EffectId, EffectResult, MicroUsd, Outcome, Step, Verdict, Workflow};
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
        calls: Calls::default(),
        accept_findings: false,
    }
}

fn evidence() -> Evidence {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../moothall/recordings/hlxi");
    let bytes = fs_err::read(recordings.join("companyfacts/CIK0009990001.json")).unwrap();
    let facts = CompanyFacts::parse(&bytes).unwrap();
    let sheet = Sheet::build(&facts, Day::parse("2026-08-13").unwrap()).unwrap();
    Evidence {
        company: Company {
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

/// A run with all its answers.
struct Played {
    input: ConsultInput,
    effects: BTreeMap<EffectId, EffectRecord>,
    outcome: Outcome,
}

impl Played {
    fn view(&self, approvals: &[Approval]) -> ConsultView {
        let answer = |id: &EffectId| self.effects.get(id).map(|record| &record.result);
        ConsultView::of(&self.input, answer, approvals).unwrap()
    }

    fn receipt(&self, approvals: &[Approval]) -> Receipt {
        let settled = settle(self.outcome.clone(), approvals);
        Receipt {
            manifest: Manifest {
                receipt: FORMAT,
                workflow: Consult::NAME.to_owned(),
                build: "0.1.0".to_owned(),
                model: "demo".to_owned(),
                demonstration: true,
            },
            input: Some(Box::new(self.input.clone())),
            effects: self.effects.clone(),
            approvals: approvals.to_vec(),
            conclusion: Some(Box::new(settled.conclusion)),
            findings: settled.findings,
            notes: Notes {
                run_id: "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap(),
                started_at_ms: 1_762_000_000_000,
                timing: BTreeMap::new(),
            },
        }
    }
}

fn replied(text: String) -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        text,
        stop: StopReason::End,
        model: "demo".to_owned(),
        usage: Usage { input: 900, output: 120, ..Usage::default() },
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: Some(MicroUsd::ZERO),
    })
}

/// Drives a machine with the words of the demonstration; `change` may put others in their place.
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
                let isolation = Isolation::none(None);
                EffectResult::ChildEnded(Box::new(ChildEnd { outcome, isolation }))
            }
            Effect::Execute(_) => unreachable!("a consultation runs no program"),
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
    let input = input();
    let mut effects = BTreeMap::new();
    let mut consult = Consult::new(input.clone()).unwrap();
    let outcome = drive(&mut consult, &mut effects, change);
    Played { input, effects, outcome }
}

fn played() -> &'static Played {
    static PLAYED: LazyLock<Played> = LazyLock::new(|| played_with(&|_, words| words));
    &PLAYED
}

/// The analysts write a wrong number and stay with it.
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

fn facts() -> RunFacts {
    RunFacts {
        run_id: "019a85c0-2f6e".to_owned(),
        build: "0.1.0".to_owned(),
        started_on: "2026-11-15".to_owned(),
        calls: 77,
        extra_calls: 1,
        usage: Usage { input: 9_000, output: 1_200, ..Usage::default() },
        cost: Some(MicroUsd::ZERO),
        demonstration: true,
    }
}

/// The lines of a memo that agents or facts speak in: everything before the run's own record.
fn checked_part(memo: &str) -> &str {
    memo.split("## Run record").next().unwrap()
}

#[test]
fn every_number_of_a_memo_is_supported_or_marked() {
    for run in [played(), stubborn()] {
        let memo = memo(&run.view(&[]), &facts());
        let evidence = evidence();
        let checker = Checker::new((&evidence).into());
        let mut read = 0;
        for line in checked_part(&memo).lines().filter(|line| !line.starts_with("- ⚠")) {
            // A score is a value of the run, not a claim about the company.
            for claim in checker.check(&line.replace("/120", "")) {
                read += 1;
                let fine = !claim.verdict.is_flagged() || line.contains('⚠');
                assert!(fine, "{}: {} in: {line}", claim.printed, claim.verdict);
            }
        }
        assert!(read > 20, "only {read} numbers were read");
    }
}

#[test]
fn a_memo_reads_as_its_reader_expects() {
    insta::assert_snapshot!(memo(&stubborn().view(&[]), &facts()));
}

#[test]
fn a_memo_of_a_run_that_stands_still_says_what_there_is() {
    let run = played();
    let answer = |id: &EffectId| {
        let known = id.as_str() != "m2" && id.as_str() != "m3";
        run.effects.get(id).filter(|_| known).map(|record| &record.result)
    };
    let view = ConsultView::of(&run.input, answer, &[]).unwrap();
    assert!(view.outcome.is_none());
    let text = memo(&view, &facts());
    assert!(text.contains("Not finished"), "{text}");
    assert!(text.contains("| m2: "), "{text}");
    let scored = view.ranked.unwrap();
    let debated: BTreeSet<String> =
        scored.moves().filter(|one| one.debated.is_some()).map(|one| one.move_id.clone()).collect();
    assert_eq!(debated, ["m1", "m4", "m5"].map(str::to_owned).into());
}

#[test]
fn markup_in_the_words_of_an_agent_does_not_reach_the_memo() {
    let run = played_with(&|id, words| {
        let attack = "<script>alert(1)</script> [click](https://example.org) ![x](y) `code` ";
        let attack = attack.replace('"', "'");
        if id.as_str().starts_with("analyst") {
            words.replace("\"thesis\":\"", &format!("\"thesis\":\"{attack}"))
        } else {
            words
        }
    });
    let text = memo(&run.view(&[]), &facts());
    for forbidden in ["<script", "](https://example.org", "![", "`"] {
        assert!(!text.contains(forbidden), "{forbidden} is in the memo");
    }
}

/// The names of all fields, without what differs between runs.
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
fn the_export_has_the_names_of_the_source_documents() {
    let run = played();
    let export = export(&run.view(&[]));
    insta::assert_json_snapshot!(shape(&export));
    assert_eq!(export["policy_scores"].as_array().unwrap().len(), 5);
    assert_eq!(export["conversation_logs"][0]["i1"][0]["role"], "critic");
}

#[test]
fn the_files_of_a_run_have_their_names() {
    let run = played();
    let files: Vec<String> = artifacts(&run.view(&[])).into_keys().collect();
    insta::assert_json_snapshot!(files);
}

#[test]
fn a_receipt_of_a_consultation_proves_its_ranking() {
    let run = stubborn();
    let text = run.receipt(&[]).write().unwrap();
    let verified = verify(text.as_bytes()).unwrap();
    assert_eq!(verified.verdict, Verdict::NeedsPerson);
    let approval = Approval {
        move_id: "m1".to_owned(),
        by: "ada".to_owned(),
        note: String::new(),
        at_ms: 1_762_000_100_000,
    };
    let approved = run.receipt(&[approval]).write().unwrap();
    assert_eq!(verify(approved.as_bytes()).unwrap().verdict, Verdict::Pass);
}

/// Whoever makes every hash of a receipt anew still cannot change what follows from the answers.
#[test]
fn a_receipt_that_was_made_anew_with_other_contents_is_found_out() {
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
        // Another score: the debate's end no longer follows.
        found(&|receipt| {
            edit(receipt, "m3/score/D2", &|text| text.replace("\"impact\":", "\"impact\":1"))
        }),
        // Another word in the debate: the next question is another one.
        found(&|receipt| edit(receipt, "m3/round-1/critic", &|text| text.replace("the", "teh"))),
        // An answer that nobody asked for.
        found(&|receipt| {
            let copy = receipt.effects[&id("F1")].clone();
            receipt.effects.insert(id("F3"), copy);
        }),
        // An answer is left out.
        found(&|receipt| drop(receipt.effects.remove(&id("m2/score/D1")))),
        // Another ranking.
        found(&|receipt| {
            if let Some(moothall_core::Conclusion::Ranked(ranked)) =
                receipt.conclusion.as_deref_mut()
            {
                ranked.recommended.swap(0, 1);
            }
        }),
        // A finding is gone.
        found(&|receipt| drop(receipt.findings.pop())),
        // The input is gone.
        found(&|receipt| receipt.input = None),
    ];
    insta::assert_json_snapshot!(faults);
}

#[test]
fn a_byte_that_is_flipped_anywhere_in_a_receipt_is_found() {
    let text = played().receipt(&[]).write().unwrap().into_bytes();
    let step = (text.len() / 60).max(1);
    for at in (0..text.len()).step_by(step) {
        let mut flipped = text.clone();
        flipped[at] ^= 1;
        assert!(verify(&flipped).is_err(), "the flip at byte {at} was not found");
    }
}
