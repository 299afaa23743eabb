//! The kernel: existing resources, other processes, settings, devices, mounts, namespaces,
//! privileges and system calls that no program needs.

use moothall_sandbox::EngineName::{Microvm, Runsc};

use super::case::{Case, Note, Reach, case};

pub(crate) const CASES: &[Case] = &[
    case("change what was given", include_str!("cases/change_inputs.py"), "refused in every way")
        .check(|seen| {
            seen.tried(18)?;
            match seen.saw("given")? {
                "given" => Ok(()),
                other => Err(format!("the input is now {other:?}")),
            }
        }),
    case(
        "/proc of the agent",
        include_str!("cases/proc_of_others.py"),
        "its memory, environment, root and files are closed; other processes are not there",
    )
    .notes(&[Note {
        on: Runsc,
        attempts: &[
            "/proc/1/environ",
            "/proc/1/maps",
            "/proc/1/auxv",
            "/proc/1/fd/",
            "/proc/1/fdinfo/",
            "/proc/1/task/",
            "/proc/1/ns/mnt",
            "/proc/1/ns/pid",
            "/proc/1/ns/net",
            "/proc/1/ns/user",
            "/proc/1/ns/ipc",
            "/proc/1/ns/uts",
        ],
        reach: Reach::Inside,
        words: "gVisor cannot hide a process: the agent's environment, which is a path and a \
                folder, where its parts lie and how many files it has open show; its memory and \
                its files do not",
    }])
    .check(|seen| seen.tried(30)),
    case(
        "trace the agent, read and move its memory, change its limits",
        include_str!("cases/trace.py"),
        "refused",
    )
    .check(|seen| seen.tried(12)),
    case(
        "settings and secrets of the kernel",
        include_str!("cases/kernel_settings.py"),
        "refused or absent: core pattern, SysRq, kcore, kmsg, addresses, debugging",
    )
    .notes(&[CLOSED_ON_WRITING])
    .check(|seen| seen.tried(31)),
    case(
        "open everything in /proc and /sys for writing",
        include_str!("cases/walk.py"),
        "nothing opens",
    )
    .notes(&[
        CLOSED_ON_WRITING,
        Note {
            on: Microvm,
            attempts: &[
                "/proc/pressure/cpu for writing",
                "/proc/pressure/io for writing",
                "/proc/pressure/memory for writing",
            ],
            reach: Reach::Inside,
            words: "a program may ask its own kernel to be told about pressure",
        },
    ])
    .check(|seen| seen.tried(1)),
    case(
        "devices",
        include_str!("cases/devices.py"),
        "only null, zero, full, random and the like; none can be made",
    )
    .notes(&[
        Note {
            on: Runsc,
            attempts: &["/dev/fuse", "/dev/net", "open /dev/fuse", "open /dev/net/tun"],
            reach: Reach::Inside,
            words: "gVisor has these two itself; they lead into its own kernel",
        },
        Note {
            on: Runsc,
            attempts: &[
                "make the device memory in /workspace",
                "make the device memory in /tmp",
                "make the device memory in /dev/shm",
                "make the device null in /workspace",
                "make the device null in /tmp",
                "make the device null in /dev/shm",
                "make the device disk in /workspace",
                "make the device disk in /tmp",
                "make the device disk in /dev/shm",
            ],
            reach: Reach::Inside,
            words: "gVisor lets everybody make names of devices; there is nothing behind them, \
                    they cannot be opened",
        },
    ])
    .check(|seen| seen.tried(43)),
    case("mount, unmount, chroot, pivot_root, swapoff", include_str!("cases/mounts.py"), "refused")
        .check(|seen| seen.tried(11)),
    case("new namespaces, and those of the agent", include_str!("cases/namespaces.py"), "refused")
        .notes(&[Note {
        on: Runsc,
        attempts: &["a new user namespace by clone3"],
        reach: Reach::Inside,
        words: "gVisor cannot refuse this call so that a C library takes another; a namespace of \
                gVisor's is none of the host's",
    }])
    .check(|seen| seen.tried(16)),
    case(
        "become root, take capabilities, raise limits, find setuid programs",
        include_str!("cases/privileges.py"),
        "refused; there are none",
    )
    .notes(&[Note {
        on: Runsc,
        attempts: &["a better priority"],
        reach: Reach::Inside,
        words: "gVisor keeps the number and does nothing with it",
    }])
    .check(|seen| {
        seen.tried(17)?;
        match seen.saw("who")? {
            "[1000, 1000, 1000, 1000, []]" => Ok(()),
            other => Err(format!("it is {other}")),
        }
    }),
    case(
        "calls that no program needs",
        include_str!("cases/kernel_calls.py"),
        "refused: reboot, modules, kexec, bpf, perf, io_uring, userfaultfd, keys and others",
    )
    .notes(&[Note {
        on: Microvm,
        attempts: &[
            "io_uring",
            "userfaultfd of user faults",
            "keys",
            "add a key",
            "ask for a key",
            "personality",
        ],
        reach: Reach::Inside,
        words: "the machine's own kernel offers these to every program; the machine runs only this one",
    }])
    .check(|seen| seen.tried(27)),
    case(
        "32-bit calls",
        include_str!("cases/old_calls.py"),
        "refused: they would go around the list of calls",
    )
    .notes(&[Note {
        on: Microvm,
        attempts: &["32-bit calls"],
        reach: Reach::Inside,
        words: "there is no list of calls to go around: the machine's own kernel answers",
    }])
    .check(|seen| seen.tried(1)),
];

const CLOSED_ON_WRITING: Note = Note {
    on: Microvm,
    attempts: &["/proc/sys/kernel/ns_last_pid for writing"],
    reach: Reach::Inside,
    words: "it opens for everybody, and its own kernel refuses what is written",
};
