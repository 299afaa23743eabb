//! An agent with hands: it reads files, proposes changes as drafts, hands them to the gate, and
//! learns from what the gate and people say.
//!
//! ```text
//! files ─► choose ─► read ─► propose ─► submit ─► applied
//!                     ▲         ▲          │
//!                     │         └─ lesson ◄┤ rejected, or sent back by a person
//!                     └────────────────────┘ the files have changed meanwhile
//! ```
//!
//! The model never names a handle and never reaches the workspace: everything goes through the
//! operations that every worker has ([`DraftCall`]), and the gate judges what comes of it.

use std::collections::BTreeMap;
use std::fmt;

use crate::drafts::{JudgedFinding, RelPath, State};
use crate::model::{ModelFailure, ModelReply, ModelRequest};
use crate::structured::{OutputFault, ask_again};
use crate::{
    Conclusion, Effect, EffectId, EffectResult, Finding, Outcome, RunEvent, RunEventBody, Severity,
    Step, UnexpectedResult, Workflow,
};

mod answer;
mod calls;
pub mod demonstration;
mod ids;
mod input;
mod prompt;

pub use self::answer::{Change, read_change};
pub use self::calls::{DraftCall, DraftReply, FileText, Submitted};
pub use self::input::{EditInput, Edited, InvalidEdit, MAX_ATTEMPTS};

use self::ids::Ids;
use self::prompt::Lesson;

/// See the module documentation.
pub struct EditWorkflow {
    input: EditInput,
    ids: Vec<Ids>,
    /// Names of the workspace that the model may choose from.
    names: Vec<RelPath>,
    /// A choice that could not be used, and why.
    bad_choice: Option<(String, OutputFault)>,
    /// The files that it works on.
    chosen: Vec<RelPath>,
    texts: BTreeMap<RelPath, String>,
    lessons: Vec<Lesson>,
    /// How many attempts were begun.
    attempt: usize,
    last: Edited,
    stage: Stage,
}

impl fmt::Debug for EditWorkflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditWorkflow")
            .field("attempt", &self.attempt)
            .field("stage", &self.stage.name())
            .finish_non_exhaustive()
    }
}

enum Stage {
    Ready,
    Listing,
    Choosing(ModelRequest),
    Reading,
    Proposing(ModelRequest),
    /// Answers could not be read, this many; the model was asked in other words.
    Mending(ModelRequest, usize),
    /// What was handed in, and the answer that it was taken from.
    Submitting(String),
    Waiting(String),
    Done,
}

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Listing => "waiting for the names of files",
            Self::Choosing(_) => "waiting for a choice of files",
            Self::Reading => "waiting for the text of files",
            Self::Proposing(_) => "waiting for a proposal",
            Self::Mending(..) => "waiting for a proposal in a form that can be read",
            Self::Submitting(_) => "waiting for the gate",
            Self::Waiting(_) => "waiting for a person",
            Self::Done => "done",
        }
    }
}

impl EditWorkflow {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "edit";

    /// An agent for a task, or why it cannot be one.
    pub fn new(input: EditInput) -> Result<Self, InvalidEdit> {
        input.validate()?;
        let ids = (1..=input.attempts).map(Ids::of).collect::<Result<_, _>>()?;
        let chosen = input.files.clone();
        Ok(Self {
            input,
            ids,
            names: Vec::new(),
            bad_choice: None,
            chosen,
            texts: BTreeMap::new(),
            lessons: Vec::new(),
            attempt: 0,
            last: Edited::default(),
            stage: Stage::Ready,
        })
    }

    fn number(&self) -> u32 {
        u32::try_from(self.attempt).unwrap_or(u32::MAX)
    }

    /// The effects of the attempt under way.
    fn ids(&self) -> Option<&Ids> {
        self.attempt.checked_sub(1).and_then(|index| self.ids.get(index))
    }

    /// The effect that is open, where one is.
    fn waits_for(&self) -> Option<&EffectId> {
        let ids = self.ids()?;
        match &self.stage {
            Stage::Ready | Stage::Done => None,
            Stage::Listing => Some(&ids.list),
            Stage::Choosing(_) => Some(&ids.choose),
            Stage::Reading => Some(&ids.read),
            Stage::Proposing(_) => Some(&ids.propose),
            Stage::Mending(_, unread) => ids.again.get(unread.wrapping_sub(1)),
            Stage::Submitting(_) => Some(&ids.submit),
            Stage::Waiting(_) => Some(&ids.wait),
        }
    }

