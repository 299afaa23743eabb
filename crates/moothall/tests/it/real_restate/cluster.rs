//! A real Restate cluster of one or three nodes, with a store and workers, on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_engine::RunRecord;
use moothall_store::{PgStore, RunFilter, RunRow, Store, TeamFilter};
use tempfile::TempDir;

use crate::chaos::{Left, store};
use crate::world::World;

/// Timeout without progress.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Partitions of a server; each has a leader when the server is ready.
const PARTITIONS: u32 = 4;

pub(crate) const CONSULT: [&str; 8] =
    ["consult", "HLXI", "--model", "demo", "--isolation", "none", "--verdict", "off"];

/// A consultation without a panel, unless `more` asks for one.
fn consultation<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = if more.contains(&"--verdict") { &CONSULT[..6] } else { &CONSULT[..] };
    [words, more].concat()
}

/// A process that is killed at the end of its test.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// Simulates a power failure.
    pub(crate) fn kill(&mut self) {
        // A suspended process reacts only to SIGKILL.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        send(signal, &self.0.id().to_string());
    }

    pub(crate) fn wait(mut self) {
        self.0.wait().unwrap();
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn send(signal: &str, process: &str) {
    // It may have just exited.
    Command::new("kill").args([signal, process]).stderr(Stdio::null()).status().unwrap();
}

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools")
}

/// The parts of a cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) nodes: u16,
    pub(crate) workers: usize,
    /// Whether runs are stored in a PostgreSQL server of the cluster.
    pub(crate) postgres: bool,
    /// Additional settings of the server.
    pub(crate) settings: &'static [(&'static str, &'static str)],
}

/// One node, one worker, and a local file for runs.
pub(crate) const SMALL: Plan = Plan { nodes: 1, workers: 1, postgres: false, settings: &[] };

pub(crate) struct Cluster {
    // Declared first, so that processes end before their directories are removed.
    pub(crate) workers: Vec<Running>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) postgres: Option<Postgres>,
    pub(crate) world: World,
    /// The shared address of all workers, once the first one has started.
    listen: String,
    /// Number of workers started so far.
    lives: usize,
    _data: TempDir,
}

impl Cluster {
    pub(crate) fn new(plan: Plan) -> Self {
        Self::in_world(plan, World::new())
    }

    pub(crate) fn in_world(plan: Plan, world: World) -> Self {
        let data = tempfile::tempdir().unwrap();
        let installed = Command::new(tools().join("restate/install.sh")).output().unwrap();
        assert!(
            installed.status.success(),
            "there is no Restate; `tools/restate/install.sh` gets it by npm: {}",
            String::from_utf8_lossy(&installed.stderr)
        );
        let programs = String::from_utf8(installed.stdout).unwrap();
        let nodes = Node::start_all(plan, data.path(), programs.trim());
        let postgres = plan.postgres.then(Postgres::start);
        let mut world =
            world.with("MOOTHALL_LOG__LEVEL", "debug").with("MOOTHALL_LOG__FORMAT", "json");
        if let Some(postgres) = &postgres {
            world.set("MOOTHALL_DATABASE_URL", &postgres.address);
        }
        let listen = "127.0.0.1:0".to_owned();
        let mut cluster =
            Self { workers: Vec::new(), nodes, postgres, world, listen, lives: 0, _data: data };
        for _ in 0..plan.workers {
            cluster.add_worker();
        }
        cluster
    }

    fn addresses(&self, port: impl Fn(&Ports) -> u16) -> String {
        let address = |node: &Node| format!("http://127.0.0.1:{}", port(&node.ports));
        self.nodes.iter().map(address).collect::<Vec<_>>().join(",")
    }

