//! The receipt of a run: lines of JSON, each bound to the one before by its hash.
//!
//! From a receipt anyone can derive the verdict again, offline and with no model. Three parts, in
//! this order:
//! 1. records (manifest, input, effects sorted by id, approvals, conclusion, findings, verdict), each
//!    with the SHA-256 of the line before it: two equal runs have the same records, byte for byte;
//! 2. one line of notes with what differs between equal runs (run id, times, latency, tries) and
//!    the hash of the last record;
//! 3. one line with the SHA-256 of everything above it, so that a change anywhere is noticed.
//!
//! A receipt shows that it was not changed by accident or in part. It is not signed: whoever can
//! rewrite the whole file can make another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consult::{Approval, ConsultInput};
use crate::report::derive;
use crate::{Conclusion, EffectId, EffectResult, Finding, RunId, RunKind, Sha256Hex, Verdict};

/// What a receipt is written from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// What ran.
    pub manifest: Manifest,
    /// What a consultation was asked for: everything else follows from it and the effects.
    pub input: Option<Box<ConsultInput>>,
    /// Every effect with the hash of its request and its result.
    pub effects: BTreeMap<EffectId, EffectRecord>,
    /// What persons said after the end of a consultation.
    pub approvals: Vec<Approval>,
    /// What a consultation came to, approvals included.
    pub conclusion: Option<Box<Conclusion>>,
    /// Everything the checks observed.
    pub findings: Vec<Finding>,
    /// What differs between two equal runs.
    pub notes: Notes,
}

/// What ran, without anything that differs between two equal runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of this format.
    pub receipt: u32,
    /// The workflow.
    pub workflow: String,
    /// The build that ran it.
    pub build: String,
    /// The model that was asked for.
    pub model: String,
    /// Whether the demonstration model spoke, so that nobody takes its words for an answer.
    pub demonstration: bool,
}

/// One effect and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRecord {
    /// The hash of the request.
    pub request_sha256: Sha256Hex,
    /// What came back.
    pub result: EffectResult,
}

/// What differs between two equal runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notes {
    /// The run.
    pub run_id: RunId,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// Latency and tries of each effect.
    pub timing: BTreeMap<EffectId, Timing>,
}

/// How long an effect took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// From the wish to the result, waiting and retries included.
    pub latency_ms: u64,
    /// How often it was tried.
    pub tries: u32,
}

/// The version of the format that this build writes and reads.
pub const FORMAT: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    prev: Option<Sha256Hex>,
    record: Record,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Manifest(Manifest),
    Input(Box<ConsultInput>),
    Effect { id: EffectId, request_sha256: Sha256Hex, result: EffectResult },
    Approval(Approval),
    Conclusion(Box<Conclusion>),
    Finding(Finding),
    Verdict(Verdict),
}

impl Record {
    fn name(&self) -> &'static str {
        match self {
            Self::Manifest(_) => "manifest",
            Self::Input(_) => "input",
            Self::Effect { .. } => "effect",
            Self::Approval(_) => "approval",
            Self::Conclusion(_) => "conclusion",
            Self::Finding(_) => "finding",
            Self::Verdict(_) => "verdict",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotesLine {
    head: Sha256Hex,
    notes: Notes,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealLine {
    sha256: Sha256Hex,
}

impl Receipt {
    /// The receipt's bytes. The verdict is derived from the findings, never taken from elsewhere.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let mut text = String::new();
        let mut prev = None;
        let effects = self.effects.iter().map(|(id, effect)| Record::Effect {
            id: id.clone(),
            request_sha256: effect.request_sha256,
            result: effect.result.clone(),
        });
        let findings = self.findings.iter().map(|finding| Record::Finding(finding.clone()));
        let records = std::iter::once(Record::Manifest(self.manifest.clone()))
            .chain(self.input.clone().map(Record::Input))
            .chain(effects)
            .chain(self.approvals.iter().cloned().map(Record::Approval))
            .chain(self.conclusion.clone().map(Record::Conclusion))
            .chain(findings)
            .chain(std::iter::once(Record::Verdict(Verdict::of(&self.findings))));
        for record in records {
            prev = Some(push_line(&mut text, &Line { prev, record })?);
        }
        if let Some(head) = prev {
            push_line(&mut text, &NotesLine { head, notes: self.notes.clone() })?;
        }
        let sha256 = Sha256Hex::of(text.as_bytes());
        push_line(&mut text, &SealLine { sha256 })?;
        Ok(text)
    }
}

fn push_line<T: Serialize>(text: &mut String, line: &T) -> Result<Sha256Hex, serde_json::Error> {
    let line = serde_json::to_string(line)?;
    let hash = Sha256Hex::of(line.as_bytes());
    text.push_str(&line);
    text.push('\n');
    Ok(hash)
}

/// A receipt that holds together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedReceipt {
    /// The contents.
    pub receipt: Receipt,
    /// The verdict, derived again from the findings.
    pub verdict: Verdict,
    /// The hash of the last record: two equal runs have the same head.
    pub head: Sha256Hex,
}

/// Where a receipt does not hold together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ReceiptFault {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: ReceiptProblem,
}

