//! A stub that executes no runs.

use std::collections::BTreeSet;
use std::pin::Pin;

use moothall_core::report::document::ReportDocument;
use moothall_core::{ErrorCode, RunId};
use moothall_server::dto::{
    CheckTextRequest, CommitteeList, DoctorResponse, EditMovesRequest, FactsQuery, ForkRunRequest,
    ResumeRunRequest, ServerSettings, StartConsultRequest, TickerList,
};
use moothall_server::{
    ApiProblem, RunService, RunServiceFuture, StartOutcome, StartRequest, StartTerms, StatusCode,
};
use moothall_store::RunRow;
use serde_json::Value;

/// Rejects every call that reaches it. Starting a run only emits the span of one model call.
#[derive(Debug)]
pub(crate) struct StubRunService {
    /// Whether it reports every run as active.
    pub(crate) drives: bool,
}

fn absent<'a, T: Send + 'a>() -> RunServiceFuture<'a, T> {
    Box::pin(async {
        Err(ApiProblem::new(StatusCode::CONFLICT, ErrorCode::Failed, "nobody is here"))
    })
}

impl RunService for StubRunService {
    fn start(&self, _: StartRequest) -> RunServiceFuture<'_, StartOutcome> {
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
            Err(ApiProblem::new(StatusCode::CONFLICT, ErrorCode::Failed, "nobody is here"))
        })
    }
    fn fork(
        &self,
        _: RunRow,
        _: ForkRunRequest,
        _: String,
        _: StartTerms,
    ) -> RunServiceFuture<'_, StartOutcome> {
        absent()
    }
    fn resume(&self, _: RunRow, _: ResumeRunRequest) -> RunServiceFuture<'_, ()> {
        absent()
    }
    fn cancel(&self, _: RunRow) -> RunServiceFuture<'_, ()> {
        absent()
    }
    fn delete(&self, _: RunRow) -> RunServiceFuture<'_, ()> {
        absent()
    }
    fn driven(&self, rows: Vec<RunRow>) -> RunServiceFuture<'_, BTreeSet<RunId>> {
        Box::pin(async move {
            Ok(rows.into_iter().filter(|_| self.drives).map(|row| row.run_id).collect())
        })
    }
    fn moves(
        &self,
        _: RunRow,
        _: Option<(EditMovesRequest, String)>,
    ) -> RunServiceFuture<'_, Value> {
        absent()
    }
    fn estimate(&self, _: StartConsultRequest) -> RunServiceFuture<'_, Value> {
        absent()
    }
    fn facts(&self, _: String, _: FactsQuery) -> RunServiceFuture<'_, Value> {
        absent()
    }
    fn check(&self, _: CheckTextRequest) -> RunServiceFuture<'_, Value> {
        absent()
    }
    fn tickers(&self, _: String) -> RunServiceFuture<'_, TickerList> {
        absent()
    }
    fn committees(&self) -> Result<CommitteeList, ApiProblem> {
        Err(ApiProblem::new(StatusCode::CONFLICT, ErrorCode::Failed, "nobody is here"))
    }
    fn settings(&self) -> RunServiceFuture<'_, ServerSettings> {
        absent()
    }
    fn doctor(&self) -> RunServiceFuture<'_, DoctorResponse> {
        absent()
    }
    fn pdf(&self, _: ReportDocument) -> RunServiceFuture<'_, Vec<u8>> {
        absent()
    }
    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}
