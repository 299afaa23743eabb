//! `GET /api/audit`: the journal of a workspace, checked on every request: that is what it is for.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Json;
use axum::extract::State as Shared;
use moothall_core::drafts::{DraftId, End, Event, RelPath, Say};
use moothall_core::text::escaped;
use moothall_workspace::{DraftError, Head, Line, Verified, torn_files};
use serde::Deserialize;

use super::{Workspace, blocking_with};
use crate::asked::Asked;
use crate::times::rfc3339;
use crate::wire::{AuditPage, AuditRow, TornRow};
use crate::{App, Problem};

const USUAL_LIMIT: usize = 50;
const MOST: usize = 500;

#[derive(Debug, Deserialize)]
pub(crate) struct AuditQuery {
    workspace: Option<String>,
    before: Option<u64>,
    limit: Option<usize>,
}

pub(crate) async fn show(
    Shared(app): Shared<App>,
    Asked(query): Asked<AuditQuery>,
) -> Result<Json<AuditPage>, Problem> {
    let limit = query.limit.unwrap_or(USUAL_LIMIT).clamp(1, MOST);
    let known = &app.workspaces.all;
    let one = match &query.workspace {
        Some(id) => known.iter().find(|one| one.id == *id),
        None => known.first(),
    };
    let one = one.cloned();
    if query.workspace.is_some() && one.is_none() {
        return Err(Problem::not_found("there is no such workspace"));
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
    one: &Workspace,
    before: u64,
    limit: usize,
) -> Result<(), DraftError> {
    let mut last: VecDeque<AuditRow> = VecDeque::new();
    let mut seen: Option<Head> = None;
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
        Ok(Verified { checkpoints, key, .. }) => {
            page.checkpoints = checkpoints as u64;
            page.key = Some(key);
        }
        // What was read before the damage is shown all the same.
        Err(error @ DraftError::JournalDamaged { .. }) => {
            page.holds = false;
            page.why = Some(error.to_string());
        }
        Err(error) => return Err(error),
    }
    let torn = torn_files(one.store.state_folder())?;
    page.torn = torn.into_iter().map(|one| TornRow { file: one.file, bytes: one.bytes }).collect();
    page.workspace = Some(one.id.clone());
    page.records = seen.map_or(0, |head| head.seq);
    page.head = seen.map(|head| head.hash.to_string());
    page.next = last.front().map(|row| row.seq).filter(|seq| *seq > 1);
    page.page = last.into_iter().rev().collect();
    Ok(())
}

/// What one record says, of every kind.
struct Says {
    kind: &'static str,
    drafts: Vec<DraftId>,
    path: Option<RelPath>,
    words: Vec<String>,
}

fn row(line: &Line) -> AuditRow {
    let Says { kind, drafts, path, words } = says(&line.record.event);
    let words = words.iter().filter(|text| !text.is_empty()).map(|text| escaped(text));
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

fn says(event: &Event) -> Says {
    let about =
        |kind, drafts: &[DraftId], words| Says { kind, drafts: drafts.to_vec(), path: None, words };
    match event {
        Event::Requested { draft, task, path, .. } => Says {
            path: Some(path.clone()),
            ..about("requested", &[*draft], vec![format!("task {task}")])
        },
        Event::Written { draft, bytes, .. } => {
            about("written", &[*draft], vec![format!("{bytes} bytes")])
        }
        Event::Submitted { drafts, summary, .. } => {
            about("submitted", drafts, vec![summary.clone()])
        }
        Event::Judged { drafts, action, findings, .. } => {
            let mut words = vec![action.to_string()];
            words.extend(findings.iter().map(|one| one.rule.to_string()));
            about("judged", drafts, words)
        }
        Event::Reviewed { drafts, say, reason, .. } => {
            let said = match say {
                Say::Approve => "approved",
                Say::Reject => "rejected",
                Say::SendBack => "sent back",
            };
            about("reviewed", drafts, vec![said.to_owned(), reason.clone()])
        }
        Event::Applying { drafts, undo: false, .. } => about("applying", drafts, Vec::new()),
        Event::Applying { drafts, undo: true, .. } => about("reverting", drafts, Vec::new()),
        Event::Ended { drafts, end: End::Done } => about("ended", drafts, vec!["done".to_owned()]),
        Event::Ended { drafts, end: End::Conflict { path, .. } } => {
            Says { path: Some(path.clone()), ..about("ended", drafts, vec!["conflict".to_owned()]) }
        }
        Event::Salvaged { path, kept_as, .. } => {
            Says { path: Some(path.clone()), ..about("salvaged", &[], vec![kept_as.clone()]) }
        }
        Event::Rebased { draft, clean, .. } => {
            let words = if *clean { "clean" } else { "with conflict markers" };
            about("rebased", &[*draft], vec![words.to_owned()])
        }
        Event::Withdrawn { draft } => about("withdrawn", &[*draft], Vec::new()),
        Event::Expired { draft } => about("expired", &[*draft], Vec::new()),
        Event::Purged { blobs } => about("purged", &[], vec![format!("{blobs} contents")]),
        Event::PolicyDiffers { .. } => about("policy-differs", &[], Vec::new()),
        Event::PolicyTrusted { .. } => about("policy-trusted", &[], Vec::new()),
        Event::Rotated { next } => about("rotated", &[], vec![format!("goes on in file {next}")]),
    }
}
