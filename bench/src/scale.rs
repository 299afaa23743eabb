//! Measures many concurrent consultations on real servers on this machine: Restate, PostgreSQL, two
//! workers and a server. The demo model takes 50 ms per answer.
//!
//! Checks that every run finishes with all its events and that ten times the runs take ten times
//! the time, and measures the memory in a worker and the storage in Restate and PostgreSQL per run.

mod cluster;
mod guests;
mod plot;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use serde_json::{Value, json};

use self::cluster::World;
use crate::{Size, machine, say};

/// Interval between progress checks.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time in which no run reaches the expected state.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Maximum growth of the time per run from the smallest to the largest batch.
const MAX_GROWTH: f64 = 1.25;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
    /// Use this `moothall` binary
    #[arg(long)]
    program: PathBuf,
    /// Write the plot to this file
    #[arg(long)]
    plot: Option<PathBuf>,
    /// How many concurrent runs, instead of the usual numbers
    #[arg(long, value_delimiter = ',')]
    runs: Vec<usize>,
    /// Leave out the runs in sandboxes
    #[arg(long)]
    no_guests: bool,
}

/// What this many concurrent runs took.
#[derive(Debug, Clone, Copy)]
struct Batch {
    runs: usize,
    wall: Duration,
    calls: u64,
    events: u64,
    /// Memory of both workers, beyond what they used before.
    worker_bytes: u64,
    /// CPU time of all processes.
    cpu: Duration,
    postgres_bytes: u64,
    restate_bytes: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (sizes, what, waiting) = args.size.pick(
        (vec![1, 2], json!({"moves": 5, "rounds": 2}), 2),
        (vec![20, 80, 200], json!({"moves": 15, "rounds": 10}), 200),
    );
    let sizes = if args.runs.is_empty() { sizes } else { args.runs.clone() };
    say(&format!("scale benchmark on {}", machine::description()));
    say(&format!("class none, demonstration model at 50 ms, two workers, {what}"));
    tokio::runtime::Runtime::new()?.block_on(async {
        let world = World::start(&args.program, &[]).await?;
        wait_for_person(&world, waiting).await?;
        let mut batches = Vec::new();
        for runs in sizes {
            let batch = batch(&world, runs, &what).await?;
            batch.say();
            batches.push(batch);
        }
        drop(world);
        if let Some(path) = &args.plot {
            fs_err::write(path, plot::svg(&batches))?;
        }
        if !args.size.smoke && !args.no_guests {
            guests::run(&args.program).await?;
        }
        report_growth(&batches, args.size)
    })
}

/// Measures the worker memory of runs that are paused for a review.
async fn wait_for_person(world: &World, runs: usize) -> Result<()> {
    let before = world.workers_bytes()?;
    let what = json!({"moves": 5, "rounds": 1, "pause_after_moves": true});
    let ids = world.consult(runs, &what).await?;
    until(world, &ids, "paused", |_| Ok(())).await?;
    let each = world.workers_bytes()?.saturating_sub(before) / runs as u64;
    say(&format!("{runs} runs wait for a person: {} KiB of a worker for each", each / 1024));
    Ok(())
}

/// So many concurrent runs, to their end.
async fn batch(world: &World, runs: usize, what: &Value) -> Result<Batch> {
    let before = world.workers_bytes()?;
    let (cpu, postgres, restate) =
        (world.cpu_time()?, world.postgres_bytes().await?, world.restate.kept_bytes()?);
    let mut most = before;
    let began = Instant::now();
    let ids = world.consult(runs, what).await?;
    until(world, &ids, "finished", |world| {
        most = most.max(world.workers_bytes()?);
        Ok(())
    })
    .await?;
    let wall = began.elapsed();
    let (calls, events) = world.check(&ids).await?;
    Ok(Batch {
        runs,
        wall,
        calls,
        events,
        worker_bytes: most - before,
        cpu: world.cpu_time()?.saturating_sub(cpu),
        postgres_bytes: world.postgres_bytes().await?.saturating_sub(postgres),
        restate_bytes: world.restate.kept_bytes()?.saturating_sub(restate),
    })
}

/// Waits until all of these runs are in a state, and calls a function at each check.
async fn until(
    world: &World,
    ids: &[sqlx::types::Uuid],
    state: &str,
    mut on_poll: impl FnMut(&World) -> Result<()>,
) -> Result<()> {
    let (mut reached, mut since) = (0, Instant::now());
    while reached < ids.len() {
        tokio::time::sleep(POLL_INTERVAL).await;
        on_poll(world)?;
        let now = world.in_state(ids, state).await?;
        if now > reached {
            (reached, since) = (now, Instant::now());
        }
        ensure!(
            since.elapsed() < TIMEOUT,
            "{reached} of {} runs are {state}, and nothing happens: {}",
            ids.len(),
            world.worker_logs()
        );
    }
    Ok(())
}

impl Batch {
    fn calls_per_second(&self) -> f64 {
        self.calls as f64 / self.wall.as_secs_f64()
    }

    fn say(&self) {
        let each = |bytes: u64| bytes / self.runs as u64 / 1024;
        say(&format!(
            "{} runs at once: {:.1} s, {} calls, {:.0} a second; {} events, none lost or doubled; for \
             each run {} KiB of a worker, {} KiB in PostgreSQL, {} KiB in Restate and {:.2} s of CPU",
            self.runs,
            self.wall.as_secs_f64(),
            self.calls,
            self.calls_per_second(),
            self.events,
            each(self.worker_bytes),
            each(self.postgres_bytes),
            each(self.restate_bytes),
            self.cpu.as_secs_f64() / self.runs as f64,
        ));
    }
}

fn report_growth(batches: &[Batch], size: Size) -> Result<()> {
    let [first, .., last] = batches else { return Ok(()) };
    let each = |batch: &Batch| batch.wall.as_secs_f64() / batch.runs as f64;
    let growth = each(last) / each(first);
    say(&format!(
        "a run of {} takes {growth:.2} times what a run of {} takes",
        last.runs, first.runs
    ));
    ensure!(size.smoke || growth <= MAX_GROWTH, "time grows faster than the number of runs");
    Ok(())
}
