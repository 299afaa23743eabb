//! Performs an agent's calls to the draft store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::drafts::{Draft, DraftId, DraftState, RelPath, TaskId};
use moothall_core::edit::{DraftCall, DraftReply, EditProposal, FileText, SubmissionStatus};
use moothall_core::money::SpendTotals;
use moothall_core::receipt::EffectTiming;
use moothall_core::{Effect, EffectId, EffectResult, Sha256Hex};
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftError, DraftStore, FileRequirement, GateReport,
};

use crate::perform::{EffectPerformer, PerformFuture, TimedResult};

/// How often a waiting agent checks whether a person has decided.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Performs draft calls as one worker on one task, and delegates all other effects.
///
/// A submission that was in progress when its driver was killed is looked up in the store instead
/// of being submitted again.
#[derive(Debug)]
pub struct DraftPerformer {
    inner: Arc<dyn EffectPerformer>,
    client: Arc<DraftClient>,
}

#[derive(Debug)]
struct DraftClient {
    store: Arc<DraftStore>,
    worker: DraftCaller,
    task: TaskId,
}

impl DraftPerformer {
    /// Creates drafts in `store` on behalf of `worker` for `task`.
    pub fn new(
        inner: Arc<dyn EffectPerformer>,
        store: impl Into<Arc<DraftStore>>,
        worker: DraftCaller,
        task: TaskId,
    ) -> Self {
        Self { inner, client: Arc::new(DraftClient { store: store.into(), worker, task }) }
    }

    async fn reply(&self, call: &DraftCall) -> DraftReply {
        match call {
            DraftCall::Wait { drafts, seconds } => self.wait(drafts, *seconds).await,
            call => {
                let call = call.clone();
                self.blocking(move |client| client.reply(&call)).await
            }
        }
    }

    async fn wait(&self, drafts: &[DraftId], seconds: u64) -> DraftReply {
        let until = Instant::now() + Duration::from_secs(seconds);
        loop {
            let ids = drafts.to_vec();
            let reply =
                self.blocking(move |client| client.status_of(&ids).map(DraftReply::Submitted));
            let reply = reply.await;
            let undecided = matches!(
                &reply,
                DraftReply::Submitted(status)
                    if matches!(status.state, DraftState::Escalated | DraftState::Accepted | DraftState::Applying)
            );
            if !undecided || Instant::now() >= until {
                return reply;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The store blocks on locks, disks and sandboxes, so it runs on a blocking thread.
    async fn blocking(
        &self,
        work: impl FnOnce(&DraftClient) -> Result<DraftReply, DraftError> + Send + 'static,
    ) -> DraftReply {
        let client = Arc::clone(&self.client);
        let mut waiting = StoreStopGuard(Some(&self.client.store));
        let done = tokio::task::spawn_blocking(move || work(&client)).await;
        waiting.0 = None;
        match done {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) if error.is_refusal() => DraftReply::Refused { why: error.to_string() },
            Ok(Err(error)) => DraftReply::Failed { why: error.to_string() },
            Err(_) => DraftReply::Failed { why: "the draft store stopped unexpectedly".to_owned() },
        }
    }
}

/// Stops the store if the caller is dropped before the reply arrives. A blocking thread cannot be
/// cancelled, and it must not submit anything for a run that has ended.
struct StoreStopGuard<'a>(Option<&'a DraftStore>);

impl Drop for StoreStopGuard<'_> {
    fn drop(&mut self) {
        if let Some(store) = self.0 {
            store.stop();
        }
    }
}

impl DraftClient {
    fn reply(&self, call: &DraftCall) -> Result<DraftReply, DraftError> {
        match call {
            DraftCall::Files => Ok(DraftReply::Files { paths: self.store.files()? }),
            DraftCall::Read { paths } => self.read(paths),
            DraftCall::Submit(change) => self.submit(change),
            DraftCall::Wait { drafts, .. } => self.status_of(drafts).map(DraftReply::Submitted),
        }
    }

    fn read(&self, paths: &[RelPath]) -> Result<DraftReply, DraftError> {
        let (mut files, mut refused) = (Vec::new(), Vec::new());
        for path in paths {
            match self.open(path, FileRequirement::MayNot) {
                // The text goes to a model, so files that may contain a credential are withheld.
                Ok((draft, text)) if self.store.may_be_shown(&text) => {
                    files.push(FileText { path: draft.path, text });
                }
                Ok((draft, _)) => {
                    self.store.discard(&self.worker, draft.id)?;
                    refused.push(format!("{path}: it may hold a credential"));
                }
                // This error already names the file.
                Err(error @ DraftError::File { .. }) => refused.push(error.to_string()),
                Err(error) if error.is_refusal() => refused.push(format!("{path}: {error}")),
                Err(error) => return Err(error),
            }
        }
        Ok(DraftReply::Read { files, refused })
    }

