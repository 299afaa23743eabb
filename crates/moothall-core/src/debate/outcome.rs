//! Builds the result of a debate: scorecards, merged objections and degradations.

use std::collections::BTreeMap;

use super::input::DebateScoring;
use super::objections::ObjectionEntry;
use super::result::{
    DebateDegradation, DebateResult, Objection, ObjectionReply, ScoreBasis, Scorecard,
};
use super::thread::CriticThread;
use super::turn::MAX_REASONING_CHARS;
use super::{Debate, DebateStage, scores};
use crate::consult::committee::{ScoreMetric, TOP_LEVEL};
use crate::model::FailureKind;
use crate::text::one_line;
use crate::{
    Conclusion, FindingSeverity, Outcome, PromptRevision, RunEvent, RunEventBody, RunFinding, Step,
};

/// The placeholder for a missing score in the first revision.
const NEUTRAL: u8 = 5;

pub(crate) fn card(scores: BTreeMap<String, u8>, reasoning: &str, basis: ScoreBasis) -> Scorecard {
    Scorecard { scores, reasoning: one_line(reasoning, MAX_REASONING_CHARS), basis }
}

/// Reads a scorecard from unstructured texts, newest first.
pub(crate) fn card_from_texts<'a>(
    revision: PromptRevision,
    texts: impl Iterator<Item = &'a str>,
    metrics: &[ScoreMetric],
) -> Scorecard {
    let mut found = texts.filter_map(|text| Some((scores::from_text(text, metrics)?, text)));
    match found.next() {
        Some((scores, text)) => card(scores, text, ScoreBasis::FromText),
        None => missing(revision, metrics),
    }
}

/// The scorecard of a decision maker that gave no scores.
pub(crate) fn missing(revision: PromptRevision, metrics: &[ScoreMetric]) -> Scorecard {
    if revision == PromptRevision::V1 {
        let scores = metrics.iter().map(|metric| (metric.id.clone(), NEUTRAL)).collect();
        return card(scores, "", ScoreBasis::Neutral);
    }
    card(BTreeMap::new(), "", ScoreBasis::NotScored)
}

/// The current result of a debate, finished or not.
pub(crate) fn debated(debate: &Debate) -> DebateResult {
    let threads = &debate.threads;
    let scorecards: BTreeMap<String, Scorecard> = threads
        .iter()
        .filter_map(|thread| Some((thread.seat.id.clone(), thread.card.clone()?)))
        .collect();
    let sums = || scorecards.values().filter(|card| card.is_given()).map(Scorecard::sum);
    let spread = sums().max().unwrap_or(0) - sums().min().unwrap_or(0);
    let cells = debate.input.metrics.len() * threads.len();
    DebateResult {
        move_id: debate.input.move_id.clone(),
        rounds: debate.input.rounds,
        rounds_done: debate.rounds_done(),
        total_score: sums().sum(),
        top_score: u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(u32::from(TOP_LEVEL)),
        spread,
        scorecards,
        objections: objections(threads, debate.input.scoring),
        stances: threads
            .iter()
            .filter_map(|thread| Some((thread.seat.id.clone(), thread.stances.last()?.1)))
            .collect(),
        degraded: degraded(debate),
        calculations: debate.calculations.results(),
    }
}

/// The last step of a debate.
pub(crate) fn finish(debate: &mut Debate, step: &mut Step) {
    let debated = debated(debate);
    if debate.input.scoring != DebateScoring::Panel {
        step.publish.push(scored_event(&debated));
    }
    let mut findings: Vec<RunFinding> =
        debated.degraded.iter().map(|degraded| degradation(&debated, degraded)).collect();
    findings.extend(debate.threads.iter().flat_map(|thread| baseless(&debated.move_id, thread)));
    // By place, because answers arrive in any order.
    debate
        .misquotes
        .sort_by(|one, other| (&one.subject, &one.message).cmp(&(&other.subject, &other.message)));
    findings.append(&mut debate.misquotes);
    debate.stage = DebateStage::Done;
    step.outcome = Some(Outcome::new(findings, Conclusion::Debated(Box::new(debated))));
}

fn scored_event(debated: &DebateResult) -> RunEvent {
    let breakdown = debated.scorecards.iter().map(|(id, card)| (id.clone(), card.scores.clone()));
    let reasoning = debated.scorecards.iter().filter(|(_, card)| !card.reasoning.is_empty());
    let reasoning = reasoning.map(|(id, card)| (id.clone(), card.reasoning.clone()));
    RunEvent::of_run(RunEventBody::SandboxScored {
        move_id: debated.move_id.clone(),
        score: debated.total_score,
        out_of: debated.top_score,
        breakdown: breakdown.collect(),
        rounds_done: debated.rounds_done,
        degraded: debated.degraded.clone(),
        key_objection: debated.hardest_open().cloned(),
        reasoning: reasoning.collect(),
    })
}

/// The last step of a debate in which no thread completed a round.
pub(crate) fn not_debated(debate: &mut Debate, step: &mut Step, kind: FailureKind) {
    let why = match debate.opening_failed {
        Some(_) => format!("the critic's opening failed: {kind}"),
        None => format!("no decision maker answered the opening: {kind}"),
    };
    let subject = debate.input.move_id.clone();
    let finding =
        RunFinding::new("debate.not-debated", FindingSeverity::Block, subject, why.clone());
    debate.stage = DebateStage::Done;
    step.outcome = Some(Outcome::new(vec![finding], Conclusion::NotDebated { why }));
}

