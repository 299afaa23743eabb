//! Tests that start real virtual machines. They need QEMU, the images and the agent binary, and
//! fail if one is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use moothall_core::Sha256Hex;
use moothall_core::guest::{ExitCause, GuestRunRequest, Place};
use moothall_core::sandbox::{IsolationClass, SandboxLabels, SandboxLimits};

use super::{AcceleratorChoice, MicroVmEngine, MicroVmOptions, VmAccelerator};
use crate::image::ImageStore;
use crate::jail::JailCommand;
use crate::session::SessionRunEnd;
use crate::{
    AgentSession, GuestBinary, ProcessId, SandboxEngine as _, SandboxError, SandboxRegistry,
    SandboxSpec, StartedSandbox,
};

/// Set for a copy of this program that will be killed.
const VICTIM: &str = "MOOTHALL_TEST_VICTIM";

/// Cargo's target folder.
fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(3).unwrap().to_owned()
}

/// Cargo builds the jail together with this package's tests.
pub(crate) fn jail() -> JailCommand {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("moothall-jail");
    assert!(program.exists(), "cargo build -p moothall-sandbox");
    JailCommand { program, args: Vec::new() }
}

fn images() -> ImageStore {
    let named = std::env::var_os("MOOTHALL_TEST_IMAGES").map(PathBuf::from);
    let usual = || {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        home.join(".cache/moothall/images-data/images")
    };
    ImageStore::at(named.unwrap_or_else(usual))
}

fn guest() -> GuestBinary {
    let given = std::env::var_os("MOOTHALL_TEST_GUEST").map(PathBuf::from);
    let path = given.unwrap_or_else(|| target().join("guest/moothall-guest"));
    let bytes = fs_err::read(&path).expect("cargo xtask guest");
    let sha256 = Sha256Hex::of(&bytes);
    GuestBinary { path, bytes: bytes.into(), sha256 }
}

/// Shared by all tests, so that most of them find their template.
fn shared_cache() -> PathBuf {
    target().join("tmp/sandboxes")
}

async fn engine_with(cache: &Path, registry: &Path) -> MicroVmEngine {
    MicroVmEngine::open(options(cache, registry)).await.unwrap()
}

fn options(cache: &Path, registry: &Path) -> MicroVmOptions {
    MicroVmOptions {
        qemu: MicroVmOptions::QEMU.into(),
        jail: jail(),
        images: images(),
        guest: guest(),
        cache: cache.to_owned(),
        registry: SandboxRegistry::open(registry).unwrap(),
        accel: AcceleratorChoice::Automatic,
    }
}

pub(crate) async fn engine() -> (MicroVmEngine, tempfile::TempDir) {
    let registry = tempfile::tempdir().unwrap();
    (engine_with(&shared_cache(), registry.path()).await, registry)
}

pub(crate) fn python() -> SandboxSpec {
    SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() }
}

async fn started(engine: &MicroVmEngine) -> StartedSandbox {
    engine.start(&python(), &SandboxLabels::default()).await.unwrap()
}

/// Runs a Python program and returns its output.
pub(crate) async fn run(session: &mut AgentSession, program: &str) -> String {
    let path = "main.py".parse().unwrap();
    session.put(Place::Workspace, &path, program.as_bytes()).await.unwrap();
    let request = GuestRunRequest {
        argv: vec!["python3".to_owned(), "main.py".to_owned()],
        env: BTreeMap::new(),
        limits: SandboxLimits::default(),
    };
    let ran = session.run(request, b"", None).await;
    let stderr = String::from_utf8_lossy(&ran.stderr);
    match ran.end {
        SessionRunEnd::Reported(ended) if ended.way == ExitCause::Exited(0) => {}
        other => panic!("{other:?} {stderr}"),
    }
    String::from_utf8(ran.stdout).unwrap()
}

/// CPU time of children that have exited.
fn cpu_of_children() -> Duration {
    let stat = fs_err::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(13).take(2);
    // The kernel counts in hundredths of a second.
    Duration::from_millis(fields.map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum())
}

