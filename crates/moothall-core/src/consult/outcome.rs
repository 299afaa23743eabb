//! Builds the outcome of a consultation: the ranking, and all findings in a fixed order.
//!
//! Receipts are verified by deriving the outcome again, so changing the text of a finding or of a
//! `missing` line invalidates existing receipts.

use std::collections::{BTreeMap, BTreeSet};

use super::input::ConsultInput;
use super::panel_record::{PanelVerdict, VERDICT_APPROVAL};
use super::rank::{FindingAcceptance, MoveRanking, accept, rank, rank_by_verdict};
use super::result::ConsultResult;
use super::review::MoveReviewDecision;
use super::state::{AgentFailure, CheckedDocument, ConsultState, DebateRecord, MoveRecord};
use crate::debate::{BaselineScores, ScoreBasis};
use crate::verdict::PanelCheck;
use crate::{Conclusion, FindingSeverity, Outcome, RunFinding};

/// The outcome of a consultation: final once all stages are done, partial before that.
pub fn outcome_of(input: &ConsultInput, known: &ConsultState) -> Outcome {
    let nobody = BTreeSet::new();
    let accepted = if input.accept_findings {
        FindingAcceptance::Every
    } else {
        FindingAcceptance::These(&nobody)
    };
    let moves = known.moves.values().map(MoveRecord::unranked);
    let verdict = known.panel.verdict.clone();
    let mut missing = missing(input, known);
    let ranking = match &verdict {
        Some(verdict) => {
            missing.extend(not_scored_by_panel(verdict));
            rank_by_verdict(moves, verdict)
        }
        None => {
            let ranking = rank(moves, accepted);
            missing.extend(ranking.shortfall());
            ranking
        }
    };
    let findings = findings(input, known);
    let evidence = known.evidence.as_deref();
    let MoveRanking { recommended, other } = ranking;
    let ranked = ConsultResult {
        company: evidence.map(|evidence| evidence.company.name.clone()).unwrap_or_default(),
        sheet_sha256: evidence
            .and_then(|evidence| evidence.sheet.as_ref())
            .map(|sheet| sheet.hash()),
        recommended,
        other,
        missing,
        do_nothing: undebated(input, known, 0),
        baseline: known.moves.keys().filter_map(|n| undebated(input, known, *n)).collect(),
        verdict,
    };
    Outcome::new(findings, Conclusion::Ranked(Box::new(ranked)))
}

/// Scores of a move without a debate, once there is a card from every decision maker.
fn undebated(input: &ConsultInput, known: &ConsultState, number: u32) -> Option<BaselineScores> {
    let cards = known.scored_alone.get(&number)?;
    let committee = &input.committee;
    (cards.len() == committee.decision_makers.len())
        .then(|| BaselineScores::of(format!("m{number}"), cards.clone(), committee.top_score()))
}

/// Describes what is missing and why.
fn missing(input: &ConsultInput, known: &ConsultState) -> Vec<String> {
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
        if let Some(DebateRecord { result: Err(why), .. }) = &tried.debate {
            missing.push(format!("the debate of {}: {why}", tried.proposed.move_id));
        }
    }
    for (case_id, debate) in &known.panel.debates {
        if let Err(why) = &debate.result {
            missing.push(format!("the debate {case_id}: {why}"));
        }
    }
    missing
}

fn not_scored_by_panel(verdict: &PanelVerdict) -> Option<String> {
    let ids = &verdict.tiers.not_scored;
    (!ids.is_empty()).then(|| format!("not scored by the panel: {}", ids.join(", ")))
}

/// What the controls and the cards show about the panel.
fn of_panel(known: &ConsultState) -> Vec<RunFinding> {
    let mut found = Vec::new();
    for (case_id, DebateRecord { result, findings, .. }) in &known.panel.debates {
        match result {
            Ok(_) => found.extend(findings.iter().cloned()),
            Err(why) => {
                let rule = "consult.not-debated";
                found.push(RunFinding::new(rule, FindingSeverity::Warn, case_id, why));
            }
        }
    }
    let Some(verdict) = &known.panel.verdict else { return found };
    let controls = &verdict.tiers.controls;
    let severity = match controls.check {
        PanelCheck::Failed => FindingSeverity::Escalate,
        PanelCheck::Passed | PanelCheck::Doubtful => FindingSeverity::Warn,
    };
    found.extend(controls.warning().map(|warning| {
        RunFinding::new("panel.control-missed", severity, VERDICT_APPROVAL, &warning)
    }));
    for member in &controls.left_out {
        let message = format!("{member} missed too many controls, so its cards do not count");
        let rule = "panel.member-left-out";
        found.push(RunFinding::new(rule, FindingSeverity::Warn, member, &message));
    }
    let cards = &verdict.record.cards;
    for judge in &verdict.record.judges {
        let own = || cards.iter().filter(|card| card.member == judge.id);
        let missing = own().filter(|card| !card.scorecard.is_given()).count();
        if missing > 0 {
            let message = format!(
                "{} gave no usable scores in {missing} of {} cases",
                judge.id,
                own().count()
            );
            let rule = "panel.card-missing";
            found.push(RunFinding::new(rule, FindingSeverity::Warn, &judge.id, &message));
        }
    }
    found
}

