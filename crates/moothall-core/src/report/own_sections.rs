//! Memo sections with the user's own text around what code writes.
//!
//! A text is lines of a small part of Markdown: `#` and `##` headings, `-` lists, `>` notices and
//! paragraphs. Everything else is plain text. `{{content}}` is what code writes; it cannot be left
//! out, so an own text cannot hide a finding.

use super::consult_report::ConsultReport;
use super::document::{DocumentBlock, TextSpan, Words};
use crate::own_texts::CONTENT;
use crate::prompt_revision::PromptTemplate;
use crate::text::fill;

macro_rules! section {
    ($name:literal, $purpose:literal) => {
        PromptTemplate {
            name: $name,
            purpose: $purpose,
            v1: include_str!(concat!("memo/texts/", $name, ".md")),
            v2: include_str!(concat!("memo/texts/", $name, ".md")),
        }
    };
}

/// The sections that users may replace, in the order of the memo.
pub(crate) fn memo_templates() -> Vec<PromptTemplate> {
    vec![
        section!("recommendation", "the recommended moves and their comparison"),
        section!("brief", "the user's brief"),
        section!("changes", "what a reviewer changed"),
        section!("doing_nothing", "the score of doing nothing"),
        section!("debate_effect", "whether the debates changed the ranking"),
        section!("recommended_move", "one recommended move"),
        section!("other_moves", "the moves that are not recommended"),
        section!("sources", "everything cited"),
        section!("missing", "missing evidence"),
        section!("filing_notes", "notes on the filings"),
        section!("marks", "statements that the evidence does not support"),
        section!("record", "the run: models, cost, isolation"),
    ]
}

/// The user's own sections of a memo.
pub(crate) struct OwnSections<'a> {
    view: &'a ConsultReport,
    company: String,
    day: String,
}

impl<'a> OwnSections<'a> {
    pub(crate) fn new(view: &'a ConsultReport, day: String) -> Self {
        Self { view, company: view.proceedings.company(), day }
    }

    /// The section with the user's own text, if there is one. `built_in` starts with its heading; an
    /// empty section stays empty.
    pub(crate) fn apply(
        &self,
        name: &str,
        values: &[(&str, &str)],
        built_in: Vec<DocumentBlock>,
    ) -> Vec<DocumentBlock> {
        let committee = &self.view.input.committee;
        let Some(text) = committee.memo.get(name) else { return built_in };
        let mut content = built_in.into_iter();
        let Some(heading) = content.next() else { return Vec::new() };
        let common =
            [("company", &*self.company), ("day", &*self.day), ("committee", &*committee.name)];
        let values = [values, &common].concat();
        // A move without a rank has no number.
        let text = match values.contains(&("rank", "")) {
            true => text.replace("{{rank}}. ", ""),
            false => text.to_owned(),
        };
        let mut blocks = blocks(&text, &values, content.collect());
        let starts_page = matches!(heading, DocumentBlock::Heading { new_page: true, .. });
        if let Some(DocumentBlock::Heading { new_page, .. }) = blocks.first_mut() {
            *new_page = starts_page;
        }
        blocks
    }
}

fn blocks(text: &str, values: &[(&str, &str)], content: Vec<DocumentBlock>) -> Vec<DocumentBlock> {
    let mut content = Some(content);
    let mut blocks = Vec::new();
    let mut paragraph: Vec<String> = Vec::new();
    let mut items: Vec<Words> = Vec::new();
    // A last empty line ends an open paragraph or list.
    for line in text.lines().chain([""]) {
        let line = line.trim();
        let item = line.strip_prefix("- ");
        let is_prose = !line.is_empty()
            && item.is_none()
            && !["# ", "## ", "> "].iter().any(|sign| line.starts_with(sign))
            && line.strip_prefix("{{").and_then(|line| line.strip_suffix("}}")) != Some(CONTENT);
        if !is_prose && !paragraph.is_empty() {
            blocks.push(DocumentBlock::paragraph(&std::mem::take(&mut paragraph).join(" ")));
        }
        if item.is_none() && !items.is_empty() {
            let items = std::mem::take(&mut items);
            blocks.push(DocumentBlock::List { numbered: false, items });
        }
        // Values are filled in line by line: a title written by a model cannot start a new block.
        if is_prose {
            paragraph.push(fill(line, values));
        } else if let Some(item) = item {
            items.push(vec![TextSpan::text(&fill(item, values))]);
        } else if let Some(words) = line.strip_prefix("# ") {
            blocks.push(DocumentBlock::heading(1, &fill(words, values)));
        } else if let Some(words) = line.strip_prefix("## ") {
            blocks.push(DocumentBlock::heading(2, &fill(words, values)));
        } else if let Some(words) = line.strip_prefix("> ") {
            blocks.push(DocumentBlock::notice(&fill(words, values)));
        } else if !line.is_empty() {
            blocks.extend(content.take().unwrap_or_default());
        }
    }
    blocks
}

#[cfg(test)]
#[path = "own_sections_tests.rs"]
mod tests;
