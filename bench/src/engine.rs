//! What our engine costs beside Restate's bare SDK: the same debates, the same rows, on the same
//! Restate and the same PostgreSQL, in the same run.
//!
//! A worker of each side is a process of its own. CPU is that of worker, Restate and PostgreSQL
//! together: work that one side leaves to a server counts.

mod bare;
mod ours;
mod rows;
mod trial;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use moothall_core::RunId;
use moothall_core::access::Owner;
use moothall_restate::Worker;
use moothall_store::{NewRun, PgStore, Store};
use serde_json::json;
use sqlx::postgres::PgPool;
use tokio::task::JoinSet;

use self::bare::{Bare, Plan};
use self::ours::Ours;
use self::trial::{LATENCY, MOVES, Trial};
use crate::servers::{Postgres, Restate, Running, start};
use crate::{Size, machine, say};

/// Connections of each worker: the default of the product.
const CONNECTIONS: u32 = 8;

/// Nothing takes more than so many times what the bare SDK takes. On an idle machine it is less
/// (SPECIFICATION.md); this is what a busy one keeps.
const MOST: f64 = 2.0;

/// Variable that hands the address of the database, which holds a password, to the workers.
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

/// Who does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// `moothall-restate`
    Ours,
    /// Restate's SDK, and sqlx
    Bare,
}

/// What is measured.
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
        // What nobody knows yet is learnt, planned and connected before anything is measured.
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

/// One measured process of a side.
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
                let worker = Worker::new(Arc::new(Ours { store, trial }));
                let listener = Worker::listen(any)?;
                announce(listener.local_addr()?);
                let for_ever = std::future::pending();
                worker.serve(listener, None, for_ever).await.map_err(anyhow::Error::msg)
            }
        }
    })
}

/// Says where this worker is.
fn announce(address: SocketAddr) {
    say(&format!("http://{address}"));
}

/// Everything that takes part.
struct Scene {
    // Workers end before their servers.
    ours: Running,
    bare: Running,
    restate: Restate,
    postgres: Postgres,
    store: PgStore,
    pool: PgPool,
}

/// What something took.
#[derive(Debug, Clone, Copy)]
struct Took {
    wall: Duration,
    /// Of the worker, Restate and PostgreSQL.
    cpu: Duration,
}

impl Scene {
    async fn new() -> Result<Self> {
        let postgres = Postgres::start()?;
        let restate = Restate::start().await?;
        // It makes the tables.
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
                owner: Owner::local(),
                cap: None,
                spec: moothall_core::StoredSpec::from_columns(
                    "debates",
                    json!({ "debates": debates }),
                ),
                title: "HLXI".to_owned(),
                model: "table".to_owned(),
                build: "bench".to_owned(),
                created_at_ms: 0,
            })
            .await?;
        Ok(run_id)
    }

    /// So many runs at once.
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
        let begun = Instant::now();
        let mut under_way = JoinSet::new();
        for (path, body) in paths {
            let invoked = self.restate.invoke(&path, body);
            under_way.spawn(invoked);
        }
        while let Some(ended) = under_way.join_next().await {
            ended??;
        }
        let wall = begun.elapsed();
        Ok(Took { wall, cpu: self.cpu_time(way)?.saturating_sub(cpu_before) })
    }

    /// Whether both sides left the same rows: otherwise they did not do the same.
    async fn same_rows(&self) -> Result<()> {
        let mut left = Vec::new();
        for way in [Way::Ours, Way::BareWithRows] {
            self.measure(way, 1, 1).await?;
            let rows: (i64, i64, i64, i64) = sqlx::query_as(
                "WITH one AS (SELECT run_id FROM runs WHERE state = 'finished'
                              ORDER BY run_id DESC LIMIT 1)
                 SELECT (SELECT count(*) FROM events JOIN one USING (run_id)),
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

    /// All ways in turn, so that whatever else the machine does meets all of them.
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

/// The middle of several, by wall and by CPU.
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
        ensure!(wall <= MOST && cpu <= MOST, "the engine takes more than {MOST} times as much");
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

/// A new id, which sorts behind the ones before.
fn uuid() -> Result<RunId> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{count:08x}-0000-7000-8000-000000000000").parse()?)
}
