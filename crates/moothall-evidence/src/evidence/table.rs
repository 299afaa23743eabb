//! The sheet as agents see it: one row per metric, one column per period. A citation combines row
//! and column, so the table needs no ids.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};

use super::bundle::newest_filing;
use super::data_check::{DataCheck, GapReason};
use super::day::CalendarDay;
use super::fact::{Fact, FactId, FactUnit};
use super::metric_order::ORDER;
use super::period::FiscalPeriod;
use super::sheet::FactSheet;
use crate::tokens_expected;

impl FactSheet {
    /// Renders the table in at most `max_tokens` estimated tokens.
    ///
    /// The most important rows come first; rows that do not fit are left out and the last line says
    /// so. A small limit also reduces the number of periods. The header with company and units is
    /// never left out, so a table has at least about 250 tokens.
    pub fn table(&self, max_tokens: u64) -> String {
        let mut chosen = None;
        for layout in LAYOUTS {
            let table = self.render_layout(layout, max_tokens);
            let enough = table.rows_shown >= layout.fewest_rows || table.rows_left_out == 0;
            chosen = Some(table.text);
            if enough {
                break;
            }
        }
        chosen.unwrap_or_default()
    }

    fn render_layout(&self, layout: &SheetTableLayout, max_tokens: u64) -> SheetTableText {
        let columns = self.columns(layout);
        let scale = self.scale();
        let reasons = self.gaps.iter().map(|gap| (&gap.id, gap.reason)).collect();
        let rows: Vec<String> =
            ORDER.iter().filter_map(|metric| self.row(metric, &columns, scale, &reasons)).collect();
        let mut text = self.header(&columns, scale, &rows);
        let notes = self.notes(&columns, max_tokens / NOTES_PART);
        let fixed = tokens_expected(&text) + tokens_expected(&notes);
        // Reserve space for the line about omitted rows.
        let room = max_tokens.saturating_sub(fixed + LEFT_OUT_TOKENS);
        let mut used = 0;
        let fits = |row: &&String| {
            used += tokens_expected(row);
            used <= room
        };
        let shown = rows.iter().take_while(fits).count();
        let (kept, left_out) = rows.split_at(shown);
        text.extend(kept.iter().map(String::as_str));
        text.push_str(&notes);
        if !left_out.is_empty() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "Left out for length: {} more rows.", left_out.len());
        }
        SheetTableText { text, rows_shown: shown, rows_left_out: left_out.len() }
    }

    /// Years, then quarters, then the trailing year; each from oldest to newest.
    fn columns(&self, layout: &SheetTableLayout) -> Vec<FiscalPeriod> {
        let newest = |count: usize, wanted: fn(&FiscalPeriod) -> bool| {
            let periods: BTreeSet<FiscalPeriod> = self
                .facts
                .keys()
                .filter(|id| PERIOD_METRICS.contains(&id.metric.as_str()))
                .map(|id| id.period)
                .filter(wanted)
                .collect();
            let skipped = periods.len().saturating_sub(count);
            periods.into_iter().skip(skipped)
        };
        newest(layout.years, |period| matches!(period, FiscalPeriod::Year(_)))
            .chain(newest(layout.quarters, |period| matches!(period, FiscalPeriod::Quarter(..))))
            .chain(newest(layout.trailing, |period| {
                matches!(period, FiscalPeriod::TrailingYear(..))
            }))
            .collect()
    }

    /// The largest scale in which the newest revenue has at least four digits.
    fn scale(&self) -> SheetTableScale {
        let largest = self
            .newest_year()
            .and_then(|year| {
                let value = |metric| self.value(metric, FiscalPeriod::Year(year));
                value("Revenue").or_else(|| value("Assets"))
            })
            .unwrap_or_default()
            .abs();
        SCALES
            .iter()
            .copied()
            .find(|scale| largest >= Decimal::from(scale.unit) * Decimal::ONE_THOUSAND)
            .unwrap_or(SheetTableScale { unit: 1, words: "" })
    }

    /// The header: company, units, and a legend of the marks used.
    fn header(&self, columns: &[FiscalPeriod], scale: SheetTableScale, rows: &[String]) -> String {
        let mut text = format!("F0: {} (CIK {})", self.entity, self.cik);
        if self.as_of < CalendarDay::MAX {
            let _ = write!(text, ", as of {}", self.as_of);
        }
        if let Some(newest) = newest_filing(self) {
            let _ = write!(
                text,
                "; newest filing used: {} {}, filed {}",
                newest.form, newest.accession, newest.filed
            );
        }
        if let Some((year, end)) = self.fiscal_year_ends.last_key_value() {
            let _ = write!(text, "; FY{year} ended {end}");
        }
        let (currency, words) = (&self.currency, scale.words);
        let _ = write!(text, ".\nMoney in {words}{currency}, EPS in {currency}");
        if scale.unit > 1 {
            let _ = write!(text, ", shares in {}", words.trim_end_matches(" of "));
        }
        let cells = |row: &'_ String| row.find(" |").map_or(0, |name_end| name_end + 1);
        let occurs = |sign: &str| rows.iter().any(|row| row[cells(row)..].contains(sign));
        for (_, meaning) in MARKS.iter().filter(|(sign, _)| occurs(sign)) {
            let _ = write!(text, "; {meaning}");
        }
        let example = columns.last().map_or_else(String::new, FiscalPeriod::to_string);
        let _ = writeln!(text, ". Cite a cell as [F0:row:column], such as [F0:Revenue:{example}].");
        text.push_str("| |");
        for column in columns {
            let _ = write!(text, " {column} |");
        }
        text.push_str("\n|---|");
        text.push_str(&"---|".repeat(columns.len()));
        text.push('\n');
        text
    }

    /// Renders a row; `None` if it has neither a value nor a gap.
    fn row(
        &self,
        metric: &str,
        columns: &[FiscalPeriod],
        scale: SheetTableScale,
        reasons: &BTreeMap<&FactId, GapReason>,
    ) -> Option<String> {
        let ids = columns.iter().map(|column| FactId::new(metric, *column));
        let mut row = format!("| {metric} |");
        let mut tells = false;
        for id in ids {
            match (self.fact(&id), reasons.get(&id)) {
                (Some(fact), _) => {
                    tells = true;
                    let _ = write!(row, " {}{} |", format_value(&id, fact, scale), mark(fact));
                }
                (None, Some(GapReason::NotFiled)) => {
                    tells = true;
                    row.push_str(" - |");
                }
                (None, Some(GapReason::NotMeaningful)) => row.push_str(" n.m. |"),
                (None, None) => row.push_str(" |"),
            }
        }
        row.push('\n');
        tells.then_some(row)
    }

    /// Notes about problems in these columns, the newest of each kind.
    fn notes(&self, columns: &[FiscalPeriod], max_tokens: u64) -> String {
        let oldest_end =
            columns.first().and_then(|column| self.fiscal_year_ends.get(&column.fiscal_year()));
        let mut newest: BTreeMap<(u8, String), String> = BTreeMap::new();
        for check in &self.checks {
            let (kind, subject) = match check {
                DataCheck::Identity { identity, period, .. } if columns.contains(period) => {
                    (0, identity.to_string())
                }
                DataCheck::Candidates { id, .. }
                    if matches!(id.period, FiscalPeriod::Year(_))
                        && columns.contains(&id.period) =>
                {
                    (1, id.metric.clone())
                }
                DataCheck::Split { first_filed, .. } if Some(first_filed) > oldest_end => {
                    (2, first_filed.to_string())
                }
                DataCheck::UnreadableRows { .. } => (3, String::new()),
                // Restatements are marked in their cells; the others concern periods not shown.
                DataCheck::Identity { .. }
                | DataCheck::Candidates { .. }
                | DataCheck::Split { .. }
                | DataCheck::Restated { .. } => continue,
            };
            newest.insert((kind, subject), format!("Note: {check}.\n"));
        }
        let mut used = 0;
        let fits = |note: &String| {
            used += tokens_expected(note);
            used <= max_tokens
        };
        newest.into_values().take_while(fits).collect()
    }
}

