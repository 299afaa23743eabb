//! Debates one move: a critic against the decision makers, round by round, followed by scores.
//!
//! ```text
//! opening ─► decision makers ─► critic ─► decision makers ─► … ─► scores ─► done
//!   (1)            (3)            (3)           (3)                 (3)
//! ```
//!
//! The opening is shared; after it, each decision maker has a separate thread with the critic.
//! Calls of one stage are sent together, and the next stage starts when all have finished. A thread
//! whose model fails ends early and is scored on its completed rounds; the other threads continue.
//! Code, not a model, records which objections were raised, answered, conceded and withdrawn.
//! Problems of a debate are reported with its result. If calculations are allowed, the programs of a
//! half round run after its calls, and the next half round shows their results.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::model::{CallPurpose, FailureKind, ModelFailure, ModelReply, PromptText};
use crate::prompt_revision::PromptTemplate;
use crate::structured::{OutputFault, ask_again};
use crate::text::one_line;
use crate::{
    Effect, EffectId, EffectResult, RoundStatus, RunEvent, RunEventBody, RunFinding, Step,
    UnexpectedResult, Workflow,
};

pub(crate) mod baseline;
mod calculation;
mod calculation_log;
mod calculation_steps;
mod call;
mod chain;
mod citations;
mod ids;
mod input;
mod log;
mod objections;
mod outcome;
mod prompt;
mod responding;
mod result;
mod sanitize;
mod scores;
mod thread;
mod turn;

#[cfg(test)]
#[path = "debate/bill_tests.rs"]
mod bill;
#[cfg(test)]
#[path = "debate/calculation_flow_tests.rs"]
mod calculation_flow;
#[cfg(test)]
#[path = "debate/properties_tests.rs"]
mod properties;
#[cfg(test)]
#[path = "debate/support_tests.rs"]
mod support;

pub use self::baseline::BaselineScores;
pub(crate) use self::calculation::MAX_PER_DEBATE;
pub use self::calculation::{
    CALCULATION_IMAGE, CalculationOutcome, CalculationRequest, CalculationResult,
    assumed_constants, calculation_facts,
};
pub(crate) use self::chain::window_for;
pub(crate) use self::citations::cites;
pub use self::input::{CallSettings, DebateInput, DebateScoring, InvalidDebate, base_calls};
pub use self::log::{DebateLogEntry, log_json, transcript};
pub(crate) use self::prompt::{CALCULATION_TOKENS, describe_metrics};
pub use self::responding::responding_event;
pub use self::result::{
    DebateDegradation, DebateResult, DebateStance, Objection, ObjectionReply, ObjectionSeverity,
    ObjectionState, ScoreBasis, Scorecard,
};
pub(crate) use self::thread::CRITIC;
pub use self::turn::{CriticTurn, DecisionMakerTurn, ObjectionAnswer, RaisedObjection, RawScores};

use self::calculation_log::CalculationLog;
use self::call::{DebateCall, DebateCallKind, ParsedReply};
use self::chain::{MessageChain, Persona};
use self::ids::{CallIds, DebateIds};
use self::sanitize::{MAX_MESSAGE_BYTES, clean};
use self::thread::{CriticThread, DebateTurn};

/// The prompts of a debate that users may replace.
pub(crate) fn prompt_templates() -> Vec<PromptTemplate> {
    prompt::TEMPLATES.to_vec()
}

/// How many characters of a turn an event shows.
const PREVIEW_CHARS: usize = 160;

/// The debate workflow. See the module documentation.
pub struct Debate {
    input: DebateInput,
    opening: CallIds,
    critic: Persona,
    threads: Vec<CriticThread>,
    /// Whether the opening was not valid JSON.
    opening_unstructured: bool,
    /// Why the opening failed, if it did.
    opening_failed: Option<FailureKind>,
    stage: DebateStage,
    /// Pending calls.
    open: BTreeMap<EffectId, DebateCall>,
    calculations: CalculationLog,
    /// Numbers that do not agree with the calculations they cite.
    misquotes: Vec<RunFinding>,
}

