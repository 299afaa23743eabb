//! Restate's SDK, and nobody else's business.
//!
//! The SDK lets several `ctx.run` be awaited together, and after the first crash no such invocation
//! ever ends: a replay finds them in another order. [`Steps`] is the only way to a context here, and
//! it has one step at a time, because [`Durable`] borrows it for as long as a step takes.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::with_causes;
use moothall_core::{EffectId, RunEvent, RunEventBody, RunId};
use moothall_engine::EngineError;
use moothall_engine::waves::{
    ChildCall, ChildLeft, Durable, Noted, RunLeft, Stage, Work, drive_child, drive_run,
};
use moothall_models::Budget;
use moothall_store::{Commit, RunState, StoreError, Wish as Wanted, now_ms};
use restate_sdk::context::{DurableFuture, RequestTarget};
use restate_sdk::discovery::{self, ServiceName};
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::prelude::*;
use restate_sdk::service::macro_support::{ServiceBoxFuture, service_definition};
use restate_sdk::service::{Discoverable as _, Service};
use tokio::net::{TcpListener, TcpSocket};

use crate::worker::{OpenError, Worker};

/// What Restate answers where somebody cancelled an invocation.
const CANCELLED: u16 = 409;

/// Why a handler stops.
enum Halt {
    /// For good.
    Terminal(TerminalError),
    /// Restate tries again.
    Again(HandlerError),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        match error.is_retryable() {
            true => Self::Again(error.into()),
            false => Self::Terminal(TerminalError::new(with_causes(&error))),
        }
    }
}

impl From<TerminalError> for Halt {
    fn from(error: TerminalError) -> Self {
        Self::Terminal(error)
    }
}

impl From<OpenError> for Halt {
    fn from(error: OpenError) -> Self {
        match error.is_retryable {
            true => Self::Again(error.into()),
            false => Self::Terminal(TerminalError::new(error.words)),
        }
    }
}

impl From<Halt> for HandlerError {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Terminal(error) => error.into(),
            Halt::Again(error) => error,
        }
    }
}

type Left<'ctx> =
    Pin<Box<dyn DurableFuture<Output = Result<Json<ChildLeft>, TerminalError>> + Send + 'ctx>>;

/// A context of Restate as a machine of ours may use it.
struct Steps<'a, 'ctx> {
    worker: &'a Worker,
    ctx: &'a WorkflowContext<'ctx>,
    run_id: RunId,
    /// In the order in which they were started.
    started: Vec<EffectId>,
    children: DurableFuturesUnordered<Left<'ctx>>,
}

impl<'a, 'ctx> Steps<'a, 'ctx> {
    fn new(worker: &'a Worker, ctx: &'a WorkflowContext<'ctx>, run_id: RunId) -> Self {
        let children = DurableFuturesUnordered::new();
        Self { worker, ctx, run_id, started: Vec::new(), children }
    }
}

impl Durable for Steps<'_, '_> {
    type Halt = Halt;

    async fn step(&mut self, name: String, work: Work) -> Result<Noted, Halt> {
        let worker = self.worker.clone();
        let step = move || async move {
            let Some(_busy) = worker.begin() else {
                return Err("this worker is leaving".into());
            };
            work.await.map(Json).map_err(|error| Halt::from(error).into())
        };
        Ok(self.ctx.run(step).name(name).await?.into_inner())
    }

    fn start_child(&mut self, call: ChildCall) {
        let key = format!("{}/{}/{}", self.run_id, call.id, call.pauses);
        self.started.push(call.id.clone());
        // By the name of this build: Restate gives whatever begins to the newest one otherwise, and a
        // run would be half of one build and half of another.
        let target = RequestTarget::workflow(self.worker.build.debate(), key, "run");
        let debate = self.ctx.request::<Json<ChildCall>, Json<ChildLeft>>(target, Json(call));
        self.children.push(Box::pin(debate.call()));
    }

    async fn child_left(&mut self) -> Result<(EffectId, ChildLeft), Halt> {
        let Some((index, left)) = self.children.next().await? else {
            return Err(EngineError::Stalled.into());
        };
        let id = self.started.get(index).cloned().ok_or(EngineError::Stalled)?;
        let left = match left {
            Ok(Json(left)) => left,
            Err(error) => ChildLeft::Broken(error.message().to_owned()),
        };
        Ok((id, left))
    }

    async fn gone_on(&mut self, pause: u32) -> Result<Budget, Halt> {
        let Json(budget) = self.ctx.promise::<Json<Budget>>(&promise(pause)).await?;
        Ok(budget)
    }
}

/// The promise that a run waits for after a pause.
fn promise(pause: u32) -> String {
    format!("go-on-{pause}")
}

/// The workflow of a run, keyed by it. The two kinds differ in how long Restate waits for a step.
macro_rules! workflow {
    ($(#[$doc:meta])* $Name:ident, $abort_timeout:tt) => {
        $(#[$doc])*
        struct $Name(Worker);

        #[restate_sdk::workflow(
            abort_timeout = $abort_timeout,
            journal_retention = "1h",
            workflow_completion_retention = "1d"
        )]
        impl $Name {
            #[handler]
            async fn run(&self, ctx: WorkflowContext<'_>) -> HandlerResult<()> {
                drive(&self.0, &ctx).await
            }

            /// Lets the run go on after a pause.
            #[handler]
            async fn go_on(
                &self,
                ctx: SharedWorkflowContext<'_>,
                Json(gone_on): Json<(u32, Budget)>,
            ) -> HandlerResult<()> {
                go_on(&ctx, gone_on)
            }
        }
    };
}

workflow!(Consultation, "2h");

