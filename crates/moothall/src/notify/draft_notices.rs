//! Notices about drafts. The process that escalates a draft, or records a review, puts them into the
//! outbox before it does anything else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use moothall_server::ReviewLinkStore;
use moothall_store::now_ms;
use moothall_workspace::{SubmissionListener, SubmissionNotice, SubmissionNoticeKind};

use super::body::body;
use super::delivery::deliver_in_background;
use super::notice::{Notice, notice_number};
use super::outbox::{KeptMessage, NotificationOutbox};
use super::targets::{NoticeTarget, targets, untrusted};
use super::warn;
use crate::config::{LoadedConfig, NoticeEvent};

/// Everything that is needed to write notices about drafts.
#[derive(Debug)]
struct DraftNotices {
    config: Option<PathBuf>,
    targets: Vec<NoticeTarget>,
    outbox: NotificationOutbox,
    links: ReviewLinkStore,
    server_url: Option<String>,
    link_lifetime: Duration,
}

/// The key of review links and the tokens that were used.
pub(crate) fn review_links(loaded: &LoadedConfig) -> ReviewLinkStore {
    ReviewLinkStore::at(loaded.locations.folders.data.join("review-links"))
}

/// The listener of a draft store, if a receiver wants to know about drafts.
pub(crate) fn draft_listener(
    config: Option<&Path>,
    loaded: &LoadedConfig,
) -> Option<Box<SubmissionListener>> {
    let is_wanted = |target: &NoticeTarget| {
        target.wants(NoticeEvent::NeedsReview) || target.wants(NoticeEvent::Decided)
    };
    let targets: Vec<NoticeTarget> = targets(loaded).into_iter().filter(is_wanted).collect();
    if targets.is_empty() {
        return None;
    }
    if let Some(why) = untrusted(loaded) {
        return Some(Box::new(move |_| warn(why)));
    }
    let section = &loaded.resolved.config.notify;
    let notices = DraftNotices {
        config: config.map(Path::to_owned),
        targets,
        outbox: NotificationOutbox::of(&loaded.locations.folders),
        links: review_links(loaded),
        server_url: section.server_url.clone(),
        link_lifetime: section.link_lifetime,
    };
    Some(Box::new(move |submission| {
        // A notice never changes the result of a submission.
        match notices.keep(submission) {
            Ok(0) => {}
            Ok(_) => deliver_in_background(notices.config.as_deref()),
            Err(error) => warn(&format!("no notice about the draft: {error}")),
        }
    }))
}

impl DraftNotices {
    /// Puts a notice for every receiver into the outbox, and returns their number.
    fn keep(&self, submission: &SubmissionNotice) -> std::io::Result<usize> {
        let notice = Notice::of_draft(notice_number()?, submission.clone());
        let wants = |target: &&NoticeTarget| notice.event().is_some_and(|one| target.wants(one));
        let mut kept = 0;
        for target in self.targets.iter().filter(wants) {
            let link = self.link(target, &notice, submission)?;
            let body = body(target.settings.kind, &notice, link.as_deref());
            let now_ms = now_ms();
            self.outbox.write(&KeptMessage::new(&target.name, &notice.id, body, now_ms, now_ms))?;
            kept += 1;
        }
        Ok(kept)
    }

    /// The link to the review page. Without a token, the reviewer must sign in.
    fn link(
        &self,
        target: &NoticeTarget,
        notice: &Notice,
        submission: &SubmissionNotice,
    ) -> std::io::Result<Option<String>> {
        let Some(origin) = &self.server_url else { return Ok(None) };
        if submission.kind != SubmissionNoticeKind::NeedsReview {
            return Ok(None);
        }
        if target.settings.sign_in_to_review {
            let origin = origin.trim_end_matches('/');
            return Ok(Some(format!("{origin}/drafts/{}", submission.draft)));
        }
        let lifetime = u64::try_from(self.link_lifetime.as_millis()).unwrap_or(u64::MAX);
        let expires_at_ms = now_ms().saturating_add(lifetime);
        let token = self.links.issue(
            notice.number(),
            &target.name,
            submission.draft,
            submission.seal,
            expires_at_ms,
        )?;
        Ok(Some(token.link(origin)))
    }
}
