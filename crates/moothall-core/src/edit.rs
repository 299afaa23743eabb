//! An editing agent: it reads files, proposes changes as drafts, submits them to the gate, and
//! retries with the feedback of the gate and reviewers.
//!
//! ```text
//! files ─► choose ─► read ─► propose ─► submit ─► applied
//!                     ▲         ▲          │
//!                     │         └─ lesson ◄┤ rejected, or changes requested by a reviewer
//!                     └────────────────────┘ conflict: the files have changed
//! ```
//!
//! The model never sees draft handles and cannot access the workspace: it only uses the operations
//! available to every worker ([`DraftCall`]), and the gate checks each submission.

use std::collections::BTreeMap;
use std::fmt;

use crate::drafts::{DraftState, JournalFinding, RelPath};
use crate::model::{ModelReply, ModelRequest};
use crate::structured::{OutputFault, ask_again};
use crate::{
    Conclusion, Effect, EffectId, EffectResult, FindingSeverity, Outcome, RunEvent, RunEventBody,
    RunFinding, Step, UnexpectedResult, Workflow,
};

mod answer;
mod calls;
pub mod demonstration;
mod ids;
mod input;
mod prompt;

pub use self::answer::{EditProposal, read_change};
pub use self::calls::{DraftCall, DraftReply, FileText, SubmissionStatus};
pub use self::input::{EditInput, EditResult, InvalidEdit, MAX_ATTEMPTS};

use self::ids::EditIds;
use self::prompt::EditFeedback;

/// The edit workflow. See the module documentation.
pub struct EditWorkflow {
    input: EditInput,
    ids: Vec<EditIds>,
    /// The workspace files the model can choose from.
    names: Vec<RelPath>,
    /// The last unusable file choice, and why it was rejected.
    bad_choice: Option<(String, OutputFault)>,
    /// The files to work on.
    chosen: Vec<RelPath>,
    texts: BTreeMap<RelPath, String>,
    lessons: Vec<EditFeedback>,
    /// The number of attempts started.
    attempt: usize,
    last: EditResult,
    stage: EditStage,
}

impl fmt::Debug for EditWorkflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditWorkflow")
            .field("attempt", &self.attempt)
            .field("stage", &self.stage.name())
            .finish_non_exhaustive()
    }
}

enum EditStage {
    Ready,
    Listing,
    Choosing(ModelRequest),
    Reading,
    Proposing(ModelRequest),
    /// Retrying with a different prompt after this many unreadable answers.
    Mending(ModelRequest, usize),
    /// Holds the answer from which the submission was taken.
    Submitting(String),
    Waiting(String),
    Done,
}

impl EditStage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Listing => "waiting for the file list",
            Self::Choosing(_) => "waiting for the choice of files",
            Self::Reading => "waiting for file contents",
            Self::Proposing(_) => "waiting for a proposal",
            Self::Mending(..) => "waiting for a readable proposal",
            Self::Submitting(_) => "waiting for the gate",
            Self::Waiting(_) => "waiting for a person",
            Self::Done => "done",
        }
    }
}

impl EditWorkflow {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "edit";

