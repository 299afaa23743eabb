//! Debates in real sandboxes have the same outcome as in this process, with logs written in the
//! guest. A missing prerequisite fails a test with a message that says what to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use moothall_core::EffectResult;
use moothall_core::sandbox::IsolationClass;
use moothall_engine::{
    DebateSandboxes, GuestFailurePolicy, GuestPool, GuestProvider as _, IsolationMode, RunExit,
};
use moothall_sandbox::jail::JailCommand;
use moothall_sandbox::{
    EngineName, HostOptions, PoolOptions, SandboxHost, SandboxPolicy, SandboxRegistry, SharedKernel,
};

use crate::panel::{Panel, Speaking, driver};
use crate::support::world;

/// A real sandbox and its temporary directory.
struct Real {
    sandboxes: DebateSandboxes,
    _state: tempfile::TempDir,
}

async fn open(engine: EngineName, idle: usize, memory_bytes: u64) -> Real {
    let state = tempfile::tempdir().unwrap();
    let options = HostOptions {
        images: images("debate"),
        cache: target().join("tmp/sandboxes"),
        state: state.path().to_owned(),
        guest: guest(),
        jail: jail(),
    };
    let policy = SandboxPolicy {
        engine: Some(engine),
        minimum: IsolationClass::SharedKernel,
        shared_kernel: SharedKernel::Refused,
    };
    let host = SandboxHost::open(options).unwrap();
    let options = PoolOptions { idle, memory: moothall_sandbox::MemoryBudget::new(memory_bytes) };
    let sandboxes = DebateSandboxes::open(&host, &policy, options).await.unwrap();
    Real { sandboxes, _state: state }
}

/// The images: `MOOTHALL_TEST_IMAGES`, or where `.ci/run` builds them.
pub(crate) fn images(name: &str) -> PathBuf {
    let given = std::env::var_os("MOOTHALL_TEST_IMAGES").map(PathBuf::from);
    let images = given.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("a home");
        Path::new(&home).join(".cache/moothall/images-data/images")
    });
    assert!(
        images.join("tags").join(name).exists(),
        "missing image `{name}` in {}: run `moothall image build {name}` with that folder, or \
         set MOOTHALL_TEST_IMAGES",
        images.display()
    );
    images
}

/// The agent's static binary: `MOOTHALL_TEST_GUEST`, or where `cargo xtask guest` puts it.
pub(crate) fn guest() -> &'static [u8] {
    static GUEST: OnceLock<Vec<u8>> = OnceLock::new();
    GUEST.get_or_init(|| {
        let given = std::env::var_os("MOOTHALL_TEST_GUEST").map(PathBuf::from);
        let path = given.unwrap_or_else(|| target().join("guest/moothall-guest"));
        fs_err::read(&path).unwrap_or_else(|error| {
            panic!("{error}: run `cargo xtask guest`, or set MOOTHALL_TEST_GUEST")
        })
    })
}

pub(crate) fn jail() -> JailCommand {
    let program = profile().join("moothall-jail");
    assert!(program.exists(), "missing jail: run `cargo build -p moothall-sandbox --bins`");
    JailCommand { program, args: Vec::new() }
}

/// The directory of this build's programs; this test is in `deps` below it.
fn profile() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).expect("a folder of programs").to_owned()
}

pub(crate) fn target() -> PathBuf {
    profile().parent().expect("a target folder").to_owned()
}

