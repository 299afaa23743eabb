//! Host properties that are needed to start virtual machines: the QEMU binary, whether KVM works,
//! the TSC frequency and the jail's restrictions. Cached until the next boot in a file of the cache
//! folder.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use moothall_core::Sha256Hex;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::memory::read_bounded;
use crate::host::replace_file;
use crate::jail::{JailCommand, JailReport, JailedProcess, read_report};
use crate::registry::boot_id;
use crate::{SandboxError, ffi, spawner};

/// Time limit for `qemu --version`.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// Search path for programs given without a folder.
const PROGRAM_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// How long one TSC measurement takes.
const TSC_SAMPLE_TIME: Duration = Duration::from_millis(20);

/// Identifies a program file, to detect replacements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramFile {
    pub(crate) path: PathBuf,
    bytes: u64,
    modified_ns: i64,
}

/// Cached host properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostInfo {
    /// Boot id of the host at the time of measurement.
    boot: String,
    /// User id, because permissions differ between users.
    user: u32,
    qemu: ProgramFile,
    jail: ProgramFile,
    /// As reported by QEMU, such as `7.2.22`.
    pub(crate) version: String,
    /// The restrictions that took effect.
    pub(crate) walls: JailReport,
    /// TSC frequency.
    pub(crate) tsc_khz: u64,
    /// Whether a guest booted with KVM; `None` if that was not tested.
    pub(crate) kvm: Option<bool>,
}

impl ProgramFile {
    /// Finds a program by name or path.
    pub(crate) fn find(name: &Path) -> Result<Self, SandboxError> {
        let missing = || SandboxError::Missing { program: name.display().to_string() };
        let candidates = match name.components().count() {
            1 => PROGRAM_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).collect(),
            _ => vec![name.to_owned()],
        };
        candidates.into_iter().find_map(|path| Self::at(&path)).ok_or_else(missing)
    }

    fn at(path: &Path) -> Option<Self> {
        let path = fs_err::canonicalize(path).ok()?;
        let found = fs_err::metadata(&path).ok().filter(|found| found.is_file())?;
        let modified_ns =
            found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
        Some(Self { path, bytes: found.len(), modified_ns })
    }
}

impl HostInfo {
    /// Reads the cached properties, or measures and caches them.
    pub(crate) async fn load_or_measure(
        file: &Path,
        qemu: &Path,
        jail: &JailCommand,
    ) -> Result<(Self, ProgramFile), SandboxError> {
        let qemu = ProgramFile::find(qemu)?;
        let jailer = ProgramFile::find(&jail.program)?;
        let boot = boot_id().map_err(SandboxError::host("cannot read the boot id of this host"))?;
        let user = rustix::process::geteuid().as_raw();
        let cached = read_bounded(file, 64 << 10).ok();
        let cached = cached.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        if let Some(cached) = cached
            && (&cached.boot, cached.user, &cached.qemu, &cached.jail)
                == (&boot, user, &qemu, &jailer)
        {
            return Ok((cached, qemu));
        }
        let (version, restrictions) = query_version(jail, &qemu).await?;
        let tsc_khz = measure_tsc_khz().await;
        let qemu_again = qemu.clone();
        let info = Self {
            boot,
            user,
            qemu,
            jail: jailer,
            version,
            walls: restrictions,
            tsc_khz,
            kvm: None,
        };
        info.save(file);
        Ok((info, qemu_again))
    }

    /// Writes the cache file. Best effort: on failure the properties are measured again next time.
    pub(crate) fn save(&self, file: &Path) {
        let Ok(text) = serde_json::to_vec(self) else { return };
        if let Err(error) = replace_file(file, &text, 0o644) {
            tracing::warn!(%error, "cannot cache host properties");
        }
    }
}

/// Whether KVM may work. Some hosts have the device although no guest boots, so the caller must
/// test it.
pub(crate) fn kvm_is_plausible() -> bool {
    let has_vendor = ["kvm_intel", "kvm_amd"]
        .iter()
        .any(|module| Path::new("/sys/module").join(module).exists());
    has_vendor && fs_err::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok()
}

/// The group of `/dev/kvm`, unless it is root's group, which must not be given to an unprivileged
/// process.
pub(crate) fn kvm_group() -> Option<u32> {
    fs_err::metadata("/dev/kvm").ok().map(|found| found.gid()).filter(|group| *group != 0)
}

/// Hash of the CPU model. With KVM the guest sees the host's CPU, so a template does not work on
/// another model.
pub(crate) fn cpu_kind() -> Sha256Hex {
    let text = fs_err::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let relevant = ["vendor_id", "cpu family", "model", "stepping", "microcode", "flags"];
    let first = text.split("\n\n").next().unwrap_or_default();
    let lines = first.lines().filter(|line| relevant.iter().any(|start| line.starts_with(start)));
    Sha256Hex::of(lines.collect::<Vec<_>>().join("\n").as_bytes())
}

/// Runs `qemu --version` in the jail. Returns the version and the restrictions that took effect.
async fn query_version(
    jail: &JailCommand,
    qemu: &ProgramFile,
) -> Result<(String, JailReport), SandboxError> {
    let unusable = || SandboxError::host("cannot run QEMU to get its version");
    let jailed = JailedProcess {
        program: qemu.path.clone(),
        args: vec!["--version".to_owned()],
        devices: vec!["/dev/null".into(), "/dev/urandom".into()],
        group: None,
        files: Vec::new(),
    };
    let query = async {
        let (mut command, report) = jail.command(jailed).map_err(unusable())?;
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = spawner::spawn(command).await.map_err(unusable())?;
        let restrictions = read_report(report).await?;
        let mut text = Vec::new();
        if let Some(stdout) = process.take_stdout() {
            let stdout = Receiver::from_owned_fd(stdout.into()).map_err(unusable())?;
            stdout.take(4 << 10).read_to_end(&mut text).await.map_err(unusable())?;
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        // `QEMU emulator version 7.2.22 (Debian …)`
        let version = text
            .split_whitespace()
            .nth(3)
            .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let version = version.ok_or_else(|| SandboxError::Start {
            engine: "QEMU".to_owned(),
            problem: format!("`{}` does not report a version", qemu.path.display()),
        })?;
        Ok((version.chars().take(40).collect(), restrictions))
    };
    let timed_out = SandboxError::NotReady { what: "QEMU's version", waited: VERSION_TIMEOUT };
    timeout(VERSION_TIMEOUT, query).await.map_err(|_| timed_out)?
}

/// Measures the TSC frequency. An emulated guest sees the host's TSC but cannot measure its
/// frequency.
async fn measure_tsc_khz() -> u64 {
    let mut rates = Vec::new();
    for _ in 0..3 {
        let (started, first) = (Instant::now(), ffi::cpu_ticks());
        tokio::time::sleep(TSC_SAMPLE_TIME).await;
        let (last, elapsed) = (ffi::cpu_ticks(), started.elapsed());
        let ticks = u128::from(last.wrapping_sub(first)) * 1_000_000;
        rates.push(u64::try_from(ticks / elapsed.as_nanos().max(1)).unwrap_or(u64::MAX));
    }
    // The median: a scheduling delay spoils at most one measurement.
    rates.sort_unstable();
    rates.get(1).copied().unwrap_or_default()
}

#[cfg(test)]
#[path = "host_info_tests.rs"]
mod tests;
