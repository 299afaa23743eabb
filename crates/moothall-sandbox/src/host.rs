//! The sandbox engines of this host: discovers and probes them, caches probe results, and cleans up
//! after processes that are gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fs_err as fs;
use moothall_core::Sha256Hex;
use serde::{Deserialize, Serialize};

use crate::image::ImageStore;
use crate::jail::JailCommand;
#[cfg(target_os = "linux")]
use crate::microvm::{AcceleratorChoice, MicroVmEngine, MicroVmOptions};
#[cfg(target_os = "linux")]
use crate::oci::{OciEngine, OciOptions, UserNamespace};
use crate::pool::PoolOptions;
use crate::probe::{PROGRAM, ProbeReport, ProbeSubject, probe};
use crate::registry::boot_id;
use crate::sandbox_runner::{ProbedEngine, SandboxPolicy, choose};
use crate::{EngineName, GuestBinary, ProcessId, SandboxEngine, SandboxError, SandboxRegistry};

/// Age after which a temporary cache file whose writer is gone counts as abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(10);

/// Paths on this host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Folder of the images.
    pub images: PathBuf,
    /// Data that can be recreated: templates, probe results, the agent binary.
    pub cache: PathBuf,
    /// Sandbox records, bundles and the state of container runtimes.
    pub state: PathBuf,
    /// The agent binary.
    pub guest: &'static [u8],
    /// Command that confines a hypervisor.
    pub jail: JailCommand,
}

#[derive(Debug)]
pub struct SandboxHost {
    options: HostOptions,
    guest: GuestBinary,
    images: ImageStore,
    registry: SandboxRegistry,
}

/// A cached probe result and the hash of everything it depends on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CachedProbe {
    key: Sha256Hex,
    report: ProbeReport,
}

/// The installed engines that a policy allows, strongest first, and why others are not among them.
#[derive(Debug, Default)]
struct EngineCandidates {
    engines: Vec<Arc<dyn SandboxEngine>>,
    missing: Vec<String>,
}

impl SandboxHost {
    /// Unpacks the agent, and cleans up the sandboxes of processes that are gone.
    pub fn open(options: HostOptions) -> Result<Self, SandboxError> {
        remove_temporary_files(&options.cache);
        let guest = guest_file(&options.cache, options.guest)?;
        let records = Self::records(&options.state);
        for name in SandboxRegistry::reap(&records)? {
            tracing::info!(sandbox = name, "cleaned up a sandbox of a process that is gone");
        }
        let registry = SandboxRegistry::open(&records)?;
        let images = ImageStore::at(&options.images);
        Ok(Self { options, guest, images, registry })
    }

    /// The folder of sandbox records inside a state folder.
    pub fn records(state: &Path) -> PathBuf {
        state.join("sandboxes")
    }

    pub fn images(&self) -> &ImageStore {
        &self.images
    }

