//! Confines the hypervisor. A guest that escapes its virtual machine ends up in a process that can
//! read only programs and libraries and runs as an unprivileged user.
//!
//! Confining a child process would need `unsafe` code between `fork` and `exec`. Instead, the
//! hypervisor is started through a small program that confines itself and then execs the
//! hypervisor: [`enter`]. It reports the restrictions that took effect, and the report becomes part
//! of the sandbox's attestation.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, PipeReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use command_fds::inherited::take_fd_ownership;
use command_fds::{CommandFdExt as _, FdMapping};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};
use moothall_core::RuleId;
use moothall_core::sandbox::SelfTest;
use rustix::fs::{Gid, Uid};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

use crate::{SandboxError, ffi};

/// User and group id of `nobody`.
const NOBODY: u32 = 65_534;

/// File descriptor for the report. It is closed when the program starts.
const REPORT_FD: i32 = 3;

/// First file descriptor passed on to the program.
pub(crate) const FIRST_FD: i32 = 4;

/// Size limit of a file that the program writes. A template's state takes 60 kB.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Limit of open files. The hypervisor uses about 40.
const MAX_OPEN_FILES: u64 = 256;

/// Size limit of the report, in bytes.
const MAX_REPORT_BYTES: u64 = 4 << 10;

/// The requested Landlock ABI. Older kernels enforce less, which the report states.
const LANDLOCK: ABI = ABI::V7;

/// Locations of programs and libraries.
const READABLE_PATHS: [&str; 10] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.preload",
];

/// The command that starts the jail. Its process must call [`enter`] with the arguments that follow
/// `args`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailCommand {
    pub program: PathBuf,
    /// Arguments that come before those for [`enter`].
    pub args: Vec<String>,
}

/// The restrictions that took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JailReport {
    /// User id of the program.
    pub uid: u32,
    /// Whether gaining privileges is ruled out (`no_new_privs`).
    pub no_new_privileges: bool,
    /// What Landlock restricts.
    pub landlock: LandlockCoverage,
    /// Landlock ABI of the kernel; 0 if it has none.
    pub landlock_abi: u32,
}

/// How much of the requested Landlock rules is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LandlockCoverage {
    /// Files, TCP, signals and abstract sockets.
    Full,
    /// What an older kernel supports: files and perhaps TCP.
    Partial,
    None,
}

impl JailReport {
    /// The required restrictions. Missing TCP and signal rules on older kernels are only noted in
    /// the engine's version: the guest has no network, and no other process runs as its user.
    pub fn self_tests(&self) -> Vec<SelfTest> {
        [
            ("jail.not-root", self.uid != 0),
            ("jail.no-new-privileges", self.no_new_privileges),
            // `nobody` has no private files to protect; the calling user has, so Landlock is
            // required then.
            ("jail.files", self.landlock != LandlockCoverage::None || self.uid == NOBODY),
        ]
        .map(|(rule, held)| SelfTest { rule: RuleId::new(rule), held })
        .to_vec()
    }
}

/// The jail's first argument, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JailConfig {
    /// Expected parent process id.
    parent: u32,
    /// Files and folders the program may read.
    read: Vec<PathBuf>,
    /// Devices the program may use.
    devices: Vec<PathBuf>,
    /// Group to keep, for access to a device.
    group: Option<u32>,
    /// How many file descriptors, from [`FIRST_FD`] on, the program inherits.
    files: u32,
}

/// A message on the report pipe.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JailMessage {
    Walls(JailReport),
    Failed(String),
}

/// A program to start in the jail.
#[derive(Debug)]
pub(crate) struct JailedProcess {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// Devices it may use.
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) group: Option<u32>,
    /// Inherited as file descriptors from [`FIRST_FD`] on.
    pub(crate) files: Vec<OwnedFd>,
}

impl JailCommand {
    /// Builds the command that starts the program in the jail, with standard error piped, and the
    /// pipe for the report.
    pub(crate) fn command(&self, jailed: JailedProcess) -> io::Result<(Command, PipeReader)> {
        let mut read: Vec<PathBuf> = READABLE_PATHS.iter().map(PathBuf::from).collect();
        read.extend(own_files(&jailed.program));
        let config = JailConfig {
            parent: std::process::id(),
            read,
            devices: jailed.devices,
            group: jailed.group,
            files: u32::try_from(jailed.files.len()).unwrap_or(u32::MAX),
        };
        let (report, reporter) = io::pipe()?;
        let mut mappings = vec![FdMapping { parent_fd: reporter.into(), child_fd: REPORT_FD }];
        for (child_fd, parent_fd) in (FIRST_FD..).zip(jailed.files) {
            mappings.push(FdMapping { parent_fd, child_fd });
        }
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(serde_json::to_string(&config)?)
            .arg(jailed.program)
            .args(jailed.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        Ok((command, report))
    }
}

/// The program and its install prefix: a program in `/opt/qemu/bin` has its libraries below
/// `/opt/qemu`. A program that is not in a `bin` folder gets only its own file.
fn own_files(program: &Path) -> Vec<PathBuf> {
    let mut files = vec![program.to_owned()];
    if let Some(folder) = program.parent()
        && folder.file_name().is_some_and(|name| name == "bin")
        && let Some(prefix) = folder.parent()
        && prefix.parent().is_some()
    {
        files.push(prefix.to_owned());
    }
    files
}

/// Reads the jail's report. The pipe closes when the program starts.
pub(crate) async fn read_report(from: PipeReader) -> Result<JailReport, SandboxError> {
    let unreadable = || SandboxError::host("cannot read the jail's report");
    let failed = |problem| SandboxError::Start { engine: "the jail".to_owned(), problem };
    let mut text = String::new();
    let from = tokio::net::unix::pipe::Receiver::from_owned_fd(from.into()).map_err(unreadable())?;
    from.take(MAX_REPORT_BYTES).read_to_string(&mut text).await.map_err(unreadable())?;
    let mut report = None;
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(JailMessage::Walls(restrictions)) => report = Some(restrictions),
            Ok(JailMessage::Failed(problem)) => return Err(failed(problem)),
            Err(_) => return Err(failed("the report is not valid".to_owned())),
        }
    }
    report.ok_or_else(|| failed("it exited before it was confined".to_owned()))
}

