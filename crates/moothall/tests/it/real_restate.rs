//! Consultations that workers of a real Restate server drive. They end like those of one machine,
//! whatever happens to the workers.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use moothall_core::receipt::EffectRecord;
use moothall_core::{EffectResult, RunId};
use moothall_store::{RunFilter, SqliteStore, Store as _, Teams};
use tempfile::TempDir;

use crate::chaos::{Dice, Left, started, store};
use crate::world::World;

/// Kills and a seed, each a number, for a longer run than the usual one.
const SIZE: &str = "MOOTHALL_TEST_CHAOS_RESTATE";

/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(240);

const LOOK: Duration = Duration::from_millis(5);

const CONSULT: [&str; 6] = ["consult", "HLXI", "--model", "demo", "--isolation", "none"];

/// A process that ends with its test.
struct Running(Child);

impl Running {
    /// As a machine that loses its power.
    fn kill(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server, one store, and workers.
struct Cluster {
    // Processes end before their folders go.
    workers: Vec<Running>,
    _server: Running,
    world: World,
    ingress: String,
    admin: String,
    /// Where all workers listen.
    listen: String,
    /// Workers that there ever were.
    lives: usize,
    _data: TempDir,
}

impl Cluster {
    /// With these settings of the server beside the usual ones.
    fn new(workers: usize, settings: &[(&str, &str)]) -> Self {
        let [node, ingress, admin, listen] = ports();
        let data = tempfile::tempdir().unwrap();
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/restate");
        let installed = Command::new(tools.join("install.sh")).output().unwrap();
        assert!(
            installed.status.success(),
            "there is no Restate; `tools/restate/install.sh` gets it by npm: {}",
            String::from_utf8_lossy(&installed.stderr)
        );
        let mut server = Command::new(tools.join("up.sh"));
        server.arg(data.path()).envs(settings.iter().copied());
        for (name, port) in [("NODE_PORT", node), ("INGRESS_PORT", ingress), ("ADMIN_PORT", admin)]
        {
            server.env(name, port.to_string());
        }
        let log = fs_err::File::create(data.path().join("log")).unwrap().into_parts().0;
        let server = server.stdout(log).stderr(Stdio::null()).spawn().unwrap();
        let world =
            World::new().with("MOOTHALL_LOG__LEVEL", "debug").with("MOOTHALL_LOG__FORMAT", "json");
        let mut cluster = Self {
            world,
            ingress: format!("http://127.0.0.1:{ingress}"),
            admin: format!("http://127.0.0.1:{admin}"),
            listen: format!("127.0.0.1:{listen}"),
            workers: Vec::new(),
            lives: 0,
            _server: Running(server),
            _data: data,
        };
        cluster.until_healthy(&[(ingress, "/restate/health"), (admin, "/health")]);
        for _ in 0..workers {
            cluster.add_worker();
        }
        cluster
    }

    fn until_healthy(&self, addresses: &[(u16, &str)]) {
        let began = Instant::now();
        for (port, path) in addresses {
            while !is_healthy(*port, path) {
                assert!(began.elapsed() < PATIENCE, "the server does not come up");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn add_worker(&mut self) {
        self.lives += 1;
        let log = self.world.path(&format!("worker-{}.log", self.lives));
        let (listen, restate, admin) = (&self.listen, &self.ingress, &self.admin);
        let mut command = self.world.command(&[
            "worker",
            "--listen",
            listen,
            "--restate",
            restate,
            "--register",
            admin,
        ]);
        command.stderr(fs_err::File::create(&log).unwrap().into_parts().0);
        let mut worker = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(worker.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("http://{listen}\n"), "{}", fs_err::read_to_string(&log).unwrap());
        self.workers.push(Running(worker));
    }

    /// What each worker that there ever was has logged, line by line.
    fn logs(&self) -> Vec<String> {
        let log = |life| {
            let log = self.world.read(&format!("worker-{life}.log"));
            // The last line may be half written.
            log.rfind('\n').map_or_else(String::new, |end| log[..=end].to_owned())
        };
        (1..=self.lives).map(log).collect()
    }

    fn engine(&self) -> String {
        format!("restate={}", self.ingress)
    }

    /// Starts a consultation, with a process that follows it.
    fn consult(&self, more: &[&str]) -> Running {
        let engine = self.engine();
        let words = [&CONSULT[..], &["--engine", &engine], more].concat();
        let mut command = self.world.command(&words);
        let log = fs_err::File::create(self.world.path("consult.log")).unwrap().into_parts().0;
        Running(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    fn wait(&self, mut run: Running) {
        let status = run.0.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.world.read("consult.log"));
    }

    /// Waits until the run has so many events. `None` if it ended before.
    async fn comes_to(&self, events: u64) -> Option<(SqliteStore, RunId)> {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "{}", self.world.read("consult.log"));
            if let Some(store) = store(&self.world).await {
                let filter = RunFilter { teams: Teams::All, state: None, limit: 1 };
                let found = store.runs(filter).await.unwrap_or_default();
                match found.first() {
                    Some(row) if row.state.is_terminal() => return None,
                    Some(row) if row.events >= events => {
                        return Some((store, row.run_id.clone()));
                    }
                    _ => {}
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn is_healthy(port: u16, path: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let asked = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut answer = [0; 12];
    stream.write_all(asked.as_bytes()).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.ends_with(b" 200")
}

/// Ports that nobody listens on.
fn ports() -> [u16; 4] {
    let free: Vec<_> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    std::array::from_fn(|at| free[at].local_addr().unwrap().port())
}

/// What a consultation of one machine leaves.
async fn of_one_machine(more: &[&str]) -> Left {
    let world = World::new();
    let ran = world.run(&[&CONSULT[..], more].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    Left::in_world(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consultation_of_two_workers_ends_like_one_of_this_machine() {
    let cluster = Cluster::new(2, &[]);
    cluster.wait(cluster.consult(&[]));
    let left = Left::in_world(&cluster.world).await;
    let whole = of_one_machine(&[]).await;
    assert_eq!(left.events, whole.events);
    assert_eq!(left.receipt, whole.receipt);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consultation_that_is_suspended_and_replayed_at_every_wait_ends_the_same() {
    let more = ["--moves", "3", "--rounds", "2"];
    let cluster = Cluster::new(1, &[("RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT", "0s")]);
    cluster.wait(cluster.consult(&more));
    let left = Left::in_world(&cluster.world).await;
    let whole = of_one_machine(&more).await;
    assert_eq!(left.events, whole.events);
    assert_eq!(left.receipt, whole.receipt);
}

#[tokio::test(flavor = "multi_thread")]
async fn consultations_whose_workers_are_killed_end_like_one_that_was_left_alone() {
    let size = std::env::var(SIZE).unwrap_or_else(|_| "4 1".to_owned());
    let size: Vec<u64> = size.split(' ').map(|number| number.parse().unwrap()).collect();
    let [kills, seed] = size[..] else { panic!("two numbers: kills and a seed") };
    let whole = of_one_machine(&[]).await;
    let (mut dice, mut killed, mut runs, mut twice) = (Dice(seed), 0, 0, 0);
    while killed < kills {
        let mut cluster = Cluster::new(3, &[]);
        let run = cluster.consult(&[]);
        let mut moments: Vec<u64> =
            (0..4.min(kills - killed)).map(|_| dice.below(whole.events.len() as u64)).collect();
        moments.sort_unstable();
        // What was answered before each kill, and how far the logs were then.
        let mut deaths: Vec<(BTreeSet<String>, Vec<usize>)> = Vec::new();
        for moment in moments {
            let Some((store, id)) = cluster.comes_to(moment).await else { break };
            let answered = store.journal(&id).await.unwrap();
            let answered = answered.keys().map(ToString::to_string).collect();
            deaths.push((answered, cluster.logs().iter().map(String::len).collect()));
            let victim = usize::try_from(dice.below(3)).unwrap();
            cluster.workers.remove(victim).kill();
            killed += 1;
            cluster.add_worker();
            tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
        }
        cluster.wait(run);
        let logs = cluster.logs();
        for (answered, lengths) in deaths {
            for (life, log) in logs.iter().enumerate() {
                let since = &log[lengths.get(life).copied().unwrap_or(0)..];
                let again = started(since).into_iter().filter(|id| answered.contains(id));
                assert_eq!(again.collect::<Vec<_>>(), Vec::<String>::new(), "asked again");
            }
        }
        let left = Left::in_world(&cluster.world).await;
        assert_eq!(left.events, whole.events, "run {runs} of seed {seed}");
        assert_eq!(left.receipt, whole.receipt, "run {runs} of seed {seed}");
        let all: Vec<String> = logs.iter().flat_map(|log| started(log)).collect();
        twice += all.len() - all.iter().collect::<BTreeSet<_>>().len();
        runs += 1;
    }
    println!(
        "{killed} kills of workers in {runs} consultations, seed {seed}: every receipt is the same, no \
         answered call was asked again, and {twice} that were under way were",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_on_a_cluster_waits_for_a_person_and_goes_on_or_ends_at_their_word() {
    let cluster = Cluster::new(1, &[]);
    let more = ["--moves", "5", "--rounds", "1", "--pause-after", "moves"];
    let engine = cluster.engine();
    let words = [&CONSULT[..], &["--engine", &engine], &more].concat();
    let paused = cluster.world.run(&words);
    assert_eq!(paused.code, Some(3), "{paused}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let vetoed = cluster.world.run(&["moves", &id, "--veto", "m2", "--by", "ada"]);
    assert_eq!(vetoed.code, Some(0), "{vetoed}");
    let resumed = cluster.world.run(&["resume", &id, "--json"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let shown = cluster.world.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["state"], "finished", "{shown:#}");

    let paused = cluster.world.run(&words);
    assert_eq!(paused.code, Some(3), "{paused}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let cancelled = cluster.world.run(&["cancel", &id]);
    assert_eq!(cancelled.code, Some(0), "{cancelled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_stops_a_run_on_a_cluster_and_more_of_it_lets_the_run_go_on() {
    let cluster = Cluster::new(2, &[]);
    let engine = cluster.engine();
    let moves = ["--moves", "5", "--rounds", "1"];
    let few = ["--engine", &engine, "--budget-tokens", "500000"];
    let paused = cluster.world.run(&[&CONSULT[..], &moves, &few].concat());
    assert_eq!(paused.code, Some(5), "{paused}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let spent = runs["runs"][0]["spent"]["tokens"].as_u64().unwrap();
    assert!(spent <= 500_000, "{spent}");
    let id = runs["runs"][0]["run_id"].as_str().unwrap();
    let resumed = cluster.world.run(&["resume", id, "--budget-tokens", "5000000"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let left = Left::in_world(&cluster.world).await;
    let whole = of_one_machine(&moves).await;
    assert_eq!(left.receipt, whole.receipt);
    // Nothing is paid for twice, and nothing is forgotten.
    let shown = cluster.world.run(&["show", id, "--json"]).json();
    let used: u64 = whole.receipt.effects.values().map(tokens).sum();
    // Two debates may end in one order and write what is spent in the other, with what the other one
    // had reserved: too much may be shown, never too little.
    let spent = shown["spent"]["tokens"].as_u64().unwrap();
    assert!(spent >= used, "{spent} is less than {used}");
}

fn tokens(effect: &EffectRecord) -> u64 {
    match &effect.result {
        EffectResult::ModelReplied(reply) => reply.usage.total(),
        _ => 0,
    }
}
