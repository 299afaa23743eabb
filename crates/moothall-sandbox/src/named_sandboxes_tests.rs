use std::sync::atomic::Ordering;

use moothall_core::guest::{GuestFile, GuestFrame, GuestMessage, GuestStream, HostMessage};
use moothall_core::sandbox::IsolationClass;

use super::*;
use crate::fake_engine::{FakeAgent, FakeEngine, spec};
use crate::{EngineName, MemoryBudget, PoolOptions, ProbeReport, ProbedEngine, SandboxEngine};

/// An agent that has one file and accepts one.
async fn with_a_file(mut agent: FakeAgent) {
    agent.ready().await;
    while let Some(frame) = agent.receive().await {
        match frame {
            GuestFrame::Message(HostMessage::List { folder: None, .. }) => {
                let file = GuestFile { path: "logs/i1.json".parse().unwrap(), bytes: 2 };
                agent.send(&GuestMessage::Listing { files: vec![file], others: Vec::new() }).await;
            }
            GuestFrame::Message(HostMessage::Get { .. }) => {
                agent.data(GuestStream::File, b"{}").await;
                agent.send(&GuestMessage::End).await;
            }
            GuestFrame::Message(HostMessage::End) => agent.send(&GuestMessage::Done).await,
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
async fn a_named_sandbox_is_reused_by_its_run_and_not_by_others() {
    let engine = Arc::new(FakeEngine::new(with_a_file));
    let named = named(&engine);
    let labels = SandboxLabels::default();
    let mut names = Vec::new();
    for of in [run('1'), run('1'), run('2')] {
        let mut guard = named.acquire(&of, "m7", &spec(), &labels).await.unwrap();
        names.push(guard.lease().unwrap().name().to_owned());
    }
    assert_eq!(names, ["fake-1", "fake-1", "fake-2"]);
    named.end_run(&run('1')).await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_suspended_sandbox_is_stopped_and_its_files_are_restored() {
    let engine = Arc::new(FakeEngine::new(with_a_file));
    let named = named(&engine);
    let labels = SandboxLabels::default();
    drop(named.acquire(&run('1'), "m7", &spec(), &labels).await.unwrap());
    named.suspend(&run('1'), "m7").await.unwrap();
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
    let slot = named.slot(&run('1'), "m7");
    let expected = BTreeMap::from([("logs/i1.json".parse().unwrap(), b"{}".to_vec())]);
    assert!(
        matches!(&*slot.lock().await, NamedSandboxSlot::Suspended(files) if *files == expected)
    );
    let mut guard = named.acquire(&run('1'), "m7", &spec(), &labels).await.unwrap();
    assert_eq!(guard.lease().unwrap().name(), "fake-2");
    guard.discard().await;
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);
    // Suspending a sandbox that does not exist is allowed.
    named.suspend(&run('1'), "m7").await.unwrap();
}
