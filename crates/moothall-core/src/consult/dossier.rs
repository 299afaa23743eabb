//! The dossier: the evidence as agents read it.
//!
//! One text for analysts, critic and decision makers, with the same bytes in every prompt, so
//! a provider caches it once. It has a token limit, and the text states what was cut.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::state::{CheckedDocument, ConsultState};
use super::text_check::citation;
use super::truncate::{fit, lines};
use crate::evidence::{
    Evidence, FactId, FactSheet, FilingEvent, FilingPassage, FiscalPeriod, NewsHeadline,
    UserDocument, UserPassage,
};
use crate::model::PromptText;
use crate::prompt_revision::{PromptTemplate, template};
use crate::text::{fenced, one_line};
use crate::tokens_expected;

/// Maximum tokens of a dossier, regardless of the context window.
const MAX_TOKENS: u64 = 8_000;

/// Tokens of a heading and two code fences.
const FRAME_TOKENS: u64 = 24;

/// Maximum share of a dossier for F1 and F2 each, in percent.
const READING_PERCENT: u64 = 20;

/// Shares of the remaining tokens reserved for each section; the table gets the rest.
const EVENTS_PERCENT: u64 = 12;
const PASSAGES_PERCENT: u64 = 25;
const DOCUMENTS_PERCENT: u64 = 30;
const HEADLINES_PERCENT: u64 = 8;

const DOCUMENTS: &str = "U0: passages of the user's documents";
const HEADLINES: &str = "N0: headlines, newest first";

/// Maximum number of findings listed for F1 or F2, and of lines about missing evidence.
const MAX_FOUND: usize = 8;

/// Years of revenue shown to F2.
const REVENUE_YEARS: i32 = 5;

const HEAD: PromptTemplate =
    template!("dossier", "the beginning of the evidence that all agents read");
const CITE: PromptTemplate = template!("cite", "how to cite filings");
const CITE_DOCUMENTS: PromptTemplate =
    template!("cite_documents", "how to cite the user's documents, without filings");
const CITE_ALSO_DOCUMENTS: PromptTemplate =
    template!("cite_also_documents", "how to cite the user's documents, with filings");
const CITE_ALSO_HEADLINES: PromptTemplate =
    template!("cite_also_headlines", "how to cite headlines");
const CITE_SYNTHETIC: PromptTemplate =
    template!("cite_synthetic", "how to cite synthetic evidence");

/// The texts of this module that users may replace.
pub(crate) const TEMPLATES: [PromptTemplate; 6] =
    [HEAD, CITE, CITE_DOCUMENTS, CITE_ALSO_DOCUMENTS, CITE_ALSO_HEADLINES, CITE_SYNTHETIC];

/// Maximum tokens for evidence: a third of the context window, at most 8,000.
pub fn dossier_tokens(window_tokens: u32) -> u64 {
    MAX_TOKENS.min(u64::from(window_tokens) / 3)
}

/// Maximum tokens for F1 and F2 each.
pub(crate) fn reading_tokens(window_tokens: u32) -> u64 {
    dossier_tokens(window_tokens) * READING_PERCENT / 100
}

/// Citation rules for the evidence of this run.
pub(crate) fn citation_rules(known: &ConsultState) -> Cow<'_, str> {
    if known.is_synthetic() {
        return CITE_SYNTHETIC.text(known.texts()).trim_end().into();
    }
    let is_alone = known.is_from_documents();
    let text = if is_alone { CITE_DOCUMENTS } else { CITE };
    let text = text.text(known.texts()).trim_end();
    let Some(evidence) = known.evidence.as_deref() else { return text.into() };
    let also = [
        (!is_alone && !evidence.documents.is_empty(), CITE_ALSO_DOCUMENTS),
        (!evidence.headlines.is_empty(), CITE_ALSO_HEADLINES),
    ];
    let also = also.into_iter().filter(|(is, _)| *is);
    let also: String = also.map(|(_, line)| line.text(known.texts())).collect();
    match text.split_once("- [A1:") {
        Some((before, behind)) if !also.is_empty() => {
            format!("{before}{also}- [A1:{behind}").into()
        }
        // An own text may have no such line.
        None if !also.is_empty() => format!("{text}\n{}", also.trim_end()).into(),
        _ => text.into(),
    }
}

pub(crate) fn dossier(known: &ConsultState, window_tokens: u32) -> PromptText {
    let mut builder = DossierBuilder::new(head(known), dossier_tokens(window_tokens));
    let each = builder.left() * READING_PERCENT / 100;
    builder.add("F1: what the numbers mean", &reading(known.f1.as_ref()), each);
    builder.add("F2: what the events and texts mean", &reading(known.f2.as_ref()), each);
    if known.is_synthetic() {
        let half = builder.left() / 2;
        builder.add("Financial data", known.financials.as_deref().unwrap_or_default(), half);
        builder.add("News", known.news.as_deref().unwrap_or_default(), builder.left());
    } else if let Some(evidence) = &known.evidence {
        filed(&mut builder, evidence);
    }
    builder.text.into()
}

