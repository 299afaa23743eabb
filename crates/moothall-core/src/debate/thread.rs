//! One conversation between the critic and one decision maker. Each side has a separate message
//! chain.

use std::collections::BTreeSet;

use super::calculation::CalculationRequest;
use super::chain::{MessageChain, Persona};
use super::citations::cites;
use super::ids::ThreadIds;
use super::log::DebateLogEntry;
use super::objections::{CriticTurnRecord, ObjectionLog};
use super::prompt;
use super::result::{DebateStance, Scorecard};
use super::sanitize::{MAX_MESSAGE_BYTES, clean};
use super::turn::{CriticTurn, DecisionMakerTurn};
use crate::consult::committee::CommitteeMember;
use crate::model::{CallPurpose, FailureKind, ModelRequest, PromptText};

/// The critic's role in logs.
pub(crate) const CRITIC: &str = "critic";

/// Replaces an empty message, because providers reject turns without text.
const EMPTY_MESSAGE: &str = "(nothing was said)";

/// One message, structured or not.
#[derive(Debug)]
pub(crate) struct DebateTurn<T> {
    /// The text shown to the other side and written to the log.
    pub(crate) message: String,
    /// The text kept in the sender's chain.
    pub(crate) raw: PromptText,
    /// The parsed turn; `None` for unstructured text.
    pub(crate) turn: Option<T>,
    pub(crate) cites: Vec<String>,
    pub(crate) calculation: Option<CalculationRequest>,
}

impl DebateTurn<CriticTurn> {
    pub(crate) fn critic(turn: CriticTurn, raw: String) -> Self {
        let evidence = turn.objections.iter().flat_map(|objection| &objection.evidence);
        let prose: Vec<&str> = turn.objections.iter().map(|raised| raised.text.as_str()).collect();
        let cites = cites(&format!("{} {}", turn.message, prose.join(" ")), evidence);
        let message = clean(&turn.message, MAX_MESSAGE_BYTES);
        Self { message, raw: raw.into(), turn: Some(turn), cites, calculation: None }
    }
}

impl DebateTurn<DecisionMakerTurn> {
    pub(crate) fn decision_maker(turn: DecisionMakerTurn, raw: String) -> Self {
        let evidence = turn.answers.iter().flat_map(|answer| &answer.evidence);
        let cites = cites(&turn.message, evidence);
        let message = clean(&turn.message, MAX_MESSAGE_BYTES);
        Self { message, raw: raw.into(), turn: Some(turn), cites, calculation: None }
    }
}

impl<T> DebateTurn<T> {
    /// A message that did not match the schema.
    pub(crate) fn unstructured(text: &str) -> Self {
        let message = match clean(text, MAX_MESSAGE_BYTES) {
            empty if empty.is_empty() => EMPTY_MESSAGE.to_owned(),
            message => message,
        };
        let cites = cites(&message, []);
        Self { raw: message.as_str().into(), turn: None, cites, message, calculation: None }
    }

    pub(crate) fn with_calculation(self, calculation: Option<CalculationRequest>) -> Self {
        Self { calculation, ..self }
    }
}

/// A thread of the debate. See the module documentation.
#[derive(Debug)]
pub(crate) struct CriticThread {
    pub(crate) seat: CommitteeMember,
    pub(crate) ids: ThreadIds,
    pub(crate) persona: Persona,
    pub(crate) critic: MessageChain,
    pub(crate) decision_maker: MessageChain,
    pub(crate) objection_log: ObjectionLog,
    pub(crate) log: Vec<DebateLogEntry>,
    pub(crate) stances: Vec<(u32, DebateStance)>,
    /// Rounds in which both sides have answered.
    pub(crate) rounds_done: u32,
    /// Why the thread ended early, if it did.
    pub(crate) failed: Option<FailureKind>,
    /// The number of messages that did not match the schema.
    pub(crate) unstructured: u32,
    /// Rounds with a concession but no new citation, and the conceded objections.
    pub(crate) baseless: Vec<(u32, Vec<String>)>,
    pub(crate) card: Option<Scorecard>,
    /// The other side's last message, as shown in the prompt.
    last_message: String,
    /// The ids assigned to the critic's last objections.
    recorded: Vec<String>,
    /// What code reports about calculations, in the next prompt of each side.
    critic_notes: Vec<String>,
    decision_maker_notes: Vec<String>,
    /// Citations before this round, in the move or in this thread.
    cited: BTreeSet<String>,
    /// Citations in this round.
    cited_now: BTreeSet<String>,
}

impl CriticThread {
    pub(crate) fn new(
        seat: CommitteeMember,
        ids: ThreadIds,
        persona: Persona,
        cited: BTreeSet<String>,
    ) -> Self {
        Self {
            seat,
            ids,
            persona,
            critic: MessageChain::default(),
            decision_maker: MessageChain::default(),
            objection_log: ObjectionLog::default(),
            log: Vec::new(),
            stances: Vec::new(),
            rounds_done: 0,
            failed: None,
            unstructured: 0,
            baseless: Vec::new(),
            card: None,
            last_message: String::new(),
            recorded: Vec::new(),
            critic_notes: Vec::new(),
            decision_maker_notes: Vec::new(),
            cited,
            cited_now: BTreeSet::new(),
        }
    }