#[track_caller]
fn milliseconds(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let list: Vec<u128> = times.iter().map(Duration::as_millis).collect();
    let middle = list[list.len() / 2];
    #[expect(clippy::print_stderr, reason = "numbers for people")]
    {
        eprintln!("{what}: median {middle} ms, {list:?}");
    }
}

#[tokio::test]
async fn a_clone_runs_a_program_and_is_gone_afterwards() {
    let (engine, registry) = engine().await;
    let mut sandbox = started(&engine).await;
    assert_eq!(run(&mut sandbox.session, "print(6 * 7)").await, "42\n");
    let records = SandboxRegistry::list(registry.path()).unwrap();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    let [process] = record.leaves.processes.as_slice() else { panic!("{record:?}") };
    assert_eq!(record.name, sandbox.end.name());
    assert_eq!(ProcessId::of(process.pid), Some(*process), "QEMU runs");
    // QEMU's own seccomp filter applies in addition to the jail.
    let status = fs_err::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    let restrictions: Vec<&str> = status
        .lines()
        .filter(|line| line.starts_with("NoNewPrivs:") || line.starts_with("Seccomp:"))
        .collect();
    assert!(
        restrictions.contains(&"NoNewPrivs:\t1") && restrictions.contains(&"Seccomp:\t2"),
        "{restrictions:?}"
    );
    sandbox.end.finish().await;
    assert_eq!(ProcessId::of(process.pid), None, "QEMU is gone");
    assert_eq!(SandboxRegistry::list(registry.path()).unwrap(), []);
}

#[tokio::test]
async fn the_isolation_class_follows_from_the_accelerator() {
    let (engine, _registry) = engine().await;
    let expected = match engine.accel() {
        VmAccelerator::Kvm => IsolationClass::HardwareVm,
        VmAccelerator::Tcg => IsolationClass::EmulatedVm,
    };
    assert_eq!(engine.class(), expected);
    assert!(engine.restrictions().no_new_privileges);
    assert_ne!(engine.restrictions().uid, 0);
}

#[tokio::test]
async fn clones_draw_different_numbers_and_know_the_time() {
    const CLONES: usize = 4;
    let program = "import os, random, time, uuid\n\
                   print(os.urandom(8).hex(), random.random(), uuid.uuid4(), time.time())";
    let (engine, _registry) = engine().await;
    let mut columns = vec![BTreeSet::new(); 3];
    for _ in 0..CLONES {
        let mut sandbox = started(&engine).await;
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let printed = run(&mut sandbox.session, program).await;
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        sandbox.end.finish().await;
        let words: Vec<&str> = printed.split_whitespace().collect();
        for (column, word) in columns.iter_mut().zip(&words) {
            column.insert((*word).to_owned());
        }
        let told: f64 = words[3].parse().unwrap();
        let (earliest, latest) = (before.as_secs_f64() - 2.0, after.as_secs_f64() + 2.0);
        assert!((earliest..latest).contains(&told), "{told} is not within {earliest}..{latest}");
    }
    let different: Vec<usize> = columns.iter().map(BTreeSet::len).collect();
    assert_eq!(different, [CLONES; 3], "{columns:?}");
}

#[tokio::test]
async fn a_second_engine_finds_the_template_of_the_first() {
    let (first, _registry) = engine().await;
    first.prepare(&python()).await.unwrap();
    let made = |engine: &MicroVmEngine| {
        let image = engine.images.find("python").unwrap();
        let recipe = engine.recipe(&image, &python().limits).unwrap();
        let folder = shared_cache().join("templates").join(recipe.key.to_string());
        std::os::unix::fs::MetadataExt::ino(&fs_err::metadata(folder.join("ram")).unwrap())
    };
    let before = made(&first);
    let begun = Instant::now();
    let (second, _registry) = engine().await;
    let opened = begun.elapsed();
    second.prepare(&python()).await.unwrap();
    let loaded = begun.elapsed();
    let mut sandbox = started(&second).await;
    let cloned = begun.elapsed();
    assert_eq!(run(&mut sandbox.session, "print('hello')").await, "hello\n");
    let ran = begun.elapsed();
    assert_eq!(made(&second), before, "it was not made again");
    milliseconds("open, + load, + clone, + run", &mut [opened, loaded, cloned, ran]);
}

