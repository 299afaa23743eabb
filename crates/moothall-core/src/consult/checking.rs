//! What code finds in the texts of agents and in the evidence before anyone speaks about a move.

use std::cmp::Reverse;

use super::moves::Move;
use super::ranked::SupportCount;
use crate::claims::{
    Checker, Claim, ClaimVerdict, Support, advice_language, injected_instructions,
};
use crate::evidence::{Evidence, Passage, Provenance};
use crate::{Finding, Severity};

/// More findings of one text say nothing new; the gravest are kept.
const MAX_FINDINGS: usize = 40;

/// What code found in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// What is flagged, the gravest first.
    pub findings: Vec<Finding>,
    /// Numbers that are supported or marked as assumptions, of all that were read.
    pub support: SupportCount,
}

impl Check {
    /// Checks a document, such as `F1.md`.
    pub(super) fn of_document(evidence: &Evidence, subject: &str, text: &str) -> Self {
        Self::of(evidence, subject, text, Vec::new())
    }

    /// Checks a move over its document, and the ids that it says it rests on.
    pub(super) fn of_move(evidence: &Evidence, one: &Move) -> Self {
        let subject = one.move_id.as_str();
        let ids = one.proposal.evidence.iter().filter(|id| !is_id(id));
        let bad = ids.map(|id| Finding {
            rule: ClaimVerdict::BadCitation.rule(),
            severity: Severity::Escalate,
            subject: subject.to_owned(),
            message: format!("\"{id}\" among the evidence is no id of anything"),
            evidence: Vec::new(),
        });
        let bad = if is_synthetic(evidence) { Vec::new() } else { bad.collect() };
        Self::of(evidence, subject, &one.markdown(), bad)
    }

    fn of(evidence: &Evidence, subject: &str, text: &str, mut findings: Vec<Finding>) -> Self {
        let claims = Checker::new(evidence.into()).check(text);
        let Support { supported, assumed, total, .. } = Support::of(&claims);
        // Where a model made the evidence up, there is nothing that a number could be checked
        // against. The run says so once, and in every document.
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

    /// Whether the author is asked to write it again.
    pub fn is_flagged(&self) -> bool {
        !self.findings.is_empty()
    }

    /// How bad it is: what holds a move back weighs more than anything else.
    pub(super) fn weight(&self) -> (usize, usize) {
        let grave = self.findings.iter().filter(|found| found.severity >= Severity::Escalate);
        (grave.count(), self.findings.len())
    }
}

/// The evidence without passages and headlines that speak to models, and a finding for each that was
/// left out: sources are data, and a source that gives orders is not shown to anyone who might follow
/// them.
pub(super) fn without_injections(mut evidence: Evidence) -> (Evidence, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut is_plain = |subject: String, text: &str| match injected_instructions(text).first() {
        None => true,
        Some(phrase) => {
            findings.push(Finding { severity: Severity::Warn, ..phrase.finding(&subject) });
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

/// How a passage is cited.
pub(super) fn citation(passage: &Passage) -> String {
    format!("T0:{}:{}:{}", passage.accession, passage.item, passage.paragraph)
}

pub(super) fn is_synthetic(evidence: &Evidence) -> bool {
    evidence.provenance == Provenance::Synthetic
}

/// Whether a text has the form of an id of evidence; the checker says whether it names something.
fn is_id(text: &str) -> bool {
    ["F0:", "E0:", "T0:", "U0:", "N0:"].iter().any(|kind| text.starts_with(kind))
        && !text.contains(['[', ']'])
}

#[cfg(test)]
#[path = "checking_tests.rs"]
mod tests;
