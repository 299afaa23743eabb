//! The content of files that were sent with a request. The spec of the run refers to them by hash,
//! and the store keeps them with the run, so any process can resume it.

use std::collections::BTreeMap;

use moothall_core::sandbox::FileRef;
use moothall_core::{RunId, RunSettings, Sha256Hex};
use moothall_store::{Store, StoreError};

use crate::display;
use crate::error::CliError;
use crate::run_store;

/// Content of files, by hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunFiles(BTreeMap<Sha256Hex, Vec<u8>>);

impl RunFiles {
    pub(crate) fn of(contents: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut files = Self::default();
        contents.into_iter().for_each(|content| {
            files.add(content);
        });
        files
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, content: Vec<u8>) -> FileRef {
        let file = FileRef::of(&content);
        self.0.insert(file.sha256, content);
        file
    }

    /// The content of a file. `name` is used in the error.
    pub(crate) fn content(&self, name: &str, file: &FileRef) -> Result<&[u8], CliError> {
        self.0.get(&file.sha256).map(Vec::as_slice).ok_or_else(|| {
            let name = display::line(name);
            CliError::failed(format!(
                "`{name}` was never stored: the process was killed before the run started"
            ))
            .with_hint("start the run again with its files")
        })
    }

    /// Stores the files with their run. Idempotent.
    pub(crate) async fn store(&self, store: &dyn Store, run_id: &RunId) -> Result<(), StoreError> {
        for content in self.0.values() {
            store.keep_artifact(run_id, content).await?;
        }
        Ok(())
    }

    /// Reads the uploaded files of a run back. Missing ones are noticed when they are used.
    pub(crate) async fn load(
        store: &dyn Store,
        run_id: &RunId,
        settings: &RunSettings,
    ) -> Result<Self, CliError> {
        let mut files = Self::default();
        for file in settings.uploaded_files() {
            let content = store.artifact(run_id, &file.sha256).await;
            if let Some(content) = content.map_err(run_store::store_error)? {
                files.0.insert(file.sha256, content);
            }
        }
        Ok(files)
    }
}
