//! Checks and submits drafts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use moothall_core::drafts::{
    Draft, DraftEvent, DraftId, DraftOperation, DraftRefusal, DraftState, DraftSubmission,
    FileState, JournalFinding, MAX_TEXT_CHARS, Principal,
};
use moothall_core::gate::reviewer::ReviewDoubt;
use moothall_core::gate::{
    CheckResults, FileChange, FileComparison, FileContent, FileContext, FingerprintKey, GateAction,
    GateDecision, GateFinding, GateRule, LineStats, Policy, PolicyDate, judge_until,
};

use super::checks::{CheckReport, DraftCheckRun};
use super::error::DraftError;
use super::prepared_drafts::{PreparedDrafts, PreparedFile, difference, text};
use super::{DAY_MS, DraftCaller, DraftStore, DraftStoreState, policy_files};

/// Attempts to judge drafts that change in the meantime.
const MAX_JUDGE_ATTEMPTS: usize = 3;

/// The gate's verdict and the diff it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateReport {
    pub verdict: GateDecision,
    /// Unified diff of all files.
    pub diff: String,
    pub checks: Vec<CheckReport>,
    /// Doubts of the reviewing model, in its own words.
    pub doubts: Vec<ReviewDoubt>,
}

/// The result of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionResult {
    /// The current drafts.
    pub drafts: Vec<Draft>,
    pub judged: GateReport,
}

/// A file of a submission, for review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionFile {
    pub draft: Draft,
    pub base: Option<String>,
    pub after: Option<String>,
}

impl DraftStore {
    /// Runs the checks and returns the verdict the gate would give now. Changes nothing.
    pub fn check(&self, caller: &DraftCaller, ids: &[DraftId]) -> Result<GateReport, DraftError> {
        let prepared = self.prepare(caller, ids, None)?;
        let found = self.run_checks(&prepared, "")?;
        Ok(self.gate_report(&prepared, found))
    }

    /// Reads drafts to judge. With a summary, also refuses drafts that cannot be submitted.
    fn prepare(
        &self,
        caller: &DraftCaller,
        ids: &[DraftId],
        summary: Option<&str>,
    ) -> Result<PreparedDrafts, DraftError> {
        let most = self.policy.limits.max_files_per_changeset;
        if ids.len() > most {
            let message = format!("too many drafts to check together (limit: {most})");
            return Err(DraftError::Input(message));
        }
        self.with(|store, inner| {
            for id in ids {
                store.readable(inner, caller, *id)?;
            }
            if let Some(summary) = summary {
                let command =
                    DraftOperation::Submit { drafts: ids.to_vec(), summary: summary.to_owned() };
                store.require_allowed(inner, caller, command)?;
            }
            store.prepared(inner, ids)
        })
    }

    fn prepared(
        &self,
        inner: &DraftStoreState,
        ids: &[DraftId],
    ) -> Result<PreparedDrafts, DraftError> {
        let read = |id: &DraftId| self.prepare_file(inner, &self.draft_by_id(inner, *id)?);
        let files = ids.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(PreparedDrafts { seal: inner.drafts.seal(ids), files: Arc::new(files) })
    }

    /// The diff of one draft, without judging it.
    pub fn diff(&self, caller: &DraftCaller, id: DraftId) -> Result<String, DraftError> {
        let file = self
            .with(|store, inner| store.prepare_file(inner, &store.readable(inner, caller, id)?))?;
        Ok(difference(&file))
    }

    /// Submits drafts together. They are applied immediately if the verdict allows it. Checks run
    /// before anything is recorded: if the process is killed in the meantime, nothing was submitted.
    pub fn submit(
        &self,
        caller: &DraftCaller,
        ids: &[DraftId],
        summary: &str,
    ) -> Result<SubmissionResult, DraftError> {
        self.submit_with(caller, ids, summary, &[])
    }

