//! Commits a second and bytes a run of a store in PostgreSQL, beside SQLite on the same disk.
//!
//! One commit is what a step of a debate leaves: an answer and the event that follows from it. Every
//! writer drives a run of its own, and every commit is on the disk before the next one begins.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Args as ClapArgs;
use moothall_core::access::Owner;
use moothall_core::model::{ModelReply, StopReason, Usage, UsageBasis};
use moothall_core::receipt::Timing;
use moothall_core::{EffectId, EffectResult, RunEvent, RunEventBody, RunId, Sha256Hex};
use moothall_store::{Commit, JournalEntry, NewRun, PgAddress, PgStore, SqliteStore, Store};
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use tokio::task::JoinSet;

use crate::{machine, say};

/// Where the server is; the gate starts one.
const SERVER: &str = "MOOTHALL_TEST_POSTGRES";

/// Characters of an answer: what a decision maker says in a round.
const ANSWER_CHARS: usize = 1_500;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Fewer commits
    #[arg(long)]
    short: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let commits = if args.short { 40 } else { 200 };
    let server = std::env::var(SERVER).with_context(|| {
        format!("set {SERVER} to the address that `bash tools/postgres/up.sh` prints behind READY")
    })?;
    say(&format!("store benchmark on {}", machine::description()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        for writers in [1, 8, 32] {
            let (file, file_bytes) = in_file(writers, commits).await?;
            let (database, database_bytes) = in_database(&server, writers, commits).await?;
            say(&format!(
                "{writers:>2} writers, {commits} commits each: SQLite {file:>6.0} commits/s and {} \
                 bytes a commit, PostgreSQL {database:>6.0} and {}: {:.2} times the commits, {:.2} \
                 times the bytes",
                file_bytes,
                database_bytes,
                database / file,
                database_bytes as f64 / file_bytes as f64,
            ));
            // Many writers are what it is for: they must not stand in one queue.
            ensure!(writers == 1 || database > file / 2.0, "PostgreSQL is far slower than a file");
        }
        Ok(())
    })
}

/// Commits a second, and bytes of a commit.
async fn in_file(writers: u32, commits: u32) -> Result<(f64, u64)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("runs.db");
    let store = Arc::new(SqliteStore::open(&path).await?);
    let speed = write(&(Arc::clone(&store) as _), writers, commits).await?;
    store.close().await;
    Ok((speed, fs_err::metadata(&path)?.len() / u64::from(writers * commits)))
}

async fn in_database(server: &str, writers: u32, commits: u32) -> Result<(f64, u64)> {
    let name = format!("bench_{}_{writers}", std::process::id());
    let (place, _) = server.rsplit_once('/').context("the address names no database")?;
    let mut connection = server.parse::<PgConnectOptions>()?.connect().await?;
    execute(&mut connection, format!("CREATE DATABASE {name}")).await?;
    let text = format!("{place}/{name}");
    let address: PgAddress = text.parse()?;
    let store = Arc::new(PgStore::open(&address, writers).await?);
    let mut inside = text.parse::<PgConnectOptions>()?.connect().await?;
    let before = size(&mut inside).await?;
    let speed = write(&(Arc::clone(&store) as _), writers, commits).await?;
    let bytes = size(&mut inside).await?.saturating_sub(before);
    store.close().await;
    drop(inside);
    execute(&mut connection, format!("DROP DATABASE {name} WITH (FORCE)")).await?;
    Ok((speed, u64::try_from(bytes)? / u64::from(writers * commits)))
}

async fn execute(connection: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

/// Bytes of all tables with their indices.
async fn size(connection: &mut PgConnection) -> Result<i64> {
    let size = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                WHERE relnamespace = 'moothall'::regnamespace AND relkind = 'r'";
    Ok(sqlx::query_scalar(size).fetch_one(connection).await?)
}

/// Lets every writer drive a run to the end of its commits, and says how many a second there were.
async fn write(store: &Arc<dyn Store>, writers: u32, commits: u32) -> Result<f64> {
    let mut runs = Vec::new();
    for writer in 0..writers {
        let id: RunId = format!("{:08x}-0000-7000-8000-000000000000", writer + 1).parse()?;
        store.create_run(new_run(&id)).await?;
        runs.push(id);
    }
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for id in runs {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for number in 0..commits {
                let stored = store.commit(&id, step(number)?).await?;
                ensure!(stored.len() == 1, "a commit brought no event");
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(f64::from(writers * commits) / began.elapsed().as_secs_f64())
}

fn new_run(id: &RunId) -> NewRun {
    NewRun {
        run_id: id.clone(),
        owner: Owner::local(),
        cap: None,
        workflow: "consult".to_owned(),
        title: "HLXI".to_owned(),
        input: json!({ "ticker": "HLXI" }),
        model: "demo".to_owned(),
        build: "0".to_owned(),
        created_at_ms: 1,
    }
}

fn step(number: u32) -> Result<Commit> {
    let effect_id: EffectId = format!("debate/m1/round-{number}").parse()?;
    let words: Vec<String> =
        (0..).map(|n: u32| format!("{:x}", n.wrapping_mul(0x9e37))).take(400).collect();
    let text: String = words.join(" ").chars().take(ANSWER_CHARS).collect();
    let result = EffectResult::ModelReplied(ModelReply {
        text,
        stop: StopReason::End,
        model: "demo".to_owned(),
        usage: Usage { input: 7_000, output: 400, ..Usage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    });
    let entry = JournalEntry {
        request_sha256: Sha256Hex::of(effect_id.as_str().as_bytes()),
        result,
        timing: Timing { latency_ms: 900, tries: 1 },
    };
    let problems = vec!["an objection that stands for an event of usual length".to_owned()];
    let body = RunEventBody::OutputRejected { effect_id: effect_id.clone(), problems };
    let events = vec![RunEvent::about(&effect_id, body)];
    Ok(Commit { results: vec![(effect_id, entry)], events, at_ms: 1, ..Commit::default() })
}
