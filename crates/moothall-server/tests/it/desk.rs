//! A desk with nobody behind it.

use std::collections::BTreeSet;
use std::pin::Pin;

use moothall_core::report::document::Document;
use moothall_core::{ErrorCode, RunId};
use moothall_server::wire::{
    ChangeMoves, CheckText, CommitteeList, Doctor, FactsQuery, ResumeRun, Settings, StartConsult,
    TickerList,
};
use moothall_server::{Begun, Desk, DeskFuture, Order, Problem, StatusCode};
use moothall_store::RunRow;
use serde_json::Value;

/// It says that it is not here, to whoever is let through to it; and a start of a run makes one call
/// to a model, as far as anybody outside can see.
#[derive(Debug)]
pub(crate) struct AbsentDesk {
    /// Whether somebody drives every run, as far as it says.
    pub(crate) drives: bool,
}

fn absent<'a, T: Send + 'a>() -> DeskFuture<'a, T> {
    Box::pin(async { Err(Problem::new(StatusCode::CONFLICT, ErrorCode::Failed, "nobody is here")) })
}

impl Desk for AbsentDesk {
    fn start(&self, _: Order) -> DeskFuture<'_, Begun> {
        Box::pin(async {
            let run = tracing::info_span!(target: "moothall::run", "run", run_id = "r1");
            let call = run.in_scope(|| {
                let prompt = "a secret plan";
                tracing::info_span!(target: "moothall_models", "model_call", model = "lab/m1", prompt)
            });
            call.in_scope(|| {
                let (prompt_tokens, output_tokens, answer) = (7, 5, "a secret answer");
                tracing::info!(
                    target: "moothall_models",
                    prompt_tokens,
                    output_tokens,
                    answer,
                    "model call finished"
                );
            });
            Err(Problem::new(StatusCode::CONFLICT, ErrorCode::Failed, "nobody is here"))
        })
    }
    fn resume(&self, _: RunRow, _: ResumeRun) -> DeskFuture<'_, ()> {
        absent()
    }
    fn cancel(&self, _: RunRow) -> DeskFuture<'_, ()> {
        absent()
    }
    fn driven(&self, rows: Vec<RunRow>) -> DeskFuture<'_, BTreeSet<RunId>> {
        Box::pin(async move {
            Ok(rows.into_iter().filter(|_| self.drives).map(|row| row.run_id).collect())
        })
    }
    fn moves(&self, _: RunRow, _: Option<(ChangeMoves, String)>) -> DeskFuture<'_, Value> {
        absent()
    }
    fn estimate(&self, _: StartConsult) -> DeskFuture<'_, Value> {
        absent()
    }
    fn facts(&self, _: String, _: FactsQuery) -> DeskFuture<'_, Value> {
        absent()
    }
    fn check(&self, _: CheckText) -> DeskFuture<'_, Value> {
        absent()
    }
    fn tickers(&self, _: String) -> DeskFuture<'_, TickerList> {
        absent()
    }
    fn committees(&self) -> Result<CommitteeList, Problem> {
        Err(Problem::new(StatusCode::CONFLICT, ErrorCode::Failed, "nobody is here"))
    }
    fn settings(&self) -> DeskFuture<'_, Settings> {
        absent()
    }
    fn doctor(&self) -> DeskFuture<'_, Doctor> {
        absent()
    }
    fn pdf(&self, _: Document) -> DeskFuture<'_, Vec<u8>> {
        absent()
    }
    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}
