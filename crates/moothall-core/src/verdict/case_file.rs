//! What a panel member reads about one case. Code writes it, and it is blind: it has the move
//! and the recorded objections, but not who wrote, attacked or defended it, its number, its scores
//! or the other moves. Every field has a word limit: a longer text gains nothing.

use std::fmt::Write as _;

use crate::Sha256Hex;
use crate::consult::Proposal;
use crate::debate::{CRITIC, CalculationResult, Objection, ObjectionReply};
use crate::text::{fenced, one_line};

/// Word limits of the fields. Analysts get the same limits.
pub(crate) const FIELD_LIMITS: FieldLimits = FieldLimits {
    title: 16,
    thesis: 90,
    actions: ListLimit { items: 4, words: 20 },
    conditions: ListLimit { items: 3, words: 22 },
    evidence: 6,
    risks: ListLimit { items: 3, words: 20 },
    cost: 30,
    horizon: 16,
    kill_criteria: ListLimit { items: 3, words: 18 },
};

/// Limits of the debate record: about 1,500 tokens.
const MAX_OBJECTIONS: usize = 12;
const MAX_RECORD_WORDS: usize = 20;
const MAX_RECORD_IDS: usize = 2;

/// Limits of calculations: about 1,600 tokens.
const MAX_CALCULATIONS: usize = 4;
const MAX_PURPOSE_WORDS: usize = 20;
const MAX_RESULT_WORDS: usize = 40;
const MAX_SHOWN_LINES: usize = 20;
const MAX_LINE_CHARS: usize = 80;

/// The kind of calculations in citations.
const PREFIX: &str = "X0:";

/// Longer words are cut: a text without spaces has no word limit otherwise.
const MAX_WORD_CHARS: usize = 40;
/// Evidence ids are not words.
const MAX_ID_CHARS: usize = 60;

const NONE: &str = "none given";

/// Word limits by field.
pub(crate) struct FieldLimits {
    pub(crate) title: usize,
    pub(crate) thesis: usize,
    pub(crate) actions: ListLimit,
    pub(crate) conditions: ListLimit,
    /// A number of ids.
    pub(crate) evidence: usize,
    pub(crate) risks: ListLimit,
    pub(crate) cost: usize,
    pub(crate) horizon: usize,
    pub(crate) kill_criteria: ListLimit,
}

/// Limits of a list: items, and words in each.
pub(crate) struct ListLimit {
    pub(crate) items: usize,
    pub(crate) words: usize,
}

/// A case as a panel member reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFile {
    /// The text, without the dossier and the rules.
    pub text: String,
    /// The hash of the text. Its first digits are the only name of the case.
    pub sha256: Sha256Hex,
}

/// Names that a case must not contain, and the words that replace them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenNames {
    /// Whole phrases in lower case, longest first.
    phrases: Vec<(String, &'static str)>,
    /// Single words, compared exactly.
    words: Vec<(String, &'static str)>,
}

impl HiddenNames {
    /// Hides a person or a model by its display name. Upper and lower case are the same.
    pub fn hide_phrase(&mut self, name: &str, replacement: &'static str) {
        let name = lower_case(name.trim());
        let is_new = self.phrases.iter().all(|(known, _)| *known != name);
        if !name.is_empty() && is_new {
            self.phrases.push((name, replacement));
            self.phrases.sort_by_key(|(name, _)| (std::cmp::Reverse(name.len()), name.clone()));
        }
    }

    /// Hides an id such as `D2`.
    pub fn hide_word(&mut self, id: &str, replacement: &'static str) {
        if !id.is_empty() {
            self.words.push((id.to_owned(), replacement));
        }
    }

    /// The text without the names. Citations in square brackets stay unchanged.
    fn remove_from(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('[') {
            let (before, cited) = rest.split_at(start);
            let end = cited.find(']').map_or(cited.len(), |end| end + 1);
            let (cited, behind) = cited.split_at(end);
            out.push_str(&self.replace_names(before));
            let is_citation = cited.get(1..3).is_some_and(is_evidence_prefix);
            out.push_str(&if is_citation { cited.to_owned() } else { self.replace_names(cited) });
            rest = behind;
        }
        out.push_str(&self.replace_names(rest));
        out
    }

    fn replace_names(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let mut lower = lower_case(&text);
        for (name, replacement) in &self.phrases {
            if lower.contains(name.as_str()) {
                text = replace_phrase(&text, &lower, name, replacement);
                lower = lower_case(&text);
            }
        }
        let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_');
        let mut out = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            out.push_str(self.replacement(word).unwrap_or(word));
            let next = behind.find(is_part).unwrap_or(behind.len());
            out.push_str(&behind[..next]);
            rest = &behind[next..];
        }
        // A name often has an article of its own.
        out.replace("the the ", "the ").replace("The the ", "The ")
    }

    fn replacement(&self, word: &str) -> Option<&'static str> {
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if word.strip_prefix('m').is_some_and(is_number) {
            return Some("a move");
        }
        // `O1`, `D2-O3`: objections are numbered again.
        let objection = word.rsplit_once('-').map_or(word, |(_, behind)| behind);
        if objection.strip_prefix('O').is_some_and(is_number) {
            return Some("an objection");
        }
        self.words.iter().find(|(id, _)| id == word).map(|(_, replacement)| *replacement)
    }
}

