//! The evidence as agents read it.
//!
//! One text for everyone who proposes, attacks and defends: the same bytes in every prompt, so that
//! a provider caches it once. It has a bound in tokens, and what is cut is said to be cut.

use std::fmt::Write as _;

use super::checking::citation;
use super::proceedings::{Document, Proceedings};
use super::words::{fit, lines};
use crate::evidence::{Evidence, FactId, FilingEvent, Passage, Period, Sheet};
use crate::model::PromptText;
use crate::tokens_expected;
use crate::words::{fenced, fill, one_line};

/// The most tokens that a dossier takes, whatever the window.
const MAX_TOKENS: u64 = 8_000;

/// What a heading and two fences cost.
const FRAME_TOKENS: u64 = 24;

/// F1 and F2 take at most this part of a dossier each, in hundredths.
const READING_PERCENT: u64 = 20;

/// Of what they leave: events and passages are kept this part, the table takes the rest.
const EVENTS_PERCENT: u64 = 12;
const PASSAGES_PERCENT: u64 = 25;

/// What code found in F1 and F2, at most so many lines.
const MAX_FOUND: usize = 8;

/// How many years of revenue F2 is shown.
const REVENUE_YEARS: i32 = 5;

const HEAD: &str = include_str!("prompts/dossier.md");
const CITE: &str = include_str!("prompts/cite.md");
const CITE_SYNTHETIC: &str = include_str!("prompts/cite_synthetic.md");

/// The most tokens that evidence takes of a window: a third of it, and not more than 8,000.
pub fn dossier_tokens(window_tokens: u32) -> u64 {
    MAX_TOKENS.min(u64::from(window_tokens) / 3)
}

/// How many tokens of a dossier F1 and F2 have each.
pub(super) fn reading_tokens(window_tokens: u32) -> u64 {
    dossier_tokens(window_tokens) * READING_PERCENT / 100
}

/// How agents cite the evidence of this run.
pub(super) fn how_to_cite(known: &Proceedings) -> &'static str {
    if known.is_synthetic() { CITE_SYNTHETIC.trim_end() } else { CITE.trim_end() }
}

/// The dossier.
pub(super) fn dossier(known: &Proceedings, window_tokens: u32) -> PromptText {
    let mut room = Room::new(head(known), dossier_tokens(window_tokens));
    let each = room.left() * READING_PERCENT / 100;
    room.add("F1: what the numbers mean", &reading(known.f1.as_ref()), each);
    room.add("F2: what the events and texts mean", &reading(known.f2.as_ref()), each);
    if known.is_synthetic() {
        let half = room.left() / 2;
        room.add("Financial data", known.financials.as_deref().unwrap_or_default(), half);
        room.add("News", known.news.as_deref().unwrap_or_default(), room.left());
    } else if let Some(evidence) = &known.evidence {
        filed(&mut room, evidence);
    }
    room.text.into()
}

/// What F1 is shown: the fact table.
pub(super) fn for_financial(known: &Proceedings, window_tokens: u32) -> String {
    let mut room = Room::new(head(known), dossier_tokens(window_tokens));
    let all = room.left();
    match known.evidence.as_deref().and_then(|evidence| evidence.sheet.as_ref()) {
        Some(sheet) => room.add_table(sheet, all),
        None => {
            room.add("Financial data", known.financials.as_deref().unwrap_or_default(), all);
        }
    }
    room.text
}

/// What F2 is shown: events, passages, and the lines of revenue that they go with.
pub(super) fn for_trend(known: &Proceedings, window_tokens: u32) -> String {
    let mut room = Room::new(head(known), dossier_tokens(window_tokens));
    let Some(evidence) = known.evidence.as_deref() else { return room.text };
    if known.is_synthetic() {
        let all = room.left();
        room.add("News", known.news.as_deref().unwrap_or_default(), all);
        return room.text;
    }
    let revenue = evidence.sheet.as_ref().map(revenue_lines).unwrap_or_default();
    let all = room.left();
    room.add("F0: revenue", &revenue, all);
    let half = room.left() / 2;
    room.add("E0: filing events, newest first", &event_lines(&evidence.events), half);
    let rest = room.left();
    room.add("T0: passages of the annual report", &passage_lines(&evidence.passages), rest);
    room.text
}

fn head(known: &Proceedings) -> String {
    let (company, source) = (known.company(), known.source_line());
    let values = [("company", &*company), ("source", &*source), ("cite", how_to_cite(known))];
    let mut head = fill(HEAD, &values) + "\n";
    let Some(evidence) = known.evidence.as_deref() else { return head };
    let unread = [("F1", known.failures.get("F1")), ("F2", known.failures.get("F2"))];
    let unread = unread.into_iter().filter(|(_, why)| why.is_some());
    let unread = unread.map(|(name, _)| format!("{name} could not be written"));
    let missing = evidence.missing.iter().cloned().chain(evidence.warnings()).chain(unread);
    let missing: Vec<String> = missing.map(|line| one_line(&line, 200)).collect();
    if !missing.is_empty() {
        head.push_str("What is missing or old:\n");
        for line in missing.iter().take(MAX_FOUND) {
            // Writing to a string cannot fail.
            let _ = writeln!(head, "- {line}");
        }
    }
    head
}

