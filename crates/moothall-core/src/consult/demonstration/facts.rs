//! Parses the fact table in a prompt into numbers with ids. Without a table, uses passages of the
//! user's documents.

use super::pseudo_random;
use super::quotes::{DocumentQuote, quotes};

/// A company's numbers as given in a prompt; empty if there are none. Borrowed and searched in place,
/// because every reply of a debate reads the same large table for a handful of cells.
#[derive(Debug, Default)]
pub(crate) struct DemoFacts<'a> {
    /// `$`, or a currency code followed by a space.
    currency: String,
    /// ` million`, ` thousand` or empty.
    scale: &'static str,
    columns: Vec<&'a str>,
    /// Fiscal years, oldest first.
    years: Vec<&'a str>,
    /// A metric and the other cells of its row, not yet split.
    rows: Vec<(&'a str, &'a str)>,
    /// Quotes from the user's documents, if there is no table.
    quotes: Vec<DocumentQuote>,
}

impl<'a> DemoFacts<'a> {
    /// Parses the table after the line `Money in …`.
    pub(crate) fn read(prompt: &'a str) -> Self {
        let mut facts = Self::default();
        let Some((_, behind)) = prompt.split_once("\nMoney in ") else {
            facts.quotes = quotes(prompt);
            return facts;
        };
        let unit = behind.split([',', '\n']).next().unwrap_or_default();
        let (scale, currency) = match unit.split_once(" of ") {
            Some(("millions", currency)) => (" million", currency),
            Some(("thousands", currency)) => (" thousand", currency),
            _ => ("", unit),
        };
        facts.scale = scale;
        facts.currency = if currency == "USD" { "$".to_owned() } else { format!("{currency} ") };
        for line in behind.lines().skip(1) {
            let Some(row) = line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
                if facts.columns.is_empty() { continue } else { break }
            };
            let Some((metric, cells)) = row.split_once('|') else { continue };
            match metric.trim() {
                "" => facts.columns = cells.split('|').map(str::trim).collect(),
                metric => facts.rows.push((metric, cells)),
            }
        }
        let is_year = |column: &&&str| column.len() == 6 && column.starts_with("FY");
        facts.years = facts.columns.iter().filter(is_year).copied().collect();
        facts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A fiscal year, counted back from the newest (0).
    fn year(&self, before: usize) -> Option<&'a str> {
        let at = self.years.len().checked_sub(1 + before)?;
        self.years.get(at).copied()
    }

    fn cell(&self, metric: &str, year: &str) -> Option<&'a str> {
        let (_, cells) = self.rows.iter().find(|(name, _)| *name == metric)?;
        let column = self.columns.iter().position(|column| *column == year)?;
        let cell = cells.split('|').nth(column)?.trim();
        let bare = cell.trim_end_matches(['r', 's']);
        let is_value = bare.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        is_value.then_some(bare)
    }

    /// A value formatted for a sentence.
    fn value(&self, metric: &str, year: &str) -> Option<String> {
        let cell = self.cell(metric, year)?;
        if cell.ends_with('%') || cell.ends_with('x') {
            return Some(cell.to_owned());
        }
        if let Some(days) = cell.strip_suffix('d') {
            return Some(format!("{days} days"));
        }
        let (sign, digits) = cell.strip_prefix('-').map_or(("", cell), |digits| ("-", digits));
        let (currency, scale) = (&self.currency, self.scale);
        Some(if metric.starts_with("EPS") {
            format!("{sign}{currency}{digits} per share")
        } else {
            format!("{sign}{currency}{}{scale}", separated(digits))
        })
    }

    /// Ids of the metrics that have a value in the newest year.
    pub(crate) fn ids(&self, metrics: &[&str]) -> Vec<String> {
        let Some(year) = self.year(0) else {
            let quotes = (0..metrics.len().min(2)).filter_map(|skip| self.quote(metrics, skip));
            let mut ids: Vec<String> = quotes.map(|quote| quote.id.clone()).collect();
            ids.dedup();
            return ids;
        };
        let there = metrics.iter().filter(|metric| self.cell(metric, year).is_some());
        there.map(|metric| format!("F0:{metric}:{year}")).collect()
    }

    /// A sentence about the first of these metrics that has a value in the newest year, after
    /// skipping `skip` of them.
    pub(crate) fn sentence(&self, metrics: &[&str], skip: usize) -> Option<String> {
        let Some(year) = self.year(0) else {
            return self.quote(metrics, skip).map(DocumentQuote::sentence);
        };
        let metric = metrics.iter().filter(|metric| self.cell(metric, year).is_some()).nth(skip)?;
        self.said(metric, year)
    }

    /// A quote from a document. The demo cannot judge relevance, so it picks one at random, always
    /// the same for the same metrics.
    fn quote(&self, metrics: &[&str], skip: usize) -> Option<&DocumentQuote> {
        let first = pseudo_random(metrics, self.quotes.len());
        self.quotes.get((first + skip) % self.quotes.len().max(1))
    }

    /// A sentence with a metric's value in a year.
    fn said(&self, metric: &str, year: &str) -> Option<String> {
        let value = self.value(metric, year)?;
        let cite = format!("[F0:{metric}:{year}]");
        if let Some(base) = metric.strip_suffix(".yoy") {
            let name = name(base)?.0;
            let sentence = match value.strip_prefix('-') {
                Some(fall) => format!("{name} fell by {fall} in {year} {cite}."),
                None => format!("{name} grew by {value} in {year} {cite}."),
            };
            return Some(sentence);
        }
        let (name, verb) = name(metric)?;
        Some(format!("{name} {verb} {value} in {year} {cite}."))
    }

    /// A sentence that compares a metric in the two newest years.
    pub(crate) fn change(&self, metric: &str) -> Option<String> {
        let (old, new) = (self.year(1)?, self.year(0)?);
        let (before, now) = (self.value(metric, old)?, self.value(metric, new)?);
        let (name, verb) = name(metric)?;
        Some(format!(
            "{name} {verb} {before} in {old} and {now} in {new} [F0:{metric}:{old}; F0:{metric}:{new}]."
        ))
    }

    /// A ratio of the newest year that is off by ten points, with the correct id; or a quote with
    /// one letter changed.
    pub(crate) fn wrong_sentence(&self, metrics: &[&str]) -> Option<String> {
        let Some(year) = self.year(0) else {
            return self.quote(metrics, 0).and_then(DocumentQuote::wrong_sentence);
        };
        let metric = metrics
            .iter()
            .find(|metric| self.cell(metric, year).is_some_and(|cell| cell.ends_with('%')))?;
        let (whole, rest) = self.cell(metric, year)?.split_once('.')?;
        let wrong = whole.parse::<i64>().ok()?.checked_add(10)?;
        let (name, verb) = name(metric)?;
        Some(format!("{name} {verb} {wrong}.{rest} in {year} [F0:{metric}:{year}]."))
    }
}

