//! Prompts of a debate.
//!
//! Blocks are ordered from most to least shared, for the provider's cache: the dossier, the same
//! bytes for every agent and every move; the rules of a side, the same for every move; the move,
//! the same for all participants; the persona; then the conversation, in which the model's own
//! messages have the assistant role and the other side's the user role. Anything that changes from
//! round to round is only in the newest turn and is never rewritten later.

use std::fmt::Write as _;

use super::calculation::{CalculationResult, MAX_CODE_LINES, MAX_PER_SPEAKER};
use super::chain::Persona;
use super::citations::cites;
use super::input::{CallSettings, DebateInput};
use super::objections::{
    CriticTurnRecord, DecisionMakerTurnRecord, ObjectionEntry, ObjectionLog, ObjectionRef,
};
use super::result::{DebateStance, ObjectionState};
use super::sanitize::{MAX_MESSAGE_BYTES, clean};
use super::turn::{self, DecisionMakerTurn, MAX_OBJECTION_CHARS, RaisedObjection};
use crate::consult::committee::{CommitteeMember, ScoreMetric, TOP_LEVEL};
use crate::model::{CacheDuration, PromptBlock};
use crate::prompt_revision::{PromptTemplate, PromptTexts, template};
use crate::text::{fenced, fill, one_line};

const CRITIC: PromptTemplate = template!("critic", "the critic: rules of the debate");
const DECISION_MAKER: PromptTemplate =
    template!("decision_maker", "a decision maker: rules of the debate, and metrics");
const CASE: PromptTemplate = template!("case", "the move and the member's lens, after the rules");
const OPEN: PromptTemplate = template!("open", "asks for the critic's opening");
const FINDINGS: PromptTemplate =
    template!("findings", "shows the critic what code found in the move");
const PRESS: PromptTemplate =
    template!("press", "shows the critic an answer and asks for the next turn");
const ANSWER: PromptTemplate = template!("answer", "shows a decision maker the critic's turn");
const SCORE: PromptTemplate = template!("score", "asks for scores after the debate");
const SCORE_ALONE: PromptTemplate = template!("score_alone", "asks for scores without a debate");
const SUMMARY: PromptTemplate =
    template!("summary", "replaces rounds that do not fit the context window");

/// Rules for calculations. Users cannot replace them: they say what code checks.
const CALCULATION: &str = include_str!("prompts/calculation.md");

/// The prompts of a debate that users may replace.
pub(crate) const TEMPLATES: [PromptTemplate; 10] =
    [CRITIC, DECISION_MAKER, CASE, OPEN, FINDINGS, PRESS, ANSWER, SCORE, SCORE_ALONE, SUMMARY];

/// Tokens that an answer may use in addition if it may contain a program.
pub(crate) const CALCULATION_TOKENS: u32 = 1_000;

/// Limits for the check findings that are shown.
const MAX_FINDINGS: usize = 40;
const MAX_FINDING_CHARS: usize = 300;

/// How many characters of an objection are shown in a summary.
const MAX_SUMMARISED_CHARS: usize = 140;

/// The maximum number of objections in a summary, most severe first.
const MAX_SUMMARISED: usize = 16;

/// The constant part of the critic's requests.
pub(crate) fn critic(input: &DebateInput) -> Persona {
    let panel: Vec<String> = input.decision_makers.iter().map(title).collect();
    let rules = CRITIC.fill(
        input.texts(),
        &[
            ("company", &input.company),
            ("panel", &panel.join(", ")),
            ("words", &input.calls.message_words().to_string()),
        ],
    );
    let schema = turn::critic_schema(&input.calls, input.calculations.is_some());
    Persona {
        models: input.critic_model.clone(),
        system: system(input, rules, &input.critic.lens),
        score_schema: schema.clone(),
        schema,
        calls: with_calculation_tokens(input),
        own_prompts: input.prompts.clone(),
    }
}

/// The constant part of a decision maker's requests.
pub(crate) fn decision_maker(input: &DebateInput, seat: &CommitteeMember) -> Persona {
    let rules = DECISION_MAKER.fill(
        input.texts(),
        &[
            ("company", &input.company),
            ("words", &input.calls.message_words().to_string()),
            ("top", &TOP_LEVEL.to_string()),
            ("metrics", &describe_metrics(&input.metrics)),
        ],
    );
    let who = format!("You are {}.\n{}", title(seat), seat.lens);
    Persona {
        models: seat.model.clone().unwrap_or_else(|| input.decision_maker_model.clone()),
        system: system(input, rules, &who),
        schema: turn::decision_maker_schema(
            &input.calls,
            &input.metrics,
            input.calculations.is_some(),
        ),
        score_schema: turn::score_schema(&input.calls, &input.metrics),
        calls: with_calculation_tokens(input),
        own_prompts: input.prompts.clone(),
    }
}

