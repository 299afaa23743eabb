//! Real microVMs, through the same door as everyone. They need QEMU, the images and the agent's
//! binary, and fail where one of them is missing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{ExecuteRequest, Exit, Labels};
use moothall_sandbox::image::ImageStore;
use moothall_sandbox::microvm::{AccelChoice, MicroVm, MicroVmOptions};
use moothall_sandbox::{
    Engine, GuestBinary, PoolOptions, ProbedEngine, Registry, SandboxError, Sandboxes, probe,
};

use crate::support;

fn options(registry: &tempfile::TempDir) -> MicroVmOptions {
    let bytes = support::guest();
    MicroVmOptions {
        qemu: MicroVmOptions::QEMU.into(),
        jail: support::jail(),
        images: ImageStore::at(support::images()),
        // Its file is for containers.
        guest: GuestBinary {
            path: PathBuf::new(),
            sha256: Sha256Hex::of(bytes),
            bytes: bytes.into(),
        },
        cache: support::cache(),
        registry: Registry::open(registry.path()).unwrap(),
        accel: AccelChoice::Automatic,
    }
}

fn hello() -> ExecuteRequest {
    ExecuteRequest::python("python", "main.py".parse().unwrap(), "print('hello')")
}

#[tokio::test]
async fn a_microvm_holds_what_the_probe_tries_and_runs_a_program() {
    let registry = tempfile::tempdir().unwrap();
    let engine: Arc<dyn Engine> = Arc::new(MicroVm::open(options(&registry)).await.unwrap());
    let report = probe(&engine, "python").await.unwrap();
    assert_eq!(report.faults(), Vec::<moothall_core::RuleId>::new());
    let chosen = ProbedEngine { engine, report };
    let sandboxes = Sandboxes::new(chosen, PoolOptions { idle: 0, memory_bytes: 4 << 30 });
    let inputs = BTreeMap::new();
    let executed = sandboxes.execute(&Labels::default(), &hello(), &inputs, None).await.unwrap();
    assert_eq!(executed.execution.exit, Exit::Exited { code: 0 });
    assert_eq!(executed.execution.stdout.text, "hello\n");
    assert_eq!(executed.execution.attestation.not_held(), []);
    executed.clean_up.await.unwrap();
    sandboxes.shut_down().await;
    assert_eq!(Registry::list(registry.path()).unwrap(), []);
}

#[tokio::test]
async fn a_host_without_qemu_is_told_what_to_install() {
    let registry = tempfile::tempdir().unwrap();
    let without = MicroVmOptions { qemu: "qemu-of-nowhere".into(), ..options(&registry) };
    match MicroVm::open(without).await {
        Err(SandboxError::Missing { program }) => assert_eq!(program, "qemu-of-nowhere"),
        other => panic!("{other:?}"),
    }
}
