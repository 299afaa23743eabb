//! Runs on an engine that suspends after every step and replays from the start, and on one that
//! dies in the middle of steps. They must end like runs of the local engine.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::receipt::EffectTiming;
use moothall_core::{Effect, EffectId, EffectResult, PauseReason, RunEventBody, RunId};
use moothall_engine::durable::{
    ChildCall, ChildExit, ControlPoller, DurableEngine, DurableRunExit, PerformerFactory,
    RecentResults, RunContext, StepRecord, Work, drive_child, drive_run,
};
use moothall_engine::{EffectPerformer, EngineError, IsolationMode, PerformFuture, TimedResult};
use moothall_models::{Budget, CallCost, RunLedger};
use moothall_store::{ControlRequest, JournalEntry, NewRun, RunState, Store};
use tokio::task::JoinSet;

use crate::children::whole_run_of;
use crate::panel::{CALLS_PER_MOVE, Death, Dice, Dying, Panel, Speaking};
use crate::support::{World, world};

const MOVES: usize = 3;

/// The engine's record of one machine.
#[derive(Debug, Default)]
struct Memory {
    steps: Vec<(String, StepRecord)>,
    left: Vec<(EffectId, ChildExit)>,
}

/// The engine's record of all machines of a run.
#[derive(Debug, Default)]
struct Server {
    machines: Mutex<BTreeMap<String, Memory>>,
    /// Machines suspend after every step.
    suspends: bool,
    /// Workers die in the middle of random steps.
    dice: Option<Mutex<Dice>>,
    replays: Mutex<usize>,
    /// How often the run waited to be resumed.
    waits: Mutex<usize>,
    /// The budget with which it is resumed.
    resumes_with: Budget,
    speaking: Arc<Speaking>,
}

/// One attempt to drive a machine.
struct Attempt<'a> {
    server: &'a Server,
    context: &'a Arc<RunContext>,
    machine: String,
    steps: usize,
    left: usize,
    started: VecDeque<ChildCall>,
}

#[derive(Debug)]
enum Halt {
    Suspended,
    Broken(EngineError),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Self::Broken(error)
    }
}

impl DurableEngine for Attempt<'_> {
    type Halt = Halt;

    async fn step(&mut self, name: String, work: Work) -> Result<StepRecord, Halt> {
        let at = self.steps;
        self.steps += 1;
        let known = self.memory(|memory| memory.steps.get(at).cloned());
        if let Some((known, noted)) = known {
            assert_eq!(known, name, "a replay makes the same steps");
            return Ok(noted);
        }
        let kept =
            self.context.store.journal(&self.context.run_id).await.map_err(EngineError::from)?;
        let before = self.server.speaking.asked().len();
        let noted = self.perform(work).await;
        let asked = self.server.speaking.asked().split_off(before);
        let again: Vec<_> =
            asked.iter().filter(|id| kept.keys().any(|kept| kept.as_str() == *id)).collect();
        assert!(again.is_empty(), "{again:?} were answered and asked again");
        let noted = noted?;
        self.memory(|memory| memory.steps.push((name, noted.clone())));
        match self.server.suspends {
            true => Err(Halt::Suspended),
            false => Ok(noted),
        }
    }

    fn start_child(&mut self, call: ChildCall) {
        self.started.push_back(call);
    }

    async fn next_child_exit(&mut self) -> Result<(EffectId, ChildExit), Halt> {
        let at = self.left;
        self.left += 1;
        if let Some(known) = self.memory(|memory| memory.left.get(at).cloned()) {
            self.started.retain(|call| call.id != known.0);
            return Ok(known);
        }
        let call = self.started.pop_front().unwrap();
        let left = Box::pin(self.server.child(self.context, &call)).await;
        self.memory(|memory| memory.left.push((call.id.clone(), left.clone())));
        Ok((call.id, left))
    }

    async fn wait_for_resume(&mut self, pause: u32) -> Result<Budget, Halt> {
        assert!(pause < 5, "it pauses again and again");
        *self.server.waits.lock().unwrap() += 1;
        Ok(self.server.resumes_with)
    }
}

