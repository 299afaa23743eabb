//! Measures the cost of a consultation apart from its model calls: wall time beyond the latencies
//! that the protocol requires, and CPU and storage per call, compared with the same debates in
//! LangGraph with its SQLite saver (`bench/langgraph/`).
//!
//! The model is a lookup table: the first run calls the demo model and stores its answers, and the
//! measured runs look them up. This measures only our own work: prompts, hashes, journal, events.

mod microvms;
mod table_model;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use moothall_core::access::RunOwner;
use moothall_core::consult::{
    Consult, ConsultInput, ConsultOptions, EvidenceSource, GatherRequest, RoleModels, board,
    estimate,
};
use moothall_core::debate::CallSettings;
use moothall_core::model::ModelName;
use moothall_core::{EffectResult, RunId};
use moothall_engine::{IsolationMode, RunDriver, RunExit, RunRecord};
use moothall_store::{NewRun, SqliteStore, Store};
use serde::Deserialize;

pub(crate) use self::table_model::{Script, evidence};
use crate::{Size, machine, say};

/// The promises of SPECIFICATION.md.
const MAX_WALL_RATIO: f64 = 1.10;
const MIN_STORAGE_RATIO: f64 = 10.0;
const MAX_GUEST_OVERHEAD: Duration = Duration::from_secs(3);

/// Latency of each model call in the wall time measurement.
const LATENCY: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
    /// Use this Python interpreter, which must have the packages of
    /// bench/langgraph/requirements.txt
    #[arg(long)]
    python: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let repeats = args.size.pick(1, 5);
    say(&format!("consult benchmark on {}", machine::description()));
    tokio::runtime::Runtime::new()?.block_on(async {
        let script = Script::learn(evidence()?).await?;
        let mut runs = Vec::new();
        for _ in 0..repeats {
            runs.push(measured(&script, LATENCY, IsolationMode::None).await?);
        }
        let wall = wall(&runs)?;
        let cost = cost(&mut runs)?;
        let peer = langgraph(&args.python, &cost, repeats)?;
        let guest_overhead = microvms::overhead(&script, wall.took).await?;
        report(&wall, guest_overhead, &cost, &peer, args.size)
    })
}

struct Measured {
    wall: Duration,
    cpu: Duration,
    calls: u64,
    /// Size of the database, in bytes.
    stored: u64,
    /// Bytes of text from models.
    written: u64,
    record: RunRecord,
}

async fn measured(
    script: &Script,
    latency: Duration,
    isolation: IsolationMode,
) -> Result<Measured> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("runs.db");
    let store = SqliteStore::open(&path).await?;
    let run_id: RunId = "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse()?;
    let input = input()?;
    store
        .create_run(NewRun {
            run_id: run_id.clone(),
            owner: RunOwner::local(),
            cap: None,
            spec: moothall_core::StoredSpec::from_columns(
                Consult::NAME,
                serde_json::json!({"consult": input, "settings": {}}),
            ),
            title: "HLXI".to_owned(),
            model: "demo".to_owned(),
            build: "bench".to_owned(),
            created_at_ms: 0,
            inherited: Vec::new(),
        })
        .await?;
    let store: Arc<dyn Store> = Arc::new(store);
    let performer = Arc::new(script.clone().with_latency(latency));
    let driver = RunDriver::new(Arc::clone(&store), performer, run_id.clone()).isolation(isolation);
    let mut consult = Consult::new(input)?;
    let cpu_before = machine::own_cpu_time()?;
    let start = Instant::now();
    let ended = driver.drive(&mut consult).await?;
    let (wall, cpu) = (start.elapsed(), machine::own_cpu_time()? - cpu_before);
    ensure!(matches!(ended, RunExit::Done(_)), "the run did not end: {ended:?}");
    let record = RunRecord::read(&*store, &run_id).await?;
    let replies = record.journal.values().filter_map(|entry| match &entry.result {
        EffectResult::ModelReplied(reply) => Some(reply.text.len() as u64),
        _ => None,
    });
    let (calls, written) =
        replies.fold((0, 0), |(calls, bytes), length| (calls + 1, bytes + length));
    drop(store);
    let stored = table_model::database_bytes(&path).await?;
    Ok(Measured { wall, cpu, calls, stored, written, record })
}

/// The fictional company with the whole board.
pub(crate) fn input() -> Result<ConsultInput> {
    let model: ModelName = ModelName::DEMO.parse()?;
    Ok(ConsultInput {
        gather: GatherRequest {
            ticker: "HLXI".to_owned(),
            source: EvidenceSource::Filings,
            as_of: None,
            allow_stale: false,
            name: None,
            documents: None,
            news: None,
        },
        committee: board(),
        moves: None,
        models: RoleModels::all(model),
        calls: CallSettings::default(),
        accept_findings: false,
        terms: ConsultOptions::default(),
        parent: None,
    })
}

