//! Installs a missing image at the moment a run needs it: from a bundle that a package installed
//! beside the program, or by building it.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use super::{BUILDING, ImageStore};
use crate::SandboxError;

/// Interval for checking whether another process has finished.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A build that starts when it is first polled. Dropping it leaves nothing behind.
pub type PendingBuild<'a> = Pin<Box<dyn Future<Output = Result<(), SandboxError>> + Send + 'a>>;

/// Where an image came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageOrigin {
    /// It was already installed, perhaps by another process in the meantime.
    Existing,
    /// The bundle of a package.
    Bundle,
    /// A build.
    Built,
}

impl ImageStore {
    /// Makes sure that the image exists. Tries the bundle first, then the build; a bundle with any
    /// wrong byte is not used. Only one process at a time imports or builds an image; others wait
    /// for it and use its result.
    pub async fn provide(
        &self,
        name: &str,
        bundle: Option<&Path>,
        build: PendingBuild<'_>,
    ) -> Result<ImageOrigin, SandboxError> {
        if self.find(name).is_ok() {
            return Ok(ImageOrigin::Existing);
        }
        let _lock = self.lock_name(name).await?;
        if self.find(name).is_ok() {
            return Ok(ImageOrigin::Existing);
        }
        if let Some(bundle) = bundle.filter(|bundle| bundle.exists()) {
            match self.import_bundle(name, bundle).await {
                Ok(()) => return Ok(ImageOrigin::Bundle),
                Err(error) => {
                    tracing::warn!(bundle = %bundle.display(), %error, "cannot use the installed image bundle");
                }
            }
        }
        build.await?;
        self.find(name).map(|_| ImageOrigin::Built)
    }

    /// Unpacking and hashing block, so they run on another thread.
    async fn import_bundle(&self, name: &str, bundle: &Path) -> Result<(), SandboxError> {
        let (store, path) = (self.clone(), bundle.to_owned());
        let import = move || {
            let file = fs_err::File::open(path)
                .map_err(SandboxError::host("cannot open the image bundle"))?;
            // Installed by the same package as the program.
            store.import(std::io::BufReader::new(file), |_| true)
        };
        tokio::task::spawn_blocking(import).await.map_err(|error| {
            SandboxError::host("the import of an image panicked")(std::io::Error::other(error))
        })??;
        self.find(name).map(drop)
    }

    /// Waits for the lock of an image. The kernel releases it when its holder dies. Polled, so that
    /// the wait can be cancelled.
    async fn lock_name(&self, name: &str) -> Result<fs_err::File, SandboxError> {
        let failed = || SandboxError::host("cannot lock the image folder");
        let folder = self.folder.join(BUILDING);
        fs_err::create_dir_all(&folder).map_err(failed())?;
        let path = folder.join(format!("{name}.lock"));
        let file = fs_err::OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(failed())?;
        loop {
            match file.file().try_lock() {
                Ok(()) => return Ok(file),
                Err(std::fs::TryLockError::WouldBlock) => {
                    tokio::time::sleep(LOCK_POLL_INTERVAL).await;
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(failed()(error)),
            }
        }
    }
}

#[cfg(test)]
#[path = "provide_tests.rs"]
mod tests;
