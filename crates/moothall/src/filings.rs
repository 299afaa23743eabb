//! From configuration and flags to evidence about a company.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::NewsChoice;
use moothall_core::consult::{GatherFailureKind, GatherRequest};
use moothall_core::evidence::{Evidence, TickerTable};
use moothall_models::Turnstile;
use moothall_sources::edgar::{
    Contact, EdgarClient, EdgarFile, EdgarOptions, Endpoints, Freshness, Patience,
};
use moothall_sources::{
    DocumentFolder, GatherError, GatherFuture, Gatherer, Gathering, NewsSource, Origin, Sources,
};
use moothall_store::now_ms;

use crate::config::{EvidenceSection, FoundBy, Loaded, Origin as ConfigOrigin};
use crate::error::{CliError, Exit};
use crate::offline::{BUNDLED_TICKER, Recording, RecordingServer};
use crate::pdf_sandbox::PdfSandbox;

/// How long the list of companies is not asked for again.
const TICKERS_ARE_FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// Where evidence is read: the SEC's service, or a recording that is served while this lives, the
/// user's documents, headlines.
#[derive(Debug)]
pub(crate) struct Filings {
    sources: Sources,
    pdf: Option<Arc<PdfSandbox>>,
    /// What was gathered before there was a run. The run takes it instead of gathering again.
    gathered: Mutex<Option<(GatherRequest, Evidence)>>,
    _server: Option<RecordingServer>,
}

impl Filings {
    /// The filings of a company. With `offline` they are those of a recording in that folder; HLXI,
    /// which does not exist, comes with the program; everybody else is the SEC's.
    pub(crate) async fn open(
        loaded: &Loaded,
        offline: Option<&Path>,
        ticker: &str,
        turnstile: Option<Arc<dyn Turnstile>>,
    ) -> Result<Self, CliError> {
        let recording = match offline {
            Some(folder) => Some(Recording::in_folder(folder)?),
            None if ticker.eq_ignore_ascii_case(BUNDLED_TICKER) => Some(Recording::Bundled),
            None => None,
        };
        match recording {
            Some(recording) => Self::recorded(recording).await,
            None => Self::of_service(loaded, turnstile),
        }
    }

    fn of(sources: Sources, server: Option<RecordingServer>) -> Self {
        Self { sources, pdf: None, gathered: Mutex::default(), _server: server }
    }

    /// No filings: documents alone.
    pub(crate) fn none() -> Self {
        Self::of(Sources::default(), None)
    }

    /// With the documents of a folder. Nothing is read yet.
    pub(crate) fn with_documents(self, folder: &Path, pdf: Arc<PdfSandbox>) -> Self {
        let read = DocumentFolder::new(folder.to_owned(), Some(pdf.clone()));
        Self { sources: self.sources.with_documents(read), pdf: Some(pdf), ..self }
    }

    /// With headlines. Nobody is asked yet.
    pub(crate) fn with_news(self, news: &NewsChoice) -> Self {
        Self { sources: self.sources.with_news(news_source(news)), ..self }
    }

    /// Waits until nothing is left of any sandbox.
    pub(crate) async fn shut_down(&self) {
        if let Some(pdf) = &self.pdf {
            pdf.shut_down().await;
        }
    }

    async fn recorded(recording: Recording) -> Result<Self, CliError> {
        let name = recording.name();
        let origin = match recording {
            Recording::Folder(_) => Origin::Recording { name },
            Recording::Bundled => Origin::Fiction { name },
        };
        let server = RecordingServer::start(recording).await?;
        let client = EdgarClient::new(EdgarOptions {
            endpoints: Endpoints::at(server.base()),
            contact: None,
            // What is on this disk already is not kept a second time.
            cache: None,
            patience: Patience::default(),
        });
        let sources = Sources::default().with_filings(Gatherer::new(client, origin));
        Ok(Self::of(sources, Some(server)))
    }

    fn client_of_service(loaded: &Loaded) -> Result<EdgarClient, CliError> {
        refuse_stray_addresses(loaded)?;
        let section = &loaded.resolved.config.evidence;
        Ok(EdgarClient::new(EdgarOptions {
            endpoints: endpoints(section),
            contact: contact(section)?,
            cache: Some(loaded.places.folders.cache.join("edgar")),
            patience: Patience::default(),
        }))
    }

