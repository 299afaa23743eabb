//! Selects where the debates of a consultation run, and installs what that needs.

use std::sync::Arc;

use moothall_core::sandbox::{IsolationClass, SandboxFailure, SandboxFailureKind};
use moothall_core::{ConsultSpec, EffectId, IsolationChoice, RunId};
use moothall_engine::{
    DebateSandboxes, GuestFailurePolicy, GuestFuture, GuestPool, GuestProvider, GuestSession,
    IsolationMode,
};
use moothall_sandbox::{EngineName, PoolOptions, SandboxError, SandboxHost, SandboxPolicy};
use tokio::sync::OnceCell;

use super::PARALLEL_MOVES;
use crate::config::{EngineChoice, LoadedConfig};
use crate::debate_image::{self, MicrovmObstacle, ProgressNotice};
use crate::error::CliError;
use crate::{isolation, process_resources};

/// Limit of sandboxes started in advance.
const MAX_IDLE: u32 = 4;

/// Isolation of the debates.
pub(crate) struct DebateIsolation {
    pub(crate) mode: IsolationMode,
    sandboxes: Option<LateSandboxes>,
    /// The class of the debates if it is weaker than a microVM, with the line that says why and
    /// which command changes it.
    pub(crate) notice: Option<(IsolationClass, String)>,
}

impl DebateIsolation {
    /// Selects the isolation. Debates are text, so they may run without a sandbox unless one is
    /// required; the first line of the output, events, receipt and memo then report it.
    pub(crate) async fn open(
        loaded: &LoadedConfig,
        spec: &ConsultSpec,
        progress: &ProgressNotice,
    ) -> Result<Self, CliError> {
        let settings = &spec.settings;
        let needs_sandbox = isolation::debate_needs_sandbox(loaded)?;
        let engine = settings.isolation.unwrap_or(IsolationChoice::Auto);
        if engine == IsolationChoice::None {
            return match needs_sandbox {
                false => Ok(Self { mode: IsolationMode::None, sandboxes: None, notice: None }),
                true => Err(CliError::usage(
                    "`--isolation none` is not allowed: your configuration requires a sandbox",
                )
                .with_hint(
                    "see `isolation.minimum` and `isolation.on_failure` in `moothall config show`",
                )),
            };
        }
        let named = settings.isolation.and_then(EngineChoice::of);
        let policy = isolation::policy(loaded, named, settings.allow_shared_kernel)?;
        let on_failure =
            if needs_sandbox { GuestFailurePolicy::Fail } else { GuestFailurePolicy::Fallback };
        // An explicitly named engine is required, too.
        let on_missing = match engine {
            IsolationChoice::Auto => on_failure,
            _ => GuestFailurePolicy::Fail,
        };
        let serves_requests = process_resources::kept_sandboxes().is_some();
        // Debates of a cluster run on its workers; this process only submits the run.
        if settings.restate.is_some() && !serves_requests {
            return Ok(Self { mode: IsolationMode::None, sandboxes: None, notice: None });
        }
        let host = match isolation::host(loaded) {
            Ok(host) => host,
            // This build has no guest agent, or the system is not Linux.
            Err(error) => {
                let (kind, reason) = (SandboxFailureKind::NoEngine, error.full_message());
                let failure = SandboxFailure { kind, detail: reason };
                return without_sandbox(failure, error, MicrovmObstacle::Other, on_missing);
            }
        };
        let is_missing = host.images().find(DebateSandboxes::IMAGE).is_err();
        let late = LateSandboxes(Arc::new(LateOpening {
            host,
            policy,
            options: PoolOptions {
                idle: settings.parallel_moves.unwrap_or(PARALLEL_MOVES).min(MAX_IDLE) as usize,
                memory: isolation::memory(loaded),
            },
            ticker: spec.input.gather.subject().to_owned(),
            provides_image: is_missing
                && settings.offline.is_none()
                && debate_image::may_provide(loaded)?,
            progress: progress.clone(),
            opened: OnceCell::new(),
        }));
        // A process that serves requests does not let them wait for a build or a probe.
        let can_open = late.0.provides_image || !is_missing;
        // A run that requires a sandbox fails before anything is spent.
        let may_fall_back = on_missing == GuestFailurePolicy::Fallback;
        if serves_requests
            && may_fall_back
            && can_open
            && late.0.host.require_engine(&policy).await.is_ok()
        {
            return Ok(late.isolation(on_missing, None));
        }
        match late.0.open().await {
            Ok(sandboxes) => {
                let notice = match sandboxes.class() {
                    class if class >= IsolationClass::EmulatedVm => None,
                    class => Some((class, late.0.weaker_engine_line(class).await)),
                };
                // Nothing else has set it: this process has one user of the cell so far.
                let _ = late.0.opened.set(Ok(sandboxes));
                Ok(late.isolation(on_failure, notice))
            }
            Err(OpenFailure { kind, error }) => {
                let obstacle = late.0.obstacle(kind).await;
                let failure = SandboxFailure { kind, detail: error.failure().detail };
                let hint = isolation::hint(&error);
                let refused = CliError::failed("no sandbox for debates").with_source(error);
                let refused = match hint {
                    Some(hint) => refused.with_hint(hint),
                    None => refused,
                };
                without_sandbox(failure, refused, obstacle, on_missing)
            }
        }
    }

