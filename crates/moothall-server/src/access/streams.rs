//! Limits the open event streams per token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use moothall_core::ErrorCode;
use moothall_core::access::{AccessCaller, TokenId};

use crate::{ApiProblem, CallerIdentity};

/// Maximum open event streams per token. A browser tab uses one or two.
pub(crate) const MAX_STREAMS_PER_TOKEN: usize = 64;

const RETRY_AFTER_SECONDS: u32 = 5;

/// Counts the open event streams per token. A stream outlives the request that opened it, so the
/// request rate limit does not cover streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamLimiter(Arc<Mutex<BTreeMap<TokenId, usize>>>);

/// An open stream. Dropping it frees its slot.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    limiter: StreamLimiter,
    token: Option<TokenId>,
}

impl StreamLimiter {
    /// Counts a stream of this caller until the permit is dropped. Callers without a token (the
    /// local user, or a session from a login link) are not limited.
    pub(crate) fn open(&self, caller: &CallerIdentity) -> Result<StreamPermit, ApiProblem> {
        let token = match &caller.0 {
            AccessCaller::Known(member) => member.owner.token.clone(),
            AccessCaller::Nobody
            | AccessCaller::Unknown
            | AccessCaller::Expired
            | AccessCaller::Revoked => None,
        };
        if let Some(token) = &token {
            let mut open = self.lock();
            let streams = open.entry(token.clone()).or_default();
            if *streams >= MAX_STREAMS_PER_TOKEN {
                let detail = format!(
                    "too many open event streams (limit per token: {MAX_STREAMS_PER_TOKEN})"
                );
                return Err(ApiProblem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    ErrorCode::TooManyStreams,
                    detail,
                )
                .with_hint("close unused streams, or use another token")
                .retry_after(RETRY_AFTER_SECONDS));
            }
            *streams += 1;
        }
        Ok(StreamPermit { limiter: self.clone(), token })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TokenId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let Some(token) = &self.token else { return };
        let mut open = self.limiter.lock();
        match open.get_mut(token) {
            Some(streams) if *streams > 1 => *streams -= 1,
            _ => {
                open.remove(token);
            }
        }
    }
}
