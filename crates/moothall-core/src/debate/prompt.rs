//! What the models are told.
//!
//! Most shared first: the dossier, the same bytes for every agent and every move; then the rules of a
//! side, the same for every move; then the move, the same for everyone who speaks about it; then who
//! speaks; then the conversation, in which the model's own words are the assistant's and the other
//! side's are the user's. What differs from round to round stands in the newest turn only and is
//! never changed later.

use std::fmt::Write as _;

use super::chain::Voice;
use super::cites::cites;
use super::debated::{ObjectionSeverity, ObjectionState, Stance};
use super::input::DebateInput;
use super::objections::{Answered, Case, Docket, Raised, Recorded};
use super::turn::{self, DecisionMakerTurn, RaisedObjection};
use super::words::{MAX_MESSAGE_BYTES, clean};
use crate::consult::committee::{Metric, Seat, TOP_LEVEL};
use crate::model::{Block, CacheFor, InvalidSchema};
use crate::text::{fenced, fill, one_line};

const CRITIC: &str = include_str!("prompts/critic.md");
const DECISION_MAKER: &str = include_str!("prompts/decision_maker.md");
const CASE: &str = include_str!("prompts/case.md");
const OPEN: &str = include_str!("prompts/open.md");
const FINDINGS: &str = include_str!("prompts/findings.md");
const PRESS: &str = include_str!("prompts/press.md");
const ANSWER: &str = include_str!("prompts/answer.md");
const SCORE: &str = include_str!("prompts/score.md");
const SCORE_ALONE: &str = include_str!("prompts/score_alone.md");
const SUMMARY: &str = include_str!("prompts/summary.md");

/// The most findings of code that are shown, and how much of each.
const MAX_FINDINGS: usize = 40;
const MAX_FINDING_CHARS: usize = 300;

/// How much of an objection stands in a turn, and in a summary.
const MAX_OBJECTION_CHARS: usize = 600;
const MAX_SUMMARISED_CHARS: usize = 140;

/// The most objections of a summary, gravest first.
const MAX_SUMMARISED: usize = 16;

/// The critic's part of every request.
pub(super) fn critic(input: &DebateInput) -> Result<Voice, InvalidSchema> {
    let panel: Vec<String> = input.decision_makers.iter().map(title).collect();
    let rules = fill(
        CRITIC,
        &[("company", &input.company), ("panel", &panel.join(", ")), ("words", &words(input))],
    );
    Ok(Voice {
        model: input.critic_model.clone(),
        system: system(input, rules, &input.critic.lens),
        schema: turn::critic_schema()?,
        calls: input.calls.clone(),
    })
}

/// A decision maker's part of every request.
pub(super) fn decision_maker(input: &DebateInput, seat: &Seat) -> Result<Voice, InvalidSchema> {
    let rules = fill(
        DECISION_MAKER,
        &[
            ("company", &input.company),
            ("words", &words(input)),
            ("top", &TOP_LEVEL.to_string()),
            ("metrics", &metrics(&input.metrics)),
        ],
    );
    let who = format!("You are {}.\n{}", title(seat), seat.lens);
    Ok(Voice {
        model: input.decision_maker_model.clone(),
        system: system(input, rules, &who),
        schema: turn::decision_maker_schema(&input.metrics)?,
        calls: input.calls.clone(),
    })
}

fn system(input: &DebateInput, rules: String, who: &str) -> Vec<Block> {
    let proposed = fenced(&clean(&input.move_markdown, usize::MAX));
    let case = fill(CASE, &[("move", &proposed), ("who", who)]);
    let blocks = [Block::new(input.dossier.clone()), Block::new(rules), Block::new(case)];
    // With the newest turn these are four, as many as a provider takes.
    blocks.map(|block| block.cached(CacheFor::FiveMinutes)).into()
}

