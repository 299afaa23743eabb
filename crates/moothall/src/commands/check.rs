//! `moothall check`: compares the numbers in a text with a company's filings.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use moothall_core::claims::{
    CitableEvidence, Claim, ClaimChecker, ClaimSupport, MAX_TEXT_BYTES, advice_language, sentences,
};
use moothall_core::evidence::{Evidence, FactSheet};
use moothall_core::text::sanitize_line;
use moothall_core::{RunFinding, RunVerdict};
use serde_json::{Value, json};

use super::facts;
use crate::args::{CheckCommandArgs, GlobalArgs};
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

const MAX_FILE_BYTES: u64 = 4 << 20;
/// Sentences are cut to this length on the screen.
const SENTENCE_CHARS: usize = 160;

pub(crate) fn run(global: &GlobalArgs, args: &CheckCommandArgs) -> anyhow::Result<CliExit> {
    let text = read(&args.file)?;
    let evidence = facts::gather(
        global,
        args.facts.as_ref(),
        args.files.as_deref(),
        &args.evidence,
        args.json,
    )?;
    let checked = TextCheckReport::of(&text, &evidence);
    if args.json {
        let report = checked.report(&args.file, &evidence);
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        terminal::print(&checked.page(&evidence))?;
    }
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

pub(crate) struct TextCheckReport {
    /// Each claim with its sentence.
    claims: Vec<(Claim, String)>,
    findings: Vec<RunFinding>,
}

impl TextCheckReport {
    pub(crate) fn of(text: &str, evidence: &Evidence) -> Self {
        let checker = ClaimChecker::new(CitableEvidence::from(evidence));
        let mut claims = Vec::new();
        let mut findings = Vec::new();
        let mut sentences_before: u32 = 0;
        for piece in split_chunks(text) {
            let ranges = sentences(piece);
            for claim in checker.check(piece) {
                let range = ranges.get(claim.sentence as usize).cloned().unwrap_or_default();
                let sentence = piece.get(range).unwrap_or_default().trim().to_owned();
                let number = claim.sentence.saturating_add(sentences_before);
                claims.push((Claim { sentence: number, ..claim }, sentence));
            }
            findings.extend(advice_language(piece).iter().map(|phrase| phrase.finding("text")));
            sentences_before += u32::try_from(ranges.len()).unwrap_or(u32::MAX);
        }
        findings.extend(claims.iter().filter_map(|(claim, _)| claim.finding("text")));
        Self { claims, findings }
    }

    fn verdict(&self) -> RunVerdict {
        RunVerdict::of(&self.findings)
    }

    fn support(&self) -> ClaimSupport {
        ClaimSupport::of(self.claims.iter().map(|(claim, _)| claim))
    }

    fn flagged(&self) -> impl Iterator<Item = &(Claim, String)> {
        self.claims.iter().filter(|(claim, _)| claim.verdict.is_flagged())
    }

    fn advice(&self) -> impl Iterator<Item = &RunFinding> {
        self.findings.iter().filter(|finding| finding.rule.to_string() == "claims.advice")
    }

    fn page(&self, evidence: &Evidence) -> String {
        let company = &evidence.company;
        let name = sanitize_line(&company.name);
        let mut text = match &evidence.sheet {
            Some(sheet) => format!(
                "{BOLD}{name}{BOLD:#}  {}, as of {}\n{DIM}F0 {}{DIM:#}\n",
                facts::symbol(company),
                sheet.as_of,
                sheet.hash()
            ),
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
        for (claim, sentence) in self.flagged() {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{YELLOW}{}{YELLOW:#}  {BOLD}{}{BOLD:#}  in sentence {}",
                claim.verdict,
                sanitize_line(&claim.printed),
                claim.sentence.saturating_add(1)
            );
            if !claim.detail.is_empty() {
                let _ = writeln!(text, "    {}", sanitize_line(&claim.detail));
            }
            let _ = writeln!(text, "    {DIM}{}{DIM:#}", cut(&sanitize_line(sentence)));
        }
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

    pub(crate) fn report(&self, file: &Path, evidence: &Evidence) -> Value {
        let sheet = evidence.sheet.as_ref();
        let support = self.support();
        let claim = |(claim, sentence): &(Claim, String)| {
            json!({
                "sentence": claim.sentence.saturating_add(1),
                "text": sentence,
                "kind": claim.kind,
                "printed": claim.printed,
                "verdict": claim.verdict,
                "flagged": claim.verdict.is_flagged(),
                "holds_back": claim.verdict.blocks_ranking(),
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

fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SENTENCE_CHARS).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { shown }
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
