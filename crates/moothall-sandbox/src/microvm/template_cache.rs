//! Templates on disk, so that other processes need not boot.
//!
//! ```text
//! <cache>/templates/<key>/ram         the guest's memory, with holes
//! <cache>/templates/<key>/state       the rest of the machine
//! <cache>/templates/<key>/label.json  written last; its mtime is when the template was last used
//! <cache>/templates/<key>.lock        held while the template is built
//! <cache>/templates/.<key>.<random>   work in progress
//! ```
//!
//! A template appears atomically, by a rename. A template that does not match, is incomplete or does not
//! start is built again. Only the owner can access the folder, because anyone who can write there
//! controls what runs in a guest.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use moothall_core::Sha256Hex;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::time::{Instant, sleep};

use super::memory::{blank, copy_with_holes, read_bounded, seal, sealed};
use super::template::{MicroVmTemplate, TemplateLabel, TemplateRecipe, open_root};
use crate::SandboxError;
use crate::image::SandboxImage;

const RAM: &str = "ram";
const STATE: &str = "state";
const LABEL: &str = "label.json";

/// How many templates are kept: one or two images in a few sizes. Each takes 100 to 300 MB.
const MAX_TEMPLATES: usize = 6;

/// Size limit of a template's state. A typical state takes 60 kB.
const MAX_STATE_BYTES: u64 = 16 << 20;

/// How long to wait for another process that builds the same template.
const BUILD_LOCK_TIMEOUT: Duration = Duration::from_secs(180);

/// Age after which work in progress counts as abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

/// The folder of templates.
#[derive(Debug, Clone)]
pub(crate) struct TemplateCache {
    folder: PathBuf,
}

/// An exclusive lock across processes for building one template.
#[derive(Debug)]
pub(crate) struct TemplateLock {
    _lock: File,
}

