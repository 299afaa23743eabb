//! A call that is under way, and what its answer says.

use super::debated::Scorecard;
use super::thread::Spoken;
use super::turn::{CriticTurn, DecisionMakerTurn};
use crate::EffectId;
use crate::model::{ModelRequest, PromptText};

/// A call that is under way.
pub(super) struct Call {
    pub(super) speaker: Speaker,
    pub(super) request: ModelRequest,
    /// The newest turn of the first question.
    pub(super) asked: PromptText,
    /// What is asked where the answer is not as it should be; nothing for the second question.
    pub(super) again: Option<EffectId>,
    /// What the first question was answered, where this is the second.
    pub(super) first: Option<(EffectId, String)>,
}

impl Call {
    pub(super) fn new(speaker: Speaker, request: ModelRequest, asked: PromptText) -> Self {
        Self { speaker, request, asked, again: None, first: None }
    }
}

/// Who is asked. Threads by their place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Speaker {
    Opening,
    Critic { thread: usize, round: u32 },
    DecisionMaker { thread: usize, round: u32 },
    Score { thread: usize },
}

/// What was said, and where.
pub(super) enum Said {
    Opening(Spoken<CriticTurn>),
    Critic { thread: usize, round: u32, spoken: Spoken<CriticTurn> },
    DecisionMaker { thread: usize, round: u32, spoken: Spoken<DecisionMakerTurn> },
    Score { thread: usize, card: Scorecard },
}
