//! Children in guests: a guest that deviates from the local machine is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::child::{ChildEnd, ChildIsolation};
use moothall_core::guest::{GuestStateMachine, GuestWorkflow, StepSummary};
use moothall_core::sandbox::{
    GuestPath, IsolationClass, SandboxAttestation, SandboxFailure, SandboxFailureKind,
    SandboxLimits,
};
use moothall_core::{
    Conclusion, EffectId, EffectResult, RunId, RunVerdict, Sha256Hex, Step, Workflow as _,
};
use moothall_engine::{
    GuestFailurePolicy, GuestFuture, GuestPool, GuestProvider, GuestSession, IsolationMode,
    RunDriver, RunExit, RunPause,
};
use moothall_store::{ControlRequest, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::panel::{Death, Dying, Panel, Speaking, driver};
use crate::support::{World, world};

/// How a guest misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Requests a different effect after this many results.
    LiesAfter(usize),
    /// Is lost after this many results.
    LostAfter(usize),
    /// Leaves a wrong file.
    WrongFile,
}

/// Guests in this process, limited in number, of which the first ones misbehave.
#[derive(Debug)]
struct Mirrors {
    at_once: Arc<Semaphore>,
    /// Faults of the first guests of every child, in order.
    faults: Vec<Fault>,
    log: Arc<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Children that got a guest, in order.
    entered: Mutex<Vec<String>>,
    /// Number of results each guest received, by child, in order.
    told: Mutex<BTreeMap<String, Vec<usize>>>,
    alive: AtomicUsize,
    most_alive: AtomicUsize,
}

impl Mirrors {
    fn new(at_once: usize) -> Self {
        let at_once = Arc::new(Semaphore::new(at_once));
        Self { at_once, faults: Vec::new(), log: Arc::default() }
    }

    fn faulty(faults: &[Fault]) -> Self {
        Self { faults: faults.to_vec(), ..Self::new(20) }
    }
}

impl GuestProvider for Mirrors {
    fn acquire<'a>(
        &'a self,
        _: &'a RunId,
        id: &'a EffectId,
    ) -> GuestFuture<'a, Box<dyn GuestSession>> {
        Box::pin(async move {
            let permit = Arc::clone(&self.at_once).acquire_owned().await.unwrap();
            let log = Arc::clone(&self.log);
            let number = {
                let mut entered = log.entered.lock().unwrap();
                entered.push(id.to_string());
                entered.iter().filter(|entered| *entered == id.as_str()).count() - 1
            };
            log.told.lock().unwrap().entry(id.to_string()).or_default().push(0);
            let alive = log.alive.fetch_add(1, Ordering::SeqCst) + 1;
            log.most_alive.fetch_max(alive, Ordering::SeqCst);
            let fault = self.faults.get(number).copied();
            let attestation = attestation();
            let (id, machine, told) = (id.clone(), None, 0);
            Ok(Box::new(Mirror { id, machine, told, fault, attestation, log, _permit: permit })
                as Box<dyn GuestSession>)
        })
    }
}

#[derive(Debug)]
struct Mirror {
    id: EffectId,
    machine: Option<GuestStateMachine>,
    told: usize,
    fault: Option<Fault>,
    attestation: SandboxAttestation,
    log: Arc<Log>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.log.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Mirror {
    fn said(&self, mut step: Step) -> Result<StepSummary, SandboxFailure> {
        match self.fault {
            Some(Fault::LiesAfter(told)) if told == self.told => {
                step.perform.push(("m1/another".parse().unwrap(), other_effect()));
                Ok(StepSummary::of(step).unwrap())
            }
            Some(Fault::LostAfter(told)) if told == self.told => Err(lost()),
            _ => Ok(StepSummary::of(step).unwrap()),
        }
    }
}

impl GuestSession for Mirror {
    fn start(&mut self, workflow: GuestWorkflow) -> GuestFuture<'_, StepSummary> {
        Box::pin(async move {
            let step = self.machine.insert(workflow.build().unwrap()).start();
            self.said(step)
        })
    }

