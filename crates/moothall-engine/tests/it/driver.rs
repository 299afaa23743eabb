use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use moothall_core::ask::AskWorkflow;
use moothall_core::model::{FailureKind, ModelFailure, ModelRequest};
use moothall_core::{Conclusion, MicroUsd, Outcome, PauseReason, RunEventBody};
use moothall_engine::{EngineError, ModelPerformer, RunDriver, RunExit, RunPause, cancel};
use moothall_models::settings::RetrySettings;
use moothall_models::{
    Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode, RunLedger,
};
use moothall_store::{ControlRequest, RunState};

use crate::support::{Counting, FanOut, World, world};

const BRANCHES: usize = 4;

fn done() -> RunExit {
    let text = "m1 m2 m3 m4 score".to_owned();
    RunExit::Done(Outcome::new(Vec::new(), Conclusion::Answered { text, value: None }))
}

async fn drive(world: &World, performer: &Arc<Counting>) -> Result<RunExit, EngineError> {
    let driver = RunDriver::new(Arc::clone(&world.store), performer.clone(), world.run_id.clone());
    driver.drive(&mut FanOut::new(BRANCHES)).await
}

/// Drives a run until exactly `answered` results are journaled and the next effect has started,
/// then stops.
async fn stop_after(world: &World, answered: usize) {
    let performer = Arc::new(Counting { hang_after: Some(answered), ..Counting::default() });
    let driver = RunDriver::new(Arc::clone(&world.store), performer.clone(), world.run_id.clone());
    let mut workflow = FanOut::new(BRANCHES);
    // One at a time, so that exactly this many are done when the next one hangs.
    let driven = driver.at_once(1).drive(&mut workflow);
    let hanging = async {
        while performer.asked.lock().unwrap().len() <= answered {
            tokio::task::yield_now().await;
        }
        world.keeps(answered).await;
    };
    tokio::select! {
        ended = driven => panic!("it did not hang: {ended:?}"),
        () = hanging => {}
    }
}

/// What an uninterrupted run stores.
async fn whole_run() -> BTreeSet<String> {
    let world = world().await;
    assert_eq!(drive(&world, &Arc::default()).await.unwrap(), done());
    world.keys().await
}

#[tokio::test]
async fn a_run_is_executed_to_its_end_and_stored() {
    let world = world().await;
    let performer = Arc::new(Counting::default());
    assert_eq!(drive(&world, &performer).await.unwrap(), done());
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    assert_eq!((row.state, row.events), (RunState::Finished, 7));
    assert_eq!(row.outcome.map(RunExit::Done), Some(done()));
    assert_eq!(world.store.journal(&world.run_id).await.unwrap().len(), BRANCHES + 1);
}

#[tokio::test]
async fn a_run_stopped_after_any_answer_resumes_without_repeats() {
    let whole = whole_run().await;
    for answered in 0..=BRANCHES {
        let world = world().await;
        stop_after(&world, answered).await;
        let kept = world.store.journal(&world.run_id).await.unwrap();
        assert_eq!(kept.len(), answered);

        let second = Arc::new(Counting::default());
        assert_eq!(drive(&world, &second).await.unwrap(), done());
        let again: BTreeSet<_> = second.asked.lock().unwrap().iter().cloned().collect();
        assert!(kept.keys().all(|id| !again.contains(id.as_str())), "{again:?} after {kept:?}");
        assert_eq!(again.len(), BRANCHES + 1 - answered);
        assert_eq!(world.keys().await, whole);
    }
}

#[tokio::test]
async fn resuming_a_finished_run_makes_no_calls_and_emits_no_events() {
    let world = world().await;
    drive(&world, &Arc::default()).await.unwrap();
    let keys = world.keys().await;
    let again = Arc::new(Counting::default());
    assert_eq!(drive(&world, &again).await.unwrap(), done());
    assert!(again.asked.lock().unwrap().is_empty());
    assert_eq!(world.keys().await, keys);
}

#[tokio::test]
async fn a_run_does_not_depend_on_the_order_of_answers() {
    let whole = whole_run().await;
    for slow in ["m1", "m2", "m3", "m4"] {
        let world = world().await;
        let delay = BTreeMap::from([(slow, Duration::from_millis(30))]);
        let performer = Arc::new(Counting { delay, ..Counting::default() });
        assert_eq!(drive(&world, &performer).await.unwrap(), done());
        assert_eq!(world.keys().await, whole);
    }
}

