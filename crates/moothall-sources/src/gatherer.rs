//! Evidence about a company, gathered from the SEC's service or from a recording of it.

mod failure;

use moothall_core::consult::{GatherFailure, GatherFailureKind, GatherRequest};
use moothall_core::evidence::bundle::{newest_annual, newest_filing};
use moothall_core::evidence::events::{FilingEvent, events};
use moothall_core::evidence::passages::{Passage, passages};
use moothall_core::evidence::submissions::is_stale;
use moothall_core::evidence::{
    Company, CompanyFacts, Day, Evidence, EvidenceError, Filing, Listing, Provenance, Sheet,
    SourceFile, Submissions, Ticker, TickerRefusal, TickerTable,
};

use self::failure::{ambiguous, other_filer, unavailable, unknown, unreadable};
use crate::edgar::{Document, EdgarClient, EdgarError, EdgarFile, Freshness, day_of};

const TICKERS_FOR: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
const SUBMISSIONS_FOR: std::time::Duration = std::time::Duration::from_secs(60);

/// Whose answers are used, which decides what "now" is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The SEC's: now is today.
    Service,
    /// Answers recorded before, or a server that is not the SEC's. Without a day, everything that
    /// the company filed in it counts, so that the same recording gives the same evidence; whether
    /// the company is stale is judged by today.
    Recording {
        /// What it is called.
        name: String,
    },
    /// A recording about a company that does not exist, for which time stands still.
    Fiction {
        /// What it is called.
        name: String,
    },
}

impl Origin {
    fn provenance(&self) -> Provenance {
        match self {
            Self::Service => Provenance::Filings,
            Self::Recording { name } | Self::Fiction { name } => {
                Provenance::Recorded { name: name.clone() }
            }
        }
    }
}

/// Why nothing was gathered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct GatherError {
    /// The class.
    pub kind: GatherFailureKind,
    /// What is wrong, in a line.
    pub detail: String,
    /// The cure, if it is known.
    pub hint: Option<String>,
    /// Whether the same request may succeed later.
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
    /// A journal has one text for both, so that whoever reads it there is told the cure as well.
    fn from(error: GatherError) -> Self {
        let detail = match &error.hint {
            Some(hint) => format!("{}; {hint}", error.detail),
            None => error.detail,
        };
        Self { kind: error.kind, detail }
    }
}

/// Gathers evidence.
#[derive(Debug)]
pub struct Gatherer {
    client: EdgarClient,
    origin: Origin,
}

impl Gatherer {
    /// Gathers with this client, whose answers are from there.
    pub fn new(client: EdgarClient, origin: Origin) -> Self {
        Self { client, origin }
    }

    /// Gathers what is asked for. `now_ms` is the time since 1970: it decides what must be fetched
    /// again and who is stale.
    ///
    /// Numbers must be there; a list of filings, events and words that are not are named as missing.
    #[tracing::instrument(skip_all, fields(ticker = request.ticker))]
    pub async fn gather(
        &self,
        request: &GatherRequest,
        now_ms: u64,
    ) -> Result<Evidence, GatherError> {
        let ticker = Ticker::parse(&request.ticker).map_err(|error| {
            GatherError::new(GatherFailureKind::UnknownTicker, error.to_string())
        })?;
        let work =
            Work { gatherer: self, request, now_ms, sources: Vec::new(), missing: Vec::new() };
        work.gather(&ticker).await
    }
}

struct Work<'a> {
    gatherer: &'a Gatherer,
    request: &'a GatherRequest,
    now_ms: u64,
    sources: Vec<SourceFile>,
    missing: Vec<String>,
}

