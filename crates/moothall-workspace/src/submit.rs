//! Showing drafts to the gate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use moothall_core::drafts::{
    Command, Draft, DraftId, Event, FileState, JudgedFinding, MAX_TEXT_CHARS, Principal, Refusal,
    State, Submission, decide,
};
use moothall_core::gate::reviewer::Doubt;
use moothall_core::gate::{
    Action, Comparison, Content, FileChange, Finding, FingerprintKey, LineStats, Looked, Policy,
    Rule, Surroundings, Today, Verdict, judge_until,
};

use super::checks::{CheckReport, Found};
use super::error::DraftError;
use super::prepared::{Owned, Prepared, difference, text};
use super::{Caller, DAY_MS, DraftStore, Inner, policy_files};

/// How often drafts are judged again because they changed meanwhile.
const JUDGE_TRIES: usize = 3;

/// What the gate would say, and the difference it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The difference of all files.
    pub diff: String,
    /// The checks that ran for it.
    pub checks: Vec<CheckReport>,
    /// What the reviewing model doubts, in its own words.
    pub doubts: Vec<Doubt>,
}

/// What came of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The drafts as they are now.
    pub drafts: Vec<Draft>,
    /// What the gate said.
    pub judged: Judged,
}

/// A file of a submission as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFile {
    /// The draft.
    pub draft: Draft,
    /// The file before.
    pub base: Option<String>,
    /// The file after.
    pub after: Option<String>,
}

impl DraftStore {
    /// What the gate would say now, with the checks of the policy. Changes nothing.
    pub fn check(&self, caller: &Caller, ids: &[DraftId]) -> Result<Judged, DraftError> {
        let prepared = self.prepare(caller, ids, None)?;
        let found = self.look(&prepared, "")?;
        Ok(self.judged(&prepared, found))
    }

    /// Reads drafts that are to be judged. With a summary they shall be handed in, and those that
    /// cannot be are refused.
    fn prepare(
        &self,
        caller: &Caller,
        ids: &[DraftId],
        summary: Option<&str>,
    ) -> Result<Prepared, DraftError> {
        let most = self.policy.limits.max_files_per_changeset;
        if ids.len() > most {
            let words = format!("at most {most} drafts are looked at together");
            return Err(DraftError::Input(words));
        }
        self.with(|store, inner| {
            for id in ids {
                store.readable(inner, caller, *id)?;
            }
            if let Some(summary) = summary {
                let command = Command::Submit { drafts: ids.to_vec(), summary: summary.to_owned() };
                let (limits, reviewers) = (store.policy.draft_limits(), &store.policy.reviewers);
                decide(&inner.drafts, &caller.who, command, &limits, reviewers, store.now())?;
            }
            store.prepared(inner, ids)
        })
    }

