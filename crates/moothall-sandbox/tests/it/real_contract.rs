//! The guarantees of the `SandboxEngine` trait, tested on every engine.

use std::collections::BTreeMap;

use moothall_core::debate::Debate;
use moothall_core::guest::{GuestWorkflow, StepSummary};
use moothall_core::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use moothall_core::sandbox::{
    ExecuteRequest, ExecutionExit, GuestPath, IsolationClass, LimitName, SandboxLabels,
    SandboxLimits,
};
use moothall_core::{EffectResult, Sha256Hex, Workflow as _};
use moothall_sandbox::{
    EngineName, HostOptions, MemoryBudget, PoolOptions, SandboxHost, SandboxPolicy, SandboxRunner,
    SandboxSpec, SharedKernel,
};

use crate::debate_input::debate_input;
use crate::support;

macro_rules! contract {
    ($($module:ident $engine:ident),*) => { $(
        mod $module {
            use moothall_sandbox::EngineName::$engine as ENGINE;

            #[tokio::test]
            async fn it_holds_what_a_probe_tries_and_says_what_it_is() {
                super::it_holds_what_a_probe_tries_and_says_what_it_is(ENGINE).await;
            }

            #[tokio::test]
            async fn a_program_gets_arguments_variables_input_and_files_and_leaves_files() {
                super::a_program_gets_arguments_variables_input_and_files_and_leaves_files(ENGINE)
                    .await;
            }

            #[tokio::test]
            async fn what_one_program_left_is_not_there_for_the_next() {
                super::what_one_program_left_is_not_there_for_the_next(ENGINE).await;
            }

            #[tokio::test]
            async fn every_limit_stops_who_exceeds_it() {
                super::every_limit_stops_who_exceeds_it(ENGINE).await;
            }

            #[tokio::test]
            async fn a_workflow_runs_inside_and_its_effects_outside() {
                super::a_workflow_runs_inside_and_its_effects_outside(ENGINE).await;
            }

            #[tokio::test]
            async fn one_from_the_pool_was_never_used() {
                super::one_from_the_pool_was_never_used(ENGINE).await;
            }
        }
    )* };
}

contract!(microvm Microvm, runsc Runsc, runc Runc);

struct World {
    sandboxes: SandboxRunner,
    _state: tempfile::TempDir,
}

/// The engine as users get it: chosen by a policy and probed.
async fn open(engine: EngineName, idle: usize) -> World {
    // A short path, because socket paths are limited.
    let state = tempfile::Builder::new().prefix("mh").tempdir().unwrap();
    let host = SandboxHost::open(HostOptions {
        images: support::images(),
        cache: support::cache(),
        state: state.path().to_owned(),
        guest: support::guest(),
        jail: support::jail(),
    })
    .unwrap();
    let policy = SandboxPolicy {
        engine: Some(engine),
        minimum: IsolationClass::SharedKernel,
        shared_kernel: SharedKernel::Accepted,
    };
    let chosen = host.choose(&policy, "python").await.unwrap();
    let options = PoolOptions { idle, memory: MemoryBudget::new(2 << 30) };
    World { sandboxes: SandboxRunner::new(chosen, options), _state: state }
}

fn path(text: &str) -> GuestPath {
    text.parse().unwrap()
}

fn program(source: &str) -> ExecuteRequest {
    ExecuteRequest::python("python", path("main.py"), source)
}

impl World {
    async fn run(&self, request: &ExecuteRequest) -> moothall_core::sandbox::SandboxExecution {
        let none = BTreeMap::new();
        let executed =
            self.sandboxes.execute(&SandboxLabels::default(), request, &none, None).await.unwrap();
        executed.clean_up.await.unwrap();
        executed.execution
    }
}

