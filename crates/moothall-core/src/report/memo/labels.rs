//! Display names of debate values.

use crate::debate::{DebateDegradation, DebateResult, DebateStance, ObjectionState};

pub(crate) fn state_word(state: ObjectionState) -> &'static str {
    match state {
        ObjectionState::Answered => "answered",
        ObjectionState::Partly => "answered in part",
        ObjectionState::Open => "open",
        ObjectionState::Conceded => "conceded",
    }
}

pub(crate) fn stance_word(stance: DebateStance) -> &'static str {
    match stance {
        DebateStance::Hold => "holds",
        DebateStance::Partial => "partly concedes",
        DebateStance::Concede => "concedes",
    }
}

pub(crate) fn degradation_labels(debated: &DebateResult) -> Vec<String> {
    let words = |one: &DebateDegradation| match one {
        DebateDegradation::EndedEarly { thread, after_round, why } => {
            format!("the thread with {thread} ended after round {after_round} ({why})")
        }
        DebateDegradation::Unstructured { thread, messages } => {
            format!("{messages} messages in thread {thread} did not match the requested format")
        }
        DebateDegradation::ScoreFromText { decision_maker } => {
            format!("the scores of {decision_maker} were parsed from prose")
        }
        DebateDegradation::NeutralScore { decision_maker } => {
            format!("{decision_maker} gave no usable scores; each is replaced by a neutral 5")
        }
        DebateDegradation::NotScored { decision_maker } => {
            format!("{decision_maker} gave no usable scores, so the move is not ranked")
        }
        DebateDegradation::Truncated { chain } => {
            format!(
                "earlier rounds of {chain} were replaced by a summary because the context window was full"
            )
        }
    };
    debated.degraded.iter().map(words).collect()
}
