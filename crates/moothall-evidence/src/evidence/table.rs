//! The sheet as agents see it: a row for each metric, a column for each period. A citation is
//! formed from row and column, so the table costs no ids.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};

use super::bundle::newest_filing;
use super::data_check::{DataCheck, GapReason};
use super::day::Day;
use super::fact::{Fact, FactId, Unit};
use super::order::ORDER;
use super::period::Period;
use super::sheet::Sheet;
use crate::tokens_expected;

impl Sheet {
    /// The table in at most so many tokens, by our estimate.
    ///
    /// The most telling rows come first; where the room ends, the rest is left out and the last
    /// line says so. With little room there are fewer periods, too. What says whose numbers these
    /// are and in which unit is never left out, so a table has about 250 tokens at least.
    pub fn table(&self, max_tokens: u64) -> String {
        let mut chosen = None;
        for layout in LAYOUTS {
            let table = self.lay_out(layout, max_tokens);
            let enough = table.rows_shown >= layout.fewest_rows || table.rows_left_out == 0;
            chosen = Some(table.text);
            if enough {
                break;
            }
        }
        chosen.unwrap_or_default()
    }

    fn lay_out(&self, layout: &Layout, max_tokens: u64) -> LaidOut {
        let columns = self.columns(layout);
        let scale = self.scale();
        let reasons = self.gaps.iter().map(|gap| (&gap.id, gap.reason)).collect();
        let rows: Vec<String> =
            ORDER.iter().filter_map(|metric| self.row(metric, &columns, scale, &reasons)).collect();
        let mut text = self.header(&columns, scale, &rows);
        let notes = self.notes(&columns, max_tokens / NOTES_PART);
        let fixed = tokens_expected(&text) + tokens_expected(&notes);
        // The line that says what is left out is counted before it is known.
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
            // A `String` can always be written to.
            let _ = writeln!(text, "Left out for length: {} more rows.", left_out.len());
        }
        LaidOut { text, rows_shown: shown, rows_left_out: left_out.len() }
    }

    /// Years, then quarters, then the trailing year; each from old to new.
    fn columns(&self, layout: &Layout) -> Vec<Period> {
        let newest = |count: usize, wanted: fn(&Period) -> bool| {
            let periods: BTreeSet<Period> = self
                .facts
                .keys()
                .filter(|id| LEADING.contains(&id.metric.as_str()))
                .map(|id| id.period)
                .filter(wanted)
                .collect();
            let skipped = periods.len().saturating_sub(count);
            periods.into_iter().skip(skipped)
        };
        newest(layout.years, |period| matches!(period, Period::Year(_)))
            .chain(newest(layout.quarters, |period| matches!(period, Period::Quarter(..))))
            .chain(newest(layout.trailing, |period| matches!(period, Period::TrailingYear(..))))
            .collect()
    }

    /// A scale in which the newest revenue has four digits or more, as far as there is one.
    fn scale(&self) -> Scale {
        let largest = self
            .newest_year()
            .and_then(|year| {
                let value = |metric| self.value(metric, Period::Year(year));
                value("Revenue").or_else(|| value("Assets"))
            })
            .unwrap_or_default()
            .abs();
        SCALES
            .iter()
            .copied()
            .find(|scale| largest >= Decimal::from(scale.unit) * Decimal::ONE_THOUSAND)
            .unwrap_or(Scale { unit: 1, words: "" })
    }

    /// Whose numbers these are, in which units, and what the marks mean that occur.
    fn header(&self, columns: &[Period], scale: Scale, rows: &[String]) -> String {
        let mut text = format!("F0: {} (CIK {})", self.entity, self.cik);
        if self.as_of < Day::MAX {
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
        let example = columns.last().map_or_else(String::new, Period::to_string);
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

    /// A row, unless nothing is known and nothing is missed.
    fn row(
        &self,
        metric: &str,
        columns: &[Period],
        scale: Scale,
        reasons: &BTreeMap<&FactId, GapReason>,
    ) -> Option<String> {
        let ids = columns.iter().map(|column| FactId::new(metric, *column));
        let mut row = format!("| {metric} |");
        let mut tells = false;
        for id in ids {
            match (self.fact(&id), reasons.get(&id)) {
                (Some(fact), _) => {
                    tells = true;
                    let _ = write!(row, " {}{} |", shown(&id, fact, scale), mark(fact));
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

    /// What a careful reader should know about these columns, the newest of each kind.
    fn notes(&self, columns: &[Period], max_tokens: u64) -> String {
        let oldest_end =
            columns.first().and_then(|column| self.fiscal_year_ends.get(&column.fiscal_year()));
        let mut newest: BTreeMap<(u8, String), String> = BTreeMap::new();
        for check in &self.checks {
            let (kind, subject) = match check {
                DataCheck::Identity { identity, period, .. } if columns.contains(period) => {
                    (0, identity.to_string())
                }
                DataCheck::Candidates { id, .. }
                    if matches!(id.period, Period::Year(_)) && columns.contains(&id.period) =>
                {
                    (1, id.metric.clone())
                }
                DataCheck::Split { first_filed, .. } if Some(first_filed) > oldest_end => {
                    (2, first_filed.to_string())
                }
                DataCheck::UnreadableRows { .. } => (3, String::new()),
                // Restatements are marked in their cells; the rest is about other periods.
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

struct LaidOut {
    text: String,
    rows_shown: usize,
    rows_left_out: usize,
}

/// How many periods a table shows, and with how few rows the next smaller one is better.
struct Layout {
    years: usize,
    quarters: usize,
    trailing: usize,
    fewest_rows: usize,
}

const LAYOUTS: &[Layout] = &[
    Layout { years: 5, quarters: 5, trailing: 1, fewest_rows: 40 },
    Layout { years: 4, quarters: 2, trailing: 1, fewest_rows: 25 },
    Layout { years: 3, quarters: 0, trailing: 1, fewest_rows: 12 },
    Layout { years: 2, quarters: 0, trailing: 0, fewest_rows: 0 },
];
/// Notes take at most this part of a table.
const NOTES_PART: u64 = 12;
const LEFT_OUT_TOKENS: u64 = 12;

/// What cells are searched for, and what it means.
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

/// Metrics that say which periods a filer has.
const LEADING: &[&str] = &["Revenue", "NetIncome"];

#[derive(Clone, Copy)]
struct Scale {
    unit: u32,
    words: &'static str,
}

const SCALES: &[Scale] = &[
    Scale { unit: 1_000_000, words: "millions of " },
    Scale { unit: 1_000, words: "thousands of " },
];

fn mark(fact: &Fact) -> &'static str {
    match fact.filed() {
        Some(filed) if filed.split.is_some() => "s",
        Some(filed) if filed.restated_from.is_some() => "r",
        _ => "",
    }
}

/// A value as it is printed in the table.
fn shown(id: &FactId, fact: &Fact, scale: Scale) -> String {
    let value = fact.value;
    match fact.unit {
        Unit::Money | Unit::Shares => {
            let scaled = value.checked_div(Decimal::from(scale.unit)).unwrap_or(value);
            let small = scaled.abs() < Decimal::TEN && scale.unit > 1 && !scaled.is_zero();
            fixed(scaled, if small { 1 } else { 0 })
        }
        Unit::PerShare => fixed(value, if value.abs() < Decimal::new(1, 1) { 3 } else { 2 }),
        Unit::Ratio => {
            let unit = if id.is_change() { "pp" } else { "%" };
            let per_cent = value.checked_mul(Decimal::ONE_HUNDRED);
            per_cent.map_or_else(String::new, |value| format!("{}{unit}", fixed(value, 1)))
        }
        Unit::Multiple => format!("{}x", fixed(value, 2)),
        Unit::Days => format!("{}d", fixed(value, 1)),
    }
}

/// A value with so many decimals, rounded: the formatting of `Decimal` itself cuts, and would print
/// 31.97 as 31.9.
pub fn fixed(value: Decimal, decimals: u32) -> String {
    let rounded = value.round_dp_with_strategy(decimals, RoundingStrategy::MidpointAwayFromZero);
    // There is no negative zero in print.
    let rounded = if rounded.is_zero() { Decimal::ZERO } else { rounded };
    format!("{rounded:.0$}", decimals as usize)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
