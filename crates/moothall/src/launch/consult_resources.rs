//! Opens the models, evidence and sandboxes of a consultation.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::consult::EvidenceSource;
use moothall_core::evidence::Evidence;
use moothall_core::sandbox::{SandboxFailure, SandboxFailureKind};
use moothall_core::{ConsultSpec, IsolationChoice};
use moothall_engine::{DebateSandboxes, GuestFailurePolicy, GuestPool, IsolationMode};
use moothall_models::Gateway;
use moothall_sandbox::PoolOptions;

use super::{PARALLEL_MOVES, RunFiles, recording};
use crate::config::{EngineChoice, LoadedConfig};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::evidence_sources::{EvidenceSources, news_source};
use crate::isolation;
use crate::pdf_sandbox::PdfSandbox;

pub(crate) struct ConsultResources {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) filings: Arc<EvidenceSources>,
    pub(crate) isolation_mode: IsolationMode,
    /// Why debates have no sandbox although they should, with a hint.
    pub(crate) missing_sandbox_reason: Option<String>,
    sandboxes: Option<DebateSandboxes>,
}

impl ConsultResources {
    /// Opens models, evidence and sandboxes. Fails before anything is spent.
    pub(crate) async fn open(
        context: &CommandContext,
        spec: &ConsultSpec,
        files: &RunFiles,
    ) -> Result<Self, CliError> {
        let models = spec.input.called_models();
        let gateway = Arc::new(context.gateway_for(&models, recording(&spec.settings)?)?);
        let filings = evidence(context, spec, files).await?;
        let DebateIsolation { isolation_mode, sandboxes, missing_sandbox_reason } =
            open_isolation(&context.loaded, spec).await?;
        Ok(Self {
            gateway,
            filings: Arc::new(filings),
            isolation_mode,
            missing_sandbox_reason,
            sandboxes,
        })
    }

    /// Gathers the evidence before the run is created, to reject an unknown, ambiguous or stale
    /// company. Synthetic evidence is not gathered.
    pub(crate) async fn gather(&self, spec: &ConsultSpec) -> Result<Option<Evidence>, CliError> {
        match spec.input.gather.source {
            EvidenceSource::Synthetic => Ok(None),
            EvidenceSource::Filings | EvidenceSource::Files => {
                self.filings.gather(&spec.input.gather).await.map(Some)
            }
        }
    }

    /// Starts sandboxes in advance.
    pub(crate) fn warm_up(&self) {
        if let Some(sandboxes) = &self.sandboxes {
            sandboxes.prewarm();
        }
    }

    /// Waits until all sandboxes are removed.
    pub(crate) async fn shut_down(&self) {
        self.filings.shut_down().await;
        if let Some(sandboxes) = &self.sandboxes {
            sandboxes.shut_down().await;
        }
    }
}

/// Opens the sources of evidence, without reading them yet. A fork inherits its evidence, so its
/// sources need not exist any more.
async fn evidence(
    context: &CommandContext,
    spec: &ConsultSpec,
    files: &RunFiles,
) -> Result<EvidenceSources, CliError> {
    let loaded = &context.loaded;
    let (settings, gather) = (&spec.settings, &spec.input.gather);
    if spec.input.parent.is_some() {
        return Ok(EvidenceSources::none());
    }
    let mut filings = match gather.source {
        EvidenceSource::Files => EvidenceSources::none(),
        EvidenceSource::Filings | EvidenceSource::Synthetic => {
            let (offline, limiter) = (settings.offline.as_deref(), context.limiter.clone());
            EvidenceSources::open(loaded, offline, &gather.ticker, limiter).await?
        }
    };
    let pdf = || {
        let engine = settings.isolation.and_then(EngineChoice::of);
        PdfSandbox::new(loaded, engine, settings.allow_shared_kernel)
    };
    if let Some(folder) = &settings.documents {
        filings = filings.with_documents(folder, pdf());
    } else if !settings.uploads.is_empty() {
        let mut uploads = BTreeMap::new();
        for (name, file) in &settings.uploads {
            uploads.insert(name.clone(), files.content(name, file)?.to_owned());
        }
        filings = filings.with_uploads(uploads, pdf());
    }
    if let Some(news) = &settings.news {
        filings = filings.with_news(news_source(news, files)?);
    }
    Ok(filings)
}

/// Isolation of the debates.
struct DebateIsolation {
    isolation_mode: IsolationMode,
    sandboxes: Option<DebateSandboxes>,
    missing_sandbox_reason: Option<String>,
}

/// Selects the isolation of debates. Debates are text, so they may run without a sandbox unless one
/// is required; events, receipt and memo then report it.
async fn open_isolation(
    loaded: &LoadedConfig,
    spec: &ConsultSpec,
) -> Result<DebateIsolation, CliError> {
    let settings = &spec.settings;
    let needs_sandbox = isolation::debate_needs_sandbox(loaded)?;
    let engine = settings.isolation.unwrap_or(IsolationChoice::Auto);
    if engine == IsolationChoice::None {
        return match needs_sandbox {
            false => Ok(DebateIsolation {
                isolation_mode: IsolationMode::None,
                sandboxes: None,
                missing_sandbox_reason: None,
            }),
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
    let host = match isolation::host(loaded) {
        Ok(host) => host,
        // This build has no guest agent.
        Err(error) => {
            return without_sandbox(SandboxFailureKind::NoEngine, error, engine, on_failure);
        }
    };
    let options = PoolOptions {
        idle: settings.parallel_moves.unwrap_or(PARALLEL_MOVES).min(MAX_IDLE) as usize,
        memory: isolation::memory(loaded),
    };
    match DebateSandboxes::open(&host, &policy, options).await {
        Ok(sandboxes) => {
            let sandboxes = sandboxes.with_ticker(spec.input.gather.subject());
            let guest_pool = Arc::new(GuestPool::new(sandboxes.clone()));
            let isolation_mode = IsolationMode::Guests { guest_pool, on_failure };
            Ok(DebateIsolation {
                isolation_mode,
                sandboxes: Some(sandboxes),
                missing_sandbox_reason: None,
            })
        }
        Err(error) => {
            let (kind, hint) = (error.failure().kind, isolation::hint(&error));
            let refused = CliError::failed("no sandbox for debates").with_source(error);
            let refused = match hint {
                Some(hint) => refused.with_hint(hint),
                None => refused,
            };
            without_sandbox(kind, refused, engine, on_failure)
        }
    }
}

/// Limit of sandboxes started in advance.
const MAX_IDLE: u32 = 4;

/// An explicitly named engine is required. Otherwise debates continue without isolation, if
/// allowed, and the reason is reported.
fn without_sandbox(
    kind: SandboxFailureKind,
    error: CliError,
    engine: IsolationChoice,
    on_failure: GuestFailurePolicy,
) -> Result<DebateIsolation, CliError> {
    if engine != IsolationChoice::Auto || on_failure == GuestFailurePolicy::Fail {
        return Err(error);
    }
    let mut detail = error.full_message();
    if let Some(hint) = &error.hint {
        detail.push_str(&format!("; {hint}"));
    }
    let failure = SandboxFailure { kind, detail: detail.clone() };
    let isolation_mode =
        IsolationMode::Guests { guest_pool: Arc::new(GuestPool::unavailable(failure)), on_failure };
    Ok(DebateIsolation { isolation_mode, sandboxes: None, missing_sandbox_reason: Some(detail) })
}
