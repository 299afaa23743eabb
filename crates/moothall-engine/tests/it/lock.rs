use moothall_engine::{EngineError, RunLock};

use crate::support::world;

#[tokio::test]
async fn one_run_has_one_driver() {
    let world = world().await;
    let folder = world.folder.path().join("locks");
    let lock = RunLock::take(&folder, &world.run_id).unwrap();
    assert!(matches!(RunLock::take(&folder, &world.run_id), Err(EngineError::Busy(_))));
    assert!(RunLock::is_held(&folder, &world.run_id));
    drop(lock);
    assert!(!RunLock::is_held(&folder, &world.run_id));
    assert!(RunLock::take(&folder, &world.run_id).is_ok());
}
