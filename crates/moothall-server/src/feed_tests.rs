use moothall_core::{RunEvent, RunEventBody, RunVerdict};
use moothall_store::{NewRun, RunCommit, RunState, SqliteStore};

use super::*;

fn run_id() -> RunId {
    "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap()
}

async fn store() -> Arc<dyn Store> {
    let store = SqliteStore::in_memory().await.unwrap();
    let run = NewRun {
        run_id: run_id(),
        owner: moothall_core::access::RunOwner::local(),
        cap: None,
        spec: moothall_core::StoredSpec::from_columns("consult", serde_json::Value::Null),
        title: "HLXI".to_owned(),
        model: "demo".to_owned(),
        build: "0".to_owned(),
        created_at_ms: 1,
        inherited: Vec::new(),
    };
    store.create_run(run).await.unwrap();
    Arc::new(store)
}

fn step(number: u32) -> RunEvent {
    let move_id = format!("m{number}");
    let (round, status) = (1, moothall_core::RoundStatus::CriticResponding);
    RunEvent::of_run(RunEventBody::SandboxRound { move_id, round, status })
}

async fn commit(store: &Arc<dyn Store>, events: Vec<RunEvent>) -> Vec<StoredEvent> {
    let ends = events.last().is_some_and(|event| event.body.is_terminal());
    let state = ends.then_some(RunState::Finished);
    let commit = RunCommit { events, state, at_ms: 5, ..RunCommit::default() };
    store.commit(&run_id(), commit).await.unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The sequence numbers of the frames after a cursor.
fn numbers(run: &RunFeed, after: u64) -> Vec<u64> {
    let text = run.ready(after).map(|(_, bytes)| String::from_utf8(bytes.to_vec()).unwrap());
    let text = text.unwrap_or_default();
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.map(|id| id.parse().unwrap()).collect()
}

#[test]
fn the_feed_delivers_commits_of_all_processes_once_in_order() {
    runtime().block_on(async {
        let store = store().await;
        let feed = EventFeed::new(store.clone());
        commit(&store, vec![step(1), step(2)]).await;
        let run = feed.follow(&run_id()).await.unwrap();
        assert_eq!(numbers(&run, 0), [1, 2]);
        // A commit by another process is found only by polling the store.
        commit(&store, vec![step(3)]).await;
        assert_eq!(run.head().seq, 2);
        feed.poll_heads().await.unwrap();
        assert_eq!(run.head().seq, 3);
        // Reports from this process may contain duplicates and gaps.
        let fourth = commit(&store, vec![step(4)]).await;
        let fifth = commit(&store, vec![step(5)]).await;
        feed.committed(&run_id(), &fifth[0]);
        assert_eq!(run.head().seq, 3);
        feed.committed(&run_id(), &fourth[0]);
        feed.committed(&run_id(), &fourth[0]);
        assert_eq!(run.head().seq, 4);
        feed.poll_heads().await.unwrap();
        assert_eq!(numbers(&run, 0), [1, 2, 3, 4, 5]);
    });
}

#[test]
fn the_feed_marks_the_end_of_a_run_with_its_last_event() {
    runtime().block_on(async {
        let store = store().await;
        let feed = EventFeed::new(store.clone());
        let run = feed.follow(&run_id()).await.unwrap();
        let done = RunEvent::of_run(RunEventBody::RunFinished { verdict: RunVerdict::Pass });
        commit(&store, vec![step(1), done]).await;
        feed.poll_heads().await.unwrap();
        assert_eq!(run.head(), EventLogHead { seq: 2, terminal: true, deleted: false });
    });
}

/// Streams of such a run stayed open until their maximum age.
#[test]
fn a_run_that_ends_while_its_feed_is_opened_is_known_to_have_ended() {
    runtime().block_on(async {
        let store = store().await;
        let feed = EventFeed::new(store.clone());
        commit(&store, vec![step(1)]).await;
        let row = store.run(&run_id()).await.unwrap().unwrap();
        let done = RunEvent::of_run(RunEventBody::RunFinished { verdict: RunVerdict::Pass });
        commit(&store, vec![step(2), done]).await;
        let run = feed.open(&row).await.unwrap();
        feed.poll_heads().await.unwrap();
        assert_eq!(numbers(&run, 0), [1, 2, 3]);
        assert_eq!(run.head(), EventLogHead { seq: 3, terminal: true, deleted: false });
    });
}

#[test]
fn followers_of_a_deleted_run_are_told_that_it_is_gone() {
    runtime().block_on(async {
        let store = store().await;
        let feed = EventFeed::new(store.clone());
        let run = feed.follow(&run_id()).await.unwrap();
        store.delete_runs(&[run_id()]).await.unwrap();
        feed.poll_heads().await.unwrap();
        assert!(run.head().deleted);
        assert!(
            feed.follow(&"01890a5d-ac96-774b-bcce-b302099a8058".parse().unwrap()).await.is_err()
        );
    });
}

#[test]
fn the_feed_keeps_nothing_for_a_run_without_followers() {
    runtime().block_on(async {
        let store = store().await;
        let feed = EventFeed::new(store.clone());
        let run = feed.follow(&run_id()).await.unwrap();
        drop(run);
        feed.poll_heads().await.unwrap();
        assert!(feed.runs().is_empty());
    });
}
