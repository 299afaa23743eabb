//! `GET /api/audit`: the journal of a workspace, verified on every request.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Json;
use axum::extract::State as Shared;
use moothall_core::drafts::{
    ApplyOutcome, DraftEvent, DraftId, HunkSelection, LineComment, RelPath, ReviewDecision,
};
use moothall_core::text::escaped;
use moothall_workspace::{DraftError, JournalHead, JournalLine, JournalVerification, torn_files};
use serde::Deserialize;

use super::{ServedWorkspace, blocking_with};
use crate::dto::{AuditPage, AuditRow, TornFileRow};
use crate::extract::QueryParams;
use crate::times::rfc3339;
use crate::{ApiProblem, AppState};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;

#[derive(Debug, Deserialize)]
pub(crate) struct AuditQuery {
    workspace: Option<String>,
    before: Option<u64>,
    limit: Option<usize>,
}

pub(crate) async fn show(
    Shared(app): Shared<AppState>,
    QueryParams(query): QueryParams<AuditQuery>,
) -> Result<Json<AuditPage>, ApiProblem> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let known = &app.workspaces.all;
    let one = match &query.workspace {
        Some(id) => known.iter().find(|one| one.id == *id),
        None => known.first(),
    };
    let one = one.cloned();
    if query.workspace.is_some() && one.is_none() {
        return Err(ApiProblem::not_found("workspace not found"));
    }
    let limits = one.iter().map(|one| Arc::clone(&one.requests)).collect();
    blocking_with(app, limits, move |app| {
        let mut page = AuditPage {
            workspaces: app.workspaces.rows(),
            workspace: None,
            holds: true,
            why: None,
            records: 0,
            head: None,
            checkpoints: 0,
            key: None,
            torn: Vec::new(),
            page: Vec::new(),
            next: None,
        };
        if let Some(one) = one {
            fill(&mut page, &one, query.before.unwrap_or(u64::MAX), limit)?;
        }
        Ok(page)
    })
    .await
}

fn fill(
    page: &mut AuditPage,
    one: &ServedWorkspace,
    before: u64,
    limit: usize,
) -> Result<(), DraftError> {
    let mut last: VecDeque<AuditRow> = VecDeque::new();
    let mut seen: Option<JournalHead> = None;
    let verified = one.store.verify(|line| {
        seen = Some(line.head);
        if line.head.seq < before {
            last.push_back(row(line));
            if last.len() > limit {
                last.pop_front();
            }
        }
    });
    match verified {
        Ok(JournalVerification { checkpoints, key, .. }) => {
            page.checkpoints = checkpoints as u64;
            page.key = Some(key);
        }
        // Records before the damage are still shown.
        Err(error @ DraftError::JournalDamaged { .. }) => {
            page.holds = false;
            page.why = Some(error.to_string());
        }
        Err(error) => return Err(error),
    }
    let torn = torn_files(one.store.state_folder())?;
    page.torn =
        torn.into_iter().map(|one| TornFileRow { file: one.file, bytes: one.bytes }).collect();
    page.workspace = Some(one.id.clone());
    page.records = seen.map_or(0, |head| head.seq);
    page.head = seen.map(|head| head.hash.to_string());
    page.next = last.front().map(|row| row.seq).filter(|seq| *seq > 1);
    page.page = last.into_iter().rev().collect();
    Ok(())
}

/// Summary of one journal record.
struct AuditSummary {
    kind: &'static str,
    drafts: Vec<DraftId>,
    path: Option<RelPath>,
    details: Vec<String>,
}

fn row(line: &JournalLine) -> AuditRow {
    let AuditSummary { kind, drafts, path, details } = summarize(&line.record.event);
    let words = details.iter().filter(|text| !text.is_empty()).map(|text| escaped(text));
    AuditRow {
        seq: line.head.seq,
        at: rfc3339(line.record.ts),
        who: escaped(&line.record.actor.to_string()),
        kind: kind.to_owned(),
        drafts: drafts.iter().map(ToString::to_string).collect(),
        path: path.map(|path| path.to_string()),
        words: words.collect(),
        hash: line.head.hash,
    }
}