    /// Opens one engine, or reports why it is unavailable.
    #[cfg(target_os = "linux")]
    pub async fn engine(&self, name: EngineName) -> Result<Arc<dyn SandboxEngine>, SandboxError> {
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
                    accel: AcceleratorChoice::Automatic,
                };
                Arc::new(MicroVmEngine::open(options).await?)
            }
            EngineName::Runsc | EngineName::Runc | EngineName::Crun => {
                Arc::new(OciEngine::new(OciOptions {
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

    /// Always fails: engines need Linux.
    #[cfg(not(target_os = "linux"))]
    pub async fn engine(&self, name: EngineName) -> Result<Arc<dyn SandboxEngine>, SandboxError> {
        Err(SandboxError::NeedsLinux { what: name.to_string() })
    }

    /// Chooses and probes the engine for a policy. Cached probe results are reused while the boot
    /// and all inputs are unchanged.
    pub async fn choose(
        &self,
        policy: &SandboxPolicy,
        image: &str,
    ) -> Result<ProbedEngine, SandboxError> {
        let EngineCandidates { engines: candidates, mut missing } = self.candidates(policy).await?;
        let mut probed: Vec<ProbedEngine> = Vec::new();
        for (at, engine) in candidates.iter().enumerate() {
            match self.probe_or_cached(Arc::clone(engine), image).await {
                Ok(found) => probed.push(found),
                // A missing image affects every engine.
                Err(error @ SandboxError::Image { .. }) => return Err(error),
                Err(error) if policy.engine.is_some() => return Err(error),
                Err(error) => missing.push(format!("{}: {error}", engine.name())),
            }
            // Stop when no remaining candidate can be stronger.
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

    /// Checks that an engine that the policy allows is installed, without starting it.
    pub async fn require_engine(&self, policy: &SandboxPolicy) -> Result<(), SandboxError> {
        let EngineCandidates { engines, missing } = self.candidates(policy).await?;
        match engines.is_empty() {
            true => {
                Err(SandboxError::TooWeak { minimum: policy.minimum, found: missing.join("; ") })
            }
            false => Ok(()),
        }
    }

    async fn candidates(&self, policy: &SandboxPolicy) -> Result<EngineCandidates, SandboxError> {
        let mut found = EngineCandidates::default();
        // Skip engines that the policy does not name.
        let is_requested = |name: &EngineName| policy.engine.is_none_or(|only| only == *name);
        for name in EngineName::ALL.into_iter().filter(is_requested) {
            match self.engine(name).await {
                Ok(engine) if policy.allows(name, engine.class()) => found.engines.push(engine),
                Ok(engine) => found.missing.push(format!("{name} is {}", engine.class())),
                // The policy names this engine, so return its error.
                Err(error) if policy.engine.is_some() => return Err(error),
                Err(error) => found.missing.push(format!("{name}: {error}")),
            }
        }
        found.engines.sort_by_key(|engine| std::cmp::Reverse(engine.class()));
        Ok(found)
    }

    /// Probes an engine, ignoring cached results, and caches the new result. If user namespaces do
    /// not work, probes again without one; the engine's version then says so.
    pub async fn probe_uncached(
        &self,
        engine: Arc<dyn SandboxEngine>,
        image: &str,
    ) -> Result<ProbedEngine, SandboxError> {
        let plain = engine.without_user_namespace();
        let found = self.probe_once(engine, image).await;
        let works = found.as_ref().is_ok_and(|found| found.report.faults().is_empty());
        match plain {
            Some(plain) if !works => {
                let engine = plain.name();
                tracing::warn!(%engine, "user namespaces do not work for containers on this host; using the host's user ids");
                self.probe_once(plain, image).await
            }
            _ => found,
        }
    }

    async fn probe_once(
        &self,
        engine: Arc<dyn SandboxEngine>,
        image: &str,
    ) -> Result<ProbedEngine, SandboxError> {
        let found = self.images.find(image)?;
        let report = probe(&engine, image, ProbeSubject::of(&found)).await?;
        let key = self.probe_key(engine.as_ref(), found.sha256);
        self.cache_probe(image, &CachedProbe { key, report: report.clone() });
        Ok(ProbedEngine { engine, report })
    }

    /// Returns an engine with its cached probe result, or probes it.
    async fn probe_or_cached(
        &self,
        engine: Arc<dyn SandboxEngine>,
        image: &str,
    ) -> Result<ProbedEngine, SandboxError> {
        let image_sha256 = self.images.find(image)?.sha256;
        let cached = fs::read(self.probe_file(engine.name(), image)).ok();
        let cached = cached.and_then(|bytes| serde_json::from_slice::<CachedProbe>(&bytes).ok());
        let matches_key = |engine: &Arc<dyn SandboxEngine>, cached: &CachedProbe| {
            cached.key == self.probe_key(engine.as_ref(), image_sha256)
        };
        let Some(cached) = cached else { return self.probe_uncached(engine, image).await };
        if matches_key(&engine, &cached) {
            return Ok(ProbedEngine { engine, report: cached.report });
        }
        match engine.without_user_namespace().filter(|plain| matches_key(plain, &cached)) {
            Some(plain) => Ok(ProbedEngine { engine: plain, report: cached.report }),
            None => self.probe_uncached(engine, image).await,
        }
    }

    /// The latest probe results for this image, strongest first, without checking that they still
    /// apply. Reads only the cache and starts nothing.
    pub fn latest_probes(cache: &Path, image: &str) -> Vec<ProbeReport> {
        let cached = EngineName::ALL.into_iter().filter_map(|engine| {
            let bytes = fs::read(probe_file(cache, engine, image)).ok()?;
            serde_json::from_slice::<CachedProbe>(&bytes).ok()
        });
        let mut reports: Vec<ProbeReport> = cached.map(|cached| cached.report).collect();
        reports.sort_by_key(|report| std::cmp::Reverse(report.class));
        reports
    }

    /// One file for each image: a run with another image must not replace the result.
    fn probe_file(&self, engine: EngineName, image: &str) -> PathBuf {
        probe_file(&self.options.cache, engine, image)
    }

    /// Hash of everything a probe result depends on: boot, kernel, user, and the engine's
    /// components.
    fn probe_key(&self, engine: &dyn SandboxEngine, image_sha256: Sha256Hex) -> Sha256Hex {
        let boot = boot_id().unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let user = rustix::process::geteuid().as_raw();
        let (name, version, class) = (engine.name(), engine.version(), engine.class());
        let guest = self.guest.sha256;
        let tests = format!("{}{:?}", Sha256Hex::of(PROGRAM.as_bytes()), engine.self_tests());
        let parts = format!(
            "{tests}\n{name}\n{version}\n{class}\n{image_sha256}\n{guest}\n{boot}\n{kernel}{user}"
        );
        Sha256Hex::of(parts.as_bytes())
    }

    /// Hash of everything a kept runner depends on.
    pub(crate) fn runner_key(
        &self,
        chosen: &ProbedEngine,
        image: &str,
        options: &PoolOptions,
    ) -> Result<Sha256Hex, SandboxError> {
        let probe = self.probe_key(chosen.engine.as_ref(), self.images.find(image)?.sha256);
        let HostOptions { images, cache, state, .. } = &self.options;
        let (idle, mib) = (options.idle, options.memory.mib());
        let parts = format!("{probe}\n{image}\n{images:?}\n{cache:?}\n{state:?}\n{idle}\n{mib}");
        Ok(Sha256Hex::of(parts.as_bytes()))
    }

    fn cache_probe(&self, image: &str, cached: &CachedProbe) {
        let path = self.probe_file(cached.report.engine, image);
        // A missing cache entry only costs time: the engine is probed again.
        let written = path
            .parent()
            .map(fs::create_dir_all)
            .transpose()
            .and_then(|_| replace_file(&path, &serde_json::to_vec(cached)?, 0o644));
        if let Err(error) = written {
            tracing::warn!(%error, "cannot cache the probe result");
        }
    }
}

fn probe_file(cache: &Path, engine: EngineName, image: &str) -> PathBuf {
    cache.join("probes").join(format!("{engine}-{image}.json"))
}

/// Writes a cache file atomically: to a temporary file whose name [`remove_temporary_files`]
/// recognizes, which then replaces `path`.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    let (folder, name) = (path.parent(), path.file_name().unwrap_or_default());
    // A unique name per write, because two tasks of one process may write the same file
    // concurrently.
    let mut fresh = tempfile::Builder::new()
        .prefix(&format!("{}.", name.display()))
        .suffix(&format!(".{}.new", std::process::id()))
        .tempfile_in(folder.unwrap_or_else(|| Path::new(".")))?;
    fresh.write_all(bytes)?;
    fresh.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    fresh.persist(path)?;
    Ok(())
}

/// Removes temporary cache files left by killed processes. Best effort.
fn remove_temporary_files(cache: &Path) {
    for folder in [cache.to_owned(), cache.join("guest"), cache.join("probes")] {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            // Temporary files are named `NAME.….PID.new`. The PID of a writer on another host or in
            // another container is not visible here, so recent files are kept.
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let writer =
                name.strip_suffix(".new").and_then(|name| name.rsplit('.').next()?.parse().ok());
            let is_old = || {
                let changed = path.metadata().and_then(|found| found.modified()).ok();
                changed
                    .and_then(|changed| changed.elapsed().ok())
                    .is_some_and(|age| age > ABANDONED_AFTER)
            };
            if writer.is_some_and(|pid| ProcessId::of(pid).is_none()) && is_old() {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Writes the agent to a file that containers mount. The file is named by its hash and written
/// once.
fn guest_file(cache: &Path, bytes: &'static [u8]) -> Result<GuestBinary, SandboxError> {
    let unusable = || SandboxError::host("cannot unpack the guest agent");
    let sha256 = Sha256Hex::of(bytes);
    let folder = cache.join("guest");
    let path = folder.join(format!("moothall-guest-{sha256}"));
    // Compare the content: a truncated file must not be executed.
    if fs::read(&path).ok().as_deref() != Some(bytes) {
        fs::create_dir_all(&folder).map_err(unusable())?;
        replace_file(&path, bytes, 0o755).map_err(unusable())?;
    }
    Ok(GuestBinary { path, bytes: Arc::from(bytes), sha256 })
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
