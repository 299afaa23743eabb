//! A workflow with real debates as children, a performer that answers for all roles, and a store
//! that fails on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::access::RunLimitError;
use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::consult::{MoveApproval, ReviewChange, RunOutcomes, board};
use moothall_core::debate::{CallSettings, DebateInput};
use moothall_core::model::{CallPurpose, FailureKind, ModelFailure, ModelRequest};
use moothall_core::receipt::EffectTiming;
use moothall_core::{
    Conclusion, Effect, EffectId, EffectResult, MicroUsd, Outcome, RunEvent, RunEventBody, RunId,
    RunVerdict, Sha256Hex, Step, UnexpectedResult, Workflow,
};
use moothall_engine::{
    EffectPerformer, EngineError, PerformFuture, RunDriver, RunExit, TimedResult,
};
use moothall_store::{
    AdmissionDecision, AdmissionTerms, BatchAdmission, BatchStart, ControlRequest, JournalEntry,
    NewRun, RunCommit, RunFilter, RunMatch, RunPage, RunQuery, RunRow, RunState, Store,
    StoreFuture, StoredEvent, TeamFilter,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{World, reply};

/// Calls of one debate: the critic's opening, and for each of two decision makers one call in the
/// first round, two in the second (critic and decision maker), and the score.
pub(crate) const CALLS_PER_MOVE: usize = 9;

/// The input of a debate with two rounds and two decision makers.
pub(crate) fn input(move_id: &str) -> DebateInput {
    let board = board();
    DebateInput {
        move_id: move_id.to_owned(),
        company: "Helix Instruments".to_owned(),
        dossier: "F0: revenue of FY2025 was 412 million.".into(),
        move_markdown: format!("# {move_id}: sell more\n\nIt pays [F0:Revenue:FY2025].").into(),
        machine_findings: Vec::new(),
        rounds: 2,
        critic: board.critic,
        decision_makers: board.decision_makers.into_iter().take(2).collect(),
        metrics: board.metrics,
        critic_model: "openai/gpt-4.1-mini".parse().unwrap(),
        decision_maker_model: "openai/gpt-4.1-mini".parse().unwrap(),
        calls: CallSettings::default(),
        prompts: moothall_core::OwnTexts::default(),
        scoring: moothall_core::debate::DebateScoring::default(),
        calculations: None,
    }
}

/// Starts a debate for each move. The workflow itself rewrites the second move first: its effect
/// `m2/rewrite` looks like one of the child `m2` but is not.
#[derive(Debug)]
pub(crate) struct Panel {
    moves: usize,
    ends: BTreeMap<EffectId, ChildEnd>,
}

impl Panel {
    pub(crate) fn new(moves: usize) -> Self {
        Self { moves, ends: BTreeMap::new() }
    }

    fn debate(number: usize) -> (EffectId, Effect) {
        let id = format!("m{number}");
        let request = ChildRequest::Debate(Box::new(input(&id)));
        (id.parse().unwrap(), Effect::StartChild(request))
    }
}

impl Workflow for Panel {
    fn start(&mut self) -> Step {
        let model = "openai/gpt-4.1-mini".parse().unwrap();
        let rewrite = ModelRequest::ask(model, "Write m2 again.", 50);
        let rewrite = Effect::CallModel(Box::new(rewrite));
        let rewrite = (self.moves >= 2).then(|| ("m2/rewrite".parse().unwrap(), rewrite));
        let others = (1..=self.moves).filter(|number| *number != 2).map(Self::debate);
        Step {
            perform: others.chain(rewrite).collect(),
            publish: vec![RunEvent::of_run(RunEventBody::RunStarted {
                workflow: "panel".to_owned(),
            })],
            outcome: None,
        }
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let end = match result {
            EffectResult::ModelReplied(_) if id.as_str() == "m2/rewrite" => {
                return Ok(Step { perform: vec![Self::debate(2)], ..Step::default() });
            }
            EffectResult::ChildEnded(end) => *end,
            other => panic!("{id}: {other:?}"),
        };
        let ChildIsolation { class, fallback, .. } = end.isolation.clone();
        let body = RunEventBody::Isolation {
            effect_id: id.clone(),
            move_id: id.to_string(),
            class,
            fallback,
        };
        let mut publish = vec![RunEvent::about(id, body)];
        self.ends.insert(id.clone(), end);
        let is_over = self.ends.len() == self.moves;
        if is_over {
            let verdict = RunVerdict::Pass;
            publish.push(RunEvent::of_run(RunEventBody::RunFinished { verdict }));
        }
        let outcome = is_over.then(|| {
            let text = self.ends.iter().map(|(id, end)| format!("{id} {}", said(end)));
            let text = text.collect::<Vec<_>>().join("; ");
            Outcome::new(Vec::new(), Conclusion::Answered { text, value: None })
        });
        Ok(Step { perform: Vec::new(), publish, outcome })
    }
}

fn said(end: &ChildEnd) -> String {
    match &end.outcome.conclusion {
        Conclusion::Debated(debated) => debated.total_score.to_string(),
        Conclusion::NotDebated { why } => why.clone(),
        other => panic!("{other:?}"),
    }
}

/// Answers for the critic and the decision makers, always the same text for the same call.
#[derive(Debug, Default)]
pub(crate) struct Speaking {
    pub(crate) asked: Mutex<Vec<String>>,
    /// Notified on every call.
    pub(crate) was_asked: Notify,
    /// Gives calls a latency of 0 to 3 ms, which shuffles their order depending on the seed.
    pub(crate) seed: Option<u64>,
    /// Latency of each call.
    pub(crate) latency: Duration,
    /// Calls with this id suffix are rejected by the budget.
    pub(crate) refuse: Option<&'static str>,
    /// The first calls with this id suffix have their API key rejected.
    pub(crate) lock_out: Option<(&'static str, usize)>,
    /// Calls with this id suffix never return.
    pub(crate) hang: Option<&'static str>,
    /// The first call with this id suffix waits for the end of an outage.
    pub(crate) outage: Option<&'static str>,
    pub(crate) outage_wait_ended: Notify,
    pub(crate) at_once: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
}

impl Speaking {
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) async fn hears(&self, id: &str) {
        loop {
            let mut again = std::pin::pin!(self.was_asked.notified());
            again.as_mut().enable();
            if self.asked.lock().unwrap().iter().any(|asked| asked == id) {
                return;
            }
            again.await;
        }
    }
}

impl EffectPerformer for Speaking {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            let Effect::CallModel(request) = effect else { panic!("{effect:?}") };
            self.asked.lock().unwrap().push(id.to_string());
            self.was_asked.notify_waiters();
            let under_way = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(under_way, Ordering::SeqCst);
            if self.hang.is_some_and(|end| id.as_str().ends_with(end)) {
                std::future::pending::<()>().await;
            }
            if let Some(seed) = self.seed {
                let digest = Sha256Hex::of(format!("{seed} {id}").as_bytes()).to_string();
                let draw = u64::from_str_radix(&digest[..4], 16).unwrap();
                tokio::time::sleep(Duration::from_micros(draw % 3000)).await;
            }
            let before = |end: &str| self.asked().iter().filter(|id| id.ends_with(end)).count();
            let waits =
                self.outage.is_some_and(|end| id.as_str().ends_with(end) && before(end) == 1);
            if waits {
                self.outage_wait_ended.notified().await;
            }
            tokio::time::sleep(self.latency).await;
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            let is_locked_out = self
                .lock_out
                .is_some_and(|(end, most)| id.as_str().ends_with(end) && before(end) <= most);
            let result = if waits {
                EffectResult::ModelFailed(ModelFailure::new(FailureKind::Transport, "no answer"))
            } else if is_locked_out {
                EffectResult::ModelFailed(ModelFailure::new(FailureKind::Auth, "a wrong key"))
            } else if self.refuse.is_some_and(|end| id.as_str().ends_with(end)) {
                EffectResult::ModelFailed(ModelFailure::new(FailureKind::OverBudget, "no money"))
            } else {
                reply(&words(id, request.purpose))
            };
            TimedResult { result, timing: EffectTiming { latency_ms: 1, tries: 1 } }
        })
    }

    fn end_outage_waits(&self) {
        self.outage_wait_ended.notify_one();
    }
}