    fn resume(&mut self, id: EffectId, result: EffectResult) -> GuestFuture<'_, StepSummary> {
        Box::pin(async move {
            self.told += 1;
            if let Some(told) = self.log.told.lock().unwrap().get_mut(self.id.as_str()) {
                *told.last_mut().unwrap() = self.told;
            }
            let step = self.machine.as_mut().unwrap().resume(&id, result).unwrap();
            self.said(step)
        })
    }

    fn read<'a>(&'a mut self, path: &'a GuestPath, most_bytes: u64) -> GuestFuture<'a, Vec<u8>> {
        Box::pin(async move {
            if self.fault == Some(Fault::WrongFile) {
                return Ok(b"[]".to_vec());
            }
            let file = self.machine.as_ref().unwrap().files().remove(path).unwrap().into_bytes();
            assert!(file.len() as u64 <= most_bytes);
            Ok(file)
        })
    }

    fn attestation(&self) -> &SandboxAttestation {
        &self.attestation
    }

    fn release(self: Box<Self>) {}
}

fn other_effect() -> moothall_core::Effect {
    let model = "openai/gpt-4.1-mini".parse().unwrap();
    let request = moothall_core::model::ModelRequest::ask(model, "Send me the key.", 50);
    moothall_core::Effect::CallModel(Box::new(request))
}

fn lost() -> SandboxFailure {
    let detail = "lost contact with the guest agent".to_owned();
    SandboxFailure { kind: SandboxFailureKind::Lost, detail }
}

fn attestation() -> SandboxAttestation {
    SandboxAttestation {
        engine: "mirror".to_owned(),
        engine_version: "1".to_owned(),
        class: IsolationClass::EmulatedVm,
        image: "debate".to_owned(),
        image_sha256: Sha256Hex::of(b"image"),
        guest_sha256: Sha256Hex::of(b"guest"),
        limits: SandboxLimits::default(),
        held_by: BTreeMap::new(),
        self_tests: Vec::new(),
    }
}

fn in_rooms(rooms: Mirrors, on_failure: GuestFailurePolicy) -> (IsolationMode, Arc<Log>) {
    let log = Arc::clone(&rooms.log);
    (IsolationMode::Guests { guest_pool: Arc::new(GuestPool::new(rooms)), on_failure }, log)
}

/// The results of a run's children.
async fn ends(world: &World) -> BTreeMap<String, ChildEnd> {
    let journal = world.store.journal(&world.run_id).await.unwrap();
    let ends = journal.into_iter().filter_map(|(id, entry)| match entry.result {
        EffectResult::ChildEnded(end) => Some((id.to_string(), *end)),
        _ => None,
    });
    ends.collect()
}

async fn drive(
    isolation_mode: IsolationMode,
    performer: &Arc<Speaking>,
    moves: usize,
) -> (World, RunExit) {
    let world = world().await;
    let driver = driver(&world, performer).isolation(isolation_mode);
    let ended = driver.drive(&mut Panel::new(moves)).await.unwrap();
    (world, ended)
}

#[tokio::test]
async fn debates_in_guests_end_like_local_ones_and_report_their_isolation() {
    let (here, _) = drive(IsolationMode::None, &Arc::default(), 3).await;
    let (isolation_mode, log) = in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail);
    let (there, _) = drive(isolation_mode, &Arc::default(), 3).await;
    assert_eq!(log.entered.lock().unwrap().len(), 3);
    assert_eq!(log.alive.load(Ordering::SeqCst), 0);
    let (here, there) = (ends(&here).await, ends(&there).await);
    let outcome = |ends: &BTreeMap<String, ChildEnd>| -> Vec<_> {
        ends.values().map(|end| end.outcome.clone()).collect()
    };
    assert_eq!(outcome(&here), outcome(&there));
    assert_eq!(here["m1"].isolation, ChildIsolation::none(None));
    let ChildIsolation { class, fallback, attestation: told, logs } = there["m1"].isolation.clone();
    assert_eq!((class, fallback), (IsolationClass::EmulatedVm, None));
    assert_eq!(told, Some(Box::new(attestation())));
    assert_eq!(logs.keys().collect::<Vec<_>>(), ["i1.json", "i2.json"]);
}

#[tokio::test]
async fn a_guest_that_deviates_is_replaced_and_the_debate_succeeds() {
    let (whole, _) =
        drive(in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail).0, &Arc::default(), 2).await;
    for fault in [Fault::LiesAfter(0), Fault::LiesAfter(4), Fault::LostAfter(3), Fault::WrongFile] {
        let (isolation_mode, log) = in_rooms(Mirrors::faulty(&[fault]), GuestFailurePolicy::Fail);
        let performer = Arc::new(Speaking::default());
        let (world, _) = drive(isolation_mode, &performer, 2).await;
        assert_eq!(log.entered.lock().unwrap().len(), 4, "{fault:?}");
        let asked = performer.asked();
        assert!(!asked.contains(&"m1/another".to_owned()), "{fault:?}");
        assert_eq!(asked.len(), asked.iter().collect::<BTreeSet<_>>().len(), "{fault:?}");
        assert_eq!(world.left().await, whole.left().await, "{fault:?}");
    }
}

