//! `moothall check`: compares the numbers in a text with a company's filings.

use std::fmt::Write as _;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use moothall_core::claims::{
    CitableEvidence, Claim, ClaimChecker, ClaimKind, ClaimSupport, ClaimVerdict, MAX_TEXT_BYTES,
    advice_language, sentences,
};
use moothall_core::evidence::{Evidence, FactSheet, Ticker};
use moothall_core::text::sanitize_line;
use moothall_core::{FindingSeverity, RunFinding, RunVerdict};
use serde_json::{Value, json};

use super::facts;
use crate::args::{CheckCommandArgs, CheckFormatArg, GlobalArgs};
use crate::display;
use crate::display::annotations::{
    self, AnnotatedFile, AnnotationLevel, FileAnnotation, TextPosition,
};
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// The text of `--sample`, and the fictional company that it is about.
const SAMPLE: &str = include_str!("check/sample.md");
const SAMPLE_TICKER: &str = "HLXI";

const MAX_FILE_BYTES: u64 = 4 << 20;

/// Width of code frames that are not shown on a terminal.
const PLAIN_WIDTH: usize = 120;

pub(crate) fn run(global: &GlobalArgs, args: &CheckCommandArgs) -> anyhow::Result<CliExit> {
    let sample = args.sample.then(|| SAMPLE_TICKER.parse::<Ticker>()).transpose();
    let sample = sample.map_err(|error| CliError::usage(error.to_string()))?;
    let (text, source) = match &args.file {
        Some(file) => (read(file)?, file.clone()),
        None => (SAMPLE.to_owned(), PathBuf::from("sample.md")),
    };
    let ticker = args.facts.as_ref().or(sample.as_ref());
    let format = args.format();
    let is_text = format == CheckFormatArg::Text;
    let evidence = facts::gather(global, ticker, args.files.as_deref(), &args.evidence, !is_text)?;
    let checked = TextCheckReport::of(&text, &evidence, UncitedNumbers::allowed_if(args.lenient));
    let path = match source.to_str() {
        Some("-") => "stdin",
        Some(path) => path,
        None => "file",
    };
    let annotations = checked.annotations();
    let file = AnnotatedFile { path, text: &text, first_line: Some(1), annotations: &annotations };
    if args.sample && is_text {
        terminal::note(&format!("{DIM}{SAMPLE}{DIM:#}\n"));
    }
    terminal::print(&match format {
        CheckFormatArg::Text => checked.page(&evidence, file),
        CheckFormatArg::Json => format!("{:#}\n", checked.report(&source, &text, &evidence)),
        CheckFormatArg::Sarif => format!("{:#}\n", annotations::sarif(&[file])),
        CheckFormatArg::Github => annotations::github_commands(&[file]),
    })?;
    Ok(match checked.verdict() {
        RunVerdict::Pass => CliExit::Fine,
        RunVerdict::NeedsPerson => CliExit::NeedsPerson,
        RunVerdict::Fail => CliExit::VerdictNegative,
    })
}

fn read(file: &Path) -> Result<String, CliError> {
    let unreadable =
        |error: std::io::Error| CliError::usage("cannot read the text").with_source(error);
    let mut text = String::new();
    let mut source: Box<dyn std::io::Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(fs_err::File::open(file).map_err(unreadable)?)
    };
    source.by_ref().take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(CliError::usage(format!(
            "the text is too long (limit: {MAX_FILE_BYTES} bytes)"
        )));
    }
    Ok(text)
}

/// Whether numbers without any supporting source need a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UncitedNumbers {
    NeedPerson,
    Reported,
}

impl UncitedNumbers {
    pub(crate) fn allowed_if(is_lenient: bool) -> Self {
        if is_lenient { Self::Reported } else { Self::NeedPerson }
    }
}

/// A claim of the checked text.
struct LocatedClaim {
    claim: Claim,
    sentence: String,
    /// The place of what the claim prints, in bytes of the text.
    span: Range<usize>,
}

pub(crate) struct TextCheckReport {
    claims: Vec<LocatedClaim>,
    findings: Vec<RunFinding>,
    uncited: UncitedNumbers,
}

