//! Review links: what the holder of a link can do without signing in, and what no one can.

use moothall_core::Sha256Hex;
use moothall_store::now_ms;

use super::*;

const HOUR_MS: u64 = 60 * 60 * 1000;

impl Scene {
    fn links(&self) -> ReviewLinkStore {
        ReviewLinkStore::at(self.folder.path().join("review-links"))
    }

    fn seal(&self, id: DraftId) -> Sha256Hex {
        let draft = self.elsewhere().status(&worker(), id).unwrap();
        draft.submission.unwrap().seal
    }

    /// The token of a notice about the current version of a draft.
    fn link_token(&self, id: DraftId) -> String {
        let until = now_ms() + HOUR_MS;
        let token = self.links().issue("4f2a91c3", "ops", id, self.seal(id), until).unwrap();
        token.reveal().to_owned()
    }

    async fn link(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.post(format!("{}/api/review-link/{path}", self.base));
        told(request.header("content-type", "application/json").body(body.to_string())).await
    }

    async fn show(&self, token: &str) -> (u16, Value) {
        self.link("show", json!({ "token": token })).await
    }

    async fn decide(&self, token: &str, decision: &str) -> (u16, Value) {
        let reason = "seen on the phone";
        let body = json!({ "token": token, "decision": decision, "reason": reason });
        self.link("decide", body).await
    }

    fn state(&self, id: DraftId) -> DraftState {
        self.elsewhere().status(&worker(), id).unwrap().state
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn following_a_link_changes_nothing_and_does_not_use_it_up() {
    let scene = Scene::new(AccessMode::Credentials).await;
    let id = scene.waiting("all: build\n");
    let token = scene.link_token(id);
    let before = scene.elsewhere().head().unwrap();
    for _ in 0..3 {
        // What a mail scanner does.
        let page = scene.client.get(format!("{}/review", scene.base)).send().await.unwrap();
        assert_eq!(page.headers()["referrer-policy"], "no-referrer");
        assert_eq!(page.headers()["cache-control"], "no-store");
        let (status, shown) = scene.show(&token).await;
        assert_eq!((status, &shown["notice"]), (200, &json!("4f2a91c3")), "{shown}");
        assert_eq!(shown["detail"]["draft"]["draft_id"], json!(id));
        assert_eq!(shown["detail"]["files"][0]["added"], 1);
    }
    assert_eq!(scene.elsewhere().head().unwrap(), before);
    assert_eq!(scene.state(id), DraftState::Escalated);
    // Neither path answers to GET.
    for path in ["show", "decide"] {
        let url = format!("{}/api/review-link/{path}?token={token}", scene.base);
        let answer = scene.client.get(url).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 405);
    }
    // Other pages keep their policy.
    let other = scene.client.get(format!("{}/drafts", scene.base)).send().await.unwrap();
    assert_eq!(other.headers()["referrer-policy"], "same-origin");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_decides_once_and_the_audit_log_names_its_notice() {
    let scene = Scene::new(AccessMode::Credentials).await;
    let id = scene.waiting("all: build\n");
    let token = scene.link_token(id);
    let (status, said) = scene.decide(&token, "approve").await;
    assert_eq!((status, &said["drafts"][0]["state"]), (200, &json!("applied")), "{said}");
    assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), "all: build\n");
    let reviewed = &said["drafts"][0]["reviewed"];
    let expected = json!({
        "say": "approve",
        "by": "ops (by link of notice 4f2a91c3)",
        "reason": "seen on the phone",
        "has_changes": false,
    });
    assert_eq!(*reviewed, expected);
    for decision in ["approve", "reject", "send_back"] {
        let (status, late) = scene.decide(&token, decision).await;
        assert_eq!((status, &late["code"]), (410, &json!("link-used")), "{late}");
    }
    let (status, late) = scene.show(&token).await;
    assert_eq!((status, &late["code"]), (410, &json!("link-used")), "{late}");
    // The token is in no file of the store or of the links.
    for folder in ["state", "review-links"] {
        for path in files_below(&scene.folder.path().join(folder)) {
            let bytes = fs_err::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(&token), "{}", path.display());
        }
    }
}

