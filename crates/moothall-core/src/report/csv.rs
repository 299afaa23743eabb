//! CSV rows (RFC 4180) that are safe to open in a spreadsheet. Hand-written because CSV crates
//! quote cells but do not neutralize formulas, and quoting is one line.

use super::visible::visible_line;

/// One row with its line break.
pub fn csv_line(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text.as_ref())).collect();
    cells.join(",") + "\r\n"
}

/// Prefixes a cell that starts like a formula with an apostrophe, so no spreadsheet evaluates
/// it. Negative numbers are left alone.
fn cell(text: &str) -> String {
    let mut text = visible_line(text);
    // Includes full-width characters, which some spreadsheets treat like the ASCII ones.
    let formula = text.starts_with(['=', '+', '-', '@', '|', '%', '＝', '＋', '－', '＠']);
    if formula && !is_negative_number(&text) {
        text.insert(0, '\'');
    }
    match text.contains([',', '"', ';', '\'']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

fn is_negative_number(text: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    text.strip_prefix('-').is_some_and(|number| match number.split_once('.') {
        None => is_digits(number),
        Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
    })
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