    fn prepared(&self, inner: &Inner, ids: &[DraftId]) -> Result<Prepared, DraftError> {
        let read = |id: &DraftId| self.owned(inner, &self.known(inner, *id)?);
        let files = ids.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Prepared { seal: inner.drafts.seal(ids), files: Arc::new(files) })
    }

    /// The difference of one draft, without judging it.
    pub fn diff(&self, caller: &Caller, id: DraftId) -> Result<String, DraftError> {
        let file =
            self.with(|store, inner| store.owned(inner, &store.readable(inner, caller, id)?))?;
        Ok(difference(&file))
    }

    /// Hands drafts in together. What nothing stands against is applied at once. Checks run before
    /// anything is written down: whoever is killed meanwhile has submitted nothing.
    pub fn submit(
        &self,
        caller: &Caller,
        ids: &[DraftId],
        summary: &str,
    ) -> Result<Submitted, DraftError> {
        let summary: String = summary.chars().take(MAX_TEXT_CHARS).collect();
        let mut prepared = self.prepare(caller, ids, Some(&summary))?;
        let found = self.look(&prepared, &summary)?;
        let summary = self.recordable(&summary);
        for _ in 0..JUDGE_TRIES {
            let judged = self.judged(&prepared, found.clone());
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
                store.notice_policy(inner)?;
                let command = Command::Submit { drafts: ids.to_vec(), summary: summary.clone() };
                store.tell(inner, caller, command)?;
                store.record_judged(inner, Principal::gate(), ids, &judged.verdict)?;
                let known = ids.iter().map(|id| store.known(inner, *id));
                Ok(Some(known.collect::<Result<_, _>>()?))
            })?;
            if let Some(drafts) = done {
                return Ok(Submitted { drafts, judged });
            }
            // Somebody wrote meanwhile; what was judged is not what would be handed in.
            prepared = self.prepare(caller, ids, Some(&summary))?;
        }
        Err(DraftError::Busy)
    }

    /// What became of the submission that a draft belongs to, as it was judged then. Nothing runs.
    pub fn outcome(&self, caller: &Caller, id: DraftId) -> Result<Submitted, DraftError> {
        let (drafts, submission, prepared) = self.with(|store, inner| {
            let draft = inner.drafts.of(&caller.who, id).ok_or(Refusal::Unknown)?.clone();
            let Some(submission) = draft.submission else {
                return Err(Refusal::State { state: draft.state, what: "asked about" }.into());
            };
            let ids = &submission.drafts;
            // Contents go: those of credentials at once, others with the time. The verdict stays.
            let prepared = match store.prepared(inner, ids) {
                Ok(prepared) => Some(prepared),
                Err(DraftError::ContentGone(_) | DraftError::Refused(Refusal::ContentRemoved)) => {
                    None
                }
                Err(error) => return Err(error),
            };
            let drafts: Result<Vec<Draft>, DraftError> =
                ids.iter().map(|id| store.known(inner, *id)).collect();
            Ok((drafts?, submission, prepared))
        })?;
        let files = prepared.as_ref().map_or(&[][..], |prepared| &prepared.files);
        let findings = submission.findings.into_iter().map(|one| Finding {
            rule: one.rule,
            action: one.action,
            path: one.path,
            line: one.line,
            message: one.message,
            fingerprint: None,
        });
        let verdict = Verdict {
            action: submission.action.unwrap_or(Action::Escalate),
            policy: submission.policy.unwrap_or_else(|| self.policy.hash()),
            findings: findings.collect(),
            stats: lines(files),
        };
        let diff = differences(files);
        let judged = Judged { verdict, diff, checks: Vec::new(), doubts: Vec::new() };
        Ok(Submitted { drafts, judged })
    }

    /// The files of the submission that a draft belongs to, for a person. Judged again if the
    /// policy is another one now, so that what is shown is what an approval would be bound to.
    pub fn shown(&self, caller: &Caller, id: DraftId) -> Result<Vec<ShownFile>, DraftError> {
        let (together, again) = self.with(|store, inner| {
            let draft = inner.drafts.of(&caller.who, id).ok_or(Refusal::Unknown)?;
            let submission = draft.submission.as_ref();
            let together = submission.map_or_else(|| vec![id], |one| one.drafts.clone());
            let again = store.is_judged_by_another_policy(draft);
            Ok((together.clone(), again.then(|| store.prepared(inner, &together)).transpose()?))
        })?;
        let judged = again.map(|prepared| (self.judged(&prepared, None), prepared.seal));
        self.with(|store, inner| {
            if let Some((judged, seal)) = judged
                && inner.drafts.seal(&together) == seal
                && store.is_judged_by_another_policy(&store.known(inner, id)?)
            {
                // Looking at it is no decision: a policy that has nothing against it any more, as
                // an older one of this process may, lets nothing pass that waits for a person.
                let mut verdict = judged.verdict;
                verdict.action = verdict.action.max(Action::Escalate);
                store.record_judged(inner, Principal::gate(), &together, &verdict)?;
            }
            let text = |bytes: Option<(Vec<u8>, bool)>| {
                bytes.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
            };
            let shown = |id: &DraftId| {
                let draft = store.known(inner, *id)?;
                let owned = store.owned(inner, &draft)?;
                Ok(ShownFile { draft, base: text(owned.base), after: text(owned.after) })
            };
            together.iter().map(shown).collect()
        })
    }

    /// Whether a person is asked about something that another policy judged.
    fn is_judged_by_another_policy(&self, draft: &Draft) -> bool {
        let other = |one: &Submission| one.policy != Some(self.policy.hash());
        draft.state == State::Escalated && draft.submission.as_ref().is_some_and(other)
    }

    /// Judges what was handed in when a process died, under the lock.
    pub(super) fn judge_left_over(
        &self,
        inner: &mut Inner,
        ids: &[DraftId],
    ) -> Result<(), DraftError> {
        let judged = self.judged(&self.prepared(inner, ids)?, None);
        self.record_judged(inner, Principal::recovery(), ids, &judged.verdict)
    }

    /// Writes a verdict down, and applies what may be applied.
    fn record_judged(
        &self,
        inner: &mut Inner,
        who: Principal,
        ids: &[DraftId],
        verdict: &Verdict,
    ) -> Result<(), DraftError> {
        let findings = verdict.findings.iter().map(|one| JudgedFinding {
            rule: one.rule,
            action: one.action,
            path: one.path.clone(),
            line: one.line,
            message: match &one.fingerprint {
                Some(fingerprint) => format!("{} [{fingerprint}]", one.message),
                None => one.message.clone(),
            },
        });
        let command = Command::Judge {
            drafts: ids.to_vec(),
            policy: verdict.policy,
            action: verdict.action,
            findings: findings.collect(),
        };
        let caller = Caller::new(who);
        self.tell(inner, &caller, command)?;
        match verdict.action {
            Action::Allow | Action::Warn => self.apply(inner, &caller, ids)?,
            Action::Reject => {
                let held_secret = ids.iter().any(|id| {
                    inner.drafts.of(&caller.who, *id).is_some_and(|one| one.content_removed)
                });
                if held_secret {
                    self.sweep(inner)?;
                }
            }
            Action::Escalate => {}
        }
        Ok(())
    }

    /// What was found out about other contents says nothing about these.
    fn judged(&self, prepared: &Prepared, found: Option<Found>) -> Judged {
        let same = found.filter(|found| found.seal == prepared.seal);
        let (looked, checks, doubts) = match same {
            Some(Found { looked, checks, doubts, .. }) => (looked, checks, doubts),
            None => Default::default(),
        };
        let files = &prepared.files;
        let verdict = self.verdict(Arc::clone(files), looked);
        Judged { verdict, diff: differences(files), checks, doubts }
    }

    pub(super) fn verdict(&self, files: Arc<Vec<Owned>>, looked: Looked) -> Verdict {
        judge_in_time(&self.policy, files, looked, &self.key, today(self.now()))
    }

    pub(super) fn owned(&self, inner: &Inner, draft: &Draft) -> Result<Owned, DraftError> {
        if draft.content_removed {
            return Err(Refusal::ContentRemoved.into());
        }
        let side = |file: Option<FileState>| match file {
            Some(file) => Ok(Some((self.blobs.get(file.sha256)?, file.executable))),
            None => Ok::<_, DraftError>(None),
        };
        let rename_to = draft.change.rename_to.clone();
        let new = rename_to.as_ref().or_else(|| draft.base.is_none().then_some(&draft.path));
        let twins = match new {
            Some(path) => self.workspace.twins(path)?,
            None => Vec::new(),
        };
        let to = rename_to.as_ref().unwrap_or(&draft.path);
        Ok(Owned {
            path: draft.path.clone(),
            ignored: self.workspace.ignores(to),
            below_head: self.workspace.below_head(to),
            // A content that is gone cannot be compared with; it was kept for longer than a day.
            origin: side(self.origin(inner, draft)).unwrap_or_default(),
            rename_to,
            base: side(draft.base)?,
            after: side(draft.change.file)?,
            twins,
        })
    }

    /// The file before the first draft of it that was applied within the last day, if there is one.
    /// Whoever made it: a worker can have many names.
    fn origin(&self, inner: &Inner, draft: &Draft) -> Option<FileState> {
        let since = self.now().saturating_sub(DAY_MS);
        let earlier = inner.drafts.all().filter(|one| {
            one.id != draft.id
                && one.state == State::Applied
                && one.path == draft.path
                && one.touched >= since
        });
        earlier.min_by_key(|one| one.touched)?.base
    }

    /// Writes down once that the policy on the disk is another one. The old one stays in force:
    /// whoever can change the file cannot loosen a gate that runs.
    fn notice_policy(&self, inner: &mut Inner) -> Result<(), DraftError> {
        if inner.policy_differs {
            return Ok(());
        }
        let same = policy_files::load(&self.options)
            .is_ok_and(|(on_disk, _)| on_disk.hash() == self.policy.hash());
        if !same {
            inner.policy_differs = true;
            let event = Event::PolicyDiffers { policy: self.policy.hash() };
            self.record(inner, &Caller::new(Principal::gate()), event)?;
        }
        Ok(())
    }
}

