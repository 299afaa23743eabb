//! Acknowledged commits survive `kill -9`.

use std::collections::BTreeMap;
use std::env;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use moothall_store::{SqliteStore, Store};

use crate::support::{SqlitePlace, answered, event, new_run, numbers, run_id};

const FILE: &str = "MOOTHALL_STORE_TEST_FILE";
const NAME: &str = "MOOTHALL_STORE_TEST_NAME";

/// A process that is killed when the test ends.
struct Writer(Child);

impl Writer {
    fn spawn(file: &Path, name: &str) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture"])
            .arg("crash::the_process_that_is_killed")
            .env(FILE, file)
            .env(NAME, name)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SIGKILL, on Unix.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Commits until it is killed and acknowledges each commit on stdout. It is a test because a test
/// binary has no other entry point; on its own it does nothing.
#[tokio::test]
#[ignore = "the other half of acknowledged_commits_survive_kill_9"]
async fn the_process_that_is_killed() {
    let (Some(file), Some(name)) = (env::var_os(FILE), env::var(NAME).ok()) else { return };
    let store = SqliteStore::open(&PathBuf::from(file)).await.unwrap();
    for number in 0.. {
        let name = format!("{name}-{number}");
        let stored = store.commit(&run_id(1), answered(&name)).await.unwrap();
        let seq = stored[0].seq;
        // If no one reads stdout, the test is over.
        if writeln!(std::io::stdout(), "ack {name} {seq} .").is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn acknowledged_commits_survive_kill_9() {
    for round in 0..6 {
        let place = SqlitePlace::new();
        let id = run_id(1);
        let store = SqliteStore::open(&place.path()).await.unwrap();
        store.create_run(new_run(&id)).await.unwrap();
        // The last process to close the file merges the side files; a killed one does not.
        store.close().await;

        let moment = RandomState::new().hash_one(round) % 80;
        let mut writers =
            ["first", "second"].map(|name| (Writer::spawn(&place.path(), name), BTreeMap::new()));
        let mut lines = Vec::new();
        for (writer, _) in &mut writers {
            lines.push(BufReader::new(writer.0.stdout.take().unwrap()).lines());
        }
        let hear = |line: String, acknowledged: &mut BTreeMap<String, u64>| {
            // The test harness also writes to stdout, and the last line may be incomplete.
            if let ["ack", name, seq, "."] = line.split(' ').collect::<Vec<_>>()[..] {
                acknowledged.insert(name.to_owned(), seq.parse().unwrap());
            }
        };
        for (lines, (_, acknowledged)) in lines.iter_mut().zip(&mut writers) {
            while (acknowledged.len() as u64) < moment {
                hear(lines.next().unwrap().unwrap(), acknowledged);
            }
        }
        for (lines, (writer, mut acknowledged)) in lines.into_iter().zip(writers) {
            drop(writer);
            lines.for_each(|line| hear(line.unwrap(), &mut acknowledged));
            check(&place, &acknowledged).await;
        }
    }
}

async fn check(place: &SqlitePlace, acknowledged: &BTreeMap<String, u64>) {
    let id = run_id(1);
    let store = SqliteStore::open(&place.path()).await.unwrap();
    let events = store.events(&id, 0, u32::MAX).await.unwrap();
    assert_eq!(numbers(&events), (1..=events.len() as u64).collect::<Vec<_>>());
    let journal = store.journal(&id).await.unwrap();
    let places: BTreeMap<_, _> =
        events.iter().map(|stored| (stored.event.key.clone(), stored.seq)).collect();
    for (name, seq) in acknowledged {
        assert_eq!(places.get(&event(name, "").key), Some(seq), "{name}");
        assert!(journal.contains_key(&name.parse().unwrap()), "{name}");
        assert_eq!(store.commit(&id, answered(name)).await.unwrap(), []);
    }
    store.close().await;
}
