//! Opens the sources of evidence about a company, from configuration and flags.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::NewsChoice;
use moothall_core::benchmark::BenchmarkCompany;
use moothall_core::consult::{GatherFailureKind, GatherRequest};
use moothall_core::evidence::{Evidence, TickerTable};
use moothall_models::SharedLimiter;
use moothall_sources::edgar::{
    CacheFreshness, EdgarClient, EdgarEndpoints, EdgarFile, EdgarOptions, EdgarRetrySettings,
    RecordedResponses as _, SecContact,
};
use moothall_sources::{
    CombinedGatherer, DocumentFolder, EvidenceGatherer, EvidenceOrigin, FilingGatherer,
    GatherError, GatherFuture, NewsSource,
};
use moothall_store::now_ms;

use crate::config::{ConfigFileSource, ConfigOrigin, EvidenceSection, LoadedConfig};
use crate::error::{CliError, CliExit};
use crate::filing_recording::{BUNDLED_TICKER, FilingRecording};
use crate::launch::RunFiles;
use crate::pdf_sandbox::PdfSandbox;

/// How long the cached list of companies is used.
const TICKERS_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Sources of evidence: the SEC or a recording, the user's documents, and news.
#[derive(Debug)]
pub(crate) struct EvidenceSources {
    sources: CombinedGatherer,
    pdf: Option<Arc<PdfSandbox>>,
    /// Evidence gathered before the run was created, so the run need not gather it again.
    gathered: Mutex<Option<(GatherRequest, Evidence)>>,
}

impl EvidenceSources {
    /// Opens the filings of a company. With `offline` they come from a recording in that directory;
    /// the fictional HLXI is built in; everything else comes from the SEC.
    pub(crate) fn open(
        loaded: &LoadedConfig,
        offline: Option<&Path>,
        ticker: &str,
        limiter: Option<Arc<dyn SharedLimiter>>,
    ) -> Result<Self, CliError> {
        let recording = match offline {
            Some(folder) => Some(FilingRecording::in_folder(folder)?),
            None if ticker.eq_ignore_ascii_case(BUNDLED_TICKER) => Some(FilingRecording::Bundled),
            None if ticker.starts_with(BenchmarkCompany::TICKER_PREFIX) => {
                Some(FilingRecording::Benchmark)
            }
            None => None,
        };
        match recording {
            Some(recording) => Ok(Self::from_recording(recording)),
            None => Self::from_sec(loaded, limiter),
        }
    }

    fn of(sources: CombinedGatherer) -> Self {
        Self { sources, pdf: None, gathered: Mutex::default() }
    }

    /// No filings, only documents.
    pub(crate) fn none() -> Self {
        Self::of(CombinedGatherer::default())
    }

    /// Adds the documents of a directory, without reading them yet.
    pub(crate) fn with_documents(self, folder: &Path, pdf: Arc<PdfSandbox>) -> Self {
        let read = DocumentFolder::new(folder.to_owned(), Some(pdf.clone()));
        Self { sources: self.sources.with_documents(read), pdf: Some(pdf), ..self }
    }

    /// Adds documents that were sent with a request, without reading them yet.
    pub(crate) fn with_uploads(
        self,
        uploads: BTreeMap<String, Vec<u8>>,
        pdf: Arc<PdfSandbox>,
    ) -> Self {
        let read = DocumentFolder::in_memory(uploads, Some(pdf.clone()));
        Self { sources: self.sources.with_documents(read), pdf: Some(pdf), ..self }
    }

    /// Adds news, without fetching it yet.
    pub(crate) fn with_news(self, news: NewsSource) -> Self {
        Self { sources: self.sources.with_news(news), ..self }
    }

    /// Waits until all sandboxes are removed.
    pub(crate) async fn shut_down(&self) {
        if let Some(pdf) = &self.pdf {
            pdf.shut_down().await;
        }
    }

    fn from_recording(recording: FilingRecording) -> Self {
        let name = recording.name();
        let origin = match recording {
            FilingRecording::Folder(_) => EvidenceOrigin::Recording { name },
            FilingRecording::Bundled | FilingRecording::Benchmark => {
                EvidenceOrigin::Fiction { name }
            }
        };
        let client = EdgarClient::from_recording(Arc::new(recording));
        let sources = CombinedGatherer::default().with_filings(FilingGatherer::new(client, origin));
        Self::of(sources)
    }

    fn sec_client(loaded: &LoadedConfig) -> Result<EdgarClient, CliError> {
        refuse_untrusted_urls(loaded)?;
        let section = &loaded.resolved.config.evidence;
        Ok(EdgarClient::new(EdgarOptions {
            endpoints: endpoints(section),
            contact: contact(section)?,
            cache: Some(loaded.locations.folders.cache.join("edgar")),
            retry: EdgarRetrySettings::default(),
        }))
    }

    fn from_sec(
        loaded: &LoadedConfig,
        limiter: Option<Arc<dyn SharedLimiter>>,
    ) -> Result<Self, CliError> {
        let mut client = Self::sec_client(loaded)?;
        if let Some(limiter) = limiter {
            client = client.with_shared_limiter(limiter);
        }
        let section = &loaded.resolved.config.evidence;
        let origin = if endpoints(section) == EdgarEndpoints::sec() {
            EvidenceOrigin::Service
        } else {
            EvidenceOrigin::Recording { name: section.data_url.clone() }
        };
        let sources = CombinedGatherer::default().with_filings(FilingGatherer::new(client, origin));
        Ok(Self::of(sources))
    }

