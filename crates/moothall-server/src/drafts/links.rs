//! `/api/review-link`: reviews by the holder of a review link, who need not sign in.
//!
//! Looking at a draft never uses its link up, because mail scanners follow links. A decision does.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::{Extension, Json};
use moothall_core::drafts::{ClientInfo, DraftId, DraftState, Principal, ReviewDecision};
use moothall_core::gate::ReviewChannel;
use moothall_core::{ErrorCode, Sha256Hex};
use moothall_store::now_ms;
use moothall_workspace::{DraftCaller, DraftError};

use super::{MAX_REASON_CHARS, blocking, rows};
use crate::app::BUILD;
use crate::connections::PeerAddress;
use crate::control::bounded;
use crate::dto::{DraftReviewResponse, ReviewLinkDecision, ReviewLinkDetail, ReviewLinkRequest};
use crate::extract::JsonBody;
use crate::review_links::{ReviewLink, ReviewLinkError, ReviewLinkStore};
use crate::times::rfc3339;
use crate::{ApiProblem, AppState};

/// Returns the draft of a link.
pub(crate) async fn show(
    Shared(app): Shared<AppState>,
    peer: Option<Extension<PeerAddress>>,
    JsonBody(request): JsonBody<ReviewLinkRequest>,
) -> Result<Json<ReviewLinkDetail>, ApiProblem> {
    let (link, _) = verified(&app, peer, &request.token).await?;
    let (id, _) = subject(&link)?;
    blocking_unless_closed(&app, link, id, move |app, link| {
        let (one, _) = app.workspaces.find(id)?;
        let detail = rows::detail(one, id)?;
        let expires_at = rfc3339(link.expires_at_ms);
        Ok(ReviewLinkDetail { detail, notice: link.notice, expires_at })
    })
    .await
}

/// Decides about the draft of a link, and uses the link up.
pub(crate) async fn decide(
    Shared(app): Shared<AppState>,
    peer: Option<Extension<PeerAddress>>,
    JsonBody(request): JsonBody<ReviewLinkDecision>,
) -> Result<Json<DraftReviewResponse>, ApiProblem> {
    let ReviewLinkDecision { token, decision, reason } = request;
    let reason = bounded("reason", reason.unwrap_or_default(), MAX_REASON_CHARS)?;
    let (link, store) = verified(&app, peer, &token).await?;
    let (id, seal) = subject(&link)?;
    let notifier = app.clone();
    let decided = blocking_unless_closed(&app, link, id, move |app, link| {
        let (one, _) = app.workspaces.find(id)?;
        if decision == ReviewDecision::Approve {
            if !one.store.policy().channels.contains(&ReviewChannel::Web) {
                return Ok(Err(channel_closed()));
            }
            if !rows::detail(one, id)?.shows_all {
                return Err(DraftError::Input(
                    "the change is too large to show in full here; review it with `moothall review`"
                        .to_owned(),
                ));
            }
        }
        // Used up before the decision: a crash in between wastes the link instead of allowing a
        // second decision.
        let claim = match store.claim(&link, now_ms()) {
            Ok(claim) => claim,
            Err(error) => return Ok(Err(refused(error))),
        };
        match one.store.review(&reviewer(&link), id, seal, decision, &reason) {
            Ok(drafts) => {
                let drafts = drafts.iter().map(|draft| rows::row(one, draft)).collect();
                Ok(Ok(DraftReviewResponse { drafts, undecided: None }))
            }
            Err(error) => {
                // The store refused or was busy before it recorded anything.
                if error.is_refusal() || matches!(error, DraftError::Busy) {
                    claim.release();
                }
                Err(error)
            }
        }
    })
    .await?;
    notifier.workspaces.notifier.notify();
    decided.0.map(Json)
}

/// The holder of a link, as the audit log names it. It has no account, so a policy that lists
/// approvers refuses its approvals.
fn reviewer(link: &ReviewLink) -> DraftCaller {
    let name = format!("{} (by link of notice {})", link.target, link.notice);
    let client = ClientInfo { name: "moothall serve".to_owned(), version: BUILD.to_owned() };
    DraftCaller { principal: Principal::human(name), client: Some(client) }
}

/// Checks the token. Wrong tokens are answered slowly and logged with their address.
async fn verified(
    app: &AppState,
    peer: Option<Extension<PeerAddress>>,
    token: &str,
) -> Result<(ReviewLink, ReviewLinkStore), ApiProblem> {
    let attempt = app.access.begin_attempt(peer.map(|Extension(peer)| peer));
    let attempt = attempt.ok_or_else(|| {
        let message = "too many failed attempts from your address";
        ApiProblem::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooManyRequests, message)
            .retry_after(1)
    })?;
    let verified = app
        .review_links
        .as_deref()
        .ok_or(ReviewLinkError::Invalid)
        .and_then(|store| Ok((store.verify(token, now_ms())?, store.clone())));
    match verified {
        Ok(verified) => Ok(verified),
        Err(error) => {
            if matches!(error, ReviewLinkError::Invalid) {
                attempt.failed().await;
            }
            Err(refused(error))
        }
    }
}

fn subject(link: &ReviewLink) -> Result<(DraftId, Sha256Hex), ApiProblem> {
    link.subject().ok_or_else(|| refused(ReviewLinkError::Invalid))
}

/// Runs blocking work if the draft still is the version of the link and needs review.
async fn blocking_unless_closed<T: Send + 'static>(
    app: &AppState,
    link: ReviewLink,
    id: DraftId,
    work: impl FnOnce(&AppState, ReviewLink) -> Result<T, DraftError> + Send + 'static,
) -> Result<Json<T>, ApiProblem> {
    let done = blocking(app.clone(), move |app| {
        let (_, draft) = app.workspaces.find(id)?;
        let current = draft.submission.as_ref().map(|one| one.seal.to_string());
        if current.as_ref() != Some(&link.seal) {
            let message = "the draft has changed since this notice was sent";
            let problem = ApiProblem::conflict(ErrorCode::SealDiffers, message);
            return Ok(Err(problem.with_hint("open the link of the newest notice about it")));
        }
        if draft.state != DraftState::Escalated {
            let message = format!("the draft does not need review: it is {}", draft.state.as_str());
            return Ok(Err(ApiProblem::conflict(ErrorCode::DraftState, message)));
        }
        work(app, link).map(Ok)
    });
    let Json(done) = done.await?;
    done.map(Json)
}

fn refused(error: ReviewLinkError) -> ApiProblem {
    let (status, code) = match &error {
        ReviewLinkError::Invalid => (StatusCode::FORBIDDEN, ErrorCode::LinkInvalid),
        ReviewLinkError::Expired => (StatusCode::GONE, ErrorCode::LinkExpired),
        ReviewLinkError::Used => (StatusCode::GONE, ErrorCode::LinkUsed),
        ReviewLinkError::Io(_) => return ApiProblem::internal(&error),
    };
    ApiProblem::new(status, code, error.to_string())
        .with_hint("sign in and open the drafts, or run `moothall review list`")
}

fn channel_closed() -> ApiProblem {
    ApiProblem::new(
        StatusCode::FORBIDDEN,
        ErrorCode::ChannelClosed,
        "the policy does not allow approvals in the web UI",
    )
    .with_hint("add `web` to `[review] channels` in the policy, or use `moothall review`")
}
