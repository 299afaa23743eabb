//! One move on trial: a critic against the decision makers, round by round, and then the scores.
//!
//! ```text
//! opening ─► decision makers ─► critic ─► decision makers ─► … ─► scores ─► done
//!   (1)            (3)            (3)           (3)                 (3)
//! ```
//!
//! The opening goes to all; from then on each decision maker has a thread of its own with the
//! critic. What goes out together is waited for together. A thread whose model fails ends early and
//! is scored on the rounds that it has; the others go on. What was raised, answered, conceded and
//! taken back is recorded by code, and what is wrong with a debate is said with its result.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::{FailureKind, ModelFailure, ModelReply, PromptText, Purpose};
use crate::structured::{OutputFault, ask_again};
use crate::text::one_line;
use crate::{
    Effect, EffectId, EffectResult, RoundStatus, RunEvent, RunEventBody, Step, UnexpectedResult,
    Workflow,
};

pub(crate) mod alone;
mod call;
mod chain;
mod cites;
mod debated;
mod ending;
mod ids;
mod input;
mod log;
mod objections;
mod prompt;
mod scores;
mod thread;
mod turn;
mod words;

#[cfg(test)]
#[path = "debate/bill_tests.rs"]
mod bill;
#[cfg(test)]
#[path = "debate/properties_tests.rs"]
mod properties;
#[cfg(test)]
#[path = "debate/support_tests.rs"]
mod support;

pub use self::alone::Undebated;
pub(crate) use self::cites::cites;
pub use self::debated::{
    Debated, Degradation, Objection, ObjectionSeverity, ObjectionState, ScoreBasis, Scorecard,
    Stance,
};
pub use self::input::{Calls, DebateInput, InvalidDebate, base_calls};
pub use self::log::{Entry, log_json, transcript};
pub use self::turn::{Answer, CriticTurn, DecisionMakerTurn, RaisedObjection, Scores};

use self::call::{Call, Said, Speaker};
use self::chain::{Chain, Voice};
use self::ids::{CallIds, Ids};
use self::thread::{CRITIC, Spoken, Thread};
use self::words::{MAX_MESSAGE_BYTES, clean};

/// How much of a turn an event shows.
const PREVIEW_CHARS: usize = 160;

/// See the module documentation.
pub struct Debate {
    input: DebateInput,
    opening: CallIds,
    critic: Voice,
    threads: Vec<Thread>,
    /// Whether the opening came without its form.
    opening_unstructured: bool,
    /// Why there is no opening.
    opening_failed: Option<FailureKind>,
    stage: Stage,
    /// Calls that are under way.
    open: BTreeMap<EffectId, Call>,
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
enum Stage {
    Ready,
    Opening,
    Critic { round: u32 },
    DecisionMakers { round: u32 },
    Scoring,
    Done,
}

impl Stage {
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
    /// A debate that has not begun.
    pub fn new(input: DebateInput) -> Result<Self, InvalidDebate> {
        input.validate()?;
        let ids = Ids::new(
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
                let voice = prompt::decision_maker(&input, seat)?;
                Ok(Thread::new(seat.clone(), ids, voice, cited.iter().cloned().collect()))
            })
            .collect::<Result<_, InvalidDebate>>()?;
        Ok(Self {
            opening: ids.opening,
            critic: prompt::critic(&input)?,
            threads,
            input,
            opening_unstructured: false,
            opening_failed: None,
            stage: Stage::Ready,
            open: BTreeMap::new(),
        })
    }

    /// What was said so far, one conversation for each decision maker: `i1`, `i2` and on.
    pub fn logs(&self) -> BTreeMap<String, Vec<Entry>> {
        let log = |(thread, number): (&Thread, usize)| (format!("i{number}"), thread.log.clone());
        self.threads.iter().zip(1..).map(log).collect()
    }

    /// Rounds that every thread has come through.
    pub fn rounds_done(&self) -> u32 {
        self.threads.iter().map(|thread| thread.rounds_done).min().unwrap_or(0)
    }

    /// What the debate has come to so far; scorecards only of those who have scored.
    pub fn debated(&self) -> Debated {
        ending::debated(self)
    }

    fn call(&mut self, step: &mut Step, ids: &CallIds, call: Call) {
        let call = Call { again: Some(ids.again.clone()), ..call };
        self.perform(step, ids.first.clone(), call);
    }

    fn perform(&mut self, step: &mut Step, id: EffectId, call: Call) {
        step.perform.push((id.clone(), Effect::CallModel(Box::new(call.request.clone()))));
        self.open.insert(id, call);
    }

    fn ask_opening(&mut self, step: &mut Step) {
        self.stage = Stage::Opening;
        let asked: PromptText = prompt::open(&self.input).into();
        let nothing = |_, _| String::new();
        let request = Chain::default().ask(&self.critic, Purpose::Critic, &asked, nothing);
        let ids = self.opening.clone();
        self.call(step, &ids, Call::new(Speaker::Opening, request, asked));
    }

