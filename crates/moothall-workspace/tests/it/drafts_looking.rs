//! Checks and a scripted reviewing model: their input and the effect of their results.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use moothall_core::drafts::DraftState;
use moothall_core::gate::{GateAction, GateRule};
use moothall_core::model::{ModelReply, ModelRequest, StopReason, TokenUsage, UsageBasis};
use moothall_core::sandbox::{ExecuteRequest, ExecutionExit, GuestPath, SandboxExecution};
use moothall_workspace::{
    CheckRunner, DraftEdit, DraftError, DraftStore, FileRequirement, ModelReviewer,
    SubmissionResult,
};
use tokio_util::sync::CancellationToken;

use crate::world::{CHECK, World, drafted, execution, person, request, unending, worker, write};

type Tree = BTreeMap<String, String>;

/// Ends every check in the same way and records the trees.
#[derive(Debug)]
struct Ending {
    exit: Result<ExecutionExit, String>,
    trees: Arc<Mutex<Vec<Tree>>>,
    meanwhile: Option<Meanwhile>,
}

/// A change that happens while a check runs.
struct Meanwhile(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl CheckRunner for Ending {
    fn execute(
        &self,
        _: Option<&str>,
        _: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        _: &CancellationToken,
    ) -> Result<SandboxExecution, String> {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let tree = inputs.iter().map(|(path, bytes)| (path.to_string(), text(bytes)));
        self.trees.lock().unwrap().push(tree.collect());
        if let Some(Meanwhile(act)) = &self.meanwhile {
            act();
        }
        self.exit.clone().map(|exit| SandboxExecution { exit, ..execution() })
    }
}

fn workspace(policy: &str) -> World {
    let world = World::new(&[("src/a.py", "a = 1\n"), ("tests/test_a.py", "import a\n")]);
    world.save(".moothall/policy.toml", policy);
    world.save("_handoff/drafts/x", "not part of the work");
    world.save("target/debug/big", "made by tools");
    world
}

fn open(world: &World, exit: Result<ExecutionExit, String>) -> (DraftStore, Arc<Mutex<Vec<Tree>>>) {
    let trees: Arc<Mutex<Vec<Tree>>> = Arc::default();
    let mut options = world.options();
    options.checker = Some(Box::new(Ending { exit, trees: trees.clone(), meanwhile: None }));
    (DraftStore::open(options).unwrap(), trees)
}

fn told(submitted: &SubmissionResult) -> (DraftState, Vec<GateRule>) {
    let rules = submitted.judged.verdict.findings.iter().map(|one| one.rule).collect();
    (submitted.drafts[0].state, rules)
}

#[test]
fn a_check_is_given_the_workspace_with_the_drafts_applied() {
    let world = workspace(CHECK);
    let (store, trees) = open(&world, Ok(ExecutionExit::Exited { code: 0 }));
    let ids = [request(&store, "src/a.py"), request(&store, "tests/test_a.py")];
    write(&store, ids[0], "a = 2\n");
    store.write(&worker(), ids[1], DraftEdit::Rename("tests/test_b.py".into()), None).unwrap();
    let submitted = store.submit(&worker(), &ids, "why").unwrap();
    assert_eq!(told(&submitted), (DraftState::Escalated, vec![GateRule::FileRename]));
    let tree = [("src/a.py", "a = 2\n"), ("tests/test_b.py", "import a\n")];
    let tree = tree.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(*trees.lock().unwrap(), [BTreeMap::from(tree)]);
    assert_eq!(world.text("src/a.py").unwrap(), "a = 1\n");
}

#[test]
fn the_result_of_a_check_decides_about_a_harmless_draft() {
    let ends = [
        (Ok(ExecutionExit::Exited { code: 0 }), DraftState::Applied, vec![]),
        (Ok(ExecutionExit::Exited { code: 1 }), DraftState::Editing, vec![GateRule::CheckFailed]),
        (Ok(ExecutionExit::OutOfMemory), DraftState::Editing, vec![GateRule::CheckFailed]),
        (Ok(ExecutionExit::TimedOut), DraftState::Escalated, vec![GateRule::CheckTimeout]),
        (Err("no engine".to_owned()), DraftState::Escalated, vec![GateRule::GateError]),
    ];
    for (exit, state, rules) in ends {
        let world = workspace(CHECK);
        let (store, _) = open(&world, exit.clone());
        let (_, submitted) = drafted(&store, "src/a.py", "a = 2\n");
        assert_eq!(told(&submitted), (state, rules), "{exit:?}");
    }
}

#[test]
fn a_check_without_a_sandbox_is_escalated_with_the_reason() {
    let world = workspace(CHECK);
    let (_, submitted) = drafted(&world.open(), "src/a.py", "a = 2\n");
    assert_eq!(told(&submitted), (DraftState::Escalated, vec![GateRule::GateError]));
    assert_eq!(submitted.judged.checks[0].output, "no sandbox is available");
    assert!(!world.journal().contains("no sandbox"), "words about checks are not kept");
}

#[test]
fn no_check_runs_for_rejected_drafts_or_other_paths() {
    let world = workspace(&CHECK.replace("timeout", "when = [\"**/*.py\"]\ntimeout"));
    world.save("notes.md", "one\n");
    let (store, trees) = open(&world, Ok(ExecutionExit::Exited { code: 1 }));
    let (_, submitted) =
        drafted(&store, "src/a.py", "a = 1\n# ... rest of the code unchanged ...\n");
    assert_eq!(told(&submitted), (DraftState::Editing, vec![GateRule::ContentPlaceholder]));
    let (_, submitted) = drafted(&store, "notes.md", "two\n");
    assert_eq!(told(&submitted), (DraftState::Applied, vec![]));
    assert_eq!(trees.lock().unwrap().len(), 0);
}

#[test]
fn a_check_of_outdated_content_is_not_used() {
    let world = workspace(CHECK);
    let id = request(&world.open(), "src/a.py");
    write(&world.open(), id, "a = 2\n");
    let other = world.open();
    let act = move || drop(write(&other, id, "a = 3\n"));
    let mut options = world.options();
    options.checker = Some(Box::new(Ending {
        exit: Ok(ExecutionExit::Exited { code: 0 }),
        trees: Arc::default(),
        meanwhile: Some(Meanwhile(Box::new(act))),
    }));
    let store = DraftStore::open(options).unwrap();
    let submitted = store.submit(&worker(), &[id], "why").unwrap();
    assert_eq!(told(&submitted), (DraftState::Escalated, vec![GateRule::GateError]));
}

#[test]
fn a_check_result_is_reused_for_the_same_content() {
    let world = workspace(CHECK);
    let (store, trees) = open(&world, Ok(ExecutionExit::Exited { code: 1 }));
    let id = request(&store, "src/a.py");
    let looked = || trees.lock().unwrap().len();
    write(&store, id, "a = 2\n");
    let first = store.check(&worker(), &[id]).unwrap();
    assert_eq!((store.check(&worker(), &[id]).unwrap(), looked()), (first.clone(), 1));
    let submitted = store.submit(&worker(), &[id], "why").unwrap();
    assert_eq!(
        (told(&submitted), looked()),
        ((DraftState::Editing, vec![GateRule::CheckFailed]), 1)
    );
    assert_eq!(submitted.judged.checks, first.checks);
    // A change in another file of the tree is a new request, although the draft is the same.
    world.save("tests/test_a.py", "import a, sys\n");
    store.check(&worker(), &[id]).unwrap();
    assert_eq!(looked(), 2);
    // A missing sandbox is not cached.
    let (store, trees) = open(&world, Err("no engine".to_owned()));
    for tried in 1..=2 {
        store.check(&worker(), &[id]).unwrap();
        assert_eq!(trees.lock().unwrap().len(), tried);
    }
}

#[test]
fn no_check_runs_for_a_draft_that_cannot_be_submitted() {
    let world = workspace(CHECK);
    let (store, trees) = open(&world, Ok(ExecutionExit::Exited { code: 0 }));
    let (id, submitted) = drafted(&store, "src/a.py", "a = 2\n");
    assert_eq!(told(&submitted), (DraftState::Applied, vec![]));
    world.save("tests/test_a.py", "import a, sys\n");
    let refused = store.submit(&worker(), &[id], "again").unwrap_err();
    assert_eq!(refused.to_string(), "draft is applied and cannot be submitted");
    assert_eq!(trees.lock().unwrap().len(), 1);
}

/// Endless writes and checks must not keep the machine or a model busy.
#[test]
fn the_number_of_checks_per_hour_is_limited() {
    let world =
        workspace(&CHECK.replace("[[check]]", "[limits]\nmax_looks_per_hour = 3\n[[check]]"));
    let (store, trees) = open(&world, Ok(ExecutionExit::Exited { code: 1 }));
    let id = request(&store, "src/a.py");
    for number in 0..3 {
        write(&store, id, &format!("b = {number}\n"));
        store.check(&worker(), &[id]).unwrap();
    }
    let words = "too many checks and reviews in one hour (limit: 3); nothing was submitted";
    write(&store, id, "c = 1\n");
    assert_eq!(store.submit(&worker(), &[id], "why").unwrap_err().to_string(), words);
    assert_eq!(store.status(&worker(), id).unwrap().submission, None);
    write(&store, id, "b = 2\n");
    store.check(&worker(), &[id]).unwrap();
    assert_eq!(trees.lock().unwrap().len(), 3);
    world.at(1_000_000 + 60 * 60 * 1000);
    write(&store, id, "c = 1\n");
    store.check(&worker(), &[id]).unwrap();
    assert_eq!(trees.lock().unwrap().len(), 4);
}

#[test]
fn stopping_the_store_ends_a_check_and_submits_nothing() {
    let world = workspace(CHECK);
    let (options, begun) = unending(&world);
    let store = DraftStore::open(options).unwrap();
    let id = request(&store, "src/a.py");
    write(&store, id, "a = 2\n");
    let records = world.journal().lines().count();
    let ended = std::thread::scope(|scope| {
        let submitting = scope.spawn(|| store.submit(&worker(), &[id], "why"));
        begun.recv().unwrap();
        store.stop();
        submitting.join().unwrap()
    });
    assert!(matches!(ended, Err(DraftError::Stopped)), "{ended:?}");
    assert_eq!(world.journal().lines().count(), records);
    let (store, _) = open(&world, Ok(ExecutionExit::Exited { code: 0 }));
    let submitted = store.submit(&worker(), &[id], "why").unwrap();
    assert_eq!(told(&submitted), (DraftState::Applied, vec![]));
}

#[test]
fn paths_denied_by_the_policy_are_never_read_written_or_checked() {
    let world = workspace(CHECK);
    world.save("secrets/key.txt", "one\n");
    let (before, _) = open(&world, Ok(ExecutionExit::Exited { code: 0 }));
    let old = request(&before, "secrets/key.txt");
    drop(before);
    world.save(".moothall/policy.toml", &format!("{CHECK}[paths]\ndeny = [\"secrets/**\"]\n"));
    let (store, trees) = open(&world, Ok(ExecutionExit::Exited { code: 0 }));
    let denied = "secrets/key.txt: the policy does not allow workers to read or change it";
    let is_denied = |error: DraftError| assert_eq!(error.to_string(), denied);
    for existing in [FileRequirement::Must, FileRequirement::MayNot] {
        is_denied(store.request(&worker(), "t2", "secrets/key.txt", existing).unwrap_err());
    }
    // A draft that is older than the policy is denied as well.
    is_denied(
        store.request(&worker(), "t1", "secrets/key.txt", FileRequirement::Must).unwrap_err(),
    );
    is_denied(store.read(&worker(), old).unwrap_err());
    is_denied(store.diff(&worker(), old).unwrap_err());
    is_denied(store.check(&worker(), &[old]).unwrap_err());
    is_denied(store.submit(&worker(), &[old], "why").unwrap_err());
    is_denied(store.rebase(&worker(), old).unwrap_err());
    is_denied(store.write(&worker(), old, DraftEdit::Content("x\n".into()), None).unwrap_err());
    let id = request(&store, "src/a.py");
    is_denied(
        store.write(&worker(), id, DraftEdit::Rename("secrets/key.txt".into()), None).unwrap_err(),
    );
    write(&store, id, "a = 2\n");
    store.submit(&worker(), &[id], "why").unwrap();
    let tree = trees.lock().unwrap().remove(0);
    assert_eq!(tree.keys().collect::<Vec<_>>(), ["src/a.py", "tests/test_a.py"]);
    // Also if nothing is checked.
    world.save(".moothall/policy.toml", "version = 1\n[paths]\ndeny = [\"secrets/**\"]\n");
    let unchecked = world.open();
    is_denied(unchecked.check(&worker(), &[old]).unwrap_err());
    is_denied(unchecked.submit(&worker(), &[old], "why").unwrap_err());
    // People can read what workers cannot, and the worker can still discard the draft.
    store.read(&person(), old).unwrap();
    assert_eq!(store.discard(&worker(), old).unwrap().state, DraftState::Withdrawn);
}

/// Answers each request with the next text and records the requests.
#[derive(Debug, Default)]
struct Saying {
    answers: Mutex<Vec<&'static str>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ModelReviewer for Saying {
    fn ask(&self, request: &ModelRequest, _: &CancellationToken) -> Result<ModelReply, String> {
        let words: Vec<&str> = request.turns.iter().map(|turn| &*turn.block.text).collect();
        self.asked.lock().unwrap().push(words.join("\n"));
        let answer = self.answers.lock().unwrap().pop().ok_or("nobody is there")?;
        Ok(ModelReply {
            fallback: None,
            text: answer.to_owned(),
            stop: StopReason::End,
            model: "m".to_owned(),
            usage: TokenUsage::default(),
            usage_basis: UsageBasis::Reported,
            cost_micro_usd: None,
        })
    }
}

/// A store whose organisation policy enables model review. Answers are used from last to first.
fn reviewed(world: &World, answers: &[&'static str]) -> (DraftStore, Arc<Mutex<Vec<String>>>) {
    let policy = world.folder.path().join("policy.toml");
    fs_err::write(&policy, "version = 1\n[review]\nmodel = \"demo\"\n").unwrap();
    let saying = Saying { answers: Mutex::new(answers.to_vec()), asked: Arc::default() };
    let asked = Arc::clone(&saying.asked);
    let mut options = world.options();
    options.organisation_policy = Some(policy);
    options.reviewer = Some(Box::new(saying));
    (DraftStore::open(options).unwrap(), asked)
}

const DOUBT: &str =
    r#"{"doubts": [{"path": "a.py", "line": 1, "concern": "security", "why": "a hole"}]}"#;

#[test]
fn a_reviewing_model_can_add_findings_but_not_remove_them() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let (store, _) = reviewed(&world, &[DOUBT]);
    let (_, submitted) = drafted(&store, "a.py", "a = 2\n");
    assert_eq!(told(&submitted), (DraftState::Escalated, vec![GateRule::ReviewModel]));
    assert_eq!(submitted.judged.doubts[0].why, "a hole");
    assert!(!world.journal().contains("a hole"), "a model's words are not kept");

    let (store, _) = reviewed(&world, &[r#"{"doubts": []}"#]);
    let (_, submitted) = drafted(&store, "a.py", "a = 1\n# ... rest of the code unchanged ...\n");
    assert_eq!(submitted.judged.verdict.action, GateAction::Reject);
    let (_, submitted) = drafted(&store, "a.py", "a = 3\n");
    assert_eq!(told(&submitted), (DraftState::Applied, vec![]));
}

#[test]
fn a_reviewing_model_is_asked_once_per_diff_within_a_limit() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    world.save(".moothall/policy.toml", "version = 1\n[limits]\nmax_looks_per_hour = 2\n");
    let (store, asked) = reviewed(&world, &[DOUBT, DOUBT, DOUBT]);
    let id = request(&store, "a.py");
    write(&store, id, "a = 2\n");
    for _ in 0..3 {
        assert_eq!(store.check(&worker(), &[id]).unwrap().doubts.len(), 1);
    }
    assert_eq!(asked.lock().unwrap().len(), 1);
    // The summary is part of the model's input.
    store.submit(&worker(), &[id], "why").unwrap();
    write(&store, id, "a = 3\n");
    let refused = store.submit(&worker(), &[id], "why").unwrap_err();
    assert!(matches!(refused, DraftError::TooManyChecks { most: 2 }), "{refused}");
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[test]
fn a_reviewing_model_with_an_invalid_answer_is_asked_once_more() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let (store, asked) = reviewed(&world, &[r#"{"doubts": []}"#, "looks good to me"]);
    assert_eq!(told(&drafted(&store, "a.py", "a = 2\n").1), (DraftState::Applied, vec![]));
    assert_eq!(asked.lock().unwrap().len(), 2);
    let (store, _) = reviewed(&world, &["still good", "looks good to me"]);
    let (_, submitted) = drafted(&store, "a.py", "a = 3\n");
    assert_eq!(told(&submitted), (DraftState::Escalated, vec![GateRule::GateError]));
}

/// The gate scans for credentials before a model sees the file; existing ones count as well.
#[test]
fn a_file_with_a_credential_is_never_sent_to_a_model() {
    let digits = moothall_core::Sha256Hex::of(b"a token of nobody").to_string();
    let token = format!("ghp_{}", &digits[..36]);
    let world =
        World::new(&[("a.py", &format!("a = 1\nKEY = \"{token}\"\n")), ("b.py", "b = 1\n")]);
    let (store, asked) = reviewed(&world, &[DOUBT]);
    let (_, submitted) = drafted(&store, "a.py", &format!("a = 2\nKEY = \"{token}\"\n"));
    assert_eq!(told(&submitted), (DraftState::Escalated, vec![GateRule::GateError]));
    let (id, submitted) = drafted(&store, "b.py", &format!("b = \"{token}\"\n"));
    assert_eq!(told(&submitted), (DraftState::Editing, vec![GateRule::SecretSpecific]));
    write(&store, id, "b = 2\n");
    store.submit(&worker(), &[id], &format!("uses {token}")).unwrap();
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
}
