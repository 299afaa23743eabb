//! The receipt of a run: JSON lines, each with the hash of the previous one.
//!
//! Anyone can derive the verdict again from a receipt, offline and without a model. It has three
//! parts, in this order:
//! 1. records (manifest, input, effects sorted by id, approvals, conclusion, findings, verdict),
//!    each with the SHA-256 of the previous line: two equal runs have byte-identical records;
//! 2. one line of notes with everything that differs between equal runs (run id, times, latency,
//!    tries) and the hash of the last record;
//! 3. one line with the SHA-256 of everything above it, which detects any change.
//!
//! A receipt proves that it was not changed by accident or in part. It is not signed: anyone who
//! can rewrite the whole file can make a different one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consult::{ConsultInput, MoveApproval};
use crate::model::ModelName;
use crate::report::derive;
use crate::{
    Conclusion, EffectId, EffectResult, RunFinding, RunId, RunKind, RunVerdict, Sha256Hex,
};

/// The content of a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The run's manifest.
    pub manifest: ReceiptManifest,
    /// The input of a consultation. Together with the effects it determines everything else.
    pub input: Option<Box<ConsultInput>>,
    /// Every effect with its request hash and its result.
    pub effects: BTreeMap<EffectId, EffectRecord>,
    /// Approvals given after the end of a consultation.
    pub approvals: Vec<MoveApproval>,
    /// The conclusion of a consultation, including approvals.
    pub conclusion: Option<Box<Conclusion>>,
    /// The findings.
    pub findings: Vec<RunFinding>,
    /// What differs between two equal runs.
    pub notes: ReceiptNotes,
}

/// A description of the run, without anything that differs between two equal runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptManifest {
    /// The version of this format.
    pub receipt: u32,
    /// The workflow's name.
    pub workflow: String,
    /// The build that ran it.
    pub build: String,
    /// The requested model.
    pub model: String,
    /// Whether the demo model was used, so that its answers are not mistaken for real ones.
    pub demonstration: bool,
    /// The model of every member, if a member of the committee has a model of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelName>,
    /// The SHA-256 of each prompt and memo section that the user replaced, by file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, Sha256Hex>,
}

/// One effect and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRecord {
    /// The hash of the request.
    pub request_sha256: Sha256Hex,
    /// The result.
    pub result: EffectResult,
}

/// What differs between two equal runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptNotes {
    /// The run.
    pub run_id: RunId,
    /// The start time, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// Latency and tries of each effect.
    pub timing: BTreeMap<EffectId, EffectTiming>,
}

/// Duration and number of tries of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectTiming {
    /// From the request to the result, including waiting and retries.
    pub latency_ms: u64,
    /// The number of tries.
    pub tries: u32,
}

