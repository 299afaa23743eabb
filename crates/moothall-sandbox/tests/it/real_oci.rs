//! The `oci` engine with the real runtimes. These tests need root, the runtimes, the agent's static
//! binary (`cargo xtask guest`) and the images, and fail if one is missing.

mod ends;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use moothall_core::sandbox::{CapturedOutput, ExecutionExit, LimitName, SandboxLimits};
use moothall_sandbox::image::ImageStore;
use moothall_sandbox::oci::{OciEngine, OciOptions, UserNamespace};
use moothall_sandbox::{
    EngineName, SandboxEngine as _, SandboxError, SandboxRegistry, SandboxSpec,
};

use self::ends::{
    is_cleaned_up_by_the_reaper, leaves_nothing_behind, leaves_nothing_behind_when_dropped,
    leaves_nothing_behind_when_its_owner_is_killed, leaves_the_image_as_it_is,
    tells_a_sandbox_that_died, wait_until,
};
use self::world::{World, cgroups, guest, images, path, printed, processes, request};

/// Time limit of a case, even on a busy host.
const TEST_TIMEOUT: Duration = Duration::from_secs(180);

/// Runs the same cases on every runtime.
macro_rules! on_every_runtime {
    ($($case:ident),* $(,)?) => {
        on_every_runtime!(@ runsc Runsc [] [$($case)*]);
        on_every_runtime!(@ runc Runc [] [$($case)*]);
        on_every_runtime!(
            @ crun Crun
            [#[ignore = "crun does not support hosts with hybrid cgroups; .ci/run tries it elsewhere"]]
            [$($case)*]
        );
    };
    (@ $module:ident $name:ident $attributes:tt [$($case:ident)*]) => {
        mod $module {
            $(on_every_runtime!(# $name $attributes $case);)*
        }
    };
    (# $name:ident [$($attribute:tt)*] $case:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $($attribute)*
        async fn $case() {
            let world = super::World::of(moothall_sandbox::EngineName::$name).unwrap();
            let case = tokio::time::timeout(super::TEST_TIMEOUT, super::$case(world));
            case.await.expect("the test in time");
        }
    };
}

on_every_runtime!(
    runs_a_program_with_input_and_files,
    shows_a_program_no_rights_and_no_agent,
    refuses_calls_that_no_program_needs,
    runs_threads_processes_and_numbers,
    runs_an_image_without_a_root_file_system,
    tells_memory_from_other_ends,
    holds_the_number_of_processes,
    holds_a_share_of_a_cpu,
    holds_the_size_of_files_and_folders,
    reaches_no_network,
    stops_at_the_wall_limit,
    tells_a_sandbox_that_died,
    leaves_nothing_behind,
    leaves_nothing_behind_when_dropped,
    leaves_nothing_behind_when_its_owner_is_killed,
    is_cleaned_up_by_the_reaper,
    leaves_the_image_as_it_is,
    tells_why_it_cannot_start,
    says_how_long_a_cold_start_takes,
);

/// The reason for which `.ci/run` leaves the cases with crun out.
#[test]
fn crun_is_refused_only_on_hosts_with_hybrid_cgroups() {
    let is_hybrid = Path::new("/sys/fs/cgroup/unified/cgroup.controllers").exists();
    match World::of(EngineName::Crun) {
        Ok(_) => assert!(!is_hybrid, "crun works here; remove the exception from .ci/run"),
        Err(SandboxError::Start { problem, .. }) => {
            assert!(is_hybrid && problem.contains("cgroups in hybrid mode"), "{problem}");
        }
        Err(other) => panic!("{other}"),
    }
}

async fn runs_a_program_with_input_and_files(world: World) {
    let program = "
import os, sys
print(sys.stdin.read() + open('/inputs/a/given.txt').read())
print('to stderr', file=sys.stderr)
os.makedirs('out/deep')
open('out/deep/left.txt', 'w').write('left')
try:
    open('/inputs/a/given.txt', 'w')
except PermissionError:
    print('inputs are read-only')
";
    let mut request = request(program);
    request.stdin = "hello ".to_owned();
    request.collect = true;
    let inputs = BTreeMap::from([(path("a/given.txt"), b"world".to_vec())]);
    let executed = world.sandboxes.execute(&world.labels(), &request, &inputs, None).await.unwrap();
    let execution = executed.execution;
    assert_eq!(execution.exit, ExecutionExit::Exited { code: 0 }, "{}", execution.stderr.text);
    let said = |text: &str| CapturedOutput { text: text.to_owned(), truncated: false };
    assert_eq!(execution.stdout, said("hello world\ninputs are read-only\n"));
    assert_eq!(execution.stderr, said("to stderr\n"));
    assert_eq!(executed.files, BTreeMap::from([(path("deep/left.txt"), b"left".to_vec())]));
    assert_eq!(execution.attestation.engine, world.name.as_str());
    assert_eq!(execution.attestation.unenforced_limits(), Vec::<LimitName>::new());
    executed.clean_up.await.unwrap();
}

async fn shows_a_program_no_rights_and_no_agent(world: World) {
    let program = "
import ctypes, os
status = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
for key in ['Uid', 'Gid', 'Groups', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']:
    print(key, *status.get(key, ' missing').split())
print('NoNewPrivs', ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))
for path in ['/', '/usr', '/etc', '/moothall-guest', '/inputs', '/proc', '/dev']:
    try:
        open(os.path.join(path, 'mine'), 'w')
        print('wrote to', path)
    except OSError:
        pass
print(os.uname().nodename, os.listdir('/inputs'), sorted(os.listdir('/workspace')))
for path in ['/proc/1/environ', '/proc/1/mem', '/proc/kcore', '/dev/mem', '/dev/sda', '/dev/vda', '/proc/1/root/etc']:
    try:
        print('opened', path, open(path, 'rb').read(200))
    except OSError:
        pass
try:
    os.kill(1, 9)
    print('killed the agent')
except (PermissionError, ProcessLookupError):
    pass
";
    let execution = world.run(program).await;
    let expected = "Uid 1000 1000 1000 1000\nGid 1000 1000 1000 1000\nGroups\n\
        CapInh 0000000000000000\nCapPrm 0000000000000000\nCapEff 0000000000000000\n\
        CapBnd 0000000000000000\nCapAmb 0000000000000000\nNoNewPrivs 1\n\
        sandbox [] ['main.py', 'out']";
    // gVisor does not show all of it, and shows the environment of every process.
    let expected = match world.name {
        EngineName::Runsc => {
            expected.replace("CapAmb 0000000000000000", "CapAmb missing")
                + "\nopened /proc/1/environ b'PATH=/usr/local/bin:/usr/bin:/bin\\x00HOME=/root\\x00'"
        }
        _ => expected.to_owned(),
    };
    assert_eq!(printed(&execution), expected);
}

/// Regression: the agent ran as the host's root, and programs as the host's user 1000.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_a_runc_container_are_not_users_of_the_host() {
    let world = World::of(EngineName::Runc).unwrap();
    assert!(world.engine.version().ends_with(" (user namespace)"), "{}", world.engine.version());
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    let lease = world.sandboxes.lease(&spec, &world.labels()).await.unwrap();
    let agents = processes(lease.name());
    assert!(!agents.is_empty());
    for agent in agents {
        let status = fs_err::read_to_string(format!("/proc/{agent}/status")).unwrap();
        let ids =
            status.lines().filter(|line| line.starts_with("Uid:") || line.starts_with("Gid:"));
        let ids: Vec<u32> = ids
            .flat_map(|line| line.split_whitespace().skip(1))
            .map(|id| id.parse().unwrap())
            .collect();
        assert_eq!(ids.len(), 8, "{status}");
        assert!(ids.iter().all(|id| *id >= 0x7000_0000), "{status}");
    }
    drop(lease);
    let program = "
print(open('/proc/self/uid_map').read().split()[1], open('/proc/self/gid_map').read().split()[1])";
    let execution = world.run(program).await;
    let maps: Vec<u32> = printed(&execution).split(' ').map(|id| id.parse().unwrap()).collect();
    assert!(maps.iter().all(|first| *first >= 0x7000_0000), "{maps:?}");
    assert!(execution.attestation.engine_version.ends_with(" (user namespace)"));
}

/// A host that lacks or forbids user namespaces can still run containers, and their version says
/// so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runc_container_without_a_user_namespace_is_reported() {
    let world = World::of(EngineName::Runc).unwrap();
    let plain = world.engine.without_user_namespace().unwrap();
    assert!(plain.version().ends_with(" (no user namespace)"), "{}", plain.version());
    assert!(plain.without_user_namespace().is_none());
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    let sandbox = plain.start(&spec, &world.labels()).await.unwrap();
    drop(sandbox);
    wait_until(|| world.leftovers().is_empty(), || format!("{:?}", world.leftovers())).await;
}

async fn refuses_calls_that_no_program_needs(world: World) {
    let program = "
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*arguments)
    print(name, result, ctypes.get_errno())
call('unshare', 272, 0x10000000)
call('setns', 308, 0, 0)
call('mount', 165, b'none', b'/tmp', b'tmpfs', 0, 0)
call('ptrace', 101, 0, 0, 0, 0)
call('bpf', 321, 0, 0, 0)
call('keyctl', 250, 0, 0, 0)
call('userfaultfd', 323, 0)
call('io_uring_setup', 425, 1, 0)
call('perf_event_open', 298, 0, 0, 0, 0, 0)
call('clone with a new user namespace', 56, 0x10000000 | 17, 0, 0, 0, 0)
call('clone3', 435, 0, 0)
for family in [socket.AF_NETLINK, socket.AF_PACKET, 38, 40]:
    try:
        socket.socket(family, socket.SOCK_RAW if family != 38 else socket.SOCK_SEQPACKET)
        print('a socket of', family)
    except OSError:
        pass
";
    let expected = "unshare -1 1\nsetns -1 1\nmount -1 1\nptrace -1 1\nbpf -1 1\nkeyctl -1 1\n\
        userfaultfd -1 1\nio_uring_setup -1 1\nperf_event_open -1 1\n\
        clone with a new user namespace -1 1\n";
    // gVisor's filter cannot return `ENOSYS` and therefore allows the call.
    let newer = if world.name == EngineName::Runsc { "clone3 -1 22" } else { "clone3 -1 38" };
    assert_eq!(printed(&world.run(program).await), format!("{expected}{newer}"));
}

