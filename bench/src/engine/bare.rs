//! The baseline: the same debates, written with only Restate's SDK and a database. A step is one
//! journaled `ctx.run`, which calls the models of a batch concurrently and writes the same rows as
//! our engine in one transaction. Model replies are also in Restate's journal, because nothing else
//! restores them after a crash.
//!
//! It lacks a budget shared by all workers, cancelling, pausing, storing replies as they arrive (a
//! crash repeats and pays for a whole batch), and a check that a reply belongs to its request.

use std::net::SocketAddr;
use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::debate::Debate;
use moothall_core::{
    Effect, EffectId, EffectResult, Outcome, RunEvent, RunEventBody, Sha256Hex, Workflow as _,
};
use moothall_engine::EffectPerformer as _;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPool;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use super::ours::end;
use super::rows::{Rows, write};
use super::workload::{Asked, Trial};

/// The state of a baseline worker.
#[derive(Debug)]
pub(crate) struct Bare {
    pub(crate) trial: Trial,
    pub(crate) pool: PgPool,
}

/// The input of a run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) debates: usize,
    /// Whether rows are written to the database.
    pub(crate) rows: bool,
}

impl Bare {
    async fn write(&self, plan: Plan, run: &str, rows: Rows) -> HandlerResult<()> {
        match plan.rows {
            true => Ok(write(&self.pool, run, rows).await?),
            false => Ok(()),
        }
    }

    /// Calls all models concurrently, then writes the earlier events and the replies.
    async fn wave(
        &self,
        plan: Plan,
        run: &str,
        effects: Vec<(EffectId, Effect)>,
        events: Vec<RunEvent>,
    ) -> HandlerResult<Json<Vec<(EffectId, EffectResult)>>> {
        let mut tasks = JoinSet::new();
        for (index, (id, effect)) in effects.into_iter().enumerate() {
            let model = self.trial.model.clone();
            tasks.spawn(async move {
                let result = model.perform(&id, &effect).await.result;
                (index, effect.request_hash(), id, result)
            });
        }
        let mut finished = tasks.join_all().await;
        finished.sort_by_key(|(index, ..)| *index);
        let mut answers = Vec::new();
        let mut rows = Rows { events, ..Rows::default() };
        for (_, hash, id, result) in finished {
            rows.answers.push((id.clone(), hash?, result.clone()));
            answers.push((id, result));
        }
        self.write(plan, run, rows).await?;
        Ok(Json(answers))
    }
}

/// A run; its key is the run id.
struct BareRun(Arc<Bare>);

#[restate_sdk::workflow(journal_retention = "1h", workflow_completion_retention = "1d")]
impl BareRun {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, Json(plan): Json<Plan>) -> HandlerResult<()> {
        let run = ctx.key().to_owned();
        let (bare, name) = (Arc::clone(&self.0), run.clone());
        let begin = move || async move {
            let mut rows = Rows::default();
            for (_, input) in bare.trial.debates.iter().take(plan.debates) {
                let request = ChildRequest::Debate(input.clone());
                rows.artifacts.push(serde_json::to_vec(&request)?);
            }
            let started = RunEventBody::RunStarted { workflow: "debates".to_owned() };
            rows.events.push(RunEvent::of_run(started));
            bare.write(plan, &name, rows).await
        };
        ctx.run(begin).name("begin").await?;
        let mut tasks = DurableFuturesUnordered::new();
        for number in 0..plan.debates {
            let debate = ctx.workflow_client::<BareDebateClient>(format!("{run}/{number}"));
            tasks.push(debate.run(Json(plan)).call());
        }
        while let Some((_, left)) = tasks.next().await? {
            left?;
        }
        let bare = Arc::clone(&self.0);
        let finish = move || async move {
            let outcome = end();
            let finished = RunEventBody::RunFinished { verdict: outcome.verdict };
            let rows = Rows {
                events: vec![RunEvent::of_run(finished)],
                outcome: Some(outcome),
                ..Rows::default()
            };
            bare.write(plan, &run, rows).await
        };
        ctx.run(finish).name("end").await?;
        Ok(())
    }
}

/// A debate; its key is the run id and the debate's number.
struct BareDebate(Arc<Bare>);

#[restate_sdk::workflow(
    ingress_private,
    journal_retention = "1h",
    workflow_completion_retention = "1h"
)]
impl BareDebate {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, Json(plan): Json<Plan>) -> HandlerResult<()> {
        let (run, number) =
            ctx.key().split_once('/').ok_or_else(|| TerminalError::new("an odd key"))?;
        let debate = self.0.trial.debates.get(number.parse::<usize>()?);
        let (id, input) = debate.ok_or_else(|| TerminalError::new("no such debate"))?.clone();
        let mut machine = Debate::new(*input.clone())?;
        let mut steps = vec![machine.start()];
        loop {
            let (mut effects, mut events, mut outcome) = (Vec::new(), Vec::new(), None);
            for step in steps {
                events.extend(step.publish);
                effects.extend(step.perform);
                outcome = step.outcome.or(outcome);
            }
            let (bare, run) = (Arc::clone(&self.0), run.to_owned());
            if let Some(outcome) = outcome {
                let last = move || async move {
                    let rows = last_rows((id, input), outcome, events)?;
                    bare.write(plan, &run, rows).await
                };
                ctx.run(last).name("end").await?;
                return Ok(());
            }
            let name = effects.first().map(|(id, _)| id.to_string()).unwrap_or_default();
            let wave = move || async move { bare.wave(plan, &run, effects, events).await };
            let Json(answers) = ctx.run(wave).name(name).await?;
            steps = Vec::new();
            for (id, result) in answers {
                steps.push(machine.resume(&id, result)?);
            }
        }
    }
}

fn last_rows(
    (id, input): Asked,
    outcome: Outcome,
    events: Vec<RunEvent>,
) -> Result<Rows, HandlerError> {
    let request = ChildRequest::Debate(input).hash()?;
    let ended = ChildEnd { outcome, isolation: ChildIsolation::none(None) };
    let answers: Vec<(EffectId, Sha256Hex, EffectResult)> =
        vec![(id, request, EffectResult::ChildEnded(Box::new(ended)))];
    Ok(Rows { events, answers, ..Rows::default() })
}

/// Serves until the process ends, with the same socket options as our worker.
pub(crate) async fn serve(bare: Bare, address: SocketAddr) -> anyhow::Result<()> {
    let bare = Arc::new(bare);
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    let listener = socket.listen(1024)?;
    super::announce(listener.local_addr()?);
    let endpoint = Endpoint::builder().bind(BareRun(Arc::clone(&bare))).bind(BareDebate(bare));
    HttpServer::new(endpoint.build()).serve(listener).await;
    Ok(())
}
