//! Reads a filer's details and filings from the SEC's submissions document.
//!
//! The document stores filings as parallel arrays. A row that lacks a required value or cannot be
//! read is skipped, so it does not make the other thousand unavailable.

use std::fmt;

use serde::{Deserialize, de};

use super::cik::Cik;
use super::day::CalendarDay;
use super::error::{EvidenceError, check_size};
use super::item_code::ItemCode;
use super::sanitize::cleaned;

const DOCUMENT_KIND: &str = "list of filings";
/// Observed: 157 to 177 KB.
const MAX_BYTES: usize = 32 << 20;
/// The service lists at least a thousand filings or one year, whichever is more.
const MAX_FILINGS: usize = 20_000;
const MAX_NAME_CHARS: usize = 150;
const MAX_FORMER_NAMES: usize = 10;
const MAX_FORM_CHARS: usize = 20;
const MAX_DOCUMENT_BYTES: usize = 120;

/// A filer whose last annual report is older than this is rejected: its ticker may have been
/// reassigned, and advice based on old numbers is worse than none.
pub const STALE_AFTER_DAYS: i32 = 548;

/// The accession number of a filing: `0000320193-25-000079`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessionNumber(String);

impl AccessionNumber {
    /// Parses ten, two and six digits, separated by dashes.
    pub fn parse(text: &str) -> Option<Self> {
        let sound = text.len() == 20
            && text.bytes().enumerate().all(|(at, byte)| match at {
                10 | 13 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        sound.then(|| Self(text.to_owned()))
    }

    /// The number with dashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number without dashes, as used in URLs.
    pub fn digits(&self) -> String {
        self.0.replace('-', "")
    }
}

impl fmt::Display for AccessionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One filing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filing {
    /// Its accession number.
    pub accession: AccessionNumber,
    /// The form, such as `10-K` or `8-K/A`.
    pub form: String,
    /// The filing date. Acceptance times are not used, because the service changed their time zone.
    pub filed: CalendarDay,
    /// The last day of the period, or the day of the event.
    pub report_date: Option<CalendarDay>,
    /// The item codes of an 8-K.
    pub items: Vec<ItemCode>,
    /// The name of its main file, if it is a plain file name.
    pub primary_document: Option<String>,
}

impl Filing {
    /// Whether it is an annual report, including amendments.
    pub fn is_annual(&self) -> bool {
        is_annual(&self.form)
    }

    /// Whether it may add numbers to the company facts document, so the document must be
    /// fetched again.
    pub fn can_add_facts(&self) -> bool {
        self.is_annual() || matches!(base_form(&self.form), "10-Q" | "10-QT" | "6-K" | "8-K")
    }
}

/// Whether a form is an annual report, including amendments.
pub fn is_annual(form: &str) -> bool {
    matches!(base_form(form), "10-K" | "10-KT" | "10-K405" | "20-F" | "40-F")
}

fn base_form(form: &str) -> &str {
    form.strip_suffix("/A").unwrap_or(form)
}

/// Whether the last annual report is too old to use as of `today`.
pub fn is_stale(newest_annual: Option<CalendarDay>, today: CalendarDay) -> bool {
    newest_annual.is_none_or(|filed| today.days_since(filed) > STALE_AFTER_DAYS)
}

/// A filer and its filings, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilerSubmissions {
    /// The filer's CIK.
    pub cik: Cik,
    /// The filer's name.
    pub name: String,
    /// Its industry as named by the SEC.
    pub industry: Option<String>,
    /// The last day of its fiscal year as `09-26`.
    pub fiscal_year_end: Option<String>,
    /// Its former names.
    pub former_names: Vec<String>,
    /// The filings listed in this document.
    pub filings: Vec<Filing>,
    /// Whether further documents list older filings.
    pub has_older: bool,
}

impl FilerSubmissions {
    /// Parses a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, EvidenceError> {
        check_size(MAX_BYTES, DOCUMENT_KIND, bytes)?;
        let document: SubmissionsJson = serde_json::from_slice(bytes)
            .map_err(|source| EvidenceError::Json { what: DOCUMENT_KIND, source })?;
        let cleaned_text = |text: Option<String>| {
            text.map(|text| cleaned(&text, MAX_NAME_CHARS)).filter(|text| !text.is_empty())
        };
        let mut filings = document.filings.recent.rows();
        // Newest first, regardless of the order in the document; the accession number breaks ties.
        filings.sort_by(|one, other| {
            (other.filed, &other.accession).cmp(&(one.filed, &one.accession))
        });
        filings.dedup_by(|one, other| one.accession == other.accession);
        Ok(Self {
            cik: document.cik,
            name: cleaned_text(document.name).unwrap_or_default(),
            industry: cleaned_text(document.sic_description),
            fiscal_year_end: document.fiscal_year_end.as_deref().and_then(month_and_day),
            former_names: document
                .former_names
                .into_iter()
                .take(MAX_FORMER_NAMES)
                .filter_map(|former| cleaned_text(former.name))
                .collect(),
            filings,
            has_older: !document.filings.files.is_empty(),
        })
    }