async fn runs_threads_processes_and_numbers(world: World) {
    let program = "
import multiprocessing, os, subprocess, sys, tempfile, threading
import numpy, pandas
import matplotlib.pyplot
total = []
threads = [threading.Thread(target=lambda n=n: total.append(n)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(total))
print(subprocess.run(['sh', '-c', 'echo $((6 * 7))'], capture_output=True, text=True).stdout.strip())
with multiprocessing.get_context('fork').Pool(2) as pool:
    print(pool.map(abs, [-1, -2, -3]))
a = numpy.arange(40000.0).reshape(200, 200)
print(float((a @ a).trace()), float(numpy.linalg.norm(numpy.eye(50))) ** 2 > 49.9)
print(int(pandas.DataFrame({'x': [1, 2, 3]}).x.sum()))
matplotlib.pyplot.plot([1, 2, 3])
os.makedirs('out', exist_ok=True)
matplotlib.pyplot.savefig('out/plot.png')
os.mkfifo('/tmp/pipe')
with tempfile.NamedTemporaryFile() as file:
    file.write(b'x')
print(os.path.getsize('out/plot.png') > 1000)
";
    let mut request = request(program);
    request.image = "data".to_owned();
    request.limits.wall_ms = 120_000;
    let execution = world.execute(&request).await;
    let expected = "28\n42\n[1, 2, 3]\n16052532010000.0 True\n6\nTrue";
    assert_eq!(printed(&execution), expected, "{}", execution.stderr.text);
}

async fn runs_an_image_without_a_root_file_system(world: World) {
    let spec = SandboxSpec { image: "debate".to_owned(), limits: SandboxLimits::default() };
    let sandbox = world.engine.start(&spec, &world.labels()).await.unwrap();
    let name = sandbox.end.name().to_owned();
    assert!(!processes(&name).is_empty());
    sandbox.end.finish().await;
    assert_eq!(world.leftovers(), BTreeSet::new());
}

async fn tells_memory_from_other_ends(world: World) {
    let hog = "
import os
print('before', flush=True)
hoard = []
while True:
    hoard.append(bytearray(os.urandom(4096) * 256))
";
    let execution = world.run(hog).await;
    let ended = (execution.exit, execution.stdout.text.as_str());
    assert_eq!(ended, (ExecutionExit::OutOfMemory, "before\n"), "{}", execution.stderr.text);
    let files = "
piece = b'x' * (1 << 20)
for n in range(60):
    open('/tmp/%d' % n, 'wb').write(piece)
    open('/workspace/%d' % n, 'wb').write(piece)
";
    let mut request = request(files);
    request.limits.memory_bytes = 64 << 20;
    let execution = world.execute(&request).await;
    assert_eq!(execution.exit, ExecutionExit::OutOfMemory);
    let killed = world.run("import os\nos.kill(os.getpid(), 9)").await;
    assert_eq!(killed.exit, ExecutionExit::Signalled { signal: 9 });
    let failed = world.run("raise SystemExit(7)").await;
    assert_eq!(failed.exit, ExecutionExit::Exited { code: 7 });
}

async fn holds_the_number_of_processes(world: World) {
    let program = "
import os, time
made = 0
try:
    while made < 700:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError as error:
    print(made, error.errno)
else:
    print('no limit')
";
    let mut request = request(program);
    request.limits.pids = 32;
    // Processes under gVisor are large.
    request.limits.memory_bytes = 1 << 30;
    let execution = world.execute(&request).await;
    // One is the program itself.
    assert_eq!(printed(&execution), "31 11");
    // The host also counts gVisor's threads, so its limit is less strict; the attestation says so.
    if world.name == EngineName::Runsc {
        assert!(execution.attestation.held_by[&LimitName::Pids].contains("512"));
    }
}

async fn holds_a_share_of_a_cpu(world: World) {
    let program = "
import time
end = time.monotonic() + 4
while time.monotonic() < end:
    pass
";
    let lease = world
        .sandboxes
        .lease(
            &SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() },
            &world.labels(),
        )
        .await
        .unwrap();
    let usage = cpu_usage_file(lease.name());
    let before = cpu_seconds(&usage).unwrap();
    // The group may be gone as soon as the program has ended.
    let watching = std::thread::spawn(move || {
        let mut last = before;
        while let Some(now) = cpu_seconds(&usage) {
            last = now;
            std::thread::sleep(Duration::from_millis(20));
        }
        last
    });
    let started = Instant::now();
    let executed = lease.execute(&request(program), &BTreeMap::new(), None).await.unwrap();
    let took = started.elapsed().as_secs_f64();
    assert_eq!(executed.execution.exit, ExecutionExit::Exited { code: 0 });
    executed.clean_up.await.unwrap();
    let used = watching.join().unwrap() - before;
    assert!(used > 0.5, "{used} s of CPU in {took} s");
    println!("{}: {used:.2} s of CPU in {took:.2} s", world.name);
    // Half a CPU, plus what is left of one period of a second.
    assert!(used < 0.55 * took + 0.5, "{used} s of CPU in {took} s");
}

