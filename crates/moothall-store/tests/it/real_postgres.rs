//! Tests specific to PostgreSQL.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moothall_store::{ControlRequest, PgAddress, PgStore, Store, StoreError};
use sqlx::postgres::PgListener;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::{
    PgPlace, Place as _, answered, event, new_run, numbers, postgres_server, raw_postgres, run_id,
    snapshot, the_end,
};

async fn execute(place: &PgPlace, script: &str) {
    let mut connection = raw_postgres(&place.text().await).await;
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn count(place: &PgPlace, question: &str) -> i64 {
    let mut connection = raw_postgres(&place.text().await).await;
    let question = AssertSqlSafe(question.to_owned());
    sqlx::query_scalar(question).fetch_one(&mut connection).await.unwrap()
}

async fn refusal(place: &PgPlace) -> StoreError {
    PgStore::open(&place.address().await, 2).await.unwrap_err()
}

#[tokio::test]
async fn tables_of_another_program_are_refused_and_left_alone() {
    let place = PgPlace::new();
    execute(&place, "CREATE SCHEMA moothall; CREATE TABLE moothall.runs (mine int)").await;
    let error = refusal(&place).await;
    assert!(matches!(error, StoreError::ForeignDatabase { .. }), "{error:?}");
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'moothall'::regnamespace";
    assert_eq!(count(&place, tables).await, 1);
}

#[tokio::test]
async fn tables_of_a_newer_format_are_refused() {
    let place = PgPlace::new();
    place.store().await.close().await;
    execute(&place, "UPDATE moothall.format SET version = 77").await;
    let error = refusal(&place).await;
    assert!(matches!(error, StoreError::NewerFormat { found: 77, known: 5, .. }), "{error:?}");
}

#[tokio::test]
async fn a_database_without_synchronous_commit_is_refused() {
    let place = PgPlace::new();
    let address = place.text().await;
    let (_, name) = address.rsplit_once('/').unwrap();
    execute(&place, &format!("ALTER DATABASE {name} SET synchronous_commit = off")).await;
    let error = refusal(&place).await;
    assert!(matches!(error, StoreError::Unsuitable { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_processes_create_the_postgres_tables_once() {
    let place = Arc::new(PgPlace::new());
    let open = |_| {
        let place = Arc::clone(&place);
        tokio::spawn(async move {
            place.open().await.count_runs(moothall_store::RunState::Paused).await.unwrap()
        })
    };
    let tasks: Vec<_> = (0..6).map(open).collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 0);
    }
}

#[tokio::test]
async fn runs_are_spread_over_partitions_and_deleted_without_leftovers() {
    const RUNS: u32 = 64;
    let place = PgPlace::new();
    let store = place.store().await;
    let ids: Vec<_> = (1..=RUNS).map(|number| run_id(number.wrapping_mul(0x9e37_79b9))).collect();
    for id in &ids {
        store.create_run(new_run(id)).await.unwrap();
        store.commit(id, answered("ask-1")).await.unwrap();
        store.keep_artifact(id, b"chart").await.unwrap();
        store.request_control(id, ControlRequest::Pause).await.unwrap();
    }
    for table in ["runs", "events", "journal", "artifacts"] {
        let pieces = format!("SELECT count(DISTINCT tableoid) FROM moothall.{table}");
        assert!(count(&place, &pieces).await > 8, "{table}");
    }
    store.delete_runs(&ids).await.unwrap();
    for table in
        ["runs", "events", "journal", "wishes", "artifacts", "approvals", "changes", "requests"]
    {
        assert_eq!(count(&place, &format!("SELECT count(*) FROM moothall.{table}")).await, 0);
    }
}

#[tokio::test]
async fn new_runs_reuse_the_space_of_deleted_ones() {
    const SIZE: &str = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                        WHERE relnamespace = 'moothall'::regnamespace AND relkind = 'r'";
    let place = PgPlace::new();
    let store = place.store().await;
    let id = run_id(1);
    let mut sizes = Vec::new();
    for round in 0..4_u8 {
        store.create_run(new_run(&id)).await.unwrap();
        for file in 0..8 {
            store.keep_artifact(&id, &vec![round * 8 + file; 1 << 20]).await.unwrap();
        }
        sizes.push(count(&place, SIZE).await);
        store.delete_runs(std::slice::from_ref(&id)).await.unwrap();
        store.reclaim_space().await.unwrap();
    }
    let (first, most) = (sizes[0], sizes.iter().max().unwrap());
    assert!(first > 8 << 20 && *most < first + (4 << 20), "{sizes:?}");
}

#[tokio::test]
async fn waiting_commits_share_transactions_except_the_one_that_ends_a_run() {
    const REQUESTS: i64 = 200;
    let place = PgPlace::new();
    let (store, id) = (Arc::new(place.store().await), run_id(1));
    store.create_run(new_run(&id)).await.unwrap();
    let ends = |number| number == REQUESTS / 2;
    let sent = (0..REQUESTS).map(|number| {
        let (store, id) = (Arc::clone(&store), id.clone());
        let commit = match ends(number) {
            true => the_end(),
            false => answered(&format!("c-{number}")),
        };
        tokio::spawn(async move { store.commit(&id, commit).await })
    });
    let sent: Vec<_> = sent.collect();
    let mut kept = 0;
    for (number, sent) in (0..).zip(sent) {
        match sent.await.unwrap() {
            Ok(stored) => kept += stored.len(),
            Err(StoreError::RunEnded { .. }) if !ends(number) => {}
            other => panic!("{number}: {other:?}"),
        }
    }
    assert_eq!(store.events(&id, 0, u32::MAX).await.unwrap().len(), kept);
    // PostgreSQL stores the transaction id with every row it writes.
    let transactions = |more: &str| {
        let question = format!("SELECT count(DISTINCT xmin::text) FROM moothall.events {more}");
        let place = &place;
        async move { count(place, &question).await }
    };
    let (all, before_the_end) =
        (transactions("").await, transactions("WHERE key NOT LIKE 'run:%'").await);
    assert_eq!(all, before_the_end + 1, "the end shares with nobody");
    let waited = i64::try_from(kept).unwrap();
    assert!(all < waited / 2, "{all} transactions for {waited} requests");
}

#[tokio::test]
async fn a_run_locked_by_another_transaction_is_a_retryable_busy_error() {
    let place = PgPlace::new();
    let (store, id) = (place.store().await, run_id(1));
    store.create_run(new_run(&id)).await.unwrap();
    let mut holder = raw_postgres(&place.text().await).await;
    let mut held = holder.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM moothall.runs FOR UPDATE").execute(&mut *held).await.unwrap();
    let error = store.commit(&id, answered("ask-1")).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy(_)) && error.is_retryable(), "{error:?}");
    held.rollback().await.unwrap();
    assert_eq!(store.commit(&id, answered("ask-1")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_run_is_leased_to_one_process_until_it_releases_it_or_dies() {
    let place = PgPlace::new();
    let (one, other) = (place.store().await, place.store().await);
    let [first, second] = [run_id(1), run_id(2)];
    let held = one.drive(&first).await.unwrap().unwrap();
    let _also = one.drive(&second).await.unwrap().unwrap();
    assert!(other.drive(&first).await.unwrap().is_none());
    let ids = [first.clone(), second.clone(), run_id(3)];
    let driven = BTreeSet::from([first.clone(), second.clone()]);
    assert_eq!(other.driven(&ids).await.unwrap(), driven);
    drop(held);
    while other.driven(&ids).await.unwrap() != BTreeSet::from([second.clone()]) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let taken = other.drive(&first).await.unwrap();
    assert!(taken.is_some());
    // Like a killed process: its connection breaks cannot restore and.
    let (address, third) = (place.address().await, run_id(3));
    let killed = move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let held = runtime.block_on(async {
            PgStore::open(&address, 1).await.unwrap().drive(&third).await.unwrap()
        });
        runtime.shutdown_background();
        assert!(held.is_some());
    };
    std::thread::spawn(killed).join().unwrap();
    while one.drive(&run_id(3)).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_run_lease_survives_a_kill_of_the_database_server() {
    let server = Server::start();
    let place = PgPlace::on(&server.address);
    let (one, other) = (place.store().await, place.store().await);
    let ids = [run_id(1), run_id(2)];
    let mut held = Vec::new();
    for id in &ids {
        held.push(one.drive(id).await.unwrap().unwrap());
    }
    server.kill();
    // Locks belong to sessions, and the sessions are gone; only the holder takes its lock again.
    while other.driven(&ids).await.is_ok_and(|driven| driven.len() == ids.len()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !other.driven(&ids).await.is_ok_and(|driven| driven.len() == ids.len()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(other.drive(&ids[0]).await.unwrap().is_none());
    drop(held);
    while !other.driven(&ids).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(other.drive(&ids[0]).await.unwrap().is_some());
}

#[tokio::test]
async fn shared_limiter_slots_survive_a_kill_of_the_database_server() {
    let server = Server::start();
    let place = PgPlace::on(&server.address);
    let (one, other) = (place.store().await, place.store().await);
    // A server that has just started hands out no slots for a while, so that previous holders come
    // first.
    let mut held = Vec::new();
    while held.len() < 3 {
        held.extend(one.slot("p/m", 3).await.unwrap());
        held.extend(other.slot("p/m", 3).await.unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(one.slot("p/m", 3).await.unwrap().is_none());
    assert!(other.slot("p/m", 3).await.unwrap().is_none());
    assert!(other.slot("p/other", 3).await.unwrap().is_some());
    server.kill();
    // Long enough for a newly started server to hand out slots again.
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(14) {
        assert!(!one.slot("p/m", 3).await.is_ok_and(|slot| slot.is_some()), "a fourth");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    held.pop();
    while other.slot("p/m", 3).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_commit_notifies_all_listeners() {
    let place = PgPlace::new();
    let (store, id) = (place.store().await, run_id(1));
    store.create_run(new_run(&id)).await.unwrap();
    let mut listener = PgListener::connect(&place.text().await).await.unwrap();
    listener.listen("moothall_head").await.unwrap();
    for round in 0..3 {
        store.commit(&id, answered(&format!("e-{round}"))).await.unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(60), listener.recv()).await;
        // Notifications carry no content.
        assert_eq!(heard.unwrap().unwrap().payload(), "");
    }
    // A new listener is notified when its connection is established, long before a day has passed.
    let other = place.store().await;
    let day = Duration::from_secs(24 * 60 * 60);
    let heard = tokio::time::timeout(Duration::from_secs(60), other.wait_for_change(0, day)).await;
    assert_eq!(heard.unwrap(), 1);
    store.commit(&id, answered("last")).await.unwrap();
    let mut seen = 1;
    while seen == 1 {
        seen = other.wait_for_change(seen, day).await;
    }
}

#[tokio::test]
async fn tls_is_verified_as_the_postgres_address_says() {
    let place = PgPlace::new();
    let plain = place.text().await;
    let certificate = std::env::var("MOOTHALL_TEST_POSTGRES_CERTIFICATE")
        .expect("the second word behind READY of tools/postgres/up.sh");
    let open = async |parameters: &str| {
        let address: PgAddress = format!("{plain}?{parameters}").parse().unwrap();
        PgStore::open(&address, 1).await
    };
    let checked = open(&format!("sslmode=verify-full&sslrootcert={certificate}")).await.unwrap();
    checked.create_run(new_run(&run_id(1))).await.unwrap();
    open("sslmode=require").await.unwrap();
    // The certificate is not trusted.
    let error = open("sslmode=verify-full").await.unwrap_err();
    assert!(matches!(error, StoreError::Database(_)), "{error:?}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_appears_in_no_error() {
    let server = postgres_server();
    let (user, place) = server.rsplit_once('@').unwrap();
    let (user, _) = user.rsplit_once(':').unwrap();
    let address: PgAddress = format!("{user}:hunter2secret@{place}").parse().unwrap();
    let error = PgStore::open(&address, 1).await.unwrap_err();
    let mut words = format!("{error} {error:?} {address:?}");
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        words.push_str(&error.to_string());
        cause = error.source();
    }
    assert!(words.contains("password authentication failed"), "{words}");
    assert!(!words.contains("hunter2secret"), "{words}");
}

#[tokio::test]
async fn every_recommended_postgres_setting_is_accepted_by_the_server() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/postgres/moothall.conf");
    let text = fs_err::read_to_string(file).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(" = "));
    let names = lines.map(|(name, _)| name.to_owned()).filter(|name| !name.starts_with('#'));
    // The script uses less shared memory than the file says, and the server reports that.
    let smaller = |name: &str| name == "shared_buffers";
    let wanted: Vec<(String, bool)> = names.map(|name| (name.clone(), !smaller(&name))).collect();
    let mut server = raw_postgres(&postgres_server()).await;
    let found: Vec<(String, bool)> = sqlx::query_as(
        "SELECT name, applied FROM pg_file_settings WHERE sourcefile LIKE '%/moothall.conf' ORDER BY seqno",
    )
    .fetch_all(&mut server)
    .await
    .unwrap();
    assert_eq!(found, wanted);
}

/// A separate server for this test, which can be killed.
struct Server {
    script: Child,
    address: String,
    folder: PathBuf,
}

impl Server {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/postgres/up.sh");
        let mut script = Command::new("bash")
            .arg(script)
            .arg("--restart")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let ["READY", address, certificate] = ready.split_whitespace().collect::<Vec<_>>()[..]
        else {
            panic!("the server did not start: {ready}")
        };
        let folder = Path::new(certificate).parent().unwrap().to_owned();
        Self { address: address.to_owned(), folder, script }
    }

    /// The parent process of the server.
    fn postmaster(&self) -> Option<String> {
        let file = fs_err::read_to_string(self.folder.join("data/postmaster.pid")).ok()?;
        file.lines().next().map(str::to_owned)
    }

    fn kill(&self) {
        let killed = self.postmaster().unwrap();
        let status = Command::new("kill").args(["-KILL", &killed]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let script = self.script.id().to_string();
        Command::new("kill").args(["-TERM", &script]).status().ok();
        self.script.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killing_the_database_server_loses_no_acknowledged_commit() {
    const WRITERS: u64 = 3;
    const KILLS: u64 = 3;
    let server = Server::start();
    let place = PgPlace::on(&server.address);
    let id = run_id(1);
    let store = Arc::new(place.store().await);
    store.create_run(new_run(&id)).await.unwrap();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let enough = Arc::new(AtomicU64::new(u64::MAX));
    let write = |writer| {
        let (store, id) = (Arc::clone(&store), id.clone());
        let (acknowledged, enough) = (Arc::clone(&acknowledged), Arc::clone(&enough));
        tokio::spawn(async move {
            let mut told = Vec::new();
            for number in 0.. {
                if acknowledged.load(Ordering::Relaxed) > enough.load(Ordering::Relaxed) {
                    break;
                }
                let name = format!("w-{writer}/c-{number}");
                store.commit(&id, answered(&name)).await.unwrap();
                told.push(name);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            told
        })
    };
    let writers: Vec<_> = (0..WRITERS).map(write).collect();
    let until = async |more: u64| {
        while acknowledged.load(Ordering::Relaxed) < more {
            assert!(writers.iter().all(|writer| !writer.is_finished()), "a writer gave up");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    for kill in 0..KILLS {
        until(acknowledged.load(Ordering::Relaxed) + 30 + kill).await;
        server.kill();
    }
    let end = acknowledged.load(Ordering::Relaxed) + 30;
    until(end).await;
    enough.store(end, Ordering::Relaxed);
    let mut told = Vec::new();
    for writer in writers {
        told.extend(writer.await.unwrap());
    }
    let events = store.events(&id, 0, u32::MAX).await.unwrap();
    assert_eq!(numbers(&events), (1..=events.len() as u64).collect::<Vec<_>>());
    // Each key exists once: a commit whose response was lost was repeated without effect.
    let mut there: Vec<_> = events.into_iter().map(|stored| stored.event.key).collect();
    let mut expected: Vec<_> = told.iter().map(|name| event(name, "").key).collect();
    there.sort();
    expected.sort();
    assert_eq!(there, expected);
    let before = snapshot(&*store, &id).await;
    assert_eq!(store.commit(&id, answered(&told[0])).await.unwrap(), []);
    assert_eq!(snapshot(&*store, &id).await, before);
}