fn findings(input: &ConsultInput, known: &ConsultState) -> Vec<RunFinding> {
    let mut found = of_evidence(known);
    for (name, document) in [("F1", &known.f1), ("F2", &known.f2)] {
        found.extend(of_document(name, document.as_ref()));
    }
    for (subject, AgentFailure { why, .. }) in &known.failures {
        let rule = match subject.as_str() {
            "F1" | "F2" => "consult.inference-failed",
            name if name.starts_with("synthesize_") => "consult.synthesis-failed",
            name if name.ends_with("/rewrite") => "consult.rewrite-failed",
            _ => "consult.analyst-failed",
        };
        found.push(RunFinding::new(rule, FindingSeverity::Warn, subject, why));
    }
    for tried in known.moves.values() {
        found.extend(of_move(input, tried));
    }
    found.extend(known.ignored_changes.iter().cloned());
    found.extend(of_scores_alone(known));
    found.extend(of_panel(known));
    found.extend(of_isolation(known));
    let scored = known.moves.values().any(|tried| tried.unranked().debated.is_some());
    if known.moves.is_empty() {
        let message = "no analyst proposed a move that could be used";
        found.push(RunFinding::new("consult.no-moves", FindingSeverity::Block, SUBJECT, message));
    } else if !scored {
        let message = "no move was debated";
        found.push(RunFinding::new("consult.no-debate", FindingSeverity::Block, SUBJECT, message));
    } else if known.panel.verdict.is_none()
        && !known.moves.values().any(|tried| tried.unranked().is_scored())
    {
        let message = "no move was scored by every decision maker";
        found.push(RunFinding::new("consult.no-scores", FindingSeverity::Block, SUBJECT, message));
    }
    found
}

/// Subject of findings about the run as a whole.
const SUBJECT: &str = "consult";

fn of_evidence(known: &ConsultState) -> Vec<RunFinding> {
    let mut found = Vec::new();
    let Some(evidence) = known.evidence.as_deref() else { return found };
    if known.is_synthetic() {
        let message = "a model invented the evidence, so no number could be checked";
        found.push(RunFinding::new("consult.synthetic", FindingSeverity::Warn, SUBJECT, message));
    }
    for line in &evidence.missing {
        found.push(RunFinding::new("evidence.missing", FindingSeverity::Warn, "gather", line));
    }
    for line in evidence.warnings() {
        found.push(RunFinding::new("evidence.age", FindingSeverity::Warn, "gather", &line));
    }
    found.extend(known.left_out.iter().cloned());
    found
}

/// Findings left in a reading are marked in the dossier and do not hold a move back.
fn of_document(name: &str, document: Option<&CheckedDocument>) -> Vec<RunFinding> {
    let found = document.map_or(&[][..], |document| &document.check.findings);
    let lighter = |finding: &RunFinding| RunFinding {
        severity: finding.severity.min(FindingSeverity::Warn),
        subject: name.to_owned(),
        ..finding.clone()
    };
    found.iter().map(lighter).collect()
}

fn of_move(input: &ConsultInput, tried: &MoveRecord) -> Vec<RunFinding> {
    let id = &tried.proposed.move_id;
    let own = [id.clone()].into();
    let claims = tried.check.findings.iter();
    // A vetoed move is not debated, so its findings need no approval.
    let mut found: Vec<RunFinding> = if input.accept_findings || tried.is_vetoed() {
        claims.map(|finding| accept(finding, &own)).collect()
    } else {
        claims.cloned().collect()
    };
    if !tried.similar_to.is_empty() {
        let others: Vec<&str> = tried.similar_to.iter().map(String::as_str).collect();
        let message = format!("it says nearly the same as {}", others.join(", "));
        found.push(RunFinding::new("consult.similar", FindingSeverity::Note, id, &message));
    }
    if let Some(said) = &tried.said {
        let rule = match said {
            MoveReviewDecision::Vetoed { .. } => "consult.vetoed",
            MoveReviewDecision::Edited { .. } => "consult.edited",
            MoveReviewDecision::Added { .. } => "consult.added",
        };
        found.push(RunFinding::new(rule, FindingSeverity::Note, id, said.describe()));
    }
    match &tried.debate {
        Some(DebateRecord { result: Ok(_), findings, .. }) => {
            found.extend(findings.iter().cloned())
        }
        Some(DebateRecord { result: Err(why), .. }) => {
            found.push(RunFinding::new("consult.not-debated", FindingSeverity::Warn, id, why));
        }
        None => {}
    }
    found
}

/// Findings for missing scores without a debate.
fn of_scores_alone(known: &ConsultState) -> Vec<RunFinding> {
    let cards = known
        .scored_alone
        .iter()
        .flat_map(|(number, cards)| cards.iter().map(move |(maker, card)| (number, maker, card)));
    let found = cards.filter_map(|(number, maker, card)| {
        let (rule, message) = match card.basis {
            ScoreBasis::Structured | ScoreBasis::FromText => return None,
            ScoreBasis::Neutral => (
                "consult.neutral-score",
                format!("{maker} gave no scores without a debate; each is a neutral 5"),
            ),
            ScoreBasis::NotScored => {
                ("consult.not-scored", format!("{maker} gave no usable scores without a debate"))
            }
        };
        Some(RunFinding::new(rule, FindingSeverity::Warn, format!("m{number}"), &message))
    });
    found.collect()
}

/// Findings for isolation weaker than requested, one per reason.
fn of_isolation(known: &ConsultState) -> Vec<RunFinding> {
    let mut weaker: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    let moves = known.moves.values();
    let first = moves.filter_map(|tried| Some((&tried.proposed.move_id, tried.debate.as_ref()?)));
    for (id, DebateRecord { isolation, .. }) in first.chain(&known.panel.debates) {
        if let Some(why) = &isolation.fallback {
            let moves = weaker.entry((isolation.class.to_string(), why)).or_default();
            moves.push(id);
        }
    }
    let said = weaker.into_iter().map(|((class, why), moves)| {
        let message = format!("debated in class {class} instead ({}): {why}", moves.join(", "));
        RunFinding::new("isolation.fallback", FindingSeverity::Warn, SUBJECT, &message)
    });
    said.collect()
}
