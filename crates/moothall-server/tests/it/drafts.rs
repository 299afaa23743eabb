//! Drafts over HTTP, with real stores in temporary folders.

mod links;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moothall_core::access::{CredentialLimits, TeamName, TokenId};
use moothall_core::drafts::{Draft, DraftId, DraftState, Principal, ReviewDecision};
use moothall_server::{
    AccessControl, AccessMode, AppState, EventFeed, OriginGuard, ReviewLinkStore, ServedWorkspace,
    ServerLimits, WorkspaceRegistry, serve,
};
use moothall_store::{AccountStore as _, Credential, NewToken, SqliteStore, random_token_id};
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftStore, DraftStoreOptions, FailPoint, FileRequirement,
};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::run_service::StubRunService;

struct Scene {
    base: String,
    client: Client,
    accounts: Arc<SqliteStore>,
    folder: TempDir,
}

impl Scene {
    /// Creates a server with one workspace, whose user is `ada`.
    async fn new(admits: AccessMode) -> Self {
        Self::with(admits, Arc::default(), None).await
    }

    /// Like `new`, with a policy, and with a journal cannot write that while `is_full` is set.
    async fn with(admits: AccessMode, is_full: Arc<AtomicBool>, policy: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(folder.path().join("ws/src")).unwrap();
        fs_err::write(folder.path().join("ws/Makefile"), "all:\n\techo one\n").unwrap();
        if let Some(policy) = policy {
            fs_err::create_dir_all(folder.path().join("ws/.moothall")).unwrap();
            fs_err::write(folder.path().join("ws/.moothall/policy.toml"), policy).unwrap();
        }
        let accounts = SqliteStore::open(&folder.path().join("runs.db")).await.unwrap();
        let accounts = Arc::new(accounts);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let base = format!("http://{address}");
        let closing = CancellationToken::new();
        let reached =
            move |point| match point == FailPoint::Journal && is_full.load(Ordering::SeqCst) {
                true => Err(std::io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            };
        let scene_store = DraftStoreOptions { reached: Box::new(reached), ..options(&folder) };
        let scene_store = DraftStore::open(scene_store).unwrap();
        let one = ServedWorkspace::new(&folder.path().join("ws"), scene_store).unwrap();
        let workspaces =
            Arc::new(WorkspaceRegistry::new(vec![one], "ada".to_owned()).with_user(1000));
        tokio::spawn(Arc::clone(&workspaces).watch(closing.clone()));
        let app = AppState::new(
            accounts.clone(),
            Arc::new(StubRunService { drives: false }),
            EventFeed::new(accounts.clone()),
            AccessControl::new(accounts.clone(), admits, &base),
            closing,
        );
        let links = ReviewLinkStore::at(folder.path().join("review-links"));
        let app = app.with_workspaces(workspaces).with_review_links(links);
        tokio::spawn(serve(listener, app, OriginGuard::local(address), ServerLimits::default()));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        Self { base, client, accounts, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("ws").join(name)
    }

    /// Opens the same workspace as another process would, such as `moothall draft`.
    fn elsewhere(&self) -> DraftStore {
        DraftStore::open(options(&self.folder)).unwrap()
    }

    /// Submits a draft of a protected file.
    fn drafted(&self, text: &str) -> Draft {
        let (store, worker) = (self.elsewhere(), worker());
        let (draft, _) = store.request(&worker, "t1", "Makefile", FileRequirement::Must).unwrap();
        store.write(&worker, draft.id, DraftEdit::Content(text.to_owned()), None).unwrap();
        store.submit(&worker, &[draft.id], "builds by default").unwrap().drafts.remove(0)
    }

    /// Submits a draft that needs review.
    fn waiting(&self, text: &str) -> DraftId {
        let draft = self.drafted(text);
        assert_eq!(draft.state, DraftState::Escalated);
        draft.id
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.client.get(format!("{}{path}", self.base)).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Creates a token with the review scope.
    async fn token(&self, id: TokenId, label: &str) -> Credential {
        let secret = Credential::token().unwrap();
        let token = NewToken {
            id,
            team: TeamName::local(),
            label: label.to_owned(),
            secret: secret.sha256(),
            scopes: "review".parse().unwrap(),
            limits: CredentialLimits::default(),
            created_at_ms: 1,
            expires_at_ms: None,
        };
        self.accounts.create_token(token).await.unwrap();
        secret
    }

    async fn say(&self, id: DraftId, word: &str, body: Value) -> (u16, Value) {
        let request = self.client.post(format!("{}/api/drafts/{id}/{word}", self.base));
        told(request.header("content-type", "application/json").body(body.to_string())).await
    }
}

async fn told(request: reqwest::RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap())
}

fn options(folder: &TempDir) -> DraftStoreOptions {
    DraftStoreOptions::new(folder.path().join("ws"), folder.path().join("state"))
}

fn worker() -> DraftCaller {
    DraftCaller::new(Principal::worker("ada/agent"))
}

/// Reads a stream until it contains `words`.
async fn until(stream: &mut Response, words: &str) -> String {
    let mut heard = String::new();
    while !heard.contains(words) {
        let chunk = stream.chunk().await.unwrap().expect("the stream ends");
        heard.push_str(&String::from_utf8_lossy(&chunk));
    }
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_shown_line_by_line_and_approved_by_version() {
    let scene = Scene::new(AccessMode::Everyone).await;
    assert_eq!(scene.get("/api/drafts").await["drafts"], json!([]));
    let id = scene.waiting("all: build\n\techo one\n");
    let list = scene.get("/api/drafts?state=escalated").await;
    assert_eq!((&list["waiting"], &list["drafts"][0]["draft_id"]), (&json!(1), &json!(id)));
    assert_eq!(list["workspaces"][0]["name"], "ws");
    let shown = scene.get(&format!("/api/drafts/{id}")).await;
    let file = &shown["files"][0];
    assert_eq!((&file["added"], &file["removed"]), (&json!(1), &json!(1)));
    assert_eq!(file["findings"][0]["rule"], "path.protected");
    let part = |text: &str, is_changed: bool| json!({ "text": text, "is_changed": is_changed });
    let line = |side: &str, old: Value, new: Value, parts: Value| {
        json!({
            "side": side, "old": old, "new": new, "parts": parts, "is_cut": false,
            "has_no_newline": false, "findings": [], "comments": [],
        })
    };
    let lines = json!([
        line("removed", json!(1), Value::Null, json!([part("all:", false)])),
        line("added", Value::Null, json!(1), json!([part("all:", false), part(" build", true)])),
        line("kept", json!(2), json!(2), json!([part("\techo one", false)])),
    ]);
    assert_eq!((&file["hunks"][0]["lines"], &file["hunks"][0]["number"]), (&lines, &json!(1)));
    assert_eq!((&shown["hunk_count"], &file["changes"]), (&json!(1), &json!([])));
    let seal = &shown["draft"]["seal"];
    let (status, said) = scene.say(id, "approve", json!({ "seal": seal })).await;
    assert_eq!((status, &said["drafts"][0]["state"]), (200, &json!("applied")));
    assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), "all: build\n\techo one\n");
    let reviewed = json!({ "say": "approve", "by": "ada", "reason": "", "has_changes": false });
    assert_eq!(said["drafts"][0]["reviewed"], reviewed);
    let (status, late) = scene.say(id, "reject", json!({ "seal": seal })).await;
    assert_eq!((status, &late["code"]), (409, &json!("draft-state")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_of_an_outdated_version_is_refused() {
    let scene = Scene::new(AccessMode::Everyone).await;
    let id = scene.waiting("all: build\n");
    let old = scene.get(&format!("/api/drafts/{id}")).await["draft"]["seal"].clone();
    let store = scene.elsewhere();
    store.write(&worker(), id, DraftEdit::Content("all: harm\n".to_owned()), None).unwrap();
    store.submit(&worker(), &[id], "").unwrap();
    for word in ["approve", "reject", "send-back"] {
        let (status, said) = scene.say(id, word, json!({ "seal": old })).await;
        assert_eq!((status, &said["code"]), (409, &json!("seal-differs")), "{word}");
    }
    assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), "all:\n\techo one\n");
    let (status, said) = scene.say(id, "approve", json!({ "seal": "abc" })).await;
    assert_eq!((status, &said["code"]), (400, &json!("bad-request")));
    let nobody = DraftId::new([7; 16]);
    let (status, said) = scene.say(nobody, "approve", json!({ "seal": old })).await;
    assert_eq!((status, &said["code"]), (404, &json!("draft-not-found")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draft_events_of_another_process_are_streamed_and_can_be_replayed() {
    let scene = Scene::new(AccessMode::Everyone).await;
    let cursor = scene.get("/api/drafts").await["cursor"].as_str().unwrap().to_owned();
    let events = format!("{}/api/drafts/events?after={cursor}", scene.base);
    let mut stream = scene.client.get(&events).send().await.unwrap();
    until(&mut stream, "event: hello").await;
    let id = scene.waiting("all: build\n\techo one\n");
    let heard = until(&mut stream, "\nevent: draft_escalated").await;
    assert!(heard.contains("\nevent: draft_ready"), "{heard}");
    let seal = scene.elsewhere().status(&worker(), id).unwrap().submission.unwrap().seal;
    let person = DraftCaller::new(Principal::human("grace"));
    scene.elsewhere().review(&person, id, seal, ReviewDecision::SendBack, "keep it").unwrap();
    until(&mut stream, "\nevent: draft_rejected").await;
    // A reconnecting client receives all events after its cursor.
    let mut again = scene.client.get(&events).send().await.unwrap();
    let heard = until(&mut again, "\"keep it\"").await;
    let told: Vec<Value> = heard
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .filter(|event: &Value| event["draft_id"] == json!(id))
        .collect();
    let kinds: Vec<&str> = told.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds, ["draft_ready", "draft_escalated", "draft_rejected"]);
    assert_eq!(told[2]["reasons"], json!(["keep it"]));
    assert_eq!((&told[1]["path"], &told[1]["task_id"]), (&json!("Makefile"), &json!("t1")));
    assert_eq!(told[1]["diffstat"], json!({ "added": 1, "removed": 1 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_is_recorded_under_the_label_of_its_token() {
    let scene = Scene::new(AccessMode::Credentials).await;
    let id = scene.waiting("all: build\n");
    let secret = scene.token(random_token_id().unwrap(), "night shift").await;
    let seal = scene.elsewhere().status(&worker(), id).unwrap().submission.unwrap().seal;
    let reject = |body: Value| {
        let request = scene.client.post(format!("{}/api/drafts/{id}/reject", scene.base));
        let request = request.header("authorization", format!("Bearer {}", secret.reveal()));
        told(request.header("content-type", "application/json").body(body.to_string()))
    };
    let (status, _) = reject(json!({ "seal": seal, "reason": "no", "by": "ada" })).await;
    assert_eq!(status, 400);
    let (status, said) = reject(json!({ "seal": seal, "reason": "no" })).await;
    let reviewed =
        json!({ "say": "reject", "by": "night shift", "reason": "no", "has_changes": false });
    assert_eq!((status, &said["drafts"][0]["reviewed"]), (200, &reviewed));
}

/// Regression: anyone who could label a token `ada` could act as ada.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvers_are_ids_of_tokens_and_users_and_not_their_labels() {
    let policy = "version = 1\n[review]\napprovers = [\"token:0123456789ab\", \"ada\"]\n";
    let scene = Scene::with(AccessMode::Credentials, Arc::default(), Some(policy)).await;
    let id = scene.waiting("all: build\n");
    let other = scene.token(random_token_id().unwrap(), "ada").await;
    let listed = scene.token("0123456789ab".parse().unwrap(), "night shift").await;
    let seal = scene.elsewhere().status(&worker(), id).unwrap().submission.unwrap().seal;
    let approve = async |secret: &Credential| {
        let request = scene
            .client
            .post(format!("{}/api/drafts/{id}/approve", scene.base))
            .header("authorization", format!("Bearer {}", secret.reveal()))
            .header("content-type", "application/json")
            .body(json!({ "seal": seal }).to_string());
        told(request).await
    };
    let (status, said) = approve(&other).await;
    assert_eq!((status, &said["code"]), (403, &json!("not-a-reviewer")), "{said}");
    let (status, said) = approve(&listed).await;
    assert_eq!(status, 200, "{said}");
    let journal = scene.folder.path().join("state/audit/000001.ndjson");
    let journal = fs_err::read_to_string(journal).unwrap();
    let account = "\"id\":\"night shift\",\"account\":\"token:0123456789ab\"";
    assert!(journal.contains(account), "{journal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deceptive_characters_in_drafts_are_escaped_by_the_api() {
    let scene = Scene::new(AccessMode::Everyone).await;
    // The gate rejects it, and reviewers see the escaped characters.
    let id = scene.drafted("all:\n\techo \u{202e}one\u{1b}[2J\n").id;
    let shown = scene.get(&format!("/api/drafts/{id}")).await.to_string();
    assert!(shown.contains("u{202e}") && shown.contains("u{1b}[2J"), "{shown}");
    assert!(!shown.contains('\u{202e}') && !shown.contains("\\u001b"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_log_is_paginated_and_reports_where_it_was_changed() {
    let scene = Scene::new(AccessMode::Everyone).await;
    scene.waiting("all: build\n");
    let whole = scene.get("/api/audit").await;
    let kinds: Vec<&str> =
        whole["page"].as_array().unwrap().iter().filter_map(|row| row["kind"].as_str()).collect();
    assert_eq!(kinds, ["judged", "submitted", "written", "requested"]);
    assert_eq!(
        (&whole["holds"], &whole["records"], &whole["next"]),
        (&json!(true), &json!(4), &Value::Null)
    );
    let first = scene.get("/api/audit?limit=3").await;
    assert_eq!(first["next"], 2);
    let rest = scene.get("/api/audit?limit=3&before=2").await;
    assert_eq!(rest["page"], json!([whole["page"][3]]));
    let journal = scene.folder.path().join("state/audit/000001.ndjson");
    let text = fs_err::read_to_string(&journal).unwrap();
    fs_err::write(&journal, text.replacen("\"bytes\":11", "\"bytes\":12", 1)).unwrap();
    let damaged = scene.get("/api/audit").await;
    assert_eq!((&damaged["holds"], &damaged["records"]), (&json!(false), &json!(1)));
    assert!(damaged["why"].as_str().unwrap().contains("record 2"), "{damaged}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_is_not_ready_while_the_journal_cannot_be_written() {
    let is_full = Arc::new(AtomicBool::new(false));
    let scene = Scene::with(AccessMode::Everyone, Arc::clone(&is_full), None).await;
    let id = scene.waiting("all: build\n");
    let ready = async || {
        let answer = scene.client.get(format!("{}/readyz", scene.base)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(ready().await.0, 200);
    let shown = scene.get(&format!("/api/drafts/{id}")).await;
    let body = json!({ "seal": shown["draft"]["seal"] });
    is_full.store(true, Ordering::SeqCst);
    assert_eq!(scene.say(id, "approve", body.clone()).await.0, 500);
    let (status, words) = ready().await;
    assert_eq!(status, 503);
    assert!(words.contains("cannot write the draft journal"), "{words}");
    // Once there is space again, the process is ready without a write request and continues to
    // work.
    is_full.store(false, Ordering::SeqCst);
    assert_eq!(ready().await.0, 200);
    assert_eq!(scene.say(id, "approve", body).await.0, 200);
    assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), "all: build\n");
}

/// Regression: 540 requests for the drafts of a locked store took every blocking thread of the
/// server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_few_requests_wait_for_a_locked_store_and_the_rest_get_busy() {
    let scene = Scene::new(AccessMode::Everyone).await;
    scene.waiting("all: build\n");
    // Another process holds every lock of the store and does not release it.
    let state = scene.folder.path().join("state");
    let mut locks = Vec::new();
    for entry in fs_err::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "lock") {
            let file = fs_err::File::open(path).unwrap().into_parts().0;
            file.lock().unwrap();
            locks.push(file);
        }
    }
    assert!(!locks.is_empty());
    let mut requests = JoinSet::new();
    for _ in 0..60 {
        requests.spawn(scene.client.get(format!("{}/api/drafts", scene.base)).send());
    }
    let mut busy = 0;
    while busy < 52 {
        let answer = tokio::time::timeout(Duration::from_secs(30), requests.join_next());
        let answer = answer.await.expect("requests wait for the lock").unwrap().unwrap().unwrap();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers()["retry-after"], "1");
        let problem: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(problem["code"], "busy");
        busy += 1;
    }
    assert_eq!(scene.get("/api/runs").await["runs"], json!([]));
    drop(locks);
    while let Some(answer) = requests.join_next().await {
        let status = answer.unwrap().unwrap().status();
        assert!(status == 200 || status == 503, "{status}");
    }
    assert_eq!(scene.get("/api/drafts").await["waiting"], 1);
}

/// A Makefile of 60 lines, and with 40 of them in reverse order at the end.
fn moved_lines() -> (String, String) {
    let lines: Vec<String> = (0..60).map(|at| format!("line {at}\n")).collect();
    let reversed: String = lines[4..44].iter().rev().map(String::as_str).collect();
    let moved = lines[..4].concat() + &lines[44..].concat() + &reversed;
    (lines.concat(), moved)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hunks_are_approved_one_by_one_and_new_findings_are_confirmed() {
    let scene = Scene::new(AccessMode::Everyone).await;
    let (base, moved) = moved_lines();
    fs_err::write(scene.file("Makefile"), &base).unwrap();
    let id = scene.waiting(&moved);
    let shown = scene.get(&format!("/api/drafts/{id}")).await;
    assert_eq!(shown["hunk_count"], 2, "{shown}");
    let seal = &shown["draft"]["seal"];
    let body = |hunks: Value, confirm: Option<&Value>| {
        let files = json!([{ "draft_id": id, "hunks": hunks }]);
        json!({ "seal": seal, "files": files, "confirm": confirm })
    };
    // Hunks of another version, and a decision that has no use for hunks.
    let (status, said) = scene.say(id, "approve", body(json!([seal]), None)).await;
    assert_eq!((status, &said["code"]), (409, &json!("refused")), "{said}");
    let (status, _) = scene.say(id, "reject", body(json!([]), None)).await;
    assert_eq!(status, 400);
    let (status, said) = scene.say(id, "approve", body(json!([]), None)).await;
    assert_eq!((status, &said["code"]), (409, &json!("refused")), "{said}");
    // One hunk alone deletes the lines that the other one adds again.
    let mut undecided = Value::Null;
    for hunk in shown["files"][0]["hunks"].as_array().unwrap() {
        let chosen = json!([hunk["hunk_id"]]);
        let (status, said) = scene.say(id, "approve", body(chosen.clone(), None)).await;
        assert_eq!(status, 200, "{said}");
        if said["undecided"].is_null() {
            continue;
        }
        assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), base);
        assert_eq!(said["drafts"][0]["state"], "escalated");
        undecided = said["undecided"].clone();
        let (_, done) = scene.say(id, "approve", body(chosen, Some(&undecided["confirm"]))).await;
        assert_eq!(done["drafts"][0]["state"], "applied", "{done}");
        assert_eq!(done["drafts"][0]["reviewed"]["has_changes"], true);
        break;
    }
    assert_eq!(undecided["is_rejected"], false, "{undecided}");
    assert!(undecided["findings"].to_string().contains("diff.deletion_ratio"), "{undecided}");
    let audit = scene.get("/api/audit").await;
    let rows = audit["page"].as_array().unwrap();
    let amended = rows.iter().find(|row| row["kind"] == "amended").unwrap();
    let words = amended["words"].to_string();
    assert!(words.contains("of 2") && words.contains("approved in part"), "{words}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edited_content_passes_the_gate_before_it_is_applied() {
    let scene = Scene::new(AccessMode::Everyone).await;
    let id = scene.waiting("all: build\n\techo one\n");
    let given = scene.get(&format!("/api/drafts/{id}/content")).await;
    assert_eq!(given["content"], "all: build\n\techo one\n");
    let body = |content: &str| json!({ "seal": given["seal"], "files": [{ "draft_id": id, "content": content }] });
    let (status, said) = scene.say(id, "approve", body("<<<<<<< a\n=======\n>>>>>>> b\n")).await;
    assert_eq!((status, &said["undecided"]["is_rejected"]), (200, &json!(true)), "{said}");
    assert_eq!(said["undecided"]["findings"][0]["rule"], "content.conflict_markers", "{said}");
    assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), "all:\n\techo one\n");
    let (_, said) = scene.say(id, "approve", body("all: test\n\techo one\n")).await;
    assert_eq!(said["drafts"][0]["state"], "applied", "{said}");
    assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), "all: test\n\techo one\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_that_a_text_field_does_not_show_exactly_is_not_offered_for_editing() {
    for (text, is_offered) in [
        ("all:\n\techo\u{200b}\n", false),
        ("all:\r\n\techo\n", false),
        ("all:\n\techo\r\n", false),
        ("all:\r\techo\r", false),
        ("all:\r\r\n\techo\r\n", false),
        ("all:\r\n\techo\r\n", true),
        ("all:\r\n\techo", true),
    ] {
        let scene = Scene::new(AccessMode::Everyone).await;
        let id = scene.waiting(text);
        let given = scene.get(&format!("/api/drafts/{id}/content")).await;
        assert_eq!(given["content"].as_str(), is_offered.then_some(text), "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comments_are_shown_at_their_lines() {
    let scene = Scene::new(AccessMode::Everyone).await;
    let id = scene.waiting("all: build\n\techo one\n");
    let shown = scene.get(&format!("/api/drafts/{id}")).await;
    let seal = &shown["draft"]["seal"];
    let body = |seal: &Value, line: usize, text: &str| json!({ "seal": seal, "path": "Makefile", "side": "new", "line": line, "text": text });
    let (status, said) = scene.say(id, "comments", body(seal, 1, "which build?")).await;
    assert_eq!((status, &said["undecided"]), (200, &Value::Null), "{said}");
    let shown = scene.get(&format!("/api/drafts/{id}")).await;
    let lines = &shown["files"][0]["hunks"][0]["lines"];
    let comment = &lines[1]["comments"][0];
    assert_eq!((&comment["text"], &comment["by"]), (&json!("which build?"), &json!("ada")));
    assert_eq!((&lines[0]["comments"], &shown["draft"]["seal"]), (&json!([]), seal));
    let old = json!("0".repeat(64));
    let (status, said) = scene.say(id, "comments", body(&old, 1, "x")).await;
    assert_eq!((status, &said["code"]), (409, &json!("seal-differs")));
    let (status, _) = scene.say(id, "comments", body(seal, 9, "x")).await;
    assert_eq!(status, 409);
    let (status, _) = scene.say(id, "comments", body(seal, 1, &"x".repeat(2_001))).await;
    assert_eq!(status, 400);
}
