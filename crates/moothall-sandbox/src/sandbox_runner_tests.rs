use std::sync::atomic::Ordering;

use moothall_core::RuleId;
use moothall_core::guest::{ExitCause, GuestMessage, GuestStream, HostMessage, ProgramExit};
use moothall_core::sandbox::{CapturedOutput, ExecutionExit, LimitName};

use super::*;
use crate::fake_engine::{FakeAgent, FakeEngine};

fn report(class: IsolationClass, engine: EngineName, held: bool) -> ProbeReport {
    ProbeReport {
        engine,
        version: "1".to_owned(),
        class,
        self_tests: vec![SelfTest { rule: RuleId::new("sandbox.no-network"), held }],
        held_by: [LimitName::Memory, LimitName::Pids].map(|limit| (limit, "us".to_owned())).into(),
        start_ms: 1,
        run_ms: 1,
    }
}

fn probed(engine: Arc<dyn SandboxEngine>, report: ProbeReport) -> ProbedEngine {
    ProbedEngine { engine, report }
}

#[track_caller]
fn check(
    found: &[(IsolationClass, EngineName, bool)],
    policy: SandboxPolicy,
    expected: Result<EngineName, &str>,
) {
    let engine: Arc<dyn SandboxEngine> = Arc::new(FakeEngine::new(|_| async {}));
    let found: Vec<ProbedEngine> = found
        .iter()
        .map(|(class, name, held)| probed(Arc::clone(&engine), report(*class, *name, *held)))
        .collect();
    let chosen = choose(&found, &policy);
    let chosen = chosen.map(|chosen| chosen.report.engine).map_err(|error| error.to_string());
    assert_eq!(chosen, expected.map_err(ToOwned::to_owned));
}

const ANY: SandboxPolicy = SandboxPolicy {
    engine: None,
    minimum: IsolationClass::SharedKernel,
    shared_kernel: SharedKernel::Refused,
};

#[test]
fn the_strongest_working_engine_is_chosen() {
    use EngineName::{Microvm, Runc, Runsc};
    use IsolationClass::{EmulatedVm, SharedKernel as Shared, UserKernel};
    let found = [(EmulatedVm, Microvm, true), (Shared, Runc, true), (UserKernel, Runsc, true)];
    check(&found, ANY, Ok(Runsc));
    let broken = [(EmulatedVm, Microvm, true), (UserKernel, Runsc, false)];
    check(&broken, ANY, Ok(Microvm));
    check(&found, SandboxPolicy { engine: Some(Microvm), ..ANY }, Ok(Microvm));
}

#[test]
fn a_shared_kernel_engine_is_used_only_if_explicitly_allowed() {
    let found = [(IsolationClass::SharedKernel, EngineName::Runc, true)];
    let refused = "no usable sandbox on this host (minimum isolation class: shared-kernel): runc is shared-kernel";
    check(&found, ANY, Err(refused));
    check(&found, SandboxPolicy { engine: Some(EngineName::Runc), ..ANY }, Err(refused));
    let accepted = SandboxPolicy { shared_kernel: SharedKernel::Accepted, ..ANY };
    check(&found, accepted, Ok(EngineName::Runc));
}

#[test]
fn no_engine_weaker_than_the_minimum_class_is_used() {
    let found = [(IsolationClass::EmulatedVm, EngineName::Microvm, true)];
    let policy = SandboxPolicy { minimum: IsolationClass::UserKernel, ..ANY };
    let refused = "no usable sandbox on this host (minimum isolation class: user-kernel): microvm is emulated-vm";
    check(&found, policy, Err(refused));
    let nothing = "no usable sandbox on this host (minimum isolation class: user-kernel): \
                   no engine works on this host";
    check(&[], policy, Err(nothing));
}

#[test]
fn an_engine_that_fails_its_probe_is_not_used_and_the_reason_is_given() {
    let found = [(IsolationClass::HardwareVm, EngineName::Microvm, false)];
    let refused = "no usable sandbox on this host (minimum isolation class: shared-kernel): \
                   microvm fails sandbox.no-network";
    check(&found, ANY, Err(refused));
}

