//! Cached sandbox tests for the web UI. A test starts virtual machines, so only one runs at a time
//! and its result is reused for a while.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_server::dto::DoctorResponse;
use tokio::sync::Mutex;

use crate::commands::doctor;
use crate::config;
use crate::error::CliError;

/// How long a result is reused.
const CACHE_TTL: Duration = Duration::from_secs(30);

/// The latest result.
#[derive(Debug, Default)]
pub(crate) struct DoctorCache {
    last: Arc<Mutex<Option<(Instant, DoctorResponse)>>>,
}

impl DoctorCache {
    /// Returns the cached result, or runs the tests with the current configuration.
    pub(crate) async fn ask(&self, config: Option<PathBuf>) -> Result<DoctorResponse, CliError> {
        let last = Arc::clone(&self.last);
        // In a separate task, so a client that disconnects does not abort the tests.
        let task = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some((_, known)) = last.as_ref().filter(|(at, _)| at.elapsed() < CACHE_TTL) {
                return Ok(known.clone());
            }
            let loaded = config::load(config.as_deref(), toml::Table::new())?;
            // Boxed because the future is large.
            let found = Box::pin(doctor::examine(&loaded, |_| {})).await.into_report()?;
            *last = Some((Instant::now(), found.clone()));
            Ok(found)
        });
        task.await.unwrap_or_else(|error| {
            Err(CliError::failed("cannot test the sandboxes").with_source(error))
        })
    }
}