#[tokio::test]
async fn no_more_effects_are_performed_at_once_than_allowed() {
    let world = world().await;
    let delay = ["m1", "m2", "m3", "m4"].map(|id| (id, Duration::from_millis(10)));
    let performer = Arc::new(Counting { delay: BTreeMap::from(delay), ..Counting::default() });
    let driver = RunDriver::new(Arc::clone(&world.store), performer.clone(), world.run_id.clone());
    assert_eq!(driver.at_once(2).drive(&mut FanOut::new(BRANCHES)).await.unwrap(), done());
    assert_eq!(performer.most_at_once.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_journaled_answer_to_a_different_request_is_refused() {
    let world = world().await;
    stop_after(&world, 1).await;

    let second = Arc::new(Counting::default());
    let driver = RunDriver::new(Arc::clone(&world.store), second.clone(), world.run_id.clone());
    let error = driver.drive(&mut FanOut::asking("How much?", BRANCHES)).await.unwrap_err();
    assert!(
        matches!(&error, EngineError::JournalMismatch { id, .. } if id.as_str() == "m1"),
        "{error}"
    );
    assert!(second.asked.lock().unwrap().is_empty(), "nobody was asked");
}

#[tokio::test]
async fn a_used_up_budget_pauses_the_run_and_keeps_calls_in_progress() {
    let world = world().await;
    for number in 1..=2 {
        let delay = BTreeMap::from([("m4", Duration::from_millis(30))]);
        let refuse = BTreeMap::from([("m2", FailureKind::OverBudget)]);
        let performer = Arc::new(Counting { refuse, delay, ..Counting::default() });
        let ended = drive(&world, &performer).await.unwrap();
        assert!(matches!(ended, RunExit::Paused(RunPause::Budget(_))), "{ended:?}");
        let kept = world.store.journal(&world.run_id).await.unwrap();
        assert_eq!(kept.keys().map(|id| id.as_str()).collect::<Vec<_>>(), ["m1", "m3", "m4"]);
        // A second pause is a separate event.
        assert!(world.keys().await.contains(&format!("run:run_paused:{number}")));
        let row = world.store.run(&world.run_id).await.unwrap().unwrap();
        assert_eq!(row.state, RunState::Paused);
    }
    let with_money = Arc::new(Counting::default());
    assert_eq!(drive(&world, &with_money).await.unwrap(), done());
    assert_eq!(*with_money.asked.lock().unwrap(), ["m2", "score"]);
}

#[tokio::test]
async fn a_refused_api_key_pauses_the_run_and_its_calls_are_repeated_later() {
    let world = world().await;
    let refuse = BTreeMap::from([("m2", FailureKind::Auth), ("m3", FailureKind::Auth)]);
    let performer = Arc::new(Counting { refuse, ..Counting::default() });
    let ended = drive(&world, &performer).await.unwrap();
    let refused = ModelFailure::new(FailureKind::Auth, "not now");
    assert_eq!(
        ended,
        RunExit::Paused(RunPause::Failure("openai/gpt-4.1-mini".parse().unwrap(), refused))
    );
    let events = world.store.events(&world.run_id, 0, u32::MAX).await.unwrap();
    let last = events.last().map(|stored| stored.event.body.clone());
    let (reason, detail) = (PauseReason::Failure, "openai/gpt-4.1-mini: auth: not now".to_owned());
    assert_eq!(last, Some(RunEventBody::RunPaused { number: 1, reason, detail }));
    let with_another_key = Arc::new(Counting::default());
    assert_eq!(drive(&world, &with_another_key).await.unwrap(), done());
    assert_eq!(*with_another_key.asked.lock().unwrap(), ["m2", "m3", "score"]);
}

#[tokio::test]
async fn a_refused_api_key_fails_a_run_that_cannot_be_resumed() {
    let world = world().await;
    let refuse = BTreeMap::from([("answer", FailureKind::Auth)]);
    let performer = Arc::new(Counting { refuse, ..Counting::default() });
    let driver = RunDriver::new(Arc::clone(&world.store), performer, world.run_id.clone());
    let request = ModelRequest::ask("openai/gpt-4.1-mini".parse().unwrap(), "Why?", 50);
    let mut workflow =
        AskWorkflow::new(request, Box::new(|_: &serde_json::Value| Vec::new())).unwrap();
    let ended = driver.without_resume().drive(&mut workflow).await.unwrap();
    let RunExit::Done(outcome) = ended else { panic!("{ended:?}") };
    assert_eq!(outcome.conclusion, Conclusion::Failed { kind: FailureKind::Auth });
}

#[tokio::test]
async fn another_process_can_cancel_the_run() {
    let world = world().await;
    let hanging = Arc::new(Counting { hang_after: Some(0), ..Counting::default() });
    let store = Arc::clone(&world.store);
    let run_id = world.run_id.clone();
    let wish = async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        store.request_control(&run_id, ControlRequest::Cancel).await.unwrap();
    };
    let (ended, ()) = tokio::join!(drive(&world, &hanging), wish);
    assert_eq!(ended.unwrap(), RunExit::Cancelled);
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Cancelled);
    assert!(world.keys().await.contains("run:run_cancelled"));
}