/// Evidence for F1: the fact table and passages with numbers.
pub(crate) fn for_financial(known: &ConsultState, window_tokens: u32) -> String {
    let mut builder = DossierBuilder::new(head(known), dossier_tokens(window_tokens));
    let all = builder.left();
    match known.evidence.as_deref().and_then(|evidence| evidence.sheet.as_ref()) {
        Some(sheet) => {
            let documents = documents_of(known);
            let kept = if documents.is_empty() { 0 } else { all * DOCUMENTS_PERCENT / 100 };
            builder.add_table(sheet, all - kept);
            builder.add_documents(documents, has_digit);
        }
        None if known.is_from_documents() => builder.add_documents(documents_of(known), has_digit),
        None => {
            builder.add("Financial data", known.financials.as_deref().unwrap_or_default(), all);
        }
    }
    builder.text
}

/// Evidence for F2: events, passages, headlines and recent revenue.
pub(crate) fn for_trend(known: &ConsultState, window_tokens: u32) -> String {
    let mut builder = DossierBuilder::new(head(known), dossier_tokens(window_tokens));
    let Some(evidence) = known.evidence.as_deref() else { return builder.text };
    if known.is_synthetic() {
        let all = builder.left();
        builder.add("News", known.news.as_deref().unwrap_or_default(), all);
        return builder.text;
    }
    let revenue = evidence.sheet.as_ref().map(revenue_lines).unwrap_or_default();
    let all = builder.left();
    builder.add("F0: revenue", &revenue, all);
    let half = builder.left() / 2;
    builder.add("E0: filing events, newest first", &event_lines(&evidence.events), half);
    let headlines = headline_lines(&evidence.headlines);
    let left = builder.left();
    let for_headlines = needs(&headlines, HEADLINES_PERCENT, left);
    let for_documents = if evidence.documents.is_empty() { 0 } else { left / 2 };
    let rest = left - for_headlines - for_documents;
    builder.add("T0: passages of the annual report", &passage_lines(&evidence.passages), rest);
    builder.with_reserve(for_headlines, |builder| {
        builder.add_documents(&evidence.documents, |_| true)
    });
    let rest = builder.left();
    builder.add(HEADLINES, &headlines, rest);
    builder.text
}