impl Work<'_> {
    async fn gather(mut self, ticker: &Ticker) -> Result<Evidence, GatherError> {
        let listing = self.listing(ticker).await?;
        let submissions = self.submissions(&listing).await?;
        let (facts, everything) = self.facts(&listing, submissions.as_ref()).await?;
        let newest = newest_day(&everything, submissions.as_ref());
        let as_of = self.as_of(newest);
        let sheet = if as_of == everything.as_of {
            everything
        } else {
            let built = tokio::task::spawn_blocking(move || Sheet::build(&facts, as_of));
            read(built.await)?
        };
        self.refuse_stale(ticker, &sheet, submissions.as_ref(), as_of)?;
        let (events, passages) = match &submissions {
            Some(submissions) => self.words(&listing, submissions, as_of).await?,
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

    async fn get(&self, file: &EdgarFile, freshness: Freshness) -> Result<Document, EdgarError> {
        self.gatherer.client.get(file, freshness, self.now_ms).await
    }

    fn used(&mut self, file: &EdgarFile, document: &Document) {
        let url = match &self.gatherer.origin {
            Origin::Service | Origin::Recording { .. } => file.public_url(),
            // Nobody shall look for it at the SEC.
            Origin::Fiction { name } => format!("recording:{name}{}", file.path()),
        };
        self.sources.push(SourceFile {
            url,
            sha256: document.sha256,
            bytes: document.bytes.len() as u64,
        });
    }

    /// The filer behind a symbol. The two tables of the service do not hold the same rows, so the
    /// second is asked where the first does not know.
    async fn listing(&self, ticker: &Ticker) -> Result<Listing, GatherError> {
        let mut known = Vec::new();
        for file in [EdgarFile::Tickers, EdgarFile::TickersWithExchanges] {
            let document = match self.get(&file, Freshness::For(TICKERS_FOR)).await {
                Ok(document) => document,
                Err(EdgarError::NotFound) => continue,
                Err(error) => return Err(unavailable("the list of tickers", &error)),
            };
            let table = TickerTable::parse(&document.bytes).map_err(unreadable)?;
            match table.find(ticker) {
                Ok(listing) => return Ok(listing.clone()),
                Err(TickerRefusal::Ambiguous(several)) => return Err(ambiguous(ticker, &several)),
                Err(TickerRefusal::Unknown) => known.extend(table.listings().cloned()),
            }
        }
        Err(unknown(ticker, &known))
    }

    async fn submissions(&mut self, listing: &Listing) -> Result<Option<Submissions>, GatherError> {
        let file = EdgarFile::Submissions(listing.cik);
        let document = match self.get(&file, Freshness::For(SUBMISSIONS_FOR)).await {
            Ok(document) => document,
            Err(EdgarError::NotFound) => {
                self.missing.push(
                    "list of filings: it is not there, so there are no events and no passages"
                        .to_owned(),
                );
                return Ok(None);
            }
            Err(error) => return Err(unavailable("the list of filings", &error)),
        };
        let submissions = Submissions::parse(&document.bytes).map_err(unreadable)?;
        if submissions.cik != listing.cik {
            return Err(other_filer("list of filings"));
        }
        self.used(&file, &document);
        Ok(Some(submissions))
    }

    /// The facts, and the sheet of everything that the request lets in without knowing its day.
    async fn facts(
        &mut self,
        listing: &Listing,
        submissions: Option<&Submissions>,
    ) -> Result<(CompanyFacts, Sheet), GatherError> {
        let file = EdgarFile::CompanyFacts(listing.cik);
        let newest = submissions.and_then(Submissions::newest_numbers);
        let document = match self.get(&file, Freshness::UntilFiled { newest }).await {
            Ok(document) => document,
            Err(EdgarError::NotFound) => {
                let title = &listing.title;
                let (detail, hint) = match &self.gatherer.origin {
                    Origin::Service => (
                        format!("{title} has filed no numbers that can be read"),
                        "funds, trusts and new companies often have none",
                    ),
                    Origin::Recording { name } | Origin::Fiction { name } => (
                        format!("the recording {name} has no numbers of {title}"),
                        "without `--offline` the SEC is asked",
                    ),
                };
                return Err(GatherError::new(GatherFailureKind::NoFacts, detail).with_hint(hint));
            }
            Err(error) => return Err(unavailable("the facts", &error)),
        };
        self.used(&file, &document);
        let until = match (&self.gatherer.origin, self.request.as_of) {
            (_, Some(day)) => day,
            (Origin::Service, None) => day_of(self.now_ms),
            (Origin::Recording { .. } | Origin::Fiction { .. }, None) => Day::MAX,
        };
        let built = tokio::task::spawn_blocking(move || {
            let facts = CompanyFacts::parse(&document.bytes)?;
            let sheet = Sheet::build(&facts, until)?;
            Ok((facts, sheet))
        });
        let (facts, sheet) = read(built.await)?;
        if sheet.cik != listing.cik {
            return Err(other_filer("facts document"));
        }
        Ok((facts, sheet))
    }

    /// The day up to which filings count. Without one, a recording ends with its newest filing.
    fn as_of(&self, newest: Day) -> Day {
        match (&self.gatherer.origin, self.request.as_of) {
            (_, Some(day)) => day,
            (Origin::Service, None) => day_of(self.now_ms),
            (Origin::Recording { .. } | Origin::Fiction { .. }, None) => newest,
        }
    }

    fn refuse_stale(
        &self,
        ticker: &Ticker,
        sheet: &Sheet,
        submissions: Option<&Submissions>,
        as_of: Day,
    ) -> Result<(), GatherError> {
        let listed = submissions.and_then(|list| list.newest_annual(as_of)).map(|one| one.filed);
        let used = newest_annual(sheet).map(|filed| filed.filed);
        let newest = listed.max(used);
        let today = match (&self.gatherer.origin, self.request.as_of) {
            (Origin::Fiction { .. }, None) | (_, Some(_)) => as_of,
            (_, None) => day_of(self.now_ms),
        };
        if self.request.allow_stale || !is_stale(newest, today) {
            return Ok(());
        }
        let detail = match newest {
            Some(filed) => format!(
                "the last annual report of {ticker} is of {filed}, more than 18 months before {today}"
            ),
            None => format!("{ticker} has filed no annual report"),
        };
        let last = newest_filing(sheet).map_or(sheet.as_of, |filed| filed.filed);
        let hint = match self.gatherer.origin {
            Origin::Service => {
                "the ticker may have passed to another company; `--allow-stale` uses it all the same"
                    .to_owned()
            }
            Origin::Recording { .. } | Origin::Fiction { .. } => format!(
                "`--as-of {last}` looks at it as it was then; `--allow-stale` uses it all the same"
            ),
        };
        Err(GatherError::new(GatherFailureKind::Stale, detail).with_hint(hint))
    }

    async fn words(
        &mut self,
        listing: &Listing,
        submissions: &Submissions,
        as_of: Day,
    ) -> Result<(Vec<FilingEvent>, Vec<Passage>), GatherError> {
        let events = events(submissions.until(as_of));
        if let Some(oldest) = submissions.filings.last()
            && submissions.has_older
            && as_of < oldest.filed
        {
            self.missing
                .push(format!("list of filings: it begins with {}, after {as_of}", oldest.filed));
        }
        // Amended reports often hold nothing but the part that was amended.
        let report = submissions.until(as_of).find(|filing| {
            matches!(filing.form.as_str(), "10-K" | "10-KT" | "20-F")
                && filing.primary_document.is_some()
        });
        let passages = match report {
            Some(report) => self.passages(listing, report).await?,
            None => {
                self.missing.push(format!("annual report: none is listed up to {as_of}"));
                Vec::new()
            }
        };
        Ok((events, passages))
    }

    async fn passages(
        &mut self,
        listing: &Listing,
        report: &Filing,
    ) -> Result<Vec<Passage>, GatherError> {
        let file = EdgarFile::Archive {
            cik: listing.cik,
            accession: report.accession.clone(),
            document: report.primary_document.clone().unwrap_or_default(),
        };
        let what = format!("words of the annual report ({} of {})", report.form, report.filed);
        let document = match self.get(&file, Freshness::Forever).await {
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
            self.missing.push(format!("{what}: its items were not found by their headings"));
        } else {
            self.used(&file, &document);
        }
        Ok(found)
    }

    fn company(
        &self,
        ticker: &Ticker,
        listing: &Listing,
        submissions: Option<Submissions>,
        sheet: &Sheet,
    ) -> Company {
        let named = submissions.as_ref().map(|list| list.name.clone());
        let known = Company {
            name: named.filter(|name| !name.is_empty()).unwrap_or_else(|| sheet.entity.clone()),
            ticker: Some(ticker.clone()),
            cik: Some(listing.cik),
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            fictional: matches!(self.gatherer.origin, Origin::Fiction { .. }),
        };
        match submissions {
            Some(Submissions { industry, fiscal_year_end, former_names, .. }) => {
                Company { industry, fiscal_year_end, former_names, ..known }
            }
            None => known,
        }
    }
}

/// The newest day of anything in a recording of a company.
fn newest_day(sheet: &Sheet, submissions: Option<&Submissions>) -> Day {
    let listed = submissions.and_then(|list| list.filings.first()).map(|filing| filing.filed);
    let used = newest_filing(sheet).map(|filed| filed.filed);
    listed.max(used).unwrap_or(sheet.as_of)
}

/// What a task of ours came to.
fn read<T>(
    joined: Result<Result<T, EvidenceError>, tokio::task::JoinError>,
) -> Result<T, GatherError> {
    match joined {
        Ok(built) => built.map_err(unreadable),
        Err(_) => Err(GatherError::new(
            GatherFailureKind::Unreadable,
            "the evidence could not be read to its end",
        )),
    }
}