fn cpu_usage_file(name: &str) -> PathBuf {
    let candidates = ["cpuacct.usage", "cpu.stat"];
    let groups = cgroups().into_iter().filter(|group| group.ends_with(name));
    let files = groups.flat_map(|group| candidates.map(|file| group.join(file)));
    let usable = |file: &PathBuf| {
        fs_err::read_to_string(file)
            .is_ok_and(|text| file.ends_with("cpuacct.usage") || text.contains("usage_usec"))
    };
    files.into_iter().find(usable).expect("a group that counts CPU time")
}

/// `None` if the group is gone.
fn cpu_seconds(file: &Path) -> Option<f64> {
    let text = fs_err::read_to_string(file).ok()?;
    Some(match text.lines().find_map(|line| line.strip_prefix("usage_usec ")) {
        Some(microseconds) => microseconds.parse::<f64>().unwrap() / 1e6,
        None => text.trim().parse::<f64>().unwrap() / 1e9,
    })
}

async fn holds_the_size_of_files_and_folders(world: World) {
    let program = "
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(folder, each, most):
    written = 0
    try:
        for n in range(100):
            with open('%s/%d' % (folder, n), 'wb') as file:
                for _ in range(each):
                    written += file.write(b'x' * (1 << 20))
                    file.flush()
    except OSError as error:
        return (written >> 20) in (most - 1, most), error.errno
    return 'no limit'
print(fill('/workspace', 1, 16))
print(fill('/tmp', 1, 16))
print(fill('/dev/shm', 1, 4))
for n in range(6):
    os.remove('/workspace/%d' % n)
print(fill('/workspace', 5, 4))
files = []
try:
    while True:
        files.append(open('/dev/null'))
except OSError as error:
    print(len(files) + 3, error.errno)
";
    let mut request = request(program);
    request.limits.disk_bytes = 16 << 20;
    request.limits.file_bytes = 4 << 20;
    request.limits.open_files = 64;
    let execution = world.execute(&request).await;
    let expected = "(True, 28)\n(True, 28)\n(True, 28)\n(True, 27)\n64 24";
    assert_eq!(printed(&execution), expected);
}