    fn ask_critics(&mut self, step: &mut Step, round: u32) {
        self.stage = Stage::Critic { round };
        for thread in 0..self.threads.len() {
            let Some((ids, call)) = self.critic_call(thread, round) else { continue };
            self.call(step, &ids, call);
        }
    }

    fn critic_call(&mut self, index: usize, round: u32) -> Option<(CallIds, Call)> {
        let thread = self.threads.get_mut(index).filter(|thread| thread.is_live())?;
        let ids = thread.ids.critic(round)?.clone();
        let (recorded, said) = thread.to_critic();
        let asked: PromptText =
            prompt::press(&self.input, &thread.seat, round, recorded, said).into();
        let request = thread.ask_critic(&self.critic, &asked);
        Some((ids, Call::new(Speaker::Critic { thread: index, round }, request, asked)))
    }

    fn ask_decision_makers(&mut self, step: &mut Step, round: u32) {
        self.stage = Stage::DecisionMakers { round };
        for thread in 0..self.threads.len() {
            let Some((ids, call)) = self.decision_maker_call(thread, round) else { continue };
            self.call(step, &ids, call);
        }
    }

    fn decision_maker_call(&mut self, index: usize, round: u32) -> Option<(CallIds, Call)> {
        let thread = self.threads.get_mut(index).filter(|thread| thread.is_live())?;
        let ids = thread.ids.decision_maker(round)?.clone();
        let asked: PromptText =
            prompt::answer(&self.input, round, thread.to_decision_maker()).into();
        let request = thread.ask_decision_maker(Purpose::DecisionMaker, &asked);
        let speaker = Speaker::DecisionMaker { thread: index, round };
        Some((ids, Call::new(speaker, request, asked)))
    }

    fn ask_scores(&mut self, step: &mut Step) {
        self.stage = Stage::Scoring;
        for index in 0..self.threads.len() {
            let Some(thread) = self.threads.get_mut(index) else { continue };
            if thread.rounds_done == 0 {
                // Whoever heard nothing of the debate has nothing to say about it.
                thread.card = Some(ending::neutral(&self.input.metrics));
                continue;
            }
            let asked: PromptText =
                prompt::score(&self.input, thread.rounds_done, &thread.docket).into();
            let request = thread.ask_decision_maker(Purpose::Score, &asked);
            let ids = thread.ids.score.clone();
            self.call(step, &ids, Call::new(Speaker::Score { thread: index }, request, asked));
        }
    }

    fn replied(&mut self, step: &mut Step, id: &EffectId, call: Call, reply: ModelReply) {
        let fault = match self.read(call.speaker, &reply) {
            Ok(said) => return self.accept(step, id, call.asked, said),
            Err(fault) => fault,
        };
        step.publish.push(RunEvent::output_rejected(id, &fault));
        let text = clean(&reply.text, MAX_MESSAGE_BYTES);
        match call.again {
            Some(again) => {
                let request = ask_again(&call.request, &text, &fault);
                let first = Some((id.clone(), text));
                self.perform(step, again, Call { request, again: None, first, ..call });
            }
            None => {
                let texts = [Some((id.clone(), text)), call.first];
                self.accept_words(step, call.speaker, call.asked, texts);
            }
        }
    }

    fn read(&self, speaker: Speaker, reply: &ModelReply) -> Result<Said, OutputFault> {
        let critic = || Ok(Spoken::critic(turn::read_critic(reply)?, reply.text.clone()));
        Ok(match speaker {
            Speaker::Opening => Said::Opening(critic()?),
            Speaker::Critic { thread, round } => Said::Critic { thread, round, spoken: critic()? },
            Speaker::DecisionMaker { thread, round } => {
                let turn = turn::read_decision_maker(reply)?;
                let spoken = Spoken::decision_maker(turn, reply.text.clone());
                Said::DecisionMaker { thread, round, spoken }
            }
            Speaker::Score { thread } => {
                let (scores, reasoning) = turn::read_scores(reply, &self.input.metrics)?;
                let card = ending::card(scores, &reasoning, ScoreBasis::Structured);
                Said::Score { thread, card }
            }
        })
    }

    /// Takes what was said without its form, from the newest text that says anything.
    fn accept_words(
        &mut self,
        step: &mut Step,
        speaker: Speaker,
        asked: PromptText,
        texts: [Option<(EffectId, String)>; 2],
    ) {
        let texts: Vec<_> = texts.into_iter().flatten().collect();
        let says_something = |(_, text): &&(EffectId, String)| !text.is_empty();
        let Some((id, text)) = texts.iter().find(says_something).or_else(|| texts.first()) else {
            return;
        };
        let said = match speaker {
            Speaker::Opening => Said::Opening(Spoken::unstructured(text)),
            Speaker::Critic { thread, round } => {
                Said::Critic { thread, round, spoken: Spoken::unstructured(text) }
            }
            Speaker::DecisionMaker { thread, round } => {
                Said::DecisionMaker { thread, round, spoken: Spoken::unstructured(text) }
            }
            Speaker::Score { thread } => {
                let texts = texts.iter().map(|(_, text)| text.as_str());
                Said::Score { thread, card: ending::card_from_texts(texts, &self.input.metrics) }
            }
        };
        self.accept(step, id, asked, said);
    }