#[tokio::test]
async fn a_run_pauses_on_request_and_can_be_resumed() {
    let world = world().await;
    // `m1` takes longer than one poll interval, and is journaled before the pause.
    let delay = BTreeMap::from([("m1", Duration::from_millis(700))]);
    let performer = Arc::new(Counting { delay, ..Counting::default() });
    let driver = RunDriver::new(Arc::clone(&world.store), performer.clone(), world.run_id.clone());
    let mut workflow = FanOut::new(BRANCHES);
    let wish = async {
        while performer.asked.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        world.store.request_control(&world.run_id, ControlRequest::Pause).await.unwrap();
    };
    let (ended, ()) = tokio::join!(driver.at_once(1).drive(&mut workflow), wish);
    assert_eq!(ended.unwrap(), RunExit::Paused(RunPause::Person));
    assert_eq!(world.store.journal(&world.run_id).await.unwrap().len(), 1);
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Paused);

    assert_eq!(drive(&world, &Arc::default()).await.unwrap(), done());
    assert_eq!(world.store.control_requests(&world.run_id).await.unwrap(), BTreeSet::new());
}

#[tokio::test]
async fn an_earlier_pause_request_is_honoured_only_if_configured() {
    let world = world().await;
    world.store.request_control(&world.run_id, ControlRequest::Pause).await.unwrap();
    let delay = BTreeMap::from([("m1", Duration::from_millis(700))]);
    let performer = Arc::new(Counting { delay, ..Counting::default() });
    let driver = RunDriver::new(Arc::clone(&world.store), performer, world.run_id.clone());
    let mut workflow = FanOut::new(BRANCHES);
    let ended = driver.at_once(1).honor_pause().drive(&mut workflow).await;
    assert_eq!(ended.unwrap(), RunExit::Paused(RunPause::Person));
}

#[tokio::test]
async fn spending_is_stored_with_every_answer_and_during_calls() {
    let world = world().await;
    let spent = async || {
        let row = world.store.run(&world.run_id).await.unwrap().unwrap();
        row.spent.unwrap_or_default().usd
    };
    let hanging = Arc::new(Counting { hang_after: Some(1), costs: true, ..Counting::default() });
    let driver = RunDriver::new(Arc::clone(&world.store), hanging.clone(), world.run_id.clone());
    let mut workflow = FanOut::new(BRANCHES);
    // The process dies during the second call; its possible cost is stored.
    let two = MicroUsd::new(2_000_000);
    tokio::select! {
        ended = driver.at_once(1).drive(&mut workflow) => panic!("it did not hang: {ended:?}"),
        () = async { while spent().await < two { tokio::task::yield_now().await } } => {}
    }
    assert_eq!(world.store.journal(&world.run_id).await.unwrap().len(), 1);

    let events = cancel(&*world.store, &world.run_id, None).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(spent().await, two);
    assert_eq!(drive(&world, &Arc::default()).await.unwrap(), RunExit::Cancelled);
}

#[tokio::test]
async fn spending_is_stored_with_the_last_answer_of_a_run() {
    let world = world().await;
    let performer = Arc::new(Counting { costs: true, ..Counting::default() });
    assert_eq!(drive(&world, &performer).await.unwrap(), done());
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    let calls = performer.asked.lock().unwrap().len() as u64;
    assert_eq!(row.spent.unwrap_or_default().usd, MicroUsd::new(calls * 1_000_000));
}

#[tokio::test]
async fn an_event_listener_receives_every_new_event_once_in_order() {
    let world = world().await;
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    for _ in 0..2 {
        let ear = Arc::clone(&heard);
        let driver = RunDriver::new(
            Arc::clone(&world.store),
            Arc::new(Counting::default()),
            world.run_id.clone(),
        )
        .on_event(move |stored| ear.lock().unwrap().push(stored.seq));
        driver.drive(&mut FanOut::new(BRANCHES)).await.unwrap();
    }
    assert_eq!(*heard.lock().unwrap(), (1..=7).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_question_runs_through_the_real_gateway() {
    let world = world().await;
    let gateway = Gateway::new(GatewayOptions {
        catalog: Catalog::built_in().unwrap(),
        keys: BTreeMap::new(),
        retry: RetrySettings::default(),
        recording: RecordingMode::Off,
        connections: ProviderConnections::default(),
    });
    let ledger = Arc::new(RunLedger::unlimited());
    let performer = Arc::new(ModelPerformer::new(Arc::new(gateway), Arc::clone(&ledger)));
    let request = ModelRequest::ask("demo".parse().unwrap(), "What is a moot hall?", 200);
    let mut workflow =
        AskWorkflow::new(request, Box::new(|_: &serde_json::Value| Vec::new())).unwrap();
    let driver = RunDriver::new(Arc::clone(&world.store), performer, world.run_id.clone());
    let RunExit::Done(outcome) = driver.drive(&mut workflow).await.unwrap() else {
        panic!("it ends")
    };
    let Conclusion::Answered { text, .. } = outcome.conclusion else { panic!("it is answered") };
    assert!(text.starts_with("This is a demonstration"), "{text}");
    assert!(ledger.spent().tokens > 0);
    let expected = ["run:run_started", "answer:model_replied", "run:run_finished"];
    assert_eq!(world.keys().await, expected.map(str::to_owned).into());
}
