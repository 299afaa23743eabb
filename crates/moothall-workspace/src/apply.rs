//! Applies submissions to the workspace atomically, and recovers after a crash.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    ApplyOutcome, DraftEvent, DraftId, DraftOperation, DraftState, FileState, FileStep, Principal,
    RelPath, steps, undo_steps,
};

use super::error::DraftError;
use super::workspace::StepOutcome;
use super::{ApplyIntent, DraftCaller, DraftStore, DraftStoreState, FailPoint, random};

impl DraftStore {
    /// Applies accepted drafts. A conflict is not an error: it ends this attempt.
    pub(crate) fn apply(
        &self,
        inner: &mut DraftStoreState,
        caller: &DraftCaller,
        ids: &[DraftId],
    ) -> Result<(), DraftError> {
        let steps = staged_steps(inner, ids)?;
        self.at(FailPoint::BeforeIntent)?;
        let command = DraftOperation::Apply { drafts: ids.to_vec(), steps: steps.clone() };
        self.execute_command(inner, caller, command)?;
        self.finish(
            inner,
            caller,
            &ApplyIntent { drafts: ids.to_vec(), steps },
            IntentProgress::None,
        )
    }

    /// Reverts an applied submission if its files have not changed since.
    pub(crate) fn revert(
        &self,
        inner: &mut DraftStoreState,
        caller: &DraftCaller,
        ids: &[DraftId],
    ) -> Result<(), DraftError> {
        let reverse = undo_steps(staged_steps(inner, ids)?);
        self.execute_command(
            inner,
            caller,
            DraftOperation::Undo { drafts: ids.to_vec(), steps: reverse.clone() },
        )?;
        let gate = DraftCaller::new(Principal::gate());
        self.finish(
            inner,
            &gate,
            &ApplyIntent { drafts: ids.to_vec(), steps: reverse },
            IntentProgress::None,
        )
    }

    /// Finishes or rolls back whatever was in progress when a process died.
    pub(crate) fn recover(&self, inner: &mut DraftStoreState) -> Result<(), DraftError> {
        let recovery = DraftCaller::new(Principal::recovery());
        let pending: Vec<ApplyIntent> = inner.pending.values().cloned().collect();
        for intent in pending {
            for step in &intent.steps {
                let content = self.content(step.to)?;
                let salvaged = match self.workspace.salvage(step, &content) {
                    // A link or a device is in the way now; the end of the attempt reports it.
                    Err(error) if error.is_refusal() => None,
                    salvaged => salvaged?,
                };
                if let Some((kept_as, sha256)) = salvaged {
                    let path = step.path.clone();
                    self.record(inner, &recovery, DraftEvent::Salvaged { path, kept_as, sha256 })?;
                }
            }
            match self.finish(inner, &recovery, &intent, IntentProgress::Unknown) {
                Err(error) if error.is_refusal() => {}
                finished => finished?,
            }
        }
        for (state, ids) in self.unfinished(inner) {
            match state {
                DraftState::Accepted => match self.apply(inner, &recovery, &ids) {
                    Err(error) if error.is_refusal() => {}
                    applied => applied?,
                },
                _ => match self.judge_recovered(inner, &ids) {
                    Err(error) if error.is_refusal() => {}
                    judged => judged?,
                },
            }
        }
        Ok(())
    }

    /// Whether an earlier process died or failed midway. While we hold the lock, no other process
    /// is active.
    pub(crate) fn needs_recovery(&self, inner: &DraftStoreState) -> bool {
        !inner.pending.is_empty() || !self.unfinished(inner).is_empty()
    }

    /// Submissions whose verdict or intent was never written.
    fn unfinished(&self, inner: &DraftStoreState) -> Vec<(DraftState, Vec<DraftId>)> {
        let mut found: Vec<(DraftState, Vec<DraftId>)> = Vec::new();
        for draft in inner.drafts.all() {
            if !matches!(draft.state, DraftState::Submitted | DraftState::Accepted) {
                continue;
            }
            let Some(submission) = &draft.submission else { continue };
            if !found.iter().any(|(_, ids)| ids.contains(&draft.id)) {
                found.push((draft.state, in_state(inner, &submission.drafts, draft.state)));
            }
        }
        found
    }

