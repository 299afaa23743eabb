//! What a filer is and what it filed, from the SEC's submissions document.
//!
//! The document keeps filings as parallel arrays. They are cut to the shortest one that we need, and
//! a row that cannot be read is left out: a strange row must not hide the other thousand.

use std::fmt;

use serde::{Deserialize, de};

use super::cik::Cik;
use super::day::Day;
use super::error::{EvidenceError, within};
use super::item_code::ItemCode;
use super::text::cleaned;

const WHAT: &str = "list of filings";
/// Seen: 157 to 177 KB.
const MAX_BYTES: usize = 32 << 20;
/// The service lists a thousand filings or a year, whichever is more.
const MAX_FILINGS: usize = 20_000;
const MAX_NAME_CHARS: usize = 150;
const MAX_FORMER_NAMES: usize = 10;
const MAX_FORM_CHARS: usize = 20;
const MAX_DOCUMENT_BYTES: usize = 120;

/// A registrant whose last annual report is older than this is refused: its ticker may have passed
/// to somebody else, and advice on old numbers is worse than none.
pub const STALE_AFTER_DAYS: i32 = 548;

/// The number of a filing: `0000320193-25-000079`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Accession(String);

impl Accession {
    /// Reads ten digits, two and six, with dashes between them.
    pub fn parse(text: &str) -> Option<Self> {
        let sound = text.len() == 20
            && text.bytes().enumerate().all(|(at, byte)| match at {
                10 | 13 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        sound.then(|| Self(text.to_owned()))
    }

    /// With its dashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Without them, as it stands in addresses.
    pub fn digits(&self) -> String {
        self.0.replace('-', "")
    }
}

impl fmt::Display for Accession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One filing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filing {
    /// Its number.
    pub accession: Accession,
    /// The form, such as `10-K` or `8-K/A`.
    pub form: String,
    /// The day it was filed. Acceptance times are not used: the service changed their time zone.
    pub filed: Day,
    /// The last day of the period, or the day of the event.
    pub report_date: Option<Day>,
    /// What an 8-K is about.
    pub items: Vec<ItemCode>,
    /// The name of its main file, if it is a plain one.
    pub primary_document: Option<String>,
}

impl Filing {
    /// Whether it is an annual report, amended ones included.
    pub fn is_annual(&self) -> bool {
        is_annual(&self.form)
    }

    /// Whether numbers of the company facts document may come from it, or with it: a reason to fetch
    /// them again.
    pub fn may_bring_numbers(&self) -> bool {
        self.is_annual() || matches!(base_form(&self.form), "10-Q" | "10-QT" | "6-K" | "8-K")
    }
}

/// Whether a form is an annual report, amended ones included.
pub fn is_annual(form: &str) -> bool {
    matches!(base_form(form), "10-K" | "10-KT" | "10-K405" | "20-F" | "40-F")
}

fn base_form(form: &str) -> &str {
    form.strip_suffix("/A").unwrap_or(form)
}

/// Whether the last annual report is too old to work with, seen from `today`.
pub fn is_stale(newest_annual: Option<Day>, today: Day) -> bool {
    newest_annual.is_none_or(|filed| today.days_since(filed) > STALE_AFTER_DAYS)
}

/// A filer and its filings, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submissions {
    /// The filer.
    pub cik: Cik,
    /// Its name.
    pub name: String,
    /// Its industry in the words of the SEC.
    pub industry: Option<String>,
    /// The last day of its fiscal year as `09-26`.
    pub fiscal_year_end: Option<String>,
    /// What it was called before.
    pub former_names: Vec<String>,
    /// The filings that the document lists itself.
    pub filings: Vec<Filing>,
    /// Whether further documents list older ones.
    pub has_older: bool,
}

impl Submissions {
    /// Reads a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, EvidenceError> {
        within(MAX_BYTES, WHAT, bytes)?;
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|source| EvidenceError::Json { what: WHAT, source })?;
        let said = |text: Option<String>| {
            text.map(|text| cleaned(&text, MAX_NAME_CHARS)).filter(|text| !text.is_empty())
        };
        let mut filings = document.filings.recent.rows();
        // Newest first, whatever the document does; the number breaks ties.
        filings.sort_by(|one, other| {
            (other.filed, &other.accession).cmp(&(one.filed, &one.accession))
        });
        filings.dedup_by(|one, other| one.accession == other.accession);
        Ok(Self {
            cik: document.cik,
            name: said(document.name).unwrap_or_default(),
            industry: said(document.sic_description),
            fiscal_year_end: document.fiscal_year_end.as_deref().and_then(month_and_day),
            former_names: document
                .former_names
                .into_iter()
                .take(MAX_FORMER_NAMES)
                .filter_map(|former| said(former.name))
                .collect(),
            filings,
            has_older: !document.filings.files.is_empty(),
        })
    }

    /// The filings up to a day, newest first.
    pub fn until(&self, as_of: Day) -> impl Iterator<Item = &Filing> {
        self.filings.iter().filter(move |filing| filing.filed <= as_of)
    }

    /// The newest annual report up to a day.
    pub fn newest_annual(&self, as_of: Day) -> Option<&Filing> {
        self.until(as_of).find(|filing| filing.is_annual())
    }

    /// The newest day on which anything was filed that may have brought numbers.
    pub fn newest_numbers(&self) -> Option<Day> {
        let newest = self.filings.iter().find(|filing| filing.may_bring_numbers());
        newest.map(|filing| filing.filed)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    cik: Cik,
    name: Option<String>,
    sic_description: Option<String>,
    fiscal_year_end: Option<String>,
    #[serde(default)]
    former_names: Vec<FormerName>,
    filings: Filings,
}

#[derive(Deserialize)]
struct FormerName {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Filings {
    recent: Recent,
    #[serde(default)]
    files: Vec<de::IgnoredAny>,
}

type Column = Vec<Option<String>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recent {
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

impl Recent {
    fn rows(&self) -> Vec<Filing> {
        (0..self.accession_number.len().min(MAX_FILINGS)).filter_map(|at| self.row(at)).collect()
    }

    fn row(&self, at: usize) -> Option<Filing> {
        fn cell(column: &Column, at: usize) -> Option<&str> {
            column.get(at)?.as_deref()
        }
        Some(Filing {
            accession: Accession::parse(cell(&self.accession_number, at)?)?,
            form: cleaned(cell(&self.form, at)?, MAX_FORM_CHARS),
            filed: Day::parse(cell(&self.filing_date, at)?)?,
            report_date: cell(&self.report_date, at).and_then(Day::parse),
            items: cell(&self.items, at).map(ItemCode::list).unwrap_or_default(),
            primary_document: cell(&self.primary_document, at)
                .filter(|name| is_plain_file_name(name))
                .map(str::to_owned),
        })
    }
}

/// A name that can stand in an address and in a path without meaning anything else there. Some
/// filings name a file in a folder of a style sheet; those are forms that we do not read.
pub fn is_plain_file_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=MAX_DOCUMENT_BYTES).contains(&name.len())
        && name.bytes().all(inner)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// `0926` becomes `09-26`; anything that is no day of a year is nothing.
fn month_and_day(digits: &str) -> Option<String> {
    let (month, day) = (digits.get(..2)?, digits.get(2..)?);
    // A leap year, so that the 29th of February is a day.
    Day::parse(&format!("2024-{month}-{day}")).map(|_| format!("{month}-{day}"))
}

#[cfg(test)]
#[path = "submissions_tests.rs"]
mod tests;
