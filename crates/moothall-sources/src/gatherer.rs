//! Gathers evidence about a company from EDGAR or from a recording of it.

mod failure;

use moothall_core::consult::{GatherFailure, GatherFailureKind, GatherRequest};
use moothall_core::evidence::bundle::{newest_annual, newest_filing};
use moothall_core::evidence::events::{FilingEvent, events};
use moothall_core::evidence::passages::{FilingPassage, passages};
use moothall_core::evidence::submissions::is_stale;
use moothall_core::evidence::{
    CalendarDay, CompanyFacts, CompanyProfile, Evidence, EvidenceError, FactSheet,
    FilerSubmissions, Filing, Provenance, SourceFile, Ticker, TickerListing, TickerLookupError,
    TickerTable,
};

use self::failure::{ambiguous, other_filer, unavailable, unknown, unreadable};
use crate::edgar::{CacheFreshness, EdgarClient, EdgarDocument, EdgarError, EdgarFile, day_of};

const TICKERS_MAX_AGE: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
const SUBMISSIONS_MAX_AGE: std::time::Duration = std::time::Duration::from_secs(60);

/// Where responses come from. Determines the default `as_of` date and what counts as today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvidenceOrigin {
    /// The SEC. The default date is today.
    Service,
    /// A recording, or a server other than the SEC's. Without an `as_of` date every filing counts,
    /// so the same recording always gives the same evidence. Staleness is measured from today.
    Recording { name: String },
    /// A recording about a fictional company. Staleness is measured from its newest filing.
    Fiction { name: String },
}

impl EvidenceOrigin {
    fn provenance(&self) -> Provenance {
        match self {
            Self::Service => Provenance::Filings,
            Self::Recording { name } | Self::Fiction { name } => {
                Provenance::Recorded { name: name.clone() }
            }
        }
    }
}

/// Why gathering failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct GatherError {
    pub kind: GatherFailureKind,
    /// What is wrong, in one line.
    pub detail: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
    /// Whether a retry may succeed.
    pub is_retryable: bool,
}

impl GatherError {
    pub(crate) fn new(kind: GatherFailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), hint: None, is_retryable: false }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<GatherError> for GatherFailure {
    /// The journal stores a single text, so the hint is appended to the detail.
    fn from(error: GatherError) -> Self {
        let detail = match &error.hint {
            Some(hint) => format!("{}; {hint}", error.detail),
            None => error.detail,
        };
        Self { kind: error.kind, detail }
    }
}

/// Gathers evidence from SEC filings.
#[derive(Debug)]
pub struct FilingGatherer {
    client: EdgarClient,
    origin: EvidenceOrigin,
}

impl FilingGatherer {
    pub fn new(client: EdgarClient, origin: EvidenceOrigin) -> Self {
        Self { client, origin }
    }

    /// Gathers the evidence for a request. `now_ms`, in Unix milliseconds, decides which cached
    /// documents are fetched again and whether the company is stale.
    ///
    /// Facts are required. Without a list of filings, events or passages, the gap is reported as
    /// missing.
    #[tracing::instrument(level = "debug", skip_all, fields(ticker = request.ticker))]
    pub async fn gather(
        &self,
        request: &GatherRequest,
        now_ms: u64,
    ) -> Result<Evidence, GatherError> {
        let ticker = Ticker::parse(&request.ticker).map_err(|error| {
            GatherError::new(GatherFailureKind::UnknownTicker, error.to_string())
        })?;
        let work = GatherTask {
            gatherer: self,
            request,
            now_ms,
            sources: Vec::new(),
            missing: Vec::new(),
        };
        work.gather(&ticker).await
    }
}

struct GatherTask<'a> {
    gatherer: &'a FilingGatherer,
    request: &'a GatherRequest,
    now_ms: u64,
    sources: Vec<SourceFile>,
    missing: Vec<String>,
}

