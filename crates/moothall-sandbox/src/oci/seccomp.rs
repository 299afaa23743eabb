//! The seccomp profile of containers.
//!
//! An allow list; other system calls fail with `EPERM`. It is Docker's list without what Python,
//! its common packages, a shell and the agent never need, and with sockets of three families only.
//! gVisor applies the same list in its own kernel.

use serde_json::{Value, json};

use super::SandboxKernel;

/// Allowed with any arguments.
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
    // Pipes. `mknod` cannot create devices without the capability.
    "mknod",
    "mknodat",
    "pipe",
    "pipe2",
    // Waiting and events.
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
    // Processes, threads and credentials.
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
    // Time and randomness.
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
    // System information.
    "sysinfo",
    "uname",
    // Operations on existing sockets. There is no network to connect to.
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

/// All `CLONE_NEW…` flags of `clone`: programs cannot create namespaces.
const NEW_NAMESPACES: u64 = 0x7e02_0000;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// The `linux.seccomp` section of a bundle.
pub(crate) fn profile(kernel: SandboxKernel) -> Value {
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
    // Reading the personality and setting the default one.
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
        // A 32-bit system call kills the process, because the list covers only this architecture.
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": rules,
    })
}

/// `clone3` takes its flags in memory, where seccomp cannot check them.
fn clone3(kernel: SandboxKernel) -> Value {
    match kernel {
        // On `ENOSYS`, C libraries fall back to `clone`.
        SandboxKernel::Host => {
            json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS })
        }
        // gVisor's filter can only return `EPERM`, which C libraries treat as final. Namespaces
        // created inside gVisor do not exist on the host.
        SandboxKernel::Gvisor => json!({ "names": ["clone3"], "action": "SCMP_ACT_ALLOW" }),
    }
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
