//! Temporary stores and test data.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use moothall_core::access::RunOwner;
use moothall_core::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use moothall_core::money::SpendTotals;
use moothall_core::receipt::EffectTiming;
use moothall_core::{
    Conclusion, EffectId, EffectResult, MicroUsd, Outcome, RunEvent, RunEventBody, RunId, Sha256Hex,
};
use moothall_store::{
    AccountStore, JournalEntry, NewRun, PgAddress, PgStore, RunCommit, RunState, SqliteStore,
    Store, StoredEvent,
};
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// What a server needs from a store.
pub(crate) trait Kept: Store + AccountStore {}

impl<T: Store + AccountStore> Kept for T {}

pub(crate) type Opening<'a> = Pin<Box<dyn Future<Output = Arc<dyn Kept>> + Send + 'a>>;

/// An initially empty store that can be opened any number of times.
pub(crate) trait Place: Send + Sync {
    fn open(&self) -> Opening<'_>;
}

#[derive(Debug)]
pub(crate) struct SqlitePlace {
    folder: TempDir,
}

impl SqlitePlace {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("state/moothall/runs.db")
    }
}

impl Place for SqlitePlace {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Arc::new(SqliteStore::open(&self.path()).await.unwrap()) as _ })
    }
}

/// All handles share one store, because an in-memory database is visible to one connection only.
#[derive(Debug, Default)]
pub(crate) struct MemoryPlace {
    store: OnceCell<Arc<SqliteStore>>,
}

impl Place for MemoryPlace {
    fn open(&self) -> Opening<'_> {
        Box::pin(async {
            let make = || async { Arc::new(SqliteStore::in_memory().await.unwrap()) };
            Arc::clone(self.store.get_or_init(make).await) as _
        })
    }
}

/// A separate database on the server that the gate starts.
#[derive(Debug)]
pub(crate) struct PgPlace {
    server: String,
    name: String,
    made: OnceCell<()>,
}

impl PgPlace {
    pub(crate) fn new() -> Self {
        Self::on(&postgres_server())
    }

    /// Uses the server at this address.
    pub(crate) fn on(server: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("test_{process}_{next}");
        Self { server: server.to_owned(), name, made: OnceCell::new() }
    }

    /// The address of the database.
    pub(crate) async fn address(&self) -> PgAddress {
        self.text().await.parse().unwrap()
    }

    pub(crate) async fn text(&self) -> String {
        self.made
            .get_or_init(async || {
                let make = AssertSqlSafe(format!("CREATE DATABASE {}", self.name));
                let mut server = raw_postgres(&self.server).await;
                sqlx::raw_sql(make).execute(&mut server).await.unwrap();
            })
            .await;
        let (server, _) = self.server.rsplit_once('/').unwrap();
        format!("{server}/{}", self.name)
    }

    pub(crate) async fn store(&self) -> PgStore {
        PgStore::open(&self.address().await, 4).await.unwrap()
    }
}

impl Place for PgPlace {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Arc::new(self.store().await) as _ })
    }
}

impl Drop for PgPlace {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // A failing test leaves its database behind until the server is removed.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                let options: PgConnectOptions = server.parse().unwrap();
                if let Ok(mut server) = options.connect().await {
                    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut server).await.ok();
                }
            });
        });
        dropping.join().ok();
    }
}

/// The address of the server that tests use.
pub(crate) fn postgres_server() -> String {
    std::env::var("MOOTHALL_TEST_POSTGRES").expect(
        "this test needs a PostgreSQL server: start one with `bash tools/postgres/up.sh` and set \
         MOOTHALL_TEST_POSTGRES to the address that it prints behind READY",
    )
}

pub(crate) async fn raw_postgres(address: &str) -> PgConnection {
    address.parse::<PgConnectOptions>().unwrap().connect().await.unwrap()
}

/// Generates a test from each of these functions for every store.
macro_rules! keeps_the_contract {
    ($($name:ident)*) => {
        crate::support::keeps_the_contract! { sqlite crate::support::SqlitePlace::new(); $($name)* }
        crate::support::keeps_the_contract! { memory crate::support::MemoryPlace::default(); $($name)* }
        crate::support::keeps_the_contract! { real_postgres crate::support::PgPlace::new(); $($name)* }
    };
    ($module:ident $place:expr; $($name:ident)*) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(&$place).await;
                }
            )*
        }
    };
}
pub(crate) use keeps_the_contract;

pub(crate) fn run_id(number: u32) -> RunId {
    format!("{number:08x}-0000-7000-8000-000000000000").parse().unwrap()
}

pub(crate) fn new_run(run_id: &RunId) -> NewRun {
    NewRun {
        run_id: run_id.clone(),
        owner: RunOwner::local(),
        cap: None,
        spec: moothall_core::StoredSpec::from_columns(
            "ask",
            json!({ "question": "What is a moot hall?", "attempts": 3 }),
        ),
        title: "What is a moot hall?".to_owned(),
        model: "demo".to_owned(),
        build: "0.1.0".to_owned(),
        created_at_ms: 1_000,
        inherited: Vec::new(),
    }
}

pub(crate) fn effect_id(text: &str) -> EffectId {
    text.parse().unwrap()
}

pub(crate) fn event(name: &str, says: &str) -> RunEvent {
    let effect_id = effect_id(name);
    let problems = vec![says.to_owned()];
    RunEvent::about(&effect_id.clone(), RunEventBody::OutputRejected { effect_id, problems })
}

pub(crate) fn finished() -> RunEvent {
    RunEvent::of_run(RunEventBody::RunFinished { verdict: outcome().verdict })
}

pub(crate) fn outcome() -> Outcome {
    Outcome::new(Vec::new(), Conclusion::Answered { text: "A hall.".to_owned(), value: None })
}

pub(crate) fn entry(question: &str, answer: &str) -> JournalEntry {
    JournalEntry {
        request_sha256: Sha256Hex::of(question.as_bytes()),
        result: EffectResult::ModelReplied(ModelReply {
            fallback: None,
            text: answer.to_owned(),
            stop: StopReason::End,
            model: "demo".to_owned(),
            usage: TokenUsage { input: 7, output: 5, ..TokenUsage::default() },
            usage_basis: UsageBasis::Reported,
            cost_micro_usd: None,
        }),
        timing: EffectTiming { latency_ms: 12, tries: 1 },
    }
}

pub(crate) fn spent(micros: u64) -> SpendTotals {
    SpendTotals { usd: MicroUsd::new(micros), tokens: 12, ..SpendTotals::default() }
}

/// A step with a result and an event.
pub(crate) fn answered(name: &str) -> RunCommit {
    RunCommit {
        results: vec![(effect_id(name), entry("question", "answer"))],
        events: vec![event(name, "happened")],
        spent: Some(spent(7)),
        at_ms: 2_000,
        ..RunCommit::default()
    }
}

pub(crate) fn the_end() -> RunCommit {
    RunCommit {
        events: vec![finished()],
        state: Some(RunState::Finished),
        outcome: Some(outcome()),
        at_ms: 3_000,
        ..RunCommit::default()
    }
}

/// Everything stored for a run, as one comparable value.
pub(crate) async fn snapshot(store: &dyn Store, id: &RunId) -> impl PartialEq + std::fmt::Debug {
    (
        store.run(id).await.unwrap(),
        store.events(id, 0, u32::MAX).await.unwrap(),
        store.journal(id).await.unwrap(),
        store.control_requests(id).await.unwrap(),
    )
}

pub(crate) fn numbers(events: &[StoredEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}
