use std::collections::BTreeSet;

use super::*;

/// The actions for a system call, in rule order.
fn actions(kernel: SandboxKernel, call: &str) -> Vec<String> {
    let profile = profile(kernel);
    let rules = profile["syscalls"].as_array().unwrap();
    let names = |rule: &&Value| rule["names"].as_array().unwrap().iter().any(|name| name == call);
    rules.iter().filter(names).map(|rule| rule["action"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_seccomp_profile_refuses_unlisted_calls() {
    let profile = profile(SandboxKernel::Host);
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    assert_eq!(profile["defaultErrnoRet"], 1);
}

#[test]
fn the_seccomp_profile_allows_no_dangerous_calls() {
    let forbidden = [
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "unshare",
        "setns",
        "ptrace",
        "bpf",
        "perf_event_open",
        "keyctl",
        "add_key",
        "request_key",
        "kexec_load",
        "init_module",
        "finit_module",
        "delete_module",
        "userfaultfd",
        "io_uring_setup",
        "open_by_handle_at",
        "name_to_handle_at",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_getfd",
        "kcmp",
        "reboot",
        "swapon",
        "settimeofday",
        "clock_settime",
        "adjtimex",
        "syslog",
        "quotactl",
        "acct",
        "iopl",
        "ioperm",
        "modify_ldt",
        "sync",
        "splice",
        "vmsplice",
        "tee",
        "shmget",
        "msgget",
        "semget",
        "mq_open",
        "move_pages",
        "mbind",
        "fsopen",
        "open_tree",
        "move_mount",
        "mount_setattr",
        "seccomp",
    ];
    for call in forbidden {
        assert_eq!(actions(SandboxKernel::Host, call), Vec::<String>::new(), "{call}");
        assert_eq!(actions(SandboxKernel::Gvisor, call), Vec::<String>::new(), "{call}");
    }
}

#[test]
fn the_seccomp_profile_lists_every_call_once() {
    assert_eq!(ALLOWED.iter().collect::<BTreeSet<_>>().len(), ALLOWED.len());
}

#[test]
fn the_seccomp_profile_refuses_clone3_so_that_clone_is_used() {
    assert_eq!(actions(SandboxKernel::Host, "clone3"), ["SCMP_ACT_ERRNO"]);
    assert_eq!(actions(SandboxKernel::Gvisor, "clone3"), ["SCMP_ACT_ALLOW"]);
    assert_eq!(actions(SandboxKernel::Host, "clone"), ["SCMP_ACT_ALLOW"]);
}