/// The critic's first question.
pub(super) fn open(input: &DebateInput) -> String {
    let mut found = String::new();
    for line in input.machine_findings.iter().take(MAX_FINDINGS) {
        let _ = writeln!(found, "- {}", one_line(line, MAX_FINDING_CHARS));
    }
    if input.machine_findings.len() > MAX_FINDINGS {
        let _ = writeln!(found, "- and {} more", input.machine_findings.len() - MAX_FINDINGS);
    }
    // Findings quote the move, so they are no more to be trusted than the move itself.
    let findings = match found.as_str() {
        "" => String::new(),
        found => fill(FINDINGS, &[("found", &fenced(found))]),
    };
    fill(OPEN, &[("findings", &findings), ("rounds", &input.rounds.to_string())])
}

/// The critic's question in a later round.
pub(super) fn press(
    input: &DebateInput,
    seat: &Seat,
    round: u32,
    recorded: &[String],
    said: &str,
) -> String {
    let recorded = match recorded {
        [] => String::new(),
        ids => format!("Your new objections are {}.\n", ids.join(", ")),
    };
    fill(
        PRESS,
        &[
            ("recorded", &recorded),
            ("seat", &title(seat)),
            ("said", &fenced(said)),
            ("round", &round.to_string()),
            ("rounds", &input.rounds.to_string()),
        ],
    )
}

/// A decision maker's question in any round.
pub(super) fn answer(input: &DebateInput, round: u32, said: &str) -> String {
    fill(
        ANSWER,
        &[
            ("said", &fenced(said)),
            ("round", &round.to_string()),
            ("rounds", &input.rounds.to_string()),
        ],
    )
}

/// The question for the scores.
pub(super) fn score(input: &DebateInput, round: u32, docket: &Docket) -> String {
    let mut open = String::new();
    for (state, word) in [
        (ObjectionState::Open, "Not answered"),
        (ObjectionState::Partly, "Answered in part"),
        (ObjectionState::Conceded, "Conceded"),
    ] {
        let of_state = docket.cases.iter().filter(|case| case.state() == state);
        let ids: Vec<String> =
            of_state.map(|case| format!("{} ({})", case.id, severity(case.severity))).collect();
        if !ids.is_empty() {
            let _ = write!(open, "{word}: {}. ", ids.join(", "));
        }
    }
    if !open.is_empty() {
        open = format!("From the record. {}\n", open.trim_end());
    }
    fill(
        SCORE,
        &[
            ("round", &round.to_string()),
            ("rounds", &input.rounds.to_string()),
            ("top", &TOP_LEVEL.to_string()),
            ("open", &open),
        ],
    )
}

/// The question for scores where there is no debate.
pub(super) fn score_alone() -> String {
    fill(SCORE_ALONE, &[("top", &TOP_LEVEL.to_string())])
}

/// What stands for rounds that are left out: the record, not another model's words about it.
pub(super) fn summary(
    first: usize,
    last: usize,
    docket: &Docket,
    stances: &[(u32, Stance)],
) -> String {
    let stances: Vec<String> = stances
        .iter()
        .filter(|(round, _)| {
            usize::try_from(*round).is_ok_and(|round| (first..=last).contains(&round))
        })
        .map(|(round, stance)| format!("round {round} {}", stance_word(*stance)))
        .collect();
    let stances = match stances.as_slice() {
        [] => "no stance was stated.".to_owned(),
        stances => format!("the decision maker's stance was {}.", stances.join(", ")),
    };
    let mut cases: Vec<&Case> = docket.cases.iter().collect();
    // What stands against the move before what is settled; the sort keeps the order otherwise.
    cases.sort_by_key(|case| std::cmp::Reverse((case.state().is_open(), case.severity)));
    let mut objections = String::new();
    for case in cases.iter().take(MAX_SUMMARISED) {
        let (severity, state) = (severity(case.severity), state_word(case.state()));
        let text = one_line(&case.text, MAX_SUMMARISED_CHARS);
        let _ = writeln!(objections, "{} ({severity}, {state}): {text}", case.id);
    }
    if cases.len() > MAX_SUMMARISED {
        let _ = writeln!(objections, "and {} more", cases.len() - MAX_SUMMARISED);
    }
    if objections.is_empty() {
        objections.push_str("none");
    }
    fill(
        SUMMARY,
        &[
            ("first", &first.to_string()),
            ("last", &last.to_string()),
            ("stances", &stances),
            ("objections", &fenced(&objections)),
        ],
    )
}

