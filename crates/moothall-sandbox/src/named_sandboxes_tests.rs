use std::sync::atomic::Ordering;

use moothall_core::guest::{GuestFile, GuestFrame, GuestMessage, GuestStream, HostMessage};
use moothall_core::sandbox::IsolationClass;

use super::*;
use crate::fake_engine::{FakeAgent, FakeEngine, spec};
use crate::{EngineName, MemoryBudget, PoolOptions, ProbeReport, ProbedEngine, SandboxEngine};

/// An agent that has one file and accepts one.
async fn with_a_file(mut agent: FakeAgent) {
    agent.ready().await;
    while let Some(frame) = agent.hear().await {
        match frame {
            GuestFrame::Message(HostMessage::List { folder: None, .. }) => {
                let file = GuestFile { path: "logs/i1.json".parse().unwrap(), bytes: 2 };
                agent.say(&GuestMessage::Listing { files: vec![file], others: Vec::new() }).await;
            }
            GuestFrame::Message(HostMessage::Get { .. }) => {
                agent.data(GuestStream::File, b"{}").await;
                agent.say(&GuestMessage::End).await;
            }
            GuestFrame::Message(HostMessage::End) => agent.say(&GuestMessage::Done).await,
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
    let engine: Arc<dyn SandboxEngine> = Arc::clone(engine) as Arc<dyn SandboxEngine>;
    let options = PoolOptions { idle: 0, memory: MemoryBudget::new(1 << 30) };
    NamedSandboxes::new(SandboxRunner::new(ProbedEngine { engine, report }, options))
}

fn run(last: char) -> RunId {
    format!("0190b3c4-0000-7000-8000-00000000000{last}").parse().unwrap()
}

#[tokio::test]
async fn who_comes_back_finds_the_same_sandbox_and_another_run_does_not() {
    let engine = Arc::new(FakeEngine::new(with_a_file));
    let named = named(&engine);
    let labels = SandboxLabels::default();
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
    let labels = SandboxLabels::default();
    drop(named.visit(&run('1'), "m7", &spec(), &labels).await.unwrap());
    named.rest(&run('1'), "m7").await.unwrap();
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
    let slot = named.slot(&run('1'), "m7");
    let expected = BTreeMap::from([("logs/i1.json".parse().unwrap(), b"{}".to_vec())]);
    assert!(matches!(&*slot.lock().await, NamedSandboxSlot::Resting(files) if *files == expected));
    let mut visit = named.visit(&run('1'), "m7", &spec(), &labels).await.unwrap();
    assert_eq!(visit.lease().unwrap().name(), "fake-2");
    visit.give_up().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
    // Suspending a sandbox that does not exist is allowed.
    named.rest(&run('1'), "m7").await.unwrap();
}