struct SheetTableText {
    text: String,
    rows_shown: usize,
    rows_left_out: usize,
}

/// How many periods a table shows, and the number of rows below which the next smaller layout is
/// used.
struct SheetTableLayout {
    years: usize,
    quarters: usize,
    trailing: usize,
    fewest_rows: usize,
}

const LAYOUTS: &[SheetTableLayout] = &[
    SheetTableLayout { years: 5, quarters: 5, trailing: 1, fewest_rows: 40 },
    SheetTableLayout { years: 4, quarters: 2, trailing: 1, fewest_rows: 25 },
    SheetTableLayout { years: 3, quarters: 0, trailing: 1, fewest_rows: 12 },
    SheetTableLayout { years: 2, quarters: 0, trailing: 0, fewest_rows: 0 },
];
/// Notes take at most one part in this many of a table.
const NOTES_PART: u64 = 12;
const LEFT_OUT_TOKENS: u64 = 12;

/// Marks to search for in cells, with their legend.
const MARKS: &[(&str, &str)] = &[
    ("%", "% = per cent"),
    ("pp |", "pp = percentage points"),
    ("x |", "x = times"),
    ("d |", "d = days"),
    ("| - |", "- = not filed under a tag that means the same"),
    ("n.m.", "n.m. = not meaningful, its base is not positive"),
    ("| |", "blank = no value"),
    ("r |", "r = restated since it was first filed"),
    ("s |", "s = put on today's shares after a split"),
];

