//! Renders a document as Markdown: CommonMark with GitHub tables.
//!
//! Citations keep their form, `[F0:Revenue:FY2025]`, so that `moothall check` can read a memo like
//! any other text; link definitions at the end turn them into links.

use std::collections::BTreeMap;

use super::document::{DocumentBlock, DocumentTable, FilingLink, ReportDocument, TextSpan, Words};

/// The width of a bar in characters.
const BAR_CELLS: u32 = 10;

/// Renders a document as Markdown.
pub fn markdown(document: &ReportDocument) -> String {
    let mut writer = MarkdownWriter::default();
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
struct MarkdownWriter {
    text: String,
    links: BTreeMap<String, FilingLink>,
}

impl MarkdownWriter {
    /// Writes a line followed by an empty one.
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push_str("\n\n");
    }

    fn block(&mut self, block: &DocumentBlock) {
        match block {
            DocumentBlock::Heading { level, words, .. } => {
                let signs = "#".repeat(usize::from(*level) + 1);
                self.line(&format!("{signs} {}", escaped(words)));
            }
            DocumentBlock::Paragraph { words } => {
                let words = self.words(words);
                self.line(&words);
            }
            DocumentBlock::Notice { words } => {
                let words = self.words(words);
                self.line(&format!("> {words}"));
            }
            DocumentBlock::Fine { words } => {
                let words = self.words(words);
                self.line(&format!("*{words}*"));
            }
            DocumentBlock::List { numbered, items } => {
                for (at, item) in (1..).zip(items) {
                    let words = self.words(item);
                    let sign = if *numbered { format!("{at}.") } else { "-".to_owned() };
                    self.text.push_str(&format!("{sign} {words}\n"));
                }
                self.text.push('\n');
            }
            DocumentBlock::Fields { rows } => {
                for row in rows {
                    let words = self.words(&row.value);
                    self.text.push_str(&format!("- {}: {words}\n", escaped(&row.name)));
                }
                self.text.push('\n');
            }
            DocumentBlock::Table(table) => self.table(table),
        }
    }

    fn table(&mut self, table: &DocumentTable) {
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
        if let Some(TextSpan::Text { .. } | TextSpan::Strong { .. }) = words.first() {
            escape_start(&mut line);
        }
        line
    }

    fn span(&mut self, span: &TextSpan) -> String {
        match span {
            TextSpan::Text { text } => escaped(text),
            TextSpan::Strong { text } => format!("**{}**", escaped(text)),
            TextSpan::Cite { id, url, .. } => {
                if let Some(url) = url {
                    self.links.insert(id.clone(), url.clone());
                }
                format!("[{}]", escaped(id))
            }
            TextSpan::Source { id } => format!("[{}]", escaped(id)),
            TextSpan::Link { text, url } => format!("[{}]({})", escaped(text), url.as_str()),
            TextSpan::Mark { number } => format!("⚠{number}"),
            TextSpan::Bar { value, top } => bar(*value, *top),
            TextSpan::Dots { values, top } => dots(values, *top),
        }
    }

    /// Writes the link definitions of citations.
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

/// Escapes all markup. Brackets are kept because citations use them, but sequences that would form
/// a link, an image or a footnote are broken up. URLs are broken up too, because many viewers turn
/// them into links.
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

/// Whether Markdown would decode this as an entity.
fn is_entity(text: &str) -> bool {
    let name = text.trim_start_matches('&');
    let end = name.find(|sign: char| sign != '#' && !sign.is_ascii_alphanumeric());
    end.is_some_and(|end| name[end..].starts_with(';'))
}

fn ends_with_www(text: &str) -> bool {
    let tail: Vec<char> = text.chars().rev().take(3).collect();
    tail.len() == 3 && tail.iter().all(|sign| matches!(sign, 'w' | 'W'))
}

/// Escapes the first characters of a line if they would start a heading, a list, a quote or a rule.
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

/// Escapes a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