impl TemplateCache {
    /// Opens the template cache inside `cache`.
    pub(crate) fn open(cache: &Path) -> Result<Self, SandboxError> {
        let folder = cache.join("templates");
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&folder).map_err(SandboxError::host("cannot create the template cache"))?;
        Ok(Self { folder })
    }

    /// Loads the template for a recipe if a complete one exists.
    pub(crate) async fn load(
        &self,
        recipe: &TemplateRecipe,
        image: &SandboxImage,
    ) -> Option<MicroVmTemplate> {
        let (cache, recipe, image) = (self.clone(), recipe.clone(), image.clone());
        // Blocking, because it copies about 100 MB.
        let loading = move || cache.try_load(&recipe, &image);
        match tokio::task::spawn_blocking(loading).await.map_err(io::Error::from).flatten() {
            Ok(template) => template,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(%error, "cannot use a cached template");
                None
            }
        }
    }

    fn try_load(
        &self,
        recipe: &TemplateRecipe,
        image: &SandboxImage,
    ) -> io::Result<Option<MicroVmTemplate>> {
        let folder = self.folder.join(recipe.key.to_string());
        let label_path = folder.join(LABEL);
        let label: TemplateLabel = serde_json::from_slice(&read_bounded(&label_path, 64 << 10)?)?;
        let from = fs_err::File::open(folder.join(RAM))?;
        let state = read_bounded(&folder.join(STATE), MAX_STATE_BYTES)?;
        if !recipe.accepts(&label)
            || from.metadata()?.len() != label.ram_bytes
            || Sha256Hex::of(&state) != label.state_sha256
        {
            return Ok(None);
        }
        let ram = blank("moothall-ram", label.ram_bytes)?;
        copy_with_holes(from.file(), &ram, label.ram_bytes)?;
        seal(&ram)?;
        let state = sealed("moothall-state", &[&state])?;
        let root = open_root(image).map_err(io::Error::other)?;
        // Update the time of last use. Best effort: it only affects which template is evicted
        // first.
        if let Ok(file) = fs_err::OpenOptions::new().append(true).open(&label_path) {
            let _ = file.file().set_modified(SystemTime::now());
        }
        let (accel, image_sha256) = (recipe.accel, image.sha256);
        let proven = AtomicBool::new(false);
        Ok(Some(MicroVmTemplate { label, accel, ram, state, root, image_sha256, proven }))
    }

    /// Waits for the lock to build this template.
    pub(crate) async fn lock(&self, recipe: &TemplateRecipe) -> Result<TemplateLock, SandboxError> {
        let unusable = || SandboxError::host("cannot lock a template");
        let lock: File = fs_err::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.lock_path(&recipe.key.to_string()))
            .map_err(unusable())?
            .into_parts()
            .0;
        let deadline = Instant::now() + BUILD_LOCK_TIMEOUT;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    self.remove_unfinished(&recipe.key.to_string());
                    return Ok(TemplateLock { _lock: lock });
                }
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    sleep(Duration::from_millis(50)).await;
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(SandboxError::NotReady {
                        what: "the template that another process builds",
                        waited: BUILD_LOCK_TIMEOUT,
                    });
                }
                Err(error) => return Err(unusable()(error.into())),
            }
        }
    }

    /// Removes unfinished builds of this template. Holding the lock means that their processes are
    /// gone.
    fn remove_unfinished(&self, key: &str) {
        let Ok(entries) = fs_err::read_dir(&self.folder) else { return };
        let prefix = format!(".{key}.");
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = fs_err::remove_dir_all(entry.path());
            }
        }
    }

    /// Stores a template on disk. Best effort: on failure, later starts are only slower.
    pub(crate) async fn store(
        &self,
        recipe: &TemplateRecipe,
        template: &Arc<MicroVmTemplate>,
        lock: TemplateLock,
    ) {
        let (cache, recipe, template) = (self.clone(), recipe.clone(), Arc::clone(template));
        // The lock is released when the write is done, even if this future is dropped.
        let task = move || {
            cache.write_and_evict(&recipe, &template);
            drop(lock);
        };
        if let Err(error) = tokio::task::spawn_blocking(task).await {
            tracing::warn!(%error, "cannot store a template on disk");
        }
    }

    fn write_and_evict(&self, recipe: &TemplateRecipe, template: &MicroVmTemplate) {
        let key = recipe.key.to_string();
        let fresh = self.folder.join(format!(".{key}.{}", uuid::Uuid::now_v7().simple()));
        let stored = write(&fresh, template).and_then(|()| {
            self.remove(recipe);
            fs_err::rename(&fresh, self.folder.join(&key))
        });
        if let Err(error) = stored {
            tracing::warn!(%error, "cannot store a template on disk");
            let _ = fs_err::remove_dir_all(&fresh);
        }
        self.evict(&key);
    }

    pub(crate) fn remove(&self, recipe: &TemplateRecipe) {
        let _ = fs_err::remove_dir_all(self.folder.join(recipe.key.to_string()));
    }

    /// Evicts the least recently used templates and removes abandoned builds.
    fn evict(&self, own: &str) {
        let Ok(entries) = fs_err::read_dir(&self.folder) else { return };
        let mut templates = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                let age = entry.metadata().and_then(|found| found.modified());
                let age = age.ok().and_then(|modified| modified.elapsed().ok());
                if age.is_some_and(|age| age > ABANDONED_AFTER) {
                    let _ = fs_err::remove_dir_all(entry.path());
                }
            } else if name != own && Sha256Hex::parse(&name).is_some() {
                let label = fs_err::metadata(entry.path().join(LABEL));
                let used =
                    label.and_then(|label| label.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                templates.push((used, name));
            }
        }
        templates.sort();
        let surplus = (templates.len() + 1).saturating_sub(MAX_TEMPLATES);
        for (_, name) in templates.iter().take(surplus) {
            // Processes that have it open can continue to use it.
            let _ = fs_err::remove_dir_all(self.folder.join(name));
            let _ = fs_err::remove_file(self.lock_path(name));
        }
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.lock"))
    }
}

fn write(folder: &Path, template: &MicroVmTemplate) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder.create(folder)?;
    let copy = |from: &OwnedFd, name: &str, bytes: u64| {
        let file = fs_err::File::create_new(folder.join(name))?;
        copy_with_holes(from, file.file(), bytes)?;
        // Sync before the rename, so a power failure leaves no partial template.
        file.sync_all()
    };
    let state_bytes = rustix::fs::fstat(&template.state)?.st_size;
    copy(&template.ram, RAM, template.label.ram_bytes)?;
    copy(&template.state, STATE, u64::try_from(state_bytes).unwrap_or_default())?;
    let file = fs_err::File::create_new(folder.join(LABEL))?;
    serde_json::to_writer(file.file(), &template.label)?;
    file.sync_all()
}

#[cfg(test)]
#[path = "template_cache_tests.rs"]
mod tests;