/// Metrics that most companies report, most informative first.
pub(crate) const COMMON_METRICS: &[&str] = &[
    "Revenue",
    "NetIncome",
    "OperatingMargin",
    "NetMargin",
    "CFO",
    "Equity",
    "Assets",
    "Cash",
    "TotalDebt",
    "GrossMargin",
    "FreeCashFlow",
    "ROE",
];

/// A metric's name in a sentence, and its verb.
fn name(metric: &str) -> Option<(&'static str, &'static str)> {
    Some(match metric {
        "Revenue" => ("Revenue", "was"),
        "GrossMargin" => ("The gross margin", "was"),
        "OperatingMargin" => ("The operating margin", "was"),
        "NetMargin" => ("The net margin", "was"),
        "FCFMargin" => ("The free cash flow margin", "was"),
        "GrossProfit" => ("Gross profit", "was"),
        "OperatingIncome" => ("Operating income", "was"),
        "NetIncome" => ("Net income", "was"),
        "EPSDiluted" => ("Diluted earnings", "were"),
        "CFO" => ("Operating cash flow", "was"),
        "Capex" => ("Capital expenditure", "was"),
        "FreeCashFlow" => ("Free cash flow", "was"),
        "Cash" => ("Cash and equivalents", "were"),
        "TotalDebt" => ("Total debt", "was"),
        "NetCash" => ("Net cash", "was"),
        "Assets" => ("Total assets", "were"),
        "Equity" => ("Shareholders' equity", "was"),
        "ResearchDevelopment" => ("Research and development expense", "was"),
        "RDIntensity" => ("Research and development as a share of revenue", "was"),
        "SellingGeneralAdmin" => ("Selling, general and administrative expense", "was"),
        "SellingMarketing" => ("Sales and marketing expense", "was"),
        "GeneralAdmin" => ("General and administrative expense", "was"),
        "CostOfRevenue" => ("The cost of revenue", "was"),
        "Inventory" => ("Inventory", "was"),
        "Receivables" => ("Accounts receivable", "were"),
        "WorkingCapital" => ("Working capital", "was"),
        "CurrentRatio" => ("The current ratio", "was"),
        "DebtToEquity" => ("Debt to equity", "was"),
        "InterestCover" => ("Interest cover", "was"),
        "DeferredRevenue" => ("Deferred revenue", "was"),
        "ROE" => ("The return on equity", "was"),
        "ROIC" => ("The return on invested capital", "was"),
        "EffectiveTaxRate" => ("The effective tax rate", "was"),
        "NetInterestIncome" => ("Net interest income", "was"),
        "NoninterestIncome" => ("Non-interest income", "was"),
        "NoninterestExpense" => ("Non-interest expense", "was"),
        "CostIncomeRatio" => ("The cost-income ratio", "was"),
        "CreditProvision" => ("The provision for credit losses", "was"),
        "Deposits" => ("Deposits", "were"),
        _ => return None,
    })
}

/// Adds thousands separators to the integer part.
fn separated(digits: &str) -> String {
    let (whole, rest) = digits.split_once('.').map_or((digits, None), |(a, b)| (a, Some(b)));
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    match rest {
        Some(rest) => format!("{text}.{rest}"),
        None => text,
    }
}