async fn it_holds_what_a_probe_tries_and_says_what_it_is(engine: EngineName) {
    let world = open(engine, 0).await;
    let execution = world.run(&program("print(1)")).await;
    let attestation = execution.attestation;
    assert_eq!(
        (execution.exit, &*execution.stdout.text),
        (ExecutionExit::Exited { code: 0 }, "1\n")
    );
    let expected = match engine {
        EngineName::Microvm => [IsolationClass::HardwareVm, IsolationClass::EmulatedVm].as_slice(),
        EngineName::Runsc => &[IsolationClass::UserKernel],
        EngineName::Runc | EngineName::Crun => &[IsolationClass::SharedKernel],
    };
    assert!(expected.contains(&attestation.class), "{attestation:?}");
    assert_eq!(attestation.engine, engine.as_str());
    assert_eq!(attestation.limits, SandboxLimits::default());
    assert_eq!(attestation.unenforced_limits(), Vec::<LimitName>::new());
    // Nine from inside; QEMU is additionally confined by the jail.
    let walls = if engine == EngineName::Microvm { 3 } else { 0 };
    assert_eq!(attestation.self_tests.len(), 9 + walls);
    assert!(attestation.self_tests.iter().all(|test| test.held), "{attestation:?}");
    assert_eq!(attestation.guest_sha256, Sha256Hex::of(support::guest()));
}

async fn a_program_gets_arguments_variables_input_and_files_and_leaves_files(engine: EngineName) {
    let world = open(engine, 0).await;
    let mut request = program(
        "import os, sys, pathlib\n\
         print(sys.argv[1:], os.environ['GREETING'], sys.stdin.read(), end='|')\n\
         print(open('/inputs/deep/data.csv').read(), end='|')\n\
         print(open('helper.txt').read())\n\
         print('to stderr', file=sys.stderr)\n\
         pathlib.Path('out/deep').mkdir()\n\
         pathlib.Path('out/deep/picture.bin').write_bytes(bytes(range(256)))\n\
         sys.exit(7)\n",
    );
    request.sources.insert(path("helper.txt"), "beside it".to_owned());
    request.argv.extend(["a b".to_owned(), "ü".to_owned()]);
    request.env.insert("GREETING".to_owned(), "hello".to_owned());
    request.stdin = "typed".to_owned();
    request.collect = true;
    let inputs = BTreeMap::from([(path("deep/data.csv"), b"1,2".to_vec())]);
    let executed =
        world.sandboxes.execute(&SandboxLabels::default(), &request, &inputs, None).await.unwrap();
    let execution = executed.execution;
    assert_eq!(execution.exit, ExecutionExit::Exited { code: 7 }, "{}", execution.stderr.text);
    assert_eq!(execution.stdout.text, "['a b', 'ü'] hello typed|1,2|beside it\n");
    assert_eq!(execution.stderr.text, "to stderr\n");
    assert_eq!(execution.left_behind, Vec::<String>::new());
    let picture: Vec<u8> = (0..=255).collect();
    assert_eq!(executed.files, BTreeMap::from([(path("deep/picture.bin"), picture)]));
}

async fn what_one_program_left_is_not_there_for_the_next(engine: EngineName) {
    let world = open(engine, 0).await;
    let request = program(
        "import os\n\
         for folder in ('/workspace', '/tmp', '/inputs', '/dev/shm'):\n\
        \x20   if os.path.isdir(folder):\n\
        \x20       print(folder, sorted(os.listdir(folder)))\n\
        \x20       try: open(folder + '/left', 'w').write('x')\n\
        \x20       except OSError: pass\n",
    );
    let first = world.run(&request).await;
    let second = world.run(&request).await;
    assert!(first.exit.is_zero(), "{}", first.stderr.text);
    assert!(
        first.stdout.text.starts_with("/workspace ['main.py', 'out']\n"),
        "{}",
        first.stdout.text
    );
    assert_eq!(first.stdout, second.stdout);
}