    fn accept(&mut self, step: &mut Step, id: &EffectId, asked: PromptText, said: Said) {
        match said {
            Said::Opening(spoken) => {
                self.opening_unstructured = spoken.turn.is_none();
                for thread in &mut self.threads {
                    thread.hear_opening(&asked, &spoken);
                }
                step.publish.push(self.turn_event(id, "all", 1, CRITIC, &spoken, None));
            }
            Said::Critic { thread, round, spoken } => {
                let Some(thread) = self.threads.get_mut(thread) else { return };
                thread.critic_speaks(round, asked, &spoken);
                let name = thread.seat.id.clone();
                step.publish.push(self.turn_event(id, &name, round, CRITIC, &spoken, None));
            }
            Said::DecisionMaker { thread, round, spoken } => {
                let Some(thread) = self.threads.get_mut(thread) else { return };
                thread.decision_maker_speaks(round, asked, &spoken);
                let stance = spoken.turn.as_ref().map(|turn| turn.stance);
                let name = thread.seat.id.clone();
                step.publish.push(self.turn_event(id, &name, round, &name, &spoken, stance));
            }
            Said::Score { thread, card } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.card = Some(card);
                }
            }
        }
    }

    fn turn_event<T>(
        &self,
        id: &EffectId,
        thread: &str,
        round: u32,
        role: &str,
        spoken: &Spoken<T>,
        stance: Option<Stance>,
    ) -> RunEvent {
        let body = RunEventBody::SandboxTurn {
            effect_id: id.clone(),
            move_id: self.input.move_id.clone(),
            thread: thread.to_owned(),
            round,
            role: role.to_owned(),
            preview: one_line(&spoken.message, PREVIEW_CHARS),
            stance,
            cites: spoken.cites.clone(),
        };
        RunEvent::about(id, body)
    }

    /// There is no answer, after all retries. What the first question was answered still counts as
    /// words.
    fn failed(&mut self, step: &mut Step, call: Call, kind: FailureKind) {
        if call.first.is_some() {
            return self.accept_words(step, call.speaker, call.asked, [call.first, None]);
        }
        match call.speaker {
            Speaker::Opening => self.opening_failed = Some(kind),
            Speaker::Critic { thread, .. } | Speaker::DecisionMaker { thread, .. } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.failed = Some(kind);
                }
            }
            Speaker::Score { thread } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.card = Some(ending::neutral(&self.input.metrics));
                }
            }
        }
    }

    /// Everyone who was asked has answered or failed: the next half round, or the end.
    fn advance(&mut self, step: &mut Step) {
        match self.stage {
            Stage::Ready | Stage::Done => {}
            Stage::Opening => match self.opening_failed {
                Some(kind) => ending::not_debated(self, step, kind),
                None => {
                    self.came_through(step, 1, RoundStatus::CriticResponded);
                    self.ask_decision_makers(step, 1);
                }
            },
            Stage::Critic { round } => {
                if self.any_live() {
                    self.came_through(step, round, RoundStatus::CriticResponded);
                    self.ask_decision_makers(step, round);
                } else {
                    self.score_or_end(step);
                }
            }
            Stage::DecisionMakers { round } => {
                if self.any_live() {
                    self.came_through(step, round, RoundStatus::DmResponded);
                }
                if self.any_live() && round < self.input.rounds {
                    self.ask_critics(step, round + 1);
                } else {
                    self.score_or_end(step);
                }
            }
            Stage::Scoring => ending::finish(self, step),
        }
    }

    fn score_or_end(&mut self, step: &mut Step) {
        if self.threads.iter().any(|thread| thread.rounds_done > 0) {
            self.ask_scores(step);
        } else {
            let failed = self.threads.iter().find_map(|thread| thread.failed);
            ending::not_debated(self, step, failed.unwrap_or(FailureKind::EmptyReply));
        }
    }

    fn any_live(&self) -> bool {
        self.threads.iter().any(Thread::is_live)
    }

    fn came_through(&self, step: &mut Step, round: u32, status: RoundStatus) {
        let move_id = self.input.move_id.clone();
        let body = RunEventBody::SandboxRound { move_id, round, status };
        step.publish.push(RunEvent::of_run(body));
    }
}

impl Workflow for Debate {
    fn start(&mut self) -> Step {
        let mut step = Step::default();
        if self.stage == Stage::Ready {
            self.ask_opening(&mut step);
        }
        step
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let (name, stage) = (result.name(), self.stage.name());
        let unexpected = || Err(UnexpectedResult { id: id.clone(), result: name, stage });
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
        if self.open.is_empty() {
            self.advance(&mut step);
        }
        Ok(step)
    }
}

#[cfg(test)]
#[path = "debate_tests.rs"]
mod tests;