/// The answer to a call: well-formed, and different for every call.
pub(crate) fn words(id: &EffectId, purpose: CallPurpose) -> String {
    let message = format!("What is said in {id} [F0:Revenue:FY2025].");
    let digest = Sha256Hex::of(id.as_str().as_bytes()).to_string();
    let score = |at: usize| 1 + u8::from_str_radix(&digest[at..=at], 16).unwrap() % 10;
    match purpose {
        CallPurpose::Critic => json!({
            "message": message,
            "objections": [{"id": "", "severity": "major", "text": format!("No proof in {id}."), "evidence": []}],
            "withdrawn": [],
        }),
        CallPurpose::DecisionMaker => json!({
            "message": message, "stance": "hold", "answers": [], "conceded": [], "scores": null,
        }),
        CallPurpose::Score => json!({
            "message": message, "stance": "partial", "answers": [], "conceded": [],
            "scores": {
                "impact": score(0), "feasibility": score(1), "risk_adjusted_return": score(2),
                "strategic_alignment": score(3), "reasoning": "It is so.",
            },
        }),
        _ => json!(message),
    }
    .to_string()
}

pub(crate) fn driver(world: &World, performer: &Arc<Speaking>) -> RunDriver {
    RunDriver::new(Arc::clone(&world.store), performer.clone(), world.run_id.clone())
}

