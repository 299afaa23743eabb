//! Reports submissions that need a person, and their reviews, to the program that opened the store.
//!
//! Only the process that records an event reports it, so an event is reported once.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    AuditRecord, DraftEvent, DraftId, DraftSet, DraftState, Principal, ReviewDecision,
};
use moothall_core::gate::GateAction;

use super::DraftStore;

/// Called after an event is durable. It runs under the store lock, so it must not use the store.
pub type SubmissionListener = dyn Fn(&SubmissionNotice) + Send + Sync;

/// A message about a submission for reviewers. It contains no file content, and no text that may
/// contain a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionNotice {
    pub kind: SubmissionNoticeKind,
    /// The first draft of the submission.
    pub draft: DraftId,
    /// Hash of everything the drafts propose.
    pub seal: Sha256Hex,
    /// The worker's description. Untrusted text.
    pub title: String,
    /// The path of the first draft, or its new path if the file is renamed.
    pub path: String,
    /// Files of the submission in addition to `path`.
    pub more_files: usize,
    /// The rules that escalated it, each once.
    pub rules: Vec<String>,
    /// Time in milliseconds since 1970.
    pub at_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmissionNoticeKind {
    NeedsReview,
    Decided { decision: ReviewDecision, by: String },
}

impl DraftStore {
    /// The notice for a record that `drafts` has not applied yet.
    pub(crate) fn submission_notice(
        &self,
        drafts: &DraftSet,
        record: &AuditRecord,
    ) -> Option<SubmissionNotice> {
        self.options.listener.as_ref()?;
        let (kind, ids, seal, rules) = match &record.event {
            DraftEvent::Judged { drafts, seal, action: GateAction::Escalate, findings, .. } => {
                let mut rules: Vec<String> = Vec::new();
                for finding in findings.iter().filter(|one| one.action >= GateAction::Escalate) {
                    let rule = finding.rule.to_string();
                    if !rules.contains(&rule) {
                        rules.push(rule);
                    }
                }
                (SubmissionNoticeKind::NeedsReview, drafts, *seal, rules)
            }
            DraftEvent::Reviewed { drafts, seal, say, .. } => {
                let by = record.actor.id.clone();
                let kind = SubmissionNoticeKind::Decided { decision: *say, by };
                (kind, drafts, *seal, Vec::new())
            }
            // A person approved a part of it, or edited it first.
            DraftEvent::Amended { drafts, seal, .. } => {
                let by = record.actor.id.clone();
                let kind = SubmissionNoticeKind::Decided { decision: ReviewDecision::Approve, by };
                (kind, drafts, *seal, Vec::new())
            }
            _ => return None,
        };
        let first = drafts.of(&Principal::gate(), *ids.first()?)?;
        // A submission that another policy judges again was reported when it first needed review.
        if kind == SubmissionNoticeKind::NeedsReview && first.state == DraftState::Escalated {
            return None;
        }
        let summary = first.submission.as_ref().map_or("", |one| one.summary.as_str());
        let path = first.change.rename_to.as_ref().unwrap_or(&first.path);
        Some(SubmissionNotice {
            kind,
            draft: first.id,
            seal,
            title: summary.to_owned(),
            path: self.recordable(path.as_str()),
            more_files: ids.len() - 1,
            rules,
            at_ms: record.ts,
        })
    }
}
