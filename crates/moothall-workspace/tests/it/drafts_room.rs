//! Workers that write more than the storage limit.

use moothall_core::drafts::DraftState;
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftError, DraftStore, DraftStoreOptions, FileRequirement,
};

use crate::world::{World, person, request, submit, worker, write};

/// Storage limit, instead of the default of 1 GiB.
const MOST: u64 = 1 << 20;
/// Three of these fit.
const LARGE: usize = 300 << 10;

fn open(world: &World) -> DraftStore {
    DraftStore::open(DraftStoreOptions { max_stored_bytes: MOST, ..world.options() }).unwrap()
}

/// A text that is unique for each number.
fn large(number: usize) -> String {
    let line = format!("# {number}\n");
    line.repeat(LARGE / line.len())
}

/// Bytes of stored draft contents.
fn stored(world: &World) -> u64 {
    let folders = fs_err::read_dir(world.state().join("blobs")).unwrap();
    let files = folders.flat_map(|folder| fs_err::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// Drafts a new file in its own task, because a task can have only a few drafts.
fn fill(store: &DraftStore, caller: &DraftCaller, number: usize) -> Result<(), DraftError> {
    let (task, name) = (format!("t{number}"), format!("new{number}.py"));
    let (draft, _) = store.request(caller, &task, &name, FileRequirement::MayNot)?;
    store.write(caller, draft.id, DraftEdit::Content(large(number)), None).map(drop)
}

#[test]
fn a_worker_over_its_storage_limit_is_refused_until_it_discards_drafts() {
    let world = World::new(&[("a.py", "one = 1\n")]);
    let store = open(&world);
    let id = request(&store, "a.py");
    write(&store, id, "one = 2\n");
    for number in 0..3 {
        fill(&store, &worker(), number).unwrap();
    }
    for number in 3..6 {
        let error = fill(&store, &worker(), number).unwrap_err();
        assert_eq!(
            error.to_string(),
            "draft storage is full (limit: 1 MiB): submit or discard some drafts"
        );
        assert!(stored(&world) <= MOST, "{}", stored(&world));
    }
    // The limit also applies to another process with the same store.
    let error = fill(&open(&world), &worker(), 6).unwrap_err();
    assert!(matches!(error, DraftError::Input(_)), "{error:?}");

    // Existing drafts are intact and can be submitted.
    assert_eq!(store.read(&worker(), id).unwrap().1, "one = 2\n");
    assert_eq!(submit(&store, &[id]).drafts[0].state, DraftState::Applied);
    assert_eq!(world.text("a.py").unwrap(), "one = 2\n");
    let largest =
        store.list(&person()).unwrap().into_iter().find(|one| one.path.as_str() == "new0.py");
    store.discard(&worker(), largest.unwrap().id).unwrap();
    world.at(2_000_000);
    fill(&store, &worker(), 7).unwrap();
    assert!(stored(&world) <= MOST, "{}", stored(&world));
}

#[test]
fn unreachable_revisions_do_not_accumulate() {
    let world = World::new(&[("a.py", "one = 1\n")]);
    let store = open(&world);
    let id = request(&store, "a.py");
    for number in 0..8 {
        write(&store, id, &large(number));
        assert!(stored(&world) <= MOST, "{}", stored(&world));
    }
    assert_eq!(store.read(&worker(), id).unwrap().1, large(7));
    assert_eq!(submit(&store, &[id]).drafts[0].state, DraftState::Escalated);
}

/// Regression test: only requests and writes were counted.
#[test]
fn a_draft_renamed_repeatedly_does_not_fill_the_store() {
    let world = World::new(&[("a.py", "one = 1\n")]);
    let store = open(&world);
    let id = request(&store, "a.py");
    for number in 0..6 {
        world.save("a.py", &large(number));
        store.rebase(&worker(), id).unwrap();
        assert!(stored(&world) <= MOST, "{}", stored(&world));
    }
}