/// What can be wrong with a receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptProblem {
    /// The file breaks off.
    #[error("the receipt ends here but is not complete")]
    Incomplete,
    /// The bytes are not UTF-8 text.
    #[error("the line is not text")]
    NotText,
    /// Not JSON, or not the record that belongs here.
    #[error("the line is not the record that belongs here: {0}")]
    Unreadable(String),
    /// The line is JSON, but not as this program writes it.
    #[error("the line is not written the way receipts are written")]
    NotAsWritten,
    /// The hash of the line before does not match.
    #[error("the line before was changed: its hash is {found}, this line expects {expected}")]
    BrokenChain {
        /// What this line says.
        expected: Sha256Hex,
        /// What the line before has.
        found: Sha256Hex,
    },
    /// The hash over the whole file does not match.
    #[error("the file was changed: its hash is {found}, its last line expects {expected}")]
    BrokenSeal {
        /// What the last line says.
        expected: Sha256Hex,
        /// What the file has.
        found: Sha256Hex,
    },
    /// The verdict does not follow from the findings.
    #[error("the verdict says {written}, but the findings give {derived}")]
    WrongVerdict {
        /// What the receipt says.
        written: Verdict,
        /// What follows from its findings.
        derived: Verdict,
    },
    /// A newer program wrote it.
    #[error("the receipt has format {0}, this program reads format {FORMAT}")]
    OtherFormat(u32),
    /// Effects are sorted by id and each stands there once.
    #[error("the effects are not in order")]
    OutOfOrder,
    /// The answers do not lead to what the receipt says.
    #[error("what is written here does not follow from the rest: {0}")]
    NotDerived(String),
    /// There is something after the end.
    #[error("something follows the end of the receipt")]
    Trailing,
}

/// Checks a receipt and derives its verdict again. The input is not trusted.
pub fn verify(bytes: &[u8]) -> Result<VerifiedReceipt, ReceiptFault> {
    let mut reader = Reader { bytes, at: 0, line: 0, prev: None };
    let manifest = match reader.record()? {
        Record::Manifest(manifest) if manifest.receipt == FORMAT => manifest,
        Record::Manifest(manifest) => {
            return Err(reader.fault(ReceiptProblem::OtherFormat(manifest.receipt)));
        }
        other => return Err(reader.misplaced(&other)),
    };
    let mut input = None;
    let mut effects = BTreeMap::new();
    let mut approvals = Vec::new();
    let mut conclusion = None;
    let mut findings = Vec::new();
    let mut lines = BTreeMap::new();
    // Every kind of record has its place; none comes back after a later one.
    let written = loop {
        let record = reader.record()?;
        let before_findings = findings.is_empty();
        let before_conclusion = conclusion.is_none() && before_findings;
        let before_approvals = approvals.is_empty() && before_conclusion;
        match record {
            Record::Input(found) if input.is_none() && effects.is_empty() && before_approvals => {
                input = Some(found);
            }
            Record::Effect { id, request_sha256, result } if before_approvals => {
                if effects.last_key_value().is_some_and(|(last, _)| *last >= id) {
                    return Err(reader.fault(ReceiptProblem::OutOfOrder));
                }
                lines.insert(id.clone(), reader.line);
                effects.insert(id, EffectRecord { request_sha256, result });
            }
            Record::Approval(approval) if before_conclusion => approvals.push(approval),
            Record::Conclusion(found) if before_conclusion => conclusion = Some(found),
            Record::Finding(finding) => findings.push(finding),
            Record::Verdict(verdict) => break verdict,
            other => return Err(reader.misplaced(&other)),
        }
    };
    let derived = Verdict::of(&findings);
    if written != derived {
        return Err(reader.fault(ReceiptProblem::WrongVerdict { written, derived }));
    }
    let last_record = reader.prev;
    let NotesLine { head, notes } = reader.line()?;
    reader.expect_chain(Some(head), last_record)?;
    let found = Sha256Hex::of(&bytes[..reader.at]);
    let SealLine { sha256: expected } = reader.line()?;
    if expected != found {
        return Err(reader.fault(ReceiptProblem::BrokenSeal { expected, found }));
    }
    if reader.at != bytes.len() {
        reader.line += 1;
        return Err(reader.fault(ReceiptProblem::Trailing));
    }
    let receipt = Receipt { manifest, input, effects, approvals, conclusion, findings, notes };
    derived_again(&receipt, &lines)?;
    Ok(VerifiedReceipt { receipt, verdict: derived, head })
}

