//! The walls around a hypervisor. A guest that breaks out of its virtual machine finds itself in a
//! process that may read programs and libraries and nothing else, as a user that owns nothing.
//!
//! A process cannot be put behind walls from outside without `unsafe` code between `fork` and
//! `exec`. So the hypervisor is started through a program of ours, which builds the walls around
//! itself and then becomes the hypervisor: [`enter`]. What it could not build it reports; the
//! report becomes part of what is known about the sandbox.

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

use crate::{SandboxError, raw};

/// Who owns nothing.
const NOBODY: u32 = 65_534;

/// Over this file the walls are reported. It is closed when the program starts.
const REPORT_FD: i32 = 3;

/// The first of the files that the program keeps.
pub(crate) const FIRST_FD: i32 = 4;

/// A file that the program writes: the state of a template has 60 kB.
const LARGEST_FILE: u64 = 16 << 20;

/// Open files: a hypervisor of ours has about 40.
const OPEN_FILES: u64 = 256;

/// The longest report.
const LONGEST_REPORT: u64 = 4 << 10;

/// What is asked of Landlock. A kernel that knows less holds less, and the report says so.
const LANDLOCK: ABI = ABI::V7;

/// Where programs and their libraries are.
const PROGRAMS: [&str; 10] = [
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

/// How the jail is started: a program and its first arguments, after which [`enter`] is called with
/// the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailCommand {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub args: Vec<String>,
}

/// The walls that stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JailReport {
    /// The user it runs as.
    pub uid: u32,
    /// Whether it could never have more rights than now.
    pub no_new_privileges: bool,
    /// Whether files, connections and signals are held back by Landlock.
    pub landlock: Landlock,
    /// The version of Landlock that the kernel has; 0 is none.
    pub landlock_abi: u32,
}

/// How much of what was asked of Landlock holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Landlock {
    /// Files, TCP, signals and abstract sockets.
    Full,
    /// What an older kernel can: files, and perhaps TCP.
    Partial,
    /// Nothing.
    None,
}

impl JailReport {
    /// The walls that must stand. That older kernels hold no network and no signals is told in the
    /// engine's version: there is no network in the guest, and nobody else has its user.
    pub fn self_tests(&self) -> Vec<SelfTest> {
        [
            ("jail.not-root", self.uid != 0),
            ("jail.no-new-privileges", self.no_new_privileges),
            // A user who owns nothing has nothing to read; the user's own self has.
            ("jail.files", self.landlock != Landlock::None || self.uid == NOBODY),
        ]
        .map(|(rule, held)| SelfTest { rule: RuleId::new(rule), held })
        .to_vec()
    }
}

/// What the jail is told, as its first argument.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    /// The process that must be its parent.
    parent: u32,
    /// Folders and files that may be read.
    read: Vec<PathBuf>,
    /// Devices that may be used.
    devices: Vec<PathBuf>,
    /// A group that is kept, for a device.
    group: Option<u32>,
    /// How many files beside the standard three the program keeps, from [`FIRST_FD`] on.
    files: u32,
}

/// What the jail says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Walls(JailReport),
    Failed(String),
}

/// A program to be jailed.
#[derive(Debug)]
pub(crate) struct Inmate {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// What it may use beside programs and libraries.
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) group: Option<u32>,
    /// They become the files from [`FIRST_FD`] on.
    pub(crate) files: Vec<OwnedFd>,
}

impl JailCommand {
    /// The command that starts the inmate behind walls, with its standard error as a pipe, and the
    /// way on which the walls are reported.
    pub(crate) fn command(&self, inmate: Inmate) -> io::Result<(Command, PipeReader)> {
        let mut read: Vec<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
        read.extend(own_files(&inmate.program));
        let order = Order {
            parent: std::process::id(),
            read,
            devices: inmate.devices,
            group: inmate.group,
            files: u32::try_from(inmate.files.len()).unwrap_or(u32::MAX),
        };
        let (report, reporter) = io::pipe()?;
        let mut mappings = vec![FdMapping { parent_fd: reporter.into(), child_fd: REPORT_FD }];
        for (child_fd, parent_fd) in (FIRST_FD..).zip(inmate.files) {
            mappings.push(FdMapping { parent_fd, child_fd });
        }
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(serde_json::to_string(&order)?)
            .arg(inmate.program)
            .args(inmate.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        Ok((command, report))
    }
}

/// The program itself, and where it is installed, as far as that is a place for programs: one in
/// `/opt/qemu/bin` has its libraries below `/opt/qemu`, and one in a home folder has that for itself.
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

/// Reads what the jail reports, to the end, which comes when the inmate starts.
pub(crate) async fn read_report(from: PipeReader) -> Result<JailReport, SandboxError> {
    let unreadable = || SandboxError::host("the jail's report cannot be read");
    let failed = |problem| SandboxError::Start { engine: "the jail".to_owned(), problem };
    let mut text = String::new();
    let from = tokio::net::unix::pipe::Receiver::from_owned_fd(from.into()).map_err(unreadable())?;
    from.take(LONGEST_REPORT).read_to_string(&mut text).await.map_err(unreadable())?;
    let mut report = None;
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Word::Walls(walls)) => report = Some(walls),
            Ok(Word::Failed(problem)) => return Err(failed(problem)),
            Err(_) => return Err(failed("it reports what nobody understands".to_owned())),
        }
    }
    report.ok_or_else(|| failed("it ended before it had built its walls".to_owned()))
}

