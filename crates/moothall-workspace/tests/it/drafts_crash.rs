//! Processes that are killed midway, and full disks.

use std::io;
use std::process::Command;

use moothall_core::drafts::{DraftId, DraftState};
use moothall_workspace::{DraftError, DraftStore, DraftStoreOptions, FailPoint, verify};

use crate::world::{World, drafted, request, submit, worker, write};

const POINTS: &[(&str, FailPoint)] = &[
    ("blob", FailPoint::Blob),
    ("journal", FailPoint::Journal),
    ("journal-sync", FailPoint::JournalSync),
    ("before-intent", FailPoint::BeforeIntent),
    ("after-intent", FailPoint::AfterIntent),
    ("staging", FailPoint::Staging),
    ("staged", FailPoint::Staged),
    ("exchanged", FailPoint::Exchanged),
    ("unlinked", FailPoint::Unlinked),
    ("before-end", FailPoint::BeforeEnd),
];

const WHERE: &str = "MOOTHALL_TEST_CRASH_AT";
const FOLDER: &str = "MOOTHALL_TEST_CRASH_FOLDER";

/// Not a test: a helper process that the tests below start. It submits two drafts together and
/// kills itself at the named point of the last file.
#[test]
#[ignore = "a helper that other tests start"]
fn child_that_dies() {
    let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let at = std::env::var(WHERE).unwrap();
    let point = POINTS.iter().find(|(name, _)| *name == at).unwrap().1;
    let plain = DraftStoreOptions::new(folder.join("ws"), folder.join("state"));
    let store = DraftStore::open(plain).unwrap();
    let ids = [request(&store, "a"), request(&store, "b")];
    for id in ids {
        write(&store, id, "new\n");
    }
    drop(store);
    // Points within a file are reached once per file. Stop at the second, so that one file is
    // changed and the other is not.
    let twice = matches!(
        point,
        FailPoint::Staging | FailPoint::Staged | FailPoint::Exchanged | FailPoint::Unlinked
    );
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let options = DraftStoreOptions {
        reached: Box::new(move |reached| {
            let times = match reached == point {
                true => seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1,
                false => 0,
            };
            if times == if twice { 2 } else { 1 } {
                let me = rustix::process::getpid();
                rustix::process::kill_process(me, rustix::process::Signal::KILL)?;
                loop {
                    std::thread::park();
                }
            }
            Ok(())
        }),
        ..DraftStoreOptions::new(folder.join("ws"), folder.join("state"))
    };
    let store = DraftStore::open(options).unwrap();
    if point == FailPoint::Blob {
        write(&store, ids[0], "newer\n");
    }
    submit(&store, &ids);
}

fn crash(world: &World, at: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "drafts_crash::child_that_dies", "--ignored", "--nocapture"])
        .env(WHERE, at)
        .env(FOLDER, world.folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(status.signal(), Some(9), "{at}: {status}");
}

#[test]
fn an_apply_killed_at_any_point_is_finished_by_the_next_process() {
    for (at, _) in POINTS {
        let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
        crash(&world, at);
        let before: Vec<String> = ["a", "b"].iter().map(|name| world.text(name).unwrap()).collect();
        for text in &before {
            assert!(["a\n", "b\n", "new\n"].contains(&text.as_str()), "{at}: {before:?}");
        }
        let store = world.open();
        let drafts = store.list(&worker()).unwrap();
        let ids: Vec<DraftId> = drafts.iter().map(|draft| draft.id).collect();
        // Nothing was submitted if the process died before its first record.
        if drafts.iter().all(|draft| draft.state == DraftState::Editing) {
            assert!(["blob", "journal", "journal-sync"].contains(at), "{at}");
            submit(&store, &ids);
        }
        assert_eq!(["a", "b"].map(|name| world.text(name).unwrap()), ["new\n"; 2], "{at}");
        assert_eq!(world.names(), ["a", "b"], "{at}");
        drop(store);
        world.open();
        let done = world.journal().matches("\"kind\":\"ended\"").count();
        assert_eq!(done, 1, "{at}");
        verify(&world.state(), None, |_| {}).unwrap();
    }
}

#[test]
fn user_content_swapped_out_before_a_crash_is_kept() {
    let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
    crash(&world, "staged");
    let staged = world.names().into_iter().find(|name| name.starts_with(".moothall-")).unwrap();
    // A person saved the file, and the process died right after exchanging the files.
    world.save("b", "work of a person\n");
    let (staged, original) = (world.workspace().join(staged), world.workspace().join("b"));
    let cwd = rustix::fs::CWD;
    rustix::fs::renameat_with(cwd, &staged, cwd, &original, rustix::fs::RenameFlags::EXCHANGE)
        .unwrap();
    world.open();
    let kept = world.names().into_iter().find(|name| name.contains("moothall-saved")).unwrap();
    assert_eq!(world.text(&kept).unwrap(), "work of a person\n");
    assert!(world.journal().contains("\"kind\":\"salvaged\""));
}