    /// Starts a worker, retrying while its dependencies are unavailable, like a supervisor.
    pub(crate) fn add_worker(&mut self) {
        let began = Instant::now();
        let admin = self.admin();
        loop {
            self.lives += 1;
            let log = self.world.path(&format!("worker-{}.log", self.lives));
            let arguments = ["worker", "--listen", &self.listen, "--register", &admin];
            let mut command = self.world.command(&arguments);
            command.stderr(fs_err::File::create(&log).unwrap().into_parts().0);
            let mut worker = command.spawn().unwrap();
            let mut line = String::new();
            BufReader::new(worker.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let worker = Running(worker);
            if let Some(listen) = line.trim().strip_prefix("http://") {
                // The first worker picks a free port, and the others share it.
                listen.clone_into(&mut self.listen);
                self.workers.push(worker);
                return;
            }
            let words = fs_err::read_to_string(&log).unwrap();
            assert!(began.elapsed() < PATIENCE, "{words}");
        }
    }

    /// The complete log lines of all workers started so far.
    pub(crate) fn logs(&self) -> Vec<String> {
        let log = |life| {
            let log = self.world.read(&format!("worker-{life}.log"));
            // The last line may be incomplete.
            log.rfind('\n').map_or_else(String::new, |end| log[..=end].to_owned())
        };
        (1..=self.lives).map(log).collect()
    }

    /// The addresses at which workers are registered.
    pub(crate) fn admin(&self) -> String {
        self.addresses(|ports| ports.admin)
    }

    pub(crate) fn engine(&self) -> String {
        format!("restate={}", self.addresses(|ports| ports.ingress))
    }

    /// Starts a consultation, with a process that follows it.
    pub(crate) fn consult(&self, more: &[&str]) -> Running {
        self.follow(&consultation(more))
    }

    /// Same as [`Self::consult`], with other arguments.
    pub(crate) fn follow(&self, words: &[&str]) -> Running {
        let engine = self.engine();
        let mut command = self.world.command(&[words, &["--runner", &engine]].concat());
        let log = fs_err::File::create(self.world.path("consult.log")).unwrap().into_parts().0;
        Running(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// Runs a consultation to its end.
    pub(crate) fn consulted(&self, more: &[&str]) {
        let engine = self.engine();
        let ran = self.world.run(&[&consultation(more)[..], &["--runner", &engine]].concat());
        assert_eq!(ran.code, Some(0), "{ran}");
    }

    pub(crate) async fn store(&self) -> Option<Arc<dyn Store>> {
        match &self.postgres {
            Some(postgres) => {
                let store = PgStore::open(&postgres.address.parse().unwrap(), 4).await;
                store.ok().map(|store| Arc::new(store) as Arc<dyn Store>)
            }
            None => store(&self.world).await.map(|store| Arc::new(store) as Arc<dyn Store>),
        }
    }

    /// The results of the only run.
    pub(crate) async fn left(&self) -> Left {
        let store = self.store().await.unwrap();
        let found = runs(&*store).await;
        assert_eq!(found.len(), 1, "there is one run");
        Left::of(RunRecord::read(&*store, &found[0].run_id).await.unwrap())
    }
}

/// All runs, newest first; empty if the store is unavailable.
pub(crate) async fn runs(store: &dyn Store) -> Vec<RunRow> {
    let filter = RunFilter { teams: TeamFilter::All, state: None, limit: 1000 };
    store.runs(filter).await.unwrap_or_default()
}

/// The results and the world of a consultation on a single machine.
pub(crate) async fn of_one_machine(more: &[&str]) -> (World, Left) {
    let world = World::new();
    let ran = world.run(&consultation(more));
    assert_eq!(ran.code, Some(0), "{ran}");
    let left = Left::in_world(&world).await;
    (world, left)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    node: u16,
    ingress: u16,
    admin: u16,
}

impl Ports {
    /// Free ports for this many nodes. All ports stay bound until the last one is found, so that
    /// none is returned twice.
    fn free(nodes: u16) -> Vec<Self> {
        let held: Vec<_> =
            (0..nodes * 3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<_> = held.iter().map(|held| held.local_addr().unwrap().port()).collect();
        let of_one = |ports: &[u16]| Self { node: ports[0], ingress: ports[1], admin: ports[2] };
        ports.chunks(3).map(of_one).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) server: Running,
    ports: Ports,
    /// Starts at 1; the data directory has this name.
    number: u16,
    all: Vec<Ports>,
    folder: PathBuf,
    settings: &'static [(&'static str, &'static str)],
}

impl Node {
    /// Ports cannot be reserved, so all nodes are restarted if another process took one.
    fn start_all(plan: Plan, folder: &Path, programs: &str) -> Vec<Self> {
        for attempt in 0..5 {
            let all = Ports::free(plan.nodes);
            let folder = folder.join(format!("attempt-{attempt}"));
            let start = |(number, ports): (u16, &Ports)| {
                let (all, folder) = (all.clone(), folder.join(number.to_string()));
                fs_err::create_dir_all(&folder).unwrap();
                let server = serve(*ports, number, &all, &folder, plan.settings);
                Self { server, ports: *ports, number, all, folder, settings: plan.settings }
            };
            let mut nodes: Vec<Self> = (1..).zip(&all).map(start).collect();
            if nodes.iter_mut().all(Self::comes_up) {
                nodes[0].until_it_leads(programs);
                return nodes;
            }
        }
        panic!("the server does not come up")
    }

    /// Waits until it answers; returns `false` if it exited instead.
    pub(crate) fn comes_up(&mut self) -> bool {
        let began = Instant::now();
        let Ports { ingress, admin, .. } = self.ports;
        while !(is_healthy(ingress, "/restate/health") && is_healthy(admin, "/health")) {
            if self.server.has_ended() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not come up");
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }

    /// Waits for partition leaders: nodes answer seconds before leaders are elected.
    fn until_it_leads(&self, programs: &str) {
        let began = Instant::now();
        let address = format!("http://127.0.0.1:{}", self.ports.node);
        loop {
            let told = Command::new(format!("{programs}/restatectl"))
                .args(["--address", &address, "status"])
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&told.stdout).into_owned();
            // The row of a node: its id, name, uptime, role and the number of partitions it leads.
            let leads = |line: &str| {
                let mut words = line.split_whitespace();
                let is_node =
                    words.next().is_some_and(|id| id.starts_with('N') && id.contains(':'));
                is_node.then(|| words.nth(3)?.parse::<u32>().ok()).flatten()
            };
            if told.lines().filter_map(leads).sum::<u32>() == PARTITIONS {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{told}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Simulates a power failure and a restart.
    pub(crate) fn kill_and_restart(&mut self) {
        self.server.kill();
        let Self { ports, number, all, folder, settings, .. } = self;
        self.server = serve(*ports, *number, all, folder, settings);
        assert!(self.comes_up(), "it does not start again");
    }
}

fn serve(
    ports: Ports,
    number: u16,
    all: &[Ports],
    folder: &Path,
    settings: &[(&str, &str)],
) -> Running {
    let mut server = Command::new(tools().join("restate/up.sh"));
    server.arg(folder).env("RESTATE_DEFAULT_NUM_PARTITIONS", PARTITIONS.to_string());
    let Ports { node, ingress, admin } = ports;
    for (name, port) in [("NODE_PORT", node), ("INGRESS_PORT", ingress), ("ADMIN_PORT", admin)] {
        server.env(name, port.to_string());
    }
    if all.len() > 1 {
        let addresses: Vec<_> =
            all.iter().map(|ports| format!("\"http://127.0.0.1:{}\"", ports.node)).collect();
        server
            .env("RESTATE_NODE_NAME", format!("n{number}"))
            .env("RESTATE_CLUSTER_NAME", "moothall-test")
            .env("RESTATE_AUTO_PROVISION", (number == 1).to_string())
            .env("RESTATE_DEFAULT_REPLICATION", "2")
            .env("RESTATE_METADATA_CLIENT__ADDRESSES", format!("[{}]", addresses.join(",")));
    }
    server.envs(settings.iter().copied());
    let log = fs_err::OpenOptions::new().create(true).append(true).open(folder.join("log"));
    let log = log.unwrap().into_parts().0;
    Running(server.stdout(log).stderr(Stdio::null()).spawn().unwrap())
}

fn is_healthy(port: u16, path: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let asked = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut answer = [0; 12];
    // Another process may hold the port and never answer.
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(asked.as_bytes()).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.ends_with(b" 200")
}

/// A PostgreSQL server of the cluster that restarts after it was killed.
pub(crate) struct Postgres {
    script: Child,
    address: String,
    folder: PathBuf,
}

impl Postgres {
    fn start() -> Self {
        let mut script = Command::new("bash")
            .arg(tools().join("postgres/up.sh"))
            .arg("--restart")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let ["READY", address, certificate] = ready.split_whitespace().collect::<Vec<_>>()[..]
        else {
            panic!("the server did not start; `tools/postgres/up.sh` says why: {ready}")
        };
        let folder = Path::new(certificate).parent().unwrap().to_owned();
        Self { address: address.to_owned(), folder, script }
    }

    /// Kills the main server process, if it exists.
    pub(crate) fn kill(&self) {
        let file = fs_err::read_to_string(self.folder.join("data/postmaster.pid"));
        if let Some(postmaster) = file.as_deref().ok().and_then(|file| file.lines().next()) {
            send("-KILL", postmaster);
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        send("-TERM", &self.script.id().to_string());
        self.script.wait().unwrap();
    }
}