    /// Whether the thread continues.
    pub(crate) fn is_live(&self) -> bool {
        self.failed.is_none()
    }

    /// Adds a line about calculations for both sides.
    pub(crate) fn add_note(&mut self, line: &str) {
        self.critic_notes.push(line.to_owned());
        self.decision_maker_notes.push(line.to_owned());
    }

    /// The lines about calculations that the critic has not read yet.
    pub(crate) fn take_critic_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.critic_notes)
    }

    /// The lines about calculations that the decision maker has not read yet.
    pub(crate) fn take_decision_maker_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.decision_maker_notes)
    }

    /// The ids assigned to the critic's last objections, and the decision maker's last message.
    pub(crate) fn to_critic(&self) -> (&[String], &str) {
        (&self.recorded, &self.last_message)
    }

    /// The critic's last message.
    pub(crate) fn to_decision_maker(&self) -> &str {
        &self.last_message
    }

    pub(crate) fn ask_decision_maker(
        &mut self,
        purpose: CallPurpose,
        user_prompt: &PromptText,
    ) -> ModelRequest {
        let Self { decision_maker, persona, objection_log, stances, .. } = self;
        let summary =
            |first, last| prompt::summary(persona.texts(), first, last, objection_log, stances);
        decision_maker.ask(persona, purpose, user_prompt, summary)
    }

    pub(crate) fn ask_critic(
        &mut self,
        persona: &Persona,
        user_prompt: &PromptText,
    ) -> ModelRequest {
        let Self { critic, objection_log, stances, .. } = self;
        let summary =
            |first, last| prompt::summary(persona.texts(), first, last, objection_log, stances);
        critic.ask(persona, CallPurpose::Critic, user_prompt, summary)
    }

    /// Applies the opening, which all threads share.
    pub(crate) fn apply_opening(
        &mut self,
        user_prompt: &PromptText,
        debate_turn: &DebateTurn<CriticTurn>,
    ) {
        let raised = match &debate_turn.turn {
            Some(turn) => {
                let (objection_log, raised) = ObjectionLog::opening(turn);
                self.objection_log = objection_log;
                Some((turn, raised))
            }
            None => None,
        };
        self.apply_critic_turn(1, user_prompt.clone(), debate_turn, raised);
    }

    /// Applies a critic's message of a later round.
    pub(crate) fn apply_critic(
        &mut self,
        round: u32,
        user_prompt: PromptText,
        debate_turn: &DebateTurn<CriticTurn>,
    ) {
        let raised = match &debate_turn.turn {
            Some(turn) => {
                let raised = self.objection_log.apply_critic(&self.seat.id, turn, round);
                Some((turn, raised))
            }
            None => {
                self.unstructured += 1;
                None
            }
        };
        self.apply_critic_turn(round, user_prompt, debate_turn, raised);
    }

    fn apply_critic_turn(
        &mut self,
        round: u32,
        user_prompt: PromptText,
        debate_turn: &DebateTurn<CriticTurn>,
        raised: Option<(&CriticTurn, CriticTurnRecord)>,
    ) {
        self.critic.push(user_prompt, debate_turn.raw.clone());
        self.note(CRITIC, round, debate_turn.message.clone());
        self.cited_now.extend(debate_turn.cites.iter().cloned());
        (self.last_message, self.recorded) = match raised {
            Some((turn, raised)) => {
                let last_message =
                    prompt::format_critic_turn(&debate_turn.message, &turn.objections, &raised);
                let new = raised.objections.into_iter().filter(|objection| objection.is_new);
                (last_message, new.map(|objection| objection.id).collect())
            }
            None => (debate_turn.message.clone(), Vec::new()),
        };
    }

    /// Applies a decision maker's message, which completes the round.
    pub(crate) fn apply_decision_maker(
        &mut self,
        round: u32,
        user_prompt: PromptText,
        debate_turn: &DebateTurn<DecisionMakerTurn>,
    ) {
        self.decision_maker.push(user_prompt, debate_turn.raw.clone());
        let role = self.seat.id.clone();
        self.note(&role, round, debate_turn.message.clone());
        self.cited_now.extend(debate_turn.cites.iter().cloned());
        self.rounds_done = round;
        let nothing_new = self.cited_now.is_subset(&self.cited);
        self.cited.append(&mut self.cited_now);
        let Some(turn) = &debate_turn.turn else {
            self.unstructured += 1;
            self.last_message.clone_from(&debate_turn.message);
            return;
        };
        let answered = self.objection_log.apply_decision_maker(turn, round);
        let gave_up = turn.stance == DebateStance::Concede
            && self.stances.last().is_none_or(|(_, before)| *before != DebateStance::Concede);
        if nothing_new && (gave_up || !answered.conceded.is_empty()) {
            self.baseless.push((round, answered.conceded.clone()));
        }
        self.stances.push((round, turn.stance));
        self.last_message =
            prompt::format_decision_maker_turn(&debate_turn.message, turn, &answered);
    }

    fn note(&mut self, role: &str, round: u32, content: String) {
        self.log.push(DebateLogEntry { role: role.to_owned(), content, round });
    }
}