/// Builds the walls and becomes the program. `args` are an order and the program with its
/// arguments, as the microVM engine passes them.
///
/// Must be called first in a process, before it has opened anything or has a second thread: users,
/// groups and Landlock belong to threads.
pub fn enter(args: impl IntoIterator<Item = OsString>) -> Result<Infallible, SandboxError> {
    let refused = |why: &str| SandboxError::Request(why.to_owned());
    raw::take_inherited_files().map_err(SandboxError::host("open files cannot be counted"))?;
    let report = take_fd_ownership(REPORT_FD).map_err(|_| refused("nobody wants the report"))?;
    let mut report = std::fs::File::from(report);
    let Err(error) = become_inmate(args, &mut report);
    tell(&mut report, &Word::Failed(error.failure().detail));
    Err(error)
}

fn become_inmate(
    args: impl IntoIterator<Item = OsString>,
    report: &mut std::fs::File,
) -> Result<Infallible, SandboxError> {
    let refused = |why: &str| SandboxError::Request(why.to_owned());
    let mut args = args.into_iter();
    let order = args.next().ok_or_else(|| refused("an order is missing"))?;
    let order: Order = order
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| refused("the order is not understood"))?;
    let program = args.next().ok_or_else(|| refused("a program is missing"))?;
    let threads = fs_err::read_dir("/proc/self/task").map(Iterator::count);
    if threads.map_err(SandboxError::host("threads cannot be counted"))? != 1 {
        return Err(refused("a second thread would stand outside the walls"));
    }

    let walls = build_walls(&order)?;
    for number in (FIRST_FD..).take(order.files as usize) {
        let file = take_fd_ownership(number).map_err(|_| refused("a file is missing"))?;
        fcntl_setfd(file.as_fd(), FdFlags::empty()).map_err(wall("a file cannot be passed on"))?;
        // It is the program's from here on; closing it when this value ends would take it away.
        let _ = std::os::fd::IntoRawFd::into_raw_fd(file);
    }
    tell(report, &Word::Walls(walls));
    let error = Command::new(&program).args(args).env_clear().exec();
    Err(SandboxError::host(format!("`{}` cannot be started", program.to_string_lossy()))(error))
}

fn build_walls(order: &Order) -> Result<JailReport, SandboxError> {
    // The rules name files, so they are made while those can still be opened.
    let landlock = |error: landlock::RulesetError| SandboxError::Host {
        what: "the walls of Landlock cannot be built".to_owned(),
        source: io::Error::other(error),
    };
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(&order.read, AccessFs::from_read(LANDLOCK)))
        })
        .and_then(|rules| rules.add_rules(path_beneath_rules(&order.devices, device)))
        .map_err(landlock)?;

    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let groups: Vec<Gid> = order.group.map(Gid::from_raw).into_iter().collect();
        set_thread_groups(&groups).map_err(wall("groups cannot be dropped"))?;
        set_thread_res_gid(group, group, group).map_err(wall("the group cannot be changed"))?;
        set_thread_res_uid(user, user, user).map_err(wall("the user cannot be changed"))?;
    }
    // After the change of user, which makes the kernel forget it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(wall("the parent's death cannot be watched"))?;
    // A parent that died before that is noticed here.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if parent != Some(order.parent) {
        return Err(SandboxError::Request("its parent is gone".to_owned()));
    }
    set_no_new_privs(true).map_err(wall("privileges cannot be given up"))?;
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Fsize, LARGEST_FILE),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Msgqueue, 0),
    ] {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        rustix::process::setrlimit(resource, limit).map_err(wall("a limit cannot be set"))?;
    }
    let status = rules.restrict_self().map_err(landlock)?;
    Ok(JailReport {
        uid: rustix::process::getuid().as_raw(),
        no_new_privileges: status.no_new_privs,
        landlock: match status.ruleset {
            RulesetStatus::FullyEnforced => Landlock::Full,
            RulesetStatus::PartiallyEnforced => Landlock::Partial,
            RulesetStatus::NotEnforced => Landlock::None,
        },
        landlock_abi: match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
        },
    })
}

fn wall(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> SandboxError {
    move |error| SandboxError::host(what)(error.into())
}

/// Best effort: whoever would hear it sees that nothing came.
fn tell(report: &mut std::fs::File, word: &Word) {
    if let Ok(mut line) = serde_json::to_vec(word) {
        line.push(b'\n');
        let _ = report.write_all(&line);
    }
}

#[cfg(test)]
#[path = "jail_tests.rs"]
mod tests;
