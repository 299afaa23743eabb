//! What a debate comes to: cards, the record of objections, and what is not as it should be.

use std::collections::BTreeMap;

use super::debated::{Debated, Degradation, Objection, ScoreBasis, Scorecard};
use super::objections::Case;
use super::thread::Thread;
use super::{Debate, Stage, scores};
use crate::consult::committee::{Metric, TOP_LEVEL};
use crate::model::FailureKind;
use crate::text::one_line;
use crate::{Conclusion, Finding, Outcome, RunEvent, RunEventBody, Severity, Step};

/// What a score is where nobody gave one.
const NEUTRAL: u8 = 5;

/// How much of the reasoning a card keeps.
const MAX_REASONING_CHARS: usize = 800;

/// A card as a decision maker gave it.
pub(super) fn card(scores: BTreeMap<String, u8>, reasoning: &str, basis: ScoreBasis) -> Scorecard {
    Scorecard { scores, reasoning: one_line(reasoning, MAX_REASONING_CHARS), basis }
}

/// A card from words, newest first, or a neutral one.
pub(super) fn card_from_texts<'a>(
    texts: impl Iterator<Item = &'a str>,
    metrics: &[Metric],
) -> Scorecard {
    let mut found = texts.filter_map(|text| Some((scores::from_text(text, metrics)?, text)));
    match found.next() {
        Some((scores, text)) => card(scores, text, ScoreBasis::FromText),
        None => neutral(metrics),
    }
}

/// A card that nobody gave.
pub(super) fn neutral(metrics: &[Metric]) -> Scorecard {
    let scores = metrics.iter().map(|metric| (metric.id.clone(), NEUTRAL)).collect();
    card(scores, "", ScoreBasis::Neutral)
}

/// The state of a debate, whether it is over or not.
pub(super) fn debated(debate: &Debate) -> Debated {
    let threads = &debate.threads;
    let scorecards: BTreeMap<String, Scorecard> = threads
        .iter()
        .filter_map(|thread| Some((thread.seat.id.clone(), thread.card.clone()?)))
        .collect();
    let sums = || scorecards.values().map(Scorecard::sum);
    let spread = sums().max().unwrap_or(0) - sums().min().unwrap_or(0);
    let cells = debate.input.metrics.len() * threads.len();
    Debated {
        move_id: debate.input.move_id.clone(),
        rounds: debate.input.rounds,
        rounds_done: debate.rounds_done(),
        total_score: sums().sum(),
        top_score: u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(u32::from(TOP_LEVEL)),
        spread,
        scorecards,
        objections: objections(threads),
        stances: threads
            .iter()
            .filter_map(|thread| Some((thread.seat.id.clone(), thread.stances.last()?.1)))
            .collect(),
        degraded: degraded(debate),
    }
}

/// The last step of a debate that has scores.
pub(super) fn finish(debate: &mut Debate, step: &mut Step) {
    let debated = debated(debate);
    let breakdown = debated.scorecards.iter().map(|(id, card)| (id.clone(), card.scores.clone()));
    step.publish.push(RunEvent::of_run(RunEventBody::SandboxScored {
        move_id: debated.move_id.clone(),
        score: debated.total_score,
        out_of: debated.top_score,
        breakdown: breakdown.collect(),
        rounds_done: debated.rounds_done,
        degraded: debated.degraded.clone(),
        key_objection: debated.hardest_open().cloned(),
    }));
    let mut findings: Vec<Finding> =
        debated.degraded.iter().map(|degraded| degradation(&debated, degraded)).collect();
    findings.extend(debate.threads.iter().flat_map(|thread| baseless(&debated.move_id, thread)));
    debate.stage = Stage::Done;
    step.outcome = Some(Outcome::new(findings, Conclusion::Debated(Box::new(debated))));
}

/// The last step of a debate in which nobody came through a round.
pub(super) fn not_debated(debate: &mut Debate, step: &mut Step, kind: FailureKind) {
    let why = match debate.opening_failed {
        Some(_) => format!("the critic's opening failed: {kind}"),
        None => format!("no decision maker answered the opening: {kind}"),
    };
    let subject = debate.input.move_id.clone();
    let finding = Finding::new("debate.not-debated", Severity::Block, subject, why.clone());
    debate.stage = Stage::Done;
    step.outcome = Some(Outcome::new(vec![finding], Conclusion::NotDebated { why }));
}