#[tokio::test]
async fn a_template_that_does_not_resume_is_rebuilt() {
    let (first, _registry) = engine().await;
    first.prepare(&python()).await.unwrap();
    let image = first.images.find("python").unwrap();
    let key = first.recipe(&image, &python().limits).unwrap().key.to_string();
    let cache = tempfile::tempdir().unwrap();
    let registry = tempfile::tempdir().unwrap();
    let engine = engine_with(cache.path(), registry.path()).await;
    // Everything is valid except the memory, which is all zeros; only starting it shows that.
    let from = shared_cache().join("templates").join(&key);
    let to = cache.path().join("templates").join(&key);
    fs_err::create_dir(&to).unwrap();
    for file in ["state", "label.json"] {
        fs_err::copy(from.join(file), to.join(file)).unwrap();
    }
    let bytes = fs_err::metadata(from.join("ram")).unwrap().len();
    fs_err::File::create(to.join("ram")).unwrap().file().set_len(bytes).unwrap();
    let begun = Instant::now();
    let mut sandbox = started(&engine).await;
    milliseconds("broken template made again", &mut [begun.elapsed()]);
    assert_eq!(run(&mut sandbox.session, "print('alive')").await, "alive\n");
}

#[tokio::test]
async fn an_image_without_an_interpreter_boots() {
    let (engine, _registry) = engine().await;
    let spec = SandboxSpec { image: "debate".to_owned(), limits: SandboxLimits::default() };
    let mut sandbox = engine.start(&spec, &SandboxLabels::default()).await.unwrap();
    // It has no root file system to run programs in, and reports that.
    let request = GuestRunRequest {
        argv: vec!["python3".to_owned()],
        env: BTreeMap::new(),
        limits: SandboxLimits::default(),
    };
    let ran = sandbox.session.run(request, b"", None).await;
    assert!(matches!(ran.end, SessionRunEnd::Broken(SandboxError::Request(_))), "{:?}", ran.end);
}

#[tokio::test]
async fn a_program_with_large_modules_starts_as_quickly_as_another() {
    let (engine, _registry) = engine().await;
    let spec = SandboxSpec { image: "data".to_owned(), limits: SandboxLimits::default() };
    engine.prepare(&spec).await.unwrap();
    let mut sandbox = engine.start(&spec, &SandboxLabels::default()).await.unwrap();
    let begun = Instant::now();
    let program = "import numpy, pandas\n\
                   from matplotlib import pyplot\n\
                   frame = pandas.DataFrame({'x': numpy.arange(4)})\n\
                   print(int(frame.x.sum()))";
    assert_eq!(run(&mut sandbox.session, program).await, "6\n");
    let elapsed = begun.elapsed();
    milliseconds("first program with pandas", &mut [elapsed]);
    // Importing pandas alone takes longer under emulation.
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
}

#[tokio::test]
async fn a_sandbox_can_be_booted_without_a_template() {
    let (engine, _registry) = engine().await;
    let begun = Instant::now();
    let mut sandbox = engine.start_cold(&python(), &SandboxLabels::default()).await.unwrap();
    milliseconds("cold boot", &mut [begun.elapsed()]);
    assert_eq!(run(&mut sandbox.session, "print('booted')").await, "booted\n");
}

