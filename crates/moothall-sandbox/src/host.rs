//! The sandboxes that this host has: which engines there are, what they are worth, and what a dead
//! process left of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fs_err as fs;
use moothall_core::Sha256Hex;
use serde::{Deserialize, Serialize};

use crate::image::ImageStore;
use crate::jail::JailCommand;
#[cfg(target_os = "linux")]
use crate::microvm::{AccelChoice, MicroVm, MicroVmOptions};
#[cfg(target_os = "linux")]
use crate::oci::{Oci, OciOptions, UserNamespace};
use crate::probe::{PROGRAM, ProbeReport, probe};
use crate::registry::boot_id;
use crate::sandboxes::{Policy, ProbedEngine, choose};
use crate::{Engine, EngineName, GuestBinary, ProcessId, Registry, SandboxError};

/// How long writing a small file may take.
const WRITING: Duration = Duration::from_secs(10);

/// Where things are on this host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The images.
    pub images: PathBuf,
    /// What can be made again: templates, results of probes, the agent's file.
    pub cache: PathBuf,
    /// Records of sandboxes, bundles, state of container runtimes.
    pub state: PathBuf,
    /// The agent.
    pub guest: &'static [u8],
    /// How a hypervisor is put behind walls of its own.
    pub jail: JailCommand,
}

/// The engines of this host.
#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    guest: GuestBinary,
    images: ImageStore,
    registry: Registry,
}

/// The result of a probe and what it is true for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptProbe {
    key: Sha256Hex,
    report: ProbeReport,
}

impl Host {
    /// Looks at the host, and cleans up what processes that are gone left of their sandboxes.
    pub fn open(options: HostOptions) -> Result<Self, SandboxError> {
        remove_half_written(&options.cache);
        let guest = guest_file(&options.cache, options.guest)?;
        let records = Self::records(&options.state);
        for name in Registry::reap(&records)? {
            tracing::info!(sandbox = name, "cleaned up after a process that is gone");
        }
        let registry = Registry::open(&records)?;
        let images = ImageStore::at(&options.images);
        Ok(Self { options, guest, images, registry })
    }

    /// The folder of records below a state folder.
    pub fn records(state: &Path) -> PathBuf {
        state.join("sandboxes")
    }

    /// The images.
    pub fn images(&self) -> &ImageStore {
        &self.images
    }

    /// One engine, or why it is not here.
    #[cfg(target_os = "linux")]
    pub async fn engine(&self, name: EngineName) -> Result<Arc<dyn Engine>, SandboxError> {
        let (images, guest, registry) =
            (self.images.clone(), self.guest.clone(), self.registry.clone());
        Ok(match name {
            EngineName::Microvm => {
                let options = MicroVmOptions {
                    qemu: MicroVmOptions::QEMU.into(),
                    jail: self.options.jail.clone(),
                    images,
                    guest,
                    cache: self.options.cache.clone(),
                    registry,
                    accel: AccelChoice::Automatic,
                };
                Arc::new(MicroVm::open(options).await?)
            }
            EngineName::Runsc | EngineName::Runc | EngineName::Crun => {
                Arc::new(Oci::new(OciOptions {
                    runtime: name,
                    images,
                    guest,
                    registry,
                    state: self.options.state.join("oci"),
                    user_namespace: UserNamespace::Private,
                })?)
            }
        })
    }

    /// Why there is no engine.
    #[cfg(not(target_os = "linux"))]
    pub async fn engine(&self, name: EngineName) -> Result<Arc<dyn Engine>, SandboxError> {
        Err(SandboxError::NeedsLinux { what: name.to_string() })
    }

    /// The engine that a policy wants, tried out. What was tried on this boot of the host with the
    /// same parts is not tried again.
    pub async fn choose(&self, policy: &Policy, image: &str) -> Result<ProbedEngine, SandboxError> {
        let mut candidates = Vec::new();
        let mut missing = Vec::new();
        // One that is not asked for is not even looked for.
        let wanted = |name: &EngineName| policy.engine.is_none_or(|wanted| wanted == *name);
        for name in EngineName::ALL.into_iter().filter(wanted) {
            match self.engine(name).await {
                Ok(engine) if policy.allows(name, engine.class()) => candidates.push(engine),
                Ok(engine) => missing.push(format!("{name} is {}", engine.class())),
                // Named and not there: its own words are the answer.
                Err(error) if policy.engine.is_some() => return Err(error),
                Err(error) => missing.push(format!("{name}: {error}")),
            }
        }
        candidates.sort_by_key(|engine| std::cmp::Reverse(engine.class()));
        let mut probed: Vec<ProbedEngine> = Vec::new();
        for (at, engine) in candidates.iter().enumerate() {
            match self.probed(Arc::clone(engine), image).await {
                Ok(found) => probed.push(found),
                // An image that is not there is missing for every engine.
                Err(error @ SandboxError::Image { .. }) => return Err(error),
                Err(error) if policy.engine.is_some() => return Err(error),
                Err(error) => missing.push(format!("{}: {error}", engine.name())),
            }
            // Nothing that follows can be stronger.
            let next = candidates.get(at + 1).map(|engine| engine.class());
            if let Ok(chosen) = choose(&probed, policy)
                && next.is_none_or(|next| chosen.report.class >= next)
            {
                return Ok(chosen);
            }
        }
        choose(&probed, policy).map_err(|error| match error {
            SandboxError::TooWeak { minimum, .. } if probed.is_empty() => {
                SandboxError::TooWeak { minimum, found: missing.join("; ") }
            }
            other => other,
        })
    }

