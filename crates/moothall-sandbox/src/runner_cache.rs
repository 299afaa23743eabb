//! Sandbox runners that a long-lived process keeps, so that a request finds an idle sandbox.

use std::sync::{Mutex, MutexGuard, PoisonError};

use moothall_core::Sha256Hex;
use tokio::task::JoinSet;

use crate::{PoolOptions, ProbedEngine, SandboxError, SandboxHost, SandboxPolicy, SandboxRunner};

/// Limit of kept runners. The least recently requested one is shut down.
const MAX_RUNNERS: usize = 4;

/// Keeps runners and their pools between requests, until [`RunnerCache::shut_down`].
#[derive(Debug, Default)]
pub struct RunnerCache {
    state: Mutex<RunnerCacheState>,
}

#[derive(Debug, Default)]
struct RunnerCacheState {
    /// Least recently requested first.
    runners: Vec<KeptRunner>,
    evictions: JoinSet<()>,
    is_closed: bool,
}

#[derive(Debug)]
struct KeptRunner {
    key: Sha256Hex,
    image: String,
    runner: SandboxRunner,
}

impl RunnerCache {
    /// Returns the runner for this policy and image. It is the same one as long as nothing that it
    /// depends on changes: engine, image, guest agent, folders and pool.
    pub async fn runner(
        &self,
        host: &SandboxHost,
        policy: &SandboxPolicy,
        image: &str,
        options: PoolOptions,
    ) -> Result<SandboxRunner, SandboxError> {
        let chosen = host.choose(policy, image).await?;
        let key = host.runner_key(&chosen, image, &options)?;
        Ok(self.get_or_insert(key, image, chosen, options))
    }

    fn get_or_insert(
        &self,
        key: Sha256Hex,
        image: &str,
        chosen: ProbedEngine,
        options: PoolOptions,
    ) -> SandboxRunner {
        let mut state = self.lock();
        if state.is_closed {
            return SandboxRunner::new(chosen, options);
        }
        // Discard the results of finished shutdowns.
        while state.evictions.try_join_next().is_some() {}
        let kept = match state.runners.iter().position(|kept| kept.key == key) {
            Some(index) => state.runners.remove(index),
            None => {
                let runner = SandboxRunner::new(chosen, options);
                // The image was rebuilt or the settings changed: nothing will request the old one.
                let engine = runner.engine().name();
                let replaced = state
                    .runners
                    .iter()
                    .position(|kept| kept.image == image && kept.runner.engine().name() == engine);
                let is_full = state.runners.len() >= MAX_RUNNERS;
                if let Some(index) = replaced.or_else(|| is_full.then_some(0)) {
                    let KeptRunner { runner: evicted, .. } = state.runners.remove(index);
                    state.evictions.spawn(async move { evicted.shut_down().await });
                }
                KeptRunner { key, image: image.to_owned(), runner }
            }
        };
        let shared = kept.runner.shared();
        state.runners.push(kept);
        shared
    }

    /// Ends all idle sandboxes. Runners that are requested later are not kept.
    pub async fn shut_down(&self) {
        let (runners, mut evictions) = {
            let mut state = self.lock();
            state.is_closed = true;
            (std::mem::take(&mut state.runners), std::mem::take(&mut state.evictions))
        };
        for kept in runners {
            kept.runner.shut_down().await;
        }
        while evictions.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, RunnerCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "runner_cache_tests.rs"]
mod tests;