impl Attempt<'_> {
    async fn perform(&self, work: Work) -> Result<StepRecord, Halt> {
        if let Some(dice) = &self.server.dice {
            let (dies, polls) = {
                let mut dice = dice.lock().unwrap();
                (dice.below(3) == 0, dice.below(12))
            };
            if dies {
                // Killed during the work, or after it and before it was recorded.
                let lives = tokio::time::timeout(Duration::from_millis(polls), work);
                let _ = lives.await;
                return Err(Halt::Suspended);
            }
        }
        Ok(work.await?)
    }

    fn memory<T>(&self, look: impl FnOnce(&mut Memory) -> T) -> T {
        let mut machines = self.server.machines.lock().unwrap();
        look(machines.entry(self.machine.clone()).or_default())
    }
}

impl Server {
    fn attempt<'a>(&'a self, context: &'a Arc<RunContext>, machine: String) -> Attempt<'a> {
        *self.replays.lock().unwrap() += 1;
        Attempt { server: self, context, machine, steps: 0, left: 0, started: VecDeque::new() }
    }

    async fn child(&self, context: &Arc<RunContext>, call: &ChildCall) -> ChildExit {
        loop {
            let mut attempt = self.attempt(context, format!("{}/{}", call.id, call.pauses));
            match drive_child(&mut attempt, context, call).await {
                Ok(left) => return left,
                Err(Halt::Suspended) => {}
                Err(Halt::Broken(error)) => assert!(error.is_retryable(), "{error}"),
            }
        }
    }

    async fn run(&self, context: &Arc<RunContext>) -> DurableRunExit {
        loop {
            let mut attempt = self.attempt(context, "run".to_owned());
            match drive_run(&mut attempt, context, &mut Panel::new(MOVES)).await {
                Ok(left) => return left,
                Err(Halt::Suspended) => {}
                Err(Halt::Broken(error)) => assert!(error.is_retryable(), "{error}"),
            }
        }
    }
}

#[derive(Debug)]
struct OneSpeaker(Arc<Speaking>);

impl PerformerFactory for OneSpeaker {
    fn performer(&self, _: Arc<RunLedger>) -> Arc<dyn EffectPerformer> {
        self.0.clone()
    }

    fn max_cost(&self, _: &Effect) -> CallCost {
        CallCost::default()
    }
}

/// What one attempt of a call may use, and uses.
const ATTEMPT: CallCost = CallCost { usd: None, tokens: 10 };

/// Charges every attempt of a call to the ledger, as the gateway does.
#[derive(Debug)]
struct Billed {
    speaking: Arc<Speaking>,
    /// Calls with this ending need two attempts.
    twice: Option<&'static str>,
}

#[derive(Debug)]
struct BilledPerformer {
    speaking: Arc<Speaking>,
    twice: Option<&'static str>,
    ledger: Arc<RunLedger>,
}

impl PerformerFactory for Billed {
    fn performer(&self, ledger: Arc<RunLedger>) -> Arc<dyn EffectPerformer> {
        let Self { speaking, twice } = self;
        Arc::new(BilledPerformer { speaking: Arc::clone(speaking), twice: *twice, ledger })
    }

    fn max_cost(&self, _: &Effect) -> CallCost {
        ATTEMPT
    }
}

impl EffectPerformer for BilledPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            let is_repeated = self.twice.is_some_and(|ending| id.as_str().ends_with(ending));
            for _ in 0..if is_repeated { 2 } else { 1 } {
                match self.ledger.reserve(ATTEMPT).await {
                    Ok(reservation) => reservation.settle(ATTEMPT),
                    Err(failure) => {
                        let timing = EffectTiming { latency_ms: 1, tries: 1 };
                        return TimedResult { result: EffectResult::ModelFailed(failure), timing };
                    }
                }
            }
            self.speaking.perform(id, effect).await
        })
    }
}