    /// Tries an engine out, whatever was found out before, and keeps what was found out now. Where user
    /// ids of its own do not work, it is tried without; its version says so.
    pub async fn try_out(
        &self,
        engine: Arc<dyn Engine>,
        image: &str,
    ) -> Result<ProbedEngine, SandboxError> {
        let plain = engine.without_user_namespace();
        let found = self.try_once(engine, image).await;
        let works = found.as_ref().is_ok_and(|found| found.report.faults().is_empty());
        match plain {
            Some(plain) if !works => {
                let engine = plain.name();
                tracing::warn!(%engine, "containers cannot have user ids of their own here");
                self.try_once(plain, image).await
            }
            _ => found,
        }
    }

    async fn try_once(
        &self,
        engine: Arc<dyn Engine>,
        image: &str,
    ) -> Result<ProbedEngine, SandboxError> {
        let image_sha256 = self.images.find(image)?.sha256;
        let report = probe(&engine, image).await?;
        let key = self.probe_key(engine.as_ref(), image_sha256);
        self.keep_probe(&KeptProbe { key, report: report.clone() });
        Ok(ProbedEngine { engine, report })
    }

    /// An engine with what was found out about it, now or before.
    async fn probed(
        &self,
        engine: Arc<dyn Engine>,
        image: &str,
    ) -> Result<ProbedEngine, SandboxError> {
        let image_sha256 = self.images.find(image)?.sha256;
        let kept = fs::read(self.probe_file(engine.name())).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice::<KeptProbe>(&bytes).ok());
        let is_for = |engine: &Arc<dyn Engine>, kept: &KeptProbe| {
            kept.key == self.probe_key(engine.as_ref(), image_sha256)
        };
        let Some(kept) = kept else { return self.try_out(engine, image).await };
        if is_for(&engine, &kept) {
            return Ok(ProbedEngine { engine, report: kept.report });
        }
        match engine.without_user_namespace().filter(|plain| is_for(plain, &kept)) {
            Some(plain) => Ok(ProbedEngine { engine: plain, report: kept.report }),
            None => self.try_out(engine, image).await,
        }
    }

    fn probe_file(&self, engine: EngineName) -> PathBuf {
        self.options.cache.join("probes").join(format!("{engine}.json"))
    }

    /// What a probe is true for: this boot, this kernel, this user and these parts.
    fn probe_key(&self, engine: &dyn Engine, image_sha256: Sha256Hex) -> Sha256Hex {
        let boot = boot_id().unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let user = rustix::process::geteuid().as_raw();
        let (name, version, class) = (engine.name(), engine.version(), engine.class());
        let guest = self.guest.sha256;
        let tried = format!("{}{:?}", Sha256Hex::of(PROGRAM.as_bytes()), engine.self_tests());
        let parts = format!(
            "{tried}\n{name}\n{version}\n{class}\n{image_sha256}\n{guest}\n{boot}\n{kernel}{user}"
        );
        Sha256Hex::of(parts.as_bytes())
    }

    fn keep_probe(&self, kept: &KeptProbe) {
        let path = self.probe_file(kept.report.engine);
        // A probe that is not kept is made again; that is slow and not wrong.
        let written = path
            .parent()
            .map(fs::create_dir_all)
            .transpose()
            .and_then(|_| replace_file(&path, &serde_json::to_vec(kept)?, 0o644));
        if let Err(error) = written {
            tracing::warn!(%error, "the result of a probe is not kept");
        }
    }
}

/// Writes a file of the cache as a whole: beside it, under the name that [`remove_half_written`]
/// knows, and then over it.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    let (folder, name) = (path.parent(), path.file_name().unwrap_or_default());
    // A name of its own for each: two parts of one process may write the same file at once.
    let mut fresh = tempfile::Builder::new()
        .prefix(&format!("{}.", name.display()))
        .suffix(&format!(".{}.new", std::process::id()))
        .tempfile_in(folder.unwrap_or_else(|| Path::new(".")))?;
    fresh.write_all(bytes)?;
    fresh.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    fresh.persist(path)?;
    Ok(())
}

/// Removes files of the cache that processes were writing when they were killed. Best effort.
fn remove_half_written(cache: &Path) {
    for folder in [cache.to_owned(), cache.join("guest"), cache.join("probes")] {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            // `NAME.….PID.new`, for a moment. One that a process on another host or in another
            // container writes may look as if nobody did; it is not that old.
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let writer =
                name.strip_suffix(".new").and_then(|name| name.rsplit('.').next()?.parse().ok());
            let is_old = || {
                let changed = path.metadata().and_then(|found| found.modified()).ok();
                changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|age| age > WRITING)
            };
            if writer.is_some_and(|pid| ProcessId::of(pid).is_none()) && is_old() {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The agent as a file, which containers mount. Named by its hash and written once.
fn guest_file(cache: &Path, bytes: &'static [u8]) -> Result<GuestBinary, SandboxError> {
    let unusable = || SandboxError::host("the guest agent cannot be unpacked");
    let sha256 = Sha256Hex::of(bytes);
    let folder = cache.join("guest");
    let path = folder.join(format!("moothall-guest-{sha256}"));
    // Compared, not only looked for: a file that broke off must not run.
    if fs::read(&path).ok().as_deref() != Some(bytes) {
        fs::create_dir_all(&folder).map_err(unusable())?;
        replace_file(&path, bytes, 0o755).map_err(unusable())?;
    }
    Ok(GuestBinary { path, bytes: Arc::from(bytes), sha256 })
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