    /// Creates the workflow, or reports why the input is invalid.
    pub fn new(input: EditInput) -> Result<Self, InvalidEdit> {
        input.validate()?;
        let ids = (1..=input.attempts).map(EditIds::of).collect::<Result<_, _>>()?;
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
            last: EditResult::default(),
            stage: EditStage::Ready,
        })
    }

    fn number(&self) -> u32 {
        u32::try_from(self.attempt).unwrap_or(u32::MAX)
    }

    /// The effect ids of the current attempt.
    fn ids(&self) -> Option<&EditIds> {
        self.attempt.checked_sub(1).and_then(|index| self.ids.get(index))
    }

    /// The pending effect, if any.
    fn pending_effect(&self) -> Option<&EffectId> {
        let ids = self.ids()?;
        match &self.stage {
            EditStage::Ready | EditStage::Done => None,
            EditStage::Listing => Some(&ids.list),
            EditStage::Choosing(_) => Some(&ids.choose),
            EditStage::Reading => Some(&ids.read),
            EditStage::Proposing(_) => Some(&ids.propose),
            EditStage::Mending(_, unread) => ids.again.get(unread.wrapping_sub(1)),
            EditStage::Submitting(_) => Some(&ids.submit),
            EditStage::Waiting(_) => Some(&ids.wait),
        }
    }

    /// Starts the next attempt, or ends the run with these findings if none is left.
    fn next(&mut self, mut publish: Vec<RunEvent>, found: Vec<RunFinding>) -> Step {
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
            self.stage = EditStage::Listing;
            return draft(publish, list, DraftCall::Files);
        }
        self.stage = EditStage::Reading;
        draft(publish, read, DraftCall::Read { paths: self.chosen.clone() })
    }

    fn listed(&mut self, paths: Vec<RelPath>) -> Step {
        let Some(ids) = self.ids() else { return Step::default() };
        let (choose, read) = (ids.choose.clone(), ids.read.clone());
        self.names = paths;
        if self.names.len() <= 1 {
            self.chosen.clone_from(&self.names);
            self.stage = EditStage::Reading;
            return draft(Vec::new(), read, DraftCall::Read { paths: self.chosen.clone() });
        }
        let mut request = prompt::choose(&self.input, &self.names);
        if let Some((answer, fault)) = &self.bad_choice {
            request = ask_again(&request, answer, fault);
        }
        self.stage = EditStage::Choosing(request.clone());
        call(Vec::new(), choose, request)
    }

    fn choose_files(&mut self, id: &EffectId, request: &ModelRequest, reply: &ModelReply) -> Step {
        let publish = vec![RunEvent::model_replied(id, request, reply)];
        match answer::read_choice(reply, &self.names) {
            Ok(chosen) => {
                let Some(read) = self.ids().map(|ids| ids.read.clone()) else {
                    return Step::default();
                };
                self.chosen = chosen;
                self.stage = EditStage::Reading;
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
        let mut found: Vec<RunFinding> = refused
            .iter()
            .map(|why| RunFinding::new("edit.not-read", FindingSeverity::Warn, id.as_str(), why))
            .collect();
        // A new file has no text to read. If all files were refused, there is nothing to do.
        let publish =
            if found.is_empty() { Vec::new() } else { vec![self.findings_event(id, &found)] };
        if self.texts.is_empty() && !refused.is_empty() {
            let message = "there is no file that the model may be shown";
            found.push(RunFinding::new(
                "edit.nothing-to-read",
                FindingSeverity::Block,
                id.as_str(),
                message,
            ));
            return self.finish(publish, found);
        }
        self.propose(publish, propose)
    }

    fn propose(&mut self, publish: Vec<RunEvent>, id: EffectId) -> Step {
        let request = prompt::propose(&self.input, &self.texts, &self.lessons);
        self.stage = EditStage::Proposing(request.clone());
        call(publish, id, request)
    }

    /// `unread` is the number of earlier answers to this prompt that could not be parsed.
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
                self.stage = EditStage::Submitting(reply.text);
                draft(publish, submit, DraftCall::Submit(change))
            }
            Err(fault) => match again {
                // Nothing was submitted yet, so this does not count as another attempt.
                Some(again) => {
                    publish.push(RunEvent::output_rejected(id, &fault));
                    let mended = match unread {
                        0 => prompt::short_retry_request(&self.input, &self.texts, &fault),
                        _ => prompt::json_form_request(&self.input, &self.texts),
                    };
                    self.stage = EditStage::Mending(mended.clone(), unread + 1);
                    call(publish, again, mended)
                }
                None => self.unreadable(publish, id, &fault, &reply.text),
            },
        }
    }

    /// An unusable answer uses up an attempt and becomes feedback for the next one.
    fn unreadable(
        &mut self,
        mut publish: Vec<RunEvent>,
        id: &EffectId,
        fault: &OutputFault,
        answer: &str,
    ) -> Step {
        publish.push(RunEvent::output_rejected(id, fault));
        let problems = fault.problems().join("; ");
        let found =
            vec![RunFinding::new(fault.rule(), FindingSeverity::Block, id.as_str(), &problems)];
        publish.push(self.findings_event(id, &found));
        // Without texts, the answer was a file choice.
        match self.texts.is_empty() {
            true => self.bad_choice = Some((answer.to_owned(), fault.clone())),
            false => self.lessons.push(EditFeedback::unreadable(answer, &problems)),
        }
        self.next(publish, found)
    }

    fn submitted(&mut self, id: &EffectId, answer: String, status: SubmissionStatus) -> Step {
        let found = findings(id, &status);
        let publish = vec![self.findings_event(id, &found)];
        self.last.state = Some(status.state);
        self.last.drafts.clone_from(&status.drafts);
        match status.state {
            DraftState::Escalated if self.input.wait_s > 0 => {
                let Some(wait) = self.ids().map(|ids| ids.wait.clone()) else {
                    return Step::default();
                };
                let seconds = self.input.wait_s;
                self.stage = EditStage::Waiting(answer);
                draft(publish, wait, DraftCall::Wait { drafts: status.drafts, seconds })
            }
            DraftState::Editing => {
                self.lessons.push(EditFeedback::of(&answer, &status));
                self.next(publish, found)
            }
            DraftState::Conflict => {
                // The files changed, so the model's copies and the feedback on them are outdated.
                self.texts.clear();
                self.lessons.clear();
                self.next(publish, found)
            }
            _ => self.finish(publish, found),
        }
    }

    /// Handles the result of waiting: a reviewer decided, or the wait timed out.
    fn reviewed(&mut self, id: &EffectId, answer: String, status: SubmissionStatus) -> Step {
        let found = findings(id, &status);
        let publish = vec![self.findings_event(id, &found)];
        self.last.state = Some(status.state);
        if status.state == DraftState::Editing {
            self.lessons.push(EditFeedback::of(&answer, &status));
            return self.next(publish, found);
        }
        self.finish(publish, found)
    }

    /// The draft store refused an invalid request of the model.
    fn refused(&mut self, id: &EffectId, answer: &str, why: &str) -> Step {
        let found = vec![RunFinding::new("edit.refused", FindingSeverity::Block, id.as_str(), why)];
        let publish = vec![self.findings_event(id, &found)];
        self.lessons.push(EditFeedback::unreadable(answer, why));
        self.next(publish, found)
    }

    fn finish(&mut self, mut publish: Vec<RunEvent>, found: Vec<RunFinding>) -> Step {
        self.stage = EditStage::Done;
        self.last.attempts = self.number();
        let outcome = Outcome::new(found, Conclusion::Edited(Box::new(self.last.clone())));
        publish.push(RunEvent::of_run(RunEventBody::RunFinished { verdict: outcome.verdict }));
        Step { perform: Vec::new(), publish, outcome: Some(outcome) }
    }

    fn findings_event(&self, id: &EffectId, found: &[RunFinding]) -> RunEvent {
        let (effect_id, findings) = (id.clone(), found.to_vec());
        RunEvent::about(id, RunEventBody::Judged { effect_id, attempt: self.number(), findings })
    }
}

