//! Opens the models, evidence and sandboxes of a consultation.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::consult::EvidenceSource;
use moothall_core::debate::CALCULATION_IMAGE;
use moothall_core::evidence::Evidence;
use moothall_core::{ConsultSpec, IsolationChoice};
use moothall_engine::SandboxExecutor;
use moothall_models::Gateway;

use super::debate_isolation::DebateIsolation;
use super::{RunFiles, recording};
use crate::config::EngineChoice;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::evidence_sources::{EvidenceSources, news_source};
use crate::pdf_sandbox::PdfSandbox;
use crate::{isolation, process_resources};

pub(crate) struct ConsultResources {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) filings: Arc<EvidenceSources>,
    pub(crate) isolation: DebateIsolation,
    /// Runs calculations. `None` without a sandbox: then they are recorded as not run.
    pub(crate) calculations: Option<Arc<SandboxExecutor>>,
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
        let calculations = calculation_sandboxes(context, spec).await?;
        let isolation = DebateIsolation::open(&context.loaded, spec, &context.progress).await?;
        Ok(Self { gateway, filings: Arc::new(filings), isolation, calculations })
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
        self.isolation.warm_up();
    }

    /// Waits until all sandboxes are removed.
    pub(crate) async fn shut_down(&self) {
        self.filings.shut_down().await;
        self.isolation.shut_down().await;
        if let Some(calculations) = &self.calculations {
            calculations.shut_down().await;
        }
    }
}

/// Opens the sandboxes of calculations, which are programs and never run without one.
async fn calculation_sandboxes(
    context: &CommandContext,
    spec: &ConsultSpec,
) -> Result<Option<Arc<SandboxExecutor>>, CliError> {
    let settings = &spec.settings;
    // Debates of a cluster run on its workers; this process only submits the run.
    let is_submitted = settings.restate.is_some() && process_resources::kept_sandboxes().is_none();
    let is_isolated = settings.isolation != Some(IsolationChoice::None);
    if !spec.input.terms.calculations || !is_isolated || is_submitted {
        return Ok(None);
    }
    let engine = settings.isolation.and_then(EngineChoice::of);
    let policy = isolation::policy(&context.loaded, engine, settings.allow_shared_kernel)?;
    let opened = isolation::sandboxes(&context.loaded, &policy, CALCULATION_IMAGE, 1).await;
    let opened = opened.map_err(|mut error| {
        error.message = "no sandbox for calculations".to_owned();
        error
    })?;
    Ok(Some(Arc::new(SandboxExecutor::new(opened))))
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
            EvidenceSources::open(loaded, offline, &gather.ticker, limiter)?
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
