//! Showing drafts to the gate.

use std::sync::mpsc;
use std::time::Duration;

use moothall_core::drafts::{
    Command, Draft, DraftId, Event, JudgedFinding, MAX_TEXT_CHARS, Principal, Refusal, RelPath,
    State,
};
use moothall_core::gate::reviewer::Doubt;
use moothall_core::gate::{
    Action, Content, FileChange, Finding, FingerprintKey, LineStats, Looked, Policy, Rule, Today,
    Verdict, judge, unified,
};

use super::error::DraftError;
use super::looking::{CheckReport, Found};
use super::{Caller, DraftStore, Inner, policy_files};

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

/// The contents of one draft, owned so that a thread can have them.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub(super) path: RelPath,
    pub(super) rename_to: Option<RelPath>,
    pub(super) base: Option<(Vec<u8>, bool)>,
    pub(super) after: Option<(Vec<u8>, bool)>,
    twins: Vec<String>,
}

impl DraftStore {
    /// What the gate would say now, with the checks of the policy. Changes nothing.
    pub fn check(&self, caller: &Caller, ids: &[DraftId]) -> Result<Judged, DraftError> {
        let found = self.look(caller, ids, None)?;
        self.with(|store, inner| {
            for id in ids {
                store.readable(inner, caller, *id)?;
            }
            store.judged(inner, ids, found)
        })
    }

    /// The difference of one draft, without judging it.
    pub fn diff(&self, caller: &Caller, id: DraftId) -> Result<String, DraftError> {
        self.with(|store, inner| Ok(difference(&store.owned(&store.readable(inner, caller, id)?)?)))
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
        let found = self.look(caller, ids, Some(&summary))?;
        let summary = self.recordable(&summary);
        self.with(|store, inner| {
            if store.stopped.is_cancelled() {
                return Err(DraftError::Stopped);
            }
            for id in ids {
                store.readable(inner, caller, *id)?;
            }
            store.notice_policy(inner)?;
            store.tell(inner, caller, Command::Submit { drafts: ids.to_vec(), summary })?;
            let judged =
                store.judge_submitted(inner, Principal::gate(), ids, found, Action::Allow)?;
            let drafts = ids.iter().map(|id| store.known(inner, *id)).collect::<Result<_, _>>()?;
            Ok(Submitted { drafts, judged })
        })
    }