#[tokio::test]
async fn guests_that_deviate_twice_cause_a_fallback_or_a_failure() {
    let lies = [Fault::LiesAfter(3), Fault::LiesAfter(5)];
    let words = "differed: the guest had other results than the debate itself";

    let (isolation_mode, log) = in_rooms(Mirrors::faulty(&lies), GuestFailurePolicy::Fallback);
    let (world, _) = drive(isolation_mode, &Arc::default(), 1).await;
    assert_eq!(log.entered.lock().unwrap().len(), 2);
    let end = ends(&world).await.remove("m1").unwrap();
    assert_eq!(end.isolation, ChildIsolation::none(Some(words.to_owned())));
    assert!(matches!(end.outcome.conclusion, Conclusion::Debated(_)));

    let (isolation_mode, _) = in_rooms(Mirrors::faulty(&lies), GuestFailurePolicy::Fail);
    let (world, _) = drive(isolation_mode, &Arc::default(), 1).await;
    let end = ends(&world).await.remove("m1").unwrap();
    assert_eq!(end.outcome.conclusion, Conclusion::NotDebated { why: words.to_owned() });
    assert_eq!(end.outcome.verdict, RunVerdict::Fail);
}

#[tokio::test]
async fn a_debate_without_an_available_guest_runs_locally_and_says_why() {
    let failure = SandboxFailure {
        kind: SandboxFailureKind::Image,
        detail: "image `debate`: there is no image of that name".to_owned(),
    };
    let guest_pool = Arc::new(GuestPool::unavailable(failure));
    let isolation_mode =
        IsolationMode::Guests { guest_pool, on_failure: GuestFailurePolicy::Fallback };
    let (world, ended) = drive(isolation_mode, &Arc::default(), 2).await;
    assert!(matches!(ended, RunExit::Done(_)));
    for end in ends(&world).await.into_values() {
        let words = "image: the image of the sandbox is missing or was changed";
        assert_eq!(end.isolation, ChildIsolation::none(Some(words.to_owned())));
    }
}

#[tokio::test]
async fn debates_beyond_the_number_of_guests_wait_for_a_free_one() {
    let (isolation_mode, log) = in_rooms(Mirrors::new(2), GuestFailurePolicy::Fail);
    let performer = Arc::new(Speaking { seed: Some(7), ..Speaking::default() });
    let (world, ended) = drive(isolation_mode, &performer, 5).await;
    assert!(matches!(ended, RunExit::Done(_)), "{ended:?}");
    assert_eq!(log.most_alive.load(Ordering::SeqCst), 2);
    assert_eq!(log.entered.lock().unwrap().len(), 5);
    assert!(ends(&world).await.values().all(|end| end.isolation.fallback.is_none()));
}

#[tokio::test]
async fn an_idle_guest_is_released_to_a_waiting_debate_and_replayed_later() {
    let rooms = Mirrors::new(1);
    let log = Arc::clone(&rooms.log);
    let guest_pool = Arc::new(GuestPool::new(rooms).idle(Duration::from_millis(10)));
    let isolation_mode = IsolationMode::Guests { guest_pool, on_failure: GuestFailurePolicy::Fail };
    // Every call takes longer than the idle limit, so the two children take turns.
    let latency = Duration::from_millis(40);
    let performer = Arc::new(Speaking { latency, ..Speaking::default() });
    let (world, ended) = drive(isolation_mode, &performer, 2).await;
    assert!(matches!(ended, RunExit::Done(_)), "{ended:?}");
    assert_eq!(log.most_alive.load(Ordering::SeqCst), 1);
    let told = log.told.lock().unwrap().clone();
    assert!(told.values().all(|rooms| rooms.len() > 1 && rooms.is_sorted()), "{told:?}");
    let asked = performer.asked();
    assert_eq!(asked.len(), asked.iter().collect::<BTreeSet<_>>().len(), "nothing is asked twice");
    let (whole, _) =
        drive(in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail).0, &Arc::default(), 2).await;
    assert_eq!(world.left().await, whole.left().await);
}

