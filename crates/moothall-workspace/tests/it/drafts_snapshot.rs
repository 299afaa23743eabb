//! Opening a store from its snapshot instead of its whole journal.

use std::path::PathBuf;
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    ApplyOutcome, AuditRecord, DraftEvent, DraftId, FileState, FileStep, Principal, ProposedChange,
    RelPath, TaskId,
};
use moothall_core::gate::GateAction;
use moothall_workspace::{DraftError, DraftStore, DraftStoreOptions, JournalHead, verify};
use rustix::time::{ClockId, clock_gettime};

use crate::world::{World, drafted, request, worker, write};

fn snapshot(world: &World) -> PathBuf {
    world.state().join("snapshot.json")
}

/// A store with an applied draft, an open draft and a snapshot at record 257, with later records.
fn with_snapshot() -> (World, DraftId) {
    let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
    let store = world.open();
    drafted(&store, "a", "new\n");
    let open = request(&store, "b");
    for _ in 0..260 {
        write(&store, open, "c\n");
    }
    let text = fs_err::read_to_string(snapshot(&world)).unwrap();
    assert!(text.contains("\"seq\":257,"), "{}", text.lines().next().unwrap());
    (world, open)
}

/// The state of a store after reading its whole journal.
fn read_whole(world: &World) -> (Vec<moothall_core::drafts::Draft>, JournalHead) {
    fs_err::remove_file(snapshot(world)).unwrap();
    let store = world.open();
    (store.list(&worker()).unwrap(), store.head().unwrap())
}

#[test]
fn store_opens_from_its_snapshot_and_reads_only_the_records_after_it() {
    let (world, open) = with_snapshot();
    // A change before the snapshot reveals what was read: verification finds it, opening does not.
    let journal = world.state().join("audit/000001.ndjson");
    let text = fs_err::read_to_string(&journal).unwrap();
    fs_err::write(&journal, text.replacen("\"written\"", "\"wriiten\"", 1)).unwrap();
    let store = world.open();
    let found = (store.list(&worker()).unwrap(), store.head().unwrap());
    assert!(matches!(
        verify(&world.state(), None, |_| {}),
        Err(DraftError::JournalDamaged { seq: 2, .. })
    ));
    fs_err::write(&journal, &text).unwrap();
    verify(&world.state(), None, |_| {}).unwrap();
    assert_eq!(store.status(&worker(), open).unwrap().revision, 260);
    assert_eq!(found, read_whole(&world));
}

#[test]
fn a_snapshot_works_across_journal_files_and_with_an_anchor() {
    let world = World::new(&[("a", "a\n")]);
    let options = || DraftStoreOptions {
        rotate_at: Some(30_000),
        anchor: Some(world.folder.path().join("anchor")),
        ..world.options()
    };
    let store = DraftStore::open(options()).unwrap();
    let id = request(&store, "a");
    for _ in 0..300 {
        write(&store, id, "b\n");
        let again = DraftStore::open(options()).unwrap();
        assert_eq!(again.head().unwrap(), store.head().unwrap());
    }
    assert!(snapshot(&world).exists());
    store.verify(|_| {}).unwrap();
    let again = DraftStore::open(options()).unwrap();
    assert_eq!(again.list(&worker()).unwrap(), store.list(&worker()).unwrap());
}

#[test]
fn snapshot_that_does_not_fit_its_journal_is_not_used() {
    let (world, _) = with_snapshot();
    let (other, _) = with_snapshot();
    let text = fs_err::read_to_string(snapshot(&world)).unwrap();
    let whole = read_whole(&world);
    let cases = [
        ("unknown version", text.replacen("\"version\":2,", "\"version\":3,", 1)),
        ("older version", text.replacen("\"version\":2,", "\"version\":1,", 1)),
        ("changed body", text.replace("\"applied\"", "\"escalated\"")),
        ("another journal", fs_err::read_to_string(snapshot(&other)).unwrap()),
        ("another place", text.replacen("\"start\":", "\"start\":1", 1)),
        ("cut off", text[..text.len() / 2].to_owned()),
        ("empty", String::new()),
    ];
    for (name, changed) in cases {
        assert_ne!(changed, text, "{name}");
        fs_err::write(snapshot(&world), changed).unwrap();
        let store = world.open();
        assert_eq!((store.list(&worker()).unwrap(), store.head().unwrap()), whole, "{name}");
        verify(&world.state(), None, |_| {}).unwrap();
    }
    fs_err::write(snapshot(&world), text).unwrap();
    let journal: String =
        world.journal().lines().take(100).map(|line| format!("{line}\n")).collect();
    fs_err::write(world.state().join("audit/000001.ndjson"), journal).unwrap();
    assert_eq!(world.open().head().unwrap().seq, 100);
}

