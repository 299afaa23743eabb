use std::io;

use moothall_store::{NewRun, SqliteStore, Store as _};

use super::*;

fn run_id() -> RunId {
    "01932b5c-7d4e-7a31-9c55-3f6f0e8a4b17".parse().unwrap()
}

fn run() -> NewRun {
    NewRun {
        run_id: run_id(),
        owner: moothall_core::access::RunOwner::local(),
        cap: None,
        spec: moothall_core::StoredSpec::from_columns("test", serde_json::Value::Null),
        title: "test".to_owned(),
        model: "demo".to_owned(),
        build: "test".to_owned(),
        created_at_ms: 0,
        inherited: Vec::new(),
    }
}

#[tokio::test]
async fn a_closed_store_is_a_retryable_error() {
    let store = SqliteStore::in_memory().await.unwrap();
    store.close().await;
    let closed = EngineError::from(store.create_run(run()).await.unwrap_err());
    assert!(closed.is_retryable(), "{closed:?}");
}

#[test]
fn only_errors_that_can_be_fixed_are_retryable() {
    let full = StoreError::Io(io::Error::from(io::ErrorKind::StorageFull));
    assert!(EngineError::from(full).is_retryable());
    assert!(EngineError::Lock(io::Error::from(io::ErrorKind::PermissionDenied)).is_retryable());
    assert!(!EngineError::from(StoreError::UnknownRun(run_id())).is_retryable());
    assert!(!EngineError::Stalled.is_retryable());
}