    /// Begins another attempt with what is known, or ends the run with these findings.
    fn next(&mut self, mut publish: Vec<RunEvent>, found: Vec<Finding>) -> Step {
        let Some(ids) = self.ids.get(self.attempt) else {
            return self.finish(publish, found);
        };
        let propose = ids.propose.clone();
        let list = ids.list.clone();
        let read = ids.read.clone();
        self.attempt += 1;
        publish.push(RunEvent::about(
            &propose,
            RunEventBody::AttemptStarted {
                effect_id: propose.clone(),
                attempt: self.number(),
                of: self.input.attempts,
            },
        ));
        if !self.texts.is_empty() {
            return self.propose(publish, propose);
        }
        if self.chosen.is_empty() {
            self.stage = Stage::Listing;
            return draft(publish, list, DraftCall::Files);
        }
        self.stage = Stage::Reading;
        draft(publish, read, DraftCall::Read { paths: self.chosen.clone() })
    }

    fn listed(&mut self, paths: Vec<RelPath>) -> Step {
        let Some(ids) = self.ids() else { return Step::default() };
        let (choose, read) = (ids.choose.clone(), ids.read.clone());
        self.names = paths;
        if self.names.len() <= 1 {
            self.chosen.clone_from(&self.names);
            self.stage = Stage::Reading;
            return draft(Vec::new(), read, DraftCall::Read { paths: self.chosen.clone() });
        }
        let mut request = prompt::choose(&self.input, &self.names);
        if let Some((answer, fault)) = &self.bad_choice {
            request = ask_again(&request, answer, fault);
        }
        self.stage = Stage::Choosing(request.clone());
        call(Vec::new(), choose, request)
    }

    fn chose(&mut self, id: &EffectId, request: &ModelRequest, reply: &ModelReply) -> Step {
        let publish = vec![RunEvent::model_replied(id, request, reply)];
        match answer::read_choice(reply, &self.names) {
            Ok(chosen) => {
                let Some(read) = self.ids().map(|ids| ids.read.clone()) else {
                    return Step::default();
                };
                self.chosen = chosen;
                self.stage = Stage::Reading;
                draft(publish, read, DraftCall::Read { paths: self.chosen.clone() })
            }
            Err(fault) => self.unreadable(publish, id, &fault, &reply.text),
        }
    }

    fn read(&mut self, id: &EffectId, files: Vec<FileText>, refused: Vec<String>) -> Step {
        let Some(propose) = self.ids().map(|ids| ids.propose.clone()) else {
            return Step::default();
        };
        self.texts = files.into_iter().map(|file| (file.path, file.text)).collect();
        let mut found: Vec<Finding> = refused
            .iter()
            .map(|why| Finding::new("edit.not-read", Severity::Warn, id.as_str(), why))
            .collect();
        // A new file needs no text; files that may not be shown leave nothing to do.
        let publish = if found.is_empty() { Vec::new() } else { vec![self.judged(id, &found)] };
        if self.texts.is_empty() && !refused.is_empty() {
            let message = "there is no file that the model may be shown";
            found.push(Finding::new("edit.nothing-to-read", Severity::Block, id.as_str(), message));
            return self.finish(publish, found);
        }
        self.propose(publish, propose)
    }

    fn propose(&mut self, publish: Vec<RunEvent>, id: EffectId) -> Step {
        let request = prompt::propose(&self.input, &self.texts, &self.lessons);
        self.stage = Stage::Proposing(request.clone());
        call(publish, id, request)
    }

    /// `unread` answers to the same question could not be read before this one.
    fn proposed(
        &mut self,
        id: &EffectId,
        request: &ModelRequest,
        reply: ModelReply,
        unread: usize,
    ) -> Step {
        let mut publish = vec![RunEvent::model_replied(id, request, &reply)];
        let Some(ids) = self.ids() else { return Step::default() };
        let (submit, again) = (ids.submit.clone(), ids.again.get(unread).cloned());
        let read = match request.schema {
            Some(_) => answer::read_form(&reply, &self.texts),
            None => read_change(&reply, &self.texts),
        };
        match read {
            Ok(change) => {
                self.last.summary.clone_from(&change.summary);
                self.last.paths = change.files.keys().cloned().collect();
                self.stage = Stage::Submitting(reply.text);
                draft(publish, submit, DraftCall::Submit(change))
            }
            Err(fault) => match again {
                // Nothing was proposed yet, so this is the same proposal, asked for again.
                Some(again) => {
                    publish.push(RunEvent::output_rejected(id, &fault));
                    let mended = match unread {
                        0 => prompt::mend(&self.input, &self.texts, &fault),
                        _ => prompt::fill_in(&self.input, &self.texts),
                    };
                    self.stage = Stage::Mending(mended.clone(), unread + 1);
                    call(publish, again, mended)
                }
                None => self.unreadable(publish, id, &fault, &reply.text),
            },
        }
    }

