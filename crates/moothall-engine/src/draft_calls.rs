//! Performing what an agent asks of the store of drafts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::drafts::{Draft, DraftId, RelPath, State, TaskId};
use moothall_core::edit::{Change, DraftCall, DraftReply, FileText, Submitted};
use moothall_core::money::Spent;
use moothall_core::receipt::Timing;
use moothall_core::{Effect, EffectId, EffectResult, Sha256Hex};
use moothall_workspace::{Caller, DraftError, DraftStore, Edit, Existing, Judged};

use crate::perform::{PerformFuture, Performed, Performer};

/// How often a waiting agent looks whether a person has decided.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Works with drafts as one worker on one task, and performs everything else as another performer
/// does.
///
/// A submission that was under way when its driver was killed is looked up, not made again: the
/// store knows what became of it.
#[derive(Debug)]
pub struct DraftPerformer {
    others: Arc<dyn Performer>,
    desk: Arc<Desk>,
}

#[derive(Debug)]
struct Desk {
    store: Arc<DraftStore>,
    worker: Caller,
    task: TaskId,
}

impl DraftPerformer {
    /// Drafts are made there, by this worker, for this task.
    pub fn new(
        others: Arc<dyn Performer>,
        store: impl Into<Arc<DraftStore>>,
        worker: Caller,
        task: TaskId,
    ) -> Self {
        Self { others, desk: Arc::new(Desk { store: store.into(), worker, task }) }
    }

    async fn reply(&self, call: &DraftCall) -> DraftReply {
        match call {
            DraftCall::Wait { drafts, seconds } => self.wait(drafts, *seconds).await,
            call => {
                let call = call.clone();
                self.blocking(move |desk| desk.reply(&call)).await
            }
        }
    }

    async fn wait(&self, drafts: &[DraftId], seconds: u64) -> DraftReply {
        let until = Instant::now() + Duration::from_secs(seconds);
        loop {
            let ids = drafts.to_vec();
            let reply = self.blocking(move |desk| desk.standing(&ids).map(DraftReply::Submitted));
            let reply = reply.await;
            let undecided = matches!(
                &reply,
                DraftReply::Submitted(said)
                    if matches!(said.state, State::Escalated | State::Accepted | State::Applying)
            );
            if !undecided || Instant::now() >= until {
                return reply;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The store waits for locks, disks and sandboxes, so it has a thread of its own.
    async fn blocking(
        &self,
        work: impl FnOnce(&Desk) -> Result<DraftReply, DraftError> + Send + 'static,
    ) -> DraftReply {
        let desk = Arc::clone(&self.desk);
        let mut waiting = Waiting(Some(&self.desk.store));
        let done = tokio::task::spawn_blocking(move || work(&desk)).await;
        waiting.0 = None;
        match done {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) if error.is_refusal() => DraftReply::Refused { why: error.to_string() },
            Ok(Err(error)) => DraftReply::Failed { why: error.to_string() },
            Err(_) => DraftReply::Failed { why: "the store of drafts broke".to_owned() },
        }
    }
}

/// Somebody who waits for the store. A thread cannot be dropped: whoever goes away before the
/// answer tells it to stop, and then nothing is handed in for a run that is over.
struct Waiting<'a>(Option<&'a DraftStore>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(store) = self.0 {
            store.stop();
        }
    }
}

impl Desk {
    fn reply(&self, call: &DraftCall) -> Result<DraftReply, DraftError> {
        match call {
            DraftCall::Files => Ok(DraftReply::Files { paths: self.store.files()? }),
            DraftCall::Read { paths } => self.read(paths),
            DraftCall::Submit(change) => self.submit(change),
            DraftCall::Wait { drafts, .. } => self.standing(drafts).map(DraftReply::Submitted),
        }
    }

    fn read(&self, paths: &[RelPath]) -> Result<DraftReply, DraftError> {
        let (mut files, mut refused) = (Vec::new(), Vec::new());
        for path in paths {
            match self.open(path, Existing::MayNot) {
                // The text goes to a model: what may hold a credential does not.
                Ok((draft, text)) if self.store.may_be_shown(&text) => {
                    files.push(FileText { path: draft.path, text });
                }
                Ok((draft, _)) => {
                    self.store.discard(&self.worker, draft.id)?;
                    refused.push(format!("{path}: it may hold a credential"));
                }
                // It names the file by itself.
                Err(error @ DraftError::File { .. }) => refused.push(error.to_string()),
                Err(error) if error.is_refusal() => refused.push(format!("{path}: {error}")),
                Err(error) => return Err(error),
            }
        }
        Ok(DraftReply::Read { files, refused })
    }

