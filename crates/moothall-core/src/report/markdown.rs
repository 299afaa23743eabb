//! A document in Markdown: CommonMark with the tables of GitHub.
//!
//! Citations stay as they are written, `[F0:Revenue:FY2025]`, so that `moothall check` reads a memo
//! as it reads any text; definitions at the end make links of them.

use std::collections::BTreeMap;

use super::document::{Block, Document, Link, Span, Table, Words};

/// Signs for a bar, one cell for a tenth.
const BAR_CELLS: u32 = 10;

/// Writes a document as Markdown.
pub fn markdown(document: &Document) -> String {
    let mut writer = Writer::default();
    writer.line(&format!("# {}", escaped(&document.title)));
    if let Some(watermark) = &document.watermark {
        writer.line(&format!("**{}**", escaped(watermark)));
    }
    writer.line(&format!("*{}*", escaped(&document.subtitle)));
    for block in &document.blocks {
        writer.block(block);
    }
    writer.definitions();
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
    links: BTreeMap<String, Link>,
}

impl Writer {
    /// A line and the empty one behind it.
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push_str("\n\n");
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading { level, words, .. } => {
                let signs = "#".repeat(usize::from(*level) + 1);
                self.line(&format!("{signs} {}", escaped(words)));
            }
            Block::Paragraph { words } => {
                let words = self.words(words);
                self.line(&words);
            }
            Block::Notice { words } => {
                let words = self.words(words);
                self.line(&format!("> {words}"));
            }
            Block::Fine { words } => {
                let words = self.words(words);
                self.line(&format!("*{words}*"));
            }
            Block::List { numbered, items } => {
                for (at, item) in (1..).zip(items) {
                    let words = self.words(item);
                    let sign = if *numbered { format!("{at}.") } else { "-".to_owned() };
                    self.text.push_str(&format!("{sign} {words}\n"));
                }
                self.text.push('\n');
            }
            Block::Fields { rows } => {
                for row in rows {
                    let words = self.words(&row.value);
                    self.text.push_str(&format!("- {}: {words}\n", escaped(&row.name)));
                }
                self.text.push('\n');
            }
            Block::Table(table) => self.table(table),
        }
    }

    fn table(&mut self, table: &Table) {
        let titles: Vec<String> =
            table.columns.iter().map(|column| cell(&escaped(&column.title))).collect();
        self.text.push_str(&format!("| {} |\n|", titles.join(" | ")));
        for column in &table.columns {
            self.text.push_str(if column.numbers { "---:|" } else { "---|" });
        }
        self.text.push('\n');
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(|words| cell(&self.words(words))).collect();
            self.text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        self.text.push('\n');
    }

    fn words(&mut self, words: &Words) -> String {
        let mut line: String = words.iter().map(|span| self.span(span)).collect();
        if let Some(Span::Text { .. } | Span::Strong { .. }) = words.first() {
            escape_start(&mut line);
        }
        line
    }

    fn span(&mut self, span: &Span) -> String {
        match span {
            Span::Text { text } => escaped(text),
            Span::Strong { text } => format!("**{}**", escaped(text)),
            Span::Cite { id, url, .. } => {
                if let Some(url) = url {
                    self.links.insert(id.clone(), url.clone());
                }
                format!("[{}]", escaped(id))
            }
            Span::Source { id } => format!("[{}]", escaped(id)),
            Span::Link { text, url } => format!("[{}]({})", escaped(text), url.as_str()),
            Span::Mark { number } => format!("⚠{number}"),
            Span::Bar { value, top } => bar(*value, *top),
            Span::Dots { values, top } => dots(values, *top),
        }
    }

    /// What makes links of citations.
    fn definitions(&mut self) {
        if self.links.is_empty() {
            while self.text.ends_with("\n\n") {
                self.text.pop();
            }
        }
        for (id, url) in &self.links {
            self.text.push_str(&format!("[{}]: {}\n", escaped(id), url.as_str()));
        }
    }
}

fn bar(value: u32, top: u32) -> String {
    let full =
        (u64::from(value) * u64::from(BAR_CELLS) + u64::from(top) / 2) / u64::from(top.max(1));
    (0..u64::from(BAR_CELLS)).map(|cell| if cell < full { '█' } else { '░' }).collect()
}

fn dots(values: &[u32], top: u32) -> String {
    (1..=top.min(100)).map(|at| if values.contains(&at) { '●' } else { '·' }).collect()
}

/// Words in which nothing is markup. Brackets stay, because citations are in brackets; what would
/// make a link, an image or a footnote of them is broken up. Addresses are broken up too: many
/// readers make links of them.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        let next = signs.peek().map(|(_, next)| *next);
        match (sign, next) {
            ('<', _) => safe.push_str("&lt;"),
            ('&', _) if is_entity(&text[at..]) => safe.push_str("&amp;"),
            ('`', _) => safe.push('\''),
            ('\\' | '*' | '_' | '~', _) => safe.extend(['\\', sign]),
            (']', Some('(' | '[' | ':')) | ('!', Some('[')) | ('[', Some('^')) => {
                safe.extend([sign, ' ']);
            }
            (':', Some('/')) if text[at..].starts_with("://") => safe.push_str(": "),
            ('.', _) if ends_with_www(&text[..at]) => safe.push_str(" ."),
            _ => safe.push(sign),
        }
    }
    safe
}

/// Whether a reader of Markdown would put another sign in its place.
fn is_entity(text: &str) -> bool {
    let name = text.trim_start_matches('&');
    let end = name.find(|sign: char| sign != '#' && !sign.is_ascii_alphanumeric());
    end.is_some_and(|end| name[end..].starts_with(';'))
}

fn ends_with_www(text: &str) -> bool {
    let tail: Vec<char> = text.chars().rev().take(3).collect();
    tail.len() == 3 && tail.iter().all(|sign| matches!(sign, 'w' | 'W'))
}

/// The first signs of a line may make a headline, a list, a quotation or a rule of it.
fn escape_start(line: &mut String) {
    let first = line.chars().next();
    let is_markup = match first {
        Some('#' | '>' | '=' | '|') => true,
        Some(sign @ ('-' | '+')) => {
            let next = line.chars().nth(1);
            next.is_none_or(|next| next == ' ' || next == sign)
        }
        Some('0'..='9') => {
            let after = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
            let digits = line.len() - after.len();
            if after.starts_with(['.', ')']) && after[1..].chars().next().is_none_or(|c| c == ' ') {
                line.insert(digits, '\\');
            }
            false
        }
        _ => false,
    };
    if is_markup {
        line.insert(0, '\\');
    }
}

/// The same inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