    /// An answer that nobody can use costs an attempt and teaches the next one.
    fn unreadable(
        &mut self,
        mut publish: Vec<RunEvent>,
        id: &EffectId,
        fault: &OutputFault,
        answer: &str,
    ) -> Step {
        publish.push(RunEvent::output_rejected(id, fault));
        let problems = fault.problems().join("; ");
        let found = vec![Finding::new(fault.rule(), Severity::Block, id.as_str(), &problems)];
        publish.push(self.judged(id, &found));
        // Before there are texts the answer was a choice.
        match self.texts.is_empty() {
            true => self.bad_choice = Some((answer.to_owned(), fault.clone())),
            false => self.lessons.push(Lesson::unreadable(answer, &problems)),
        }
        self.next(publish, found)
    }

    fn submitted(&mut self, id: &EffectId, answer: String, said: Submitted) -> Step {
        let found = findings(id, &said);
        let publish = vec![self.judged(id, &found)];
        self.last.state = Some(said.state);
        self.last.drafts.clone_from(&said.drafts);
        match said.state {
            State::Escalated if self.input.wait_s > 0 => {
                let Some(wait) = self.ids().map(|ids| ids.wait.clone()) else {
                    return Step::default();
                };
                let seconds = self.input.wait_s;
                self.stage = Stage::Waiting(answer);
                draft(publish, wait, DraftCall::Wait { drafts: said.drafts, seconds })
            }
            State::Editing => {
                self.lessons.push(Lesson::of(&answer, &said));
                self.next(publish, found)
            }
            State::Conflict => {
                // Somebody changed the files: everything the model knows about them is old.
                self.texts.clear();
                self.lessons.clear();
                self.next(publish, found)
            }
            _ => self.finish(publish, found),
        }
    }

    /// A person has decided, or nobody came.
    fn reviewed(&mut self, id: &EffectId, answer: String, said: Submitted) -> Step {
        let found = findings(id, &said);
        let publish = vec![self.judged(id, &found)];
        self.last.state = Some(said.state);
        if said.state == State::Editing {
            self.lessons.push(Lesson::of(&answer, &said));
            return self.next(publish, found);
        }
        self.finish(publish, found)
    }

    /// The store refused: the model asked for something that cannot be.
    fn refused(&mut self, id: &EffectId, answer: &str, why: &str) -> Step {
        let found = vec![Finding::new("edit.refused", Severity::Block, id.as_str(), why)];
        let publish = vec![self.judged(id, &found)];
        self.lessons.push(Lesson::unreadable(answer, why));
        self.next(publish, found)
    }

    fn finish(&mut self, mut publish: Vec<RunEvent>, found: Vec<Finding>) -> Step {
        self.stage = Stage::Done;
        self.last.attempts = self.number();
        let outcome = Outcome::new(found, Conclusion::Edited(Box::new(self.last.clone())));
        publish.push(RunEvent::of_run(RunEventBody::RunFinished { verdict: outcome.verdict }));
        Step { perform: Vec::new(), publish, outcome: Some(outcome) }
    }

    fn judged(&self, id: &EffectId, found: &[Finding]) -> RunEvent {
        let (effect_id, findings) = (id.clone(), found.to_vec());
        RunEvent::about(id, RunEventBody::Judged { effect_id, attempt: self.number(), findings })
    }
}

