//! Too much memory and too much time.

use moothall_sandbox::EngineName::Runc;

use super::case::{Case, End, case};

pub(crate) const CASES: &[Case] = &[
    case(
        "1 GiB in one allocation",
        include_str!("cases/gigabyte_at_once.py"),
        "the program is stopped for its memory",
    )
    .ends(&[End::OutOfMemory]),
    case(
        "1 GiB slowly",
        include_str!("cases/gigabyte_slowly.py"),
        "the program is stopped for its memory",
    )
    .ends(&[End::OutOfMemory]),
    case(
        "1 GiB in twelve children",
        include_str!("cases/gigabyte_in_children.py"),
        "children count together; one of them, or all, are stopped for their memory",
    )
    .ends(&[End::OutOfMemory])
    .ends_on(Runc, &[End::Code(9), End::OutOfMemory]),
    case(
        "files in memory and memory together",
        include_str!("cases/files_are_memory.py"),
        "files count as memory; the program is stopped for it",
    )
    .ends(&[End::OutOfMemory]),
    case("infinite loop", include_str!("cases/loop.py"), "stopped at the time limit")
        .limits(|limits| limits.wall_ms = 2_000)
        .ends(&[End::TimedOut]),
    case("sleep past the limit", include_str!("cases/sleep.py"), "stopped at the time limit")
        .limits(|limits| limits.wall_ms = 2_000)
        .ends(&[End::TimedOut]),
    case(
        "CPU time of four threads",
        include_str!("cases/cpu_time.py"),
        "stopped after two seconds of CPU time (signal 24)",
    )
    .limits(|limits| limits.cpu_seconds = 2)
    .ends(&[End::Signal(24)]),
];
