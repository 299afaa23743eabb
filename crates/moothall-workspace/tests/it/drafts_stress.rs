//! Many processes submit, approve and verify at the same time while some are killed: the chain
//! verifies, no draft is lost and no set is partly applied. `cargo xtask race` runs it with fifty
//! processes for a minute.

#![allow(clippy::print_stdout, reason = "tests print what they measured")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use moothall_core::drafts::{DraftId, DraftState, Principal, ReviewDecision};
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftError, DraftStore, DraftStoreOptions, FileRequirement, verify,
};

use crate::world::{World, person};

const FOLDER: &str = "MOOTHALL_TEST_STRESS_FOLDER";
const ROLE: &str = "MOOTHALL_TEST_STRESS_ROLE";
const SECONDS: &str = "MOOTHALL_TEST_RACE_SECONDS";

/// Files that a worker changes together. The last one is protected, so the submission needs review.
const FILES: [&str; 3] = ["a.txt", "b.txt", "Makefile"];

fn open(folder: &Path) -> DraftStore {
    let options = || DraftStoreOptions::new(folder.join("ws"), folder.join("state"));
    patient(|| DraftStore::open(options()))
}

fn is_over(folder: &Path) -> bool {
    folder.join("over").exists()
}

/// Not a test: one of the processes, which runs until it is killed or told to stop.
#[test]
#[ignore = "a helper that another test starts"]
fn child_of_the_crowd() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let role = std::env::var(ROLE).unwrap();
    let store = open(&folder);
    while !is_over(&folder) {
        match role.as_str() {
            "approver" => approve(&store),
            "verifier" => check_chain(&folder, &store),
            worker => work(&folder, &store, worker),
        }
    }
}

/// Retries while other processes hold the lock, for example on a machine with too much to do.
fn patient<T>(request: impl Fn() -> Result<T, DraftError>) -> T {
    loop {
        match request() {
            Err(DraftError::Busy) => {}
            other => return other.unwrap(),
        }
    }
}

/// A reader takes no lock, so the last line may be incomplete at the moment; a broken chain stays
/// broken.
fn check_chain(folder: &Path, store: &DraftStore) {
    let holds = || {
        // Opening the journal moves aside what a killed process left incomplete.
        patient(|| store.head());
        verify(&folder.join("state"), None, |_| {}).is_ok()
    };
    let pause = || std::thread::sleep(Duration::from_millis(20));
    assert!(
        (0..50).any(|_| holds() || {
            pause();
            false
        }),
        "the chain is broken"
    );
}

/// A set of files with the same number.
fn work(folder: &Path, store: &DraftStore, name: &str) {
    let who = DraftCaller::new(Principal::worker(name));
    let text = fs_err::read_to_string(folder.join(format!("ws/{name}/a.txt"))).unwrap();
    let number = text.trim().parse::<u64>().unwrap() + 1;
    let files = if number.is_multiple_of(3) { &FILES[..] } else { &FILES[..2] };
    let mut ids: Vec<DraftId> = Vec::new();
    for file in files {
        let path = format!("{name}/{file}");
        let Ok((draft, _)) = store.request(&who, "t", &path, FileRequirement::Must) else { return };
        note(folder, name, draft.id);
        let edit = DraftEdit::Content(format!("{number}\n"));
        if store.write(&who, draft.id, edit, None).is_err() {
            return;
        }
        ids.push(draft.id);
    }
    let Ok(submitted) = store.submit(&who, &ids, "counts") else { return };
    let mut state = submitted.drafts[0].state;
    let until = Instant::now() + Duration::from_secs(2);
    while state == DraftState::Escalated && Instant::now() < until && !is_over(folder) {
        std::thread::sleep(Duration::from_millis(20));
        state = patient(|| store.status(&who, ids[0])).state;
    }
    for id in ids.iter().filter(|_| state != DraftState::Applied) {
        // Discard drafts that were not applied, and start again.
        let _ = store.discard(&who, *id);
    }
}

/// Records a worker's draft in a file that outlives the process.
fn note(folder: &Path, name: &str, id: DraftId) {
    let path = folder.join(format!("known-{name}"));
    let mut file = fs_err::OpenOptions::new().create(true).append(true).open(path).unwrap();
    std::io::Write::write_all(&mut file, format!("{id}\n").as_bytes()).unwrap();
}

fn approve(store: &DraftStore) {
    let waiting = patient(|| store.list(&person()));
    for draft in waiting.iter().filter(|draft| draft.state == DraftState::Escalated) {
        let Some(submission) = &draft.submission else { continue };
        // Another approver, or the worker itself, may be faster.
        let _ = store.review(&person(), draft.id, submission.seal, ReviewDecision::Approve, "");
    }
    std::thread::sleep(Duration::from_millis(10));
}

fn start(folder: &Path, role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "drafts_stress::child_of_the_crowd", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn killed_processes_lose_no_draft_and_leave_no_partial_submission() {
    let seconds: Option<u64> = std::env::var(SECONDS).ok().map(|text| text.parse().unwrap());
    let processes = if seconds.is_some() { 50 } else { 8 };
    let world = World::new(&[]);
    let folder = world.folder.path();
    let roles: Vec<String> = (0..processes)
        .map(|at| match at % 8 {
            6 => "approver".to_owned(),
            7 => "verifier".to_owned(),
            _ => format!("w{at}"),
        })
        .collect();
    let workers: Vec<&String> = roles.iter().filter(|role| role.starts_with('w')).collect();
    for worker in &workers {
        FILES.iter().for_each(|file| world.save(&format!("{worker}/{file}"), "0\n"));
    }
    let mut crowd: Vec<Child> = roles.iter().map(|role| start(folder, role)).collect();
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(6));
    let (mut random, mut kills) = (8_u64, 0_u32);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(40));
        // The choice of victims is fixed; the point at which each is killed is not.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let victim = (random >> 33) as usize % crowd.len();
        if crowd[victim].try_wait().unwrap().is_none() {
            crowd[victim].kill().unwrap();
            kills += 1;
            crowd[victim].wait().unwrap();
        } else {
            // No process exits by itself, except a verifier that found a broken chain.
            panic!("{} gave up", roles[victim]);
        }
        crowd[victim] = start(folder, &roles[victim]);
    }
    fs_err::write(folder.join("over"), "").unwrap();
    for (mut child, role) in crowd.into_iter().zip(&roles) {
        assert!(child.wait().unwrap().success(), "{role}");
    }

    let store = open(folder);
    let drafts = store.list(&person()).unwrap();
    let under_way = |state| {
        matches!(state, DraftState::Submitted | DraftState::Accepted | DraftState::Applying)
    };
    assert!(!drafts.iter().any(|draft| under_way(draft.state)));
    let mut done = 0;
    for worker in workers {
        let texts = FILES.map(|file| world.text(&format!("{worker}/{file}")).unwrap());
        assert_eq!(texts[0], texts[1], "a half-applied set of {worker}");
        done += texts[0].trim().parse::<u64>().unwrap();
        let known = fs_err::read_to_string(folder.join(format!("known-{worker}")));
        for id in known.unwrap_or_default().lines() {
            assert!(drafts.iter().any(|draft| draft.id.to_string() == id), "{id} is lost");
        }
    }
    let left = world.names().into_iter().filter(|name| name.contains(".moothall")).count();
    let records = verify(&world.state(), None, |_| {}).unwrap().head.seq;
    assert_eq!(left, 0, "staging files are left");
    assert!(kills > 0 && done > 0, "{kills} kills, {done} sets");
    println!("{processes} processes: {done} sets applied, {kills} kills, {records} records");
}