fn summarize(event: &DraftEvent) -> AuditSummary {
    let about = |kind, drafts: &[DraftId], details| AuditSummary {
        kind,
        drafts: drafts.to_vec(),
        path: None,
        details,
    };
    match event {
        DraftEvent::Requested { draft, task, path, .. } => AuditSummary {
            path: Some(path.clone()),
            ..about("requested", &[*draft], vec![format!("task {task}")])
        },
        DraftEvent::Written { draft, bytes, .. } => {
            about("written", &[*draft], vec![format!("{bytes} bytes")])
        }
        DraftEvent::Submitted { drafts, summary, .. } => {
            about("submitted", drafts, vec![summary.clone()])
        }
        DraftEvent::Judged { drafts, action, findings, .. } => {
            let mut details = vec![action.to_string()];
            details.extend(findings.iter().map(|one| one.rule.to_string()));
            about("judged", drafts, details)
        }
        DraftEvent::Reviewed { drafts, say, reason, .. } => {
            let decision = match say {
                ReviewDecision::Approve => "approved",
                ReviewDecision::Reject => "rejected",
                ReviewDecision::SendBack => "sent back",
            };
            about("reviewed", drafts, vec![decision.to_owned(), reason.clone()])
        }
        DraftEvent::Amended { drafts, hunks, files, result, reason, .. } => {
            let mut details = vec!["approved in part".to_owned()];
            if let Some(HunkSelection { approved, of }) = hunks {
                let numbers: Vec<String> = approved.iter().map(ToString::to_string).collect();
                details.push(format!("hunks {} of {of}", numbers.join(", ")));
            }
            if files.iter().any(|file| file.edited) {
                details[0] = "edited and approved".to_owned();
            }
            details.extend([format!("result {result}"), reason.clone()]);
            about("amended", drafts, details)
        }
        DraftEvent::Commented { drafts, comments, .. } => {
            let line = |one: &LineComment| format!("{}:{}: {}", one.path, one.line, one.text);
            about("commented", drafts, comments.iter().map(line).collect())
        }
        DraftEvent::Applying { drafts, undo: false, .. } => about("applying", drafts, Vec::new()),
        DraftEvent::Applying { drafts, undo: true, .. } => about("reverting", drafts, Vec::new()),
        DraftEvent::Ended { drafts, end: ApplyOutcome::Done } => {
            about("ended", drafts, vec!["done".to_owned()])
        }
        DraftEvent::Ended { drafts, end: ApplyOutcome::Conflict { path, .. } } => AuditSummary {
            path: Some(path.clone()),
            ..about("ended", drafts, vec!["conflict".to_owned()])
        },
        DraftEvent::Salvaged { path, kept_as, .. } => AuditSummary {
            path: Some(path.clone()),
            ..about("salvaged", &[], vec![kept_as.clone()])
        },
        DraftEvent::Rebased { draft, clean, .. } => {
            let result = if *clean { "clean" } else { "with conflict markers" };
            about("rebased", &[*draft], vec![result.to_owned()])
        }
        DraftEvent::Withdrawn { draft } => about("withdrawn", &[*draft], Vec::new()),
        DraftEvent::Expired { draft } => about("expired", &[*draft], Vec::new()),
        DraftEvent::Purged { blobs } => {
            about("purged", &[], vec![format!("{blobs} file contents")])
        }
        DraftEvent::PolicyDiffers { .. } => about("policy-differs", &[], Vec::new()),
        DraftEvent::PolicyTrusted { .. } => about("policy-trusted", &[], Vec::new()),
        DraftEvent::Rotated { next } => {
            about("rotated", &[], vec![format!("continues in file {next}")])
        }
    }
}
