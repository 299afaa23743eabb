use std::sync::atomic::Ordering;

use moothall_core::guest::{Channel, FoundFile, Frame, FromGuest, ToGuest};
use moothall_core::sandbox::IsolationClass;

use super::*;
use crate::fake::{FakeAgent, FakeEngine, spec};
use crate::{Engine, EngineName, PoolOptions, ProbeReport, ProbedEngine};

/// An agent that has one file and takes one.
async fn with_a_file(mut agent: FakeAgent) {
    agent.ready().await;
    while let Some(frame) = agent.hear().await {
        match frame {
            Frame::Message(ToGuest::List { folder: None, .. }) => {
                let file = FoundFile { path: "logs/i1.json".parse().unwrap(), bytes: 2 };
                agent.say(&FromGuest::Listing { files: vec![file], others: Vec::new() }).await;
            }
            Frame::Message(ToGuest::Get { .. }) => {
                agent.data(Channel::File, b"{}").await;
                agent.say(&FromGuest::End).await;
            }
            Frame::Message(ToGuest::End) => agent.say(&FromGuest::Done).await,
            _ => {}
        }
    }
}

fn named(engine: &Arc<FakeEngine>) -> NamedSandboxes {
    let report = ProbeReport {
        engine: EngineName::Microvm,
        version: "1".to_owned(),
        class: IsolationClass::EmulatedVm,
        self_tests: Vec::new(),
        held_by: BTreeMap::new(),
        start_ms: 0,
        run_ms: 0,
    };
    let engine: Arc<dyn Engine> = Arc::clone(engine) as Arc<dyn Engine>;
    let options = PoolOptions { idle: 0, memory_bytes: 1 << 30 };
    NamedSandboxes::new(Sandboxes::new(ProbedEngine { engine, report }, options))
}

fn run(last: char) -> RunId {
    format!("0190b3c4-0000-7000-8000-00000000000{last}").parse().unwrap()
}

#[tokio::test]
async fn who_comes_back_finds_the_same_sandbox_and_another_run_does_not() {
    let engine = Arc::new(FakeEngine::new(with_a_file));
    let named = named(&engine);
    let labels = Labels::default();
    let mut names = Vec::new();
    for of in [run('1'), run('1'), run('2')] {
        let mut visit = named.visit(&of, "m7", &spec(), &labels).await.unwrap();
        names.push(visit.lease().unwrap().name().to_owned());
    }
    assert_eq!(names, ["fake-1", "fake-1", "fake-2"]);
    named.forget(&run('1')).await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn one_at_rest_costs_nothing_and_its_files_are_in_the_next_one() {
    let engine = Arc::new(FakeEngine::new(with_a_file));
    let named = named(&engine);
    let labels = Labels::default();
    drop(named.visit(&run('1'), "m7", &spec(), &labels).await.unwrap());
    named.rest(&run('1'), "m7").await.unwrap();
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
    let slot = named.slot(&run('1'), "m7");
    let expected = BTreeMap::from([("logs/i1.json".parse().unwrap(), b"{}".to_vec())]);
    assert!(matches!(&*slot.lock().await, Slot::Resting(files) if *files == expected));
    let mut visit = named.visit(&run('1'), "m7", &spec(), &labels).await.unwrap();
    assert_eq!(visit.lease().unwrap().name(), "fake-2");
    visit.give_up().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
    // It is fine if there is none.
    named.rest(&run('1'), "m7").await.unwrap();
}
