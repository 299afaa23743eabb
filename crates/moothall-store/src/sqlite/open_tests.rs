use super::*;

#[tokio::test]
async fn every_commit_is_flushed_before_it_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    prepare(&path).await.unwrap();
    let mut connection = options(&path).connect().await.unwrap();
    let settings: (i64, String, i64, i64) = sqlx::query_as(
        "SELECT synchronous, journal_mode, foreign_keys, secure_delete FROM pragma_synchronous,
         pragma_journal_mode, pragma_foreign_keys, pragma_secure_delete",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    // 2 is FULL.
    assert_eq!(settings, (2, "wal".to_owned(), 1, 1));
}
