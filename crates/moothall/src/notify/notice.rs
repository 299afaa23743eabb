//! What a notice says, independent of who receives it.

use std::io;
use std::time::Duration;

use moothall_core::drafts::ReviewDecision;
use moothall_core::model::FailureKind;
use moothall_core::text::sanitize_line;
use moothall_core::{Conclusion, Outcome, RunId, RunVerdict};
use moothall_engine::{RunExit, RunPause};
use moothall_store::RunState;
use moothall_workspace::{SubmissionNotice, SubmissionNoticeKind};
use ring::rand::SecureRandom as _;

use crate::config::NoticeEvent;
use crate::run_store;

/// Longest untrusted values in a notice, in characters.
const MAX_TITLE_CHARS: usize = 120;
const MAX_VALUE_CHARS: usize = 200;

/// Events of a run that trigger a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunNotification {
    Finished,
    Failed,
    /// Paused: the next call would exceed the budget.
    Budget,
    /// Paused: the provider rejected the API key or its account.
    Refused,
    /// Paused: the provider does not answer.
    Outage,
    /// Paused: a person must answer a question.
    Question,
    /// Finished: a person must decide about the result.
    Waiting,
}

impl RunNotification {
    /// The notification for the end of a run. None if a person paused or cancelled it, because they
    /// know.
    pub(crate) fn of(ended: &RunExit) -> Option<Self> {
        match ended {
            RunExit::Done(outcome) => Some(Self::of_outcome(outcome)),
            RunExit::Paused(RunPause::Budget(_)) => Some(Self::Budget),
            RunExit::Paused(RunPause::Failure(_, failure)) if failure.kind == FailureKind::Auth => {
                Some(Self::Refused)
            }
            RunExit::Paused(RunPause::Failure(..)) => Some(Self::Outage),
            RunExit::Paused(RunPause::Question(_)) => Some(Self::Question),
            RunExit::Paused(RunPause::Person) | RunExit::Cancelled => None,
        }
    }

    fn of_outcome(outcome: &Outcome) -> Self {
        match (&outcome.conclusion, outcome.verdict) {
            (
                Conclusion::Failed { .. }
                | Conclusion::NotExecuted { .. }
                | Conclusion::NotDebated { .. }
                | Conclusion::NotGathered { .. },
                _,
            ) => Self::Failed,
            (_, RunVerdict::NeedsPerson) => Self::Waiting,
            (_, RunVerdict::Pass | RunVerdict::Fail) => Self::Finished,
        }
    }

    /// The event type sent to webhooks.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Finished => "run.finished",
            Self::Failed => "run.failed",
            Self::Budget => "run.budget",
            Self::Refused => "run.refused",
            Self::Outage => "run.outage",
            Self::Question | Self::Waiting => "run.waiting",
        }
    }

    fn event(self) -> NoticeEvent {
        match self {
            Self::Finished => NoticeEvent::Finished,
            Self::Failed => NoticeEvent::Failed,
            Self::Budget | Self::Refused | Self::Outage => NoticeEvent::Paused,
            Self::Question | Self::Waiting => NoticeEvent::Question,
        }
    }

    /// The state of the run. A run that needs a decision on a move is already finished.
    pub(crate) fn state(self) -> RunState {
        match self {
            Self::Finished | Self::Waiting => RunState::Finished,
            Self::Failed => RunState::Failed,
            Self::Budget | Self::Refused | Self::Outage | Self::Question => RunState::Paused,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Finished => "is finished",
            Self::Failed => "has failed",
            Self::Budget => "is paused: its budget is exhausted",
            Self::Refused => "is paused: the provider rejected the API key or its account",
            Self::Outage => "is paused: the provider does not answer",
            Self::Question => "is paused and needs review",
            Self::Waiting => "needs review",
        }
    }
}

/// One event, for all receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The same for every receiver and attempt, so that receivers can detect duplicates.
    pub(crate) id: String,
    /// Time in milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) subject: NoticeSubject,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoticeSubject {
    Run {
        run_id: RunId,
        notification: RunNotification,
    },
    /// `number` identifies the notice for people, for example in the audit log.
    Draft {
        number: String,
        submission: SubmissionNotice,
    },
    /// Only shows that the receiver works.
    Test,
}

impl Notice {
    pub(crate) fn of_run(run_id: &RunId, notification: RunNotification, at_ms: u64) -> Self {
        Self {
            id: format!("{run_id}-{}-{at_ms}", notification.kind()),
            at_ms,
            subject: NoticeSubject::Run { run_id: run_id.clone(), notification },
        }
    }

    pub(crate) fn of_draft(number: String, submission: SubmissionNotice) -> Self {
        let kind = draft_kind(&submission.kind);
        Self {
            id: format!("{}-{kind}-{}-{number}", submission.draft, submission.at_ms),
            at_ms: submission.at_ms,
            subject: NoticeSubject::Draft { number, submission },
        }
    }

