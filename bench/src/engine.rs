//! Compares the cost of our engine with Restate's bare SDK: the same debates and the same rows, on
//! the same Restate and PostgreSQL, in the same run.
//!
//! Each side has one worker process. CPU is the sum of worker, Restate and PostgreSQL, so work that
//! one side moves to a server is counted.

mod bare;
mod ours;
mod rows;
mod workload;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use moothall_core::RunId;
use moothall_core::access::RunOwner;
use moothall_restate::RestateWorker;
use moothall_store::{NewRun, PgStore, Store};
use serde_json::json;
use sqlx::postgres::PgPool;
use tokio::task::JoinSet;

use self::bare::{Bare, Plan};
use self::ours::Ours;
use self::workload::{LATENCY, MOVES, Trial};
use crate::servers::{Postgres, Restate, Running, start};
use crate::{Size, machine, say};

/// Connections per worker: the product's default.
const CONNECTIONS: u32 = 8;

/// Maximum ratio of time and of CPU time to the bare SDK, as SPECIFICATION.md promises.
const MAX_RATIO: f64 = 1.25;
/// Shorter CPU times are not compared: the kernel counts them in steps of 10 ms.
const MIN_CPU: Duration = Duration::from_secs(1);

/// Variable that hands the address of the database, which must not contain a password, to the workers.
const DATABASE: &str = "MOOTHALL_BENCH_DATABASE";

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WorkerArgs {
    side: Side,
}

/// The implementation that a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// `moothall-restate`
    Ours,
    /// Restate's SDK and sqlx
    Bare,
}

/// A measured configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Ours,
    BareWithRows,
    BareWithout,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (one_repeats, many_repeats, runs) = args.size.pick((1, 1, 1), (7, 3, 10));
    say(&format!("engine benchmark on {}", machine::description()));
    tokio::runtime::Runtime::new()?.block_on(async {
        let scene = Scene::new().await?;
        // Warms up caches, query plans and connections before anything is measured.
        for way in [Way::Ours, Way::BareWithRows, Way::BareWithout] {
            scene.measure(way, 1, MOVES).await?;
        }
        scene.same_rows().await?;
        let one = scene.compare(one_repeats, 1, 1).await?;
        one.say("one debate");
        let many = scene.compare(many_repeats, runs, MOVES).await?;
        many.say(&format!("{} debates at once, {runs} runs of {MOVES}", runs * MOVES));
        if args.size.smoke {
            return Ok(());
        }
        one.judge()?;
        many.judge()
    })
}

/// Runs the worker process of one side.
pub(crate) fn run_worker(args: &WorkerArgs) -> Result<()> {
    let address = std::env::var(DATABASE).context("no database is named")?;
    let trial = Trial::new()?;
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    tokio::runtime::Runtime::new()?.block_on(async {
        match args.side {
            Side::Bare => {
                let pool = rows::pool(&address, CONNECTIONS)?;
                bare::serve(Bare { trial, pool }, any).await
            }
            Side::Ours => {
                let store = Arc::new(PgStore::open(&address.parse()?, CONNECTIONS).await?);
                let worker = RestateWorker::new(Arc::new(Ours { store, trial }));
                let listener = RestateWorker::listen(any)?;
                announce(listener.local_addr()?);
                let for_ever = std::future::pending();
                worker.serve(listener, None, for_ever).await.map_err(anyhow::Error::msg)
            }
        }
    })
}

/// Prints the address of this worker for the parent process.
fn announce(address: SocketAddr) {
    say(&format!("http://{address}"));
}

/// The servers and workers of the benchmark.
struct Scene {
    // Declared first, so workers are dropped before their servers.
    ours: Running,
    bare: Running,
    restate: Restate,
    postgres: Postgres,
    store: PgStore,
    pool: PgPool,
}

#[derive(Debug, Clone, Copy)]
struct Took {
    wall: Duration,
    /// CPU time of the worker, Restate and PostgreSQL.
    cpu: Duration,
}

impl Scene {
    async fn new() -> Result<Self> {
        let postgres = Postgres::start()?;
        let restate = Restate::start().await?;
        // Creates the tables.
        let store = PgStore::open(&postgres.address.parse()?, CONNECTIONS).await?;
        let pool = rows::pool(&postgres.address, 1)?;
        let folder = tempfile::tempdir()?;
        let worker = |side: Side| worker(side, &postgres, folder.path());
        let ((ours, at_ours), (bare, at_bare)) = (worker(Side::Ours)?, worker(Side::Bare)?);
        restate.register(&at_ours).await?;
        restate.register(&at_bare).await?;
        Ok(Self { ours, bare, restate, postgres, store, pool })
    }

    fn cpu_time(&self, way: Way) -> Result<Duration> {
        let worker = match way {
            Way::Ours => &self.ours,
            Way::BareWithRows | Way::BareWithout => &self.bare,
        };
        let worker = machine::cpu_time(worker.id())?;
        Ok(worker + self.restate.cpu_time()? + self.postgres.cpu_time()?)
    }

    async fn new_run(&self, debates: usize) -> Result<RunId> {
        let run_id: RunId = uuid()?;
        self.store
            .create_run(NewRun {
                run_id: run_id.clone(),
                owner: RunOwner::local(),
                cap: None,
                spec: moothall_core::StoredSpec::from_columns(
                    "debates",
                    json!({ "debates": debates }),
                ),
                title: "HLXI".to_owned(),
                model: "table".to_owned(),
                build: "bench".to_owned(),
                created_at_ms: 0,
                inherited: Vec::new(),
            })
            .await?;
        Ok(run_id)
    }