    fn of_service(
        loaded: &Loaded,
        turnstile: Option<Arc<dyn Turnstile>>,
    ) -> Result<Self, CliError> {
        let mut client = Self::client_of_service(loaded)?;
        if let Some(turnstile) = turnstile {
            client = client.behind(turnstile);
        }
        let section = &loaded.resolved.config.evidence;
        let origin = if endpoints(section) == Endpoints::sec() {
            Origin::Service
        } else {
            Origin::Recording { name: section.data_url.clone() }
        };
        let sources = Sources::default().with_filings(Gatherer::new(client, origin));
        Ok(Self::of(sources, None))
    }

    /// Companies that can be asked about, by their symbols: those of a recording, or the SEC's.
    pub(crate) async fn tickers(
        loaded: &Loaded,
        offline: Option<&Path>,
    ) -> Result<TickerTable, CliError> {
        let file = EdgarFile::Tickers;
        let bytes = match offline {
            Some(folder) => Recording::in_folder(folder)?.read(&file.path()).unwrap_or_default(),
            None => {
                let client = Self::client_of_service(loaded)?;
                let document = client.get(&file, Freshness::For(TICKERS_ARE_FRESH), now_ms()).await;
                document.map_err(unread)?.bytes.to_vec()
            }
        };
        TickerTable::parse(&bytes).map_err(unread)
    }

    /// The company that comes with the program.
    pub(crate) fn bundled_tickers() -> Result<TickerTable, CliError> {
        let bytes = Recording::Bundled.read(&EdgarFile::Tickers.path()).unwrap_or_default();
        TickerTable::parse(&bytes).map_err(unread)
    }

    /// Gathers what is asked for, now. A run that asks for the same next is given this.
    pub(crate) async fn gather(&self, request: &GatherRequest) -> Result<Evidence, CliError> {
        let evidence = self.sources.gather(request, now_ms()).await.map_err(failure)?;
        *self.gathered() = Some((request.clone(), evidence.clone()));
        Ok(evidence)
    }

    fn gathered(&self) -> MutexGuard<'_, Option<(GatherRequest, Evidence)>> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gathering for Filings {
    fn gather<'a>(&'a self, request: &'a GatherRequest) -> GatherFuture<'a> {
        match self.gathered().take() {
            Some((same, evidence)) if same == *request => Box::pin(async { Ok(evidence) }),
            _ => Gathering::gather(&self.sources, request),
        }
    }
}

/// Where headlines come from.
pub(crate) fn news_source(news: &NewsChoice) -> NewsSource {
    match news {
        NewsChoice::Gdelt => NewsSource::gdelt(),
        NewsChoice::Rss(url) => NewsSource::Feed { url: url.clone() },
        NewsChoice::File(path) => NewsSource::File { path: path.clone() },
    }
}

fn endpoints(section: &EvidenceSection) -> Endpoints {
    Endpoints { data: section.data_url.clone(), www: section.www_url.clone() }
}

fn unread(error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::failed("the list of companies cannot be read")
        .with_source(error)
        .with_code(ErrorCode::EvidenceUnavailable)
}

fn contact(section: &EvidenceSection) -> Result<Option<Contact>, CliError> {
    let parse = |text: &String| {
        Contact::parse(text).map_err(|error| {
            CliError::usage("`evidence.contact` cannot be used").with_source(error)
        })
    };
    section.contact.as_ref().map(parse).transpose()
}

/// A moothall.toml that merely lies in the working folder may come from a stranger, who could have
/// numbers of his own taken for a company's filings.
fn refuse_stray_addresses(loaded: &Loaded) -> Result<(), CliError> {
    let from_folder = loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
    let theirs = |key: &str| {
        let origin = loaded.resolved.origin(key);
        matches!(origin, ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. })
    };
    if from_folder && (theirs("evidence.data_url") || theirs("evidence.www_url")) {
        return Err(CliError::usage(
            "the moothall.toml in this folder decides where filings come from",
        )
        .with_hint("if you trust it, name it: `--config moothall.toml`"));
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
        | GatherFailureKind::NoDocuments => Exit::Usage,
        _ => Exit::Failed,
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
#[path = "filings_tests.rs"]
mod tests;