/// Judges on a thread of its own, and escalates where that takes longer than the policy allows. The
/// thread is told to end then.
fn judge_in_time(
    policy: &Policy,
    files: Arc<Vec<Owned>>,
    looked: Looked,
    key: &FingerprintKey,
    today: Today,
) -> Verdict {
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
                around: Surroundings {
                    twins: &file.twins,
                    ignored: file.ignored,
                    below_head: file.below_head,
                    origin: side(&file.origin),
                },
            })
            .collect();
        // Nobody may wait any more; then nobody is told.
        let _ = send.send(judge_until(&on_thread, &changes, &looked, &key, today, &stopped));
    });
    let in_time = started.ok().and_then(|_| receive.recv_timeout(limit).ok());
    stop.store(true, Ordering::Relaxed);
    in_time.unwrap_or_else(|| Verdict {
        action: Action::Escalate,
        policy: hash,
        findings: path
            .into_iter()
            .map(|path| Finding {
                rule: Rule::GateError,
                action: Action::Escalate,
                path,
                line: None,
                message: "the gate did not come to an end in time".to_owned(),
                fingerprint: None,
            })
            .collect(),
        stats: LineStats::default(),
    })
}

/// The text of one side of a draft; empty where there is no file.
/// The lines of all files together.
fn lines(files: &[Owned]) -> LineStats {
    let mut stats = LineStats::default();
    for file in files {
        stats.add(&Comparison::of_texts(&text(&file.base), &text(&file.after)).stats);
    }
    stats
}

fn differences(files: &[Owned]) -> String {
    files.iter().map(difference).collect()
}

fn side(side: &Option<(Vec<u8>, bool)>) -> Option<Content<'_>> {
    side.as_ref().map(|(bytes, executable)| Content { bytes, executable: *executable })
}

/// The day of a time in milliseconds since 1970, in UTC.
pub fn today(ms: u64) -> Today {
    // Days since 1970 to a date, by counting years of 365 or 366 days and months.
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
    Today { year, month, day: days as u8 + 1 }
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod tests;