    /// Like [`Self::submit`], with findings that the gate cannot make itself.
    #[tracing::instrument(name = "draft_submission", skip_all, fields(drafts = ids.len()))]
    pub(crate) fn submit_with(
        &self,
        caller: &DraftCaller,
        ids: &[DraftId],
        summary: &str,
        more: &[GateFinding],
    ) -> Result<SubmissionResult, DraftError> {
        let summary: String = summary.chars().take(MAX_TEXT_CHARS).collect();
        let mut prepared = self.prepare(caller, ids, Some(&summary))?;
        let found = self.run_checks(&prepared, &summary)?;
        let summary = self.recordable(&summary);
        for _ in 0..MAX_JUDGE_ATTEMPTS {
            let mut judged = self.gate_report(&prepared, found.clone());
            for finding in more {
                judged.verdict.action = judged.verdict.action.max(finding.action);
                judged.verdict.findings.push(finding.clone());
            }
            let done = self.with(|store, inner| {
                if store.stopped.is_cancelled() {
                    return Err(DraftError::Stopped);
                }
                for id in ids {
                    store.readable(inner, caller, *id)?;
                }
                if inner.drafts.seal(ids) != prepared.seal {
                    return Ok(None);
                }
                store.record_policy_change(inner)?;
                let command =
                    DraftOperation::Submit { drafts: ids.to_vec(), summary: summary.clone() };
                store.execute_command(inner, caller, command)?;
                store.record_decision(inner, Principal::gate(), ids, &judged.verdict)?;
                let known = ids.iter().map(|id| store.draft_by_id(inner, *id));
                Ok(Some(known.collect::<Result<_, _>>()?))
            })?;
            if let Some(drafts) = done {
                return Ok(SubmissionResult { drafts, judged });
            }
            // The drafts changed in the meantime; the verdict is about an older version.
            prepared = self.prepare(caller, ids, Some(&summary))?;
        }
        Err(DraftError::Busy)
    }

    /// The recorded verdict on the submission of a draft. Runs nothing.
    pub fn outcome(
        &self,
        caller: &DraftCaller,
        id: DraftId,
    ) -> Result<SubmissionResult, DraftError> {
        let (drafts, submission, prepared) = self.with(|store, inner| {
            let draft =
                inner.drafts.of(&caller.principal, id).ok_or(DraftRefusal::Unknown)?.clone();
            let Some(submission) = draft.submission else {
                return Err(DraftRefusal::State {
                    state: draft.state,
                    what: "shown as a submission",
                }
                .into());
            };
            let ids = &submission.drafts;
            // Contents are removed: immediately if they contain a credential, others after a while.
            // The verdict is kept.
            let prepared = match store.prepared(inner, ids) {
                Ok(prepared) => Some(prepared),
                Err(
                    DraftError::ContentGone(_) | DraftError::Refused(DraftRefusal::ContentRemoved),
                ) => None,
                Err(error) => return Err(error),
            };
            let drafts: Result<Vec<Draft>, DraftError> =
                ids.iter().map(|id| store.draft_by_id(inner, *id)).collect();
            Ok((drafts?, submission, prepared))
        })?;
        let files = prepared.as_ref().map_or(&[][..], |prepared| &prepared.files);
        let findings = submission.findings.into_iter().map(gate_finding);
        let verdict = GateDecision {
            action: submission.action.unwrap_or(GateAction::Escalate),
            policy: submission.policy.unwrap_or_else(|| self.policy.hash()),
            findings: findings.collect(),
            stats: lines(files),
        };
        let diff = differences(files);
        let judged = GateReport { verdict, diff, checks: Vec::new(), doubts: Vec::new() };
        Ok(SubmissionResult { drafts, judged })
    }

    /// The files of a draft's submission, for review. Judges it again if the policy changed, so
    /// that an approval is bound to what is shown.
    pub fn shown(
        &self,
        caller: &DraftCaller,
        id: DraftId,
    ) -> Result<Vec<SubmissionFile>, DraftError> {
        let (submission_ids, again) = self.with(|store, inner| {
            let draft = inner.drafts.of(&caller.principal, id).ok_or(DraftRefusal::Unknown)?;
            let submission = draft.submission.as_ref();
            let submission_ids = submission.map_or_else(|| vec![id], |one| one.drafts.clone());
            let again = store.is_judged_by_another_policy(draft);
            Ok((
                submission_ids.clone(),
                again.then(|| store.prepared(inner, &submission_ids)).transpose()?,
            ))
        })?;
        let judged = again.map(|prepared| (self.gate_report(&prepared, None), prepared.seal));
        self.with(|store, inner| {
            if let Some((judged, seal)) = judged
                && inner.drafts.seal(&submission_ids) == seal
                && store.is_judged_by_another_policy(&store.draft_by_id(inner, id)?)
            {
                // Viewing is not a decision. Even if this process's policy would now allow the
                // submission (it may be the older one), it keeps waiting for review.
                let mut verdict = judged.verdict;
                verdict.action = verdict.action.max(GateAction::Escalate);
                store.record_decision(inner, Principal::gate(), &submission_ids, &verdict)?;
            }
            let text = |bytes: Option<(Vec<u8>, bool)>| {
                bytes.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
            };
            let shown = |id: &DraftId| {
                let draft = store.draft_by_id(inner, *id)?;
                let owned = store.prepare_file(inner, &draft)?;
                Ok(SubmissionFile { draft, base: text(owned.base), after: text(owned.after) })
            };
            submission_ids.iter().map(shown).collect()
        })
    }