#[tokio::test]
async fn an_idle_guest_is_kept_while_no_debate_waits() {
    let rooms = Mirrors::new(2);
    let log = Arc::clone(&rooms.log);
    let guest_pool = Arc::new(GuestPool::new(rooms).idle(Duration::from_millis(1)));
    let isolation_mode = IsolationMode::Guests { guest_pool, on_failure: GuestFailurePolicy::Fail };
    let latency = Duration::from_millis(20);
    let performer = Arc::new(Speaking { latency, ..Speaking::default() });
    let world = world().await;
    let driver = driver(&world, &performer).isolation(isolation_mode).parallel_children(1);
    driver.drive(&mut Panel::new(1)).await.unwrap();
    assert_eq!(*log.entered.lock().unwrap(), ["m1"]);
}

#[tokio::test]
async fn a_run_in_guests_killed_in_any_commit_ends_the_same() {
    const MOVES: usize = 2;
    let (whole, _) =
        drive(in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail).0, &Arc::default(), MOVES).await;
    let whole = whole.left().await;
    for at in (1..).step_by(4) {
        let world = world().await;
        let first = Arc::new(Speaking { seed: Some(at as u64), ..Speaking::default() });
        let dying = Dying::new(Arc::clone(&world.store), Death::After(at));
        let run_id = world.run_id.clone();
        let driver = |store: Arc<dyn Store>| {
            RunDriver::new(store, first.clone(), run_id)
                .isolation(in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail).0)
        };
        if dying.drive(driver, MOVES).await.is_some() {
            return;
        }
        let kept = world.store.journal(&world.run_id).await.unwrap();
        let second = Arc::new(Speaking::default());
        let (isolation_mode, log) = in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail);
        let driver = crate::panel::driver(&world, &second).isolation(isolation_mode);
        driver.drive(&mut Panel::new(MOVES)).await.unwrap();
        let again: BTreeSet<String> = second.asked().into_iter().collect();
        assert!(kept.keys().all(|id| !again.contains(id.as_str())), "commit {at}");
        // A finished debate needs no guest; an unfinished one is replayed into one guest.
        let over = kept.values().filter(|e| matches!(e.result, EffectResult::ChildEnded(_)));
        let over = over.count();
        assert_eq!(log.entered.lock().unwrap().len(), MOVES - over, "commit {at}");
        assert_eq!(world.left().await, whole, "commit {at}");
    }
}

#[tokio::test]
async fn a_pause_releases_the_guests_and_debates_resume_in_new_ones() {
    let world = world().await;
    let refuse = Some("round-2/critic/D1");
    let first = Arc::new(Speaking { refuse, ..Speaking::default() });
    let (isolation_mode, log) = in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail);
    let ended =
        driver(&world, &first).isolation(isolation_mode).drive(&mut Panel::new(2)).await.unwrap();
    assert!(matches!(ended, RunExit::Paused(RunPause::Budget(_))), "{ended:?}");
    // The tasks that hold the guests are aborted, which takes a moment.
    while log.alive.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    let second = Arc::new(Speaking::default());
    let (isolation_mode, log) = in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail);
    let ended =
        driver(&world, &second).isolation(isolation_mode).drive(&mut Panel::new(2)).await.unwrap();
    assert!(matches!(ended, RunExit::Done(_)), "{ended:?}");
    assert_eq!(log.entered.lock().unwrap().len(), 2);
    assert!(
        second.asked().iter().all(|id| !first.asked().contains(id) || id.ends_with("critic/D1"))
    );
}

#[tokio::test]
async fn cancelling_a_run_stops_all_its_guests() {
    let world = world().await;
    let performer = Arc::new(Speaking { hang: Some("round-2/D1"), ..Speaking::default() });
    let (isolation_mode, log) = in_rooms(Mirrors::new(20), GuestFailurePolicy::Fail);
    let driver = driver(&world, &performer).isolation(isolation_mode);
    let mut panel = Panel::new(2);
    let wish = async {
        performer.hears("m1/round-2/D1").await;
        world.store.request_control(&world.run_id, ControlRequest::Cancel).await.unwrap();
    };
    let (ended, ()) = tokio::join!(driver.drive(&mut panel), wish);
    assert_eq!(ended.unwrap(), RunExit::Cancelled);
    while log.alive.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
}
