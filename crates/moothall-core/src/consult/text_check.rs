//! Checks of agents' texts and of the evidence, before any move is debated.

use std::cmp::Reverse;

use super::moves::Move;
use super::result::SupportCount;
use crate::claims::{
    Claim, ClaimChecker, ClaimSupport, ClaimVerdict, advice_language, injected_instructions,
};
use crate::debate::cites;
use crate::evidence::{Evidence, FilingPassage, Provenance};
use crate::{FindingSeverity, RunFinding};

/// Findings kept per text, most severe first.
const MAX_FINDINGS: usize = 40;

/// Marks a reading that cites nothing after it was asked for again.
pub(crate) const UNCITED_READING: &str = "reading.uncited";
const UNCITED: &str = "the text cites no evidence";

/// Result of checking a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextCheck {
    /// Findings, most severe first.
    pub findings: Vec<RunFinding>,
    /// Numbers that are supported or marked as assumptions, out of all numbers read.
    pub support: SupportCount,
}

impl TextCheck {
    /// Checks a document, such as `F1.md`.
    pub(crate) fn of_document(evidence: &Evidence, subject: &str, text: &str) -> Self {
        Self::of(evidence, subject, text, Vec::new())
    }

    /// Checks a reading, which must cite evidence if there is any.
    pub(crate) fn of_reading(evidence: &Evidence, subject: &str, text: &str) -> Self {
        let is_uncited = !is_synthetic(evidence) && cites(text, []).is_empty();
        let uncited = is_uncited
            .then(|| RunFinding::new(UNCITED_READING, FindingSeverity::Warn, subject, UNCITED));
        Self::of(evidence, subject, text, uncited.into_iter().collect())
    }

    /// Checks a move's document and the evidence ids it lists.
    pub(crate) fn of_move(evidence: &Evidence, one: &Move) -> Self {
        let subject = one.move_id.as_str();
        let ids = one.proposal.evidence.iter().filter(|id| !is_id(id));
        let bad = ids.map(|id| RunFinding {
            rule: ClaimVerdict::BadCitation.rule(),
            severity: FindingSeverity::Escalate,
            subject: subject.to_owned(),
            message: format!("\"{id}\" among the evidence is no id of anything"),
            evidence: Vec::new(),
        });
        let bad = if is_synthetic(evidence) { Vec::new() } else { bad.collect() };
        Self::of(evidence, subject, &one.markdown(), bad)
    }

    fn of(evidence: &Evidence, subject: &str, text: &str, mut findings: Vec<RunFinding>) -> Self {
        let claims = ClaimChecker::new(evidence.into()).check(text);
        let ClaimSupport { supported, assumed, total, .. } = ClaimSupport::of(&claims);
        // Synthetic evidence gives nothing to check a number against. The run reports this once,
        // and every document is marked.
        if !is_synthetic(evidence) {
            let flagged = claims.iter().filter(|claim| claim.verdict.is_flagged());
            findings.extend(flagged.filter_map(|claim: &Claim| claim.finding(subject)));
        }
        let phrases = advice_language(text).into_iter().chain(injected_instructions(text));
        findings.extend(phrases.map(|phrase| phrase.finding(subject)));
        findings.sort_by_key(|finding| Reverse(finding.severity));
        findings.truncate(MAX_FINDINGS);
        Self { findings, support: SupportCount { supported: supported + assumed, total } }
    }

    /// Whether the author must rewrite the text.
    pub fn is_flagged(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Sort key: findings that hold a move back first, then the total number of findings.
    pub(crate) fn weight(&self) -> (usize, usize) {
        let grave =
            self.findings.iter().filter(|found| found.severity >= FindingSeverity::Escalate);
        (grave.count(), self.findings.len())
    }
}

/// Removes passages and headlines that contain instructions to models, and returns a finding for
/// each. Sources are data: injected instructions must not reach a prompt.
pub(crate) fn without_injections(mut evidence: Evidence) -> (Evidence, Vec<RunFinding>) {
    let mut findings = Vec::new();
    let mut is_plain = |subject: String, text: &str| match injected_instructions(text).first() {
        None => true,
        Some(phrase) => {
            findings
                .push(RunFinding { severity: FindingSeverity::Warn, ..phrase.finding(&subject) });
            false
        }
    };
    evidence.passages.retain(|passage| is_plain(citation(passage), &passage.text));
    for document in &mut evidence.documents {
        let id = document.id.clone();
        let subject = |number: u32| format!("U0:{id}:{number}");
        document.passages.retain(|passage| is_plain(subject(passage.number), &passage.text));
    }
    evidence.headlines.retain(|one| is_plain(format!("N0:{}", one.number), &one.text));
    (evidence, findings)
}

pub(crate) fn citation(passage: &FilingPassage) -> String {
    format!("T0:{}:{}:{}", passage.accession, passage.item, passage.paragraph)
}

pub(crate) fn is_synthetic(evidence: &Evidence) -> bool {
    evidence.provenance == Provenance::Synthetic
}

/// Whether a text has the form of an evidence id; the checker verifies that the id exists.
fn is_id(text: &str) -> bool {
    ["F0:", "E0:", "T0:", "U0:", "N0:"].iter().any(|kind| text.starts_with(kind))
        && !text.contains(['[', ']'])
}

#[cfg(test)]
#[path = "text_check_tests.rs"]
mod tests;
