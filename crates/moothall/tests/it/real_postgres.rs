//! Runs in a PostgreSQL database that several machines share.

use moothall_core::RunId;
use moothall_engine::RunRecord;
use moothall_store::{PgStore, SqliteStore, Store};
use tokio::runtime::Runtime;

use crate::chaos::Left;
use crate::verdict;
use crate::world::{Ran, World};

/// A consultation that takes one or two seconds.
const SMALL: [&str; 12] = [
    "consult",
    "HLXI",
    "--verdict",
    "off",
    "--model",
    "demo",
    "--moves",
    "5",
    "--rounds",
    "1",
    "--yes",
    "--json",
];

fn server() -> String {
    std::env::var("MOOTHALL_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "this test needs a PostgreSQL server: start one with `bash tools/postgres/up.sh` and \
             set MOOTHALL_TEST_POSTGRES to the address that it prints behind READY"
        )
    })
}

/// A separate machine that stores its runs in the database.
fn machine() -> World {
    World::new().with("MOOTHALL_DATABASE_URL", &server())
}

fn run_id(ran: &Ran) -> RunId {
    ran.json()["run_id"].as_str().unwrap().parse().unwrap()
}

async fn database() -> PgStore {
    PgStore::open(&server().parse().unwrap(), 2).await.unwrap()
}

#[test]
fn a_consultation_in_postgres_equals_one_in_sqlite() {
    let (here, there) = (World::new(), machine());
    let [in_file, in_database] = [&here, &there].map(|world| world.run(&SMALL));
    assert_eq!((in_file.code, in_database.code), (Some(0), Some(0)), "{in_database}");
    let [first, second] = [&in_file, &in_database].map(run_id);
    let runtime = Runtime::new().unwrap();
    let [one, other] = runtime.block_on(async {
        let path = here.root().join("home/.local/share/moothall/moothall.db");
        let (file, database) = (SqliteStore::open(&path).await.unwrap(), database().await);
        let stores: [(&dyn Store, &RunId); 2] = [(&file, &first), (&database, &second)];
        let mut left = Vec::new();
        for (store, id) in stores {
            left.push(Left::of(RunRecord::read(store, id).await.unwrap()));
        }
        <[Left; 2]>::try_from(left).unwrap()
    });
    assert_eq!(one.events, other.events);
    assert_eq!(one.receipt, other.receipt);
    // No file was created in addition to the database.
    assert!(!there.root().join("home/.local/share/moothall/moothall.db").exists());
    for command in [vec!["report", second.as_str()], vec!["moves", second.as_str()]] {
        let told = there.run(&command);
        assert_eq!(told.code, Some(0), "{told}");
    }
    let memo = |world: &World, id: &RunId| {
        let told = world.run(&["report", id.as_str(), "--format", "md"]);
        told.stdout.replace(id.as_str(), "RUN")
    };
    assert_eq!(memo(&there, &second), memo(&here, &first));
    let listed = there.run(&["runs", "--json", "--limit", "1000"]).json();
    let is_there = |row: &serde_json::Value| row["run_id"] == second.as_str();
    assert!(listed["runs"].as_array().unwrap().iter().any(is_there));
    let gone = there.run(&["runs", "rm", second.as_str(), "--yes"]);
    assert_eq!(gone.code, Some(0), "{gone}");
    assert_eq!(runtime.block_on(async { database().await.run(&second).await.unwrap() }), None);
}

