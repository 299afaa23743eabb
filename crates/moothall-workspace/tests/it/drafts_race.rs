//! Concurrent changes to the workspace while it is written: a short version of `cargo xtask race`
//! (`MOOTHALL_TEST_RACE_SECONDS`).

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moothall_core::drafts::{DraftState, Principal};
use moothall_workspace::{DraftCaller, DraftEdit, FileRequirement, verify};

use crate::world::World;

fn seconds() -> Duration {
    let told = std::env::var("MOOTHALL_TEST_RACE_SECONDS").ok();
    Duration::from_secs(told.and_then(|told| told.parse().ok()).unwrap_or(2))
}

#[test]
fn a_directory_swapped_with_a_link_never_leads_outside() {
    let world = World::new(&[("in/a", "inside\n")]);
    let outside = world.folder.path().join("outside");
    fs_err::create_dir_all(&outside).unwrap();
    fs_err::write(outside.join("a"), "inside\n").unwrap();
    let (folder, aside) = (world.workspace().join("in"), world.workspace().join("aside"));
    let link = world.workspace().join("link");
    symlink(&outside, &link).unwrap();
    let done = AtomicBool::new(false);
    let (mut tried, mut applied) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let cwd = rustix::fs::CWD;
            let mut swaps: u32 = 0;
            while !done.load(Ordering::Relaxed) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                let _ = rustix::fs::renameat_with(cwd, &folder, cwd, &link, exchange);
                swaps = swaps.wrapping_add(1);
                // An odd number of swaps, so that the directory is in its place in every other pause.
                // Pauses are from 1 to 256 ms: long enough to apply a draft on a slow disk.
                if swaps.is_multiple_of(97) {
                    std::thread::sleep(Duration::from_millis(1 << (swaps % 9)));
                }
            }
        });
        let until = Instant::now() + seconds();
        let latest = until + Duration::from_secs(60);
        let store = world.open();
        while Instant::now() < until || (applied == 0 && Instant::now() < latest) {
            tried += 1;
            let who = DraftCaller::new(Principal::worker(format!("w/{tried}")));
            let Ok((draft, _)) = store.request(&who, "t", "in/a", FileRequirement::MayNot) else {
                continue;
            };
            let edit = DraftEdit::Content(format!("draft {tried}\n"));
            if store.write(&who, draft.id, edit, None).is_ok()
                && let Ok(submitted) = store.submit(&who, &[draft.id], "")
            {
                applied += usize::from(submitted.drafts[0].state == DraftState::Applied);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(tried > 10 && applied > 0, "{tried} drafts, {applied} applied");
    assert_eq!(fs_err::read_to_string(outside.join("a")).unwrap(), "inside\n");
    let names: Vec<_> = fs_err::read_dir(&outside).unwrap().collect();
    assert_eq!(names.len(), 1);
    assert!(!aside.exists());
    verify(&world.state(), None, |_| {}).unwrap();
}

#[test]
fn no_user_save_is_lost_while_drafts_are_applied() {
    let world = World::new(&[("a", "person 0\n")]);
    let path = world.workspace().join("a");
    let done = AtomicBool::new(false);
    let saves = AtomicU64::new(0);
    let mut applied = 0;
    std::thread::scope(|scope| {
        let saver = scope.spawn(|| {
            let mut lost = 0;
            while !done.load(Ordering::Relaxed) {
                // An editor saves by renaming over the file. Soon afterwards its content is either
                // still there, or a draft is based on it.
                let number = saves.fetch_add(1, Ordering::Relaxed) + 1;
                let text = format!("person {number}\n");
                let staged = path.with_extension("swp");
                fs_err::write(&staged, &text).unwrap();
                fs_err::rename(&staged, &path).unwrap();
                // From 1 to 512 ms: short pauses race with drafts, long ones let a slow disk apply one.
                std::thread::sleep(Duration::from_millis(1 << (number % 10)));
                // While a draft of an older save is exchanged and put back, that save is visible.
                let given_back = Instant::now() + Duration::from_secs(10);
                let is_there = || {
                    let now = fs_err::read_to_string(&path).unwrap();
                    // Any number of drafts may have been applied.
                    let drafts = now.strip_prefix(&text);
                    drafts.is_some_and(|drafts| drafts.lines().all(|line| line == "draft"))
                };
                while !is_there() {
                    if Instant::now() > given_back {
                        lost += 1;
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            lost
        });
        let store = world.open();
        let until = Instant::now() + seconds();
        let mut number = 0;
        // On a slow machine, continue until there were enough saves and drafts for a race.
        let enough = |applied: usize| saves.load(Ordering::Relaxed) > 20 && applied > 0;
        let latest = until + Duration::from_secs(60);
        while Instant::now() < until || (!enough(applied) && Instant::now() < latest) {
            number += 1;
            let who = DraftCaller::new(Principal::worker(format!("w/{number}")));
            let Ok((draft, text)) = store.request(&who, "t", "a", FileRequirement::Must) else {
                continue;
            };
            let edit = DraftEdit::Content(format!("{text}draft\n"));
            if store.write(&who, draft.id, edit, None).is_err() {
                continue;
            }
            if let Ok(submitted) = store.submit(&who, &[draft.id], "") {
                applied += usize::from(submitted.drafts[0].state == DraftState::Applied);
            }
        }
        done.store(true, Ordering::Relaxed);
        let (lost, saves) = (saver.join().unwrap(), saves.load(Ordering::Relaxed));
        assert_eq!(lost, 0, "of {saves}, with {applied} drafts applied");
        assert!(saves > 20 && applied > 0, "{saves} saves, {applied} drafts applied");
    });
}

#[test]
fn threads_that_open_a_new_store_concurrently_share_its_keys() {
    let names: Vec<String> = (0..16).map(|number| format!("file-{number}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "old\n")).collect();
    let world = World::new(&files);
    std::thread::scope(|scope| {
        for name in &names {
            let world = &world;
            scope.spawn(move || {
                let store = world.open();
                let who = DraftCaller::new(Principal::worker(name.clone()));
                let (draft, _) = store.request(&who, "t", name, FileRequirement::MayNot).unwrap();
                let edit = DraftEdit::Content("the same words\n".to_owned());
                store.write(&who, draft.id, edit, None).unwrap();
                store.submit(&who, &[draft.id], "").unwrap();
            });
        }
    });
    let now = |name: &String| fs_err::read_to_string(world.workspace().join(name)).unwrap();
    assert_eq!(names.iter().map(now).collect::<Vec<_>>(), ["the same words\n"; 16]);
    verify(&world.state(), None, |_| {}).unwrap();
}
