//! Existing runs for command tests: executed by the real engine into the store of a world, with
//! scripted results instead of models and sandboxes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use moothall_core::access::RunOwner;
use moothall_core::model::{
    FailureKind, ModelFailure, ModelReply, StopReason, TokenUsage, UsageBasis,
};
use moothall_core::money::SpendTotals;
use moothall_core::program::{OutputExpectation, ProgramContract, ProgramInput, ProgramRun};
use moothall_core::receipt::EffectTiming;
use moothall_core::sandbox::{
    CapturedOutput, ExecutionExit, FileRef, IsolationClass, SandboxAttestation, SandboxExecution,
    SandboxLimits,
};
use moothall_core::{Effect, EffectId, EffectResult, MicroUsd, RunId, Sha256Hex};
use moothall_engine::{EffectPerformer, PerformFuture, RunDriver, RunExit, RunLock, TimedResult};
use moothall_store::{NewRun, SqliteStore, Store};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::world::World;

/// A file created by the programs in these scenes.
pub(crate) const CHART: &[u8] = b"\x89PNG a chart";

/// A store with a runtime.
pub(crate) struct Scene {
    runtime: Runtime,
    pub(crate) store: Arc<dyn Store>,
    state: PathBuf,
}

/// Results of models and sandboxes by effect id. Effects that are not listed never complete.
pub(crate) type Script = BTreeMap<&'static str, EffectResult>;

impl Scene {
    pub(crate) fn new(world: &World) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let home = world.root().join("home");
        let path = home.join(".local/share/moothall/moothall.db");
        let store = runtime.block_on(SqliteStore::open(&path)).unwrap();
        Self { runtime, store: Arc::new(store), state: home.join(".local/state/moothall") }
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The lock on a run, as held by another process.
    pub(crate) fn lock(&self, id: &RunId) -> RunLock {
        RunLock::take(&self.state.join("locks"), id).unwrap()
    }

    /// Creates a run and executes it to the end of the script. The number determines its id and
    /// time.
    pub(crate) fn run(&self, number: u32, task: &str, script: Script) -> RunId {
        let id: RunId = format!("019a85c{number:x}-2f6e-7cc1-a5a0-3b0a4f1d2e3c").parse().unwrap();
        let model: moothall_core::model::ModelName = "openai/gpt-4.1-mini".parse().unwrap();
        let mut input = ProgramInput::new(task, model, "python");
        let expect = OutputExpectation::Pattern { pattern: "^2 3 5".parse().unwrap() };
        input.contract = ProgramContract { expect: Some(expect), ..ProgramContract::default() };
        let run = NewRun {
            run_id: id.clone(),
            owner: RunOwner::local(),
            cap: None,
            spec: moothall_core::StoredSpec::from_columns(
                ProgramRun::NAME,
                json!({ "reflexion": input, "settings": {} }),
            ),
            title: task.to_owned(),
            model: "openai/gpt-4.1-mini".to_owned(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            created_at_ms: 1_763_000_000_000 + u64::from(number) * 60_000,
            inherited: Vec::new(),
        };
        let performer = Arc::new(Scripted { script, asked: Mutex::default() });
        self.block_on(async {
            self.store.create_run(run).await.unwrap();
            self.store.keep_artifact(&id, CHART).await.unwrap();
            let check = Box::new(|_: &serde_json::Value| Vec::new());
            let mut workflow = ProgramRun::new(input, check).unwrap();
            let driver = RunDriver::new(Arc::clone(&self.store), performer.clone(), id.clone());
            // The process is killed at the end of the script.
            tokio::select! {
                ended = driver.drive(&mut workflow) => drop::<RunExit>(ended.unwrap()),
                () = performer.stuck() => {}
            }
        });
        id
    }
}

#[derive(Debug)]
struct Scripted {
    script: Script,
    /// All requested effects, completed or not.
    asked: Mutex<Vec<EffectId>>,
}

impl Scripted {
    async fn stuck(&self) {
        let is_stuck = || {
            let asked = self.asked.lock().unwrap();
            asked.iter().any(|id| !self.script.contains_key(id.as_str()))
        };
        while !is_stuck() {
            tokio::task::yield_now().await;
        }
    }
}

impl EffectPerformer for Scripted {
    fn perform<'a>(&'a self, id: &'a EffectId, _: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(id.clone());
            let timing = EffectTiming { latency_ms: 1200, tries: 1 };
            match self.script.get(id.as_str()) {
                Some(result) => TimedResult { result: result.clone(), timing },
                None => std::future::pending().await,
            }
        })
    }

    /// Excludes calls in progress, because their number depends on timing.
    fn spent(&self) -> Option<SpendTotals> {
        let asked = self.asked.lock().unwrap();
        let answered = asked.iter().filter(|id| self.script.contains_key(id.as_str()));
        let calls = answered.filter(|id| !id.as_str().ends_with("/execute")).count() as u64;
        let usd = MicroUsd::new(calls * 1250);
        Some(SpendTotals { usd, tokens: calls * 300, ..SpendTotals::default() })
    }
}

/// A model's reply with a program.
pub(crate) fn program(code: &str) -> EffectResult {
    says(
        &json!({
            "reasoning": "It is simple.",
            "code": code,
            "dependencies": [],
            "confidence": 0.9,
        })
        .to_string(),
    )
}

/// A model's reply with text.
pub(crate) fn says(text: &str) -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text: text.to_owned(),
        stop: StopReason::End,
        model: "gpt-4.1-mini".to_owned(),
        usage: TokenUsage { input: 280, output: 20, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: Some(MicroUsd::new(1250)),
    })
}

/// The budget is exceeded.
pub(crate) fn over_budget() -> EffectResult {
    let detail = "the call may cost $0.01, but only $0.001 of the run's $0.001 budget is left";
    EffectResult::ModelFailed(ModelFailure::new(FailureKind::OverBudget, detail))
}

/// A program with this exit code and output that created a chart.
pub(crate) fn ran(code: i32, stdout: &str, stderr: &str) -> EffectResult {
    let output = |text: &str| CapturedOutput { text: text.to_owned(), truncated: false };
    let chart = FileRef { sha256: Sha256Hex::of(CHART), bytes: CHART.len() as u64 };
    EffectResult::Executed(Box::new(SandboxExecution {
        exit: ExecutionExit::Exited { code },
        stdout: output(stdout),
        stderr: output(stderr),
        files: BTreeMap::from([("plots/chart.png".parse().unwrap(), chart)]),
        left_behind: Vec::new(),
        attestation: SandboxAttestation {
            engine: "microvm".to_owned(),
            engine_version: "7.2".to_owned(),
            class: IsolationClass::EmulatedVm,
            image: "python".to_owned(),
            image_sha256: Sha256Hex::of(b"image"),
            guest_sha256: Sha256Hex::of(b"guest"),
            limits: SandboxLimits::default(),
            held_by: BTreeMap::new(),
            self_tests: Vec::new(),
        },
    }))
}

/// The second program passes.
pub(crate) fn second_try() -> Script {
    BTreeMap::from([
        ("attempt-1/generate", program("print(1 / 0)\n")),
        ("attempt-1/execute", ran(1, "", "ZeroDivisionError: division by zero\n")),
        ("attempt-1/critique", says("It divides by zero.\u{1b}[2J\nDo not.")),
        ("attempt-2/generate", program("print('2 3 5')\n")),
        ("attempt-2/execute", ran(0, "2 3 5\n", "")),
    ])
}

/// The model never answers.
pub(crate) fn no_answer() -> Script {
    Script::new()
}