/// The critic's words as a decision maker reads them.
pub(super) fn critic_words(
    message: &str,
    objections: &[RaisedObjection],
    raised: &Raised,
) -> String {
    let mut text = message.to_owned();
    for Recorded { index, id, is_new } in &raised.objections {
        let Some(objection) = objections.get(*index) else { continue };
        let again = if *is_new { "" } else { ", pressed again" };
        let said = one_line(&objection.text, MAX_OBJECTION_CHARS);
        let in_text = cites(&objection.text, []);
        let _ = write!(text, "\n{id} ({}{again}): {said}", severity(objection.severity));
        for cite in cites("", &objection.evidence).iter().filter(|id| !in_text.contains(id)) {
            let _ = write!(text, " [{cite}]");
        }
    }
    if !raised.withdrawn.is_empty() {
        let _ = write!(text, "\nWithdrawn: {}", raised.withdrawn.join(", "));
    }
    clean(&text, MAX_MESSAGE_BYTES)
}

/// A decision maker's words as the critic reads them.
pub(super) fn decision_maker_words(
    message: &str,
    turn: &DecisionMakerTurn,
    answered: &Answered,
) -> String {
    let mut text = format!("{message}\nStance: {}.", stance_word(turn.stance));
    let evidence = turn.answers.iter().flat_map(|answer| &answer.evidence);
    if !answered.answered.is_empty() {
        let _ = write!(text, " Answers {}.", answered.answered.join(", "));
    }
    if !answered.conceded.is_empty() {
        let _ = write!(text, " Concedes {}.", answered.conceded.join(", "));
    }
    let in_message = cites(message, []);
    let cited = cites("", evidence).into_iter().filter(|id| !in_message.contains(id));
    let beside: Vec<String> = cited.map(|id| format!("[{id}]")).collect();
    if !beside.is_empty() {
        let _ = write!(text, " Cites {}.", beside.join(" "));
    }
    clean(&text, MAX_MESSAGE_BYTES)
}

pub(super) fn stance_word(stance: Stance) -> &'static str {
    match stance {
        Stance::Hold => "hold",
        Stance::Partial => "partial",
        Stance::Concede => "concede",
    }
}

fn severity(severity: ObjectionSeverity) -> &'static str {
    match severity {
        ObjectionSeverity::Minor => "minor",
        ObjectionSeverity::Major => "major",
        ObjectionSeverity::Fatal => "fatal",
    }
}

fn state_word(state: ObjectionState) -> &'static str {
    match state {
        ObjectionState::Answered => "answered",
        ObjectionState::Partly => "answered in part",
        ObjectionState::Open => "not answered",
        ObjectionState::Conceded => "conceded",
    }
}

fn title(seat: &Seat) -> String {
    format!("{} ({})", seat.id, seat.name)
}

/// How long a message should be: well within what is allowed, because the lists need room too.
fn words(input: &DebateInput) -> String {
    (input.calls.message_tokens / 5).clamp(15, 200).to_string()
}

fn metrics(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for Metric { id, name, asks, levels } in metrics {
        let _ = writeln!(text, "`{id}` ({name}): {asks}");
        for (at, level) in levels.iter().enumerate() {
            let to = levels.get(at + 1).map_or(TOP_LEVEL, |next| next.from.saturating_sub(1));
            let range =
                if to > level.from { format!("{}-{to}", level.from) } else { to.to_string() };
            let _ = writeln!(text, "  {range}: {}", level.means);
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