#[tokio::test]
async fn twenty_sequential_and_ten_concurrent_clones_all_answer() {
    let (engine, registry) = engine().await;
    let engine = Arc::new(engine);
    engine.prepare(&python()).await.unwrap();
    async fn one(engine: Arc<MicroVmEngine>) -> (Duration, Duration) {
        let begun = Instant::now();
        let mut sandbox = started(&engine).await;
        let cloned = begun.elapsed();
        assert_eq!(run(&mut sandbox.session, "print(1)").await, "1\n");
        let ran = begun.elapsed() - cloned;
        sandbox.end.finish().await;
        (cloned, ran)
    }
    let (mut clones, mut runs, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..20 {
        let before = cpu_of_children();
        let (cloned, ran) = one(Arc::clone(&engine)).await;
        clones.push(cloned);
        runs.push(ran);
        cpu.push(cpu_of_children().saturating_sub(before));
    }
    milliseconds("CPU time of each", &mut cpu);
    milliseconds("20 clones in a row", &mut clones);
    milliseconds("their first programs", &mut runs);
    let tasks: Vec<_> = (0..10).map(|_| tokio::spawn(one(Arc::clone(&engine)))).collect();
    let mut wholes = Vec::new();
    for task in tasks {
        let (cloned, ran) = task.await.unwrap();
        wholes.push(cloned + ran);
    }
    milliseconds("10 clones and programs at once", &mut wholes);
    assert_eq!(SandboxRegistry::list(registry.path()).unwrap(), []);
}

/// On some hosts KVM exists but no guest boots. That must fail within the time limit.
#[tokio::test]
async fn kvm_either_works_or_fails_within_the_time_limit() {
    let registry = tempfile::tempdir().unwrap();
    let accel = AcceleratorChoice::Only(VmAccelerator::Kvm);
    let options = MicroVmOptions { accel, ..options(&shared_cache(), registry.path()) };
    let engine = MicroVmEngine::open(options).await.unwrap();
    assert_eq!(engine.class(), IsolationClass::HardwareVm);
    let spec = SandboxSpec { image: "debate".to_owned(), limits: SandboxLimits::default() };
    let begun = Instant::now();
    let started = engine.start(&spec, &SandboxLabels::default()).await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    if let Err(error) = started {
        assert!(error.is_retryable());
        assert_eq!(engine_with(&shared_cache(), registry.path()).await.accel(), VmAccelerator::Tcg);
    }
}

/// Helper process for the next tests: starts a sandbox, prints QEMU's process id and waits to be
/// killed; or starts several, drops each at a different moment and prints what is left.
#[tokio::test]
#[ignore = "started by other tests"]
async fn victim() {
    let order = std::env::var(VICTIM).unwrap_or_default();
    let (engine, registry) = engine().await;
    engine.prepare(&python()).await.unwrap();
    #[expect(clippy::print_stdout, reason = "the other test listens")]
    match order.as_str() {
        "wait" => {
            let _vessel = started(&engine).await;
            let records = SandboxRegistry::list(registry.path()).unwrap();
            println!("\nqemu {}", records[0].leaves.processes[0].pid);
            std::future::pending::<()>().await;
        }
        "give up" => {
            for moment in (0..160).step_by(8) {
                let patience = Duration::from_millis(moment);
                let _ = tokio::time::timeout(patience, started(&engine)).await;
            }
            let begun = Instant::now();
            while children() > 0 && begun.elapsed() < Duration::from_secs(10) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            println!("\nleft {}", children());
        }
        other => panic!("`{other}` is no order"),
    }
}

/// Number of children of this process, including zombies.
fn children() -> usize {
    let mut found = 0;
    for task in fs_err::read_dir("/proc/self/task").unwrap() {
        let children =
            fs_err::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        found += children.split_whitespace().count();
    }
    found
}

fn victim_with(order: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "microvm::real_microvm::victim", "--ignored", "--nocapture"])
        .env(VICTIM, order)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

#[test]
fn killing_a_process_ends_its_virtual_machines() {
    let mut victim = victim_with("wait").spawn().unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let qemu: i32 = lines
        .find_map(|line| line.unwrap().strip_prefix("qemu ").and_then(|pid| pid.parse().ok()))
        .expect("the victim tells QEMU's number");
    assert!(ProcessId::of(qemu).is_some(), "QEMU runs");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let begun = Instant::now();
    while ProcessId::of(qemu).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(5), "QEMU outlives its parent");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_cancelled_microvm_start_leaves_no_process() {
    let output = victim_with("give up").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.lines().any(|line| line == "left 0"), "{said}");
}
