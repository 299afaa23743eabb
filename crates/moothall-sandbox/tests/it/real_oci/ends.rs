//! How sandboxes end, and that nothing is left of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead as _;
use std::path::Path;
use std::time::{Duration, Instant};

use moothall_core::sandbox::{ExecutionExit, SandboxLabels, SandboxLimits};
use moothall_sandbox::image::ImageStore;
use moothall_sandbox::{EngineName, OutputListener, SandboxRegistry, SandboxSpec};

use super::world::{VICTIM, World, engine, images, names, processes, request};

/// Signals the first output of a program.
struct Printed(Option<tokio::sync::oneshot::Sender<()>>);

impl OutputListener for Printed {
    fn stdout(&mut self, _: &[u8]) {
        if let Some(told) = self.0.take() {
            told.send(()).unwrap();
        }
    }

    fn stderr(&mut self, _: &[u8]) {}
}

pub(crate) async fn tells_a_sandbox_that_died(world: World) {
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    let lease = world.sandboxes.lease(&spec, &world.labels()).await.unwrap();
    let name = lease.name().to_owned();
    let (told, is_told) = tokio::sync::oneshot::channel();
    let mut listener = Printed(Some(told));
    let request = request("import time\nprint('here', flush=True)\ntime.sleep(60)");
    let inputs = BTreeMap::new();
    let kill = async {
        is_told.await.unwrap();
        let pids = processes(&name);
        assert!(!pids.is_empty());
        for pid in pids {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            // Killing the first may have ended the others too.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    };
    let execute = async { lease.execute(&request, &inputs, Some(&mut listener)).await.unwrap() };
    let (executed, ()) = tokio::join!(execute, kill);
    assert_eq!(executed.execution.stdout.text, "here\n");
    let exit = executed.execution.exit;
    assert!(matches!(exit, ExecutionExit::SandboxDied { .. }), "{exit}");
    println!("{}: {exit}", world.name);
    executed.clean_up.await.unwrap();
    assert_eq!(world.leftovers(), BTreeSet::new());
}

pub(crate) async fn leaves_nothing_behind(world: World) {
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    let lease = world.sandboxes.lease(&spec, &world.labels()).await.unwrap();
    // Its record, its folder and at least one cgroup.
    assert!(world.leftovers().len() >= 3, "{:?}", world.leftovers());
    let orphan = "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print('done')
";
    let executed = lease.execute(&request(orphan), &BTreeMap::new(), None).await.unwrap();
    assert_eq!(executed.execution.stdout.text, "done\n");
    let started = Instant::now();
    executed.clean_up.await.unwrap();
    println!("{}: cleaned up in {:?}", world.name, started.elapsed());
    assert_eq!(world.leftovers(), BTreeSet::new());
}

pub(crate) async fn leaves_the_image_as_it_is(world: World) {
    let root = ImageStore::at(images()).find("python").unwrap().root_tree.unwrap();
    let state = || {
        let entries = names(&root).into_iter().map(|path| {
            let found = path.symlink_metadata().unwrap();
            (path, found.modified().unwrap(), found.permissions(), found.len())
        });
        entries.collect::<Vec<_>>()
    };
    let before = state();
    let tries = "
import os
for folder in ['/', '/usr', '/tmp', '/inputs', '/workspace', '/proc', '/dev']:
    try:
        open(folder + '/mine', 'w')
    except OSError:
        pass
";
    world.run(tries).await;
    assert_eq!(state(), before);
    for folder in ["tmp", "inputs", "workspace", "proc", "dev"] {
        assert_eq!(names(&root.join(folder)), BTreeSet::new());
    }
}

pub(crate) async fn leaves_nothing_behind_when_dropped(world: World) {
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    drop(world.sandboxes.lease(&spec, &world.labels()).await.unwrap());
    // Drop one that is still being started, at several moments.
    let labels = world.labels();
    for milliseconds in [0, 5, 20, 60, 120, 250] {
        let starting = world.engine.start(&spec, &labels);
        let _ = tokio::time::timeout(Duration::from_millis(milliseconds), starting).await;
    }
    wait_until(|| world.leftovers().is_empty(), || format!("{:?}", world.leftovers())).await;
}

/// Waits for background work that sends no notification.
pub(crate) async fn wait_until(mut is_so: impl FnMut() -> bool, what: impl Fn() -> String) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "{}", what());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn is_cleaned_up_by_the_reaper(world: World) {
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    let sandbox = world.engine.start(&spec, &world.labels()).await.unwrap();
    let name = sandbox.end.name().to_owned();
    let pids = processes(&name);
    assert!(!pids.is_empty());
    // A killed process only releases its owner lock; here that is done manually.
    let records = world.folder.path().join("records");
    for lock in names(&records).iter().filter(|path| path.extension().is_some_and(|e| e == "lock"))
    {
        fs_err::remove_file(lock).unwrap();
    }
    let reaped =
        tokio::task::spawn_blocking(move || SandboxRegistry::reap(&records)).await.unwrap();
    assert_eq!(reaped.unwrap(), [name]);
    assert_eq!(world.leftovers(), BTreeSet::new());
    for pid in pids {
        let state = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
    sandbox.end.finish().await;
}

pub(crate) async fn leaves_nothing_behind_when_its_owner_is_killed(world: World) {
    if let Some(folder) = std::env::var_os(VICTIM) {
        return be_killed(world.name, Path::new(&folder)).await;
    }
    let case = "leaves_nothing_behind_when_its_owner_is_killed";
    let case = format!("real_oci::{}::{case}", world.name);
    for milliseconds in [0, 3, 9, 20, 35, 60, 100, 170, 290, 490] {
        let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &case, "--nocapture"])
            .env(VICTIM, world.folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let said = std::io::BufReader::new(victim.stdout.take().unwrap());
        let mut lines = said.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.ends_with("victim is ready")));
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        let records = world.folder.path().join("records");
        let reap = || {
            // A child that is being forked holds its parent's lock for a moment.
            SandboxRegistry::reap(&records).unwrap();
            world.leftovers().is_empty()
        };
        wait_until(reap, || format!("{:?}", world.leftovers())).await;
        let folder = world.folder.path().to_str().unwrap();
        wait_until(|| mentioned(folder).is_empty(), || format!("{:?}", mentioned(folder))).await;
    }
}

/// Starts and uses sandboxes until the process is killed.
async fn be_killed(name: EngineName, folder: &Path) {
    let registry = SandboxRegistry::open(&folder.join("records")).unwrap();
    let engine = engine(name, folder, registry).unwrap();
    let label = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let labels = SandboxLabels(BTreeMap::from([("run".to_owned(), label)]));
    let spec = SandboxSpec { image: "python".to_owned(), limits: SandboxLimits::default() };
    println!("victim is ready");
    loop {
        let (one, two) = tokio::join!(engine.start(&spec, &labels), engine.start(&spec, &labels));
        one.unwrap().end.finish().await;
        drop(two.unwrap());
    }
}

/// Processes with this text among their arguments.
fn mentioned(text: &str) -> Vec<String> {
    let processes = names(Path::new("/proc")).into_iter();
    let commands = processes.filter_map(|process| fs_err::read(process.join("cmdline")).ok());
    let commands = commands.map(|command| String::from_utf8_lossy(&command).replace('\0', " "));
    commands.filter(|command| command.contains(text)).collect()
}
