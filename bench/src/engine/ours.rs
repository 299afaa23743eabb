//! Our side: the services of `moothall-restate` with a workflow that only runs debates.

use std::sync::Arc;

use moothall_core::child::ChildRequest;
use moothall_core::{
    Conclusion, Effect, EffectId, EffectResult, Outcome, RunEvent, RunEventBody, RunId, Step,
    StoredSpec, UnexpectedResult, Workflow,
};
use moothall_engine::durable::PerformerFactory;
use moothall_engine::{EffectPerformer, IsolationMode};
use moothall_models::{Budget, CallCost, RunLedger};
use moothall_restate::{OpenError, OpenFuture, OpenedRun, WorkerHost};
use moothall_store::Store;

use super::workload::{Asked, Trial};

/// Token limit of a call. The budget of a run is large enough for all calls, but is still checked
/// for each.
const CALL_TOKENS: u64 = 10_000;
const RUN_TOKENS: u64 = 1 << 40;

/// The program that our worker serves.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) trial: Trial,
}

impl WorkerHost for Ours {
    fn open<'a>(&'a self, run_id: &'a RunId) -> OpenFuture<'a> {
        Box::pin(async move {
            let again = |words: String| OpenError { words, is_retryable: true };
            let row = self.store.run(run_id).await.map_err(|error| again(error.to_string()))?;
            let row = row.ok_or_else(|| again("there is no such run".to_owned()))?;
            let debates = match &row.spec {
                StoredSpec::Unreadable(stored) => stored.form["debates"].as_u64(),
                StoredSpec::Readable(_) => None,
            };
            let count = debates.and_then(|count| count.try_into().ok());
            let debates = self.trial.debates.iter().take(count.unwrap_or_default());
            let debates: Vec<Asked> = debates.cloned().collect();
            Ok(OpenedRun {
                store: Arc::clone(&self.store),
                parallel_children: debates.len(),
                workflow: Box::new(Debates { left: debates.len(), debates }),
                performers: Arc::new(Table(self.trial.clone())),
                isolation: IsolationMode::None,
                budget: Budget { usd: None, tokens: Some(RUN_TOKENS) },
                trace_parent: None,
            })
        })
    }
}

/// A workflow that runs debates and ends with the last one.
struct Debates {
    debates: Vec<Asked>,
    left: usize,
}

impl Workflow for Debates {
    fn start(&mut self) -> Step {
        let child = |(id, input): &Asked| {
            let request = ChildRequest::Debate(input.clone());
            (id.clone(), Effect::StartChild(request))
        };
        let started = RunEventBody::RunStarted { workflow: "debates".to_owned() };
        Step {
            perform: self.debates.iter().map(child).collect(),
            publish: vec![RunEvent::of_run(started)],
            outcome: None,
        }
    }

    fn resume(&mut self, _: &EffectId, _: EffectResult) -> Result<Step, UnexpectedResult> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(Step::default());
        }
        let outcome = end();
        let finished = RunEventBody::RunFinished { verdict: outcome.verdict };
        Ok(Step {
            publish: vec![RunEvent::of_run(finished)],
            outcome: Some(outcome),
            ..Step::default()
        })
    }
}

/// The outcome of a run of debates.
pub(crate) fn end() -> Outcome {
    let conclusion = Conclusion::Answered { text: "debated".to_owned(), value: None };
    Outcome::new(Vec::new(), conclusion)
}

#[derive(Debug)]
struct Table(Trial);

impl PerformerFactory for Table {
    fn performer(&self, _: Arc<RunLedger>) -> Arc<dyn EffectPerformer> {
        Arc::new(self.0.model.clone())
    }

    fn max_cost(&self, effect: &Effect) -> CallCost {
        match effect {
            Effect::CallModel(_) => CallCost { usd: None, tokens: CALL_TOKENS },
            _ => CallCost::default(),
        }
    }
}
