//! All that evidence comes from: filings, the user's documents, headlines.

use std::time::{SystemTime, UNIX_EPOCH};

use moothall_core::consult::{EvidenceSource, GatherFailureKind, GatherRequest};
use moothall_core::evidence::{Company, Evidence, Provenance, Ticker};
use tokio::sync::OnceCell;

use crate::documents::{DocumentFolder, Documents};
use crate::gatherer::{GatherError, Gatherer};
use crate::gathering::{GatherFuture, Gathering};
use crate::news::{News, NewsSource};

/// Gathers what a request names. Documents and headlines are read once: whoever looks first and
/// gathers later has the same, and a service that wants to be asked seldom is.
#[derive(Debug, Default)]
pub struct Sources {
    filings: Option<Gatherer>,
    folder: Option<DocumentFolder>,
    news: Option<NewsSource>,
    read_documents: OnceCell<Documents>,
    read_news: OnceCell<News>,
}

impl Sources {
    /// With the filings that this gatherer finds.
    #[must_use]
    pub fn with_filings(self, filings: Gatherer) -> Self {
        Self { filings: Some(filings), ..self }
    }

    /// With the documents of a folder.
    #[must_use]
    pub fn with_documents(self, folder: DocumentFolder) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// With headlines.
    #[must_use]
    pub fn with_news(self, news: NewsSource) -> Self {
        Self { news: Some(news), ..self }
    }

    /// Gathers what is asked for. `now_ms` is the time since 1970.
    ///
    /// Documents that were asked for must be there; news that cannot be had are named as missing.
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

impl Gathering for Sources {
    fn gather<'a>(&'a self, request: &'a GatherRequest) -> GatherFuture<'a> {
        Box::pin(async move {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            Ok(Self::gather(self, request, now_ms).await?)
        })
    }
}

/// A company about which nothing is known but what it is called.
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
        company: Company {
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
    GatherError::new(GatherFailureKind::Unavailable, format!("this run has no {what}"))
}
