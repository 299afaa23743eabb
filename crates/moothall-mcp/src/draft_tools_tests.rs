//! The gate does not trust the frontend: it validates everything itself.

use moothall_core::drafts::Principal;
use moothall_workspace::{DraftStore, DraftStoreOptions};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{DraftGate, DraftGateSettings};
use crate::ipc::{IpcRequest, IpcResponse};
use crate::tools::ToolName;

const FORMS: &str = "version = 1\n[review]\nelicitation = \"form\"\n";

fn gate(policy: &str) -> (TempDir, DraftGate) {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("ws");
    fs_err::create_dir_all(&workspace).unwrap();
    let organisation_policy = folder.path().join("policy.toml");
    fs_err::write(&organisation_policy, policy).unwrap();
    fs_err::write(workspace.join("Makefile"), "all:\n").unwrap();
    let long: String = (0..40).map(|number| format!("value_{number} = {number}\n")).collect();
    fs_err::write(workspace.join("big.py"), long).unwrap();
    let mut options = DraftStoreOptions::new(workspace, folder.path().join("state"));
    options.organisation_policy = Some(organisation_policy);
    let store = DraftStore::open(options).unwrap();
    let worker = Principal::worker("ada/mcp");
    (
        folder,
        DraftGate::new(
            store,
            DraftGateSettings { worker, user: "ada".to_owned(), uid: 1000, review_url: None },
        ),
    )
}

fn call(gate: &DraftGate, tool: ToolName, arguments: Value) -> Value {
    let Value::Object(arguments) = arguments else { panic!("no object") };
    match gate.answer(IpcRequest::Call { tool, arguments, client: None }) {
        IpcResponse::Done { result, .. } => result,
        other => panic!("{other:?}"),
    }
}