impl fmt::Debug for Debate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debate")
            .field("move_id", &self.input.move_id)
            .field("stage", &self.stage)
            .field("open", &self.open.keys())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DebateStage {
    Ready,
    Opening,
    Critic { round: u32 },
    DecisionMakers { round: u32 },
    Scoring,
    Done,
}

impl DebateStage {
    fn name(self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Opening => "waiting for the opening",
            Self::Critic { .. } => "waiting for the critic",
            Self::DecisionMakers { .. } => "waiting for the decision makers",
            Self::Scoring => "waiting for scores",
            Self::Done => "done",
        }
    }
}

impl Debate {
    /// Creates a debate that has not started.
    pub fn new(input: DebateInput) -> Result<Self, InvalidDebate> {
        input.validate()?;
        let ids = DebateIds::new(
            &input.move_id,
            input.rounds,
            input.decision_makers.iter().map(|seat| seat.id.as_str()),
        )?;
        let cited = cites(&input.move_markdown, []);
        let threads = input
            .decision_makers
            .iter()
            .zip(ids.threads)
            .map(|(seat, ids)| {
                let persona = prompt::decision_maker(&input, seat);
                CriticThread::new(seat.clone(), ids, persona, cited.iter().cloned().collect())
            })
            .collect();
        Ok(Self {
            opening: ids.opening,
            critic: prompt::critic(&input),
            threads,
            input,
            opening_unstructured: false,
            opening_failed: None,
            stage: DebateStage::Ready,
            open: BTreeMap::new(),
            calculations: CalculationLog::default(),
            misquotes: Vec::new(),
        })
    }

    /// The messages so far, one log per decision maker: `i1`, `i2`, ….
    pub fn logs(&self) -> BTreeMap<String, Vec<DebateLogEntry>> {
        let log =
            |(thread, number): (&CriticThread, usize)| (format!("i{number}"), thread.log.clone());
        self.threads.iter().zip(1..).map(log).collect()
    }

    /// The number of rounds completed by every thread.
    pub fn rounds_done(&self) -> u32 {
        self.threads.iter().map(|thread| thread.rounds_done).min().unwrap_or(0)
    }

    /// The result so far, with scorecards only of decision makers that have scored.
    pub fn debated(&self) -> DebateResult {
        outcome::debated(self)
    }

    fn call(&mut self, step: &mut Step, ids: &CallIds, call: DebateCall) {
        let call = DebateCall { again: Some(ids.again.clone()), ..call };
        self.perform(step, ids.first.clone(), call);
    }

    fn perform(&mut self, step: &mut Step, id: EffectId, call: DebateCall) {
        step.perform.push((id.clone(), Effect::CallModel(Box::new(call.request.clone()))));
        self.open.insert(id, call);
    }

    fn ask_opening(&mut self, step: &mut Step) {
        self.stage = DebateStage::Opening;
        let user_prompt: PromptText = prompt::open(&self.input).into();
        let nothing = |_, _| String::new();
        let request =
            MessageChain::default().ask(&self.critic, CallPurpose::Critic, &user_prompt, nothing);
        let ids = self.opening.clone();
        self.call(step, &ids, DebateCall::new(DebateCallKind::Opening, request, user_prompt));
    }

    fn ask_critics(&mut self, step: &mut Step, round: u32) {
        self.stage = DebateStage::Critic { round };
        for thread in 0..self.threads.len() {
            let Some((ids, call)) = self.critic_call(thread, round) else { continue };
            self.call(step, &ids, call);
        }
    }

    fn critic_call(&mut self, index: usize, round: u32) -> Option<(CallIds, DebateCall)> {
        let thread = self.threads.get_mut(index).filter(|thread| thread.is_live())?;
        let ids = thread.ids.critic(round)?.clone();
        let notes = thread.take_critic_notes();
        let (recorded, last_message) = thread.to_critic();
        let press = prompt::press(&self.input, &thread.seat, round, recorded, last_message);
        let user_prompt: PromptText = prompt::with_notes(&notes, press).into();
        let request = thread.ask_critic(&self.critic, &user_prompt);
        Some((
            ids,
            DebateCall::new(DebateCallKind::Critic { thread: index, round }, request, user_prompt),
        ))
    }

