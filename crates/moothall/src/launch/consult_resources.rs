//! Opens the models, evidence and sandboxes of a consultation.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::ConsultSpec;
use moothall_core::consult::EvidenceSource;
use moothall_core::evidence::Evidence;
use moothall_models::Gateway;

use super::debate_isolation::DebateIsolation;
use super::{RunFiles, recording};
use crate::config::EngineChoice;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::evidence_sources::{EvidenceSources, news_source};
use crate::pdf_sandbox::PdfSandbox;

pub(crate) struct ConsultResources {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) filings: Arc<EvidenceSources>,
    pub(crate) isolation: DebateIsolation,
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
        let isolation = DebateIsolation::open(&context.loaded, spec, &context.progress).await?;
        Ok(Self { gateway, filings: Arc::new(filings), isolation })
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
