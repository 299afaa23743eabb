//! Walls that a process of ours builds around itself, before strangers speak to it.
//!
//! Afterwards it has the files and sockets it already held, and nothing else: it opens no file,
//! starts no program and reaches nobody. Landlock closes files and TCP; a filter of system calls
//! closes what Landlock does not know of, such as UDP, sockets of other programs, modes and owners
//! of files, and signals. What holds is found out by trying, and a wall that does not hold is an
//! error.

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
use crate::raw;

/// What is asked of Landlock, and the least that will do: from there on it knows TCP.
const LANDLOCK: ABI = ABI::V7;
const LEAST: u32 = 4;

/// What no confined process calls. Sockets that it holds go on working: `accept` is not among them.
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
    // Does all of the above without calling it.
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
    // What Landlock lets pass even where it lets no file be opened.
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
    // The same, by folder: setxattrat, getxattrat, listxattrat, removexattrat; file_getattr and
    // file_setattr. `libc` does not know them yet.
    463,
    464,
    465,
    466,
    468,
    469,
    // Landlock knows signals since its sixth version only.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
];

/// From here on the same calls have other numbers, which a filter of numbers would not know.
const OTHER_NUMBERS: u32 = 0x4000_0000;

/// Builds the walls, tries them on the files that matter, and says what was denied.
///
/// Must be called before the process has a second thread, which would stand outside.
pub fn confine(workspace: &Path, state: &Path) -> Result<Vec<&'static str>, SandboxError> {
    let threads = fs_err::read_dir("/proc/self/task").map(Iterator::count);
    if threads.map_err(SandboxError::host("threads cannot be counted"))? != 1 {
        let words = "a second thread would stand outside the walls";
        return Err(SandboxError::Request(words.to_owned()));
    }
    let landlock = |error: landlock::RulesetError| SandboxError::Host {
        what: "the walls of Landlock cannot be built".to_owned(),
        source: io::Error::other(error),
    };
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(landlock)?;
    let known = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    if known < LEAST {
        let words = format!("the kernel knows Landlock {known}, and {LEAST} is needed");
        return Err(SandboxError::Host { what: words, source: io::ErrorKind::Unsupported.into() });
    }
    filter_calls()?;
    denied(workspace, state)
}

fn filter_calls() -> Result<(), SandboxError> {
    let cannot = |error: &dyn std::fmt::Display| SandboxError::Host {
        what: "system calls cannot be filtered".to_owned(),
        source: io::Error::other(error.to_string()),
    };
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    // What a process may do to itself: the C library ends it by a signal, and asks for its limits.
    let myself = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    for (call, is_me) in [(libc::SYS_tgkill, myself), (libc::SYS_prlimit64, 0)] {
        let (first, whole) = (0, SeccompCmpArgLen::Dword);
        let another = SeccompCondition::new(first, whole, SeccompCmpOp::Ne, is_me)
            .and_then(|another| SeccompRule::new(vec![another]));
        calls.insert(call, vec![another.map_err(|error| cannot(&error))?]);
    }
    let arch = std::env::consts::ARCH.try_into().map_err(|error| cannot(&error))?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, denied, arch)
        .map_err(|error| cannot(&error))?;
    let program: seccompiler::BpfProgram = filter.try_into().map_err(|error| cannot(&error))?;
    apply_filter(&program).map_err(|error| cannot(&error))?;
    apply_filter(&no_other_numbers()).map_err(|error| cannot(&error))
}

/// Denies every call from [`OTHER_NUMBERS`] on. `SeccompFilter` knows single numbers only.
fn no_other_numbers() -> [sock_filter; 4] {
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    [
        // The number is the first field of what a filter is shown.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, OTHER_NUMBERS),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Tries everything that must not work.
fn denied(workspace: &Path, state: &Path) -> Result<Vec<&'static str>, SandboxError> {
    let nowhere = "127.0.0.1:9";
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
        ("make a folder in the workspace", try_folder(workspace)),
        ("write the store", write(&lock)),
        ("change the mode of a file", errno(sys::chmod(&lock, Mode::RUSR | Mode::WUSR))),
        ("change the owner of a file", std::os::unix::fs::chown(&lock, None, None)),
        ("change an attribute of a file", errno(sys::removexattr(&lock, "user.moothall"))),
        ("read a file of the system", fs_err::read("/etc/hostname").map(drop)),
        ("reach a network", TcpStream::connect(nowhere).map(drop)),
        ("send a datagram", UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("reach a socket of another program", UnixStream::connect(&lock).map(drop)),
        ("start a program", exec()),
        ("send a signal", errno(test_kill_process(getpid()))),
        ("call the kernel by other numbers", raw::call_of_another_abi(OTHER_NUMBERS)),
    ];
    tried
        .into_iter()
        .map(|(what, result)| match result {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(what),
            other => Err(SandboxError::Host {
                what: format!("a wall does not hold: the process could {what}"),
                source: other.err().unwrap_or_else(|| io::Error::other("it worked")),
            }),
        })
        .collect()
}

/// Leaves nothing behind where it works.
fn try_folder(workspace: &Path) -> io::Result<()> {
    let path = workspace.join(format!(".moothall-wall-{}", std::process::id()));
    fs_err::create_dir(&path)?;
    fs_err::remove_dir(&path)
}