    fn ask_decision_makers(&mut self, step: &mut Step, round: u32) {
        self.stage = DebateStage::DecisionMakers { round };
        for thread in 0..self.threads.len() {
            let Some((ids, call)) = self.decision_maker_call(thread, round) else { continue };
            self.call(step, &ids, call);
        }
    }

    fn decision_maker_call(&mut self, index: usize, round: u32) -> Option<(CallIds, DebateCall)> {
        let thread = self.threads.get_mut(index).filter(|thread| thread.is_live())?;
        let ids = thread.ids.decision_maker(round)?.clone();
        let notes = thread.take_decision_maker_notes();
        let answer = prompt::answer(&self.input, round, thread.to_decision_maker());
        let user_prompt: PromptText = prompt::with_notes(&notes, answer).into();
        let request = thread.ask_decision_maker(CallPurpose::DecisionMaker, &user_prompt);
        let speaker = DebateCallKind::DecisionMaker { thread: index, round };
        Some((ids, DebateCall::new(speaker, request, user_prompt)))
    }

    fn ask_scores(&mut self, step: &mut Step) {
        self.stage = DebateStage::Scoring;
        for index in 0..self.threads.len() {
            let Some(thread) = self.threads.get_mut(index) else { continue };
            if thread.rounds_done == 0 {
                // This decision maker has not completed a round, so it has no basis for scores.
                thread.card = Some(outcome::missing(self.input.calls.prompts, &self.input.metrics));
                continue;
            }
            let notes = thread.take_decision_maker_notes();
            let score = prompt::score(&self.input, thread.rounds_done, &thread.objection_log);
            let user_prompt: PromptText = prompt::with_notes(&notes, score).into();
            let request = thread.ask_decision_maker(CallPurpose::Score, &user_prompt);
            let ids = thread.ids.score.clone();
            self.call(
                step,
                &ids,
                DebateCall::new(DebateCallKind::Score { thread: index }, request, user_prompt),
            );
        }
    }

    fn replied(&mut self, step: &mut Step, id: &EffectId, call: DebateCall, reply: ModelReply) {
        let fault = match self.read(call.speaker, &reply) {
            Ok(parsed) => return self.accept(step, id, call.user_prompt, parsed),
            Err(fault) => fault,
        };
        step.publish.push(RunEvent::output_rejected(id, &fault));
        let text = clean(&reply.text, MAX_MESSAGE_BYTES);
        match call.again {
            Some(again) => {
                let request = ask_again(&call.request, &text, &fault);
                let first = Some((id.clone(), text));
                self.perform(step, again, DebateCall { request, again: None, first, ..call });
            }
            None => {
                let texts = [Some((id.clone(), text)), call.first];
                self.accept_unstructured(step, call.speaker, call.user_prompt, texts);
            }
        }
    }

    fn read(
        &self,
        speaker: DebateCallKind,
        reply: &ModelReply,
    ) -> Result<ParsedReply, OutputFault> {
        let is_turn = !matches!(speaker, DebateCallKind::Score { .. });
        let split = match self.input.calculations {
            Some(_) if is_turn => Some(turn::split_calculation(reply)?),
            _ => None,
        };
        let (rest, calculation) = match split {
            Some((rest, calculation)) => (Cow::Owned(rest), calculation),
            None => (Cow::Borrowed(reply), None),
        };
        let critic = |calculation| {
            let turn = DebateTurn::critic(turn::read_critic(&rest)?, reply.text.clone());
            Ok(turn.with_calculation(calculation))
        };
        Ok(match speaker {
            DebateCallKind::Opening => ParsedReply::Opening(critic(calculation)?),
            DebateCallKind::Critic { thread, round } => {
                ParsedReply::Critic { thread, round, debate_turn: critic(calculation)? }
            }
            DebateCallKind::DecisionMaker { thread, round } => {
                let turn = turn::read_decision_maker(&rest)?;
                let debate_turn = DebateTurn::decision_maker(turn, reply.text.clone());
                let debate_turn = debate_turn.with_calculation(calculation);
                ParsedReply::DecisionMaker { thread, round, debate_turn }
            }
            DebateCallKind::Score { thread } => {
                let (scores, reasoning) =
                    turn::read_scores(self.input.calls.prompts, reply, &self.input.metrics)?;
                let card = outcome::card(scores, &reasoning, ScoreBasis::Structured);
                ParsedReply::Score { thread, card }
            }
        })
    }