impl Workflow for EditWorkflow {
    fn start(&mut self) -> Step {
        if !matches!(self.stage, Stage::Ready) {
            return Step::default();
        }
        let workflow = Self::NAME.to_owned();
        let started = RunEvent::of_run(RunEventBody::RunStarted { workflow });
        self.next(vec![started], Vec::new())
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let is_open = self.waits_for() == Some(id);
        let stage =
            if is_open { std::mem::replace(&mut self.stage, Stage::Done) } else { Stage::Done };
        let result = match result {
            EffectResult::Drafted(reply) => match (stage, *reply) {
                (Stage::Listing, DraftReply::Files { paths }) => return Ok(self.listed(paths)),
                (Stage::Reading, DraftReply::Read { files, refused }) => {
                    return Ok(self.read(id, files, refused));
                }
                (Stage::Submitting(answer), DraftReply::Submitted(said)) => {
                    return Ok(self.submitted(id, answer, said));
                }
                (Stage::Waiting(answer), DraftReply::Submitted(said)) => {
                    return Ok(self.reviewed(id, answer, said));
                }
                (Stage::Submitting(answer), DraftReply::Refused { why }) => {
                    return Ok(self.refused(id, &answer, &why));
                }
                (
                    Stage::Listing | Stage::Reading | Stage::Submitting(_) | Stage::Waiting(_),
                    DraftReply::Failed { why } | DraftReply::Refused { why },
                ) => return Ok(store_failed(id, why)),
                (stage, reply) => {
                    self.put_back(is_open, stage);
                    reply.name()
                }
            },
            EffectResult::ModelReplied(reply) => match stage {
                Stage::Choosing(request) => return Ok(self.chose(id, &request, &reply)),
                Stage::Proposing(request) => return Ok(self.proposed(id, &request, reply, 0)),
                Stage::Mending(request, unread) => {
                    return Ok(self.proposed(id, &request, reply, unread));
                }
                stage => {
                    self.put_back(is_open, stage);
                    "model_replied"
                }
            },
            EffectResult::ModelFailed(failure) => match stage {
                Stage::Choosing(request)
                | Stage::Proposing(request)
                | Stage::Mending(request, _) => {
                    return Ok(model_failed(id, &request, failure));
                }
                stage => {
                    self.put_back(is_open, stage);
                    "model_failed"
                }
            },
            other => {
                self.put_back(is_open, stage);
                other.name()
            }
        };
        Err(UnexpectedResult { id: id.clone(), result, stage: self.stage.name() })
    }
}

impl EditWorkflow {
    fn put_back(&mut self, is_open: bool, stage: Stage) {
        if is_open {
            self.stage = stage;
        }
    }
}

fn draft(publish: Vec<RunEvent>, id: EffectId, call: DraftCall) -> Step {
    Step { perform: vec![(id, Effect::Draft(Box::new(call)))], publish, outcome: None }
}

fn call(publish: Vec<RunEvent>, id: EffectId, request: ModelRequest) -> Step {
    Step { perform: vec![(id, Effect::CallModel(Box::new(request)))], publish, outcome: None }
}

fn model_failed(id: &EffectId, request: &ModelRequest, failure: ModelFailure) -> Step {
    let (kind, detail) = (failure.kind, failure.to_string());
    let found = Finding::new("model.failed", Severity::Block, id.as_str(), &detail);
    let publish = vec![RunEvent::model_failed(id, request, failure)];
    Step::failed(publish, found, Conclusion::Failed { kind }, detail)
}

/// The store of drafts broke: our failure, and nobody's proposal.
fn store_failed(id: &EffectId, why: String) -> Step {
    let found = Finding::new("edit.store-failed", Severity::Block, id.as_str(), &why);
    Step::failed(Vec::new(), found, Conclusion::Edited(Box::default()), why)
}

/// What the gate and people said, as findings of a run.
fn findings(id: &EffectId, said: &Submitted) -> Vec<Finding> {
    let of_gate = |one: &JudgedFinding| {
        let line = one.line.map(|line| format!(":{line}")).unwrap_or_default();
        let subject = format!("{}{line}", one.path);
        // A person has decided what the gate escalated.
        let severity = match (said.state, one.action.severity()) {
            (State::Applied, severity) => severity.min(Severity::Warn),
            (_, severity) => severity,
        };
        Finding::new(one.rule.name(), severity, &subject, &one.message)
    };
    let mut found: Vec<Finding> = said.findings.iter().map(of_gate).collect();
    let blocked = |rule, message| Finding::new(rule, Severity::Block, id.as_str(), message);
    match said.state {
        State::Conflict => {
            found.push(blocked("edit.conflict", "the files have changed meanwhile"));
        }
        State::Rejected if said.comment.is_some() => {
            found.push(blocked("edit.rejected", "a person rejected it"));
        }
        State::Editing if said.comment.is_some() => {
            found.push(blocked("edit.sent-back", "a person sent it back"));
        }
        State::Withdrawn | State::Expired => {
            found.push(blocked("edit.closed", "the draft was closed"));
        }
        _ => {}
    }
    found
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
