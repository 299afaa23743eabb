//! Tests specific to SQLite.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use moothall_core::access::{CredentialLimits, RunOwner, ScopeSet, TeamName};
use moothall_store::{
    AccountStore as _, ControlRequest, Credential, LoginCode, NewSession, NewToken, SqliteStore,
    Store, StoreError, random_token_id,
};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::support::{SqlitePlace, answered, entry, new_run, run_id, snapshot};

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

async fn execute(path: &Path, script: &'static str) {
    let mut connection = raw(path).await;
    sqlx::raw_sql(script).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let place = SqlitePlace::new();
    let store = SqliteStore::open(&place.path()).await.unwrap();
    store.create_run(new_run(&run_id(1))).await.unwrap();
    let path = place.path();
    let folder = path.parent().unwrap();
    assert_eq!([folder, folder.parent().unwrap()].map(mode), [0o700, 0o700]);
    let mut files: Vec<_> = fs_err::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap())
        .map(|file| (file.file_name().into_string().unwrap(), mode(&file.path())))
        .collect();
    files.sort();
    let expected = ["runs.db", "runs.db-shm", "runs.db-wal"];
    assert_eq!(files, expected.map(|name| (name.to_owned(), 0o600)));
}

#[tokio::test]
async fn a_file_of_a_newer_format_is_refused() {
    let place = SqlitePlace::new();
    SqliteStore::open(&place.path()).await.unwrap().close().await;
    execute(&place.path(), "PRAGMA user_version = 77").await;
    match SqliteStore::open(&place.path()).await.unwrap_err() {
        StoreError::NewerFormat { path, found: 77, known: 7 } => assert_eq!(path, place.path()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    // A one-byte file was once overwritten, because SQLite treats it as empty.
    for text in ["x".to_owned(), "Dear diary".to_owned(), "Dear diary, ".repeat(1_000)] {
        fs_err::write(&path, &text).unwrap();
        let error = SqliteStore::open(&path).await.unwrap_err();
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{error:?}");
        assert!(error.to_string().contains("notes.txt"));
        assert!(fs_err::read_to_string(&path).unwrap() == text);
    }
    let error = SqliteStore::open(folder.path()).await.unwrap_err();
    assert!(!error.is_retryable(), "{error:?}");
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("music.db");
    execute(&path, "CREATE TABLE songs (title TEXT)").await;
    let before = fs_err::read(&path).unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::ForeignDatabase { .. }), "{error:?}");
    assert!(fs_err::read(&path).unwrap() == before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_database_file_can_be_opened_concurrently() {
    for _ in 0..5 {
        let place = SqlitePlace::new();
        let open = |number| {
            let path = place.path();
            tokio::spawn(async move {
                let store = SqliteStore::open(&path).await.unwrap();
                store.create_run(new_run(&run_id(number))).await.unwrap();
            })
        };
        let tasks: Vec<_> = (0..16).map(open).collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_commit_whose_last_statement_fails_leaves_nothing() {
    let place = SqlitePlace::new();
    let id = run_id(1);
    let store = SqliteStore::open(&place.path()).await.unwrap();
    store.create_run(new_run(&id)).await.unwrap();
    let before = snapshot(&store, &id).await;
    execute(
        &place.path(),
        "CREATE TRIGGER broken BEFORE UPDATE ON runs
         BEGIN SELECT RAISE(ABORT, 'the disk is on fire'); END",
    )
    .await;
    let error = store.commit(&id, answered("ask-1")).await.unwrap_err();
    assert!(matches!(error, StoreError::Database(_)), "{error:?}");
    assert_eq!(snapshot(&store, &id).await, before);
    execute(&place.path(), "DROP TRIGGER broken").await;
    assert_eq!(store.commit(&id, answered("ask-1")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_artifact_changed_on_disk_is_never_returned() {
    let place = SqlitePlace::new();
    let id = run_id(1);
    let store = SqliteStore::open(&place.path()).await.unwrap();
    store.create_run(new_run(&id)).await.unwrap();
    let sha256 = store.keep_artifact(&id, b"chart").await.unwrap();
    execute(&place.path(), "UPDATE artifacts SET content = CAST('other' AS BLOB)").await;
    let error = store.artifact(&id, &sha256).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreadable { what: "artefact", .. }), "{error:?}");
}

#[tokio::test]
async fn in_memory_stores_are_separate() {
    let (one, other) =
        (SqliteStore::in_memory().await.unwrap(), SqliteStore::in_memory().await.unwrap());
    one.create_run(new_run(&run_id(1))).await.unwrap();
    assert_eq!(other.run(&run_id(1)).await.unwrap(), None);
    assert_eq!(one.path(), Path::new(":memory:"));
}

#[tokio::test]
async fn deleting_a_run_leaves_no_row_and_no_content() {
    let place = SqlitePlace::new();
    let id = run_id(1);
    let store = SqliteStore::open(&place.path()).await.unwrap();
    store.create_run(new_run(&id)).await.unwrap();
    let mut commit = answered("ask-1");
    // Long enough to need separate pages.
    commit.results[0].1 = entry("question", &"confidential ".repeat(5_000));
    store.commit(&id, commit).await.unwrap();
    store.request_control(&id, ControlRequest::Pause).await.unwrap();
    store.keep_artifact(&id, "confidential ".repeat(5_000).as_bytes()).await.unwrap();
    store.delete_runs(std::slice::from_ref(&id)).await.unwrap();

    let mut connection = raw(&place.path()).await;
    for table in
        ["runs", "events", "journal", "wishes", "artifacts", "approvals", "changes", "requests"]
    {
        let count = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let rows: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    // The store stays open, so that cleanup on close does not affect the result.
    for file in fs_err::read_dir(place.path().parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        let bytes = fs_err::read(&file).unwrap();
        let found = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        assert!(!found("confidential"), "{}", file.display());
        assert!(!found(id.as_str()), "{}", file.display());
    }
}

#[tokio::test]
async fn the_database_file_shrinks_when_space_is_reclaimed() {
    for early in [false, true] {
        let place = SqlitePlace::new();
        if early {
            SqliteStore::open(&place.path()).await.unwrap().close().await;
            // VACUUM changes the mode only outside WAL.
            let script = "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM";
            execute(&place.path(), script).await;
        }
        let store = SqliteStore::open(&place.path()).await.unwrap();
        let id = run_id(1);
        store.create_run(new_run(&id)).await.unwrap();
        for number in 0..10 {
            store.keep_artifact(&id, &vec![number; 1 << 20]).await.unwrap();
        }
        store.delete_runs(&[id]).await.unwrap();
        let full = fs_err::metadata(place.path()).unwrap().len();
        let freed = store.reclaim_space().await.unwrap();
        let left = fs_err::metadata(place.path()).unwrap().len();
        assert!(full > 10 << 20 && left < 1 << 20, "{full} {left}");
        assert_eq!(full - left, freed, "early: {early}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_copy_is_a_consistent_snapshot_without_deleted_data() {
    let place = SqlitePlace::new();
    let store = SqliteStore::open(&place.path()).await.unwrap();
    let (kept, deleted) = (run_id(1), run_id(2));
    for id in [&kept, &deleted] {
        store.create_run(new_run(id)).await.unwrap();
    }
    store.keep_artifact(&deleted, "confidential ".repeat(5_000).as_bytes()).await.unwrap();
    store.delete_runs(&[deleted]).await.unwrap();
    let other = SqliteStore::open(&place.path()).await.unwrap();
    let writing = tokio::spawn(async move {
        for number in 0..200 {
            other.commit(&run_id(1), answered(&format!("e-{number}"))).await.unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    for number in 0..5 {
        let path = folder.path().join(format!("{number}.db"));
        store.copy_to(&path).await.unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(!fs_err::read(&path).unwrap().windows(12).any(|part| part == b"confidential"));
        assert_eq!(SqliteStore::check_copy(&path).await.unwrap(), 1);
        let copy = SqliteStore::open(&path).await.unwrap();
        // Each step has one result and one event; both exist or neither does.
        let events = copy.events(&kept, 0, u32::MAX).await.unwrap().len();
        assert_eq!(copy.journal(&kept).await.unwrap().len(), events);
    }
    writing.await.unwrap();
    // An existing file is not overwritten.
    let taken = folder.path().join("0.db");
    assert!(store.copy_to(&taken).await.is_err());
}

#[tokio::test]
async fn a_database_copy_with_damage_or_foreign_objects_is_refused() {
    for script in [
        "CREATE TRIGGER spy AFTER INSERT ON runs BEGIN DELETE FROM journal; END",
        "CREATE VIEW spy AS SELECT * FROM runs",
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'runs_by_time'",
    ] {
        let place = SqlitePlace::new();
        SqliteStore::open(&place.path()).await.unwrap().close().await;
        assert_eq!(SqliteStore::check_copy(&place.path()).await.unwrap(), 0);
        execute(&place.path(), script).await;
        let error = SqliteStore::check_copy(&place.path()).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreadable { what: "database", .. }), "{error:?}");
    }
}

/// The migrations of the first three formats, which never change.
const FORMAT_3: &str = concat!(
    include_str!("../../src/sqlite/v1.sql"),
    include_str!("../../src/sqlite/v2.sql"),
    include_str!("../../src/sqlite/v3.sql"),
    "PRAGMA user_version = 3;
     INSERT INTO runs (run_id, workflow, title, input, model, build, created_at_ms, state,
                       updated_at_ms, head)
     VALUES ('00000001-0000-7000-8000-000000000000', 'ask', 'old', '{}', 'demo', '0', 1,
             'finished', 1, 0)"
);

#[tokio::test]
async fn runs_from_before_teams_existed_are_local() {
    let place = SqlitePlace::new();
    fs_err::create_dir_all(place.path().parent().unwrap()).unwrap();
    execute(&place.path(), FORMAT_3).await;
    let store = SqliteStore::open(&place.path()).await.unwrap();
    let row = store.run(&run_id(1)).await.unwrap().unwrap();
    assert_eq!((row.title.as_str(), row.owner, row.cap), ("old", RunOwner::local(), None));
    store.close().await;
    assert_eq!(SqliteStore::check_copy(&place.path()).await.unwrap(), 1);
}

/// The file names in the directory of a database, without SQLite's side files.
fn names_beside(path: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect();
    names.sort();
    names
}

/// Regression test: a failed upgrade once left no copy of the old file.
#[tokio::test]
async fn upgrade_keeps_a_copy_of_the_old_format_beside_the_file() {
    let place = SqlitePlace::new();
    fs_err::create_dir_all(place.path().parent().unwrap()).unwrap();
    execute(&place.path(), FORMAT_3).await;
    let name = place.path().file_name().unwrap().to_str().unwrap().to_owned();
    let copy = format!("{name}.format-3");
    // Two concurrent opens: one of them upgrades.
    let path = place.path();
    let (first, second) = tokio::join!(SqliteStore::open(&path), SqliteStore::open(&path));
    first.unwrap().close().await;
    second.unwrap().close().await;
    assert_eq!(names_beside(&place.path()), [name.clone(), copy.clone()]);
    let path = place.path().with_file_name(&copy);
    assert_eq!(mode(&path), 0o600);
    // The restored copy is in the old format and is upgraded again. The first copy is kept.
    fs_err::rename(&path, place.path()).unwrap();
    fs_err::write(&path, "not to be replaced").unwrap();
    let store = SqliteStore::open(&place.path()).await.unwrap();
    assert_eq!(store.run(&run_id(1)).await.unwrap().unwrap().title, "old");
    store.close().await;
    let second = format!("{copy}.2");
    assert_eq!(names_beside(&place.path()), [name, copy, second]);
    assert_eq!(fs_err::read(&path).unwrap(), b"not to be replaced");
}

#[tokio::test]
async fn no_copy_is_made_where_nothing_is_upgraded() {
    let place = SqlitePlace::new();
    for _ in 0..2 {
        SqliteStore::open(&place.path()).await.unwrap().close().await;
    }
    assert_eq!(names_beside(&place.path()).len(), 1);
}

#[tokio::test]
async fn a_database_copy_has_hashed_tokens_and_no_sessions() {
    let place = SqlitePlace::new();
    let store = SqliteStore::open(&place.path()).await.unwrap();
    let (token, session, code) = (
        Credential::token().unwrap(),
        Credential::temporary().unwrap(),
        Credential::temporary().unwrap(),
    );
    let id = random_token_id().unwrap();
    let scopes: ScopeSet = "admin".parse().unwrap();
    store
        .create_token(NewToken {
            id: id.clone(),
            team: TeamName::local(),
            label: String::new(),
            secret: token.sha256(),
            scopes,
            limits: CredentialLimits::default(),
            created_at_ms: 0,
            expires_at_ms: None,
        })
        .await
        .unwrap();
    store
        .create_session(NewSession {
            secret: session.sha256(),
            team: TeamName::local(),
            token: Some(id),
            scopes,
            created_at_ms: 0,
            expires_at_ms: u64::MAX >> 1,
            page_word: Credential::from_client("word"),
        })
        .await
        .unwrap();
    let expires_at_ms = u64::MAX >> 1;
    let login = LoginCode { secret: code.sha256(), team: TeamName::local(), scopes, expires_at_ms };
    store.create_login_code(login, 0).await.unwrap();
    let path = place.path().with_extension("copy");
    store.copy_to(&path).await.unwrap();
    let bytes = fs_err::read(&path).unwrap();
    let found = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(found(&token.sha256().to_string()));
    for gone in [session.sha256().to_string(), code.sha256().to_string()] {
        assert!(!found(&gone));
    }
    for secret in [&token, &session, &code] {
        assert!(!found(secret.reveal()));
    }
    let copy = SqliteStore::open(&path).await.unwrap();
    assert!(copy.token(&token.sha256()).await.unwrap().is_some());
    assert_eq!(copy.session(&session.sha256()).await.unwrap(), None);
}