#[tokio::test]
async fn a_debate_sandbox_is_labelled_with_its_company_move_and_stage() {
    let real = open(EngineName::Runsc, 0, 1 << 30).await;
    let sandboxes = real.sandboxes.clone().with_ticker("HLXI");
    let run = "0190b3c4-0000-7000-8000-000000000001";
    let guest = sandboxes.acquire(&run.parse().unwrap(), &"m3".parse().unwrap()).await.unwrap();
    let records = SandboxRegistry::list(&SandboxHost::records(real._state.path())).unwrap();
    let labels = [
        ("effect", "m3"),
        ("move", "m3"),
        ("project", "moothall"),
        ("run", run),
        ("stage", "debate"),
        ("ticker", "HLXI"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(records[0].labels.0, BTreeMap::from(labels));
    guest.release();
    sandboxes.shut_down().await;
}

async fn a_debate_in_a_sandbox_ends_like_one_in_this_process(engine: EngineName) {
    let here = world().await;
    driver(&here, &Arc::default()).drive(&mut Panel::new(2)).await.unwrap();

    let real = open(engine, 2, 2 << 30).await;
    let guest_pool = Arc::new(GuestPool::new(real.sandboxes.clone()));
    let isolation_mode = IsolationMode::Guests { guest_pool, on_failure: GuestFailurePolicy::Fail };
    let there = world().await;
    let performer = Arc::new(Speaking::default());
    let ended = driver(&there, &performer)
        .isolation(isolation_mode)
        .drive(&mut Panel::new(2))
        .await
        .unwrap();
    assert!(matches!(ended, RunExit::Done(_)), "{ended:?}");

    let (here, there) = (here.left().await, there.left().await);
    assert_eq!(here.order, there.order);
    for (id, (request, result)) in &there.answers {
        let EffectResult::ChildEnded(end) = result else {
            assert_eq!(here.answers.get(id), Some(&(*request, result.clone())));
            continue;
        };
        let EffectResult::ChildEnded(expected) = &here.answers[id].1 else { panic!("{id}") };
        assert_eq!(end.outcome, expected.outcome);
        let attestation = end.isolation.attestation.as_deref().unwrap();
        assert_eq!(attestation.engine, engine.as_str());
        assert_eq!(end.isolation.class, attestation.class);
        assert!(end.isolation.class > IsolationClass::SharedKernel);
        assert_eq!(end.isolation.fallback, None);
        assert_eq!(end.isolation.logs.keys().collect::<Vec<_>>(), ["i1.json", "i2.json"]);
    }
    real.sandboxes.shut_down().await;
}

async fn a_guest_that_is_given_back_is_replayed_into_a_fresh_one(engine: EngineName) {
    // Memory for one sandbox: a waiting debate gets the one that is idle.
    let real = open(engine, 0, 400 << 20).await;
    let guest_pool = GuestPool::new(real.sandboxes.clone()).idle(Duration::from_millis(1));
    let isolation_mode = IsolationMode::Guests {
        guest_pool: Arc::new(guest_pool),
        on_failure: GuestFailurePolicy::Fail,
    };
    let world = world().await;
    let latency = Duration::from_millis(200);
    let performer = Arc::new(Speaking { latency, ..Speaking::default() });
    let ended = driver(&world, &performer)
        .isolation(isolation_mode)
        .drive(&mut Panel::new(2))
        .await
        .unwrap();
    assert!(matches!(ended, RunExit::Done(_)), "{ended:?}");
    let left = world.left().await;
    let ends = left.answers.values().filter_map(|(_, result)| match result {
        EffectResult::ChildEnded(end) => Some(&end.isolation),
        _ => None,
    });
    assert!(ends.clone().all(|isolation| isolation.class > IsolationClass::SharedKernel));
    assert_eq!(ends.count(), 2);
    real.sandboxes.shut_down().await;
}

mod real_microvm {
    use super::*;

    #[tokio::test]
    async fn a_debate_in_a_microvm_ends_like_one_in_this_process() {
        a_debate_in_a_sandbox_ends_like_one_in_this_process(EngineName::Microvm).await;
    }

    #[tokio::test]
    async fn a_debate_is_replayed_into_a_new_microvm_after_its_release() {
        a_guest_that_is_given_back_is_replayed_into_a_fresh_one(EngineName::Microvm).await;
    }
}

mod real_runsc {
    use super::*;

    #[tokio::test]
    async fn a_debate_in_gvisor_ends_like_one_in_this_process() {
        a_debate_in_a_sandbox_ends_like_one_in_this_process(EngineName::Runsc).await;
    }
}
