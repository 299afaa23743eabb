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
