//! Measures commits per second and bytes per run of a PostgreSQL store, compared with SQLite on the
//! same disk.
//!
//! One commit is the result of one debate step: an answer and the event that follows from it. Every
//! writer drives a separate run, and every commit is on disk before the next one starts.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Args as ClapArgs;
use moothall_core::access::RunOwner;
use moothall_core::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use moothall_core::receipt::EffectTiming;
use moothall_core::{EffectId, EffectResult, RunEvent, RunEventBody, RunId, Sha256Hex};
use moothall_store::{JournalEntry, NewRun, PgStore, RunCommit, SqliteStore, Store};
use serde_json::json;
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tokio::task::JoinSet;

use crate::servers::Postgres;
use crate::{Size, machine, say};

/// Characters of an answer: a decision maker's typical message in a round.
const ANSWER_CHARS: usize = 1_400;

/// 32 writers must make at least this many times the commits of one writer, which shows that they
/// do not wait in one queue.
const MIN_MANY_WRITERS_RATIO: f64 = 1.5;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let commits = args.size.pick(10, 200);
    say(&format!("store benchmark on {}", machine::description()));
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut single_writer = None;
        for writers in [1, 8, 32] {
            let (file, file_bytes) = in_file(writers, commits).await?;
            let (database, database_bytes) = in_database(writers, commits).await?;
            say(&format!(
                "{writers:>2} writers, {commits} commits each: SQLite {file:>5.0} commits/s and \
                 {file_bytes} bytes a commit, PostgreSQL {database:>5.0} and {database_bytes}: \
                 {:.2} times the commits",
                database / file,
            ));
            let one_writer = *single_writer.get_or_insert(database);
            ensure!(
                args.size.smoke || writers < 32 || database >= one_writer * MIN_MANY_WRITERS_RATIO,
                "32 writers commit less than {MIN_MANY_WRITERS_RATIO} times what one does in PostgreSQL"
            );
        }
        Ok(())
    })
}

/// Commits per second and bytes per commit.
async fn in_file(writers: u32, commits: u32) -> Result<(f64, u64)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("runs.db");
    let store = Arc::new(SqliteStore::open(&path).await?);
    let speed = write(&(Arc::clone(&store) as _), writers, commits).await?;
    store.close().await;
    Ok((speed, fs_err::metadata(&path)?.len() / u64::from(writers * commits)))
}

async fn in_database(writers: u32, commits: u32) -> Result<(f64, u64)> {
    let server = Postgres::start()?;
    let store = Arc::new(PgStore::open(&server.address.parse()?, writers).await?);
    let before = tables_bytes(&server.address).await?;
    let speed = write(&(Arc::clone(&store) as _), writers, commits).await?;
    let bytes = tables_bytes(&server.address).await?.saturating_sub(before);
    store.close().await;
    Ok((speed, bytes / u64::from(writers * commits)))
}

/// Size of all tables of a store with their indexes, in bytes.
pub(crate) async fn tables_bytes(address: &str) -> Result<u64> {
    let mut connection = address.parse::<PgConnectOptions>()?.connect().await?;
    let bytes: i64 = sqlx::query_scalar(
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
         WHERE relnamespace = 'moothall'::regnamespace AND relkind = 'r'",
    )
    .fetch_one(&mut connection)
    .await?;
    Ok(u64::try_from(bytes)?)
}

/// Lets every writer drive a run to the end of its commits, and returns the commits per second.
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
        ended.context("a writer broke off")??;
    }
    Ok(f64::from(writers * commits) / began.elapsed().as_secs_f64())
}

fn new_run(id: &RunId) -> NewRun {
    NewRun {
        run_id: id.clone(),
        owner: RunOwner::local(),
        cap: None,
        spec: moothall_core::StoredSpec::from_columns("consult", json!({ "ticker": "HLXI" })),
        title: "HLXI".to_owned(),
        model: "demo".to_owned(),
        build: "bench".to_owned(),
        created_at_ms: 1,
        inherited: Vec::new(),
    }
}

fn step(number: u32) -> Result<RunCommit> {
    let effect_id: EffectId = format!("debate/m1/round-{number}").parse()?;
    let words: Vec<String> =
        (0..400_u32).map(|word| format!("{:x}", word.wrapping_mul(0x9e37))).collect();
    let text: String = words.join(" ").chars().take(ANSWER_CHARS).collect();
    let result = EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text,
        stop: StopReason::End,
        model: "demo".to_owned(),
        usage: TokenUsage { input: 7_000, output: 400, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    });
    let entry = JournalEntry {
        request_sha256: Sha256Hex::of(effect_id.as_str().as_bytes()),
        result,
        timing: EffectTiming { latency_ms: 900, tries: 1 },
    };
    let problems = vec!["an objection that stands for an event of usual length".to_owned()];
    let body = RunEventBody::OutputRejected { effect_id: effect_id.clone(), problems };
    let events = vec![RunEvent::about(&effect_id, body)];
    Ok(RunCommit { results: vec![(effect_id, entry)], events, at_ms: 1, ..RunCommit::default() })
}