/// Derives a consultation again from its input and its answers, model and network apart, and
/// compares what comes out with what is written.
fn derived_again(receipt: &Receipt, lines: &BTreeMap<EffectId, usize>) -> Result<(), ReceiptFault> {
    let fault =
        |line: usize, why: String| ReceiptFault { line, problem: ReceiptProblem::NotDerived(why) };
    let Some(input) = &receipt.input else {
        // Only a consultation can be derived; one without its input cannot.
        let kind = RunKind::parse(&receipt.manifest.workflow);
        return match kind {
            Some(RunKind::Consult) => Err(fault(1, "a consultation has an input".to_owned())),
            _ => Ok(()),
        };
    };
    let derived = derive(input, &receipt.effects, &receipt.approvals).map_err(|problem| {
        let line = problem.effect_id().and_then(|id| lines.get(id)).copied();
        fault(line.unwrap_or(2), problem.to_string())
    })?;
    let after_effects = 2 + receipt.effects.len() + receipt.approvals.len();
    if receipt.conclusion.as_deref() != Some(&derived.conclusion) {
        return Err(fault(after_effects + 1, "the ranking is another one".to_owned()));
    }
    if receipt.findings != derived.findings {
        let same = receipt.findings.iter().zip(&derived.findings).take_while(|(a, b)| a == b);
        let line = after_effects + 2 + same.count();
        return Err(fault(line, "the findings are others".to_owned()));
    }
    Ok(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    prev: Option<Sha256Hex>,
}

impl Reader<'_> {
    fn record(&mut self) -> Result<Record, ReceiptFault> {
        let before = self.prev;
        let Line { prev, record } = self.line()?;
        self.expect_chain(prev, before)?;
        Ok(record)
    }

    /// Reads one line and insists that writing it again gives the same bytes: white space or a
    /// repeated key would otherwise be free to vary in the last lines, which no later line vouches
    /// for.
    fn line<T: for<'de> Deserialize<'de> + Serialize>(&mut self) -> Result<T, ReceiptFault> {
        self.line += 1;
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or_else(|| self.fault(ReceiptProblem::Incomplete))?;
        let text = std::str::from_utf8(&rest[..length])
            .map_err(|_| self.fault(ReceiptProblem::NotText))?;
        let value: T = serde_json::from_str(text)
            .map_err(|error| self.fault(ReceiptProblem::Unreadable(error.to_string())))?;
        if serde_json::to_string(&value).ok().as_deref() != Some(text) {
            return Err(self.fault(ReceiptProblem::NotAsWritten));
        }
        self.at += length + 1;
        self.prev = Some(Sha256Hex::of(text.as_bytes()));
        Ok(value)
    }

    fn expect_chain(
        &self,
        written: Option<Sha256Hex>,
        before: Option<Sha256Hex>,
    ) -> Result<(), ReceiptFault> {
        match (written, before) {
            (written, before) if written == before => Ok(()),
            (Some(expected), Some(found)) => {
                Err(self.fault(ReceiptProblem::BrokenChain { expected, found }))
            }
            _ => Err(self.fault(ReceiptProblem::Unreadable(
                "the hash of the line before is missing or misplaced".to_owned(),
            ))),
        }
    }

    fn misplaced(&self, record: &Record) -> ReceiptFault {
        let name = record.name();
        self.fault(ReceiptProblem::Unreadable(format!("a {name} record is out of place")))
    }

    fn fault(&self, problem: ReceiptProblem) -> ReceiptFault {
        ReceiptFault { line: self.line, problem }
    }
}

#[cfg(test)]
#[path = "receipt_tests.rs"]
mod tests;
