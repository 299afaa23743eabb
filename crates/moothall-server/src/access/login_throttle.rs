//! Slows down failed sign-ins at `/login`.
//!
//! Nobody guesses a token of 256 random bits. But each attempt asks the store, and thousands of them
//! are worth a line in the log.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::connections::{PeerAddress, address_group};

/// A failed attempt is answered after this time.
const FAILURE_DELAY: Duration = Duration::from_millis(500);

/// Attempts of one address in progress, those that are delayed included.
const MAX_ATTEMPTS_PER_ADDRESS: usize = 16;

/// Counts the sign-ins in progress of each address.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoginThrottle(Arc<Mutex<BTreeMap<Option<IpAddr>, usize>>>);

/// A sign-in in progress. Dropping it frees its place; a successful one is not delayed.
#[derive(Debug)]
pub(crate) struct LoginAttempt {
    throttle: LoginThrottle,
    address: Option<IpAddr>,
}

impl LoginThrottle {
    /// Begins an attempt, before anything is looked up. `None` if its address has too many.
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
    /// Logs the failure, and returns after a delay. The place stays taken for that long even if the
    /// client leaves, or leaving would be the faster way to try again.
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