impl GatherTask<'_> {
    async fn gather(mut self, ticker: &Ticker) -> Result<Evidence, GatherError> {
        let listing = self.listing(ticker).await?;
        let submissions = self.submissions(&listing).await?;
        let (facts, everything) = self.facts(&listing, submissions.as_ref()).await?;
        let newest = newest_day(&everything, submissions.as_ref());
        let as_of = self.as_of(newest);
        let sheet = if as_of == everything.as_of {
            everything
        } else {
            let built = tokio::task::spawn_blocking(move || FactSheet::build(&facts, as_of));
            read(built.await)?
        };
        self.check_not_stale(ticker, &sheet, submissions.as_ref(), as_of)?;
        let (events, passages) = match &submissions {
            Some(submissions) => self.filing_passages(&listing, submissions, as_of).await?,
            None => (Vec::new(), Vec::new()),
        };
        Ok(Evidence {
            company: self.company(ticker, &listing, submissions, &sheet),
            provenance: self.gatherer.origin.provenance(),
            sheet: Some(sheet),
            events,
            passages,
            documents: Vec::new(),
            headlines: Vec::new(),
            missing: self.missing,
            sources: self.sources,
        })
    }

    async fn get(
        &self,
        file: &EdgarFile,
        freshness: CacheFreshness,
    ) -> Result<EdgarDocument, EdgarError> {
        self.gatherer.client.get(file, freshness, self.now_ms).await
    }

    fn used(&mut self, file: &EdgarFile, document: &EdgarDocument) {
        let url = match &self.gatherer.origin {
            EvidenceOrigin::Service | EvidenceOrigin::Recording { .. } => file.public_url(),
            // The SEC has no such document, so its URL must not point there.
            EvidenceOrigin::Fiction { name } => format!("recording:{name}{}", file.path()),
        };
        self.sources.push(SourceFile {
            url,
            sha256: document.sha256,
            bytes: document.bytes.len() as u64,
        });
    }

    /// Finds the filer of a ticker. EDGAR's two ticker tables differ, so the second is searched if
    /// the first has no match.
    async fn listing(&self, ticker: &Ticker) -> Result<TickerListing, GatherError> {
        let mut known = Vec::new();
        for file in [EdgarFile::Tickers, EdgarFile::TickersWithExchanges] {
            let document = match self.get(&file, CacheFreshness::For(TICKERS_MAX_AGE)).await {
                Ok(document) => document,
                Err(EdgarError::NotFound) => continue,
                Err(error) => return Err(unavailable("the ticker list", &error)),
            };
            let table = TickerTable::parse(&document.bytes).map_err(unreadable)?;
            match table.find(ticker) {
                Ok(listing) => return Ok(listing.clone()),
                Err(TickerLookupError::Ambiguous(several)) => {
                    return Err(ambiguous(ticker, &several));
                }
                Err(TickerLookupError::Unknown) => known.extend(table.listings().cloned()),
            }
        }
        Err(unknown(ticker, &known))
    }

    async fn submissions(
        &mut self,
        listing: &TickerListing,
    ) -> Result<Option<FilerSubmissions>, GatherError> {
        let file = EdgarFile::Submissions(listing.cik);
        let document = match self.get(&file, CacheFreshness::For(SUBMISSIONS_MAX_AGE)).await {
            Ok(document) => document,
            Err(EdgarError::NotFound) => {
                self.missing
                    .push("list of filings: not found; events and passages are missing".to_owned());
                return Ok(None);
            }
            Err(error) => return Err(unavailable("the list of filings", &error)),
        };
        let submissions = FilerSubmissions::parse(&document.bytes).map_err(unreadable)?;
        if submissions.cik != listing.cik {
            return Err(other_filer("list of filings"));
        }
        self.used(&file, &document);
        Ok(Some(submissions))
    }

    /// The facts, and a sheet of all of them up to the latest day the request allows.
    async fn facts(
        &mut self,
        listing: &TickerListing,
        submissions: Option<&FilerSubmissions>,
    ) -> Result<(CompanyFacts, FactSheet), GatherError> {
        let file = EdgarFile::CompanyFacts(listing.cik);
        let newest = submissions.and_then(FilerSubmissions::newest_numbers);
        let document = match self.get(&file, CacheFreshness::UntilFiled { newest }).await {
            Ok(document) => document,
            Err(EdgarError::NotFound) => {
                let title = &listing.title;
                let (detail, hint) = match &self.gatherer.origin {
                    EvidenceOrigin::Service => (
                        format!("{title} has filed no machine-readable numbers"),
                        "funds, trusts and new companies often have none",
                    ),
                    EvidenceOrigin::Recording { name } | EvidenceOrigin::Fiction { name } => (
                        format!("the recording {name} contains no numbers for {title}"),
                        "run without `--offline` to use the SEC's data",
                    ),
                };
                return Err(GatherError::new(GatherFailureKind::NoFacts, detail).with_hint(hint));
            }
            Err(error) => return Err(unavailable("the company facts", &error)),
        };
        self.used(&file, &document);
        let until = match (&self.gatherer.origin, self.request.as_of) {
            (_, Some(day)) => day,
            (EvidenceOrigin::Service, None) => day_of(self.now_ms),
            (EvidenceOrigin::Recording { .. } | EvidenceOrigin::Fiction { .. }, None) => {
                CalendarDay::MAX
            }
        };
        let built = tokio::task::spawn_blocking(move || {
            let facts = CompanyFacts::parse(&document.bytes)?;
            let sheet = FactSheet::build(&facts, until)?;
            Ok((facts, sheet))
        });
        let (facts, sheet) = read(built.await)?;
        if sheet.cik != listing.cik {
            return Err(other_filer("facts document"));
        }
        Ok((facts, sheet))
    }

    /// The day up to which filings count. For a recording it defaults to the newest filing.
    fn as_of(&self, newest: CalendarDay) -> CalendarDay {
        match (&self.gatherer.origin, self.request.as_of) {
            (_, Some(day)) => day,
            (EvidenceOrigin::Service, None) => day_of(self.now_ms),
            (EvidenceOrigin::Recording { .. } | EvidenceOrigin::Fiction { .. }, None) => newest,
        }
    }

    fn check_not_stale(
        &self,
        ticker: &Ticker,
        sheet: &FactSheet,
        submissions: Option<&FilerSubmissions>,
        as_of: CalendarDay,
    ) -> Result<(), GatherError> {
        let listed = submissions.and_then(|list| list.newest_annual(as_of)).map(|one| one.filed);
        let used = newest_annual(sheet).map(|filed| filed.filed);
        let newest = listed.max(used);
        let today = match (&self.gatherer.origin, self.request.as_of) {
            (EvidenceOrigin::Fiction { .. }, None) | (_, Some(_)) => as_of,
            (_, None) => day_of(self.now_ms),
        };
        if self.request.allow_stale || !is_stale(newest, today) {
            return Ok(());
        }
        let detail = match newest {
            Some(filed) => format!(
                "the last annual report of {ticker} was filed on {filed}, more than 18 months before {today}"
            ),
            None => format!("{ticker} has filed no annual report"),
        };
        let last = newest_filing(sheet).map_or(sheet.as_of, |filed| filed.filed);
        let hint = match self.gatherer.origin {
            EvidenceOrigin::Service => {
                "the ticker may now belong to another company; use it anyway with `--allow-stale`"
                    .to_owned()
            }
            EvidenceOrigin::Recording { .. } | EvidenceOrigin::Fiction { .. } => format!(
                "use `--as-of {last}` for the company as of that day, or `--allow-stale` to use it anyway"
            ),
        };
        Err(GatherError::new(GatherFailureKind::Stale, detail).with_hint(hint))
    }

    async fn filing_passages(
        &mut self,
        listing: &TickerListing,
        submissions: &FilerSubmissions,
        as_of: CalendarDay,
    ) -> Result<(Vec<FilingEvent>, Vec<FilingPassage>), GatherError> {
        let events = events(submissions.until(as_of));
        if let Some(oldest) = submissions.filings.last()
            && submissions.has_older
            && as_of < oldest.filed
        {
            self.missing
                .push(format!("list of filings: starts on {}, after {as_of}", oldest.filed));
        }
        // Amended reports often contain only the amended part.
        let report = submissions.until(as_of).find(|filing| {
            matches!(filing.form.as_str(), "10-K" | "10-KT" | "20-F")
                && filing.primary_document.is_some()
        });
        let passages = match report {
            Some(report) => self.passages(listing, report).await?,
            None => {
                self.missing.push(format!("annual report: none listed up to {as_of}"));
                Vec::new()
            }
        };
        Ok((events, passages))
    }

    async fn passages(
        &mut self,
        listing: &TickerListing,
        report: &Filing,
    ) -> Result<Vec<FilingPassage>, GatherError> {
        let file = EdgarFile::Archive {
            cik: listing.cik,
            accession: report.accession.clone(),
            document: report.primary_document.clone().unwrap_or_default(),
        };
        let what = format!("text of the annual report ({} of {})", report.form, report.filed);
        let document = match self.get(&file, CacheFreshness::Forever).await {
            Ok(document) => document,
            Err(error @ (EdgarError::NotFound | EdgarError::TooLarge)) => {
                self.missing.push(format!("{what}: {error}"));
                return Ok(Vec::new());
            }
            Err(error) => return Err(unavailable("the annual report", &error)),
        };
        let (bytes, filing) = (document.bytes.clone(), report.clone());
        let found = tokio::task::spawn_blocking(move || passages(&bytes, &filing));
        let found = read(found.await)?;
        if found.is_empty() {
            self.missing.push(format!("{what}: item headings not found"));
        } else {
            self.used(&file, &document);
        }
        Ok(found)
    }

    fn company(
        &self,
        ticker: &Ticker,
        listing: &TickerListing,
        submissions: Option<FilerSubmissions>,
        sheet: &FactSheet,
    ) -> CompanyProfile {
        let named = submissions.as_ref().map(|list| list.name.clone());
        let known = CompanyProfile {
            name: named.filter(|name| !name.is_empty()).unwrap_or_else(|| sheet.entity.clone()),
            ticker: Some(ticker.clone()),
            cik: Some(listing.cik),
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            fictional: matches!(self.gatherer.origin, EvidenceOrigin::Fiction { .. }),
        };
        match submissions {
            Some(FilerSubmissions { industry, fiscal_year_end, former_names, .. }) => {
                CompanyProfile { industry, fiscal_year_end, former_names, ..known }
            }
            None => known,
        }
    }
}

/// Date of the newest filing in the facts or the list of filings.
fn newest_day(sheet: &FactSheet, submissions: Option<&FilerSubmissions>) -> CalendarDay {
    let listed = submissions.and_then(|list| list.filings.first()).map(|filing| filing.filed);
    let used = newest_filing(sheet).map(|filed| filed.filed);
    listed.max(used).unwrap_or(sheet.as_of)
}

/// Unwraps the result of a blocking task.
fn read<T>(
    joined: Result<Result<T, EvidenceError>, tokio::task::JoinError>,
) -> Result<T, GatherError> {
    match joined {
        Ok(built) => built.map_err(unreadable),
        Err(_) => Err(GatherError::new(
            GatherFailureKind::Unreadable,
            "reading the evidence was interrupted",
        )),
    }
}