    /// So many concurrent runs.
    async fn measure(&self, way: Way, runs: usize, debates: usize) -> Result<Took> {
        let mut paths = Vec::new();
        for _ in 0..runs {
            let run = self.new_run(debates).await?;
            let rows = way == Way::BareWithRows;
            let plan = serde_json::to_string(&Plan { debates, rows })?;
            paths.push(match way {
                Way::Ours => (format!("Consultation/{run}/run"), None),
                Way::BareWithRows | Way::BareWithout => (format!("BareRun/{run}/run"), Some(plan)),
            });
        }
        let cpu_before = self.cpu_time(way)?;
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for (path, body) in paths {
            let invoked = self.restate.invoke(&path, body);
            tasks.spawn(invoked);
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        let wall = start.elapsed();
        Ok(Took { wall, cpu: self.cpu_time(way)?.saturating_sub(cpu_before) })
    }

    /// Checks that both sides leave the same rows, which shows that they did the same work. Only our
    /// side announces calls that start (`critic_responding`, `dm_responding`).
    async fn same_rows(&self) -> Result<()> {
        let mut left = Vec::new();
        for way in [Way::Ours, Way::BareWithRows] {
            self.measure(way, 1, 1).await?;
            let rows: (i64, i64, i64, i64) = sqlx::query_as(
                "WITH one AS (SELECT run_id FROM runs WHERE state = 'finished'
                              ORDER BY run_id DESC LIMIT 1)
                 SELECT (SELECT count(*) FROM events JOIN one USING (run_id)
                         WHERE body NOT LIKE '%responding%'),
                        (SELECT count(*) FROM journal JOIN one USING (run_id)),
                        (SELECT count(*) FROM artifacts JOIN one USING (run_id)),
                        (SELECT sum(length(result)) FROM journal JOIN one USING (run_id))",
            )
            .fetch_one(&self.pool)
            .await?;
            left.push(rows);
        }
        ensure!(left.first() == left.last(), "the two sides do not leave the same rows: {left:?}");
        let (events, answers, artifacts, bytes) = left.first().copied().context("no rows")?;
        say(&format!(
            "a run of one debate leaves {events} events, {answers} answers ({bytes} bytes) and \
             {artifacts} artefact on either side"
        ));
        Ok(())
    }

    /// Measures all configurations in turn, so other load on the machine affects all of them.
    async fn compare(&self, repeats: usize, runs: usize, debates: usize) -> Result<Compared> {
        let mut took: [Vec<Took>; 3] = Default::default();
        for _ in 0..repeats {
            for (way, took) in
                [Way::Ours, Way::BareWithRows, Way::BareWithout].into_iter().zip(&mut took)
            {
                took.push(self.measure(way, runs, debates).await?);
            }
        }
        let [ours, with_rows, without] = took.map(middle);
        Ok(Compared { ours, with_rows, without })
    }
}

/// The medians of wall time and CPU.
fn middle(took: Vec<Took>) -> Took {
    let of = |time: fn(&Took) -> Duration| {
        let mut times: Vec<Duration> = took.iter().map(time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    Took { wall: of(|took| took.wall), cpu: of(|took| took.cpu) }
}

struct Compared {
    ours: Took,
    with_rows: Took,
    without: Took,
}

fn ratio(ours: Duration, theirs: Duration) -> f64 {
    ours.as_secs_f64() / theirs.as_secs_f64()
}

impl Compared {
    fn judge(&self) -> Result<()> {
        let Self { ours, with_rows, .. } = self;
        let (wall, cpu) = (ratio(ours.wall, with_rows.wall), ratio(ours.cpu, with_rows.cpu));
        ensure!(wall <= MAX_RATIO, "the engine takes {wall:.2} times as long");
        let is_measurable = with_rows.cpu >= MIN_CPU;
        ensure!(!is_measurable || cpu <= MAX_RATIO, "the engine takes {cpu:.2} times the CPU time");
        Ok(())
    }

    fn say(&self, what: &str) {
        let Self { ours, with_rows, without } = self;
        say(&format!("{what}, {} ms a call:", LATENCY.as_millis()));
        for (name, took) in
            [("ours", ours), ("bare SDK, same rows", with_rows), ("bare SDK, no rows", without)]
        {
            say(&format!(
                "  {name:<20} {:>6} ms wall ({:.2} times), {:>6} ms of CPU ({:.2} times)",
                took.wall.as_millis(),
                ratio(ours.wall, took.wall),
                took.cpu.as_millis(),
                ratio(ours.cpu, took.cpu),
            ));
        }
    }
}

fn worker(side: Side, postgres: &Postgres, folder: &Path) -> Result<(Running, String)> {
    let name = side.to_possible_value().context("a side without a name")?.get_name().to_owned();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["engine-worker", &name]).env(DATABASE, &postgres.address);
    start(&mut command, &folder.join(format!("{name}.log")))
}

/// A new id that sorts after all previous ones.
fn uuid() -> Result<RunId> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{count:08x}-0000-7000-8000-000000000000").parse()?)
}
