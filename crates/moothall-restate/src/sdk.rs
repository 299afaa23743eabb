//! The Restate services. The only module that uses Restate's SDK.
//!
//! The SDK allows several `ctx.run` calls to be awaited together, but after a crash such an
//! invocation never ends, because the replay finds them in a different order. [`RestateSteps`] is the only
//! access to a context here and runs one step at a time, because [`DurableEngine`] borrows it for the
//! duration of a step.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::with_causes;
use moothall_core::{EffectId, RunEvent, RunEventBody, RunId};
use moothall_engine::durable::{
    ChildCall, ChildExit, DurableEngine, DurableRunExit, RunContext, StepRecord, Work, drive_child,
    drive_run,
};
use moothall_engine::{EngineError, write_run_spans};
use moothall_models::Budget;
use moothall_store::{ControlRequest as Wanted, RunCommit, RunState, StoreError, now_ms};
use restate_sdk::context::{DurableFuture, RequestTarget};
use restate_sdk::discovery::{self, ServiceName};
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::prelude::*;
use restate_sdk::service::macro_support::{ServiceBoxFuture, service_definition};
use restate_sdk::service::{Discoverable as _, Service};
use tokio::net::{TcpListener, TcpSocket};

use crate::worker::{OpenError, RestateWorker};

/// Error code that Restate returns for a cancelled invocation.
const CANCELLED: u16 = 409;

/// Why a handler stops.
enum Halt {
    /// Permanently.
    Terminal(TerminalError),
    /// Until Restate retries it.
    Retry(HandlerError),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        match error.is_retryable() {
            true => Self::Retry(error.into()),
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
            true => Self::Retry(error.into()),
            false => Self::Terminal(TerminalError::new(error.words)),
        }
    }
}

impl From<Halt> for HandlerError {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Terminal(error) => error.into(),
            Halt::Retry(error) => error,
        }
    }
}

type Left<'ctx> =
    Pin<Box<dyn DurableFuture<Output = Result<Json<ChildExit>, TerminalError>> + Send + 'ctx>>;

/// Implements [`DurableEngine`] on a Restate context.
struct RestateSteps<'a, 'ctx> {
    worker: &'a RestateWorker,
    ctx: &'a WorkflowContext<'ctx>,
    run_id: RunId,
    /// In start order.
    started: Vec<EffectId>,
    children: DurableFuturesUnordered<Left<'ctx>>,
}

impl<'a, 'ctx> RestateSteps<'a, 'ctx> {
    fn new(worker: &'a RestateWorker, ctx: &'a WorkflowContext<'ctx>, run_id: RunId) -> Self {
        let children = DurableFuturesUnordered::new();
        Self { worker, ctx, run_id, started: Vec::new(), children }
    }
}

impl DurableEngine for RestateSteps<'_, '_> {
    type Halt = Halt;

    async fn step(&mut self, name: String, work: Work) -> Result<StepRecord, Halt> {
        let worker = self.worker.clone();
        let step = move || async move {
            let Some(_busy) = worker.begin() else {
                return Err("worker is shutting down".into());
            };
            work.await.map(Json).map_err(|error| Halt::from(error).into())
        };
        Ok(self.ctx.run(step).name(name).await?.into_inner())
    }

    fn start_child(&mut self, call: ChildCall) {
        let key = format!("{}/{}/{}", self.run_id, call.id, call.pauses);
        self.started.push(call.id.clone());
        // Address this build's service by name. Otherwise Restate would send new invocations to the
        // newest build, and one run would be driven by two builds.
        let target = RequestTarget::workflow(self.worker.build.debate(), key, "run");
        let debate = self.ctx.request::<Json<ChildCall>, Json<ChildExit>>(target, Json(call));
        self.children.push(Box::pin(debate.call()));
    }

    async fn next_child_exit(&mut self) -> Result<(EffectId, ChildExit), Halt> {
        let Some((index, exit)) = self.children.next().await? else {
            return Err(EngineError::Stalled.into());
        };
        let id = self.started.get(index).cloned().ok_or(EngineError::Stalled)?;
        let exit = match exit {
            Ok(Json(exit)) => exit,
            Err(error) => ChildExit::Broken(error.message().to_owned()),
        };
        Ok((id, exit))
    }

    async fn wait_for_resume(&mut self, pause: u32) -> Result<Budget, Halt> {
        let Json(budget) = self.ctx.promise::<Json<Budget>>(&promise(pause)).await?;
        Ok(budget)
    }
}

/// Name of the promise that a paused run waits for.
fn promise(pause: u32) -> String {
    format!("go-on-{pause}")
}