impl TextCheckReport {
    pub(crate) fn of(text: &str, evidence: &Evidence, uncited: UncitedNumbers) -> Self {
        let checker = ClaimChecker::new(CitableEvidence::from(evidence));
        let mut report = Self { claims: Vec::new(), findings: Vec::new(), uncited };
        let mut sentences_before: u32 = 0;
        let mut chunk_start = 0;
        for piece in split_chunks(text) {
            let ranges = sentences(piece);
            let mut cursor = SentenceCursor::default();
            for claim in checker.check(piece) {
                let range = ranges.get(claim.sentence as usize).cloned().unwrap_or_default();
                let sentence = piece.get(range.clone()).unwrap_or_default();
                let found = cursor.find(&claim, sentence);
                let start = chunk_start + range.start;
                let number = claim.sentence.saturating_add(sentences_before);
                report.claims.push(LocatedClaim {
                    claim: Claim { sentence: number, ..claim },
                    sentence: sentence.trim().to_owned(),
                    span: start + found.start..start + found.end,
                });
            }
            let advice = advice_language(piece);
            report.findings.extend(advice.iter().map(|phrase| phrase.finding("text")));
            sentences_before += u32::try_from(ranges.len()).unwrap_or(u32::MAX);
            chunk_start += piece.len();
        }
        let of_claims: Vec<RunFinding> =
            report.claims.iter().filter_map(|located| report.finding(&located.claim)).collect();
        report.findings.extend(of_claims);
        report
    }

    fn finding(&self, claim: &Claim) -> Option<RunFinding> {
        let finding = claim.finding("text")?;
        let severity =
            if self.needs_person(claim) { FindingSeverity::Escalate } else { finding.severity };
        Some(RunFinding { severity, ..finding })
    }

    fn needs_person(&self, claim: &Claim) -> bool {
        let is_invented = claim.verdict == ClaimVerdict::Unsupported
            && self.uncited == UncitedNumbers::NeedPerson;
        is_invented || claim.verdict.blocks_ranking()
    }

    fn annotations(&self) -> Vec<FileAnnotation> {
        let annotation = |LocatedClaim { claim, span, .. }: &LocatedClaim| {
            let mut message = format!("{}: \"{}\"", claim.verdict, claim.printed);
            if !claim.detail.is_empty() {
                // Writing to a String cannot fail.
                let _ = write!(message, ": {}", claim.detail);
            }
            FileAnnotation {
                rule: claim.verdict.rule().to_string(),
                level: match self.needs_person(claim) {
                    true => AnnotationLevel::Error,
                    false => AnnotationLevel::Warning,
                },
                message,
                span: span.clone(),
            }
        };
        self.flagged().map(annotation).collect()
    }

    fn verdict(&self) -> RunVerdict {
        RunVerdict::of(&self.findings)
    }

    fn support(&self) -> ClaimSupport {
        ClaimSupport::of(self.claims.iter().map(|located| &located.claim))
    }

    fn flagged(&self) -> impl Iterator<Item = &LocatedClaim> {
        self.claims.iter().filter(|located| located.claim.verdict.is_flagged())
    }

    fn advice(&self) -> impl Iterator<Item = &RunFinding> {
        self.findings.iter().filter(|finding| finding.rule.to_string() == "claims.advice")
    }

