//! What a consultation comes to: the ranking, and every finding in a fixed order.

use std::collections::{BTreeMap, BTreeSet};

use super::input::ConsultInput;
use super::proceedings::{DebateEnd, Document, Failure, Proceedings, Tried};
use super::rank::{Accepted, Ranking, accept, rank};
use super::ranked::Ranked;
use super::review::LastWord;
use crate::debate::{ScoreBasis, Undebated};
use crate::{Conclusion, Finding, Outcome, Severity};

/// What a consultation comes to with what is known: its end where its layers are done, and what
/// there is so far where they are not.
pub fn outcome_of(input: &ConsultInput, known: &Proceedings) -> Outcome {
    let nobody = BTreeSet::new();
    let accepted = if input.accept_findings { Accepted::Every } else { Accepted::These(&nobody) };
    let ranking = rank(known.moves.values().map(Tried::unranked), accepted);
    let findings = findings(input, known);
    let evidence = known.evidence.as_deref();
    let mut missing = missing(input, known);
    missing.extend(ranking.shortfall());
    let Ranking { recommended, other } = ranking;
    let ranked = Ranked {
        company: evidence.map(|evidence| evidence.company.name.clone()).unwrap_or_default(),
        sheet_sha256: evidence
            .and_then(|evidence| evidence.sheet.as_ref())
            .map(|sheet| sheet.hash()),
        recommended,
        other,
        missing,
        do_nothing: undebated(input, known, 0),
        baseline: known.moves.keys().filter_map(|n| undebated(input, known, *n)).collect(),
    };
    Outcome::new(findings, Conclusion::Ranked(Box::new(ranked)))
}

/// What a move scores without a debate, as soon as every decision maker was asked.
fn undebated(input: &ConsultInput, known: &Proceedings, number: u32) -> Option<Undebated> {
    let cards = known.scored_alone.get(&number)?;
    let committee = &input.committee;
    (cards.len() == committee.decision_makers.len())
        .then(|| Undebated::of(format!("m{number}"), cards.clone(), committee.top_score()))
}

/// What is not there and should be, in words.
fn missing(input: &ConsultInput, known: &Proceedings) -> Vec<String> {
    let mut missing = Vec::new();
    if let Some(evidence) = known.evidence.as_deref() {
        missing.extend(evidence.missing.iter().cloned());
    }
    let unmade = |name: &&str| !name.contains('/');
    let failures = known.failures.iter().filter(|(name, _)| unmade(&name.as_str()));
    missing.extend(failures.map(|(name, failure)| format!("{name}: {}", failure.why)));
    let wanted = input.proposed_moves();
    let found = known.moves.range(..=wanted).count();
    if found < wanted as usize {
        missing.push(format!("{found} of {wanted} moves were proposed"));
    }
    for tried in known.moves.values() {
        if let Some(DebateEnd { result: Err(why), .. }) = &tried.debate {
            missing.push(format!("the debate of {}: {why}", tried.proposed.move_id));
        }
    }
    missing
}

fn findings(input: &ConsultInput, known: &Proceedings) -> Vec<Finding> {
    let mut found = of_evidence(known);
    for (name, document) in [("F1", &known.f1), ("F2", &known.f2)] {
        found.extend(of_document(name, document.as_ref()));
    }
    for (subject, Failure { why, .. }) in &known.failures {
        let rule = match subject.as_str() {
            "F1" | "F2" => "consult.inference-failed",
            name if name.starts_with("synthesize_") => "consult.synthesis-failed",
            name if name.ends_with("/rewrite") => "consult.rewrite-failed",
            _ => "consult.analyst-failed",
        };
        found.push(Finding::new(rule, Severity::Warn, subject, why));
    }
    for tried in known.moves.values() {
        found.extend(of_move(input, tried));
    }
    found.extend(known.ignored_changes.iter().cloned());
    found.extend(of_scores_alone(known));
    found.extend(of_isolation(known));
    let scored = known.moves.values().any(|tried| tried.unranked().debated.is_some());
    if known.moves.is_empty() {
        let message = "no analyst proposed a move that could be used";
        found.push(Finding::new("consult.no-moves", Severity::Block, SUBJECT, message));
    } else if !scored {
        let message = "no move was debated";
        found.push(Finding::new("consult.no-debate", Severity::Block, SUBJECT, message));
    }
    found
}