/// The version of the format that this build writes and reads.
pub const FORMAT: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptLine {
    prev: Option<Sha256Hex>,
    record: ReceiptRecord,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReceiptRecord {
    Manifest(ReceiptManifest),
    Input(Box<ConsultInput>),
    Effect { id: EffectId, request_sha256: Sha256Hex, result: EffectResult },
    Approval(MoveApproval),
    Conclusion(Box<Conclusion>),
    Finding(RunFinding),
    Verdict(RunVerdict),
}

impl ReceiptRecord {
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
    notes: ReceiptNotes,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealLine {
    sha256: Sha256Hex,
}

impl Receipt {
    /// Serializes the receipt. The verdict is always derived from the findings.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let mut text = String::new();
        let mut prev = None;
        let effects = self.effects.iter().map(|(id, effect)| ReceiptRecord::Effect {
            id: id.clone(),
            request_sha256: effect.request_sha256,
            result: effect.result.clone(),
        });
        let findings = self.findings.iter().map(|finding| ReceiptRecord::Finding(finding.clone()));
        let records = std::iter::once(ReceiptRecord::Manifest(self.manifest.clone()))
            .chain(self.input.clone().map(ReceiptRecord::Input))
            .chain(effects)
            .chain(self.approvals.iter().cloned().map(ReceiptRecord::Approval))
            .chain(self.conclusion.clone().map(ReceiptRecord::Conclusion))
            .chain(findings)
            .chain(std::iter::once(ReceiptRecord::Verdict(RunVerdict::of(&self.findings))));
        for record in records {
            prev = Some(push_line(&mut text, &ReceiptLine { prev, record })?);
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

/// A receipt that passed verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedReceipt {
    /// The contents.
    pub receipt: Receipt,
    /// The verdict, derived again from the findings.
    pub verdict: RunVerdict,
    /// The hash of the last record: two equal runs have the same head.
    pub head: Sha256Hex,
}

/// Why a receipt is invalid, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ReceiptFault {
    /// The line number, starting at 1.
    pub line: usize,
    /// The problem.
    pub problem: ReceiptProblem,
}

/// Problems of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptProblem {
    /// The file is truncated.
    #[error("the receipt is truncated")]
    Incomplete,
    /// The bytes are not UTF-8.
    #[error("the line is not UTF-8")]
    NotText,
    /// Not JSON, or not the expected record.
    #[error("invalid record: {0}")]
    Unreadable(String),
    /// Valid JSON, but not byte-identical to what Moothall writes.
    #[error("the line is not in the exact form that receipts use")]
    NotAsWritten,
    /// The hash of the previous line does not match.
    #[error("the previous line was changed: its hash is {found}, expected {expected}")]
    BrokenChain {
        /// The hash in this line.
        expected: Sha256Hex,
        /// The actual hash of the previous line.
        found: Sha256Hex,
    },
    /// The hash of the whole file does not match.
    #[error("the file was changed: its hash is {found}, expected {expected}")]
    BrokenSeal {
        /// The hash in the last line.
        expected: Sha256Hex,
        /// The actual hash of the file.
        found: Sha256Hex,
    },
    /// The verdict does not follow from the findings.
    #[error("the verdict is {written}, but the findings give {derived}")]
    WrongVerdict {
        /// The verdict in the receipt.
        written: RunVerdict,
        /// The verdict derived from its findings.
        derived: RunVerdict,
    },
    /// Written by a version with another receipt format.
    #[error("unsupported receipt format {0} (this version reads format {FORMAT})")]
    OtherFormat(u32),
    /// Effects must be sorted by id, without duplicates.
    #[error("effects are not sorted by id")]
    OutOfOrder,
    /// The recorded results do not lead to the recorded conclusion or findings.
    #[error("cannot be derived from the recorded results: {0}")]
    NotDerived(String),
    /// There is data after the end.
    #[error("unexpected data after the end of the receipt")]
    Trailing,
}

/// Verifies a receipt and derives its verdict again. The input is untrusted.
pub fn verify(bytes: &[u8]) -> Result<VerifiedReceipt, ReceiptFault> {
    let mut reader = ReceiptReader { bytes, at: 0, line: 0, prev: None };
    let manifest = match reader.record()? {
        ReceiptRecord::Manifest(manifest) if manifest.receipt == FORMAT => manifest,
        ReceiptRecord::Manifest(manifest) => {
            return Err(reader.fault(ReceiptProblem::OtherFormat(manifest.receipt)));
        }
        other => return Err(reader.unexpected_record(&other)),
    };
    let mut input = None;
    let mut effects = BTreeMap::new();
    let mut approvals = Vec::new();
    let mut conclusion = None;
    let mut findings = Vec::new();
    let mut lines = BTreeMap::new();
    // Records must come in a fixed order by kind.
    let written = loop {
        let record = reader.record()?;
        let before_findings = findings.is_empty();
        let before_conclusion = conclusion.is_none() && before_findings;
        let before_approvals = approvals.is_empty() && before_conclusion;
        match record {
            ReceiptRecord::Input(found)
                if input.is_none() && effects.is_empty() && before_approvals =>
            {
                input = Some(found);
            }
            ReceiptRecord::Effect { id, request_sha256, result } if before_approvals => {
                if effects.last_key_value().is_some_and(|(last, _)| *last >= id) {
                    return Err(reader.fault(ReceiptProblem::OutOfOrder));
                }
                lines.insert(id.clone(), reader.line);
                effects.insert(id, EffectRecord { request_sha256, result });
            }
            ReceiptRecord::Approval(approval) if before_conclusion => approvals.push(approval),
            ReceiptRecord::Conclusion(found) if before_conclusion => conclusion = Some(found),
            ReceiptRecord::Finding(finding) => findings.push(finding),
            ReceiptRecord::Verdict(verdict) => break verdict,
            other => return Err(reader.unexpected_record(&other)),
        }
    };
    let derived = RunVerdict::of(&findings);
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

/// Derives a consultation again from its input and its recorded results, without models or network,
/// and compares the result with the receipt.
fn derived_again(receipt: &Receipt, lines: &BTreeMap<EffectId, usize>) -> Result<(), ReceiptFault> {
    let fault =
        |line: usize, why: String| ReceiptFault { line, problem: ReceiptProblem::NotDerived(why) };
    let Some(input) = &receipt.input else {
        // Only consultations can be derived, and they require an input.
        let kind = RunKind::parse(&receipt.manifest.workflow);
        return match kind {
            Some(RunKind::Consult) => Err(fault(1, "the consultation has no input".to_owned())),
            _ => Ok(()),
        };
    };
    if receipt.manifest.models != input.receipt_models() {
        return Err(fault(1, "the models of the members differ from the input".to_owned()));
    }
    if receipt.manifest.texts != input.receipt_texts() {
        return Err(fault(1, "the hashes of the user's texts differ from the input".to_owned()));
    }
    let derived = derive(input, &receipt.effects, &receipt.approvals).map_err(|problem| {
        let line = problem.effect_id().and_then(|id| lines.get(id)).copied();
        fault(line.unwrap_or(2), problem.to_string())
    })?;
    let after_effects = 2 + receipt.effects.len() + receipt.approvals.len();
    if receipt.conclusion.as_deref() != Some(&derived.conclusion) {
        return Err(fault(after_effects + 1, "the ranking differs".to_owned()));
    }
    if receipt.findings != derived.findings {
        let same = receipt.findings.iter().zip(&derived.findings).take_while(|(a, b)| a == b);
        let line = after_effects + 2 + same.count();
        return Err(fault(line, "the findings differ".to_owned()));
    }
    Ok(())
}

struct ReceiptReader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    prev: Option<Sha256Hex>,
}

impl ReceiptReader<'_> {
    fn record(&mut self) -> Result<ReceiptRecord, ReceiptFault> {
        let before = self.prev;
        let ReceiptLine { prev, record } = self.line()?;
        self.expect_chain(prev, before)?;
        Ok(record)
    }

    /// Reads one line and requires that serializing it again gives the same bytes. Otherwise
    /// whitespace or duplicate keys could vary in the last lines, which no later hash covers.
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
                "the hash of the previous line is missing or misplaced".to_owned(),
            ))),
        }
    }

    fn unexpected_record(&self, record: &ReceiptRecord) -> ReceiptFault {
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
