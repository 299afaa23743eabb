//! The verdict of a panel as a table of tiers with intervals.

use std::fmt::Write as _;

use moothall_core::report::{VerdictRow, VerdictSummary};
use moothall_core::verdict::VerdictTier;

use crate::display;
use crate::terminal::{self, BOLD, DIM, RED, YELLOW};

/// Moves shown of the lead, and of each other tier.
const MAX_OTHERS: usize = 4;
/// Columns that the table is laid out for; the wider one if it fits.
const WIDTHS: [usize; 2] = [120, 80];
/// Columns of everything but the title.
const FIXED: usize = 56;
/// The same without the columns after the score, which a narrower terminal has no room for.
const NARROW_FIXED: usize = 26;
/// A shorter title says nothing.
const MIN_TITLE: usize = 10;
/// Characters of an interval between its ends.
const BAR: i32 = 5;

/// The columns of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowLayout {
    /// Columns of the title.
    title: usize,
    /// Whether the score is the last column.
    is_narrow: bool,
}

impl RowLayout {
    fn of(width: usize) -> Self {
        match WIDTHS.into_iter().find(|fits| *fits <= width) {
            Some(width) => Self { title: width - FIXED, is_narrow: false },
            None => {
                let title = width.saturating_sub(NARROW_FIXED).max(MIN_TITLE);
                Self { title, is_narrow: true }
            }
        }
    }
}

/// The width to lay the table out for. `COLUMNS` counts if the output is not a terminal.
pub(crate) fn width() -> usize {
    if terminal::stdout_is_terminal() {
        return terminal::size().0;
    }
    let columns = std::env::var("COLUMNS").ok();
    columns.and_then(|columns| columns.parse().ok()).unwrap_or(WIDTHS[1])
}

/// Writes headline, table and notes for a terminal of this width.
pub(crate) fn write(
    text: &mut String,
    verdict: &VerdictSummary<'_>,
    width: usize,
) -> std::fmt::Result {
    let layout = RowLayout::of(width);
    let width = WIDTHS.into_iter().find(|fits| *fits <= width).unwrap_or(width);
    writeln!(text, "{BOLD}Verdict   {}{BOLD:#}", display::line(&verdict.headline()))?;
    writeln!(text, "          {DIM}{}{DIM:#}", display::line(&verdict.panel_line()))?;
    if let Some(note) = verdict.label_note() {
        writeln!(text, "          {DIM}{note}{DIM:#}")?;
    }
    if let Some(progress) = verdict.progress() {
        writeln!(text, "          {YELLOW}{progress}{YELLOW:#}")?;
    }
    if let Some(sign) = verdict.sign() {
        let style = if verdict.is_failed() { RED } else { YELLOW };
        for line in terminal::wrap(&display::line(&sign), width) {
            writeln!(text, "{style}{line}{style:#}")?;
        }
    }
    let title = layout.title;
    let top = format!("score /{}", verdict.verdict.record.top_score);
    let head = format!("{:<9} {:<4} {:<title$}", "", "", "");
    let interval = verdict.verdict.record.rules.interval / 10;
    let more = match layout.is_narrow {
        true => String::new(),
        false => format!("   {interval}% interval  top 3 debates"),
    };
    writeln!(text, "{DIM}{head} {top:>10}{more}{DIM:#}")?;
    let rows = verdict.rows();
    let tiers =
        [Some(VerdictTier::Lead), Some(VerdictTier::Middle), Some(VerdictTier::Behind), None];
    for tier in tiers {
        let of_tier: Vec<&VerdictRow> = rows.iter().filter(|row| row.tier == tier).collect();
        write_tier(text, tier, &of_tier, layout)?;
    }
    let notes = [verdict.told_apart(), verdict.below_do_nothing(), verdict.expectation()];
    for note in notes.into_iter().flatten() {
        for line in terminal::wrap(&display::line(&note), width) {
            writeln!(text, "{line}")?;
        }
    }
    if let Some((headline, figures)) = verdict.stability() {
        writeln!(text, "{BOLD}Stability{BOLD:#}  {headline}")?;
        for line in terminal::wrap(&figures, width) {
            writeln!(text, "{DIM}{line}{DIM:#}")?;
        }
    }
    Ok(())
}

/// A tier: the lead in full, of the others the first few and doing nothing.
fn write_tier(
    text: &mut String,
    tier: Option<VerdictTier>,
    rows: &[&VerdictRow],
    layout: RowLayout,
) -> std::fmt::Result {
    let is_lead = tier == Some(VerdictTier::Lead);
    let most = if is_lead { rows.len() } else { MAX_OTHERS };
    let is_shown = |(place, row): &(usize, &&VerdictRow)| *place < most || row.move_id == "m0";
    let shown: Vec<&&VerdictRow> =
        rows.iter().enumerate().filter(is_shown).map(|(_, row)| row).collect();
    for (place, row) in shown.iter().enumerate() {
        let name = match (place, tier) {
            (0, Some(tier)) => tier.text().to_uppercase(),
            (0, None) => "NO TIER".to_owned(),
            _ => String::new(),
        };
        write_row(text, &name, row, layout)?;
    }
    match rows.len() - shown.len() {
        0 => Ok(()),
        more => {
            let hidden = rows.iter().filter(|row| !shown.contains(row));
            let ids: Vec<&str> = hidden.map(|row| row.move_id.as_str()).collect();
            let ids = display::line(&ids.join(", "));
            writeln!(text, "{:<9} {DIM}… {more} more: {ids}{DIM:#}", "")
        }
    }
}

fn write_row(
    text: &mut String,
    name: &str,
    row: &VerdictRow,
    RowLayout { title, is_narrow }: RowLayout,
) -> std::fmt::Result {
    let id = display::line(&row.move_id);
    // The sign of a cut comes on top.
    let shown = display::cut(&row.title, title - 1);
    let pad = " ".repeat(title.saturating_sub(shown.chars().count()));
    write!(text, "{BOLD}{name:<9}{BOLD:#} {id:<4} {shown}{pad} {:>10}", row.score)?;
    if is_narrow {
        return writeln!(text);
    }
    let interval = row.interval.map_or_else(String::new, |(low, high)| {
        format!("{low:>3} {} {high:<3}", bar(low, row.score, high))
    });
    let top3 = row.top3_percent.map_or_else(|| "–".to_owned(), |percent| format!("{percent} %"));
    writeln!(text, "   {interval:<13} {top3:>5} {:>7}", row.debates)
}

/// The interval as a line with a dot at the score: `──●──`.
fn bar(low: i32, score: i32, high: i32) -> String {
    let span = (high - low).max(1);
    let at = ((score - low) * (BAR - 1) + span / 2) / span;
    (0..BAR).map(|place| if place == at.clamp(0, BAR - 1) { '●' } else { '─' }).collect()
}

#[cfg(test)]
#[path = "verdict_table_tests.rs"]
mod tests;