#[test]
fn a_user_save_during_the_exchange_is_restored() {
    let world = World::new(&[("a", "a\n")]);
    let path = world.workspace().join("a");
    let options = DraftStoreOptions {
        reached: Box::new(move |point| {
            if point == FailPoint::Staged {
                fs_err::write(&path, "person\n")?;
            }
            Ok(())
        }),
        ..world.options()
    };
    let store = DraftStore::open(options).unwrap();
    let (_, submitted) = drafted(&store, "a", "draft\n");
    assert_eq!(submitted.drafts[0].state, DraftState::Conflict);
    assert_eq!(world.text("a").unwrap(), "person\n");
    assert_eq!(world.names(), ["a"]);
}

#[test]
fn a_full_disk_at_any_write_leaves_no_partial_file() {
    for (at, full) in POINTS {
        let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
        let store = world.open();
        let ids = [request(&store, "a"), request(&store, "b")];
        for id in ids {
            write(&store, id, "new\n");
        }
        drop(store);
        let full = *full;
        let options = DraftStoreOptions {
            reached: Box::new(move |point| match point == full {
                true => Err(io::Error::from(io::ErrorKind::StorageFull)),
                false => Ok(()),
            }),
            ..world.options()
        };
        let store = DraftStore::open(options).unwrap();
        if full == FailPoint::Blob {
            store
                .write(
                    &worker(),
                    ids[0],
                    moothall_workspace::DraftEdit::Content("more\n".into()),
                    None,
                )
                .unwrap_err();
        } else {
            store.submit(&worker(), &ids, "").unwrap_err();
        }
        drop(store);
        // Once there is space again, the operation completes and leaves no files behind.
        let store = world.open();
        let states: Vec<DraftState> =
            store.list(&worker()).unwrap().iter().map(|draft| draft.state).collect();
        let texts = ["a", "b"].map(|name| world.text(name).unwrap());
        assert!(texts == ["a\n", "b\n"] || texts == ["new\n", "new\n"], "{at}: {texts:?}");
        let applied = states == [DraftState::Applied; 2];
        assert_eq!(applied, texts[0] == "new\n", "{at}: {states:?}");
        assert_eq!(world.names(), ["a", "b"], "{at}");
        verify(&world.state(), None, |_| {}).unwrap();
    }
}

/// Regression test: one failed write closed the journal until the process was restarted.
#[test]
fn a_failed_journal_write_changes_nothing_and_is_retried() {
    for full in [FailPoint::Journal, FailPoint::JournalSync] {
        let world = World::new(&[("a", "a\n")]);
        let failing = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let fails = std::sync::Arc::clone(&failing);
        let options = DraftStoreOptions {
            reached: Box::new(move |point| {
                let now = fails.load(std::sync::atomic::Ordering::SeqCst);
                match point == full && now {
                    true => Err(io::Error::from(io::ErrorKind::StorageFull)),
                    false => Ok(()),
                }
            }),
            ..world.options()
        };
        let store = DraftStore::open(options).unwrap();
        let id = request(&store, "a");
        let before = world.journal();
        failing.store(true, std::sync::atomic::Ordering::SeqCst);
        let edit = moothall_workspace::DraftEdit::Content("b\n".into());
        for _ in 0..2 {
            let error = store.write(&worker(), id, edit.clone(), None).unwrap_err();
            assert!(matches!(error, DraftError::Io { .. }), "{error}");
            assert!(store.is_journal_failing());
            store.check_journal().unwrap_err();
        }
        assert_eq!(world.journal(), before, "{full:?}");
        assert_eq!(store.status(&worker(), id).unwrap().revision, 0);
        failing.store(false, std::sync::atomic::Ordering::SeqCst);
        store.check_journal().unwrap();
        assert!(!store.is_journal_failing());
        assert_eq!(store.write(&worker(), id, edit, None).unwrap().revision, 1);
        assert_eq!(submit(&store, &[id]).drafts[0].state, DraftState::Applied);
        assert_eq!(world.text("a").unwrap(), "b\n");
        verify(&world.state(), None, |_| {}).unwrap();
    }
}