/// Whether these are the first two characters of an evidence id or an assumption mark.
fn is_evidence_prefix(id: &str) -> bool {
    let mut signs = id.chars();
    let (letter, digit) = (signs.next(), signs.next());
    letter.is_some_and(|sign| "FETUNA".contains(sign))
        && digit.is_some_and(|sign| sign.is_ascii_digit())
}

/// Lower case in which every character keeps its length, so that offsets are the same in both.
fn lower_case(text: &str) -> String {
    let lower = |sign: char| {
        let lower = sign.to_lowercase().next().unwrap_or(sign);
        if lower.len_utf8() == sign.len_utf8() { lower } else { sign }
    };
    text.chars().map(lower).collect()
}

/// Replaces whole phrases, regardless of case: `lower` is the text in lower case, and so is `name`.
fn replace_phrase(text: &str, lower: &str, name: &str, replacement: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(found) = lower.get(at..).and_then(|rest| rest.find(name)) {
        let (start, end) = (at + found, at + found + name.len());
        let is_letter = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
        let is_whole = !is_letter(lower[..start].chars().next_back())
            && !is_letter(lower[end..].chars().next());
        out.push_str(text.get(at..start).unwrap_or_default());
        out.push_str(if is_whole { replacement } else { text.get(start..end).unwrap_or_default() });
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

impl CaseFile {
    /// Writes a case: the move, and the objections of its debate. `None` for a move that is scored
    /// as written.
    pub fn of(proposal: &Proposal, record: Option<&[Objection]>, hidden: &HiddenNames) -> Self {
        Self::new(&CaseWriter { hidden, calculations: Vec::new() }.write(proposal, record))
    }

    /// Writes a debated case with the calculations of its debate.
    pub fn of_debate(
        proposal: &Proposal,
        record: &[Objection],
        calculations: &[CalculationResult],
        hidden: &HiddenNames,
    ) -> Self {
        // By round and text: an order by speaker would show who calculated.
        let mut calculations: Vec<&CalculationResult> = calculations.iter().collect();
        calculations.sort_by_key(|one| (one.values().is_empty(), one.round, one.code_sha256));
        Self::new(&CaseWriter { hidden, calculations }.write(proposal, Some(record)))
    }

    fn new(body: &str) -> Self {
        let name = Sha256Hex::of(body.as_bytes()).to_string();
        let text = format!("Case {name:.10}\n\n{}", fenced(body));
        Self { sha256: Sha256Hex::of(text.as_bytes()), text }
    }
}

struct CaseWriter<'a> {
    hidden: &'a HiddenNames,
    /// In the order in which they are numbered.
    calculations: Vec<&'a CalculationResult>,
}

impl CaseWriter<'_> {
    fn write(&self, proposal: &Proposal, record: Option<&[Objection]>) -> String {
        let Proposal {
            title,
            thesis,
            actions,
            what_must_be_true,
            evidence,
            risks,
            cost,
            horizon,
            kill_criteria,
        } = proposal;
        let limits = &FIELD_LIMITS;
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "MOVE\nTitle: {}", self.words(title, limits.title));
        let _ = writeln!(text, "Thesis: {}", self.words(thesis, limits.thesis));
        self.list(&mut text, "Actions", actions, &limits.actions);
        self.list(&mut text, "What must be true", what_must_be_true, &limits.conditions);
        let _ = writeln!(text, "Evidence: {}", ids(evidence, limits.evidence));
        self.list(&mut text, "Risks", risks, &limits.risks);
        let _ = writeln!(text, "Cost: {}", self.words(cost, limits.cost));
        let _ = writeln!(text, "Horizon: {}", self.words(horizon, limits.horizon));
        self.list(&mut text, "Kill criteria", kill_criteria, &limits.kill_criteria);
        if let Some(objections) = record {
            self.record(&mut text, objections);
        }
        self.write_calculations(&mut text);
        text
    }

    /// The calculations with their programs. Comments are left out: they are not executed.
    fn write_calculations(&self, text: &mut String) {
        if self.calculations.is_empty() {
            return;
        }
        let _ = writeln!(text, "\nCALCULATIONS");
        for (number, one) in (1..).zip(self.calculations.iter().take(MAX_CALCULATIONS)) {
            let side = if one.speaker == CRITIC { "against" } else { "for" };
            let purpose = self.words(&one.purpose, MAX_PURPOSE_WORDS);
            let result = self.words(&one.outcome_text(), MAX_RESULT_WORDS);
            let _ = writeln!(text, "X0:{number} ({side}): {purpose}\nResult: {result}");
            let basis = self.words(&one.basis_text(), MAX_RESULT_WORDS);
            let _ = writeln!(text, "Basis: {basis}\nProgram:");
            let is_shown =
                |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
            for line in one.code.lines().filter(is_shown).take(MAX_SHOWN_LINES) {
                let line = self.hidden.remove_from(&self.number_calculations(line));
                let indent = line.len() - line.trim_start_matches(' ').len();
                let indent = " ".repeat(indent.min(MAX_WORD_CHARS));
                let _ = writeln!(text, "    {indent}{}", one_line(&line, MAX_LINE_CHARS));
            }
        }
    }

    /// Replaces ids of calculations by their numbers in this case: the ids name move and speaker.
    fn number_calculations(&self, text: &str) -> String {
        if self.calculations.is_empty() || !text.contains(PREFIX) {
            return text.to_owned();
        }
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || "-_/".contains(sign);
        let mut parts = text.split(PREFIX);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|sign| !is_part(sign)).unwrap_or(part.len());
            let (id, behind) = part.split_at(end);
            let is_known = |one: &&CalculationResult| {
                one.id.strip_prefix(PREFIX).is_some_and(|own| own.eq_ignore_ascii_case(id))
            };
            match self.calculations.iter().position(is_known) {
                Some(at) => {
                    let _ = write!(out, "{PREFIX}{}{behind}", at + 1);
                }
                None => {
                    let _ = write!(out, "{PREFIX}unknown{behind}");
                }
            }
        }
        out
    }

    fn list(&self, text: &mut String, name: &str, items: &[String], limit: &ListLimit) {
        if items.is_empty() {
            let _ = writeln!(text, "{name}: {NONE}");
            return;
        }
        let _ = writeln!(text, "{name}:");
        for item in items.iter().take(limit.items) {
            let _ = writeln!(text, "- {}", self.words(item, limit.words));
        }
    }

    /// The most severe objections, in the order in which they were raised.
    fn record(&self, text: &mut String, objections: &[Objection]) {
        let _ = writeln!(text, "\nDEBATE RECORD");
        if objections.is_empty() {
            let _ = writeln!(text, "No objection was recorded.");
        }
        let mut order: Vec<usize> = (0..objections.len()).collect();
        let weight = |at: &usize| {
            objections.get(*at).map(|one| std::cmp::Reverse((one.severity, one.state)))
        };
        order.sort_by_key(weight);
        order.truncate(MAX_OBJECTIONS);
        order.sort_unstable();
        let shown = order.iter().filter_map(|at| objections.get(*at));
        for (number, objection) in (1..).zip(shown) {
            let Objection { severity, state, evidence, reply, .. } = objection;
            let said = self.words(&objection.text, MAX_RECORD_WORDS);
            let _ = writeln!(
                text,
                "{number}. Against ({}, {}): {said}{}",
                severity.word(),
                state.prompt_word(),
                self.cited(evidence, &said),
            );
            match reply {
                Some(ObjectionReply { text: reply, evidence, .. }) => {
                    let said = self.words(reply, MAX_RECORD_WORDS);
                    let _ = writeln!(text, "   For: {said}{}", self.cited(evidence, &said));
                }
                None => {
                    let _ = writeln!(text, "   For: no answer");
                }
            }
        }
    }

    /// Ids that the shown text does not contain.
    fn cited(&self, evidence: &[String], text: &str) -> String {
        let evidence = evidence.iter().map(|id| self.number_calculations(id));
        let beside: Vec<String> = evidence.filter(|id| !text.contains(id)).collect();
        if beside.is_empty() { String::new() } else { format!(" {}", ids(&beside, MAX_RECORD_IDS)) }
    }

    /// At most `most` words on one line, without hidden names.
    fn words(&self, text: &str, most: usize) -> String {
        let text = self.number_calculations(text);
        let visible = one_line(&self.hidden.remove_from(&text), usize::MAX);
        let mut words = visible.split(' ').filter(|word| !word.is_empty());
        let kept: Vec<String> =
            words.by_ref().take(most).map(|word| one_line(word, MAX_WORD_CHARS)).collect();
        match (kept.is_empty(), words.next()) {
            (true, _) => NONE.to_owned(),
            (false, None) => kept.join(" "),
            (false, Some(_)) => format!("{} …", kept.join(" ")),
        }
    }
}

fn ids(evidence: &[String], most: usize) -> String {
    let ids: Vec<String> =
        evidence.iter().take(most).map(|id| format!("[{}]", one_line(id, MAX_ID_CHARS))).collect();
    if ids.is_empty() { NONE.to_owned() } else { ids.join(" ") }
}

#[cfg(test)]
#[path = "case_file_tests.rs"]
mod tests;