struct Wall {
    chain: u32,
    took: Duration,
    ratio: f64,
}

/// Compares the wall time with the longest chain of calls that depend on each other.
fn wall(runs: &[Measured]) -> Result<Wall> {
    let rounds = board().rounds;
    let mut best: Option<(Duration, u32)> = None;
    for run in runs {
        let rewrites = |prefix: &str| {
            let mut ids = run.record.journal.keys().map(|id| id.as_str());
            u32::from(ids.any(|id| id.starts_with(prefix) && id.ends_with("/rewrite")))
        };
        // Inference and analysts, their rewrites if any, the first opening, which fills the
        // provider's cache, an opening, an answer to it, two calls for each further round, and the
        // scores.
        let chain = 2 + rewrites("F") + rewrites("m") + 1 + 2 * rounds + 1;
        if best.is_none_or(|(wall, _)| run.wall < wall) {
            best = Some((run.wall, chain));
        }
    }
    let (wall, chain) = best.context("no run")?;
    let ratio = wall.as_secs_f64() / (LATENCY * chain).as_secs_f64();
    say(&format!(
        "wall: {} calls one after the other at {} ms are {} ms; the run took {} ms, {ratio:.2} times as long",
        chain,
        LATENCY.as_millis(),
        (LATENCY * chain).as_millis(),
        wall.as_millis()
    ));
    Ok(Wall { chain, took: wall, ratio })
}

struct Cost {
    cpu_per_call: Duration,
    stored_per_call: f64,
    calls: u64,
    stored: u64,
    written: u64,
    message_bytes: u64,
}

fn cost(runs: &mut [Measured]) -> Result<Cost> {
    runs.sort_by_key(|run| run.cpu);
    let middle = &runs[runs.len() / 2];
    let calls = u32::try_from(middle.calls)?;
    let cost = Cost {
        cpu_per_call: middle.cpu / calls,
        stored_per_call: middle.stored as f64 / middle.calls as f64,
        calls: middle.calls,
        stored: middle.stored,
        written: middle.written,
        message_bytes: middle.written / middle.calls,
    };
    let expected = estimate(&input()?, None).calls;
    say(&format!(
        "ours: {} calls ({expected} expected without rewrites), {} µs of CPU and {:.0} bytes of SQLite a call; models wrote {} bytes, the database has {}",
        cost.calls,
        cost.cpu_per_call.as_micros(),
        cost.stored_per_call,
        cost.written,
        cost.stored
    ));
    Ok(cost)
}

/// The output of the LangGraph script.
#[derive(Debug, Deserialize)]
struct Peer {
    calls: u64,
    cpu_seconds: f64,
    sqlite_bytes: u64,
}

fn langgraph(python: &Path, cost: &Cost, repeats: u32) -> Result<Peer> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("langgraph/debate.py");
    let mut runs = Vec::new();
    for _ in 0..repeats {
        let output = Command::new(python)
            .arg(&script)
            .args(["--message-bytes", &cost.message_bytes.to_string()])
            .output()
            .with_context(|| format!("{} cannot be started", python.display()))?;
        if !output.status.success() {
            bail!("the peer failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        runs.push(serde_json::from_slice::<Peer>(&output.stdout).context("the peer's result")?);
    }
    runs.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
    let middle = runs.swap_remove(runs.len() / 2);
    say(&format!(
        "LangGraph: {} calls, {:.0} µs of CPU and {:.0} bytes of SQLite a call",
        middle.calls,
        middle.cpu_seconds * 1e6 / middle.calls as f64,
        middle.sqlite_bytes as f64 / middle.calls as f64
    ));
    Ok(middle)
}

fn report(
    wall: &Wall,
    guest_overhead: Duration,
    cost: &Cost,
    peer: &Peer,
    size: Size,
) -> Result<()> {
    let peer_cpu = peer.cpu_seconds / peer.calls as f64;
    let cpu = peer_cpu / cost.cpu_per_call.as_secs_f64();
    let storage = peer.sqlite_bytes as f64 / peer.calls as f64 / cost.stored_per_call;
    say(&format!("CPU: {cpu:.1} times less; storage: {storage:.1} times less"));
    let allowed = 2 * cost.written + (1 << 20);
    say(&format!("storage of a run: {} bytes, allowed {allowed}", cost.stored));
    if size.smoke {
        return Ok(());
    }
    ensure!(cost.stored <= allowed, "the run takes more than twice what models wrote and 1 MiB");
    ensure!(
        wall.ratio <= MAX_WALL_RATIO,
        "{} calls in a row took {:.2} times their latency",
        wall.chain,
        wall.ratio
    );
    ensure!(
        guest_overhead <= MAX_GUEST_OVERHEAD,
        "with debates in microVMs a run takes {} ms more",
        guest_overhead.as_millis()
    );
    ensure!(storage >= MIN_STORAGE_RATIO, "storage is only {storage:.1} times less");
    Ok(())
}
