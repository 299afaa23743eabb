//! Combines all sources of evidence: filings, the user's documents and headlines.

use std::time::{SystemTime, UNIX_EPOCH};

use moothall_core::consult::{EvidenceSource, GatherFailureKind, GatherRequest};
use moothall_core::evidence::{CompanyProfile, Evidence, Provenance, Ticker};
use tokio::sync::OnceCell;

use crate::documents::{DocumentFolder, FolderDocuments};
use crate::evidence_gatherer::{EvidenceGatherer, GatherFuture};
use crate::gatherer::{FilingGatherer, GatherError};
use crate::news::{NewsHeadlines, NewsSource};

/// Gathers the evidence a request names. Documents and headlines are read only once, so a
/// preview and the run use the same data and rate-limited services get few requests.
#[derive(Debug, Default)]
pub struct CombinedGatherer {
    filings: Option<FilingGatherer>,
    folder: Option<DocumentFolder>,
    news: Option<NewsSource>,
    read_documents: OnceCell<FolderDocuments>,
    read_news: OnceCell<NewsHeadlines>,
}

impl CombinedGatherer {
    #[must_use]
    pub fn with_filings(self, filings: FilingGatherer) -> Self {
        Self { filings: Some(filings), ..self }
    }

    #[must_use]
    pub fn with_documents(self, folder: DocumentFolder) -> Self {
        Self { folder: Some(folder), ..self }
    }

    #[must_use]
    pub fn with_news(self, news: NewsSource) -> Self {
        Self { news: Some(news), ..self }
    }

    /// Gathers the evidence for a request. `now_ms` is in Unix milliseconds.
    ///
    /// Missing documents are an error; unavailable news is reported as missing.
    pub async fn gather(
        &self,
        request: &GatherRequest,
        now_ms: u64,
    ) -> Result<Evidence, GatherError> {
        let mut evidence = match request.source {
            EvidenceSource::Files => bare(request)?,
            EvidenceSource::Filings | EvidenceSource::Synthetic => match &self.filings {
                Some(filings) => filings.gather(request, now_ms).await?,
                None => return Err(without("filings")),
            },
        };
        if request.documents.is_some() {
            let folder = self.folder.as_ref().ok_or_else(|| without("documents"))?;
            let read = self.read_documents.get_or_try_init(|| folder.read()).await?.clone();
            evidence.documents = read.documents;
            evidence.missing.extend(read.missing);
            evidence.sources.extend(read.sources);
        }
        if request.news.is_some() {
            let news = self.news.as_ref().ok_or_else(|| without("news"))?;
            let read = news.read(&evidence.company, request.as_of);
            let read = self.read_news.get_or_init(|| read).await.clone();
            evidence.headlines = read.headlines;
            evidence.missing.extend(read.missing);
            evidence.sources.extend(read.sources);
        }
        Ok(evidence)
    }
}

impl EvidenceGatherer for CombinedGatherer {
    fn gather<'a>(&'a self, request: &'a GatherRequest) -> GatherFuture<'a> {
        Box::pin(async move {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            Ok(Self::gather(self, request, now_ms).await?)
        })
    }
}

/// Evidence that holds only the company's name.
fn bare(request: &GatherRequest) -> Result<Evidence, GatherError> {
    let Some(label) = &request.documents else { return Err(without("documents")) };
    let ticker = match request.ticker.as_str() {
        "" => None,
        ticker => Some(Ticker::parse(ticker).map_err(|error| {
            GatherError::new(GatherFailureKind::UnknownTicker, error.to_string())
        })?),
    };
    let name = request.name.clone().unwrap_or_else(|| request.ticker.clone());
    Ok(Evidence {
        company: CompanyProfile {
            name,
            ticker,
            cik: None,
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            fictional: false,
        },
        provenance: Provenance::Documents { name: label.clone() },
        sheet: None,
        events: Vec::new(),
        passages: Vec::new(),
        documents: Vec::new(),
        headlines: Vec::new(),
        missing: Vec::new(),
        sources: Vec::new(),
    })
}

fn without(what: &str) -> GatherError {
    GatherError::new(GatherFailureKind::Unavailable, format!("this run has no {what} configured"))
}