/// Metrics that determine which periods a filer has.
const PERIOD_METRICS: &[&str] = &["Revenue", "NetIncome"];

#[derive(Clone, Copy)]
struct SheetTableScale {
    unit: u32,
    words: &'static str,
}

const SCALES: &[SheetTableScale] = &[
    SheetTableScale { unit: 1_000_000, words: "millions of " },
    SheetTableScale { unit: 1_000, words: "thousands of " },
];

fn mark(fact: &Fact) -> &'static str {
    match fact.filed() {
        Some(filed) if filed.split.is_some() => "s",
        Some(filed) if filed.restated_from.is_some() => "r",
        _ => "",
    }
}

/// Formats a value for the table.
fn format_value(id: &FactId, fact: &Fact, scale: SheetTableScale) -> String {
    let value = fact.value;
    match fact.unit {
        FactUnit::Money | FactUnit::Shares => {
            let scaled = value.checked_div(Decimal::from(scale.unit)).unwrap_or(value);
            let small = scaled.abs() < Decimal::TEN && scale.unit > 1 && !scaled.is_zero();
            fixed(scaled, if small { 1 } else { 0 })
        }
        FactUnit::PerShare => fixed(value, if value.abs() < Decimal::new(1, 1) { 3 } else { 2 }),
        FactUnit::Ratio => {
            let unit = if id.is_change() { "pp" } else { "%" };
            let per_cent = value.checked_mul(Decimal::ONE_HUNDRED);
            per_cent.map_or_else(String::new, |value| format!("{}{unit}", fixed(value, 1)))
        }
        FactUnit::Multiple => format!("{}x", fixed(value, 2)),
        FactUnit::Days => format!("{}d", fixed(value, 1)),
    }
}

/// Formats a value with `decimals` decimals, rounded. The formatting of `Decimal` itself truncates
/// and would print 31.97 as 31.9.
pub fn fixed(value: Decimal, decimals: u32) -> String {
    let rounded = value.round_dp_with_strategy(decimals, RoundingStrategy::MidpointAwayFromZero);
    // Avoid printing "-0".
    let rounded = if rounded.is_zero() { Decimal::ZERO } else { rounded };
    format!("{rounded:.0$}", decimals as usize)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