#[test]
fn a_run_left_by_one_machine_resumes_on_another_only_once() {
    let (one, other) = (machine(), machine());
    let paused = one.run(&[&SMALL[..], &["--budget-tokens", "60000"]].concat());
    assert_eq!(paused.code, Some(5), "{paused}");
    let id = run_id(&paused);
    let runtime = Runtime::new().unwrap();
    let resume = ["resume", id.as_str(), "--budget-tokens", "9000000"];
    // A third machine executes it.
    let (store, held) = runtime.block_on(async {
        let store = database().await;
        let held = store.drive(&id).await.unwrap();
        (store, held.unwrap())
    });
    let refused = other.run(&resume);
    assert_ne!(refused.code, Some(0), "{refused}");
    let shown = other.run(&["show", id.as_str(), "--json"]).json();
    assert_eq!(shown["is_driven"], true);
    runtime.block_on(async {
        drop(held);
        store.close().await;
        while !database().await.driven(std::slice::from_ref(&id)).await.unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    let resumed = other.run(&resume);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let row = runtime.block_on(async { database().await.run(&id).await.unwrap().unwrap() });
    assert_eq!(row.state, moothall_store::RunState::Finished);
}

#[test]
fn a_panel_stopped_by_its_budget_resumes_in_postgres_with_the_same_tiers() {
    verdict::check_budget_stops(machine, |finished_stages| finished_stages == 1);
}

#[test]
fn the_database_password_is_never_shown_and_its_url_must_be_trusted() {
    let address = server();
    let (user, place) = address.rsplit_once('@').unwrap();
    let (user, password) = user.rsplit_once(':').unwrap();
    let told = |ran: Ran, words: &str| {
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(text.contains(words), "{ran}");
        assert!(!text.contains(password) && !text.contains("hunter2secret"), "{ran}");
    };
    let world = machine();
    told(world.run(&["config", "show"]), "connections = 8");
    told(world.run(&["runs", "--limit", "1", "-vv"]), "");
    told(world.run(&["backup", "runs.tar"]), "pg_dump");
    let wrong =
        World::new().with("MOOTHALL_DATABASE_URL", &format!("{user}:hunter2secret@{place}"));
    told(wrong.run(&["runs", "-vv"]), "password authentication failed");
    let remote = World::new().with(
        "MOOTHALL_DATABASE_URL",
        "postgres://u:hunter2secret@db.example.com/x?sslmode=disable",
    );
    told(remote.run(&["runs"]), "does not enforce TLS");
    let stray = World::new();
    stray.write("moothall.toml", "[store]\nurl = \"postgres://u@127.0.0.1:1/x\"\n");
    told(stray.run(&["runs"]), "an untrusted file in the working directory sets the database");
    let away = World::new().with("MOOTHALL_STORE__URL", "postgres://u@127.0.0.1:1/x");
    told(away.run(&["runs"]), "the database cannot be reached");
    let in_setting =
        World::new().with("MOOTHALL_STORE__URL", "postgres://u:hunter2secret@127.0.0.1:1/x");
    told(in_setting.run(&["runs"]), "must not contain a password");
}

/// The command blocks below a heading of a documentation page.
fn commands_of(page: &str, heading: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src").join(page);
    let text = fs_err::read_to_string(path).unwrap();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Runs commands as shown on the page, with `moothall` and PostgreSQL's programs on the path.
fn run_in_shell(world: &World, commands: &str, variables: &[(&str, &str)]) {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_moothall"));
    let install =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/postgres/install.sh");
    let found = std::process::Command::new("bash").arg(install).arg("--find").output().unwrap();
    let postgres = String::from_utf8(found.stdout).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", program.parent().unwrap().display(), postgres.trim());
    // The same home and directory as all other commands of the test.
    let mut command = world.command(&[]);
    let mut shell = std::process::Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", commands]).env_clear().current_dir(world.path(""));
    for (name, value) in command.env("PATH", path).get_envs() {
        shell.env(name, value.unwrap());
    }
    let output = shell.envs(variables.iter().copied()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{commands}\n{told}");
}

#[test]
fn the_documented_database_backup_restores_runs_drafts_and_audit_log() {
    let commands = commands_of("operations/backup.md", "Runs in PostgreSQL");
    let [back_up, restore] = &commands[..] else { panic!("two blocks of commands: {commands:?}") };
    let address = server();
    let (place, _) = address.rsplit_once('/').unwrap();
    let unique = uuid::Uuid::now_v7().simple().to_string();
    let [old, new] = ["drill_old_", "drill_new_"].map(|name| format!("{name}{unique}"));
    let [old_url, new_url] = [&old, &new].map(|name| format!("{place}/{name}"));
    let world = World::new().with("USER", "ada").with("MOOTHALL_DATABASE_URL", &old_url);
    let in_shell = |commands: &str, url: &str| {
        run_in_shell(&world, commands, &[("MOOTHALL_DATABASE_URL", url), ("ADMIN", &address)]);
    };
    in_shell(&format!("psql \"$ADMIN\" -qc 'CREATE DATABASE {old}'"), &old_url);
    let ran = world.run(&SMALL);
    assert_eq!(ran.code, Some(0), "{ran}");
    let id = run_id(&ran);
    crate::backup::draft_that_waits(&world);
    let told = |world: &World| {
        let shown = [vec!["runs", "--json"], vec!["show", id.as_str(), "--memo"]];
        let told = shown.map(|arguments| world.run(&arguments).stdout);
        (told, crate::backup::drafts_and_journal(world))
    };
    let before = told(&world);
    in_shell(back_up, &old_url);

    // Another machine with an empty database.
    crate::backup::lose_home(&world);
    in_shell(
        &format!("psql \"$ADMIN\" -qc 'DROP DATABASE {old}' -c 'CREATE DATABASE {new}'"),
        &old_url,
    );
    in_shell(restore, &new_url);
    let world = world.with("MOOTHALL_DATABASE_URL", &new_url);
    assert_eq!(told(&world), before);
    assert!(before.0[0].contains(id.as_str()), "{}", before.0[0]);
    run_in_shell(
        &world,
        &format!("psql \"$ADMIN\" -qc 'DROP DATABASE {new} WITH (FORCE)'"),
        &[("ADMIN", &address)],
    );
}