/// The context of a run with a token limit.
fn billed(
    world: &World,
    speaking: &Arc<Speaking>,
    twice: Option<&'static str>,
    tokens: u64,
) -> Arc<RunContext> {
    let performers = Arc::new(Billed { speaking: Arc::clone(speaking), twice });
    let budget = Budget { usd: None, tokens: Some(tokens) };
    let unlimited = Arc::into_inner(context(world, speaking)).unwrap();
    Arc::new(RunContext { performers, budget, ..unlimited })
}

async fn spent_tokens(world: &World) -> u64 {
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    row.spent.unwrap_or_default().tokens
}

fn server(speaking: &Arc<Speaking>) -> Server {
    Server { speaking: Arc::clone(speaking), ..Server::default() }
}

fn context(world: &World, speaking: &Arc<Speaking>) -> Arc<RunContext> {
    context_with(world, speaking, Arc::clone(&world.store))
}

fn context_with(world: &World, speaking: &Arc<Speaking>, store: Arc<dyn Store>) -> Arc<RunContext> {
    Arc::new(RunContext {
        store,
        run_id: world.run_id.clone(),
        performers: Arc::new(OneSpeaker(Arc::clone(speaking))),
        budget: Budget::default(),
        isolation: IsolationMode::None,
        parallel_children: 2,
        recent: RecentResults::default(),
        control: Arc::default(),
        trace_parent: None,
    })
}

#[tokio::test]
async fn a_durable_run_ends_like_a_local_one() {
    let world = world().await;
    let speaking = Arc::new(Speaking::default());
    let left = server(&speaking).run(&context(&world, &speaking)).await;
    assert_eq!(left, DurableRunExit::Done);
    assert_eq!(world.left().await, whole_run_of(MOVES).await);
    assert_eq!(speaking.asked().len(), MOVES * CALLS_PER_MOVE + 1);
}

#[tokio::test]
async fn a_run_that_is_suspended_and_replayed_after_every_step_ends_the_same() {
    let world = world().await;
    let speaking = Arc::new(Speaking::default());
    let server = Server { suspends: true, ..server(&speaking) };
    assert_eq!(server.run(&context(&world, &speaking)).await, DurableRunExit::Done);
    assert_eq!(world.left().await, whole_run_of(MOVES).await);
    assert_eq!(speaking.asked().len(), MOVES * CALLS_PER_MOVE + 1, "nothing is asked twice");
    let steps: usize = server.machines.lock().unwrap().values().map(|one| one.steps.len()).sum();
    assert!(*server.replays.lock().unwrap() > steps, "every step was replayed");
}

#[tokio::test]
async fn workers_that_die_in_the_middle_of_steps_repeat_no_finished_call() {
    let whole = whole_run_of(MOVES).await;
    for seed in 0..15 {
        let world = world().await;
        let speaking = Arc::new(Speaking { seed: Some(seed), ..Speaking::default() });
        let server = Server { dice: Some(Mutex::new(Dice::new(seed))), ..server(&speaking) };
        assert_eq!(
            server.run(&context(&world, &speaking)).await,
            DurableRunExit::Done,
            "seed {seed}"
        );
        assert_eq!(world.left().await, whole, "seed {seed}");
    }
}

#[tokio::test]
async fn a_durable_run_does_not_perform_what_its_journal_inherited() {
    let whole = whole_run_of(MOVES).await;
    let world = world().await;
    let id: EffectId = "m2/rewrite".parse().unwrap();
    let (request_sha256, result) = whole.answers[&id].clone();
    let timing = EffectTiming { latency_ms: 0, tries: 0 };
    let entry = JournalEntry { request_sha256, result, timing };
    let run_id: RunId = "00000000-0000-7000-8000-0000000000fe".parse().unwrap();
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    let fork = NewRun {
        run_id: run_id.clone(),
        owner: row.owner,
        cap: row.cap,
        spec: row.spec,
        title: row.title,
        model: row.model,
        build: row.build,
        created_at_ms: row.created_at_ms,
        inherited: vec![(id, entry)],
    };
    world.store.create_run(fork).await.unwrap();
    let world = World { run_id, ..world };
    let speaking = Arc::new(Speaking::default());
    let server = Server { suspends: true, ..server(&speaking) };
    assert_eq!(server.run(&context(&world, &speaking)).await, DurableRunExit::Done);
    assert_eq!(world.left().await, whole);
    assert_eq!(speaking.asked().len(), MOVES * CALLS_PER_MOVE);
}