    /// Accepts unstructured text from the newest non-empty answer.
    fn accept_unstructured(
        &mut self,
        step: &mut Step,
        speaker: DebateCallKind,
        user_prompt: PromptText,
        texts: [Option<(EffectId, String)>; 2],
    ) {
        let texts: Vec<_> = texts.into_iter().flatten().collect();
        let says_something = |(_, text): &&(EffectId, String)| !text.is_empty();
        let Some((id, text)) = texts.iter().find(says_something).or_else(|| texts.first()) else {
            return;
        };
        let parsed = match speaker {
            DebateCallKind::Opening => ParsedReply::Opening(DebateTurn::unstructured(text)),
            DebateCallKind::Critic { thread, round } => {
                ParsedReply::Critic { thread, round, debate_turn: DebateTurn::unstructured(text) }
            }
            DebateCallKind::DecisionMaker { thread, round } => ParsedReply::DecisionMaker {
                thread,
                round,
                debate_turn: DebateTurn::unstructured(text),
            },
            DebateCallKind::Score { thread } => {
                let texts = texts.iter().map(|(_, text)| text.as_str());
                ParsedReply::Score {
                    thread,
                    card: outcome::card_from_texts(
                        self.input.calls.prompts,
                        texts,
                        &self.input.metrics,
                    ),
                }
            }
        };
        self.accept(step, id, user_prompt, parsed);
    }