/// Merges the objections of all threads: those of the opening first, with their state across
/// threads, then by round and thread.
fn objections(threads: &[CriticThread], scoring: DebateScoring) -> Vec<Objection> {
    let mut merged: Vec<Objection> = Vec::new();
    for thread in threads {
        for case in &thread.objection_log.cases {
            let known = merged.iter_mut().find(|objection| objection.id == case.id);
            let objection = match known {
                Some(objection) => objection,
                None => {
                    merged.push(to_objection(case));
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
            // Of several threads, the answer of the last round counts, and the first thread's.
            let is_later = |reply: &ObjectionReply| {
                objection.reply.as_ref().is_none_or(|known| reply.round > known.round)
            };
            let reply = case.reply.as_ref().filter(|_| scoring.records_answers());
            if let Some(reply) = reply.filter(|reply| is_later(reply)) {
                objection.reply = Some(reply.clone());
            }
        }
    }
    // The sort is stable, so thread order is kept within a round.
    merged.sort_by_key(|objection| objection.round);
    merged
}

fn to_objection(case: &ObjectionEntry) -> Objection {
    Objection {
        id: case.id.clone(),
        severity: case.severity,
        text: case.text.clone(),
        evidence: Vec::new(),
        round: case.round,
        state: case.state(),
        open_in: Vec::new(),
        reply: None,
    }
}

fn degraded(debate: &Debate) -> Vec<DebateDegradation> {
    let threads = || debate.threads.iter().map(|thread| (thread, thread.seat.id.clone()));
    let ended = threads().filter_map(|(thread, id)| {
        let why = thread.failed?.code().to_owned();
        Some(DebateDegradation::EndedEarly { thread: id, after_round: thread.rounds_done, why })
    });
    let opening = debate.opening_unstructured.then(|| ("opening".to_owned(), 1));
    let unstructured = threads()
        .map(|(thread, id)| (id, thread.unstructured))
        .filter(|(_, messages)| *messages > 0);
    let unstructured = opening
        .into_iter()
        .chain(unstructured)
        .map(|(thread, messages)| DebateDegradation::Unstructured { thread, messages });
    let scored =
        threads().filter_map(|(thread, decision_maker)| match thread.card.as_ref()?.basis {
            ScoreBasis::Structured => None,
            ScoreBasis::FromText => Some(DebateDegradation::ScoreFromText { decision_maker }),
            ScoreBasis::Neutral => Some(DebateDegradation::NeutralScore { decision_maker }),
            ScoreBasis::NotScored => Some(DebateDegradation::NotScored { decision_maker }),
        });
    let truncated = threads().flat_map(|(thread, id)| {
        let critic = thread.critic.is_cut().then(|| format!("critic-{id}"));
        let decision_maker = thread.decision_maker.is_cut().then_some(id);
        [critic, decision_maker]
            .into_iter()
            .flatten()
            .map(|chain| DebateDegradation::Truncated { chain })
    });
    ended.chain(unstructured).chain(scored).chain(truncated).collect()
}

fn degradation(debated: &DebateResult, degradation: &DebateDegradation) -> RunFinding {
    let (rule, of, message) = match degradation {
        DebateDegradation::EndedEarly { thread, after_round, why } => (
            "debate.ended-early",
            thread,
            format!("the thread ended after round {after_round} of {}: {why}", debated.rounds),
        ),
        DebateDegradation::Unstructured { thread, messages } => (
            "debate.unstructured",
            thread,
            format!(
                "{messages} messages came without their form, so what they raise or grant is not recorded"
            ),
        ),
        DebateDegradation::ScoreFromText { decision_maker } => (
            "debate.score-from-text",
            decision_maker,
            "the scores were taken from prose".to_owned(),
        ),
        DebateDegradation::NeutralScore { decision_maker } => (
            "debate.neutral-score",
            decision_maker,
            format!("there are no scores; each is a neutral {NEUTRAL}"),
        ),
        DebateDegradation::NotScored { decision_maker } => (
            "debate.not-scored",
            decision_maker,
            "no usable scores, so the move is not ranked".to_owned(),
        ),
        DebateDegradation::Truncated { chain } => (
            "debate.truncated",
            chain,
            "the window was full, so a summary took the place of earlier rounds".to_owned(),
        ),
    };
    RunFinding::new(rule, FindingSeverity::Warn, format!("{}/{of}", debated.move_id), message)
}

/// Concessions in a round without new citations: the model may only be agreeing to please.
fn baseless<'a>(
    move_id: &'a str,
    thread: &'a CriticThread,
) -> impl Iterator<Item = RunFinding> + 'a {
    thread.baseless.iter().map(move |(round, conceded)| {
        let what = if conceded.is_empty() { "the move".to_owned() } else { conceded.join(", ") };
        let (seat, subject) =
            (&thread.seat.id, format!("{move_id}/round-{round}/{}", thread.seat.id));
        let message = format!("{seat} concedes {what}, and nothing new was cited in this round");
        RunFinding::new(
            "debate.concession-without-evidence",
            FindingSeverity::Note,
            subject,
            message,
        )
    })
}