#[tokio::test]
async fn a_temporarily_full_store_loses_no_answer() {
    let whole = whole_run_of(MOVES).await;
    for from in [2, 4] {
        let world = world().await;
        let speaking = Arc::new(Speaking::default());
        let store = Dying::new(Arc::clone(&world.store), Death::Full(from, from + 4));
        let context = context_with(&world, &speaking, store);
        assert_eq!(server(&speaking).run(&context).await, DurableRunExit::Done);
        assert_eq!(world.left().await, whole);
        assert_eq!(speaking.asked().len(), MOVES * CALLS_PER_MOVE + 1, "nothing is asked twice");
    }
}

#[tokio::test]
async fn a_durable_run_cancelled_while_it_pauses_ends_without_waiting() {
    let world = world().await;
    let speaking = Arc::new(Speaking::default());
    world.store.request_control(&world.run_id, ControlRequest::Pause).await.unwrap();
    let store = Dying::new(Arc::clone(&world.store), Death::CancelledAtPause);
    let server = server(&speaking);
    let context = context_with(&world, &speaking, store);
    assert_eq!(server.run(&context).await, DurableRunExit::Cancelled);
    assert_eq!(*server.waits.lock().unwrap(), 0);
}

#[tokio::test]
async fn cancelling_a_durable_run_stops_its_calls_and_is_recorded() {
    let world = world().await;
    let speaking = Arc::new(Speaking { hang: Some("m3/round-1/critic"), ..Speaking::default() });
    let (server, context) = (server(&speaking), context(&world, &speaking));
    let (left, ()) = tokio::join!(server.run(&context), async {
        speaking.hears("m3/round-1/critic").await;
        world.store.request_control(&world.run_id, ControlRequest::Cancel).await.unwrap();
    });
    assert_eq!(left, DurableRunExit::Cancelled);
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Cancelled);
    assert!(world.keys().await.contains("run:run_cancelled"));
}

#[tokio::test]
async fn waiting_steps_share_one_poll_and_only_cancelled_runs_are_notified() {
    let (world, poller) = (world().await, Arc::new(ControlPoller::default()));
    let kept = Dying::new(Arc::clone(&world.store), Death::Before(usize::MAX));
    let store: Arc<dyn Store> = kept.clone();
    let other: RunId = "00000000-0000-7000-8000-0000000000ff".parse().unwrap();
    let mut steps = JoinSet::new();
    for number in 0..50 {
        let (poller, store) = (Arc::clone(&poller), Arc::clone(&store));
        let run_id = if number % 2 == 0 { world.run_id.clone() } else { other.clone() };
        steps.spawn(async move {
            poller.requested(&store, &run_id, ControlRequest::Cancel).await;
            run_id
        });
    }
    tokio::time::sleep(Duration::from_millis(1200)).await;
    world.store.request_control(&world.run_id, ControlRequest::Cancel).await.unwrap();
    for _ in 0..25 {
        assert_eq!(steps.join_next().await.unwrap().unwrap(), world.run_id);
    }
    let looks = kept.looks.load(Ordering::SeqCst);
    assert!((2..10).contains(&looks), "{looks}");
    // Runs without waiters are not polled; polling restarts with the next waiter.
    drop(steps);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let before = kept.looks.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(kept.looks.load(Ordering::SeqCst), before);
    poller.requested(&store, &world.run_id, ControlRequest::Cancel).await;
}

#[tokio::test]
async fn a_durable_run_pauses_on_request_and_resumes() {
    let world = world().await;
    let speaking = Arc::new(Speaking::default());
    world.store.request_control(&world.run_id, ControlRequest::Pause).await.unwrap();
    assert_eq!(server(&speaking).run(&context(&world, &speaking)).await, DurableRunExit::Done);
    let detail = "paused on request".to_owned();
    assert_eq!(pauses(&world).await, [(1, PauseReason::Person, detail)]);
    assert_eq!(speaking.asked().len(), MOVES * CALLS_PER_MOVE + 1);
}

