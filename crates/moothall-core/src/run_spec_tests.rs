use insta::assert_json_snapshot;
use serde_json::json;

use super::*;
use crate::consult::{ConsultOptions, EvidenceSource, GatherRequest, RoleModels, board};
use crate::debate::CallSettings;

fn demo() -> ModelName {
    ModelName::DEMO.parse().unwrap()
}

fn settings() -> RunSettings {
    RunSettings {
        restate: Some("http://127.0.0.1:8080".to_owned()),
        isolation: Some(IsolationChoice::Microvm),
        allow_shared_kernel: true,
        parallel_moves: Some(4),
        budget_micro_usd: Some(MicroUsd::new(1_500_000)),
        budget_tokens: Some(20_000),
        base_url: Some("http://127.0.0.1:11434".to_owned()),
        offline: Some("/srv/filings".into()),
        record: Some("/srv/replies".into()),
        replay: Some("/srv/replies".into()),
        memo: Some("/srv/memo.md".into()),
        artifacts: Some("/srv/documents".into()),
        documents: Some("/srv/own".into()),
        uploads: BTreeMap::new(),
        news: Some(NewsChoice::Rss("https://example.com/feed".to_owned())),
        output: Some("/srv/out".into()),
        trace_parent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
    }
}

fn consult() -> RunSpec {
    RunSpec::Consult(ConsultSpec {
        input: ConsultInput {
            gather: GatherRequest {
                ticker: "HLXI".to_owned(),
                name: None,
                source: EvidenceSource::Filings,
                as_of: None,
                allow_stale: false,
                documents: None,
                news: None,
            },
            committee: board(),
            moves: Some(3),
            models: RoleModels::all(demo()),
            calls: CallSettings::default(),
            accept_findings: false,
            terms: ConsultOptions::default(),
            parent: None,
        },
        settings: settings(),
    })
}

fn program() -> RunSpec {
    let input = ProgramInput::new("print the first ten primes", demo(), "python");
    RunSpec::Program(ProgramSpec { input, settings: settings() })
}

fn edit() -> RunSpec {
    // Edit runs stay in this process and have no sandbox.
    let settings = RunSettings {
        budget_tokens: Some(20_000),
        base_url: Some("http://127.0.0.1:11434".to_owned()),
        ..RunSettings::default()
    };
    let input = EditInput::new("add a flag".to_owned(), demo());
    let worker = "edit".to_owned();
    RunSpec::Edit(EditSpec { input, workspace: "/srv/project".into(), worker, settings })
}

fn form(spec: RunSpec) -> Value {
    let mut form = serde_json::to_value(StoredSpec::from(spec)).unwrap();
    // The committee has a separate snapshot.
    if let Some(committee) = form.pointer_mut("/consult/committee") {
        *committee = json!("board");
    }
    form
}

#[test]
fn the_stored_form_of_a_consultation_is_stable() {
    assert_json_snapshot!(form(consult()));
}

#[test]
fn the_stored_form_of_a_program_is_stable() {
    assert_json_snapshot!(form(program()));
}

#[test]
fn the_stored_form_of_an_edit_is_stable() {
    assert_json_snapshot!(form(edit()));
}

#[test]
fn a_stored_form_is_read_back_with_and_without_its_version() {
    for spec in [consult(), program(), edit()] {
        let stored = StoredSpec::from(spec);
        let mut form = serde_json::to_value(&stored).unwrap();
        assert_eq!(StoredSpec::from_columns(stored.workflow(), form.clone()), stored);
        form.as_object_mut().unwrap().remove("version").unwrap();
        assert_eq!(StoredSpec::from_columns(stored.workflow(), form), stored);
    }
}

#[test]
fn a_stored_form_of_a_later_version_is_kept_but_not_interpreted() {
    let mut form = serde_json::to_value(StoredSpec::from(program())).unwrap();
    form["version"] = json!(2);
    let stored = StoredSpec::from_columns("run", form.clone());
    let unreadable = stored.read().unwrap_err();
    assert_eq!(
        unreadable.to_string(),
        "cannot read the stored request of this `run` run: unsupported format 2 (this version of moothall reads 1)"
    );
    assert_eq!(serde_json::to_value(&stored).unwrap(), form);
    assert!(stored.is_kind(RunKind::Program));
}

#[test]
fn an_unknown_workflow_or_field_is_kept_but_not_interpreted() {
    let strange = json!({ "question": "What is a moot hall?" });
    for workflow in ["ask", "consult"] {
        let stored = StoredSpec::from_columns(workflow, strange.clone());
        assert_eq!(stored.workflow(), workflow);
        assert_eq!(serde_json::to_value(&stored).unwrap(), strange);
        assert!(stored.read().is_err());
    }
}

#[test]
fn uploaded_files_are_stored_by_hash_and_read_back() {
    let (plan, feed) = (FileRef::of(b"# Plan"), FileRef::of(b"<rss/>"));
    let settings = RunSettings {
        uploads: [("plan.md".to_owned(), plan)].into(),
        news: Some(NewsChoice::Upload { name: "feed.xml".to_owned(), file: feed }),
        ..RunSettings::default()
    };
    let form = serde_json::to_value(&settings).unwrap();
    assert_eq!(
        form,
        json!({
            "allow_shared_kernel": false,
            "uploads": {"plan.md": {"sha256": plan.sha256, "bytes": 6}},
            "news": {"upload": {"name": "feed.xml", "file": {"sha256": feed.sha256, "bytes": 6}}},
        })
    );
    assert_eq!(serde_json::from_value::<RunSettings>(form).unwrap(), settings);
    assert_eq!(settings.uploaded_files().collect::<Vec<_>>(), [&plan, &feed]);
}
