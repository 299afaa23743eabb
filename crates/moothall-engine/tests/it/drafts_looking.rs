//! Checks and a reviewing model, played by scripts: what they are given, and what comes of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use moothall_core::drafts::State;
use moothall_core::gate::{Action, Rule};
use moothall_core::model::{ModelReply, ModelRequest, StopReason, Usage, UsageBasis};
use moothall_core::sandbox::{ExecuteRequest, Execution, Exit, GuestPath};
use moothall_engine::drafts::{Checker, DraftStore, Edit, Reviewer, Submitted};

use crate::drafts::{World, drafted, request, worker, write};
use crate::execute::execution;

const CHECK: &str = "version = 1\n[[check]]\nid = \"tests\"\nrun = [\"make\"]\ntimeout = \"1m\"\n";

type Tree = BTreeMap<String, String>;

/// Ends each check in one way, and remembers the trees.
#[derive(Debug)]
struct Ending {
    exit: Result<Exit, String>,
    trees: Arc<Mutex<Vec<Tree>>>,
    meanwhile: Option<Meanwhile>,
}

/// What somebody else does while a check runs.
struct Meanwhile(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Checker for Ending {
    fn execute(
        &self,
        _: Option<&str>,
        _: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
    ) -> Result<Execution, String> {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let tree = inputs.iter().map(|(path, bytes)| (path.to_string(), text(bytes)));
        self.trees.lock().unwrap().push(tree.collect());
        if let Some(Meanwhile(act)) = &self.meanwhile {
            act();
        }
        self.exit.clone().map(|exit| Execution { exit, ..execution() })
    }
}

/// A workspace with a policy.
fn workspace(policy: &str) -> World {
    let world = World::new(&[("src/a.py", "a = 1\n"), ("tests/test_a.py", "import a\n")]);
    world.save(".moothall/policy.toml", policy);
    world.save("_handoff/drafts/x", "not part of the work");
    world.save("target/debug/big", "made by tools");
    world
}

fn open(world: &World, exit: Result<Exit, String>) -> (DraftStore, Arc<Mutex<Vec<Tree>>>) {
    let trees: Arc<Mutex<Vec<Tree>>> = Arc::default();
    let mut options = world.options();
    options.checker = Some(Box::new(Ending { exit, trees: trees.clone(), meanwhile: None }));
    (DraftStore::open(options).unwrap(), trees)
}

fn told(submitted: &Submitted) -> (State, Vec<Rule>) {
    let rules = submitted.judged.verdict.findings.iter().map(|one| one.rule).collect();
    (submitted.drafts[0].state, rules)
}

#[test]
fn a_check_is_given_the_workspace_with_the_drafts_applied() {
    let world = workspace(CHECK);
    let (store, trees) = open(&world, Ok(Exit::Exited { code: 0 }));
    let ids = [request(&store, "src/a.py"), request(&store, "tests/test_a.py")];
    write(&store, ids[0], "a = 2\n");
    store.write(&worker(), ids[1], Edit::Rename("tests/test_b.py".into()), None).unwrap();
    let submitted = store.submit(&worker(), &ids, "why").unwrap();
    assert_eq!(told(&submitted), (State::Escalated, vec![Rule::FileRename]));
    let tree = [("src/a.py", "a = 2\n"), ("tests/test_b.py", "import a\n")];
    let tree = tree.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(*trees.lock().unwrap(), [BTreeMap::from(tree)]);
    assert_eq!(world.text("src/a.py").unwrap(), "a = 1\n");
}

#[test]
fn what_comes_of_a_check_decides_about_a_harmless_edit() {
    let ends = [
        (Ok(Exit::Exited { code: 0 }), State::Applied, vec![]),
        (Ok(Exit::Exited { code: 1 }), State::Editing, vec![Rule::CheckFailed]),
        (Ok(Exit::OutOfMemory), State::Editing, vec![Rule::CheckFailed]),
        (Ok(Exit::TimedOut), State::Escalated, vec![Rule::CheckTimeout]),
        (Err("no engine".to_owned()), State::Escalated, vec![Rule::GateError]),
    ];
    for (exit, state, rules) in ends {
        let world = workspace(CHECK);
        let (store, _) = open(&world, exit.clone());
        let (_, submitted) = drafted(&store, "src/a.py", "a = 2\n");
        assert_eq!(told(&submitted), (state, rules), "{exit:?}");
    }
}

#[test]
fn without_a_sandbox_a_check_is_escalated_and_says_why() {
    let world = workspace(CHECK);
    let (_, submitted) = drafted(&world.open(), "src/a.py", "a = 2\n");
    assert_eq!(told(&submitted), (State::Escalated, vec![Rule::GateError]));
    assert_eq!(submitted.judged.checks[0].output, "there is no sandbox here");
    assert!(!world.journal().contains("no sandbox"), "words about checks are not kept");
}

#[test]
fn no_check_runs_for_what_is_rejected_anyway_and_for_paths_it_is_not_about() {
    let world = workspace(&CHECK.replace("timeout", "when = [\"**/*.py\"]\ntimeout"));
    world.save("notes.md", "one\n");
    let (store, trees) = open(&world, Ok(Exit::Exited { code: 1 }));
    let (_, submitted) =
        drafted(&store, "src/a.py", "a = 1\n# ... rest of the code unchanged ...\n");
    assert_eq!(told(&submitted), (State::Editing, vec![Rule::ContentPlaceholder]));
    let (_, submitted) = drafted(&store, "notes.md", "two\n");
    assert_eq!(told(&submitted), (State::Applied, vec![]));
    assert_eq!(trees.lock().unwrap().len(), 0);
}

#[test]
fn a_check_of_other_contents_says_nothing_about_these() {
    let world = workspace(CHECK);
    let id = request(&world.open(), "src/a.py");
    write(&world.open(), id, "a = 2\n");
    let other = world.open();
    let act = move || drop(write(&other, id, "a = 3\n"));
    let mut options = world.options();
    options.checker = Some(Box::new(Ending {
        exit: Ok(Exit::Exited { code: 0 }),
        trees: Arc::default(),
        meanwhile: Some(Meanwhile(Box::new(act))),
    }));
    let store = DraftStore::open(options).unwrap();
    let submitted = store.submit(&worker(), &[id], "why").unwrap();
    assert_eq!(told(&submitted), (State::Escalated, vec![Rule::GateError]));
}

/// Answers each question with the next text, and remembers what it was asked.
#[derive(Debug, Default)]
struct Saying {
    answers: Mutex<Vec<&'static str>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Reviewer for Saying {
    fn ask(&self, request: &ModelRequest) -> Result<ModelReply, String> {
        let words: Vec<&str> = request.turns.iter().map(|turn| &*turn.block.text).collect();
        self.asked.lock().unwrap().push(words.join("\n"));
        let answer = self.answers.lock().unwrap().pop().ok_or("nobody is there")?;
        Ok(ModelReply {
            text: answer.to_owned(),
            stop: StopReason::End,
            model: "m".to_owned(),
            usage: Usage::default(),
            usage_basis: UsageBasis::Reported,
            cost_micro_usd: None,
        })
    }
}

/// A store whose organisation lets a model review; answers are given from the last one.
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
fn a_reviewing_model_adds_findings_and_removes_none() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let (store, _) = reviewed(&world, &[DOUBT]);
    let (_, submitted) = drafted(&store, "a.py", "a = 2\n");
    assert_eq!(told(&submitted), (State::Escalated, vec![Rule::ReviewModel]));
    assert_eq!(submitted.judged.doubts[0].why, "a hole");
    assert!(!world.journal().contains("a hole"), "a model's words are not kept");

    let (store, _) = reviewed(&world, &[r#"{"doubts": []}"#]);
    let (_, submitted) = drafted(&store, "a.py", "a = 1\n# ... rest of the code unchanged ...\n");
    assert_eq!(submitted.judged.verdict.action, Action::Reject);
    let (_, submitted) = drafted(&store, "a.py", "a = 3\n");
    assert_eq!(told(&submitted), (State::Applied, vec![]));
}

#[test]
fn a_model_that_answers_in_another_form_is_asked_once_more() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let (store, asked) = reviewed(&world, &[r#"{"doubts": []}"#, "looks good to me"]);
    assert_eq!(told(&drafted(&store, "a.py", "a = 2\n").1), (State::Applied, vec![]));
    assert_eq!(asked.lock().unwrap().len(), 2);
    let (store, _) = reviewed(&world, &["still good", "looks good to me"]);
    let (_, submitted) = drafted(&store, "a.py", "a = 3\n");
    assert_eq!(told(&submitted), (State::Escalated, vec![Rule::GateError]));
}

/// The gate reads for credentials before a model does, and an old one counts as well.
#[test]
fn no_model_sees_a_file_that_holds_a_credential() {
    let digits = moothall_core::Sha256Hex::of(b"a token of nobody").to_string();
    let token = format!("ghp_{}", &digits[..36]);
    let world =
        World::new(&[("a.py", &format!("a = 1\nKEY = \"{token}\"\n")), ("b.py", "b = 1\n")]);
    let (store, asked) = reviewed(&world, &[DOUBT]);
    let (_, submitted) = drafted(&store, "a.py", &format!("a = 2\nKEY = \"{token}\"\n"));
    assert_eq!(told(&submitted), (State::Escalated, vec![Rule::GateError]));
    let (id, submitted) = drafted(&store, "b.py", &format!("b = \"{token}\"\n"));
    assert_eq!(told(&submitted), (State::Editing, vec![Rule::SecretSpecific]));
    write(&store, id, "b = 2\n");
    store.submit(&worker(), &[id], &format!("uses {token}")).unwrap();
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
}
