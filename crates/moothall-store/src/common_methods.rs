//! Methods that are the same for both stores. sqlx has different types for each database, so this
//! is a macro for the body of `impl Store`.

macro_rules! common_requests {
    () => {
        fn create_run(&self, run: NewRun) -> StoreFuture<'_, ()> {
            Box::pin(async move {
                let mut transaction = self.begin_writing().await?;
                crate::admission::create(&mut *transaction, &run).await?;
                Ok(transaction.commit().await?)
            })
        }

        fn admit_run(
            &self,
            run: NewRun,
            terms: AdmissionTerms,
        ) -> StoreFuture<'_, AdmissionDecision> {
            Box::pin(async move {
                crate::validation::check_key(&terms)?;
                let mut transaction = self.begin_writing().await?;
                let admission = crate::admission::admit(&mut *transaction, &run, &terms).await?;
                // Dropping the transaction without a commit rolls it back.
                if admission == AdmissionDecision::Created {
                    transaction.commit().await?;
                }
                Ok(admission)
            })
        }

        fn change_cap<'a>(
            &'a self,
            id: &'a RunId,
            cap: Option<MicroUsd>,
            day_began_at_ms: u64,
        ) -> StoreFuture<'a, Result<(), RunLimitError>> {
            Box::pin(async move {
                let mut transaction = self.begin_writing().await?;
                let changed =
                    crate::admission::change_cap(&mut *transaction, id, cap, day_began_at_ms)
                        .await?;
                if changed.is_ok() {
                    transaction.commit().await?;
                }
                Ok(changed)
            })
        }

        fn count_runs(&self, state: RunState) -> StoreFuture<'_, u64> {
            Box::pin(async move {
                let count: i64 = sqlx::query_scalar("SELECT count(*) FROM runs WHERE state = $1")
                    .bind(state.as_str())
                    .fetch_one(self.reads())
                    .await?;
                rows::unsigned(count)
            })
        }

        fn keep_artifact<'a>(
            &'a self,
            id: &'a RunId,
            content: &'a [u8],
        ) -> StoreFuture<'a, Sha256Hex> {
            Box::pin(async move { artifacts::keep(self, id, content).await })
        }

        fn add_changes<'a>(
            &'a self,
            id: &'a RunId,
            changes: Vec<ReviewChange>,
        ) -> StoreFuture<'a, ()> {
            Box::pin(async move { changes::add(self, id, &changes).await })
        }

        fn changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<ReviewChange>> {
            Box::pin(async move { changes::all(self, id).await })
        }

        fn forget_changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, ()> {
            Box::pin(async move { changes::forget(self, id).await })
        }

        fn set_later_outcomes<'a>(
            &'a self,
            id: &'a RunId,
            outcomes: &'a RunOutcomes,
        ) -> StoreFuture<'a, ()> {
            Box::pin(later_outcomes::set(self, id, outcomes))
        }

        fn later_outcomes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunOutcomes>> {
            Box::pin(later_outcomes::get(self, id))
        }

        fn runs_with_later_outcomes(&self) -> StoreFuture<'_, Vec<RunId>> {
            Box::pin(later_outcomes::runs(self))
        }

        fn run_bytes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, u64> {
            Box::pin(async move { space::run_bytes(self.reads(), id).await })
        }

        fn delete_runs<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, ()> {
            Box::pin(space::delete(self.writes(), ids))
        }

        fn reclaim_space(&self) -> StoreFuture<'_, u64> {
            Box::pin(space::reclaim_space(self.writes()))
        }
    };
}

pub(crate) use common_requests;