#[tokio::test]
async fn a_pause_request_ends_the_wait_of_a_durable_run_for_an_outage() {
    let world = world().await;
    let speaking = Arc::new(Speaking { outage: Some("m2/round-1/D1"), ..Speaking::default() });
    let (server, context) = (server(&speaking), context(&world, &speaking));
    let (left, ()) = tokio::join!(server.run(&context), async {
        speaking.hears("m2/round-1/D1").await;
        world.store.request_control(&world.run_id, ControlRequest::Pause).await.unwrap();
    });
    assert_eq!(left, DurableRunExit::Done);
    let detail = "paused on request".to_owned();
    assert_eq!(pauses(&world).await, [(1, PauseReason::Person, detail)]);
    // Only the call that waited is repeated.
    assert_eq!(speaking.asked().len(), MOVES * CALLS_PER_MOVE + 2);
    assert_eq!(world.left().await.outcome, whole_run_of(MOVES).await.outcome);
}

#[tokio::test]
async fn a_durable_run_pauses_on_a_refused_key_and_repeats_only_that_call() {
    let world = world().await;
    let lock_out = Some(("round-2/critic/D1", 1));
    let speaking = Arc::new(Speaking { lock_out, ..Speaking::default() });
    assert_eq!(server(&speaking).run(&context(&world, &speaking)).await, DurableRunExit::Done);
    let detail = "openai/gpt-4.1-mini: auth: a wrong key".to_owned();
    assert_eq!(pauses(&world).await, [(1, PauseReason::Failure, detail)]);
    assert_eq!(speaking.asked().len(), MOVES * CALLS_PER_MOVE + 2);
    let journal = world.store.journal(&world.run_id).await.unwrap();
    let failed = |entry: &JournalEntry| matches!(entry.result, EffectResult::ModelFailed(_));
    assert!(!journal.values().any(failed), "a refusal is no answer");
}

#[tokio::test]
async fn a_durable_run_pauses_at_its_budget_and_ends_with_exactly_what_it_needs() {
    let world = world().await;
    let speaking = Arc::new(Speaking::default());
    let calls = MOVES * CALLS_PER_MOVE + 1;
    let enough = calls as u64 * ATTEMPT.tokens;
    let resumes_with = Budget { usd: None, tokens: Some(enough) };
    let server = Server { resumes_with, ..server(&speaking) };
    let context = billed(&world, &speaking, None, 75);
    assert_eq!(server.run(&context).await, DurableRunExit::Done);
    let pauses = pauses(&world).await;
    assert!(matches!(&pauses[..], [(1, PauseReason::Budget, _)]), "{pauses:?}");
    assert_eq!(speaking.asked().len(), calls, "nothing is asked twice");
    assert_eq!(spent_tokens(&world).await, enough);
    assert_eq!(world.left().await.outcome, whole_run_of(MOVES).await.outcome);
}

#[tokio::test]
async fn a_call_that_needs_a_second_attempt_reserves_more_and_pays_for_all_of_them() {
    let world = world().await;
    let speaking = Arc::new(Speaking::default());
    let context = billed(&world, &speaking, Some("/round-1/critic"), 10_000);
    assert_eq!(server(&speaking).run(&context).await, DurableRunExit::Done);
    assert_eq!(pauses(&world).await, []);
    let calls = MOVES * CALLS_PER_MOVE + 1;
    assert_eq!(speaking.asked().len(), calls);
    // One attempt within the first reservation, two within the second.
    let attempts = (calls - MOVES) + 3 * MOVES;
    assert_eq!(spent_tokens(&world).await, attempts as u64 * ATTEMPT.tokens);
}

async fn pauses(world: &World) -> Vec<(u32, PauseReason, String)> {
    let events = world.store.events(&world.run_id, 0, u32::MAX).await.unwrap();
    let paused = events.into_iter().filter_map(|stored| match stored.event.body {
        RunEventBody::RunPaused { number, reason, detail } => Some((number, reason, detail)),
        _ => None,
    });
    paused.collect()
}
