//! A small fan-out workflow, a counting performer, and a store in a temporary directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::access::RunOwner;
use moothall_core::model::{
    FailureKind, ModelFailure, ModelReply, ModelRequest, StopReason, TokenUsage, UsageBasis,
};
use moothall_core::money::SpendTotals;
use moothall_core::receipt::EffectTiming;
use moothall_core::{
    Conclusion, Effect, EffectId, EffectResult, MicroUsd, Outcome, RunEvent, RunEventBody, RunId,
    RunVerdict, Step, StoredSpec, UnexpectedResult, Workflow,
};
use moothall_engine::{EffectPerformer, PerformFuture, TimedResult};
use moothall_store::{NewRun, SqliteStore, Store};

/// Requests `branches` effects together, and one more when all have results.
#[derive(Debug)]
pub(crate) struct FanOut {
    question: &'static str,
    branches: usize,
    answers: BTreeMap<EffectId, String>,
    last_asked: bool,
}

impl FanOut {
    pub(crate) fn new(branches: usize) -> Self {
        Self::asking("How many?", branches)
    }

    pub(crate) fn asking(question: &'static str, branches: usize) -> Self {
        Self { question, branches, answers: BTreeMap::new(), last_asked: false }
    }

    fn ask(&self, id: &str, more: &str) -> (EffectId, Effect) {
        let text = format!("{} {id}{more}", self.question);
        let request = ModelRequest::ask("openai/gpt-4.1-mini".parse().unwrap(), text, 50);
        (id.parse().unwrap(), Effect::CallModel(Box::new(request)))
    }
}

impl Workflow for FanOut {
    fn start(&mut self) -> Step {
        Step {
            perform: (1..=self.branches).map(|n| self.ask(&format!("m{n}"), "")).collect(),
            publish: vec![RunEvent::of_run(RunEventBody::RunStarted {
                workflow: "test".to_owned(),
            })],
            outcome: None,
        }
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let EffectResult::ModelReplied(reply) = result else { panic!("{result:?}") };
        let heard = RunEventBody::OutputRejected { effect_id: id.clone(), problems: Vec::new() };
        let publish = vec![RunEvent::about(id, heard)];
        self.answers.insert(id.clone(), reply.text);
        let words: Vec<_> = self.answers.values().cloned().collect();
        if self.last_asked {
            let conclusion = Conclusion::Answered { text: words.join(" "), value: None };
            let finished = RunEventBody::RunFinished { verdict: RunVerdict::Pass };
            let publish = publish.into_iter().chain([RunEvent::of_run(finished)]).collect();
            let outcome = Some(Outcome::new(Vec::new(), conclusion));
            return Ok(Step { perform: Vec::new(), publish, outcome });
        }
        self.last_asked = self.answers.len() == self.branches;
        let perform =
            if self.last_asked { vec![self.ask("score", &words.join(" "))] } else { Vec::new() };
        Ok(Step { perform, publish, outcome: None })
    }
}

/// Answers with the effect's id, counts calls, and hangs or fails on demand.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) hang_after: Option<usize>,
    /// Effects that fail, and how.
    pub(crate) refuse: BTreeMap<&'static str, FailureKind>,
    pub(crate) delay: BTreeMap<&'static str, Duration>,
    /// Reports one dollar spent per call.
    pub(crate) costs: bool,
    pub(crate) at_once: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
}

impl EffectPerformer for Counting {
    fn perform<'a>(&'a self, id: &'a EffectId, _: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            let number = {
                let mut asked = self.asked.lock().unwrap();
                asked.push(id.to_string());
                asked.len()
            };
            let under_way = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(under_way, Ordering::SeqCst);
            if self.hang_after.is_some_and(|answered| number > answered) {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(self.delay.get(id.as_str()).copied().unwrap_or_default()).await;
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            let result = match self.refuse.get(id.as_str()) {
                Some(kind) => EffectResult::ModelFailed(ModelFailure::new(*kind, "not now")),
                None => reply(id.as_str()),
            };
            TimedResult { result, timing: EffectTiming { latency_ms: 1, tries: 1 } }
        })
    }

    fn spent(&self) -> Option<SpendTotals> {
        let asked = self.asked.lock().unwrap().len() as u64;
        let usd = MicroUsd::new(asked * 1_000_000);
        self.costs.then_some(SpendTotals { usd, ..SpendTotals::default() })
    }
}

pub(crate) fn reply(text: &str) -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text: text.to_owned(),
        stop: StopReason::End,
        model: "gpt-4.1-mini".to_owned(),
        usage: TokenUsage { input: 5, output: 1, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    })
}

pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) run_id: RunId,
}

pub(crate) async fn world() -> World {
    world_with(StoredSpec::from_columns("test", serde_json::json!({}))).await
}

/// A world whose run was started with this request.
pub(crate) async fn world_with(spec: StoredSpec) -> World {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("moothall.db")).await.unwrap();
    let run_id: RunId = "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap();
    let run = NewRun {
        run_id: run_id.clone(),
        owner: RunOwner::local(),
        cap: None,
        spec,
        title: "a test".to_owned(),
        model: "openai/gpt-4.1-mini".to_owned(),
        build: "0.1.0".to_owned(),
        created_at_ms: 1,
        inherited: Vec::new(),
    };
    store.create_run(run).await.unwrap();
    World { folder, store: Arc::new(store), run_id }
}

impl World {
    /// Waits until this many results are journaled. The next effect starts while they are being
    /// written.
    pub(crate) async fn keeps(&self, answers: usize) {
        while self.store.journal(&self.run_id).await.unwrap().len() < answers {
            tokio::task::yield_now().await;
        }
    }

    /// The keys of all events, which are equal for equal runs in any order.
    pub(crate) async fn keys(&self) -> BTreeSet<String> {
        let events = self.store.events(&self.run_id, 0, u32::MAX).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|stored| stored.seq).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "no gaps");
        events.into_iter().map(|stored| stored.event.key).collect()
    }
}