    /// Whether a submission is waiting for review that another policy judged.
    fn is_judged_by_another_policy(&self, draft: &Draft) -> bool {
        let other = |one: &DraftSubmission| one.policy != Some(self.policy.hash());
        draft.state == DraftState::Escalated && draft.submission.as_ref().is_some_and(other)
    }

    /// Judges a submission that was recorded before a process died. Runs under the lock.
    pub(crate) fn judge_recovered(
        &self,
        inner: &mut DraftStoreState,
        ids: &[DraftId],
    ) -> Result<(), DraftError> {
        let judged = self.gate_report(&self.prepared(inner, ids)?, None);
        self.record_decision(inner, Principal::recovery(), ids, &judged.verdict)
    }

    /// Records a verdict and applies the drafts if it allows that.
    fn record_decision(
        &self,
        inner: &mut DraftStoreState,
        principal: Principal,
        ids: &[DraftId],
        verdict: &GateDecision,
    ) -> Result<(), DraftError> {
        let command = DraftOperation::Judge {
            drafts: ids.to_vec(),
            policy: verdict.policy,
            action: verdict.action,
            findings: verdict.findings.iter().map(journal_finding).collect(),
        };
        let caller = DraftCaller::new(principal);
        self.execute_command(inner, &caller, command)?;
        match verdict.action {
            GateAction::Allow | GateAction::Warn => self.apply(inner, &caller, ids)?,
            GateAction::Reject => {
                let held_secret = ids.iter().any(|id| {
                    inner.drafts.of(&caller.principal, *id).is_some_and(|one| one.content_removed)
                });
                if held_secret {
                    self.sweep(inner)?;
                }
            }
            GateAction::Escalate => {}
        }
        Ok(())
    }

    /// Uses check results only if they are about exactly these contents.
    pub(crate) fn gate_report(
        &self,
        prepared: &PreparedDrafts,
        found: Option<DraftCheckRun>,
    ) -> GateReport {
        let same = found.filter(|found| found.seal == prepared.seal);
        let (check_results, checks, doubts) = match same {
            Some(DraftCheckRun { results, checks, doubts, .. }) => (results, checks, doubts),
            None => Default::default(),
        };
        let files = &prepared.files;
        let verdict = self.verdict(Arc::clone(files), check_results);
        GateReport { verdict, diff: differences(files), checks, doubts }
    }

    pub(crate) fn verdict(
        &self,
        files: Arc<Vec<PreparedFile>>,
        check_results: CheckResults,
    ) -> GateDecision {
        judge_with_timeout(&self.policy, files, check_results, &self.key, today(self.now()))
    }

    pub(crate) fn prepare_file(
        &self,
        inner: &DraftStoreState,
        draft: &Draft,
    ) -> Result<PreparedFile, DraftError> {
        if draft.content_removed {
            return Err(DraftRefusal::ContentRemoved.into());
        }
        let after = self.stored_side(draft.change.file)?;
        self.prepare_content(inner, draft, after)
    }

    fn stored_side(&self, file: Option<FileState>) -> Result<Option<(Vec<u8>, bool)>, DraftError> {
        let read = |file: FileState| Ok((self.blobs.get(file.sha256)?, file.executable));
        file.map(read).transpose()
    }

    /// Like [`Self::prepare_file`], with a content that does not have to be stored.
    pub(crate) fn prepare_content(
        &self,
        inner: &DraftStoreState,
        draft: &Draft,
        after: Option<(Vec<u8>, bool)>,
    ) -> Result<PreparedFile, DraftError> {
        let rename_to = draft.change.rename_to.clone();
        let new = rename_to.as_ref().or_else(|| draft.base.is_none().then_some(&draft.path));
        let twins = match new {
            Some(path) => self.workspace.twins(path)?,
            None => Vec::new(),
        };
        let to = rename_to.as_ref().unwrap_or(&draft.path);
        Ok(PreparedFile {
            path: draft.path.clone(),
            ignored: self.workspace.ignores(to),
            below_head: self.workspace.below_head(to),
            // Skip the comparison if the content is no longer stored; contents are kept for longer
            // than a day.
            origin: self.stored_side(self.origin(inner, draft)).unwrap_or_default(),
            rename_to,
            base: self.stored_side(draft.base)?,
            after,
            twins,
        })
    }