/// Every objection once, in the order in which it was raised: those of the opening with what became
/// of them in all threads, then by round and thread.
fn objections(threads: &[Thread]) -> Vec<Objection> {
    let mut merged: Vec<Objection> = Vec::new();
    for thread in threads {
        for case in &thread.docket.cases {
            let known = merged.iter_mut().find(|objection| objection.id == case.id);
            let objection = match known {
                Some(objection) => objection,
                None => {
                    merged.push(as_raised(case));
                    let Some(newest) = merged.last_mut() else { continue };
                    newest
                }
            };
            objection.severity = objection.severity.max(case.severity);
            objection.state = objection.state.max(case.state());
            for id in &case.evidence {
                if !objection.evidence.contains(id) {
                    objection.evidence.push(id.clone());
                }
            }
            if case.state().is_open() {
                objection.open_in.push(thread.seat.id.clone());
            }
        }
    }
    // Threads come in their order, so this keeps it within a round.
    merged.sort_by_key(|objection| objection.round);
    merged
}

fn as_raised(case: &Case) -> Objection {
    Objection {
        id: case.id.clone(),
        severity: case.severity,
        text: case.text.clone(),
        evidence: Vec::new(),
        round: case.round,
        state: case.state(),
        open_in: Vec::new(),
    }
}

fn degraded(debate: &Debate) -> Vec<Degradation> {
    let threads = || debate.threads.iter().map(|thread| (thread, thread.seat.id.clone()));
    let ended = threads().filter_map(|(thread, id)| {
        let why = thread.failed?.code().to_owned();
        Some(Degradation::EndedEarly { thread: id, after_round: thread.rounds_done, why })
    });
    let opening = debate.opening_unstructured.then(|| ("opening".to_owned(), 1));
    let unstructured = threads()
        .map(|(thread, id)| (id, thread.unstructured))
        .filter(|(_, messages)| *messages > 0);
    let unstructured = opening
        .into_iter()
        .chain(unstructured)
        .map(|(thread, messages)| Degradation::Unstructured { thread, messages });
    let scored =
        threads().filter_map(|(thread, decision_maker)| match thread.card.as_ref()?.basis {
            ScoreBasis::Structured => None,
            ScoreBasis::FromText => Some(Degradation::ScoreFromText { decision_maker }),
            ScoreBasis::Neutral => Some(Degradation::NeutralScore { decision_maker }),
        });
    let truncated = threads().flat_map(|(thread, id)| {
        let critic = thread.critic.is_cut().then(|| format!("critic-{id}"));
        let decision_maker = thread.decision_maker.is_cut().then_some(id);
        [critic, decision_maker].into_iter().flatten().map(|chain| Degradation::Truncated { chain })
    });
    ended.chain(unstructured).chain(scored).chain(truncated).collect()
}

fn degradation(debated: &Debated, degradation: &Degradation) -> Finding {
    let (rule, of, message) = match degradation {
        Degradation::EndedEarly { thread, after_round, why } => (
            "debate.ended-early",
            thread,
            format!("the thread ended after round {after_round} of {}: {why}", debated.rounds),
        ),
        Degradation::Unstructured { thread, messages } => (
            "debate.unstructured",
            thread,
            format!(
                "{messages} messages came without their form, so what they raise or grant is not recorded"
            ),
        ),
        Degradation::ScoreFromText { decision_maker } => (
            "debate.score-from-text",
            decision_maker,
            "the scores were taken from prose".to_owned(),
        ),
        Degradation::NeutralScore { decision_maker } => (
            "debate.neutral-score",
            decision_maker,
            format!("there are no scores; each is a neutral {NEUTRAL}"),
        ),
        Degradation::Truncated { chain } => (
            "debate.truncated",
            chain,
            "the window was full, so a summary took the place of earlier rounds".to_owned(),
        ),
    };
    Finding::new(rule, Severity::Warn, format!("{}/{of}", debated.move_id), message)
}

/// Concessions that nothing new was cited for: they may have been made to please.
fn baseless<'a>(move_id: &'a str, thread: &'a Thread) -> impl Iterator<Item = Finding> + 'a {
    thread.baseless.iter().map(move |(round, conceded)| {
        let what = if conceded.is_empty() { "the move".to_owned() } else { conceded.join(", ") };
        let (seat, subject) =
            (&thread.seat.id, format!("{move_id}/round-{round}/{}", thread.seat.id));
        let message = format!("{seat} concedes {what}, and nothing new was cited in this round");
        Finding::new("debate.concession-without-evidence", Severity::Note, subject, message)
    })
}
