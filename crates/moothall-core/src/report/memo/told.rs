//! Values of a trial in words.

use crate::debate::{Debated, Degradation, Objection, ObjectionState, Stance};

pub(super) fn severity_word(objection: &Objection) -> &'static str {
    use crate::debate::ObjectionSeverity as S;
    match objection.severity {
        S::Minor => "minor",
        S::Major => "major",
        S::Fatal => "fatal",
    }
}

pub(super) fn state_word(state: ObjectionState) -> &'static str {
    match state {
        ObjectionState::Answered => "answered",
        ObjectionState::Partly => "answered in part",
        ObjectionState::Open => "open",
        ObjectionState::Conceded => "granted",
    }
}

pub(super) fn stance_word(stance: Stance) -> &'static str {
    match stance {
        Stance::Hold => "holds",
        Stance::Partial => "grants a part",
        Stance::Concede => "concedes",
    }
}

pub(super) fn degraded_words(debated: &Debated) -> Vec<String> {
    let words = |one: &Degradation| match one {
        Degradation::EndedEarly { thread, after_round, why } => {
            format!("the thread with {thread} ended after round {after_round} ({why})")
        }
        Degradation::Unstructured { thread, messages } => {
            format!("{messages} messages in thread {thread} were not in the form asked for")
        }
        Degradation::ScoreFromText { decision_maker } => {
            format!("the scores of {decision_maker} were read out of prose")
        }
        Degradation::NeutralScore { decision_maker } => {
            format!("{decision_maker} gave no usable scores; a neutral 5 stands for each")
        }
        Degradation::Truncated { chain } => {
            format!("earlier rounds of {chain} were replaced by a summary: the window was full")
        }
    };
    debated.degraded.iter().map(words).collect()
}