    /// Carries out the remaining steps of an intent and records the outcome.
    fn finish(
        &self,
        inner: &mut DraftStoreState,
        caller: &DraftCaller,
        intent: &ApplyIntent,
        progress: IntentProgress,
    ) -> Result<(), DraftError> {
        self.at(FailPoint::AfterIntent)?;
        let (end, failure) = self.carry_out(&intent.steps, progress);
        self.at(FailPoint::BeforeEnd)?;
        self.execute_command(
            inner,
            caller,
            DraftOperation::End { drafts: intent.drafts.clone(), end },
        )?;
        match failure {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Carries out steps in order. A conflict or an error rolls back all of them.
    fn carry_out(
        &self,
        steps: &[FileStep],
        progress: IntentProgress,
    ) -> (ApplyOutcome, Option<DraftError>) {
        let conflict = |step: &FileStep, found, left| ApplyOutcome::Conflict {
            path: step.path.clone(),
            found,
            left,
        };
        let mut done: Vec<&FileStep> = Vec::new();
        for step in steps {
            let applied = match progress {
                IntentProgress::None => Ok(false),
                IntentProgress::Unknown => self.is_applied(&step.path, step.to),
            };
            let outcome = applied.and_then(|applied| match applied {
                true => Ok(StepOutcome::Done),
                false => {
                    let content = self.content(step.to)?;
                    self.workspace.carry_out(step, &content, &*self.options.reached)
                }
            });
            match outcome {
                Ok(StepOutcome::Done) => done.push(step),
                Ok(StepOutcome::Found(found)) => {
                    let left = self.roll_back(&done);
                    return (conflict(step, found, left), None);
                }
                Err(error) => {
                    // It is unknown how far the step got: remove its staging file first, then undo
                    // what it may have done.
                    if let Ok(content) = self.content(step.to) {
                        let _ = self.workspace.salvage(step, &content);
                    }
                    if self.is_applied(&step.path, step.to).unwrap_or(false) {
                        done.push(step);
                    }
                    let left = self.roll_back(&done);
                    return (conflict(step, None, left), Some(error));
                }
            }
        }
        (ApplyOutcome::Done, None)
    }

    /// Rolls back files that still have the content we wrote. Returns the others.
    fn roll_back(&self, done: &[&FileStep]) -> Vec<RelPath> {
        let mut left = Vec::new();
        for step in done.iter().rev() {
            let reverse = FileStep { from: step.to, to: step.from, ..(*step).clone() };
            let outcome = self
                .content(reverse.to)
                .and_then(|content| self.workspace.carry_out(&reverse, &content, &|_| Ok(())));
            if !matches!(outcome, Ok(StepOutcome::Done)) {
                left.push(step.path.clone());
            }
        }
        left
    }

    /// Whether a file already has the content that a step should produce.
    fn is_applied(&self, path: &RelPath, expected: Option<FileState>) -> Result<bool, DraftError> {
        let applied = self.workspace.read(path)?.map(|file| FileState {
            sha256: Sha256Hex::of(&file.bytes),
            executable: file.executable(),
        });
        Ok(applied == expected)
    }

    fn content(&self, file: Option<FileState>) -> Result<Vec<u8>, DraftError> {
        file.map_or_else(|| Ok(Vec::new()), |file| self.blobs.get(file.sha256))
    }

    fn at(&self, point: FailPoint) -> Result<(), DraftError> {
        (self.options.reached)(point).map_err(DraftError::io("cannot apply the draft"))
    }
}

/// The drafts in this state. A reviewer can reject some files of a submission.
pub(crate) fn in_state(
    inner: &DraftStoreState,
    ids: &[DraftId],
    state: DraftState,
) -> Vec<DraftId> {
    let gate = Principal::gate();
    let fits = |id: &DraftId| inner.drafts.of(&gate, *id).is_some_and(|draft| draft.state == state);
    ids.iter().copied().filter(fits).collect()
}

/// How much of an intent may have been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IntentProgress {
    /// The intent was just written.
    None,
    /// A process died midway: files that already have the target content count as done.
    Unknown,
}

/// The steps that apply drafts, with unique staging file names.
fn staged_steps(inner: &DraftStoreState, ids: &[DraftId]) -> Result<Vec<FileStep>, DraftError> {
    let bytes = random::<8>().map_err(DraftError::io("cannot generate a random name"))?;
    let suffix: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(steps(&inner.drafts, ids, |at| format!(".moothall-{suffix}-{at}")))
}