/// Confines this process and execs the program. `args` are the JSON order, the program and its
/// arguments, as the microVM engine passes them.
///
/// Must be called first in a process, before it opens files or starts a second thread: users,
/// groups and Landlock rules apply per thread.
pub fn enter(args: impl IntoIterator<Item = OsString>) -> Result<Infallible, SandboxError> {
    let refused = |why: &str| SandboxError::Request(why.to_owned());
    ffi::take_inherited_files().map_err(SandboxError::host("cannot count open files"))?;
    let report = take_fd_ownership(REPORT_FD)
        .map_err(|_| refused("the report file descriptor is missing"))?;
    let mut report = std::fs::File::from(report);
    let Err(error) = confine_and_exec(args, &mut report);
    send_report(&mut report, &JailMessage::Failed(error.failure().detail));
    Err(error)
}

fn confine_and_exec(
    args: impl IntoIterator<Item = OsString>,
    report: &mut std::fs::File,
) -> Result<Infallible, SandboxError> {
    let refused = |why: &str| SandboxError::Request(why.to_owned());
    let mut args = args.into_iter();
    let config = args.next().ok_or_else(|| refused("the jail configuration is missing"))?;
    let config: JailConfig =
        config.to_str().and_then(|text| serde_json::from_str(text).ok()).ok_or_else(|| {
            refused("cannot read the jail's arguments; restart moothall if it was updated")
        })?;
    let program = args.next().ok_or_else(|| refused("the program to start is missing"))?;
    let threads = fs_err::read_dir("/proc/self/task").map(Iterator::count);
    if threads.map_err(SandboxError::host("cannot count threads"))? != 1 {
        return Err(refused("the process has a second thread, which would not be confined"));
    }

    let restrictions = apply_restrictions(&config)?;
    for number in (FIRST_FD..).take(config.files as usize) {
        let file = take_fd_ownership(number)
            .map_err(|_| refused("an inherited file descriptor is missing"))?;
        fcntl_setfd(file.as_fd(), FdFlags::empty())
            .map_err(host_error("cannot pass on a file descriptor"))?;
        // The program inherits it, so it must not be closed on drop.
        let _ = std::os::fd::IntoRawFd::into_raw_fd(file);
    }
    send_report(report, &JailMessage::Walls(restrictions));
    let error = Command::new(&program).args(args).env_clear().exec();
    Err(SandboxError::host(format!("cannot start `{}`", program.to_string_lossy()))(error))
}

fn apply_restrictions(config: &JailConfig) -> Result<JailReport, SandboxError> {
    // Rules open the files they name, so create them while that is still allowed.
    let landlock = |error: landlock::RulesetError| SandboxError::Host {
        what: "cannot apply Landlock rules".to_owned(),
        source: io::Error::other(error),
    };
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(&config.read, AccessFs::from_read(LANDLOCK)))
        })
        .and_then(|rules| rules.add_rules(path_beneath_rules(&config.devices, device)))
        .map_err(landlock)?;

    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let groups: Vec<Gid> = config.group.map(Gid::from_raw).into_iter().collect();
        set_thread_groups(&groups).map_err(host_error("cannot drop supplementary groups"))?;
        set_thread_res_gid(group, group, group).map_err(host_error("cannot change the group"))?;
        set_thread_res_uid(user, user, user).map_err(host_error("cannot change the user"))?;
    }
    // After changing the user, because that clears the setting.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(host_error("cannot set the parent death signal"))?;
    // The parent may have died before the signal was set.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if parent != Some(config.parent) {
        return Err(SandboxError::Request("the parent process is gone".to_owned()));
    }
    set_no_new_privs(true).map_err(host_error("cannot set no_new_privs"))?;
    for (resource, max) in [
        (Resource::Core, 0),
        (Resource::Fsize, MAX_FILE_BYTES),
        (Resource::Nofile, MAX_OPEN_FILES),
        (Resource::Msgqueue, 0),
    ] {
        let limit = Rlimit { current: Some(max), maximum: Some(max) };
        rustix::process::setrlimit(resource, limit)
            .map_err(host_error("cannot set a resource limit"))?;
    }
    let status = rules.restrict_self().map_err(landlock)?;
    Ok(JailReport {
        uid: rustix::process::getuid().as_raw(),
        no_new_privileges: status.no_new_privs,
        landlock: match status.ruleset {
            RulesetStatus::FullyEnforced => LandlockCoverage::Full,
            RulesetStatus::PartiallyEnforced => LandlockCoverage::Partial,
            RulesetStatus::NotEnforced => LandlockCoverage::None,
        },
        landlock_abi: match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
        },
    })
}

fn host_error(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> SandboxError {
    move |error| SandboxError::host(what)(error.into())
}

/// Best effort: the reader treats a missing report as a failure.
fn send_report(report: &mut std::fs::File, message: &JailMessage) {
    if let Ok(mut line) = serde_json::to_vec(message) {
        line.push(b'\n');
        let _ = report.write_all(&line);
    }
}

#[cfg(test)]
#[path = "jail_tests.rs"]
mod tests;