pub(crate) async fn drive(
    world: &World,
    performer: &Arc<Speaking>,
    moves: usize,
) -> Result<RunExit, EngineError> {
    driver(world, performer).drive(&mut Panel::new(moves)).await
}

/// What a run stores, without what may differ between equal runs: times, and the order of events of
/// different moves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) events: BTreeMap<String, RunEventBody>,
    /// Rounds and ends in order, by move.
    pub(crate) order: BTreeMap<String, Vec<String>>,
    pub(crate) answers: BTreeMap<EffectId, (Sha256Hex, EffectResult)>,
    pub(crate) outcome: Option<Outcome>,
}

impl World {
    /// Reads the run and checks that sequence numbers have no gaps and keys are unique.
    pub(crate) async fn left(&self) -> Left {
        let events = self.store.events(&self.run_id, 0, u32::MAX).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|stored| stored.seq).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "no gaps");
        let mut left = Left {
            events: BTreeMap::new(),
            order: BTreeMap::new(),
            answers: BTreeMap::new(),
            outcome: self.store.run(&self.run_id).await.unwrap().unwrap().outcome,
        };
        for stored in events {
            let RunEvent { key, body } = stored.event;
            // Results of concurrent calls may arrive in any order; rounds may not.
            if matches!(body, RunEventBody::SandboxRound { .. } | RunEventBody::Isolation { .. }) {
                let of = key.split(['/', ':']).next().unwrap().to_owned();
                left.order.entry(of).or_default().push(key.clone());
            }
            assert_eq!(left.events.insert(key.clone(), body), None, "{key} is there twice");
        }
        for (id, entry) in self.store.journal(&self.run_id).await.unwrap() {
            left.answers.insert(id, (entry.request_sha256, entry.result));
        }
        left
    }
}

/// How a store fails; commits are counted from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Death {
    /// Dies before this commit is written.
    Before(usize),
    /// Dies after this commit is written and before it is acknowledged.
    After(usize),
    /// The disk is full from the first of these commits until before the second.
    Full(usize, usize),
    /// The run is cancelled while it is pausing.
    CancelledAtPause,
}

/// A store that stops responding in some commit, as if the process had been killed.
#[derive(Debug)]
pub(crate) struct Dying {
    inner: Arc<dyn Store>,
    death: Death,
    commits: AtomicUsize,
    /// Number of polls for cancel requests.
    pub(crate) looks: AtomicUsize,
    died: Notify,
}

impl Dying {
    pub(crate) fn new(inner: Arc<dyn Store>, death: Death) -> Arc<Self> {
        let (commits, looks) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { inner, death, commits, looks, died: Notify::new() })
    }

    /// Drives a panel over a failing store. Returns `None` if the store died first, otherwise how
    /// the run ended.
    pub(crate) async fn drive(
        self: &Arc<Self>,
        driver: impl FnOnce(Arc<dyn Store>) -> RunDriver,
        moves: usize,
    ) -> Option<RunExit> {
        let driver = driver(self.clone());
        let mut panel = Panel::new(moves);
        tokio::select! {
            ended = driver.drive(&mut panel) => Some(ended.unwrap()),
            () = self.died.notified() => None,
        }
    }

    async fn die<T>(&self) -> T {
        self.died.notify_one();
        std::future::pending().await
    }
}

impl Store for Dying {
    fn commit<'a>(&'a self, id: &'a RunId, commit: RunCommit) -> StoreFuture<'a, Vec<StoredEvent>> {
        let id = id.clone();
        Box::pin(async move {
            let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
            match self.death {
                Death::Before(at) if number >= at => self.die().await,
                Death::After(at) if number == at => {
                    self.inner.commit(&id, commit).await?;
                    self.die().await
                }
                Death::Full(from, until) if (from..until).contains(&number) => {
                    Err(io::Error::from(io::ErrorKind::StorageFull).into())
                }
                Death::CancelledAtPause if commit.state == Some(RunState::Paused) => {
                    self.inner.request_control(&id, ControlRequest::Cancel).await?;
                    self.inner.commit(&id, commit).await
                }
                Death::Before(_) | Death::After(_) | Death::Full(..) | Death::CancelledAtPause => {
                    self.inner.commit(&id, commit).await
                }
            }
        })
    }

