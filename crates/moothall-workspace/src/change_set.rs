//! Judges changed files on several threads, within the policy's time limit.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use moothall_core::gate::{
    ChangeSetDecision, ChangedFile, CheckResults, FileDecision, FingerprintKey, Policy, PolicyDate,
    decide_change_set, judge_changed_file,
};

/// Judges changed files with the rules for drafts. Files that are not judged within the policy's
/// `gate_timeout` need a person.
///
/// Without `looked`, the caller runs the policy's checks and its reviewing model elsewhere;
/// otherwise those without a result are escalated, so `Some(&CheckResults::default())` is the safe
/// choice.
pub fn judge_change_set(
    policy: &Policy,
    files: &[ChangedFile],
    looked: Option<&CheckResults>,
    today: PolicyDate,
) -> ChangeSetDecision {
    let deadline = Instant::now() + Duration::from_millis(policy.limits.gate_timeout_ms);
    let judged: Vec<FileDecision> =
        judge_files(policy, files, today, deadline).into_iter().flatten().collect();
    let unread = files.len() - judged.len();
    decide_change_set(policy, judged, unread, looked, today)
}

/// Judges files until the deadline. Returns one decision for each file, or `None` for a file that
/// was not judged in time.
pub(crate) fn judge_files(
    policy: &Policy,
    files: &[ChangedFile],
    today: PolicyDate,
    deadline: Instant,
) -> Vec<Option<FileDecision>> {
    // Fingerprints of credentials are not part of these decisions, so the key does not matter.
    let key = FingerprintKey::new([0; 32]);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::channel();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let mut decisions: Vec<Option<FileDecision>> = files.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (send, key, next, stop) = (send.clone(), &key, &next, &stop);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(at) else { return };
                    let decision = judge_changed_file(policy, file, key, today, stop);
                    // A decision that was interrupted is incomplete.
                    if stop.load(Ordering::Relaxed) || send.send((at, decision)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match receive.recv_timeout(left) {
                Ok((at, decision)) => {
                    if let Some(slot) = decisions.get_mut(at) {
                        *slot = Some(decision);
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
    });
    decisions
}
