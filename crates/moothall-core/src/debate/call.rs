//! A pending call, and the parsed reply to it.

use super::calculation::CalculationRequest;
use super::result::Scorecard;
use super::thread::DebateTurn;
use super::turn::{CriticTurn, DecisionMakerTurn};
use crate::EffectId;
use crate::model::{ModelRequest, PromptText};

pub(crate) struct DebateCall {
    pub(crate) speaker: DebateCallKind,
    pub(crate) request: ModelRequest,
    /// The newest turn of the first attempt.
    pub(crate) user_prompt: PromptText,
    /// The effect id of the retry; `None` if this call is the retry.
    pub(crate) again: Option<EffectId>,
    /// The answer to the first attempt, if this call is the retry.
    pub(crate) first: Option<(EffectId, String)>,
}

impl DebateCall {
    pub(crate) fn new(
        speaker: DebateCallKind,
        request: ModelRequest,
        user_prompt: PromptText,
    ) -> Self {
        Self { speaker, request, user_prompt, again: None, first: None }
    }
}

/// Who is called. Threads are identified by index.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DebateCallKind {
    Opening,
    Critic { thread: usize, round: u32 },
    DecisionMaker { thread: usize, round: u32 },
    Score { thread: usize },
}

/// A parsed reply and its place in the debate.
pub(crate) enum ParsedReply {
    Opening(DebateTurn<CriticTurn>),
    Critic { thread: usize, round: u32, debate_turn: DebateTurn<CriticTurn> },
    DecisionMaker { thread: usize, round: u32, debate_turn: DebateTurn<DecisionMakerTurn> },
    Score { thread: usize, card: Scorecard },
}

impl ParsedReply {
    /// The calculation attached to the turn.
    pub(crate) fn calculation(&self) -> Option<&CalculationRequest> {
        match self {
            Self::Opening(turn) | Self::Critic { debate_turn: turn, .. } => {
                turn.calculation.as_ref()
            }
            Self::DecisionMaker { debate_turn, .. } => debate_turn.calculation.as_ref(),
            Self::Score { .. } => None,
        }
    }

    /// Everything that the turn says, for checks of its numbers.
    pub(crate) fn prose(&self) -> String {
        match self {
            Self::Opening(turn) | Self::Critic { debate_turn: turn, .. } => {
                let objections = turn.turn.iter().flat_map(|turn| &turn.objections);
                let texts = objections.map(|objection| objection.text.as_str());
                let texts: Vec<&str> =
                    std::iter::once(turn.message.as_str()).chain(texts).collect();
                texts.join("\n\n")
            }
            Self::DecisionMaker { debate_turn, .. } => debate_turn.message.clone(),
            Self::Score { .. } => String::new(),
        }
    }
}
