//! What must be known about the host before a virtual machine can be started, and is worth
//! remembering: which QEMU there is, whether KVM works, how fast the CPU's counter ticks, which
//! walls the jail can build. Remembered until the next boot, in a file of the cache folder.

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
use crate::jail::{Inmate, JailCommand, JailReport, read_report};
use crate::registry::boot_id;
use crate::{SandboxError, raw, spawner};

/// How long QEMU may take to say its version.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where programs are looked for that are named without a folder.
const PROGRAMS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// How long the CPU's counter is watched.
const WATCH: Duration = Duration::from_millis(20);

/// The file of a program, by which a new one is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    bytes: u64,
    modified_ns: i64,
}

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Notes {
    /// The boot of the host in which it was found out.
    boot: String,
    /// Whoever runs it: other users have other rights.
    user: u32,
    qemu: Program,
    jail: Program,
    /// As QEMU says it, such as `7.2.22`.
    pub(super) version: String,
    /// The walls around it.
    pub(super) walls: JailReport,
    /// How fast the CPU's counter ticks.
    pub(super) tsc_khz: u64,
    /// Whether KVM was tried, and whether a guest came up.
    pub(super) kvm: Option<bool>,
}

impl Program {
    /// The program of that name or path.
    pub(super) fn find(name: &Path) -> Result<Self, SandboxError> {
        let missing = || SandboxError::Missing { program: name.display().to_string() };
        let candidates = match name.components().count() {
            1 => PROGRAMS.iter().map(|folder| Path::new(folder).join(name)).collect(),
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

impl Notes {
    /// What is known, from the file or by finding it out.
    pub(super) async fn take(
        file: &Path,
        qemu: &Path,
        jail: &JailCommand,
    ) -> Result<(Self, Program), SandboxError> {
        let qemu = Program::find(qemu)?;
        let jailer = Program::find(&jail.program)?;
        let boot = boot_id().map_err(SandboxError::host("this boot of the host has no name"))?;
        let user = rustix::process::geteuid().as_raw();
        let known = read_bounded(file, 64 << 10).ok();
        let known = known.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        if let Some(known) = known
            && (&known.boot, known.user, &known.qemu, &known.jail) == (&boot, user, &qemu, &jailer)
        {
            return Ok((known, qemu));
        }
        let (version, walls) = ask(jail, &qemu).await?;
        let tsc_khz = measure_tsc_khz().await;
        let qemu_again = qemu.clone();
        let notes = Self { boot, user, qemu, jail: jailer, version, walls, tsc_khz, kvm: None };
        notes.keep(file);
        Ok((notes, qemu_again))
    }

    /// Writes it down. Best effort: it is found out again where that fails.
    pub(super) fn keep(&self, file: &Path) {
        let Ok(text) = serde_json::to_vec(self) else { return };
        if let Err(error) = replace_file(file, &text, 0o644) {
            tracing::warn!(%error, "what was found out about this host is not kept");
        }
    }
}

/// Whether KVM may work. The device alone proves nothing: some hosts have it and no guest ever
/// comes up. Whether it does work is found out by trying.
pub(super) fn kvm_is_plausible() -> bool {
    let has_vendor = ["kvm_intel", "kvm_amd"]
        .iter()
        .any(|module| Path::new("/sys/module").join(module).exists());
    has_vendor && fs_err::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok()
}

/// The group of the device, where it is one that can be given to a process without rights.
pub(super) fn kvm_group() -> Option<u32> {
    fs_err::metadata("/dev/kvm").ok().map(|found| found.gid()).filter(|group| *group != 0)
}

/// What kind of CPU this is, for machines that use it directly: a template made on one kind does
/// not fit another.
pub(super) fn cpu_kind() -> Sha256Hex {
    let text = fs_err::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let telling = ["vendor_id", "cpu family", "model", "stepping", "microcode", "flags"];
    let first = text.split("\n\n").next().unwrap_or_default();
    let lines = first.lines().filter(|line| telling.iter().any(|start| line.starts_with(start)));
    Sha256Hex::of(lines.collect::<Vec<_>>().join("\n").as_bytes())
}

/// QEMU's version, and the walls that stood around it when it was asked.
async fn ask(jail: &JailCommand, qemu: &Program) -> Result<(String, JailReport), SandboxError> {
    let unusable = || SandboxError::host("QEMU cannot be asked for its version");
    let inmate = Inmate {
        program: qemu.path.clone(),
        args: vec!["--version".to_owned()],
        devices: vec!["/dev/null".into(), "/dev/urandom".into()],
        group: None,
        files: Vec::new(),
    };
    let asking = async {
        let (mut command, report) = jail.command(inmate).map_err(unusable())?;
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = spawner::spawn(command).await.map_err(unusable())?;
        let walls = read_report(report).await?;
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
            problem: format!("`{}` does not say its version", qemu.path.display()),
        })?;
        Ok((version.chars().take(40).collect(), walls))
    };
    let late = SandboxError::NotReady { what: "QEMU's version", waited: PATIENCE };
    timeout(PATIENCE, asking).await.map_err(|_| late)?
}

/// How fast the CPU's counter ticks. An emulated guest sees the host's counter, and nothing in it
/// could tell how fast it is.
async fn measure_tsc_khz() -> u64 {
    let mut rates = Vec::new();
    for _ in 0..3 {
        let (started, first) = (Instant::now(), raw::cpu_ticks());
        tokio::time::sleep(WATCH).await;
        let (last, elapsed) = (raw::cpu_ticks(), started.elapsed());
        let ticks = u128::from(last.wrapping_sub(first)) * 1_000_000;
        rates.push(u64::try_from(ticks / elapsed.as_nanos().max(1)).unwrap_or(u64::MAX));
    }
    // The middle one: a pause between the two clocks spoils one measurement, not two.
    rates.sort_unstable();
    rates.get(1).copied().unwrap_or_default()
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