impl Workflow for EditWorkflow {
    fn start(&mut self) -> Step {
        if !matches!(self.stage, EditStage::Ready) {
            return Step::default();
        }
        let workflow = Self::NAME.to_owned();
        let started = RunEvent::of_run(RunEventBody::RunStarted { workflow });
        self.next(vec![started], Vec::new())
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let is_open = self.pending_effect() == Some(id);
        let stage = if is_open {
            std::mem::replace(&mut self.stage, EditStage::Done)
        } else {
            EditStage::Done
        };
        let result = match result {
            EffectResult::Drafted(reply) => match (stage, *reply) {
                (EditStage::Listing, DraftReply::Files { paths }) => return Ok(self.listed(paths)),
                (EditStage::Reading, DraftReply::Read { files, refused }) => {
                    return Ok(self.read(id, files, refused));
                }
                (EditStage::Submitting(answer), DraftReply::Submitted(status)) => {
                    return Ok(self.submitted(id, answer, status));
                }
                (EditStage::Waiting(answer), DraftReply::Submitted(status)) => {
                    return Ok(self.reviewed(id, answer, status));
                }
                (EditStage::Submitting(answer), DraftReply::Refused { why }) => {
                    return Ok(self.refused(id, &answer, &why));
                }
                (
                    EditStage::Listing
                    | EditStage::Reading
                    | EditStage::Submitting(_)
                    | EditStage::Waiting(_),
                    DraftReply::Failed { why } | DraftReply::Refused { why },
                ) => return Ok(store_failed(id, why)),
                (stage, reply) => {
                    self.restore_stage(is_open, stage);
                    reply.name()
                }
            },
            EffectResult::ModelReplied(reply) => match stage {
                EditStage::Choosing(request) => return Ok(self.choose_files(id, &request, &reply)),
                EditStage::Proposing(request) => return Ok(self.proposed(id, &request, reply, 0)),
                EditStage::Mending(request, unread) => {
                    return Ok(self.proposed(id, &request, reply, unread));
                }
                stage => {
                    self.restore_stage(is_open, stage);
                    "model_replied"
                }
            },
            EffectResult::ModelFailed(failure) => match stage {
                EditStage::Choosing(request)
                | EditStage::Proposing(request)
                | EditStage::Mending(request, _) => {
                    return Ok(Step::model_failed(id, &request, failure));
                }
                stage => {
                    self.restore_stage(is_open, stage);
                    "model_failed"
                }
            },
            other => {
                self.restore_stage(is_open, stage);
                other.name()
            }
        };
        Err(UnexpectedResult { id: id.clone(), result, stage: self.stage.name() })
    }
}

