//! Fiscal periods as used in fact ids.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A fiscal period; the year is the filer's own label, not a calendar year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FiscalPeriod {
    /// A fiscal year, or the balance sheet at its end: `FY2025`.
    Year(i32),
    /// One quarter, or the balance sheet at its end: `FY2026Q1`.
    Quarter(i32, u8),
    /// The first quarters of a year combined: `FY2026Q3YTD` is nine months.
    YearToDate(i32, u8),
    /// The four quarters that end with this one: `FY2026Q1TTM`.
    TrailingYear(i32, u8),
}

impl FiscalPeriod {
    /// Parses `FY2025`, `FY26`, `FY2026Q1`, `Q1FY2026`, `FY2026Q3YTD` or `FY2026Q1TTM`; spaces,
    /// dashes, underscores and case are ignored.
    ///
    /// `2026Q1` and bare years are rejected, because they may be calendar or fiscal.
    pub fn parse(text: &str) -> Option<Self> {
        // The text comes from models; no valid period is longer.
        if text.len() > 40 {
            return None;
        }
        let plain: String = text
            .chars()
            .filter(|sign| !matches!(sign, ' ' | '-' | '_'))
            .map(|letter| letter.to_ascii_uppercase())
            .collect();
        let plain = plain.trim();
        if let Some(rest) = plain.strip_suffix("YTD") {
            let (year, quarter) = year_and_quarter(rest)?;
            return Some(Self::YearToDate(year, quarter));
        }
        if let Some(rest) = plain.strip_suffix("TTM") {
            let (year, quarter) = year_and_quarter(rest)?;
            return Some(Self::TrailingYear(year, quarter));
        }
        if let Some((year, quarter)) = year_and_quarter(plain) {
            return Some(Self::Quarter(year, quarter));
        }
        plain.strip_prefix("FY").and_then(year).map(Self::Year)
    }

    /// The fiscal year it belongs to.
    pub const fn fiscal_year(self) -> i32 {
        match self {
            Self::Year(year)
            | Self::Quarter(year, _)
            | Self::YearToDate(year, _)
            | Self::TrailingYear(year, _) => year,
        }
    }

    /// The same period one year earlier.
    #[must_use]
    pub const fn year_before(self) -> Self {
        self.years_before(1)
    }

    /// The same period `years` years earlier.
    #[must_use]
    pub const fn years_before(self, years: i32) -> Self {
        match self {
            Self::Year(year) => Self::Year(year - years),
            Self::Quarter(year, quarter) => Self::Quarter(year - years, quarter),
            Self::YearToDate(year, quarter) => Self::YearToDate(year - years, quarter),
            Self::TrailingYear(year, quarter) => Self::TrailingYear(year - years, quarter),
        }
    }

    /// The period whose balance sheet is at the end of this one.
    #[must_use]
    pub const fn closing(self) -> Self {
        match self {
            Self::YearToDate(year, quarter) | Self::TrailingYear(year, quarter) => {
                Self::Quarter(year, quarter)
            }
            Self::Year(_) | Self::Quarter(..) => self,
        }
    }
}

/// `FY2026Q1` or `Q1FY2026`.
fn year_and_quarter(plain: &str) -> Option<(i32, u8)> {
    let (written_year, written_quarter) = match plain.strip_prefix("FY") {
        Some(rest) => rest.split_once('Q')?,
        None => {
            let (quarter, year) = plain.strip_prefix('Q')?.split_once("FY")?;
            (year, quarter)
        }
    };
    let quarter = match written_quarter.as_bytes() {
        [digit @ b'1'..=b'4'] => digit - b'0',
        _ => return None,
    };
    Some((year(written_year)?, quarter))
}

/// Parses a year of four digits, or of two digits in this century.
fn year(digits: &str) -> Option<i32> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i32 = digits.parse().ok()?;
    match digits.len() {
        2 => Some(2000 + number),
        4 => Some(number),
        _ => None,
    }
}

impl fmt::Display for FiscalPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Year(year) => write!(f, "FY{year:04}"),
            Self::Quarter(year, quarter) => write!(f, "FY{year:04}Q{quarter}"),
            Self::YearToDate(year, quarter) => write!(f, "FY{year:04}Q{quarter}YTD"),
            Self::TrailingYear(year, quarter) => write!(f, "FY{year:04}Q{quarter}TTM"),
        }
    }
}

impl Serialize for FiscalPeriod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FiscalPeriod {
    /// Accepts only the canonical spelling, so that each period has one spelling in files.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .filter(|period| period.to_string() == text)
            .ok_or_else(|| de::Error::custom("expected a period like FY2025 or FY2026Q1"))
    }
}

#[cfg(test)]
#[path = "period_tests.rs"]
mod tests;