    fn begin<'a>(
        &'a self,
        id: &'a RunId,
        beginning: BatchStart,
    ) -> StoreFuture<'a, BatchAdmission> {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        match self.death {
            Death::Full(from, until) if (from..until).contains(&number) => {
                Box::pin(async { Err(io::Error::from(io::ErrorKind::StorageFull).into()) })
            }
            _ => self.inner.begin(id, beginning),
        }
    }

    fn create_run(&self, run: NewRun) -> StoreFuture<'_, ()> {
        self.inner.create_run(run)
    }
    fn set_later_outcomes<'a>(
        &'a self,
        id: &'a RunId,
        outcomes: &'a RunOutcomes,
    ) -> StoreFuture<'a, ()> {
        self.inner.set_later_outcomes(id, outcomes)
    }
    fn later_outcomes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunOutcomes>> {
        self.inner.later_outcomes(id)
    }
    fn runs_with_later_outcomes(&self) -> StoreFuture<'_, Vec<RunId>> {
        self.inner.runs_with_later_outcomes()
    }
    fn admit_run(&self, run: NewRun, terms: AdmissionTerms) -> StoreFuture<'_, AdmissionDecision> {
        self.inner.admit_run(run, terms)
    }
    fn change_cap<'a>(
        &'a self,
        id: &'a RunId,
        cap: Option<MicroUsd>,
        day_began_at_ms: u64,
    ) -> StoreFuture<'a, Result<(), RunLimitError>> {
        self.inner.change_cap(id, cap, day_began_at_ms)
    }
    fn run<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunRow>> {
        self.inner.run(id)
    }
    fn runs(&self, filter: RunFilter) -> StoreFuture<'_, Vec<RunRow>> {
        self.inner.runs(filter)
    }
    fn run_page(&self, query: RunQuery) -> StoreFuture<'_, RunPage> {
        self.inner.run_page(query)
    }
    fn count_runs(&self, state: RunState) -> StoreFuture<'_, u64> {
        self.inner.count_runs(state)
    }
    fn find_runs<'a>(&'a self, prefix: &'a str, teams: TeamFilter) -> StoreFuture<'a, RunMatch> {
        self.inner.find_runs(prefix, teams)
    }
    fn journal<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        self.inner.journal(id)
    }
    fn events<'a>(
        &'a self,
        id: &'a RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>> {
        self.inner.events(id, after, limit)
    }
    fn heads<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, BTreeMap<RunId, u64>> {
        self.inner.heads(ids)
    }
    fn keep_artifact<'a>(&'a self, id: &'a RunId, content: &'a [u8]) -> StoreFuture<'a, Sha256Hex> {
        self.inner.keep_artifact(id, content)
    }
    fn artifact<'a>(
        &'a self,
        id: &'a RunId,
        sha256: &'a Sha256Hex,
    ) -> StoreFuture<'a, Option<Vec<u8>>> {
        self.inner.artifact(id, sha256)
    }
    fn request_control<'a>(&'a self, id: &'a RunId, wish: ControlRequest) -> StoreFuture<'a, ()> {
        self.inner.request_control(id, wish)
    }
    fn clear_control<'a>(&'a self, id: &'a RunId, wish: ControlRequest) -> StoreFuture<'a, ()> {
        self.inner.clear_control(id, wish)
    }
    fn control_requests<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeSet<ControlRequest>> {
        let next = self.commits.load(Ordering::SeqCst) + 1;
        match self.death {
            Death::Full(from, until) if (from..until).contains(&next) => {
                Box::pin(async { Err(io::Error::from(io::ErrorKind::StorageFull).into()) })
            }
            _ => self.inner.control_requests(id),
        }
    }
    fn runs_with_control_request<'a>(
        &'a self,
        ids: &'a [RunId],
        wish: ControlRequest,
    ) -> StoreFuture<'a, BTreeSet<RunId>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.inner.runs_with_control_request(ids, wish)
    }
    fn approve<'a>(&'a self, id: &'a RunId, approval: MoveApproval) -> StoreFuture<'a, ()> {
        self.inner.approve(id, approval)
    }
    fn approvals<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<MoveApproval>> {
        self.inner.approvals(id)
    }
    fn add_changes<'a>(&'a self, id: &'a RunId, changes: Vec<ReviewChange>) -> StoreFuture<'a, ()> {
        self.inner.add_changes(id, changes)
    }
    fn changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<ReviewChange>> {
        self.inner.changes(id)
    }
    fn forget_changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, ()> {
        self.inner.forget_changes(id)
    }
    fn run_bytes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, u64> {
        self.inner.run_bytes(id)
    }
    fn delete_runs<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, ()> {
        self.inner.delete_runs(ids)
    }
    fn reclaim_space(&self) -> StoreFuture<'_, u64> {
        self.inner.reclaim_space()
    }
}

/// Deterministic random numbers (SplitMix64).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}
