//! Tampering with the journal.

use moothall_core::Sha256Hex;
use moothall_workspace::{
    DraftError, DraftStore, DraftStoreOptions, JournalAnchor, JournalHead, JournalVerification,
    torn_files, verify,
};

use crate::world::{World, drafted, request, write};

fn with_records() -> (World, JournalVerification) {
    let world = World::new(&[("a", "a\n")]);
    let store = world.open();
    drafted(&store, "a", "b\n");
    let verified = verify(&world.state(), None, |_| {}).unwrap();
    (world, verified)
}

fn lines(world: &World) -> Vec<String> {
    world.journal().lines().map(str::to_owned).collect()
}

fn put(world: &World, lines: &[String]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs_err::write(world.state().join("audit/000001.ndjson"), text).unwrap();
}

#[track_caller]
fn damaged_at(world: &World, wanted: u64) {
    for result in [
        verify(&world.state(), None, |_| {}).map(|_| ()),
        DraftStore::open(world.options()).map(|_| ()),
    ] {
        match result {
            Err(DraftError::JournalDamaged { seq, .. }) => assert_eq!(seq, wanted),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_changed_deleted_or_moved_record_is_located_and_blocks_opening() {
    let (world, _) = with_records();
    let whole = lines(&world);
    let mut changed = whole.clone();
    changed[1] = changed[1].replace("written", "wriiten");
    put(&world, &changed);
    damaged_at(&world, 2);
    let mut deleted = whole.clone();
    deleted.remove(2);
    put(&world, &deleted);
    damaged_at(&world, 3);
    let mut moved = whole;
    moved.swap(1, 2);
    put(&world, &moved);
    damaged_at(&world, 2);
}

#[test]
fn a_truncated_journal_is_detected_with_an_anchor() {
    let (world, JournalVerification { head, .. }) = with_records();
    let whole = lines(&world);
    // The first record has a signed checkpoint; only an anchor detects that later ones are missing.
    put(&world, &whole[..2]);
    assert_eq!(verify(&world.state(), None, |_| {}).unwrap().head.seq, 2);
    let error = verify(&world.state(), Some(head.into()), |_| {}).unwrap_err();
    assert!(error.to_string().contains("before the anchor"), "{error}");
    let other = JournalHead { seq: 2, hash: Sha256Hex::of(b"other") };
    let error = verify(&world.state(), Some(other.into()), |_| {}).unwrap_err();
    assert!(error.to_string().contains("differs from the anchor"), "{error}");
}

#[test]
fn signed_checkpoints_detect_a_rewritten_journal_and_forgeries() {
    let (world, verified) = with_records();
    assert_eq!(verified.checkpoints, 1);
    assert!(verified.key.starts_with("moothall-audit+"), "{}", verified.key);
    put(&world, &[]);
    let error = verify(&world.state(), None, |_| {}).unwrap_err();
    assert!(error.to_string().contains("signed checkpoint"), "{error}");
    let note = world.state().join("checkpoints/000000000001.note");
    let forged = fs_err::read_to_string(&note).unwrap().replacen("\n1\n", "\n2\n", 1);
    fs_err::write(&note, forged).unwrap();
    assert!(verify(&world.state(), None, |_| {}).is_err());
}

#[test]
fn a_torn_tail_is_cut_and_kept_aside() {
    let (world, verified) = with_records();
    let mut text = world.journal();
    text.push_str("{\"seq\":99,\"prev\":\"half a rec");
    fs_err::write(world.state().join("audit/000001.ndjson"), text).unwrap();
    let store = world.open();
    assert_eq!(store.head().unwrap(), verified.head);
    let torn = fs_err::read_to_string(world.state().join("audit/000001.torn")).unwrap();
    assert!(torn.contains("half a rec"));
    request(&store, "a");
    assert_eq!(verify(&world.state(), None, |_| {}).unwrap().head.seq, verified.head.seq + 1);
}

#[test]
fn the_hash_chain_continues_across_journal_files() {
    let world = World::new(&[("a", "a\n")]);
    let options = || DraftStoreOptions { rotate_at: Some(1500), ..world.options() };
    let store = DraftStore::open(options()).unwrap();
    let id = request(&store, "a");
    for at in 0..20 {
        write(&store, id, &format!("{at}\n"));
    }
    let verified = verify(&world.state(), None, |_| {}).unwrap();
    assert!(verified.files > 3 && verified.checkpoints > 3, "{verified:?}");
    assert_eq!(store.head().unwrap(), verified.head);
    let again = DraftStore::open(options()).unwrap();
    assert_eq!(again.head().unwrap(), verified.head);
    // A missing file in the middle is detected.
    fs_err::remove_file(world.state().join("audit/000002.ndjson")).unwrap();
    assert!(verify(&world.state(), None, |_| {}).is_err());
}

#[test]
fn eight_writers_make_one_chain() {
    let world = World::new(&[("a", "a\n")]);
    let stores: Vec<DraftStore> = (0..8).map(|_| world.open()).collect();
    let id = request(&stores[0], "a");
    std::thread::scope(|scope| {
        for (number, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                for at in 0..10 {
                    write(store, id, &format!("{number} {at}\n"));
                }
            });
        }
    });
    assert_eq!(verify(&world.state(), None, |_| {}).unwrap().head.seq, 81);
}

fn anchored(world: &World) -> DraftStoreOptions {
    DraftStoreOptions { anchor: Some(world.folder.path().join("anchors/ws")), ..world.options() }
}

#[track_caller]
fn fails_with(result: Result<JournalVerification, DraftError>, words: &str) {
    match result {
        Err(error @ DraftError::JournalDamaged { .. }) => {
            assert!(error.to_string().contains(words), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

/// Regression test: `audit verify` passed for thousands of records without a single checkpoint
/// file.
#[test]
fn missing_checkpoint_files_fail_verification() {
    let world = World::new(&[("a", "a\n")]);
    let store = DraftStore::open(anchored(&world)).unwrap();
    let id = request(&store, "a");
    for _ in 0..600 {
        write(&store, id, "b\n");
    }
    let notes = world.state().join("checkpoints");
    let mut names: Vec<_> =
        fs_err::read_dir(&notes).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(store.verify(|_| {}).unwrap().checkpoints, 3);
    for gone in &names {
        let text = fs_err::read(gone).unwrap();
        fs_err::remove_file(gone).unwrap();
        fails_with(store.verify(|_| {}), "a signed checkpoint is missing");
        fs_err::write(gone, text).unwrap();
    }
    store.verify(|_| {}).unwrap();
    for gone in &names {
        fs_err::remove_file(gone).unwrap();
    }
    // Also without an anchor: this many records must have a checkpoint.
    fails_with(verify(&world.state(), None, |_| {}), "a signed checkpoint is missing");
}

#[test]
fn journal_that_ends_before_its_kept_anchor_fails_verification() {
    let world = World::new(&[("a", "a\n")]);
    let store = DraftStore::open(anchored(&world)).unwrap();
    drafted(&store, "a", "b\n");
    let head = store.verify(|_| {}).unwrap().head;
    let path = world.folder.path().join("anchors/ws");
    let anchor = JournalAnchor::read(&path).unwrap().unwrap();
    assert_eq!(anchor, JournalAnchor { head, checkpoint: 1 });
    let whole = lines(&world);
    put(&world, &whole[..2]);
    fails_with(store.verify(|_| {}), "the journal ends before the anchor");
    // A store that continues with the truncated journal never moves the anchor.
    let again = DraftStore::open(anchored(&world)).unwrap();
    let id = request(&again, "a");
    for _ in 0..6 {
        write(&again, id, "c\n");
    }
    assert_eq!(JournalAnchor::read(&path).unwrap(), Some(anchor));
    fails_with(again.verify(|_| {}), "differs from the anchor");
    let third = DraftStore::open(anchored(&world)).unwrap();
    write(&third, id, "d\n");
    assert_eq!(JournalAnchor::read(&path).unwrap(), Some(anchor));
}

/// Regression test: the next command moved the record aside, and verification passed again.
#[test]
fn a_changed_last_record_is_not_moved_aside_and_blocks_opening() {
    let (world, JournalVerification { head, .. }) = with_records();
    let mut changed = lines(&world);
    let last = changed.last_mut().unwrap();
    *last = last.replace("done", "dome");
    put(&world, &changed);
    damaged_at(&world, head.seq);
    damaged_at(&world, head.seq);
    assert_eq!(torn_files(&world.state()).unwrap(), []);
}

#[test]
fn torn_files_are_reported_and_changed_records_in_them_fail() {
    let (world, _) = with_records();
    let whole = lines(&world);
    let torn = world.state().join("audit/000001.torn");
    fs_err::write(&torn, format!("{{\"seq\":99,\"prev\":\"half\n{}\n", whole[1])).unwrap();
    verify(&world.state(), None, |_| {}).unwrap();
    let found = torn_files(&world.state()).unwrap();
    let names: Vec<_> = found.iter().map(|torn| (torn.file.as_str(), torn.bytes)).collect();
    assert_eq!(names, [("000001.torn", fs_err::metadata(&torn).unwrap().len())]);
    fs_err::write(&torn, whole[1].replace("written", "wriiten")).unwrap();
    fails_with(verify(&world.state(), None, |_| {}), "was moved aside");
}

/// Regression test: the records before it were read twice, so the journal seemed damaged.
#[test]
fn a_torn_tail_that_cannot_be_cut_off_is_cut_off_later() {
    let (world, _) = with_records();
    let store = world.open();
    let head = {
        let other = world.open();
        request(&other, "a");
        other.head().unwrap()
    };
    let journal = world.state().join("audit/000001.ndjson");
    fs_err::write(&journal, format!("{}{{\"seq\":99,\"prev\":\"ha", world.journal())).unwrap();
    let in_the_way = world.state().join("audit/000001.torn");
    fs_err::create_dir(&in_the_way).unwrap();
    for _ in 0..2 {
        let error = store.head().unwrap_err();
        assert!(matches!(error, DraftError::Io { .. }), "{error}");
    }
    fs_err::remove_dir(&in_the_way).unwrap();
    assert_eq!(store.head().unwrap(), head);
    assert_eq!(verify(&world.state(), None, |_| {}).unwrap().head, head);
}