/// A store trusts its snapshot, so verification must detect a changed one.
#[test]
fn verification_detects_a_snapshot_that_differs_from_its_journal() {
    let (world, _) = with_snapshot();
    let text = fs_err::read_to_string(snapshot(&world)).unwrap();
    let (header, body) = text.split_once('\n').unwrap();
    let changed = body.replacen("\"applied\"", "\"accepted\"", 1);
    assert_ne!(changed, body);
    let hash = |text: &str| Sha256Hex::of(text.as_bytes()).to_string();
    let header = header.replace(&hash(body), &hash(&changed));
    fs_err::write(snapshot(&world), format!("{header}\n{changed}")).unwrap();
    let error = verify(&world.state(), None, |_| {}).unwrap_err();
    assert!(error.to_string().contains("differs from the snapshot"), "{error}");
}

/// Regression test: every `draft_request` read all stored contents.
#[test]
fn stored_contents_are_scanned_at_most_every_ten_minutes() {
    const MINUTE: u64 = 60 * 1000;
    let world = World::new(&[("a", "a\n")]);
    let store = world.open();
    world.at(20 * MINUTE);
    assert_eq!(store.tidy().unwrap(), 0);
    let stray = world.state().join("blobs/00");
    fs_err::create_dir_all(&stray).unwrap();
    fs_err::write(stray.join("stray"), "nothing needs it").unwrap();
    world.at(29 * MINUTE);
    assert_eq!(store.tidy().unwrap(), 0);
    world.at(30 * MINUTE);
    assert_eq!(store.tidy().unwrap(), 1);
}

/// A journal with this many applied submissions of one file, as the store writes it.
fn journal_of(submissions: u64) -> String {
    let path = RelPath::parse("src/main.rs").unwrap();
    let task = TaskId::parse("t1").unwrap();
    let file =
        |text: String| FileState { sha256: Sha256Hex::of(text.as_bytes()), executable: false };
    let (mut text, mut head) = (String::new(), (0, Sha256Hex::of(b"")));
    let mut add = |ts: u64, actor: Principal, event: DraftEvent| {
        let record =
            serde_json::to_string(&AuditRecord { ts, actor, client: None, event }).unwrap();
        let seq = head.0 + 1;
        let signed =
            format!("{{\"seq\":{seq},\"prev\":\"{}\",{}", head.1, &record[1..record.len() - 1]);
        let hash = Sha256Hex::of(signed.as_bytes());
        text.push_str(&format!("{signed},\"hash\":\"{hash}\"}}\n"));
        head = (seq, hash);
    };
    for number in 0..submissions {
        let draft = DraftId::new(u128::from(number).to_be_bytes());
        let (base, after) = (file(format!("{number}")), file(format!("{}", number + 1)));
        let change = ProposedChange { file: Some(after), rename_to: None };
        let (drafts, hash, owner) = (vec![draft], base.sha256, Principal::worker("ada/one"));
        let summary = "Handle the empty case in the parser and add a test for it".to_owned();
        let (task, at) = (task.clone(), path.clone());
        add(1, owner.clone(), DraftEvent::Requested { draft, task, path: at, base: Some(base) });
        add(2, owner.clone(), DraftEvent::Written { draft, change, bytes: 900 });
        add(3, owner, DraftEvent::Submitted { drafts: drafts.clone(), seal: hash, summary });
        let (action, findings) = (GateAction::Allow, Vec::new());
        let judged = DraftEvent::Judged {
            drafts: drafts.clone(),
            seal: hash,
            policy: hash,
            action,
            findings,
            last: false,
        };
        add(4, Principal::gate(), judged);
        let staged_as = ".moothall-0011223344556677-0".to_owned();
        let step = FileStep { path: path.clone(), from: Some(base), to: Some(after), staged_as };
        let steps = vec![step];
        add(
            5,
            Principal::gate(),
            DraftEvent::Applying { drafts: drafts.clone(), undo: false, steps },
        );
        add(6, Principal::gate(), DraftEvent::Ended { drafts, end: ApplyOutcome::Done });
    }
    text
}

/// CPU time of this process, which does not depend on other processes.
fn time_to_open(world: &World, times: usize) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
    };
    let once = || {
        let began = now();
        world.open();
        now() - began
    };
    (0..times).map(|_| once()).min().unwrap()
}

fn measure(submissions: u64) -> (Duration, Duration) {
    let world = World::new(&[("a", "a\n")]);
    world.open();
    fs_err::write(world.state().join("audit/000001.ndjson"), journal_of(submissions)).unwrap();
    let whole = time_to_open(&world, 3);
    let store = world.open();
    assert_eq!(store.list(&worker()).unwrap().len() as u64, submissions);
    request(&store, "a");
    assert!(snapshot(&world).exists());
    (whole, time_to_open(&world, 3))
}

#[test]
fn store_opens_faster_from_a_snapshot_than_from_its_journal() {
    let (whole, snapshot) = measure(1_000);
    assert!(snapshot * 2 < whole, "{whole:?} without, {snapshot:?} with a snapshot");
}

/// `cargo nextest run --workspace --run-ignored only -E 'test(measures_opening)' --no-capture`
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "its result is for the person who runs it")]
fn measures_opening_with_ten_thousand_submissions() {
    let (whole, snapshot) = measure(10_000);
    let ratio = whole.as_secs_f64() / snapshot.as_secs_f64();
    println!(
        "10,000 submissions: {whole:?} without, {snapshot:?} with a snapshot, {ratio:.1} times"
    );
    assert!(ratio > 2.0);
}