    /// The file before its first draft that was applied within the last day, if any. Includes
    /// drafts of every worker, because one worker can use many names.
    fn origin(&self, inner: &DraftStoreState, draft: &Draft) -> Option<FileState> {
        let since = self.now().saturating_sub(DAY_MS);
        let earlier = inner.drafts.all().filter(|one| {
            one.id != draft.id
                && one.state == DraftState::Applied
                && one.path == draft.path
                && one.touched >= since
        });
        earlier.min_by_key(|one| one.touched)?.base
    }

    /// Records once that the policy on disk differs. The old one stays in force, so that changing
    /// the file cannot loosen a running gate.
    fn record_policy_change(&self, inner: &mut DraftStoreState) -> Result<(), DraftError> {
        if inner.policy_differs {
            return Ok(());
        }
        let same = policy_files::load(&self.options)
            .is_ok_and(|(on_disk, _)| on_disk.hash() == self.policy.hash());
        if !same {
            inner.policy_differs = true;
            let event = DraftEvent::PolicyDiffers { policy: self.policy.hash() };
            self.record(inner, &DraftCaller::new(Principal::gate()), event)?;
        }
        Ok(())
    }
}

/// A finding as it is stored in the journal.
pub(crate) fn journal_finding(one: &GateFinding) -> JournalFinding {
    JournalFinding {
        rule: one.rule,
        action: one.action,
        path: one.path.clone(),
        line: one.line,
        message: match &one.fingerprint {
            Some(fingerprint) => format!("{} [{fingerprint}]", one.message),
            None => one.message.clone(),
        },
    }
}

/// A finding of the journal, which has its fingerprint in the message.
pub(crate) fn gate_finding(one: JournalFinding) -> GateFinding {
    let JournalFinding { rule, action, path, line, message } = one;
    GateFinding { rule, action, path, line, message, fingerprint: None }
}

/// Judges on a separate thread. Escalates and stops the thread if that takes longer than the policy
/// allows.
fn judge_with_timeout(
    policy: &Policy,
    files: Arc<Vec<PreparedFile>>,
    check_results: CheckResults,
    key: &FingerprintKey,
    today: PolicyDate,
) -> GateDecision {
    let (send, receive) = mpsc::channel();
    let limit = Duration::from_millis(policy.limits.gate_timeout_ms);
    let path = files.first().map(|file| file.path.clone());
    let (hash, on_thread, key) = (policy.hash(), policy.clone(), key.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let started = std::thread::Builder::new().name("gate".to_owned()).spawn(move || {
        let changes: Vec<FileChange<'_>> = files
            .iter()
            .map(|file| FileChange {
                path: &file.path,
                rename_to: file.rename_to.as_ref(),
                base: side(&file.base),
                draft: side(&file.after),
                around: FileContext {
                    twins: &file.twins,
                    ignored: file.ignored,
                    below_head: file.below_head,
                    origin: side(&file.origin),
                },
            })
            .collect();
        // The receiver may have timed out.
        let _ = send.send(judge_until(&on_thread, &changes, &check_results, &key, today, &stopped));
    });
    let decision = started.ok().and_then(|_| receive.recv_timeout(limit).ok());
    stop.store(true, Ordering::Relaxed);
    decision.unwrap_or_else(|| GateDecision {
        action: GateAction::Escalate,
        policy: hash,
        findings: path
            .into_iter()
            .map(|path| GateFinding {
                rule: GateRule::GateError,
                action: GateAction::Escalate,
                path,
                line: None,
                message: "the gate timed out".to_owned(),
                fingerprint: None,
            })
            .collect(),
        stats: LineStats::default(),
    })
}

/// Line counts of all files.
fn lines(files: &[PreparedFile]) -> LineStats {
    let mut stats = LineStats::default();
    for file in files {
        stats.add(&FileComparison::of_texts(&text(&file.base), &text(&file.after)).stats);
    }
    stats
}

fn differences(files: &[PreparedFile]) -> String {
    files.iter().map(difference).collect()
}

fn side(side: &Option<(Vec<u8>, bool)>) -> Option<FileContent<'_>> {
    side.as_ref().map(|(bytes, executable)| FileContent { bytes, executable: *executable })
}

/// The UTC date of a time in milliseconds since 1970.
pub fn today(ms: u64) -> PolicyDate {
    // Converts days since 1970 by counting years and months.
    let mut days = ms / (24 * 60 * 60 * 1000);
    let leap = |year: u16| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let mut year = 1970;
    loop {
        let of_year = if leap(year) { 366 } else { 365 };
        if days < of_year || year == u16::MAX {
            break;
        }
        days -= of_year;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for of_month in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < of_month {
            break;
        }
        days -= of_month;
        month += 1;
    }
    PolicyDate { year, month, day: days as u8 + 1 }
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod tests;