    fn submit(&self, change: &Change) -> Result<DraftReply, DraftError> {
        // What this task applied or escalated before we were killed is not handed in again.
        if let Some(done) = self.submitted_before(change)? {
            return Ok(DraftReply::Submitted(done));
        }
        let mut ids = Vec::new();
        for (path, text) in &change.files {
            let existing = if text.is_none() { Existing::Must } else { Existing::MayNot };
            let (draft, _) = self.open(path, existing)?;
            let edit = text.clone().map_or(Edit::Delete, Edit::Content);
            ids.push(self.store.write(&self.worker, draft.id, edit, None)?.id);
        }
        let submitted = self.store.submit(&self.worker, &ids, &change.summary)?;
        let mut said = self.standing(&ids)?;
        said.words = self.words(&submitted.judged);
        if said.state == State::Conflict {
            // The next look shall be at what all files are now, also at those that this change did
            // not touch: whoever changed one may have changed them together.
            for draft in self.store.list(&self.worker)? {
                if draft.task == self.task && draft.state.is_open() {
                    self.store.discard(&self.worker, draft.id)?;
                }
            }
        }
        Ok(DraftReply::Submitted(said))
    }

    /// A submission of this task with exactly these contents that is not open any more.
    fn submitted_before(&self, change: &Change) -> Result<Option<Submitted>, DraftError> {
        let mut ids = Vec::new();
        let all = self.store.list(&self.worker)?;
        for (path, text) in &change.files {
            let wanted = text.as_ref().map(|text| Sha256Hex::of(text.as_bytes()));
            let same = |draft: &&Draft| {
                draft.task == self.task
                    && draft.path == *path
                    && draft.head() == wanted
                    && matches!(draft.state, State::Applied | State::Escalated)
            };
            let Some(draft) = all.iter().rev().find(same) else { return Ok(None) };
            ids.push(draft.id);
        }
        self.standing(&ids).map(Some)
    }

    fn open(&self, path: &RelPath, existing: Existing) -> Result<(Draft, String), DraftError> {
        self.store.request(&self.worker, self.task.as_str(), path.as_str(), existing)
    }

    /// Where drafts stand that were handed in together.
    fn standing(&self, ids: &[DraftId]) -> Result<Submitted, DraftError> {
        let mut drafts = Vec::new();
        for id in ids {
            drafts.push(self.store.status(&self.worker, *id)?);
        }
        let first = drafts.first();
        let submission = first.and_then(|draft| draft.submission.as_ref());
        let comment = submission.and_then(|one| one.reviewed.as_ref()).map(|said| said.2.clone());
        Ok(Submitted {
            drafts: ids.to_vec(),
            state: first.map_or(State::Editing, |draft| draft.state),
            findings: submission.map(|one| one.findings.clone()).unwrap_or_default(),
            words: Vec::new(),
            comment,
        })
    }

    /// What checks and a reviewing model say, as far as a model may hear it.
    fn words(&self, judged: &Judged) -> Vec<String> {
        let checks = judged.checks.iter().filter(|check| !check.passed);
        let checks = checks.map(|check| format!("check `{}`:\n{}", check.id, check.output));
        let doubts = judged.doubts.iter().map(|doubt| format!("a reviewer says: {}", doubt.why));
        checks.chain(doubts).filter(|words| self.store.may_be_shown(words)).collect()
    }
}

impl Performer for DraftPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        let Effect::Draft(call) = effect else { return self.others.perform(id, effect) };
        Box::pin(async move {
            let begun = Instant::now();
            let reply = self.reply(call).await;
            tracing::info!(target: "moothall::run", reply = reply.name(), "drafts asked");
            let latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let result = EffectResult::Drafted(Box::new(reply));
            Performed { result, timing: Timing { latency_ms, tries: 1 } }
        })
    }

    fn spent(&self) -> Option<Spent> {
        self.others.spent()
    }
}
