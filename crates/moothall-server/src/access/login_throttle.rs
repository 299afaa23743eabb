//! Throttles failed sign-ins at `/login`.
//!
//! A token of 256 random bits cannot be guessed, but each attempt queries the store, and thousands
//! of attempts should show up in the log.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::connections::{PeerAddress, address_group};

/// Delay of the response to a failed attempt.
const FAILURE_DELAY: Duration = Duration::from_millis(500);

/// Maximum concurrent attempts per address, including delayed ones.
const MAX_ATTEMPTS_PER_ADDRESS: usize = 16;

/// Counts the sign-ins in progress per address.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoginThrottle(Arc<Mutex<BTreeMap<Option<IpAddr>, usize>>>);

/// A sign-in in progress. Dropping it frees its slot; only failed attempts are delayed.
#[derive(Debug)]
pub(crate) struct LoginAttempt {
    throttle: LoginThrottle,
    address: Option<IpAddr>,
}

impl LoginThrottle {
    /// Starts an attempt; call it before any lookup. Returns `None` if the address has too many
    /// attempts in progress.
    pub(crate) fn begin(&self, peer: Option<PeerAddress>) -> Option<LoginAttempt> {
        let address = peer.and_then(|PeerAddress(address)| address).map(address_group);
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = attempts.entry(address).or_default();
        if *count >= MAX_ATTEMPTS_PER_ADDRESS {
            return None;
        }
        *count += 1;
        Some(LoginAttempt { throttle: self.clone(), address })
    }
}

impl LoginAttempt {
    /// Logs the failure and returns after a delay. The slot stays taken for that time even if the
    /// client disconnects, so disconnecting does not speed up retries.
    pub(crate) async fn failed(self) {
        let address = self.address.map(|address| address.to_string()).unwrap_or_default();
        tracing::warn!(target: "moothall::server", address, "failed sign-in");
        let delayed = tokio::spawn(async move {
            tokio::time::sleep(FAILURE_DELAY).await;
            drop(self);
        });
        let _ = delayed.await;
    }
}

impl Drop for LoginAttempt {
    fn drop(&mut self) {
        let mut attempts = self.throttle.0.lock().unwrap_or_else(PoisonError::into_inner);
        match attempts.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                attempts.remove(&self.address);
            }
        }
    }
}