/// Settings with room for a program beside the message.
fn with_calculation_tokens(input: &DebateInput) -> CallSettings {
    let added = input.calculations.map_or(0, |_| CALCULATION_TOKENS);
    let message_tokens = input.calls.message_tokens.saturating_add(added);
    CallSettings { message_tokens, ..input.calls.clone() }
}

/// The rules of a side, with those for calculations if they are allowed.
fn with_calculation_rules(input: &DebateInput, rules: String) -> String {
    if input.calculations.is_none() {
        return rules;
    }
    let values = [
        ("most", MAX_PER_SPEAKER.to_string()),
        ("lines", MAX_CODE_LINES.to_string()),
        ("move", input.shown_move_id().to_owned()),
    ];
    let values: Vec<(&str, &str)> =
        values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    format!("{rules}\n\n{}", fill(CALCULATION, &values))
}

/// A prompt with the lines about calculations before it. Programs and their purposes are written by
/// models, so the lines are as untrusted as messages.
pub(crate) fn with_notes(notes: &[String], prompt: String) -> String {
    if notes.is_empty() {
        return prompt;
    }
    format!("Code reports about calculations:\n{}\n{prompt}", fenced(&notes.join("\n")))
}

/// A calculation as both sides read it.
pub(crate) fn calculation_line(result: &CalculationResult) -> String {
    let CalculationResult { id, speaker, purpose, .. } = result;
    let mut line = format!("{id} ({speaker}): {purpose} Result: {}.", result.outcome_text());
    let basis = result.basis_text();
    if !basis.is_empty() {
        let _ = write!(line, " Basis: {basis}.");
    }
    clean(&line, MAX_MESSAGE_BYTES)
}

fn system(input: &DebateInput, rules: String, who: &str) -> Vec<PromptBlock> {
    let rules = with_calculation_rules(input, rules);
    let proposed = fenced(&clean(&input.move_markdown, usize::MAX));
    let case = CASE.fill(input.texts(), &[("move", &proposed), ("who", who)]);
    let blocks =
        [PromptBlock::new(input.dossier.clone()), PromptBlock::new(rules), PromptBlock::new(case)];
    // With the newest turn these are four cached blocks, the provider's maximum.
    blocks.map(|block| block.cached(CacheDuration::FiveMinutes)).into()
}

/// The prompt for the critic's opening.
pub(crate) fn open(input: &DebateInput) -> String {
    let mut found = String::new();
    for line in input.machine_findings.iter().take(MAX_FINDINGS) {
        let _ = writeln!(found, "- {}", one_line(line, MAX_FINDING_CHARS));
    }
    if input.machine_findings.len() > MAX_FINDINGS {
        let _ = writeln!(found, "- and {} more", input.machine_findings.len() - MAX_FINDINGS);
    }
    // Findings quote the move, so they are as untrusted as the move.
    let findings = match found.as_str() {
        "" => String::new(),
        found => FINDINGS.fill(input.texts(), &[("found", &fenced(found))]),
    };
    OPEN.fill(input.texts(), &[("findings", &findings), ("rounds", &input.rounds.to_string())])
}

/// The critic's prompt in a later round.
pub(crate) fn press(
    input: &DebateInput,
    seat: &CommitteeMember,
    round: u32,
    recorded: &[String],
    said: &str,
) -> String {
    let recorded = match recorded {
        [] => String::new(),
        ids => format!("Your new objections are {}.\n", ids.join(", ")),
    };
    PRESS.fill(
        input.texts(),
        &[
            ("recorded", &recorded),
            ("seat", &title(seat)),
            ("said", &fenced(said)),
            ("round", &round.to_string()),
            ("rounds", &input.rounds.to_string()),
        ],
    )
}

/// A decision maker's prompt in any round.
pub(crate) fn answer(input: &DebateInput, round: u32, said: &str) -> String {
    ANSWER.fill(
        input.texts(),
        &[
            ("said", &fenced(said)),
            ("round", &round.to_string()),
            ("rounds", &input.rounds.to_string()),
        ],
    )
}