/// Each program tries to exceed one limit and stops by itself before it could do harm.
async fn every_limit_stops_who_exceeds_it(engine: EngineName) {
    let world = open(engine, 0).await;
    let limited = |source: &str, change: fn(&mut SandboxLimits)| {
        let mut request = program(source);
        change(&mut request.limits);
        request
    };

    let wall = limited("import time\ntime.sleep(20)", |limits| limits.wall_ms = 1_500);
    assert_eq!(world.run(&wall).await.exit, ExecutionExit::TimedOut, "wall");

    let cpu_time = limited("while True: pass", |limits| {
        limits.cpu_seconds = 1;
        limits.cpu_permille = 1000;
    });
    assert_eq!(
        world.run(&cpu_time).await.exit,
        ExecutionExit::Signalled { signal: 24 },
        "CPU time"
    );

    let memory = limited("x = bytearray(400 << 20)\nprint(len(x))", |_| ());
    assert_eq!(world.run(&memory).await.exit, ExecutionExit::OutOfMemory, "memory");

    // gVisor counts processes for the whole sandbox and ends it; that is reported too.
    let pids = limited(
        "import threading, time\n\
         made = 0\n\
         try:\n\
        \x20   for _ in range(1000):\n\
        \x20       threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n\
        \x20       made += 1\n\
         except RuntimeError: pass\n\
         print(made < 64, flush=True)\n\
         import os; os._exit(0)\n",
        |limits| limits.cpu_permille = 1000,
    );
    let held = world.run(&pids).await;
    match engine {
        EngineName::Runsc => assert!(
            matches!(&held.exit, ExecutionExit::SandboxDied { .. } | ExecutionExit::Exited { .. }),
            "pids: {held:?}"
        ),
        _ => assert_eq!(held.stdout.text, "True\n", "pids: {held:?}"),
    }

    let output = limited("print('x' * 5000)", |limits| limits.output_bytes = 1000);
    let told = world.run(&output).await.stdout;
    assert_eq!((told.text.len(), told.truncated), (1000, true), "output");

    let write = "import os, signal, sys\n\
         signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n\
         total = 0\n\
         try:\n\
        \x20   with open('big', 'wb') as file:\n\
        \x20       while total < 100 << 20: total += file.write(b'x' * 65536)\n\
         except OSError: pass\n\
         print(os.path.getsize('big') <= int(sys.argv[1]))\n";
    for (name, most, change) in [
        ("file size", 1 << 20, (|limits| limits.file_bytes = 1 << 20) as fn(&mut SandboxLimits)),
        ("disk", 64 << 20, |_| ()),
    ] {
        let mut request = limited(write, change);
        request.argv.push(most.to_string());
        let held = world.run(&request).await;
        assert_eq!(held.stdout.text, "True\n", "{name}: {held:?}");
    }

    let open_files = limited(
        "files = []\n\
         try:\n\
        \x20   while len(files) < 5000: files.append(open('/dev/null'))\n\
         except OSError: pass\n\
         print(len(files) < 256)\n",
        |_| (),
    );
    assert_eq!(world.run(&open_files).await.stdout.text, "True\n", "open files");

    // CPU seconds per wall-clock second: half a CPU, plus what is left of one period of a second,
    // plus some slack for the start.
    let share = limited(
        "import time\n\
         began = time.monotonic()\n\
         start = time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID)\n\
         while time.monotonic() - began < 4: pass\n\
         print(time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) - start)\n",
        |_| (),
    );
    let used: f64 = world.run(&share).await.stdout.text.trim().parse().unwrap();
    // gVisor's CPU accounting is its own; the host's cgroup enforces the share.
    if engine != EngineName::Runsc {
        assert!(used < 2.7, "CPU share: {used} s of CPU in 4 s");
    }
}

async fn a_workflow_runs_inside_and_its_effects_outside(engine: EngineName) {
    let world = open(engine, 0).await;
    let spec = SandboxSpec { image: "debate".to_owned(), limits: SandboxLimits::default() };
    let mut lease = world.sandboxes.lease(&spec, &SandboxLabels::default()).await.unwrap();
    let input = debate_input();
    let mut outside = Debate::new(input.clone()).unwrap();
    let workflow = GuestWorkflow::Debate { input: Box::new(input) };
    let step = lease.session().start_workflow(workflow).await.unwrap();
    assert_eq!(step, StepSummary::of(outside.start()).unwrap());
    let (id, _) = step.perform.first().unwrap().clone();
    let reply = EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text: "Because.".to_owned(),
        stop: StopReason::End,
        model: "demo".to_owned(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    });
    let step = lease.session().resume_workflow(id.clone(), reply.clone()).await.unwrap();
    assert_eq!(step, StepSummary::of(outside.resume(&id, reply).unwrap()).unwrap());
    lease.end().await;
}

async fn one_from_the_pool_was_never_used(engine: EngineName) {
    let world = open(engine, 2).await;
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    world.sandboxes.prewarm(&spec);
    if world.sandboxes.engine().is_worth_pooling() {
        while world.sandboxes.idle_count(&spec) < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let request = program(
            "import os, random\nprint(os.listdir('/tmp'), os.urandom(8).hex(), random.random())\nopen('/tmp/used', 'w').close()",
        );
        let execution = world.run(&request).await;
        assert!(execution.stdout.text.starts_with("[] "), "{execution:?}");
        seen.push(execution.stdout.text);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3, "two drew the same random numbers");
    world.sandboxes.shut_down().await;
}
