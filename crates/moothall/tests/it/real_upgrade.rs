//! Runs and receipts of an earlier version can be listed, shown, reported, replayed, verified and
//! resumed.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tokio::runtime::Runtime;

use crate::real_sandbox;
use crate::world::World;

/// The workspace of the edits in the fixtures.
const WORKSPACE: &str = "/srv/notes";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stored-0.1").join(name)
}

/// A workspace directory, and stored edits that are changed to use it.
fn workspace(world: &World) -> String {
    let folder = world.path("notes");
    fs_err::create_dir(&folder).unwrap();
    fs_err::write(folder.join("tool.py"), "import sys\n\nprint(\"hello\")\n").unwrap();
    folder.to_str().unwrap().to_owned()
}

fn run_of<'a>(runs: &'a [Value], workflow: &str, state: &str) -> &'a str {
    let found = runs.iter().find(|run| run["workflow"] == workflow && run["state"] == state);
    found.unwrap_or_else(|| panic!("no {state} {workflow} in {runs:?}"))["run_id"].as_str().unwrap()
}

#[track_caller]
fn succeeds(world: &World, arguments: &[&str]) {
    let ran = world.run(arguments);
    assert_eq!(ran.code, Some(0), "{ran}");
}

/// Everything that a user does with runs of the previous version.
fn everything_works(world: &World, store: &str) {
    let listed = world.run(&["runs", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    let listed = listed.json();
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6);
    for run in runs {
        succeeds(world, &["show", run["run_id"].as_str().unwrap(), "--json"]);
    }
    for workflow in ["consult", "run", "edit"] {
        let finished = run_of(runs, workflow, "finished");
        succeeds(world, &["replay", finished]);
        let before = fixture(&format!("{store}-{workflow}.jsonl"));
        // The exit code is that of the verdict, and the edit failed.
        let verified = world.run(&["verify", before.to_str().unwrap()]);
        assert!(verified.stdout.starts_with("receipt is valid\n"), "{verified}");
        let receipt = world.path(&format!("{workflow}.jsonl"));
        world.run(&["show", finished, "--receipt", receipt.to_str().unwrap()]);
        assert_eq!(
            fs_err::read_to_string(&receipt).unwrap(),
            fs_err::read_to_string(&before).unwrap()
        );
    }
    let finished = run_of(runs, "consult", "finished");
    for format in ["md", "html", "csv", "json"] {
        let out = world.path(&format!("memo.{format}"));
        succeeds(
            world,
            &["report", finished, "--format", format, "--output", out.to_str().unwrap()],
        );
    }
    for (workflow, verdict) in [("consult", "pass"), ("run", "pass"), ("edit", "fail")] {
        let paused = run_of(runs, workflow, "paused");
        let resumed = world.run(&["resume", paused, "--budget-tokens", "1000000", "--json"]);
        let shown = world.run(&["runs", "--json"]).json();
        let now = shown["runs"].as_array().unwrap().iter().find(|run| run["run_id"] == paused);
        assert_eq!(now.unwrap()["state"], "finished", "{resumed}");
        assert_eq!(now.unwrap()["verdict"], verdict, "{resumed}");
        succeeds(world, &["replay", paused]);
    }
}

#[test]
fn runs_of_an_earlier_version_in_a_file_work() {
    let world = real_sandbox::world();
    let data = world.root().join("home/.local/share/moothall/moothall.db");
    fs_err::copy(fixture("moothall.db"), &data).unwrap();
    Runtime::new().unwrap().block_on(async {
        let address = format!("sqlite://{}", data.display());
        let mut file = SqliteConnection::connect(&address).await.unwrap();
        sqlx::query("UPDATE runs SET input = replace(input, ?, ?)")
            .bind(WORKSPACE)
            .bind(workspace(&world))
            .execute(&mut file)
            .await
            .unwrap();
        file.close().await.unwrap();
    });
    everything_works(&world, "sqlite");
}

#[test]
fn runs_of_an_earlier_version_in_a_database_work() {
    let server = std::env::var("MOOTHALL_TEST_POSTGRES")
        .unwrap_or_else(|_| panic!("this test needs a PostgreSQL server; see `real_postgres.rs`"));
    let name = format!("before_{}", std::process::id());
    execute(&server, &format!("CREATE DATABASE {name}"));
    let (address, _) = server.rsplit_once('/').unwrap();
    let database = format!("{address}/{name}");
    let world = real_sandbox::world().with("MOOTHALL_DATABASE_URL", &database);
    let dump = fs_err::read_to_string(fixture("postgres.sql")).unwrap();
    execute(&database, &dump.replace(WORKSPACE, &workspace(&world)));
    everything_works(&world, "postgres");
    execute(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}

fn execute(address: &str, sql: &str) {
    Runtime::new().unwrap().block_on(async {
        let mut database = PgConnection::connect(address).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut database).await.unwrap();
    });
}