    /// What became of the submission that a draft belongs to, as it was judged then. Nothing runs.
    pub fn outcome(&self, caller: &Caller, id: DraftId) -> Result<Submitted, DraftError> {
        self.with(|store, inner| {
            let draft = inner.drafts.of(&caller.who, id).ok_or(Refusal::Unknown)?.clone();
            let Some(submission) = draft.submission else {
                return Err(Refusal::State { state: draft.state, what: "asked about" }.into());
            };
            let ids = submission.drafts;
            // Contents go: those of credentials at once, others with the time. The verdict stays.
            let (diff, stats) = match store.judged(inner, &ids, None) {
                Ok(judged) => (judged.diff, judged.verdict.stats),
                Err(DraftError::ContentGone(_) | DraftError::Refused(Refusal::ContentRemoved)) => {
                    Default::default()
                }
                Err(error) => return Err(error),
            };
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
                policy: submission.policy.unwrap_or_else(|| store.policy.hash()),
                findings: findings.collect(),
                stats,
            };
            let drafts = ids.iter().map(|id| store.known(inner, *id)).collect::<Result<_, _>>()?;
            let judged = Judged { verdict, diff, checks: Vec::new(), doubts: Vec::new() };
            Ok(Submitted { drafts, judged })
        })
    }

    /// The files of the submission that a draft belongs to, for a person. Judged again if the
    /// policy is another one now, so that what is shown is what an approval would be bound to.
    pub fn shown(&self, caller: &Caller, id: DraftId) -> Result<Vec<ShownFile>, DraftError> {
        self.with(|store, inner| {
            let draft = inner.drafts.of(&caller.who, id).ok_or(Refusal::Unknown)?.clone();
            let submission = draft.submission.clone();
            let together = submission.as_ref().map_or_else(|| vec![id], |one| one.drafts.clone());
            let other = submission.is_some_and(|one| one.policy != Some(store.policy.hash()));
            if draft.state == State::Escalated && other {
                // Looking at it is no decision: a policy that has nothing against it any more, as
                // an older one of this process may, lets nothing pass that waits for a person.
                let (gate, least) = (Principal::gate(), Action::Escalate);
                store.judge_submitted(inner, gate, &together, None, least)?;
            }
            let text = |bytes: Option<(Vec<u8>, bool)>| {
                bytes.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
            };
            let shown = |id: &DraftId| {
                let draft = store.known(inner, *id)?;
                let owned = store.owned(&draft)?;
                Ok(ShownFile { draft, base: text(owned.base), after: text(owned.after) })
            };
            together.iter().map(shown).collect()
        })
    }

    /// Judges what was handed in, at least as strictly as said, writes the verdict down, and applies
    /// what may be applied.
    pub(super) fn judge_submitted(
        &self,
        inner: &mut Inner,
        who: Principal,
        ids: &[DraftId],
        found: Option<Found>,
        least: Action,
    ) -> Result<Judged, DraftError> {
        let mut judged = self.judged(inner, ids, found)?;
        judged.verdict.action = judged.verdict.action.max(least);
        let findings = judged.verdict.findings.iter().map(|one| JudgedFinding {
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
            policy: judged.verdict.policy,
            action: judged.verdict.action,
            findings: findings.collect(),
        };
        let caller = Caller::new(who);
        self.tell(inner, &caller, command)?;
        match judged.verdict.action {
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
        Ok(judged)
    }

    fn judged(
        &self,
        inner: &Inner,
        ids: &[DraftId],
        found: Option<Found>,
    ) -> Result<Judged, DraftError> {
        let mut files = Vec::new();
        for id in ids {
            files.push(self.owned(&self.known(inner, *id)?)?);
        }
        let diff = files.iter().map(difference).collect();
        // What was found out about other contents says nothing about these.
        let same = found.filter(|found| found.seal == inner.drafts.seal(ids));
        let (looked, checks, doubts) = match same {
            Some(Found { looked, checks, doubts, .. }) => (looked, checks, doubts),
            None => Default::default(),
        };
        Ok(Judged { verdict: self.verdict(files, looked), diff, checks, doubts })
    }

    pub(super) fn verdict(&self, files: Vec<Owned>, looked: Looked) -> Verdict {
        judge_in_time(&self.policy, files, looked, &self.key, today(self.now()))
    }

    pub(super) fn owned(&self, draft: &Draft) -> Result<Owned, DraftError> {
        if draft.content_removed {
            return Err(Refusal::ContentRemoved.into());
        }
        let side = |file: Option<moothall_core::drafts::FileState>| match file {
            Some(file) => Ok(Some((self.blobs.get(file.sha256)?, file.executable))),
            None => Ok::<_, DraftError>(None),
        };
        let rename_to = draft.change.rename_to.clone();
        let new = rename_to.as_ref().or_else(|| draft.base.is_none().then_some(&draft.path));
        let twins = match new {
            Some(path) => self.workspace.twins(path)?,
            None => Vec::new(),
        };
        Ok(Owned {
            path: draft.path.clone(),
            rename_to,
            base: side(draft.base)?,
            after: side(draft.change.file)?,
            twins,
        })
    }

    /// Writes down once that the policy on the disk is another one. The old one stays in force:
    /// whoever can change the file cannot loosen a gate that runs.
    fn notice_policy(&self, inner: &mut Inner) -> Result<(), DraftError> {
        if inner.policy_differs {
            return Ok(());
        }
        let same = policy_files::load(&self.options)
            .is_ok_and(|on_disk| on_disk.hash() == self.policy.hash());
        if !same {
            inner.policy_differs = true;
            let event = Event::PolicyDiffers { policy: self.policy.hash() };
            self.record(inner, &Caller::new(Principal::gate()), event)?;
        }
        Ok(())
    }
}

/// Judges on a thread of its own, and escalates where that takes longer than the policy allows.
fn judge_in_time(
    policy: &Policy,
    files: Vec<Owned>,
    looked: Looked,
    key: &FingerprintKey,
    today: Today,
) -> Verdict {
    let (send, receive) = mpsc::channel();
    let limit = Duration::from_millis(policy.limits.gate_timeout_ms);
    let path = files.first().map(|file| file.path.clone());
    let (hash, on_thread, key) = (policy.hash(), policy.clone(), key.clone());
    let started = std::thread::Builder::new().name("gate".to_owned()).spawn(move || {
        let changes: Vec<FileChange<'_>> = files
            .iter()
            .map(|file| FileChange {
                path: &file.path,
                rename_to: file.rename_to.as_ref(),
                base: side(&file.base),
                draft: side(&file.after),
                twins: &file.twins,
            })
            .collect();
        // Nobody may wait any more; then nobody is told.
        let _ = send.send(judge(&on_thread, &changes, &looked, &key, today));
    });
    let in_time = started.ok().and_then(|_| receive.recv_timeout(limit).ok());
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

/// The difference of one file.
pub(super) fn difference(file: &Owned) -> String {
    let text = |side: &Option<(Vec<u8>, bool)>| match side {
        Some((bytes, _)) => String::from_utf8_lossy(bytes).into_owned(),
        None => String::new(),
    };
    let name = file.rename_to.as_ref().unwrap_or(&file.path);
    unified(name.as_str(), &text(&file.base), &text(&file.after))
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
#[path = "judging_tests.rs"]
mod tests;