impl EditWorkflow {
    fn restore_stage(&mut self, is_open: bool, stage: EditStage) {
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

/// The draft store failed. This is not the fault of the proposal.
fn store_failed(id: &EffectId, why: String) -> Step {
    let found = RunFinding::new("edit.store-failed", FindingSeverity::Block, id.as_str(), &why);
    Step::failed(Vec::new(), found, Conclusion::Edited(Box::default()), why)
}

/// Converts the gate's findings and the review result to findings of the run.
fn findings(id: &EffectId, status: &SubmissionStatus) -> Vec<RunFinding> {
    let of_gate = |one: &JournalFinding| {
        let line = one.line.map(|line| format!(":{line}")).unwrap_or_default();
        let subject = format!("{}{line}", one.path);
        // Once applied, a reviewer has accepted whatever the gate escalated.
        let severity = match (status.state, one.action.severity()) {
            (DraftState::Applied, severity) => severity.min(FindingSeverity::Warn),
            (_, severity) => severity,
        };
        RunFinding::new(one.rule.name(), severity, &subject, &one.message)
    };
    let mut found: Vec<RunFinding> = status.findings.iter().map(of_gate).collect();
    let blocked =
        |rule, message| RunFinding::new(rule, FindingSeverity::Block, id.as_str(), message);
    match status.state {
        DraftState::Conflict => {
            found.push(blocked("edit.conflict", "the files have changed meanwhile"));
        }
        DraftState::Rejected if status.comment.is_some() => {
            found.push(blocked("edit.rejected", "a person rejected it"));
        }
        DraftState::Editing if status.comment.is_some() => {
            found.push(blocked("edit.sent-back", "a person sent it back"));
        }
        DraftState::Withdrawn | DraftState::Expired => {
            found.push(blocked("edit.closed", "the draft was closed"));
        }
        _ => {}
    }
    found
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