/// The workflow service of a run, keyed by run id. The two services differ in how long Restate
/// waits for a step.
macro_rules! workflow {
    ($(#[$doc:meta])* $Name:ident, $abort_timeout:tt) => {
        $(#[$doc])*
        struct $Name(RestateWorker);

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

            /// Resumes the run after a pause.
            #[handler]
            async fn go_on(
                &self,
                ctx: SharedWorkflowContext<'_>,
                Json(resumption): Json<(u32, Budget)>,
            ) -> HandlerResult<()> {
                resolve_pause(&ctx, resumption)
            }
        }
    };
}

workflow!(Consultation, "2h");

workflow!(
    /// A run that writes a program. One step lasts as long as the program runs, possibly an hour,
    /// plus the wait for a free sandbox; Restate gets no message in the meantime and must not interrupt
    /// it. The step itself polls for cancel requests.
    CodeRun,
    "12h"
);

async fn drive(worker: &RestateWorker, ctx: &WorkflowContext<'_>) -> HandlerResult<()> {
    let run_id = run_id(ctx.key())?;
    let (context, mut workflow) = worker.open(&run_id).await.map_err(Halt::from)?;
    let mut steps = RestateSteps::new(worker, ctx, run_id);
    let driven = drive_run(&mut steps, &context, &mut *workflow).await;
    // Do not add a step after one that will be retried: the replay would place it elsewhere.
    if let Err(Halt::Retry(error)) = driven {
        return Err(error);
    }
    if let Err(Halt::Terminal(error)) = &driven {
        let error = error.clone();
        ctx.run(move || mark_ended(context, error)).name("given up").await?;
    }
    match driven? {
        DurableRunExit::Done | DurableRunExit::Cancelled => Ok(()),
    }
}

fn resolve_pause(
    ctx: &SharedWorkflowContext<'_>,
    (pause, budget): (u32, Budget),
) -> HandlerResult<()> {
    ctx.resolve_promise(&promise(pause), Json(budget));
    Ok(())
}

/// One child of a run, keyed by run, move and the number of pauses when it was started.
struct DebateService(RestateWorker);

#[restate_sdk::workflow(
    ingress_private,
    abort_timeout = "2h",
    journal_retention = "1h",
    workflow_completion_retention = "1h"
)]
impl DebateService {
    #[handler]
    async fn run(
        &self,
        ctx: WorkflowContext<'_>,
        Json(call): Json<ChildCall>,
    ) -> HandlerResult<Json<ChildExit>> {
        let run_id = run_id(ctx.key().split('/').next().unwrap_or_default())?;
        let (context, _) = self.0.open(&run_id).await.map_err(Halt::from)?;
        let mut steps = RestateSteps::new(&self.0, &ctx, run_id);
        let exit = drive_child(&mut steps, &context, &call).await?;
        Ok(Json(exit))
    }
}

/// [`DebateService`] with a service name that contains the build, which the SDK's macro cannot generate.
/// This mirrors what the macro generates for a service with one handler.
struct BuildDebateService(Arc<DebateService>);

impl Service for BuildDebateService {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let debate = Arc::clone(&self.0);
        Box::pin(async move {
            let (call, metadata) = ctx.input().await;
            let exit = debate.run((&ctx, metadata).into(), call).await;
            ctx.handle_handler_result(exit);
            ctx.end();
            Ok(())
        })
    }
}

impl BuildDebateService {
    fn definition(worker: RestateWorker) -> Result<ServiceDefinition, String> {
        let name = ServiceName::try_from(worker.build.debate());
        let name = name.map_err(|error| error.to_string())?;
        let discovery = discovery::Service { name, ..DebateService::discover() };
        Ok(service_definition(Self(Arc::new(DebateService(worker))), discovery))
    }
}

fn run_id(key: &str) -> Result<RunId, TerminalError> {
    key.parse().map_err(|_| TerminalError::new_with_code(400, "the key is not a run id"))
}

/// Marks a run that cannot continue as failed or cancelled, so that clients stop waiting for it.
async fn mark_ended(context: Arc<RunContext>, error: TerminalError) -> HandlerResult<()> {
    let (body, state) = match error.code() {
        CANCELLED => {
            // Restate does not interrupt calls in progress; they poll for this request.
            let requested = context.store.request_control(&context.run_id, Wanted::Cancel).await;
            if let Err(error) = requested
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
    let commit = RunCommit { events, state, at_ms: now_ms(), ..RunCommit::default() };
    match context.store.commit(&context.run_id, commit).await {
        Ok(_) => {
            write_run_spans(&*context.store, &context.run_id).await;
            Ok(())
        }
        Err(StoreError::RunEnded { .. } | StoreError::UnknownRun(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Binds the socket that Restate sends work to.
///
/// Without `TCP_NODELAY`, which accepted sockets inherit, every step takes 40 ms longer.
/// `SO_REUSEPORT` lets several workers on one machine share an address, because Restate identifies
/// a build by its address.
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

/// Retry policy of all services. Restate's default gives up after 70 attempts, which would leave a
/// run stuck until an operator notices; this policy retries for most of a year.
fn retry_options() -> ServiceOptions {
    ServiceOptions::new()
        .retry_policy_initial_interval(Duration::from_millis(500))
        .retry_policy_exponentiation_factor(2.0)
        .retry_policy_max_interval(Duration::from_secs(20))
        .retry_policy_max_attempts(1_000_000)
        .retry_policy_pause_on_max_attempts()
}

/// Serves until `done` resolves. With a key, requests not signed by that Restate are rejected.
pub(crate) async fn serve(
    worker: RestateWorker,
    listener: TcpListener,
    identity_key: Option<&str>,
    done: impl Future<Output = ()>,
) -> Result<(), String> {
    let mut endpoint = Endpoint::builder()
        .bind(Consultation(worker.clone()).into_service_definition().options(retry_options()))
        .bind(CodeRun(worker.clone()).into_service_definition().options(retry_options()))
        .bind(BuildDebateService::definition(worker)?.options(retry_options()));
    if let Some(key) = identity_key {
        endpoint = endpoint.identity_key(key).map_err(|error| error.to_string())?;
    }
    HttpServer::new(endpoint.build()).serve_with_cancel(listener, done).await;
    Ok(())
}