    /// The companies of a recording or of the SEC, by ticker.
    pub(crate) async fn tickers(
        loaded: &LoadedConfig,
        offline: Option<&Path>,
    ) -> Result<TickerTable, CliError> {
        let file = EdgarFile::Tickers;
        let bytes = match offline {
            Some(folder) => {
                FilingRecording::in_folder(folder)?.read(&file.path()).unwrap_or_default()
            }
            None => {
                let client = Self::sec_client(loaded)?;
                let document =
                    client.get(&file, CacheFreshness::For(TICKERS_MAX_AGE), now_ms()).await;
                document.map_err(ticker_list_error)?.bytes.to_vec()
            }
        };
        TickerTable::parse(&bytes).map_err(ticker_list_error)
    }

    /// The built-in sample company.
    pub(crate) fn bundled_tickers() -> Result<TickerTable, CliError> {
        let bytes = FilingRecording::Bundled.read(&EdgarFile::Tickers.path()).unwrap_or_default();
        TickerTable::parse(&bytes).map_err(ticker_list_error)
    }

    /// Gathers evidence now, and keeps it for a run with the same request.
    pub(crate) async fn gather(&self, request: &GatherRequest) -> Result<Evidence, CliError> {
        let evidence = self.sources.gather(request, now_ms()).await.map_err(failure)?;
        *self.gathered() = Some((request.clone(), evidence.clone()));
        Ok(evidence)
    }

    fn gathered(&self) -> MutexGuard<'_, Option<(GatherRequest, Evidence)>> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EvidenceGatherer for EvidenceSources {
    fn gather<'a>(&'a self, request: &'a GatherRequest) -> GatherFuture<'a> {
        match self.gathered().take() {
            Some((same, evidence)) if same == *request => Box::pin(async { Ok(evidence) }),
            _ => EvidenceGatherer::gather(&self.sources, request),
        }
    }
}

/// The source of news. The content of an uploaded file is in `files`.
pub(crate) fn news_source(news: &NewsChoice, files: &RunFiles) -> Result<NewsSource, CliError> {
    Ok(match news {
        NewsChoice::Gdelt => NewsSource::gdelt(),
        NewsChoice::Rss(url) => NewsSource::Feed { url: url.clone() },
        NewsChoice::File(path) => NewsSource::File { path: path.clone() },
        NewsChoice::Upload { name, file } => {
            let content = files.content(name, file)?.to_owned();
            NewsSource::Upload { name: name.clone(), content }
        }
    })
}

fn endpoints(section: &EvidenceSection) -> EdgarEndpoints {
    EdgarEndpoints { data: section.data_url.clone(), www: section.www_url.clone() }
}

fn ticker_list_error(error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::failed("cannot read the list of companies")
        .with_source(error)
        .with_code(ErrorCode::EvidenceUnavailable)
}

fn contact(section: &EvidenceSection) -> Result<Option<SecContact>, CliError> {
    let parse = |text: &String| {
        SecContact::parse(text)
            .map_err(|error| CliError::usage("`evidence.contact` is invalid").with_source(error))
    };
    section.contact.as_ref().map(parse).transpose()
}

/// A `moothall.toml` in the working directory is untrusted: it could pass off invented numbers as a
/// company's filings.
fn refuse_untrusted_urls(loaded: &LoadedConfig) -> Result<(), CliError> {
    let from_folder =
        loaded.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
    let is_from_file = |key: &str| {
        let origin = loaded.resolved.origin(key);
        matches!(origin, ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. })
    };
    if from_folder && (is_from_file("evidence.data_url") || is_from_file("evidence.www_url")) {
        return Err(CliError::usage(
            "the untrusted moothall.toml in the working directory sets the source of filings",
        )
        .with_hint("if you trust it, pass `--config moothall.toml`"));
    }
    Ok(())
}

fn failure(error: GatherError) -> CliError {
    let exit = match error.kind {
        GatherFailureKind::UnknownTicker
        | GatherFailureKind::AmbiguousTicker
        | GatherFailureKind::Stale
        | GatherFailureKind::NoFacts
        | GatherFailureKind::NoContact
        | GatherFailureKind::NoDocuments => CliExit::Usage,
        _ => CliExit::Failed,
    };
    let code = match error.kind {
        GatherFailureKind::UnknownTicker => ErrorCode::UnknownTicker,
        GatherFailureKind::AmbiguousTicker => ErrorCode::AmbiguousTicker,
        GatherFailureKind::Stale => ErrorCode::StaleCompany,
        GatherFailureKind::NoFacts => ErrorCode::NoFacts,
        GatherFailureKind::NoContact => ErrorCode::NoContact,
        _ => ErrorCode::EvidenceUnavailable,
    };
    let failed = CliError::new(exit, error.detail).with_code(code);
    match error.hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

#[cfg(test)]
#[path = "evidence_sources_tests.rs"]
mod tests;