/// The subject of what is about no part of a run.
const SUBJECT: &str = "consult";

fn of_evidence(known: &Proceedings) -> Vec<Finding> {
    let mut found = Vec::new();
    let Some(evidence) = known.evidence.as_deref() else { return found };
    if known.is_synthetic() {
        let message = "a model invented the evidence, so no number could be checked";
        found.push(Finding::new("consult.synthetic", Severity::Warn, SUBJECT, message));
    }
    for line in &evidence.missing {
        found.push(Finding::new("evidence.missing", Severity::Warn, "gather", line));
    }
    for line in evidence.warnings() {
        found.push(Finding::new("evidence.age", Severity::Warn, "gather", &line));
    }
    found.extend(known.left_out.iter().cloned());
    found
}

/// What stayed in a reading is marked in the dossier and holds nothing back.
fn of_document(name: &str, document: Option<&Document>) -> Vec<Finding> {
    let found = document.map_or(&[][..], |document| &document.check.findings);
    let lighter = |finding: &Finding| Finding {
        severity: finding.severity.min(Severity::Warn),
        subject: name.to_owned(),
        ..finding.clone()
    };
    found.iter().map(lighter).collect()
}

fn of_move(input: &ConsultInput, tried: &Tried) -> Vec<Finding> {
    let id = &tried.proposed.move_id;
    let own = [id.clone()].into();
    let claims = tried.check.findings.iter();
    // What nobody debates waits for nobody.
    let mut found: Vec<Finding> = if input.accept_findings || tried.is_vetoed() {
        claims.map(|finding| accept(finding, &own)).collect()
    } else {
        claims.cloned().collect()
    };
    if !tried.similar_to.is_empty() {
        let others: Vec<&str> = tried.similar_to.iter().map(String::as_str).collect();
        let message = format!("it says nearly the same as {}", others.join(", "));
        found.push(Finding::new("consult.similar", Severity::Note, id, &message));
    }
    if let Some(said) = &tried.said {
        let rule = match said {
            LastWord::Vetoed { .. } => "consult.vetoed",
            LastWord::Edited { .. } => "consult.edited",
            LastWord::Added { .. } => "consult.added",
        };
        found.push(Finding::new(rule, Severity::Note, id, said.words()));
    }
    match &tried.debate {
        Some(DebateEnd { result: Ok(_), findings, .. }) => found.extend(findings.iter().cloned()),
        Some(DebateEnd { result: Err(why), .. }) => {
            found.push(Finding::new("consult.not-debated", Severity::Warn, id, why));
        }
        None => {}
    }
    found
}

/// Scores without a debate that nobody gave.
fn of_scores_alone(known: &Proceedings) -> Vec<Finding> {
    let cards = known
        .scored_alone
        .iter()
        .flat_map(|(number, cards)| cards.iter().map(move |(maker, card)| (number, maker, card)));
    let neutral = cards.filter(|(_, _, card)| card.basis == ScoreBasis::Neutral);
    let said = neutral.map(|(number, maker, _)| {
        let message = format!("{maker} gave no scores without a debate; each is a neutral 5");
        Finding::new("consult.neutral-score", Severity::Warn, format!("m{number}"), &message)
    });
    said.collect()
}

/// Walls that are weaker than wanted, said once for each reason.
fn of_isolation(known: &Proceedings) -> Vec<Finding> {
    let mut weaker: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    for tried in known.moves.values() {
        if let Some(DebateEnd { isolation, .. }) = &tried.debate
            && let Some(why) = &isolation.fallback
        {
            let moves = weaker.entry((isolation.class.to_string(), why)).or_default();
            moves.push(&tried.proposed.move_id);
        }
    }
    let said = weaker.into_iter().map(|((class, why), moves)| {
        let message = format!("debated in class {class} instead ({}): {why}", moves.join(", "));
        Finding::new("isolation.fallback", Severity::Warn, SUBJECT, &message)
    });
    said.collect()
}