    fn submit(&self, change: &EditProposal) -> Result<DraftReply, DraftError> {
        // Do not resubmit what this task had applied or escalated before the driver was killed.
        if let Some(done) = self.submitted_before(change)? {
            return Ok(DraftReply::Submitted(done));
        }
        let mut ids = Vec::new();
        for (path, text) in &change.files {
            let existing =
                if text.is_none() { FileRequirement::Must } else { FileRequirement::MayNot };
            let (draft, _) = self.open(path, existing)?;
            let edit = text.clone().map_or(DraftEdit::Delete, DraftEdit::Content);
            ids.push(self.store.write(&self.worker, draft.id, edit, None)?.id);
        }
        let submitted = self.store.submit(&self.worker, &ids, &change.summary)?;
        let mut status = self.status_of(&ids)?;
        status.words = self.review_messages(&submitted.judged);
        if status.state == DraftState::Conflict {
            // Discard every open draft of the task, so the next read returns the current
            // version of all files. The conflicting edit may also have changed files that this
            // change does not touch.
            for draft in self.store.list(&self.worker)? {
                if draft.task == self.task && draft.state.is_open() {
                    self.store.discard(&self.worker, draft.id)?;
                }
            }
        }
        Ok(DraftReply::Submitted(status))
    }

    /// A submission of this task with exactly these contents that is already applied or escalated.
    fn submitted_before(
        &self,
        change: &EditProposal,
    ) -> Result<Option<SubmissionStatus>, DraftError> {
        let mut ids = Vec::new();
        let all = self.store.list(&self.worker)?;
        for (path, text) in &change.files {
            let expected = text.as_ref().map(|text| Sha256Hex::of(text.as_bytes()));
            // A reviewer may have applied only a part of it.
            let proposed = |draft: &Draft| {
                let amended = draft.submission.iter().flat_map(|one| &one.amended);
                let amended = amended.filter(|file| file.draft == draft.id);
                let mut heads = amended.map(|file| file.proposed.file.map(|file| file.sha256));
                heads.next_back().unwrap_or_else(|| draft.head())
            };
            let same = |draft: &&Draft| {
                draft.task == self.task
                    && draft.path == *path
                    && proposed(draft) == expected
                    && is_decided_or_waits(draft)
            };
            let Some(draft) = all.iter().rev().find(same) else { return Ok(None) };
            ids.push(draft.id);
        }
        self.status_of(&ids).map(Some)
    }

    fn open(
        &self,
        path: &RelPath,
        existing: FileRequirement,
    ) -> Result<(Draft, String), DraftError> {
        self.store.request(&self.worker, self.task.as_str(), path.as_str(), existing)
    }

    /// The current state of drafts that were submitted together.
    fn status_of(&self, ids: &[DraftId]) -> Result<SubmissionStatus, DraftError> {
        let mut drafts = Vec::new();
        for id in ids {
            drafts.push(self.store.status(&self.worker, *id)?);
        }
        // A reviewer can approve some files of a submission and reject the others.
        let kept = drafts.iter().find(|draft| draft.state != DraftState::Rejected);
        let first = kept.or_else(|| drafts.first());
        let submission = first.and_then(|draft| draft.submission.as_ref());
        let comments = submission.map_or(&[][..], |one| &one.comments);
        let comment =
            submission.and_then(|one| one.reviewed.as_ref()).map(|status| status.2.clone());
        Ok(SubmissionStatus {
            drafts: ids.to_vec(),
            state: first.map_or(DraftState::Editing, |draft| draft.state),
            findings: submission.map(|one| one.findings.clone()).unwrap_or_default(),
            words: Vec::new(),
            comment,
            comments: comments.iter().map(|one| one.comment.clone()).collect(),
        })
    }

    /// Output of failed checks and of the reviewing model, without texts that may contain a
    /// credential.
    fn review_messages(&self, judged: &GateReport) -> Vec<String> {
        let checks = judged.checks.iter().filter(|check| !check.passed);
        let checks = checks.map(|check| format!("check `{}`:\n{}", check.id, check.output));
        let doubts = judged.doubts.iter().map(|doubt| format!("a reviewer says: {}", doubt.why));
        checks.chain(doubts).filter(|text| self.store.may_be_shown(text)).collect()
    }
}

impl EffectPerformer for DraftPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        let Effect::Draft(call) = effect else { return self.inner.perform(id, effect) };
        Box::pin(async move {
            let started = Instant::now();
            let reply = self.reply(call).await;
            tracing::info!(target: "moothall::run", reply = reply.name(), "draft call complete");
            let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let result = EffectResult::Drafted(Box::new(reply));
            TimedResult { result, timing: EffectTiming { latency_ms, tries: 1 } }
        })
    }

    fn spent(&self) -> Option<SpendTotals> {
        self.inner.spent()
    }

    fn end_outage_waits(&self) {
        self.inner.end_outage_waits();
    }
}

/// Whether a person decides or has decided about the draft, or it was applied. A person who rejected
/// a change is not asked again.
fn is_decided_or_waits(draft: &Draft) -> bool {
    match draft.state {
        DraftState::Applied | DraftState::Escalated => true,
        DraftState::Rejected => draft.submission.as_ref().is_some_and(|one| one.reviewed.is_some()),
        _ => false,
    }
}
