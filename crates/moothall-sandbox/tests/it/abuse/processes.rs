//! Too many processes, processes that stay behind, and signals.

use super::case::{Case, End, case};

pub(crate) const CASES: &[Case] = &[
    case(
        "fork bomb",
        include_str!("cases/fork_bomb.py"),
        "no more processes than allowed; all are stopped at the time limit or the memory limit",
    )
    .limits(|limits| limits.wall_ms = 3_000)
    // Which limit is hit first depends on the speed of the machine.
    .ends(&[End::TimedOut, End::OutOfMemory]),
    case("thread bomb", include_str!("cases/thread_bomb.py"), "no more threads than allowed")
        .check(|seen| seen.saw("threads below the limit").map(|_| ())),
    case(
        "shell that starts processes without end",
        include_str!("cases/shell_loop.py"),
        "the shell cannot fork at the limit; what it started is stopped",
    )
    .ends(&[End::Code(2)])
    .check(|seen| match seen.execution.left_behind.as_slice() {
        [words] if words.ends_with("processes were still running and were stopped") => Ok(()),
        other => Err(format!("not collected: {other:?}")),
    }),
    case(
        "daemon that left the session",
        include_str!("cases/daemon.py"),
        "it is stopped before files are brought back, and the host does not wait for it",
    )
    .check(|seen| {
        let text = &seen.execution.stdout.text;
        if !text.contains("the program is done") {
            return Err(seen.output_tail());
        }
        // It is killed in the middle, so the file size is random, but always a whole number of
        // writes.
        let sizes: Vec<_> = seen.files.iter().map(|(p, b)| (p.as_str(), b.len())).collect();
        let [("growing", grown), ("kept", 4)] = sizes.as_slice() else {
            return Err(format!("files: {sizes:?}"));
        };
        let stopped = ["1 processes were still running and were stopped"];
        match grown % 101 == 0 && seen.execution.left_behind == stopped {
            true => Ok(()),
            false => Err(format!("{grown} bytes; {:?}", seen.execution.left_behind)),
        }
    }),
    case(
        "program that ignores every signal",
        include_str!("cases/deaf.py"),
        "it is stopped at the time limit",
    )
    .limits(|limits| limits.wall_ms = 2_000)
    .ends(&[End::TimedOut]),
    case(
        "signals to the agent and to everybody",
        include_str!("cases/kill_others.py"),
        "none is delivered",
    )
    .check(|seen| seen.tried(9)),
    case(
        "program that stops itself",
        include_str!("cases/stop_self.py"),
        "it is stopped at the time limit",
    )
    .limits(|limits| limits.wall_ms = 2_000)
    .ends(&[End::TimedOut])
    .check(|seen| match seen.execution.stdout.text.as_str() {
        "stopping\n" => Ok(()),
        other => Err(format!("it printed {other:?}")),
    }),
    case(
        "program that kills its whole group",
        include_str!("cases/stop_group.py"),
        "reported as killed, not as out of memory",
    )
    .ends(&[End::Signal(9)]),
];
