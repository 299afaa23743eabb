//! Waiting for other users of the same store.

use std::fs::OpenOptions;
use std::time::{Duration, Instant};

use moothall_workspace::DraftError;
use rustix::fs::{FlockOperation, flock};

use crate::world::{World, person};

#[test]
fn waiting_for_a_store_locked_by_another_process_ends_with_busy() {
    let world = World::new(&[("a.py", "a\n")]);
    let store = world.open();
    let lock = OpenOptions::new().write(true).open(world.state().join("store.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let begun = Instant::now();
    let refused = store.list(&person()).unwrap_err();
    assert!(matches!(refused, DraftError::Busy), "{refused}");
    let waited = begun.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(3)).contains(&waited), "{waited:?}");
    flock(&lock, FlockOperation::Unlock).unwrap();
    assert_eq!(store.list(&person()).unwrap(), []);
}

#[test]
fn the_store_is_not_locked_while_a_submission_is_judged() {
    let world = World::new(&[("a.txt", "a\n")]);
    let store = world.open();
    let other = world.open();
    let ids: Vec<_> = (0..8)
        .map(|at| {
            let name = format!("file{at}.txt");
            let existing = moothall_workspace::FileRequirement::MayNot;
            let id = store.request(&crate::world::worker(), "t1", &name, existing).unwrap().0.id;
            crate::world::write(&store, id, &"ghp_ password: \\\" eyJ.\n".repeat(40_000));
            id
        })
        .collect();
    let (longest, looks) = std::thread::scope(|scope| {
        let submitting = scope.spawn(|| crate::world::submit(&store, &ids));
        let (mut longest, mut looks) = (Duration::ZERO, 0);
        while !submitting.is_finished() {
            let begun = Instant::now();
            other.list(&person()).unwrap();
            longest = longest.max(begun.elapsed());
            looks += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        submitting.join().unwrap();
        (longest, looks)
    });
    assert!(looks > 3, "the submission was over too soon to tell: {looks} looks");
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}
