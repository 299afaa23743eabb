//! Confines the current process before it handles untrusted input.
//!
//! Afterwards the process keeps the files and sockets it already has open and nothing else: it
//! cannot open a file, start a program or make a connection. Landlock blocks file and TCP access; a
//! seccomp filter blocks what Landlock does not cover, such as UDP, Unix sockets of other programs,
//! file modes and owners, and signals. Every restriction is tested, and one that does not take
//! effect is an error.

use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr as _, Scope,
};
use rustix::fs::{self as sys, Mode};
use rustix::process::{getpid, test_kill_process};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

use crate::SandboxError;
use crate::ffi;

/// The Landlock ABI that is requested, and the lowest one accepted: TCP rules exist since version
/// 4.
const LANDLOCK: ABI = ABI::V7;
const MIN_LANDLOCK_ABI: u32 = 4;

/// System calls that a confined process never needs. `accept` is allowed, so sockets that are
/// already open keep working.
const DENIED: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    // Can perform all of the above without the system call.
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_inotify_add_watch,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // File operations that Landlock does not restrict.
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // The `*at` variants: setxattrat, getxattrat, listxattrat, removexattrat; also file_getattr and
    // file_setattr. `libc` does not define them yet.
    463,
    464,
    465,
    466,
    468,
    469,
    // Landlock restricts signals only since version 6.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
];

/// The x32 ABI repeats the system calls from this number on, which a filter of exact numbers would
/// miss.
const X32_SYSCALL_START: u32 = 0x4000_0000;

/// Confines this process, tests the restrictions on `workspace` and `state`, and returns the
/// operations that were denied.
///
/// Must be called while the process has one thread, because other threads would not be confined.
pub fn confine(workspace: &Path, state: &Path) -> Result<Vec<&'static str>, SandboxError> {
    let threads = fs_err::read_dir("/proc/self/task").map(Iterator::count);
    if threads.map_err(SandboxError::host("cannot count threads"))? != 1 {
        let message = "the process has a second thread, which would not be confined";
        return Err(SandboxError::Request(message.to_owned()));
    }
    let landlock = |error: landlock::RulesetError| SandboxError::Host {
        what: "cannot apply Landlock rules".to_owned(),
        source: io::Error::other(error),
    };
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(landlock)?;
    let found = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled => return Err(SandboxError::LandlockDisabled),
        LandlockStatus::NotImplemented => 0,
    };
    if found < MIN_LANDLOCK_ABI {
        return Err(SandboxError::LandlockTooOld { found, needed: MIN_LANDLOCK_ABI });
    }
    filter_calls()?;
    test_restrictions(workspace, state)
}

fn filter_calls() -> Result<(), SandboxError> {
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    // Allowed only on the process itself: the C library aborts with a signal and reads its own
    // limits.
    let myself = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    for (call, own_value) in [(libc::SYS_tgkill, myself), (libc::SYS_prlimit64, 0)] {
        let (first, length) = (0, SeccompCmpArgLen::Dword);
        let is_other = SeccompCondition::new(first, length, SeccompCmpOp::Ne, own_value)
            .and_then(|is_other| SeccompRule::new(vec![is_other]));
        calls.insert(call, vec![is_other.map_err(filter_error)?]);
    }
    install_filter(calls)
}

/// Denies a coding agent the few system calls that reach beyond its namespaces: typing into the
/// user's terminal, and the user's kernel keyrings.
pub(crate) fn filter_agent_calls() -> Result<(), SandboxError> {
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        [libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key]
            .map(|call| (call, Vec::new()))
            .into();
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| {
        // The kernel ignores the upper half of the request.
        let (second, length) = (1, SeccompCmpArgLen::Dword);
        SeccompCondition::new(second, length, SeccompCmpOp::Eq, request)
            .and_then(|is_request| SeccompRule::new(vec![is_request]))
    });
    let typing: Result<Vec<SeccompRule>, _> = typing.into_iter().collect();
    calls.insert(libc::SYS_ioctl, typing.map_err(filter_error)?);
    install_filter(calls)
}

/// Denies these calls, with all arguments or with those of a rule, and the numbers of x32.
fn install_filter(calls: BTreeMap<i64, Vec<SeccompRule>>) -> Result<(), SandboxError> {
    let arch = std::env::consts::ARCH.try_into().map_err(filter_error)?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let filter =
        SeccompFilter::new(calls, SeccompAction::Allow, denied, arch).map_err(filter_error)?;
    let program: seccompiler::BpfProgram = filter.try_into().map_err(filter_error)?;
    apply_filter(&program).map_err(filter_error)?;
    apply_filter(&deny_x32_filter()).map_err(filter_error)
}

fn filter_error(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::Host {
        what: "cannot install the system call filter".to_owned(),
        source: io::Error::other(error.to_string()),
    }
}

/// Denies every system call from [`X32_SYSCALL_START`] on. `SeccompFilter` supports only exact numbers.
fn deny_x32_filter() -> [sock_filter; 4] {
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    [
        // The system call number is the first field of `seccomp_data`.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_SYSCALL_START),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Tries every operation that must fail.
fn test_restrictions(workspace: &Path, state: &Path) -> Result<Vec<&'static str>, SandboxError> {
    let address = "127.0.0.1:9";
    let exec = || {
        let mut command = Command::new("/proc/self/exe");
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().map(drop)
    };
    let lock = state.join("store.lock");
    let write = |path: &Path| fs_err::OpenOptions::new().append(true).open(path).map(drop);
    let errno = |result: rustix::io::Result<()>| result.map_err(io::Error::from);
    let tried: [(&'static str, io::Result<()>); 13] = [
        ("list the workspace", fs_err::read_dir(workspace).map(drop)),
        ("create a folder in the workspace", try_folder(workspace)),
        ("write to the store", write(&lock)),
        ("change the mode of a file", errno(sys::chmod(&lock, Mode::RUSR | Mode::WUSR))),
        ("change the owner of a file", std::os::unix::fs::chown(&lock, None, None)),
        ("change an attribute of a file", errno(sys::removexattr(&lock, "user.moothall"))),
        ("read a system file", fs_err::read("/etc/hostname").map(drop)),
        ("connect to the network", TcpStream::connect(address).map(drop)),
        ("send a datagram", UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("connect to another program's socket", UnixStream::connect(&lock).map(drop)),
        ("start a program", exec()),
        ("send a signal", errno(test_kill_process(getpid()))),
        ("make system calls through the x32 ABI", ffi::call_x32_abi(X32_SYSCALL_START)),
    ];
    tried
        .into_iter()
        .map(|(what, result)| match result {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(what),
            other => Err(SandboxError::Host {
                what: format!("confinement failed: the process could {what}"),
                source: other.err().unwrap_or_else(|| io::Error::other("the operation succeeded")),
            }),
        })
        .collect()
}

/// Removes the folder again if creating it succeeds.
fn try_folder(workspace: &Path) -> io::Result<()> {
    let path = workspace.join(format!(".moothall-wall-{}", std::process::id()));
    fs_err::create_dir(&path)?;
    fs_err::remove_dir(&path)
}
