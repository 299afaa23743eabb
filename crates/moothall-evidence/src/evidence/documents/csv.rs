//! Rows of a table whose cells are divided by commas, semicolons or tabs (RFC 4180, and what
//! spreadsheets make of it).

use super::prose::{divided, one_space};
use super::row_text;

/// More columns of a row are not read.
const MAX_COLUMNS: usize = 64;
/// The longest cell that is kept, in characters.
const MAX_CELL_CHARS: usize = 300;
/// More rows are counted and not kept.
const MAX_ROWS: usize = 20_000;

/// The rows below the first one, which names the columns.
pub(super) fn rows(text: &str) -> Result<Vec<String>, &'static str> {
    let mut records = Records::new(text);
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
            return Err("it has more than 20,000 rows");
        }
        let text = row_text(&columns, &cells);
        if !text.is_empty() {
            divided(&text, &mut rows);
        }
    }
    Ok(rows)
}

struct Records<'a> {
    letters: std::iter::Peekable<std::str::Chars<'a>>,
    divider: char,
}

impl<'a> Records<'a> {
    fn new(text: &'a str) -> Self {
        Self { letters: text.chars().peekable(), divider: divider(text) }
    }

    /// The cells of the next record; nothing at the end.
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
        let mut cell = Cell::default();
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
        if is_quoted { Err("a quotation mark is never closed") } else { Ok((cell.text(), true)) }
    }
}

/// A cell that grows within its bound.
#[derive(Default)]
struct Cell {
    text: String,
    count: usize,
}

impl Cell {
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

/// What divides the cells of the first line most often.
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
    // Of equals the comma, which comes first.
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    counts.iter().find(|(_, count)| *count == most).map_or(',', |(sign, _)| *sign)
}
