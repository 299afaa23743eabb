//! Workers that write more than a store holds.

use moothall_core::drafts::State;
use moothall_workspace::{Caller, DraftError, DraftStore, Edit, Existing, Options};

use crate::world::{World, person, request, submit, worker, write};

/// What the store holds at most, instead of the usual 1 GiB.
const MOST: u64 = 1 << 20;
/// Three of them fit.
const LARGE: usize = 300 << 10;

fn open(world: &World) -> DraftStore {
    DraftStore::open(Options { max_stored_bytes: MOST, ..world.options() }).unwrap()
}

/// A text that no other number gives.
fn large(number: usize) -> String {
    let line = format!("# {number}\n");
    line.repeat(LARGE / line.len())
}

/// Bytes that the contents of drafts take on the disk.
fn stored(world: &World) -> u64 {
    let folders = fs_err::read_dir(world.state().join("blobs")).unwrap();
    let files = folders.flat_map(|folder| fs_err::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// Drafts a new file, in a task of its own: a task may have a few drafts only.
fn fill(store: &DraftStore, caller: &Caller, number: usize) -> Result<(), DraftError> {
    let (task, name) = (format!("t{number}"), format!("new{number}.py"));
    let (draft, _) = store.request(caller, &task, &name, Existing::MayNot)?;
    store.write(caller, draft.id, Edit::Content(large(number)), None).map(drop)
}

#[test]
fn a_worker_that_fills_the_store_is_refused_until_something_is_given_up() {
    let world = World::new(&[("a.py", "one = 1\n")]);
    let store = open(&world);
    let id = request(&store, "a.py");
    write(&store, id, "one = 2\n");
    for number in 0..3 {
        fill(&store, &worker(), number).unwrap();
    }
    for number in 3..6 {
        let error = fill(&store, &worker(), number).unwrap_err();
        assert_eq!(error.to_string(), "drafts hold 1 MiB, the most: submit or discard some");
        assert!(stored(&world) <= MOST, "{}", stored(&world));
    }
    // Another process of the same store is held to the same.
    let error = fill(&open(&world), &worker(), 6).unwrap_err();
    assert!(matches!(error, DraftError::Input(_)), "{error:?}");

    // What was drafted before is whole, and goes on.
    assert_eq!(store.read(&worker(), id).unwrap().1, "one = 2\n");
    assert_eq!(submit(&store, &[id]).drafts[0].state, State::Applied);
    assert_eq!(world.text("a.py").unwrap(), "one = 2\n");
    let largest =
        store.list(&person()).unwrap().into_iter().find(|one| one.path.as_str() == "new0.py");
    store.discard(&worker(), largest.unwrap().id).unwrap();
    world.at(2_000_000);
    fill(&store, &worker(), 7).unwrap();
    assert!(stored(&world) <= MOST, "{}", stored(&world));
}

#[test]
fn revisions_that_nobody_can_go_back_to_do_not_pile_up() {
    let world = World::new(&[("a.py", "one = 1\n")]);
    let store = open(&world);
    let id = request(&store, "a.py");
    for number in 0..8 {
        write(&store, id, &large(number));
        assert!(stored(&world) <= MOST, "{}", stored(&world));
    }
    assert_eq!(store.read(&worker(), id).unwrap().1, large(7));
    assert_eq!(submit(&store, &[id]).drafts[0].state, State::Escalated);
}

/// Once, only requests and writes were counted.
#[test]
fn a_draft_that_is_moved_again_and_again_does_not_fill_the_store() {
    let world = World::new(&[("a.py", "one = 1\n")]);
    let store = open(&world);
    let id = request(&store, "a.py");
    for number in 0..6 {
        world.save("a.py", &large(number));
        store.rebase(&worker(), id).unwrap();
        assert!(stored(&world) <= MOST, "{}", stored(&world));
    }
}