    pub(crate) fn test(at_ms: u64) -> Self {
        Self { id: format!("test-{at_ms}"), at_ms, subject: NoticeSubject::Test }
    }

    /// The number for people; empty unless it is about a draft.
    pub(crate) fn number(&self) -> &str {
        match &self.subject {
            NoticeSubject::Draft { number, .. } => number,
            NoticeSubject::Run { .. } | NoticeSubject::Test => "",
        }
    }

    /// The event that receivers choose, or `None` for a test.
    pub(crate) fn event(&self) -> Option<NoticeEvent> {
        match &self.subject {
            NoticeSubject::Run { notification, .. } => Some(notification.event()),
            NoticeSubject::Draft { submission, .. } => Some(match submission.kind {
                SubmissionNoticeKind::NeedsReview => NoticeEvent::NeedsReview,
                SubmissionNoticeKind::Decided { .. } => NoticeEvent::Decided,
            }),
            NoticeSubject::Test => None,
        }
    }

    /// The notice for people. `link` leads to the review page.
    pub(crate) fn text(&self, link: Option<&str>) -> NoticeText {
        match &self.subject {
            NoticeSubject::Run { run_id, notification } => {
                let id = run_store::short_id(run_id);
                NoticeText {
                    sentence: format!("run {id} {}", notification.description()),
                    details: Vec::new(),
                    command: Some(format!("moothall show {id}")),
                    link: None,
                }
            }
            NoticeSubject::Draft { number, submission } => draft_text(number, submission, link),
            NoticeSubject::Test => NoticeText {
                sentence: "this is a test message".to_owned(),
                details: Vec::new(),
                command: None,
                link: None,
            },
        }
    }
}

/// The parts of a notice for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoticeText {
    /// Fixed text and ids: needs no escaping.
    pub(crate) sentence: String,
    /// Names and values. Values are untrusted: one line each, without control characters, but every
    /// format must escape them.
    pub(crate) details: Vec<(&'static str, String)>,
    pub(crate) command: Option<String>,
    pub(crate) link: Option<String>,
}

fn draft_text(number: &str, submission: &SubmissionNotice, link: Option<&str>) -> NoticeText {
    let mut details = Vec::new();
    let title = title(submission);
    if !title.is_empty() {
        details.push(("Title", title));
    }
    details.push(("File", files(submission)));
    let sentence = match &submission.kind {
        SubmissionNoticeKind::NeedsReview => {
            if !submission.rules.is_empty() {
                details.push(("Rule", clip(&submission.rules.join(", "), MAX_VALUE_CHARS)));
            }
            "a draft needs review".to_owned()
        }
        SubmissionNoticeKind::Decided { decision, by } => {
            details.push(("By", clip(&sanitize_line(by), MAX_VALUE_CHARS)));
            let decision = match decision {
                ReviewDecision::Approve => "approved",
                ReviewDecision::Reject => "rejected",
                ReviewDecision::SendBack => "sent back",
            };
            format!("a draft was {decision}")
        }
    };
    let command = match submission.kind {
        SubmissionNoticeKind::NeedsReview => format!("moothall review show {}", submission.draft),
        SubmissionNoticeKind::Decided { .. } => {
            format!("moothall draft status {}", submission.draft)
        }
    };
    NoticeText {
        sentence: format!("{sentence} (notice {number})"),
        details,
        command: Some(command),
        link: link.map(str::to_owned),
    }
}

/// The event type sent to webhooks.
pub(crate) fn draft_kind(kind: &SubmissionNoticeKind) -> &'static str {
    match kind {
        SubmissionNoticeKind::NeedsReview => "draft.needs_review",
        SubmissionNoticeKind::Decided { .. } => "draft.decided",
    }
}

/// The first line of the worker's description.
pub(crate) fn title(submission: &SubmissionNotice) -> String {
    let first = submission.title.lines().map(str::trim).find(|line| !line.is_empty());
    clip(&sanitize_line(first.unwrap_or_default()), MAX_TITLE_CHARS)
}

pub(crate) fn path(submission: &SubmissionNotice) -> String {
    clip(&sanitize_line(&submission.path), MAX_VALUE_CHARS)
}

/// The path, and how many more files there are.
pub(crate) fn files(submission: &SubmissionNotice) -> String {
    let path = path(submission);
    match submission.more_files {
        0 => path,
        more => format!("{path} and {more} more"),
    }
}

fn clip(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A new number for a notice.
pub(crate) fn notice_number() -> io::Result<String> {
    let mut bytes = [0; 4];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("no randomness available"))?;
    Ok(format!("{:08x}", u32::from_be_bytes(bytes)))
}

pub(crate) fn time_text(at_ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + Duration::from_secs(at_ms / 1000);
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;
