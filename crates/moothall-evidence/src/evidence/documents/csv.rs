//! Reads tables with cells separated by commas, semicolons or tabs (RFC 4180 and common spreadsheet
//! variants).

use super::paragraphs::{divided, one_space};
use super::row_text;

/// Columns beyond this are ignored.
const MAX_COLUMNS: usize = 64;
/// Longer cells are truncated, in characters.
const MAX_CELL_CHARS: usize = 300;
/// Files with more rows are rejected.
const MAX_ROWS: usize = 20_000;

/// Returns the rows after the first one, which names the columns.
pub(crate) fn rows(text: &str) -> Result<Vec<String>, &'static str> {
    let mut records = CsvReader::new(text);
    let columns = loop {
        match records.next_record()? {
            None => return Ok(Vec::new()),
            Some(cells) if cells.iter().all(String::is_empty) => {}
            Some(cells) => break cells,
        }
    };
    let mut rows = Vec::new();
    let mut read = 0;
    while let Some(cells) = records.next_record()? {
        read += 1;
        if read > MAX_ROWS {
            return Err("more than 20,000 rows");
        }
        let text = row_text(&columns, &cells);
        if !text.is_empty() {
            divided(&text, &mut rows);
        }
    }
    Ok(rows)
}

struct CsvReader<'a> {
    letters: std::iter::Peekable<std::str::Chars<'a>>,
    divider: char,
}

impl<'a> CsvReader<'a> {
    fn new(text: &'a str) -> Self {
        Self { letters: text.chars().peekable(), divider: divider(text) }
    }

    /// The cells of the next record; `None` at the end.
    fn next_record(&mut self) -> Result<Option<Vec<String>>, &'static str> {
        if self.letters.peek().is_none() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        loop {
            let (cell, is_last) = self.next_cell()?;
            if cells.len() < MAX_COLUMNS {
                cells.push(cell);
            }
            if is_last {
                return Ok(Some(cells));
            }
        }
    }

    /// A cell, and whether it ends its record.
    fn next_cell(&mut self) -> Result<(String, bool), &'static str> {
        let mut cell = CsvCell::default();
        let mut is_quoted = false;
        while let Some(letter) = self.letters.next() {
            match letter {
                '"' if is_quoted => {
                    if self.letters.next_if_eq(&'"').is_some() {
                        cell.push('"');
                    } else {
                        is_quoted = false;
                    }
                }
                letter if is_quoted => cell.push(letter),
                '"' if cell.is_blank() => is_quoted = true,
                '\n' => return Ok((cell.text(), true)),
                '\r' => {
                    self.letters.next_if_eq(&'\n');
                    return Ok((cell.text(), true));
                }
                letter if letter == self.divider => return Ok((cell.text(), false)),
                letter => cell.push(letter),
            }
        }
        if is_quoted { Err("unclosed quotation mark") } else { Ok((cell.text(), true)) }
    }
}

/// A cell of bounded length.
#[derive(Default)]
struct CsvCell {
    text: String,
    count: usize,
}

impl CsvCell {
    fn push(&mut self, letter: char) {
        if self.count < MAX_CELL_CHARS {
            self.text.push(letter);
            self.count += 1;
        }
    }

    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    fn text(&self) -> String {
        one_space(&self.text)
    }
}

/// The most frequent separator in the first line.
fn divider(text: &str) -> char {
    let mut counts = [(',', 0_u32), (';', 0), ('\t', 0)];
    let mut is_quoted = false;
    for letter in text.trim_start().chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\n' | '\r' if !is_quoted => break,
            letter if !is_quoted => {
                for (sign, count) in &mut counts {
                    *count += u32::from(*sign == letter);
                }
            }
            _ => {}
        }
    }
    // The comma wins a tie because it comes first.
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    counts.iter().find(|(_, count)| *count == most).map_or(',', |(sign, _)| *sign)
}