    /// Starts sandboxes in advance.
    pub(crate) fn warm_up(&self) {
        if let Some(late) = &self.sandboxes {
            let late = late.clone();
            tokio::spawn(async move {
                // A build takes long; the run may have ended before it.
                if let Ok(sandboxes) = late.sandboxes().await
                    && Arc::strong_count(&late.0) > 1
                {
                    sandboxes.prewarm();
                }
            });
        }
    }

    /// Waits until all sandboxes are removed.
    pub(crate) async fn shut_down(&self) {
        if let Some(Ok(sandboxes)) = self.sandboxes.as_ref().and_then(|late| late.0.opened.get()) {
            sandboxes.shut_down().await;
        }
    }
}

/// Sandboxes that are opened at first use, because their image may have to be built first.
#[derive(Debug, Clone)]
struct LateSandboxes(Arc<LateOpening>);

#[derive(Debug)]
struct LateOpening {
    host: SandboxHost,
    policy: SandboxPolicy,
    options: PoolOptions,
    ticker: String,
    /// Whether the image is missing and may be installed.
    provides_image: bool,
    progress: ProgressNotice,
    opened: OnceCell<Result<DebateSandboxes, SandboxFailure>>,
}

/// Why sandboxes are missing. A failed build is recorded as a missing image.
struct OpenFailure {
    kind: SandboxFailureKind,
    error: SandboxError,
}

impl From<SandboxError> for OpenFailure {
    fn from(error: SandboxError) -> Self {
        Self { kind: error.failure().kind, error }
    }
}

impl LateOpening {
    /// Without an engine, nothing is built.
    async fn open(&self) -> Result<DebateSandboxes, OpenFailure> {
        if self.provides_image {
            self.host.require_engine(&self.policy).await?;
            let provided = debate_image::provide(self.host.images(), &self.progress).await;
            provided.map_err(|error| OpenFailure { kind: SandboxFailureKind::Image, error })?;
            (self.progress.0)("testing the sandbox for debates (only once)");
        }
        let opened = DebateSandboxes::open(&self.host, &self.policy, self.options.clone()).await?;
        Ok(opened.with_ticker(&self.ticker))
    }

    async fn obstacle(&self, kind: SandboxFailureKind) -> MicrovmObstacle {
        match (kind, self.host.engine(EngineName::Microvm).await) {
            (_, Err(SandboxError::Missing { .. })) => MicrovmObstacle::NoQemu,
            (SandboxFailureKind::Image, Ok(_)) => MicrovmObstacle::NoImage,
            _ => MicrovmObstacle::Other,
        }
    }

    async fn weaker_engine_line(&self, class: IsolationClass) -> String {
        let obstacle = self.obstacle(SandboxFailureKind::NoEngine).await;
        let command = debate_image::command_for(obstacle);
        let reason = "sandboxes share the kernel of this machine";
        debate_image::weaker_class_line(class, reason, &command)
    }
}

impl LateSandboxes {
    fn isolation(
        self,
        on_failure: GuestFailurePolicy,
        notice: Option<(IsolationClass, String)>,
    ) -> DebateIsolation {
        let guest_pool = Arc::new(GuestPool::new(self.clone()));
        let mode = IsolationMode::Guests { guest_pool, on_failure };
        DebateIsolation { mode, sandboxes: Some(self), notice }
    }

    async fn sandboxes(&self) -> &Result<DebateSandboxes, SandboxFailure> {
        self.0
            .opened
            .get_or_init(|| async {
                let opened = self.0.open().await;
                opened.map_err(|OpenFailure { kind, error }| {
                    let detail = error.failure().detail;
                    SandboxFailure { kind, detail }
                })
            })
            .await
    }
}

impl GuestProvider for LateSandboxes {
    fn acquire<'a>(
        &'a self,
        run_id: &'a RunId,
        id: &'a EffectId,
    ) -> GuestFuture<'a, Box<dyn GuestSession>> {
        Box::pin(async move {
            match self.sandboxes().await {
                Ok(sandboxes) => sandboxes.acquire(run_id, id).await,
                Err(failure) => Err(failure.clone()),
            }
        })
    }
}

/// Debates continue without isolation, if allowed, and the reason is reported.
fn without_sandbox(
    failure: SandboxFailure,
    error: CliError,
    obstacle: MicrovmObstacle,
    on_missing: GuestFailurePolicy,
) -> Result<DebateIsolation, CliError> {
    if on_missing == GuestFailurePolicy::Fail {
        return Err(error);
    }
    let reason = match obstacle {
        MicrovmObstacle::NoQemu if failure.kind == SandboxFailureKind::NoEngine => {
            "QEMU is not installed"
        }
        _ => failure.detail.as_str(),
    };
    let command = debate_image::command_for(obstacle);
    let class = IsolationClass::None;
    let notice = debate_image::weaker_class_line(class, reason, &command);
    let guest_pool = Arc::new(GuestPool::unavailable(failure));
    let mode = IsolationMode::Guests { guest_pool, on_failure: on_missing };
    Ok(DebateIsolation { mode, sandboxes: None, notice: Some((class, notice)) })
}
