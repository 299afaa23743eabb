use std::sync::Arc;

use moothall_core::RunVerdict;
use moothall_core::receipt::{EffectTiming, verify};
use moothall_engine::{RunDriver, RunRecord};
use moothall_store::StoreError;

use crate::support::{Counting, FanOut, world};

#[tokio::test]
async fn receipt_and_totals_are_derived_from_the_stored_run() {
    let world = world().await;
    let before = RunRecord::read(&*world.store, &world.run_id).await.unwrap();
    assert_eq!(before.receipt(), None, "there is no verdict yet");
    let performer = Arc::new(Counting::default());
    let driver = RunDriver::new(Arc::clone(&world.store), performer, world.run_id.clone());
    driver.drive(&mut FanOut::new(4)).await.unwrap();

    let record = RunRecord::read(&*world.store, &world.run_id).await.unwrap();
    assert_eq!(record.timing(), EffectTiming { latency_ms: 5, tries: 5 });
    assert_eq!((record.usage().input, record.usage().output), (25, 5));
    assert_eq!(record.cost(), None, "the price of one answer is unknown");
    let numbers: Vec<u64> = record.sequenced().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=7).collect::<Vec<_>>());
    let receipt = record.receipt().unwrap();
    let verified = verify(receipt.write().unwrap().as_bytes()).unwrap();
    assert_eq!((verified.verdict, verified.receipt), (RunVerdict::Pass, receipt));
}

#[tokio::test]
async fn a_run_that_is_not_there_has_no_record() {
    let world = world().await;
    let other = "019a85c0-2f6e-7cc1-a5a0-000000000000".parse().unwrap();
    let error = RunRecord::read(&*world.store, &other).await.unwrap_err();
    assert!(matches!(error, StoreError::UnknownRun(run) if run == other));
}