#[test]
fn an_engine_without_a_memory_limit_is_not_used() {
    let engine: Arc<dyn SandboxEngine> = Arc::new(FakeEngine::new(|_| async {}));
    let mut report = report(IsolationClass::UserKernel, EngineName::Runsc, true);
    report.held_by.remove(&LimitName::Memory);
    let error = choose(&[probed(engine, report)], &ANY).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no usable sandbox on this host (minimum isolation class: shared-kernel): \
         runsc fails sandbox.memory-limit"
    );
}

async fn well_behaved(mut agent: FakeAgent) {
    agent.ready().await;
    agent.receive_until(&HostMessage::End).await;
    agent.send(&GuestMessage::Done).await;
    agent.receive_until(&HostMessage::End).await;
    agent.data(GuestStream::Stdout, b"1\n").await;
    let ended = ProgramExit {
        way: ExitCause::Exited(0),
        stdout_truncated: false,
        stderr_truncated: false,
        left_running: 0,
    };
    agent.send(&GuestMessage::Ended(ended)).await;
    while agent.receive().await.is_some() {}
}

fn request() -> ExecuteRequest {
    ExecuteRequest::python("python", "main.py".parse().unwrap(), "print(1)")
}

fn sandboxes(engine: &Arc<FakeEngine>) -> SandboxRunner {
    let report = report(IsolationClass::EmulatedVm, EngineName::Microvm, true);
    let engine: Arc<dyn SandboxEngine> = Arc::clone(engine) as Arc<dyn SandboxEngine>;
    SandboxRunner::new(
        probed(engine, report),
        PoolOptions { idle: 0, memory: crate::MemoryBudget::new(1 << 30) },
    )
}

#[tokio::test]
async fn a_failed_sandbox_start_is_retried_twice() {
    let engine = Arc::new(FakeEngine::new(well_behaved));
    engine.failures.store(2, Ordering::SeqCst);
    let none = BTreeMap::new();
    let executed = sandboxes(&engine)
        .execute(&SandboxLabels::default(), &request(), &none, None)
        .await
        .unwrap();
    assert_eq!(executed.execution.exit, ExecutionExit::Exited { code: 0 });
    assert_eq!(
        executed.execution.stdout,
        CapturedOutput { text: "1\n".to_owned(), truncated: false }
    );
    executed.clean_up.await.unwrap();
    assert_eq!(engine.alive.load(Ordering::SeqCst), 0);

    engine.failures.store(3, Ordering::SeqCst);
    let error =
        sandboxes(&engine).lease(&crate::fake_engine::spec(), &SandboxLabels::default()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "fake cannot start a sandbox: requested by the test"
    );
}

#[tokio::test]
async fn a_sandbox_is_replaced_only_if_lost_before_the_program_ran() {
    // The sandbox died before the first file arrived: nothing ran, so another sandbox may be used.
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let engine = Arc::new(FakeEngine::new({
        let seen = Arc::clone(&seen);
        move |mut agent: FakeAgent| {
            let first = seen.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    agent.ready().await;
                    return;
                }
                well_behaved(agent).await;
            }
        }
    }));
    let none = BTreeMap::new();
    let executed = sandboxes(&engine)
        .execute(&SandboxLabels::default(), &request(), &none, None)
        .await
        .unwrap();
    assert_eq!(executed.execution.exit, ExecutionExit::Exited { code: 0 });
    assert_eq!(engine.started.load(Ordering::SeqCst), 2);

    // The sandbox died while the program ran: the program may have caused it, so it is reported and
    // not retried.
    let engine = Arc::new(FakeEngine::new(|mut agent: FakeAgent| async move {
        agent.ready().await;
        agent.receive_until(&HostMessage::End).await;
        agent.send(&GuestMessage::Done).await;
        agent.receive_until(&HostMessage::End).await;
    }));
    let executed = sandboxes(&engine)
        .execute(&SandboxLabels::default(), &request(), &none, None)
        .await
        .unwrap();
    assert!(matches!(executed.execution.exit, ExecutionExit::SandboxDied { .. }));
    assert_eq!(engine.started.load(Ordering::SeqCst), 1);
}
