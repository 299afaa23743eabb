//! A test server with one run in its store and a stub that executes no runs.

use std::sync::Arc;

use moothall_core::access::RunOwner;
use moothall_core::{RunEvent, RunEventBody, RunVerdict};
use moothall_server::{
    AccessControl, AccessMode, AppState, ConnectionLimits, EventFeed, EventStreamOptions,
    FeedTiming, OriginGuard, ServerLimits, serve,
};
use moothall_store::{NewRun, RunCommit, RunState, SqliteStore, Store};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::run_service::StubRunService;

pub(crate) struct Scene {
    pub(crate) address: String,
    pub(crate) closing: CancellationToken,
    pub(crate) served: tokio::task::JoinHandle<()>,
    store: Arc<dyn Store>,
    _folder: TempDir,
}

pub(crate) const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

impl Scene {
    pub(crate) async fn new(options: EventStreamOptions) -> Self {
        Self::with_limits(options, ConnectionLimits::default()).await
    }

    pub(crate) async fn with_limits(
        options: EventStreamOptions,
        connections: ConnectionLimits,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("runs.db")).await.unwrap());
        let access = AccessControl::new(store.clone(), AccessMode::Everyone, "http://127.0.0.1");
        let store: Arc<dyn Store> = store;
        let run = NewRun {
            run_id: RUN.parse().unwrap(),
            owner: RunOwner::local(),
            cap: None,
            spec: moothall_core::StoredSpec::from_columns("consult", Value::Null),
            title: "HLXI".to_owned(),
            model: "demo".to_owned(),
            build: "0".to_owned(),
            created_at_ms: 1,
            inherited: Vec::new(),
        };
        store.create_run(run).await.unwrap();
        let closing = CancellationToken::new();
        let feed = EventFeed::new(store.clone());
        tokio::spawn(feed.clone().watch(FeedTiming::default(), closing.clone()));
        let app = AppState::new(
            store.clone(),
            Arc::new(StubRunService { drives: true }),
            feed,
            access,
            closing.clone(),
        );
        let app = app.with_options(options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let guard = OriginGuard::local(listener.local_addr().unwrap());
        let address = listener.local_addr().unwrap().to_string();
        let limits = ServerLimits { connections, ..ServerLimits::default() };
        let served = tokio::spawn(async move {
            serve(listener, app, guard, limits).await.unwrap();
        });
        Self { address, closing, served, store, _folder: folder }
    }

    pub(crate) fn events(&self, after: u64) -> String {
        format!("http://{}/api/runs/{RUN}/events?after={after}", self.address)
    }

    /// Writes debate turns with these numbers, each with `words` words.
    pub(crate) async fn write(&self, numbers: std::ops::Range<u32>, words: usize) {
        let turn = |number: u32| {
            let effect_id = format!("m1/turn-{number}").parse().unwrap();
            let body = RunEventBody::SandboxTurn {
                effect_id,
                move_id: "m1".to_owned(),
                thread: "D1".to_owned(),
                round: 1,
                role: "critic".to_owned(),
                preview: "word ".repeat(words),
                stance: None,
                cites: Vec::new(),
            };
            RunEvent::about(&body.effect_id().unwrap().clone(), body)
        };
        let events: Vec<RunEvent> = numbers.map(turn).collect();
        for some in events.chunks(500) {
            let commit = RunCommit { events: some.to_vec(), at_ms: 5, ..RunCommit::default() };
            self.store.commit(&RUN.parse().unwrap(), commit).await.unwrap();
        }
    }

    pub(crate) async fn finish(&self) {
        let done = RunEventBody::RunFinished { verdict: RunVerdict::Pass };
        let commit = RunCommit {
            events: vec![RunEvent::of_run(done)],
            state: Some(RunState::Finished),
            at_ms: 6,
            ..RunCommit::default()
        };
        self.store.commit(&RUN.parse().unwrap(), commit).await.unwrap();
    }
}