fn files_below(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_concurrent_decisions_with_one_link_one_counts() {
    let scene = Arc::new(Scene::new(AccessMode::Credentials).await);
    let id = scene.waiting("all: build\n");
    let token = scene.link_token(id);
    let mut requests = JoinSet::new();
    for number in 0..6 {
        let (scene, token) = (Arc::clone(&scene), token.clone());
        let decision = if number % 2 == 0 { "reject" } else { "send_back" };
        requests.spawn(async move { scene.decide(&token, decision).await.0 });
    }
    let statuses = requests.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    let journal = scene.elsewhere();
    let reviews = journal.status(&worker(), id).unwrap().submission.unwrap().reviewed;
    assert!(reviews.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_bound_to_its_draft_and_version() {
    let scene = Scene::new(AccessMode::Credentials).await;
    let id = scene.waiting("all: build\n");
    let token = scene.link_token(id);
    // The worker changes the draft after the notice.
    let store = scene.elsewhere();
    store.write(&worker(), id, DraftEdit::Content("all: harm\n".to_owned()), None).unwrap();
    store.submit(&worker(), &[id], "").unwrap();
    for (status, answer) in [scene.show(&token).await, scene.decide(&token, "approve").await] {
        assert_eq!((status, &answer["code"]), (409, &json!("seal-differs")), "{answer}");
    }
    assert_eq!(scene.state(id), DraftState::Escalated);
    // A link names its draft itself: a request cannot name another one.
    let other = json!({ "token": scene.link_token(id), "decision": "approve", "draft": "drf_1" });
    let (status, answer) = scene.link("decide", other).await;
    assert_eq!((status, &answer["code"]), (400, &json!("unknown-field")), "{answer}");
    // A token about a draft that does not exist.
    let nothing = DraftId::parse("drf_00000000000000000000000000000001").unwrap();
    let until = now_ms() + HOUR_MS;
    let token = scene.links().issue("1", "ops", nothing, scene.seal(id), until).unwrap();
    let (status, answer) = scene.decide(token.reveal(), "approve").await;
    assert_eq!((status, &answer["code"]), (404, &json!("draft-not-found")), "{answer}");
    assert_eq!(fs_err::read_to_string(scene.file("Makefile")).unwrap(), "all:\n\techo one\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_foreign_and_guessed_tokens_are_refused() {
    let scene = Scene::new(AccessMode::Credentials).await;
    let id = scene.waiting("all: build\n");
    let seal = scene.seal(id);
    let expired = scene.links().issue("1", "ops", id, seal, now_ms() - 1).unwrap();
    let (status, answer) = scene.decide(expired.reveal(), "approve").await;
    assert_eq!((status, &answer["code"]), (410, &json!("link-expired")), "{answer}");
    // Signed by the key of another machine.
    let elsewhere = ReviewLinkStore::at(scene.folder.path().join("other"));
    let foreign = elsewhere.issue("1", "ops", id, seal, now_ms() + HOUR_MS).unwrap();
    let mut changed = scene.link_token(id);
    changed.pop();
    for token in [foreign.reveal(), &changed, "", "a.b", &"x".repeat(5_000)] {
        for (status, answer) in [scene.show(token).await, scene.decide(token, "approve").await] {
            assert_eq!((status, &answer["code"]), (403, &json!("link-invalid")), "{answer}");
            assert!(token.is_empty() || !answer.to_string().contains(token), "{answer}");
        }
    }
    assert_eq!(scene.state(id), DraftState::Escalated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_allows_no_more_than_the_policy_allows_a_reviewer() {
    // Approvals need one of these accounts, and a link has none.
    let policy = "version = 1\n[review]\napprovers = [\"uid:1000\"]\n";
    let scene = Scene::with(AccessMode::Credentials, Arc::default(), Some(policy)).await;
    let id = scene.waiting("all: build\n");
    let token = scene.link_token(id);
    let (status, answer) = scene.decide(&token, "approve").await;
    assert_eq!((status, &answer["code"]), (403, &json!("not-a-reviewer")), "{answer}");
    // The refusal did not use the link up.
    let (status, answer) = scene.decide(&token, "send_back").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(scene.state(id), DraftState::Editing);

    let policy = "version = 1\n[review]\nchannels = [\"cli\"]\n";
    let scene = Scene::with(AccessMode::Credentials, Arc::default(), Some(policy)).await;
    let id = scene.waiting("all: build\n");
    let token = scene.link_token(id);
    let (status, answer) = scene.decide(&token, "approve").await;
    assert_eq!((status, &answer["code"]), (403, &json!("channel-closed")), "{answer}");
    assert_eq!(scene.decide(&token, "reject").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_opens_nothing_else() {
    let scene = Scene::new(AccessMode::Credentials).await;
    let id = scene.waiting("all: build\n");
    let token = scene.link_token(id);
    for path in ["/api/drafts", &format!("/api/drafts/{id}"), "/api/settings", "/api/session"] {
        let request = scene.client.get(format!("{}{path}", scene.base));
        let answer = request.header("authorization", format!("Bearer {token}")).send().await;
        assert_eq!(answer.unwrap().status().as_u16(), 401, "{path}");
    }
    // A decision of a person who signed in makes the link useless.
    let decided = scene.elsewhere();
    let person = DraftCaller::new(Principal::human("grace"));
    let seal = scene.seal(id);
    decided.review(&person, id, seal, ReviewDecision::Reject, "no").unwrap();
    let (status, answer) = scene.decide(&token, "approve").await;
    assert_eq!((status, &answer["code"]), (409, &json!("draft-state")), "{answer}");
}