    fn accept(
        &mut self,
        step: &mut Step,
        id: &EffectId,
        user_prompt: PromptText,
        parsed: ParsedReply,
    ) {
        self.note_calculation(id, &parsed);
        match parsed {
            ParsedReply::Opening(debate_turn) => {
                self.opening_unstructured = debate_turn.turn.is_none();
                for thread in &mut self.threads {
                    thread.apply_opening(&user_prompt, &debate_turn);
                }
                step.publish.push(self.turn_event(id, "all", 1, CRITIC, &debate_turn, None));
            }
            ParsedReply::Critic { thread, round, debate_turn } => {
                let Some(thread) = self.threads.get_mut(thread) else { return };
                thread.apply_critic(round, user_prompt, &debate_turn);
                let name = thread.seat.id.clone();
                step.publish.push(self.turn_event(id, &name, round, CRITIC, &debate_turn, None));
            }
            ParsedReply::DecisionMaker { thread, round, debate_turn } => {
                let Some(thread) = self.threads.get_mut(thread) else { return };
                thread.apply_decision_maker(round, user_prompt, &debate_turn);
                let stance = debate_turn.turn.as_ref().map(|turn| turn.stance);
                let name = thread.seat.id.clone();
                step.publish.push(self.turn_event(id, &name, round, &name, &debate_turn, stance));
            }
            ParsedReply::Score { thread, card } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.card = Some(card);
                }
            }
        }
    }

    /// Continues when nothing of the half round is pending.
    fn continue_if_complete(&mut self, step: &mut Step) {
        if !self.open.is_empty() || self.calculations.is_running() {
            return;
        }
        self.start_calculations(step);
        if !self.calculations.is_running() {
            self.advance(step);
        }
    }

    fn turn_event<T>(
        &self,
        id: &EffectId,
        thread: &str,
        round: u32,
        role: &str,
        debate_turn: &DebateTurn<T>,
        stance: Option<DebateStance>,
    ) -> RunEvent {
        let body = RunEventBody::SandboxTurn {
            effect_id: id.clone(),
            move_id: self.input.move_id.clone(),
            thread: thread.to_owned(),
            round,
            role: role.to_owned(),
            preview: one_line(&debate_turn.message, PREVIEW_CHARS),
            stance,
            cites: debate_turn.cites.clone(),
        };
        RunEvent::about(id, body)
    }

    /// Handles a call that failed after all retries. If it was the second attempt, the text of the
    /// first answer is used.
    fn failed(&mut self, step: &mut Step, call: DebateCall, kind: FailureKind) {
        if call.first.is_some() {
            return self.accept_unstructured(
                step,
                call.speaker,
                call.user_prompt,
                [call.first, None],
            );
        }
        match call.speaker {
            DebateCallKind::Opening => self.opening_failed = Some(kind),
            DebateCallKind::Critic { thread, .. }
            | DebateCallKind::DecisionMaker { thread, .. } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.failed = Some(kind);
                }
            }
            DebateCallKind::Score { thread } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.card =
                        Some(outcome::missing(self.input.calls.prompts, &self.input.metrics));
                }
            }
        }
    }

    /// Starts the next half round, or ends the debate. Called when no call is pending.
    fn advance(&mut self, step: &mut Step) {
        match self.stage {
            DebateStage::Ready | DebateStage::Done => {}
            DebateStage::Opening => match self.opening_failed {
                Some(kind) => outcome::not_debated(self, step, kind),
                None => {
                    self.publish_round_status(step, 1, RoundStatus::CriticResponded);
                    self.ask_decision_makers(step, 1);
                }
            },
            DebateStage::Critic { round } => {
                if self.any_live() {
                    self.publish_round_status(step, round, RoundStatus::CriticResponded);
                    self.ask_decision_makers(step, round);
                } else {
                    self.score_or_end(step);
                }
            }
            DebateStage::DecisionMakers { round } => {
                if self.any_live() {
                    self.publish_round_status(step, round, RoundStatus::DmResponded);
                }
                if self.any_live() && round < self.input.rounds {
                    self.ask_critics(step, round + 1);
                } else {
                    self.score_or_end(step);
                }
            }
            DebateStage::Scoring => outcome::finish(self, step),
        }
    }

    fn score_or_end(&mut self, step: &mut Step) {
        let is_debated = self.threads.iter().any(|thread| thread.rounds_done > 0);
        if is_debated && self.input.scoring == DebateScoring::Panel {
            outcome::finish(self, step);
        } else if is_debated {
            self.ask_scores(step);
        } else {
            let failed = self.threads.iter().find_map(|thread| thread.failed);
            outcome::not_debated(self, step, failed.unwrap_or(FailureKind::EmptyReply));
        }
    }

    fn any_live(&self) -> bool {
        self.threads.iter().any(CriticThread::is_live)
    }

    fn publish_round_status(&self, step: &mut Step, round: u32, status: RoundStatus) {
        let move_id = self.input.move_id.clone();
        let body = RunEventBody::SandboxRound { move_id, round, status };
        step.publish.push(RunEvent::of_run(body));
    }
}

impl Workflow for Debate {
    fn start(&mut self) -> Step {
        let mut step = Step::default();
        if self.stage == DebateStage::Ready {
            self.ask_opening(&mut step);
        }
        step
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let (name, stage) = (result.name(), self.stage.name());
        let unexpected = || Err(UnexpectedResult { id: id.clone(), result: name, stage });
        if let Some(ended) = self.calculations.finish(id, &result) {
            let mut step = Step::default();
            self.calculated(&mut step, ended);
            self.continue_if_complete(&mut step);
            return Ok(step);
        }
        let answer: Result<ModelReply, ModelFailure> = match result {
            EffectResult::ModelReplied(reply) => Ok(reply),
            EffectResult::ModelFailed(failure) => Err(failure),
            _ => return unexpected(),
        };
        let Some(call) = self.open.remove(id) else { return unexpected() };
        let mut step = Step::default();
        match answer {
            Ok(reply) => {
                step.publish.push(RunEvent::model_replied(id, &call.request, &reply));
                self.replied(&mut step, id, call, reply);
            }
            Err(failure) => {
                let kind = failure.kind;
                step.publish.push(RunEvent::model_failed(id, &call.request, failure));
                self.failed(&mut step, call, kind);
            }
        }
        self.continue_if_complete(&mut step);
        Ok(step)
    }
}

#[cfg(test)]
#[path = "debate_tests.rs"]
mod tests;