/// Creates a submission that needs review; returns its draft and seal.
fn escalated(gate: &DraftGate, path: &str, content: &str) -> (String, String) {
    let asked = json!({ "source_path": path, "task_id": "t" });
    let draft = call(gate, ToolName::DraftRequest, asked)["draft_id"].clone();
    call(gate, ToolName::DraftWrite, json!({ "draft_id": draft, "content": content }));
    let submit = json!({ "draft_id": draft, "change_summary": "x" });
    let told = call(gate, ToolName::DraftSubmit, submit);
    assert_eq!(told["decision"], "escalated", "{told}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&draft), text(&told["message_id"]))
}

fn approve(gate: &DraftGate, draft: &str, seal: &str) -> IpcResponse {
    gate.answer(IpcRequest::Decide {
        draft: draft.to_owned(),
        seal: seal.to_owned(),
        approve: true,
        reason: String::new(),
        client: None,
    })
}

fn refusal(answer: IpcResponse) -> String {
    match answer {
        IpcResponse::Refused { words, .. } => words,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_decision_is_refused_unless_the_policy_accepts_it() {
    for mode in ["off", "url"] {
        let policy = format!("version = 1\n[review]\nelicitation = \"{mode}\"\n");
        let (folder, gate) = gate(&policy);
        let (draft, seal) = escalated(&gate, "big.py", "value_0 = 0\n");
        let words = refusal(approve(&gate, &draft, &seal));
        assert_eq!(words, "the policy does not accept decisions from a client");
        let now = fs_err::read_to_string(folder.path().join("ws/big.py")).unwrap();
        assert_ne!(now, "value_0 = 0\n");
    }
}

#[test]
fn a_client_decision_about_a_guarded_path_is_always_refused() {
    let (folder, gate) = gate(FORMS);
    let (draft, seal) = escalated(&gate, "Makefile", "all: build\n");
    let words = refusal(approve(&gate, &draft, &seal));
    assert_eq!(words, "the policy does not accept a decision from a client about this change");
    assert_eq!(fs_err::read_to_string(folder.path().join("ws/Makefile")).unwrap(), "all:\n");
}

#[test]
fn an_approver_list_must_name_trusted_clients() {
    let listed = |names: &str| format!("{FORMS}approvers = [{names}]\n");
    let (_folder, stranger) = gate(&listed("\"ada\", \"elicitation/ada\", \"uid:1000\""));
    let (draft, seal) = escalated(&stranger, "big.py", "value_0 = 0\n");
    let words = refusal(approve(&stranger, &draft, &seal));
    assert_eq!(
        words,
        "human:elicitation/ada (elicitation:uid:1000) is not an approver in the policy"
    );

    let (folder, trusted) = gate(&listed("\"elicitation:uid:1000\""));
    let (draft, seal) = escalated(&trusted, "big.py", "value_0 = 0\n");
    let IpcResponse::Done { result, .. } = approve(&trusted, &draft, &seal) else {
        panic!("refused")
    };
    assert_eq!(result["decision"], "accepted");
    let now = fs_err::read_to_string(folder.path().join("ws/big.py")).unwrap();
    assert_eq!(now, "value_0 = 0\n");
}

/// A check that cannot run escalates each time, so it runs only once, on submission.
#[test]
fn the_status_of_a_submission_is_reported_without_judging_again() {
    let check = "[[check]]\nid = \"tests\"\nrun = [\"make\"]\ntimeout = \"1m\"\n";
    let (_folder, gate) = gate(&format!("version = 1\n[limits]\nmax_looks_per_hour = 1\n{check}"));
    let (draft, seal) = escalated(&gate, "big.py", "value_0 = 0\n");
    for _ in 0..2 {
        let IpcResponse::Done { result, .. } =
            gate.answer(IpcRequest::Outcome { draft: draft.clone() })
        else {
            panic!("refused")
        };
        assert_eq!(
            (&result["decision"], &result["message_id"]),
            (&json!("escalated"), &json!(seal))
        );
        let rules = result["findings"].as_array().unwrap().iter().map(|one| one["rule"].clone());
        let expected = ["diff.gutted", "diff.deletion_ratio", "gate.error"];
        assert_eq!(rules.collect::<Vec<_>>(), expected);
        assert_eq!(result["removed"], 39);
    }
}

#[test]
fn every_draft_tool_reports_a_removed_credential() {
    let (_folder, gate) = gate("version = 1\n");
    let token = format!("ghp_{}", &moothall_core::Sha256Hex::of(b"nobody's").to_string()[..36]);
    let asked = json!({ "source_path": "big.py", "task_id": "t" });
    let first = call(&gate, ToolName::DraftRequest, asked.clone());
    let (draft, content) = (first["draft_id"].clone(), first["content"].as_str().unwrap());
    let content = format!("{content}# {token}\n");
    call(&gate, ToolName::DraftWrite, json!({ "draft_id": draft, "content": content }));
    let submit = json!({ "draft_id": draft, "change_summary": "x" });
    assert_eq!(call(&gate, ToolName::DraftSubmit, submit)["decision"], "rejected");
    let name = draft.as_str().unwrap().to_owned();
    let IpcResponse::Done { result, .. } = gate.answer(IpcRequest::Outcome { draft: name.clone() })
    else {
        panic!("refused")
    };
    assert_eq!((&result["decision"], &result["diff"]), (&json!("rejected"), &json!("")));
    assert_eq!(result["findings"][0]["rule"], "secret.specific");
    let next = "the content contained a credential and was removed: write it again with draft_write, without the credential, then draft_submit";
    let status = call(&gate, ToolName::DraftStatus, json!({ "draft_id": draft }));
    assert_eq!(status["next"], next);
    // The same draft with its original content.
    let again = call(&gate, ToolName::DraftRequest, asked);
    assert_eq!((&again["draft_id"], &again["content"]), (&draft, &first["content"]));
    let words = "content was removed because it contained a credential: write it again";
    assert_eq!(refusal(gate.answer(IpcRequest::Diff { draft: name })), words);
}

#[test]
fn the_client_name_is_truncated_and_sanitized_in_the_journal() {
    let (folder, gate) = gate("version = 1\n");
    let name = format!("\u{1b}[31m{}", "x".repeat(10_000));
    let client = moothall_core::drafts::ClientInfo { name, version: "1".to_owned() };
    let arguments: Map<String, Value> =
        [("source_path".to_owned(), "big.py".into()), ("task_id".to_owned(), "t".into())]
            .into_iter()
            .collect();
    let tool = ToolName::DraftRequest;
    gate.answer(IpcRequest::Call { tool, arguments, client: Some(client) });
    let journal = fs_err::read_to_string(folder.path().join("state/audit/000001.ndjson")).unwrap();
    assert!(journal.contains(&format!("[31m{}\"", "x".repeat(60))), "{journal}");
}
