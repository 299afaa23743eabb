use moothall_engine::{EngineError, RunLock};

use crate::support::world;

#[tokio::test]
async fn a_run_lock_is_held_by_one_process() {
    let world = world().await;
    let folder = world.folder.path().join("locks");
    let lock = RunLock::take(&folder, &world.run_id).unwrap();
    assert!(matches!(RunLock::take(&folder, &world.run_id), Err(EngineError::Busy(_))));
    assert!(RunLock::is_held(&folder, &world.run_id));
    drop(lock);
    assert!(!RunLock::is_held(&folder, &world.run_id));
    assert!(RunLock::take(&folder, &world.run_id).is_ok());
}

#[tokio::test]
async fn looks_at_the_same_time_do_not_take_each_other_for_the_driver() {
    let world = world().await;
    let folder = world.folder.path().join("locks");
    assert!(!RunLock::is_held(&folder, &world.run_id));
    assert!(!folder.exists());
    drop(RunLock::take(&folder, &world.run_id).unwrap());
    let looks: Vec<_> = (0..4)
        .map(|_| {
            let (folder, run_id) = (folder.clone(), world.run_id.clone());
            std::thread::spawn(move || (0..500).any(|_| RunLock::is_held(&folder, &run_id)))
        })
        .collect();
    assert!(looks.into_iter().all(|look| !look.join().unwrap()));
}