/// Table, events and passages. The table is cut by rows, so it is laid out first, with room kept
/// for the others as far as they need it.
fn filed(room: &mut Room, evidence: &Evidence) {
    let (events, passages) = (event_lines(&evidence.events), passage_lines(&evidence.passages));
    let needs = |text: &str, percent: u64, left: u64| match text {
        "" => 0,
        text => (tokens_expected(text) + FRAME_TOKENS).min(left * percent / 100),
    };
    let left = room.left();
    let for_events = needs(&events, EVENTS_PERCENT, left);
    let for_passages = needs(&passages, PASSAGES_PERCENT, left);
    if let Some(sheet) = &evidence.sheet {
        room.add_table(sheet, left.saturating_sub(for_events + for_passages));
    }
    let left = room.left().saturating_sub(for_passages);
    room.add("E0: filing events, newest first", &events, left);
    let left = room.left();
    room.add("T0: passages of the annual report", &passages, left);
}

/// A text that grows within a bound.
struct Room {
    text: String,
    used: u64,
    all: u64,
}

impl Room {
    fn new(head: String, all: u64) -> Self {
        // Even a head can be too long for the smallest window.
        let text = fit(&head, all).unwrap_or(head);
        Self { used: tokens_expected(&text), text, all }
    }

    fn left(&self) -> u64 {
        self.all.saturating_sub(self.used)
    }

    /// Adds a section in at most so many tokens; nothing where there is nothing to say or no room.
    fn add(&mut self, heading: &str, body: &str, most: u64) {
        let most = most.min(self.left()).saturating_sub(FRAME_TOKENS);
        if body.is_empty() || most < FRAME_TOKENS {
            return;
        }
        let body = fit(body, most).unwrap_or_else(|| body.to_owned());
        self.push(&format!("\n## {heading}\n{}\n", fenced(&body)));
    }

    fn add_table(&mut self, sheet: &Sheet, most: u64) {
        let most = most.min(self.left()).saturating_sub(FRAME_TOKENS);
        let table = sheet.table(most);
        self.add("F0: the fact table", &table, most + FRAME_TOKENS);
    }

    /// The sum over parts is never smaller than what the whole is counted as.
    fn push(&mut self, section: &str) {
        let needed = tokens_expected(section);
        if needed <= self.left() {
            self.used += needed;
            self.text.push_str(section);
        }
    }
}

/// A reading with what code found in it and its author did not mend.
fn reading(document: Option<&Document>) -> String {
    let Some(document) = document else { return String::new() };
    let found = &document.check.findings;
    if found.is_empty() {
        return document.text.clone();
    }
    // First, because a text is cut at its end.
    let mut text = "[unsupported, found by code in the text below]\n".to_owned();
    for finding in found.iter().take(MAX_FOUND) {
        let _ = writeln!(text, "- {}", one_line(&finding.message, 200));
    }
    if found.len() > MAX_FOUND {
        let _ = writeln!(text, "- and {} more", found.len() - MAX_FOUND);
    }
    let _ = write!(text, "\n{}", document.text);
    text
}

fn event_lines(events: &[FilingEvent]) -> String {
    let mut text = String::new();
    for event in events {
        let _ = write!(text, "[E0:{}] {} {}", event.accession, event.filed, event.form);
        if let Some(day) = event.report_date.filter(|day| *day != event.filed) {
            let _ = write!(text, " on {day}");
        }
        let _ = writeln!(text, ": {}", event.subjects());
    }
    text
}

fn passage_lines(passages: &[Passage]) -> String {
    let line = |passage: &Passage| {
        let words = one_line(&lines(&passage.text, 4_096), 1_300);
        format!("[{}] {words}\n", citation(passage))
    };
    passages.iter().map(line).collect()
}

fn revenue_lines(sheet: &Sheet) -> String {
    let Some(newest) = sheet.newest_year() else { return String::new() };
    let mut text = String::new();
    for year in newest - REVENUE_YEARS + 1..=newest {
        for metric in ["Revenue", "Revenue.yoy"] {
            let id = FactId::new(metric, Period::Year(year));
            if let Some(words) = sheet.words(&id) {
                let _ = writeln!(text, "- {metric} {}: {words} [F0:{id}]", id.period);
            }
        }
    }
    text
}

#[cfg(test)]
#[path = "dossier_tests.rs"]
mod tests;