    /// Filings up to `as_of`, newest first.
    pub fn until(&self, as_of: CalendarDay) -> impl Iterator<Item = &Filing> {
        self.filings.iter().filter(move |filing| filing.filed <= as_of)
    }

    /// The newest annual report up to `as_of`.
    pub fn newest_annual(&self, as_of: CalendarDay) -> Option<&Filing> {
        self.until(as_of).find(|filing| filing.is_annual())
    }

    /// The newest filing date of a filing that may have added numbers.
    pub fn newest_numbers(&self) -> Option<CalendarDay> {
        let newest = self.filings.iter().find(|filing| filing.can_add_facts());
        newest.map(|filing| filing.filed)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubmissionsJson {
    cik: Cik,
    name: Option<String>,
    sic_description: Option<String>,
    fiscal_year_end: Option<String>,
    #[serde(default)]
    former_names: Vec<FormerName>,
    filings: FilingsJson,
}

#[derive(Deserialize)]
struct FormerName {
    name: Option<String>,
}

#[derive(Deserialize)]
struct FilingsJson {
    recent: RecentFilingsJson,
    #[serde(default)]
    files: Vec<de::IgnoredAny>,
}

type Column = Vec<Option<String>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecentFilingsJson {
    accession_number: Column,
    filing_date: Column,
    form: Column,
    #[serde(default)]
    report_date: Column,
    #[serde(default)]
    items: Column,
    #[serde(default)]
    primary_document: Column,
}

impl RecentFilingsJson {
    fn rows(&self) -> Vec<Filing> {
        (0..self.accession_number.len().min(MAX_FILINGS)).filter_map(|at| self.row(at)).collect()
    }

    fn row(&self, at: usize) -> Option<Filing> {
        fn cell(column: &Column, at: usize) -> Option<&str> {
            column.get(at)?.as_deref()
        }
        Some(Filing {
            accession: AccessionNumber::parse(cell(&self.accession_number, at)?)?,
            form: cleaned(cell(&self.form, at)?, MAX_FORM_CHARS),
            filed: CalendarDay::parse(cell(&self.filing_date, at)?)?,
            report_date: cell(&self.report_date, at).and_then(CalendarDay::parse),
            items: cell(&self.items, at).map(ItemCode::list).unwrap_or_default(),
            primary_document: cell(&self.primary_document, at)
                .filter(|name| is_plain_file_name(name))
                .map(str::to_owned),
        })
    }
}

/// Whether a name is safe in a URL and a path. Some filings name a file in a style sheet folder;
/// their forms are not read.
pub fn is_plain_file_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=MAX_DOCUMENT_BYTES).contains(&name.len())
        && name.bytes().all(inner)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Converts `0926` to `09-26`; `None` if it is not a day of the year.
fn month_and_day(digits: &str) -> Option<String> {
    let (month, day) = (digits.get(..2)?, digits.get(2..)?);
    // 2024 is a leap year, so 29 February is accepted.
    CalendarDay::parse(&format!("2024-{month}-{day}")).map(|_| format!("{month}-{day}"))
}

#[cfg(test)]
#[path = "submissions_tests.rs"]
mod tests;