fn head(known: &ConsultState) -> String {
    let (company, source, cite) = (known.company(), known.source_line(), citation_rules(known));
    let values = [("company", &*company), ("source", &*source), ("cite", &*cite)];
    let mut head = HEAD.fill(known.texts(), &values) + "\n";
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

/// Adds table, events and passages. The table is cut by rows, so it is laid out first, with the
/// tokens that the other sections need held back.
fn filed(builder: &mut DossierBuilder, evidence: &Evidence) {
    let (events, passages) = (event_lines(&evidence.events), passage_lines(&evidence.passages));
    let headlines = headline_lines(&evidence.headlines);
    let left = builder.left();
    let for_events = needs(&events, EVENTS_PERCENT, left);
    let for_passages = needs(&passages, PASSAGES_PERCENT, left);
    let for_headlines = needs(&headlines, HEADLINES_PERCENT, left);
    let for_documents = match evidence.documents.is_empty() {
        true => 0,
        false => left * DOCUMENTS_PERCENT / 100,
    };
    let for_own = for_documents + for_headlines;
    if let Some(sheet) = &evidence.sheet {
        builder.add_table(sheet, left.saturating_sub(for_events + for_passages + for_own));
    }
    let left = builder.left().saturating_sub(for_passages + for_own);
    builder.add("E0: filing events, newest first", &events, left);
    let left = builder.left().saturating_sub(for_own);
    builder.add("T0: passages of the annual report", &passages, left);
    builder.with_reserve(for_headlines, |builder| {
        builder.add_documents(&evidence.documents, |_| true)
    });
    let left = builder.left();
    builder.add(HEADLINES, &headlines, left);
}

/// Tokens that a section needs, at most `percent` of `left`.
fn needs(text: &str, percent: u64, left: u64) -> u64 {
    match text {
        "" => 0,
        text => (tokens_expected(text) + FRAME_TOKENS).min(left * percent / 100),
    }
}

fn documents_of(known: &ConsultState) -> &[UserDocument] {
    known.evidence.as_deref().map_or(&[], |evidence| &evidence.documents)
}

fn has_digit(passage: &UserPassage) -> bool {
    passage.text.contains(|letter: char| letter.is_ascii_digit())
}

/// Builds a text within a token limit.
struct DossierBuilder {
    text: String,
    used: u64,
    all: u64,
}

impl DossierBuilder {
    fn new(head: String, all: u64) -> Self {
        // Even the head can exceed the smallest window.
        let text = fit(&head, all).unwrap_or(head);
        Self { used: tokens_expected(&text), text, all }
    }

    fn left(&self) -> u64 {
        self.all.saturating_sub(self.used)
    }

    /// Adds a section of at most `most` tokens. Skips it if it is empty or does not fit.
    fn add(&mut self, heading: &str, body: &str, most: u64) {
        let most = most.min(self.left()).saturating_sub(FRAME_TOKENS);
        if body.is_empty() || most < FRAME_TOKENS {
            return;
        }
        let body = fit(body, most).unwrap_or_else(|| body.to_owned());
        self.push(&format!("\n## {heading}\n{}\n", fenced(&body)));
    }

    fn add_table(&mut self, sheet: &FactSheet, most: u64) {
        let most = most.min(self.left()).saturating_sub(FRAME_TOKENS);
        let table = sheet.table(most);
        self.add("F0: the fact table", &table, most + FRAME_TOKENS);
    }

    /// Runs `work` with `tokens` reserved for later sections.
    fn with_reserve(&mut self, tokens: u64, work: impl FnOnce(&mut Self)) {
        let tokens = tokens.min(self.left());
        self.all -= tokens;
        work(self);
        self.all += tokens;
    }

    /// Adds passages of the user's documents, the first of each, then the second of each, up to the
    /// token limit. States how many are left out.
    fn add_documents(&mut self, documents: &[UserDocument], wanted: fn(&UserPassage) -> bool) {
        let most = self.left().saturating_sub(3 * FRAME_TOKENS);
        let body = document_lines(documents, wanted, most);
        let left = self.left();
        self.add(DOCUMENTS, &body, left);
    }

    /// The sum over sections is never below the token estimate of the whole text.
    fn push(&mut self, section: &str) {
        let needed = tokens_expected(section);
        if needed <= self.left() {
            self.used += needed;
            self.text.push_str(section);
        }
    }
}

/// A reading, preceded by the findings that its author did not fix.
fn reading(document: Option<&CheckedDocument>) -> String {
    let Some(document) = document else { return String::new() };
    let found = &document.check.findings;
    if found.is_empty() {
        return document.text.clone();
    }
    // Listed first, because a text is truncated at its end.
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

fn passage_lines(passages: &[FilingPassage]) -> String {
    let line = |passage: &FilingPassage| {
        let words = one_line(&lines(&passage.text, 4_096), 1_300);
        format!("[{}] {words}\n", citation(passage))
    };
    passages.iter().map(line).collect()
}

fn document_lines(
    documents: &[UserDocument],
    wanted: fn(&UserPassage) -> bool,
    most: u64,
) -> String {
    let wanted: Vec<Vec<&UserPassage>> = documents
        .iter()
        .map(|document| document.passages.iter().filter(|passage| wanted(passage)).collect())
        .collect();
    let longest = wanted.iter().map(Vec::len).max().unwrap_or(0);
    let all: usize = wanted.iter().map(Vec::len).sum();
    let mut chosen: BTreeMap<(usize, usize), String> = BTreeMap::new();
    let mut used = 0;
    for at in 0..longest {
        let before = chosen.len();
        for (place, (document, passages)) in documents.iter().zip(&wanted).enumerate() {
            let Some(passage) = passages.get(at) else { continue };
            let words = one_line(&lines(&passage.text, 4_096), 1_300);
            let line = format!("[{}] {words}\n", document.citation(passage));
            let needed = tokens_expected(&line);
            if used + needed <= most {
                used += needed;
                chosen.insert((place, at), line);
            }
        }
        if chosen.len() == before {
            break;
        }
    }
    let left_out = all - chosen.len();
    let mut text: String = chosen.into_values().collect();
    if left_out > 0 && !text.is_empty() {
        let _ = writeln!(text, "({left_out} more passages have no room here)");
    }
    text
}

fn headline_lines(headlines: &[NewsHeadline]) -> String {
    let mut text = String::new();
    for one in headlines {
        let day = one.published.map(|day| format!(" {day}")).unwrap_or_default();
        let (source, words) = (one_line(&one.source, 80), one_line(&one.text, 240));
        let _ = writeln!(text, "[N0:{}]{day} {source}: {words}", one.number);
    }
    text
}

fn revenue_lines(sheet: &FactSheet) -> String {
    let Some(newest) = sheet.newest_year() else { return String::new() };
    let mut text = String::new();
    for year in newest - REVENUE_YEARS + 1..=newest {
        for metric in ["Revenue", "Revenue.yoy"] {
            let id = FactId::new(metric, FiscalPeriod::Year(year));
            if let Some(words) = sheet.display_value(&id) {
                let _ = writeln!(text, "- {metric} {}: {words} [F0:{id}]", id.period);
            }
        }
    }
    text
}

#[cfg(test)]
#[path = "dossier_tests.rs"]
mod tests;