async fn reaches_no_network(world: World) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let program = format!(
        "
import socket
for address in ['127.0.0.1', 'localhost']:
    try:
        socket.create_connection((address, {port}), timeout=2)
        print('connected')
    except OSError as error:
        print('refused')
print(sorted(name for _, name in socket.if_nameindex()) if False else 'asked')
"
    );
    assert_eq!(printed(&world.run(&program).await), "refused\nrefused\nasked");
    let accepted = listener.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(accepted, Err(std::io::ErrorKind::WouldBlock));
}

async fn stops_at_the_wall_limit(world: World) {
    let mut request = request("print('before', flush=True)\nwhile True: pass");
    request.limits.wall_ms = 2_000;
    let started = Instant::now();
    let execution = world.execute(&request).await;
    assert_eq!(
        (execution.exit, execution.stdout.text.as_str()),
        (ExecutionExit::TimedOut, "before\n")
    );
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

async fn tells_why_it_cannot_start(world: World) {
    let folder = world.folder.path().join("other");
    let registry = SandboxRegistry::open(&folder.join("records")).unwrap();
    let mut guest = guest();
    guest.path = folder.join("missing");
    let options = OciOptions {
        runtime: world.name,
        images: ImageStore::at(images()),
        guest,
        registry,
        state: folder.join("state"),
        user_namespace: UserNamespace::Private,
    };
    let engine = OciEngine::new(options).unwrap();
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    let error = engine.start(&spec, &world.labels()).await.unwrap_err();
    println!("{error}");
    assert!(matches!(&error, SandboxError::Start { .. }), "{error:?}");
    assert!(error.to_string().contains("missing"), "{error}");
    let spec = SandboxSpec { image: "no-such-image".to_owned(), limits: SandboxLimits::default() };
    let error = engine.start(&spec, &world.labels()).await.unwrap_err();
    assert!(matches!(&error, SandboxError::Image { .. }), "{error:?}");
    wait_until(|| world.leftovers().is_empty(), || format!("{:?}", world.leftovers())).await;
}

async fn says_how_long_a_cold_start_takes(world: World) {
    let mut starts = Vec::new();
    let mut runs = Vec::new();
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    for _ in 0..7 {
        let started = Instant::now();
        let lease = world.sandboxes.lease(&spec, &world.labels()).await.unwrap();
        starts.push(started.elapsed());
        let executed = lease.execute(&request("print(1)"), &BTreeMap::new(), None).await.unwrap();
        runs.push(started.elapsed());
        assert_eq!(printed(&executed.execution), "1");
        executed.clean_up.await.unwrap();
    }
    starts.sort();
    runs.sort();
    let ms = |times: &[Duration]| {
        format!("{} ms, median {} ms", times[0].as_millis(), times[3].as_millis())
    };
    println!(
        "{} {}: ready in {}; print(1) in {}",
        world.name,
        world.engine.version(),
        ms(&starts),
        ms(&runs)
    );
}