workflow!(
    /// A run that writes a program. A step of it lasts as long as the program does, which may be an hour, and waits for a free sandbox
    /// before; Restate hears nothing meanwhile, and does not interrupt it either. Whoever cancels the run is heard within the step: it
    /// looks for the wish.
    CodeRun,
    "12h"
);

async fn drive(worker: &Worker, ctx: &WorkflowContext<'_>) -> HandlerResult<()> {
    let run_id = run_id(ctx.key())?;
    let (stage, mut workflow) = worker.open(&run_id).await.map_err(Halt::from)?;
    let mut steps = Steps::new(worker, ctx, run_id);
    let driven = drive_run(&mut steps, &stage, &mut *workflow).await;
    // Nothing may be said behind a step that is made again: the replay would say it elsewhere.
    if let Err(Halt::Again(error)) = driven {
        return Err(error);
    }
    if let Err(Halt::Terminal(error)) = &driven {
        let error = error.clone();
        ctx.run(move || give_up(stage, error)).name("given up").await?;
    }
    match driven? {
        RunLeft::Done | RunLeft::Cancelled => Ok(()),
    }
}

fn go_on(ctx: &SharedWorkflowContext<'_>, (pause, budget): (u32, Budget)) -> HandlerResult<()> {
    ctx.resolve_promise(&promise(pause), Json(budget));
    Ok(())
}

/// One child of a run, keyed by both and by how often the run had paused when it was started.
struct Debate(Worker);

#[restate_sdk::workflow(
    ingress_private,
    abort_timeout = "2h",
    journal_retention = "1h",
    workflow_completion_retention = "1h"
)]
impl Debate {
    #[handler]
    async fn run(
        &self,
        ctx: WorkflowContext<'_>,
        Json(call): Json<ChildCall>,
    ) -> HandlerResult<Json<ChildLeft>> {
        let run_id = run_id(ctx.key().split('/').next().unwrap_or_default())?;
        let (stage, _) = self.0.open(&run_id).await.map_err(Halt::from)?;
        let mut steps = Steps::new(&self.0, &ctx, run_id);
        let left = drive_child(&mut steps, &stage, &call).await?;
        Ok(Json(left))
    }
}

/// [`Debate`] under a name that the SDK's macro cannot know, because it has the build in it. This is
/// what the macro makes for a service with one handler.
struct OfBuild(Arc<Debate>);

impl Service for OfBuild {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let debate = Arc::clone(&self.0);
        Box::pin(async move {
            let (call, metadata) = ctx.input().await;
            let left = debate.run((&ctx, metadata).into(), call).await;
            ctx.handle_handler_result(left);
            ctx.end();
            Ok(())
        })
    }
}

impl OfBuild {
    fn definition(worker: Worker) -> Result<ServiceDefinition, String> {
        let name = ServiceName::try_from(worker.build.debate());
        let name = name.map_err(|error| error.to_string())?;
        let discovery = discovery::Service { name, ..Debate::discover() };
        Ok(service_definition(Self(Arc::new(Debate(worker))), discovery))
    }
}

fn run_id(key: &str) -> Result<RunId, TerminalError> {
    key.parse().map_err(|_| TerminalError::new_with_code(400, "the key is no id of a run"))
}

/// A run that cannot go on says so, so that nobody waits for it.
async fn give_up(stage: Arc<Stage>, error: TerminalError) -> HandlerResult<()> {
    let (body, state) = match error.code() {
        CANCELLED => {
            // Calls under way are not interrupted by Restate; they look for this.
            let asked = stage.store.ask(&stage.run_id, Wanted::Cancel).await;
            if let Err(error) = asked
                && !error.is_final()
            {
                return Err(error.into());
            }
            (RunEventBody::RunCancelled, RunState::Cancelled)
        }
        _ => {
            let detail = error.message().to_owned();
            (RunEventBody::RunFailed { detail, model_failure: None }, RunState::Failed)
        }
    };
    let (events, state) = (vec![RunEvent::of_run(body)], Some(state));
    let commit = Commit { events, state, at_ms: now_ms(), ..Commit::default() };
    match stage.store.commit(&stage.run_id, commit).await {
        Ok(_) | Err(StoreError::RunEnded { .. } | StoreError::UnknownRun(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Listens where Restate will send work.
///
/// Without `TCP_NODELAY`, which sockets inherit from their listener, every step takes 40 ms longer.
/// With `SO_REUSEPORT` several workers of one machine stand behind one address, which is what
/// Restate knows a build by.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

/// How often Restate tries again what failed. Its own policy gives up after 70 tries, and then a run
/// would stand still until an operator finds it; these are most of a year.
fn patient() -> ServiceOptions {
    ServiceOptions::new()
        .retry_policy_initial_interval(Duration::from_millis(500))
        .retry_policy_exponentiation_factor(2.0)
        .retry_policy_max_interval(Duration::from_secs(20))
        .retry_policy_max_attempts(1_000_000)
        .retry_policy_pause_on_max_attempts()
}

/// Serves until `done`. With a key, whoever is not this Restate is turned away.
pub(crate) async fn serve(
    worker: Worker,
    listener: TcpListener,
    identity_key: Option<&str>,
    done: impl Future<Output = ()>,
) -> Result<(), String> {
    let mut endpoint = Endpoint::builder()
        .bind(Consultation(worker.clone()).into_service_definition().options(patient()))
        .bind(CodeRun(worker.clone()).into_service_definition().options(patient()))
        .bind(OfBuild::definition(worker)?.options(patient()));
    if let Some(key) = identity_key {
        endpoint = endpoint.identity_key(key).map_err(|error| error.to_string())?;
    }
    HttpServer::new(endpoint.build()).serve_with_cancel(listener, done).await;
    Ok(())
}
