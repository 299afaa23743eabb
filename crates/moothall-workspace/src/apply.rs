//! Changing the workspace, all of a submission or nothing of it, and finishing what a crash left.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    Command, DraftId, End, Event, FileState, Principal, RelPath, State, Step, steps, undo_steps,
};

use super::error::DraftError;
use super::workspace::Carried;
use super::{Caller, DraftStore, Inner, Intent, Point, random};

impl DraftStore {
    /// Applies drafts that were accepted. A conflict is no error: it is the end of this attempt.
    pub(super) fn apply(
        &self,
        inner: &mut Inner,
        caller: &Caller,
        ids: &[DraftId],
    ) -> Result<(), DraftError> {
        let steps = staged_steps(inner, ids)?;
        self.at(Point::BeforeIntent)?;
        let command = Command::Apply { drafts: ids.to_vec(), steps: steps.clone() };
        self.tell(inner, caller, command)?;
        self.finish(inner, caller, &Intent { drafts: ids.to_vec(), steps }, Progress::None)
    }

    /// Takes an applied submission back, where its files are still what it made of them.
    pub(super) fn revert(
        &self,
        inner: &mut Inner,
        caller: &Caller,
        ids: &[DraftId],
    ) -> Result<(), DraftError> {
        let back = undo_steps(staged_steps(inner, ids)?);
        self.tell(inner, caller, Command::Undo { drafts: ids.to_vec(), steps: back.clone() })?;
        let gate = Caller::new(Principal::gate());
        self.finish(inner, &gate, &Intent { drafts: ids.to_vec(), steps: back }, Progress::None)
    }

    /// Finishes or takes back whatever was under way when a process died.
    pub(super) fn recover(&self, inner: &mut Inner) -> Result<(), DraftError> {
        let recovery = Caller::new(Principal::recovery());
        let pending: Vec<Intent> = inner.pending.values().cloned().collect();
        for intent in pending {
            for step in &intent.steps {
                let content = self.content(step.to)?;
                let salvaged = match self.workspace.salvage(step, &content) {
                    // A link or a device is in the way now; the end of the attempt says so.
                    Err(error) if error.is_refusal() => None,
                    salvaged => salvaged?,
                };
                if let Some((kept_as, sha256)) = salvaged {
                    let path = step.path.clone();
                    self.record(inner, &recovery, Event::Salvaged { path, kept_as, sha256 })?;
                }
            }
            match self.finish(inner, &recovery, &intent, Progress::Unknown) {
                Err(error) if error.is_refusal() => {}
                finished => finished?,
            }
        }
        for (state, ids) in self.unfinished(inner) {
            match state {
                State::Accepted => match self.apply(inner, &recovery, &ids) {
                    Err(error) if error.is_refusal() => {}
                    applied => applied?,
                },
                _ => match self.judge_left_over(inner, &ids) {
                    Err(error) if error.is_refusal() => {}
                    judged => judged?,
                },
            }
        }
        Ok(())
    }

    /// Whether somebody died or failed on the way: nobody else is at work while we hold the lock.
    pub(super) fn needs_recovery(&self, inner: &Inner) -> bool {
        !inner.pending.is_empty() || !self.unfinished(inner).is_empty()
    }

    /// Submissions whose verdict or whose intent was not written any more.
    fn unfinished(&self, inner: &Inner) -> Vec<(State, Vec<DraftId>)> {
        let mut found: Vec<(State, Vec<DraftId>)> = Vec::new();
        for draft in inner.drafts.all() {
            if !matches!(draft.state, State::Submitted | State::Accepted) {
                continue;
            }
            let Some(submission) = &draft.submission else { continue };
            if !found.iter().any(|(_, ids)| ids.contains(&draft.id)) {
                found.push((draft.state, submission.drafts.clone()));
            }
        }
        found
    }

    /// Carries out what is not done yet of an intent, and writes its end down.
    fn finish(
        &self,
        inner: &mut Inner,
        caller: &Caller,
        intent: &Intent,
        progress: Progress,
    ) -> Result<(), DraftError> {
        self.at(Point::AfterIntent)?;
        let (end, failure) = self.carry_out(&intent.steps, progress);
        self.at(Point::BeforeEnd)?;
        self.tell(inner, caller, Command::End { drafts: intent.drafts.clone(), end })?;
        match failure {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Step by step. What is in the way takes everything back.
    fn carry_out(&self, steps: &[Step], progress: Progress) -> (End, Option<DraftError>) {
        let conflict =
            |step: &Step, found, left| End::Conflict { path: step.path.clone(), found, left };
        let mut done: Vec<&Step> = Vec::new();
        for step in steps {
            let there = match progress {
                Progress::None => Ok(false),
                Progress::Unknown => self.is_there(&step.path, step.to),
            };
            let carried = there.and_then(|there| match there {
                true => Ok(Carried::Done),
                false => {
                    let content = self.content(step.to)?;
                    self.workspace.carry_out(step, &content, &*self.options.reached)
                }
            });
            match carried {
                Ok(Carried::Done) => done.push(step),
                Ok(Carried::Found(found)) => {
                    let left = self.take_back(&done);
                    return (conflict(step, found, left), None);
                }
                Err(error) => {
                    // How far the step came is not known: its staging file goes first, then
                    // whatever it may have done.
                    if let Ok(content) = self.content(step.to) {
                        let _ = self.workspace.salvage(step, &content);
                    }
                    if self.is_there(&step.path, step.to).unwrap_or(false) {
                        done.push(step);
                    }
                    let left = self.take_back(&done);
                    return (conflict(step, None, left), Some(error));
                }
            }
        }
        (End::Done, None)
    }

    /// Puts files back that still are what we made of them; the others are named.
    fn take_back(&self, done: &[&Step]) -> Vec<RelPath> {
        let mut left = Vec::new();
        for step in done.iter().rev() {
            let back = Step { from: step.to, to: step.from, ..(*step).clone() };
            let carried = self
                .content(back.to)
                .and_then(|content| self.workspace.carry_out(&back, &content, &|_| Ok(())));
            if !matches!(carried, Ok(Carried::Done)) {
                left.push(step.path.clone());
            }
        }
        left
    }

    /// Whether a file is what a step wants it to be.
    fn is_there(&self, path: &RelPath, wanted: Option<FileState>) -> Result<bool, DraftError> {
        let there = self.workspace.read(path)?.map(|file| FileState {
            sha256: Sha256Hex::of(&file.bytes),
            executable: file.executable(),
        });
        Ok(there == wanted)
    }

    fn content(&self, file: Option<FileState>) -> Result<Vec<u8>, DraftError> {
        file.map_or_else(|| Ok(Vec::new()), |file| self.blobs.get(file.sha256))
    }

    fn at(&self, point: Point) -> Result<(), DraftError> {
        (self.options.reached)(point).map_err(DraftError::io("the draft cannot be applied"))
    }
}

/// What is known about how far an intent was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It was written down a moment ago.
    None,
    /// Somebody died on the way: what is as it should be was done.
    Unknown,
}

/// The steps that apply drafts, with names for their staging files that nobody else has.
fn staged_steps(inner: &Inner, ids: &[DraftId]) -> Result<Vec<Step>, DraftError> {
    let bytes = random::<8>().map_err(DraftError::io("no name can be made"))?;
    let mark: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(steps(&inner.drafts, ids, |at| format!(".moothall-{mark}-{at}")))
}
