//! What the sandboxes of this machine are worth, for pages: a probe starts machines, so there is one
//! at a time, and what it found is told again for a while.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_server::wire::Doctor;
use tokio::sync::Mutex;

use crate::commands::doctor;
use crate::config;
use crate::error::CliError;

/// How long what was found is told again.
const STAYS: Duration = Duration::from_secs(30);

/// What was found last.
#[derive(Debug, Default)]
pub(super) struct Probing {
    last: Arc<Mutex<Option<(Instant, Doctor)>>>,
}

impl Probing {
    /// What is known, or what a probe finds with the configuration as it is now.
    pub(super) async fn ask(&self, config: Option<PathBuf>) -> Result<Doctor, CliError> {
        let last = Arc::clone(&self.last);
        // In a task of its own: whoever does not wait for the answer must not make the next one
        // begin anew.
        let asked = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some((_, known)) = last.as_ref().filter(|(at, _)| at.elapsed() < STAYS) {
                return Ok(known.clone());
            }
            let loaded = config::load(config.as_deref(), toml::Table::new())?;
            // Boxed: a probe under way is large.
            let found = Box::pin(doctor::examine(&loaded, |_| {})).await.into_report()?;
            *last = Some((Instant::now(), found.clone()));
            Ok(found)
        });
        asked.await.unwrap_or_else(|error| {
            Err(CliError::failed("the sandboxes cannot be tried").with_source(error))
        })
    }
}