/// The prompt for scores.
pub(crate) fn score(input: &DebateInput, round: u32, objection_log: &ObjectionLog) -> String {
    let mut open = String::new();
    for (state, word) in [
        (ObjectionState::Open, "Not answered"),
        (ObjectionState::Partly, "Answered in part"),
        (ObjectionState::Conceded, "Conceded"),
    ] {
        let of_state = objection_log.cases.iter().filter(|case| case.state() == state);
        let ids: Vec<String> =
            of_state.map(|case| format!("{} ({})", case.id, case.severity.word())).collect();
        if !ids.is_empty() {
            let _ = write!(open, "{word}: {}. ", ids.join(", "));
        }
    }
    if !open.is_empty() {
        open = format!("From the record. {}\n", open.trim_end());
    }
    SCORE.fill(
        input.texts(),
        &[
            ("round", &round.to_string()),
            ("rounds", &input.rounds.to_string()),
            ("top", &TOP_LEVEL.to_string()),
            ("metric_ids", &metric_ids(input)),
            ("open", &open),
        ],
    )
}

/// The prompt for scores without a debate.
pub(crate) fn score_alone(input: &DebateInput) -> String {
    SCORE_ALONE
        .fill(input.texts(), &[("top", &TOP_LEVEL.to_string()), ("metric_ids", &metric_ids(input))])
}

/// Replaces omitted rounds. Built from recorded objections and stances, not by another model.
pub(crate) fn summary(
    texts: PromptTexts<'_>,
    first: usize,
    last: usize,
    objection_log: &ObjectionLog,
    stances: &[(u32, DebateStance)],
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
    let mut cases: Vec<&ObjectionEntry> = objection_log.cases.iter().collect();
    // Open objections first; the sort is stable otherwise.
    cases.sort_by_key(|case| std::cmp::Reverse((case.state().is_open(), case.severity)));
    let mut objections = String::new();
    for case in cases.iter().take(MAX_SUMMARISED) {
        let (severity, state) = (case.severity.word(), case.state().prompt_word());
        let text = one_line(&case.text, MAX_SUMMARISED_CHARS);
        let _ = writeln!(objections, "{} ({severity}, {state}): {text}", case.id);
    }
    if cases.len() > MAX_SUMMARISED {
        let _ = writeln!(objections, "and {} more", cases.len() - MAX_SUMMARISED);
    }
    if objections.is_empty() {
        objections.push_str("none");
    }
    SUMMARY.fill(
        texts,
        &[
            ("first", &first.to_string()),
            ("last", &last.to_string()),
            ("stances", &stances),
            ("objections", &fenced(&objections)),
        ],
    )
}

/// The critic's turn as shown to a decision maker.
pub(crate) fn format_critic_turn(
    message: &str,
    objections: &[RaisedObjection],
    raised: &CriticTurnRecord,
) -> String {
    let mut text = message.to_owned();
    for ObjectionRef { index, id, is_new } in &raised.objections {
        let Some(objection) = objections.get(*index) else { continue };
        let again = if *is_new { "" } else { ", pressed again" };
        let said = one_line(&objection.text, MAX_OBJECTION_CHARS);
        let in_text = cites(&objection.text, []);
        let _ = write!(text, "\n{id} ({}{again}): {said}", objection.severity.word());
        for cite in cites("", &objection.evidence).iter().filter(|id| !in_text.contains(id)) {
            let _ = write!(text, " [{cite}]");
        }
    }
    if !raised.withdrawn.is_empty() {
        let _ = write!(text, "\nWithdrawn: {}", raised.withdrawn.join(", "));
    }
    clean(&text, MAX_MESSAGE_BYTES)
}

/// A decision maker's turn as shown to the critic.
pub(crate) fn format_decision_maker_turn(
    message: &str,
    turn: &DecisionMakerTurn,
    answered: &DecisionMakerTurnRecord,
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

pub(crate) fn stance_word(stance: DebateStance) -> &'static str {
    match stance {
        DebateStance::Hold => "hold",
        DebateStance::Partial => "partial",
        DebateStance::Concede => "concede",
    }
}

fn title(seat: &CommitteeMember) -> String {
    format!("{} ({})", seat.id, seat.name)
}

fn metric_ids(input: &DebateInput) -> String {
    let ids: Vec<String> = input.metrics.iter().map(|metric| format!("`{}`", metric.id)).collect();
    ids.join(", ")
}

/// The metrics and their levels, as every scorer reads them.
pub(crate) fn describe_metrics(metrics: &[ScoreMetric]) -> String {
    let mut text = String::new();
    for ScoreMetric { id, name, asks, levels } in metrics {
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
