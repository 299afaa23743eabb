//! Which system calls a container may make of its kernel.
//!
//! An allow-list: what is not named here is refused with "not permitted". It is what Docker allows,
//! without what Python, its usual packages, a shell and the agent never need, and with sockets of
//! three families only. gVisor gets the same list for its own kernel.

use serde_json::{Value, json};

use super::Kernel;

/// Allowed whatever their arguments are.
const ALLOWED: &[&str] = &[
    // Files.
    "access",
    "chdir",
    "chmod",
    "chown",
    "close",
    "close_range",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futimesat",
    "getcwd",
    "getdents",
    "getdents64",
    "getxattr",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "ioctl",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "setxattr",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync_file_range",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "write",
    "writev",
    // Pipes. Without the capability, no device can be made with these two.
    "mknod",
    "mknodat",
    "pipe",
    "pipe2",
    // Waiting for something.
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "pause",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "signalfd",
    "signalfd4",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    // Memory.
    "brk",
    "madvise",
    "membarrier",
    "memfd_create",
    "mincore",
    "mmap",
    "mprotect",
    "mremap",
    "msync",
    "munmap",
    // Processes, threads and who they are.
    "arch_prctl",
    "capget",
    "capset",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "futex",
    "futex_waitv",
    "get_robust_list",
    "getcpu",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "getuid",
    "kill",
    "pidfd_open",
    "pidfd_send_signal",
    "prctl",
    "prlimit64",
    "rseq",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    "setgid",
    "setgroups",
    "setpgid",
    "setpriority",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setuid",
    "tgkill",
    "times",
    "tkill",
    "vfork",
    "wait4",
    "waitid",
    // Signals.
    "restart_syscall",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sigaltstack",
    // Time and chance.
    "alarm",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "getitimer",
    "getrandom",
    "gettimeofday",
    "nanosleep",
    "setitimer",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    // What kind of machine this is.
    "sysinfo",
    "uname",
    // Sockets, once there is one: there is no network to reach with it.
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socketpair",
];

/// `AF_UNIX`, `AF_INET` and `AF_INET6`.
const SOCKET_FAMILIES: [u64; 3] = [1, 2, 10];

/// Every `CLONE_NEW…` that `clone` knows: no namespaces from within.
const NEW_NAMESPACES: u64 = 0x7e02_0000;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// The `linux.seccomp` section of a bundle.
pub(super) fn profile(kernel: Kernel) -> Value {
    let mut rules = vec![
        json!({ "names": ALLOWED, "action": "SCMP_ACT_ALLOW" }),
        json!({
            "names": ["clone"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{
                "index": 0,
                "value": NEW_NAMESPACES,
                "valueTwo": 0,
                "op": "SCMP_CMP_MASKED_EQ",
            }],
        }),
        clone3(kernel),
    ];
    rules.extend(SOCKET_FAMILIES.map(|family| {
        json!({
            "names": ["socket"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{ "index": 0, "value": family, "op": "SCMP_CMP_EQ" }],
        })
    }));
    // Asking for the personality, and setting the usual one.
    rules.extend([0, 0xffff_ffff_u64].map(|personality| {
        json!({
            "names": ["personality"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{ "index": 0, "value": personality, "op": "SCMP_CMP_EQ" }],
        })
    }));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        // A 32-bit call kills its process: the list above is for this architecture alone.
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": rules,
    })
}

/// The newer `clone`. Its flags lie in memory, where no filter can see them.
fn clone3(kernel: Kernel) -> Value {
    match kernel {
        // A C library that is told that there is no such call takes `clone`.
        Kernel::Host => {
            json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS })
        }
        // gVisor's filter can only say "not permitted", which a C library believes. A namespace of
        // gVisor's is none of the host's.
        Kernel::Gvisor => json!({ "names": ["clone3"], "action": "SCMP_ACT_ALLOW" }),
    }
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