    fn page(&self, evidence: &Evidence, file: AnnotatedFile<'_>) -> String {
        let company = &evidence.company;
        let name = sanitize_line(&company.name);
        let mut text = match &evidence.sheet {
            Some(sheet) => {
                let hash = sheet.hash().to_string();
                let hash = match terminal::stdout_columns() {
                    Some(columns) if columns < "F0 ".len() + hash.len() => display::cut(&hash, 12),
                    _ => hash,
                };
                format!(
                    "{BOLD}{name}{BOLD:#}  {}, as of {}\n{DIM}F0 {hash}{DIM:#}\n",
                    facts::symbol(company),
                    sheet.as_of,
                )
            }
            None => format!("{BOLD}{name}{BOLD:#}  {}\n", evidence.provenance),
        };
        for document in &evidence.documents {
            let (name, count) = (sanitize_line(&document.name), document.passages.len());
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{DIM}U0:{}  {name}, {count} passages{DIM:#}", document.id);
        }
        for missing in &evidence.missing {
            let _ = writeln!(text, "{YELLOW}missing: {}{YELLOW:#}", sanitize_line(missing));
        }
        if company.fictional {
            let _ = writeln!(text, "{YELLOW}fictional: {}{YELLOW:#}", facts::FICTION);
        }
        for warning in evidence.warnings() {
            let _ = writeln!(text, "{YELLOW}warning: {}{YELLOW:#}", sanitize_line(&warning));
        }
        text.push('\n');
        let width = if terminal::stdout_is_terminal() { terminal::size().0 } else { PLAIN_WIDTH };
        text.push_str(&file.code_frames(width));
        for finding in self.advice() {
            let message = sanitize_line(&finding.message);
            let _ = writeln!(text, "{YELLOW}ADVICE{YELLOW:#}  {message}");
        }
        let _ = writeln!(text, "{}", support_line(self.support()));
        let verdict = self.verdict();
        let style = if verdict == RunVerdict::Pass { GREEN } else { YELLOW };
        let _ = writeln!(text, "verdict   {style}{verdict}{style:#}");
        text
    }

    pub(crate) fn report(&self, file: &Path, text: &str, evidence: &Evidence) -> Value {
        let sheet = evidence.sheet.as_ref();
        let support = self.support();
        let claim = |LocatedClaim { claim, sentence, span }: &LocatedClaim| {
            let at = TextPosition::of(text, span.start);
            json!({
                "sentence": claim.sentence.saturating_add(1),
                "line": at.line,
                "column": at.column,
                "text": sentence,
                "kind": claim.kind,
                "printed": claim.printed,
                "verdict": claim.verdict,
                "flagged": claim.verdict.is_flagged(),
                "holds_back": claim.verdict.blocks_ranking(),
                "needs_person": self.needs_person(claim),
                "detail": claim.detail,
            })
        };
        json!({
            "file": file,
            "company": evidence.company,
            "fictional": evidence.company.fictional,
            "as_of": sheet.map(|sheet| sheet.as_of),
            "f0_sha256": sheet.map(FactSheet::hash),
            "documents": evidence.documents.iter().map(|one| json!({
                "id": one.id, "name": one.name, "sha256": one.sha256,
                "passages": one.passages.len(),
            })).collect::<Vec<_>>(),
            "missing": evidence.missing,
            "warnings": evidence.warnings(),
            "verdict": self.verdict(),
            "support": {
                "supported": support.supported,
                "assumed": support.assumed,
                "flagged": support.flagged,
                "total": support.total,
                "per_thousand": support.per_thousand(),
            },
            "claims": self.claims.iter().map(claim).collect::<Vec<_>>(),
            "findings": self.findings,
        })
    }
}

fn support_line(support: ClaimSupport) -> String {
    let ClaimSupport { supported, assumed, flagged, total } = support;
    let Some(per_thousand) = support.per_thousand() else {
        return "numbers   none found".to_owned();
    };
    let share = format!("{}.{}%", per_thousand / 10, per_thousand % 10);
    format!(
        "numbers   {supported} of {total} supported ({share}), {assumed} assumed, {flagged} flagged"
    )
}

/// Finds the printed text of claims in their sentences. Equal numbers of a sentence are claimed in
/// order, so each search continues after the last match of the same kind.
#[derive(Default)]
struct SentenceCursor {
    searched: Option<(u32, ClaimKind)>,
    at: usize,
}

impl SentenceCursor {
    /// The place in the sentence; all of it if the claim prints nothing of it.
    fn find(&mut self, claim: &Claim, sentence: &str) -> Range<usize> {
        let here = Some((claim.sentence, claim.kind));
        if std::mem::replace(&mut self.searched, here) != here {
            self.at = 0;
        }
        let rest = sentence.get(self.at..).unwrap_or_default();
        match rest.find(&claim.printed).filter(|_| !claim.printed.is_empty()) {
            Some(found) => {
                let start = self.at + found;
                self.at = start + claim.printed.len();
                start..self.at
            }
            None => {
                let indent = sentence.len() - sentence.trim_start().len();
                indent..indent + sentence.trim().len()
            }
        }
    }
}

/// Splits the text into chunks the checker accepts, at paragraph ends: the context of a sentence
/// does not extend beyond its paragraph.
fn split_chunks(text: &str) -> Vec<&str> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while rest.len() > MAX_TEXT_BYTES {
        let mut limit = MAX_TEXT_BYTES;
        while !rest.is_char_boundary(limit) {
            limit -= 1;
        }
        // Without a paragraph end, the checker reports the part it did not check.
        let Some(end) = rest[..limit].rfind("\n\n") else { break };
        let (chunk, remainder) = rest.split_at(end + 2);
        chunks.push(chunk);
        rest = remainder;
    }
    chunks.push(rest);
    chunks
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
