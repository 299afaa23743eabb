//! Tables that drop their least important columns in narrow terminals.

use super::cut;
use crate::terminal::BOLD;

/// Spaces between columns.
const GAP: usize = 2;

/// The text of the last column is cut to this width before another column is dropped.
const MIN_TEXT_WIDTH: usize = 25;

/// Shorter text says nothing. The terminal wraps such a line instead.
const MIN_CUT_WIDTH: usize = 8;

pub(crate) struct TableColumn {
    title: &'static str,
    /// Columns with the highest rank are dropped first, those with rank 0 never.
    rank: u8,
    is_number: bool,
    /// Only for tables that fit.
    min_width: usize,
    cells: Vec<String>,
}

impl TableColumn {
    /// A column of text, aligned to the left.
    pub(crate) fn text(title: &'static str, rank: u8, cells: Vec<String>) -> Self {
        Self { title, rank, is_number: false, min_width: 0, cells }
    }

    /// A column of numbers, aligned to the right.
    pub(crate) fn number(title: &'static str, rank: u8, cells: Vec<String>) -> Self {
        Self { is_number: true, ..Self::text(title, rank, cells) }
    }

    /// With a width that does not depend on the cells, if there is room for it.
    pub(crate) fn at_least(self, min_width: usize) -> Self {
        Self { min_width, ..self }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        cells.max(self.title.len()).max(self.min_width)
    }

    fn padded(&self, cell: &str, width: usize) -> String {
        match self.is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        }
    }
}

pub(crate) struct Table {
    columns: Vec<TableColumn>,
}

impl Table {
    /// A table for a terminal of this width. `None` keeps every column, for files and pipes.
    pub(crate) fn new(columns: Vec<TableColumn>, terminal_width: Option<usize>) -> Self {
        let mut table = Self { columns };
        if let Some(width) = terminal_width.filter(|width| table.width() > *width) {
            table.fit(width);
        }
        table
    }

    /// The table with a bold header, one line for each row.
    pub(crate) fn render(&self) -> String {
        let rows = self.rows().into_iter().map(|row| row + "\n").collect::<String>();
        format!("{BOLD}{}{BOLD:#}\n{rows}", self.header())
    }

    pub(crate) fn header(&self) -> String {
        self.line(&self.widths(), |column| column.title)
    }

    pub(crate) fn rows(&self) -> Vec<String> {
        let count = self.columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
        let widths = self.widths();
        let row = |row: usize| {
            self.line(&widths, |column| column.cells.get(row).map_or("", String::as_str))
        };
        (0..count).map(row).collect()
    }

    /// Where the last column starts, for lines below its cells.
    pub(crate) fn last_offset(&self) -> usize {
        self.width().saturating_sub(self.last_width())
    }

    /// The widths of the columns, computed once for all lines.
    fn widths(&self) -> Vec<usize> {
        self.columns.iter().map(TableColumn::width).collect()
    }

    fn line(&self, widths: &[usize], cell: impl Fn(&TableColumn) -> &str) -> String {
        let columns = self.columns.iter().zip(widths);
        let cells: Vec<String> =
            columns.map(|(column, width)| column.padded(cell(column), *width)).collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    }

    fn width(&self) -> usize {
        let gaps = GAP * self.columns.len().saturating_sub(1);
        self.columns.iter().map(TableColumn::width).sum::<usize>() + gaps
    }

    fn last_width(&self) -> usize {
        self.columns.last().map_or(0, TableColumn::width)
    }

    /// Gives up spare width, then drops columns, then cuts the last one.
    fn fit(&mut self, width: usize) {
        for column in &mut self.columns {
            column.min_width = 0;
        }
        while self.last_offset() + self.last_width().min(MIN_TEXT_WIDTH) > width {
            let worst = self.columns.iter().map(|column| column.rank).max().unwrap_or(0);
            if worst == 0 {
                break;
            }
            self.columns.retain(|column| column.rank < worst);
        }
        let room = width.saturating_sub(self.last_offset());
        if room < MIN_CUT_WIDTH {
            return;
        }
        for cell in self.columns.iter_mut().rev().take(1).flat_map(|column| &mut column.cells) {
            if cell.chars().count() > room {
                *cell = cut(cell, room - 1);
            }
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
