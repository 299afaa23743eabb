//! Real microVMs, through the public API. These tests need QEMU, the images and the agent binary,
//! and fail if one is missing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{ExecuteRequest, ExecutionExit, SandboxLabels};
use moothall_sandbox::image::ImageStore;
use moothall_sandbox::microvm::{AcceleratorChoice, MicroVmEngine, MicroVmOptions};
use moothall_sandbox::{
    GuestBinary, MemoryBudget, PoolOptions, ProbeSubject, ProbedEngine, SandboxEngine,
    SandboxError, SandboxRegistry, SandboxRunner, probe,
};

use crate::support;

fn options(registry: &tempfile::TempDir) -> MicroVmOptions {
    let bytes = support::guest();
    MicroVmOptions {
        qemu: MicroVmOptions::QEMU.into(),
        jail: support::jail(),
        images: ImageStore::at(support::images()),
        // The file is only needed for containers.
        guest: GuestBinary {
            path: PathBuf::new(),
            sha256: Sha256Hex::of(bytes),
            bytes: bytes.into(),
        },
        cache: support::cache(),
        registry: SandboxRegistry::open(registry.path()).unwrap(),
        accel: AcceleratorChoice::Automatic,
    }
}

fn hello() -> ExecuteRequest {
    ExecuteRequest::python("python", "main.py".parse().unwrap(), "print('hello')")
}

#[tokio::test]
async fn a_microvm_passes_the_probe_and_runs_a_program() {
    let registry = tempfile::tempdir().unwrap();
    let engine: Arc<dyn SandboxEngine> =
        Arc::new(MicroVmEngine::open(options(&registry)).await.unwrap());
    let report = probe(&engine, "python", ProbeSubject::Program).await.unwrap();
    assert_eq!(report.faults(), Vec::<moothall_core::RuleId>::new());
    let chosen = ProbedEngine { engine, report };
    let sandboxes =
        SandboxRunner::new(chosen, PoolOptions { idle: 0, memory: MemoryBudget::new(4 << 30) });
    let inputs = BTreeMap::new();
    let executed =
        sandboxes.execute(&SandboxLabels::default(), &hello(), &inputs, None).await.unwrap();
    assert_eq!(executed.execution.exit, ExecutionExit::Exited { code: 0 });
    assert_eq!(executed.execution.stdout.text, "hello\n");
    assert_eq!(executed.execution.attestation.unenforced_limits(), []);
    executed.clean_up.await.unwrap();
    sandboxes.shut_down().await;
    assert_eq!(SandboxRegistry::list(registry.path()).unwrap(), []);
}

#[tokio::test]
async fn a_host_without_qemu_gets_an_install_hint() {
    let registry = tempfile::tempdir().unwrap();
    let without = MicroVmOptions { qemu: "qemu-of-nowhere".into(), ..options(&registry) };
    match MicroVmEngine::open(without).await {
        Err(SandboxError::Missing { program }) => assert_eq!(program, "qemu-of-nowhere"),
        other => panic!("{other:?}"),
    }
}