#[test]
fn a_submission_recovers_from_a_failed_journal_write() {
    let world = World::new(&[("a", "a\n")]);
    let left = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(usize::MAX));
    let counted = std::sync::Arc::clone(&left);
    let options = DraftStoreOptions {
        reached: Box::new(move |point| {
            let one = |left: usize| left.checked_sub(1);
            let order = std::sync::atomic::Ordering::SeqCst;
            match point == FailPoint::JournalSync
                && counted.fetch_update(order, order, one).is_err()
            {
                true => Err(io::Error::from(io::ErrorKind::StorageFull)),
                false => Ok(()),
            }
        }),
        ..world.options()
    };
    let store = DraftStore::open(options).unwrap();
    // A submission has four records; each of them fails once.
    for (at, text) in (0..4).zip(["b\n", "c\n", "d\n", "e\n"]) {
        let id = request(&store, "a");
        write(&store, id, text);
        left.store(at, std::sync::atomic::Ordering::SeqCst);
        store.submit(&worker(), &[id], "").unwrap_err();
        left.store(usize::MAX, std::sync::atomic::Ordering::SeqCst);
        if store.status(&worker(), id).unwrap().state == DraftState::Editing {
            submit(&store, &[id]);
        }
        assert_eq!(store.status(&worker(), id).unwrap().state, DraftState::Applied, "{at}");
        assert_eq!(world.text("a").unwrap(), text, "{at}");
        verify(&world.state(), None, |_| {}).unwrap();
    }
}

/// Regression test: the operation failed although its record was durable, and a restart was needed.
#[test]
fn an_unsigned_checkpoint_is_signed_before_the_next_records() {
    let world = World::new(&[("a", "a\n")]);
    let store = world.open();
    let id = request(&store, "a");
    let notes = world.state().join("checkpoints");
    let aside = world.state().join("aside");
    fs_err::rename(&notes, &aside).unwrap();
    fs_err::write(&notes, "in the way").unwrap();
    for _ in 0..256 {
        write(&store, id, "b\n");
    }
    assert!(store.is_journal_failing());
    let edit = moothall_workspace::DraftEdit::Content("c\n".into());
    store.write(&worker(), id, edit, None).unwrap_err();
    fs_err::remove_file(&notes).unwrap();
    fs_err::rename(&aside, &notes).unwrap();
    write(&store, id, "c\n");
    assert!(!store.is_journal_failing());
    assert_eq!(verify(&world.state(), None, |_| {}).unwrap().checkpoints, 2);
}

const NAME: &str = "MOOTHALL_TEST_WRITER";
const EDITS: usize = 12;
const WRITERS: usize = 6;

/// Not a test: a writer process that adds its own lines to one file, one draft per line, and can be
/// killed and restarted at any point.
#[test]
#[ignore = "a helper that other tests start"]
fn child_that_writes() {
    let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let name = std::env::var(NAME).unwrap();
    let who = moothall_workspace::DraftCaller::new(moothall_core::drafts::Principal::worker(&name));
    let options = DraftStoreOptions::new(folder.join("ws"), folder.join("state"));
    let store = DraftStore::open(options).unwrap();
    for at in 0..EDITS {
        let line = format!("{name} {at}\n");
        loop {
            let there = fs_err::read_to_string(folder.join("ws/a")).unwrap();
            if there.contains(&line) {
                break;
            }
            let must = moothall_workspace::FileRequirement::Must;
            let (draft, text) = store.request(&who, "t", "a", must).unwrap();
            if !text.contains(&line) {
                let edit = moothall_workspace::DraftEdit::Content(format!("{text}{line}"));
                store.write(&who, draft.id, edit, None).unwrap();
            }
            // If it was killed after the verdict, the draft is already applied.
            let Ok(submitted) = store.submit(&who, &[draft.id], "") else { continue };
            if submitted.drafts[0].state != DraftState::Applied {
                store.discard(&who, draft.id).unwrap();
            }
        }
    }
}

#[test]
fn killed_writers_lose_and_duplicate_no_line() {
    let world = World::new(&[("a", "begin\n")]);
    let start = |number: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "drafts_crash::child_that_writes", "--ignored", "--nocapture"])
            .env(NAME, format!("writer-{number}"))
            .env(FOLDER, world.folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut writers: Vec<_> = (0..WRITERS).map(start).collect();
    let mut kills = 0;
    // The order of victims is fixed; the point at which each is killed is not.
    for victim in (0..WRITERS).cycle().take(WRITERS * 2) {
        std::thread::sleep(std::time::Duration::from_millis(120));
        if writers[victim].try_wait().unwrap().is_none() {
            writers[victim].kill().unwrap();
            kills += 1;
        }
        writers[victim].wait().unwrap();
        writers[victim] = start(victim);
    }
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let text = world.text("a").unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let mut wanted: Vec<String> = (0..WRITERS)
        .flat_map(|number| (0..EDITS).map(move |at| format!("writer-{number} {at}")))
        .chain(["begin".to_owned()])
        .collect();
    wanted.sort_unstable();
    assert_eq!(lines, wanted, "after {kills} kills");
    assert!(kills > 0);
    assert_eq!(world.names(), ["a"]);
    verify(&world.state(), None, |_| {}).unwrap();
}
