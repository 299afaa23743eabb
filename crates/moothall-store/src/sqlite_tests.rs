use sqlx::{ConnectOptions as _, Connection as _};

use super::*;

#[tokio::test]
async fn a_locked_sqlite_store_is_a_retryable_busy_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    open::prepare(&path).await.unwrap();
    let mut holder = open::options(&path).connect().await.unwrap();
    let _held = holder.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let impatient = open::options(&path).busy_timeout(Duration::ZERO);
    let mut other = impatient.connect().await.unwrap();
    let error = StoreError::from(other.begin_with("BEGIN IMMEDIATE").await.unwrap_err());
    assert!(matches!(error, StoreError::Busy(_)) && error.is_retryable(), "{error:?}");
}
