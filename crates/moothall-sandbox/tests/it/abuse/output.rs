//! Too much output, output in unexpected forms, and unread input.

use super::case::{Case, End, Seen, case};

const LIMIT: usize = 1 << 20;

fn both_cut(seen: &Seen<'_>, stdout: usize, stderr: usize) -> Result<(), String> {
    let found = [&seen.execution.stdout, &seen.execution.stderr]
        .map(|output| (output.text.len(), output.truncated));
    match found == [(stdout, stdout == LIMIT), (stderr, stderr == LIMIT)] {
        true => Ok(()),
        false => Err(format!("bytes, and whether there was more: {found:?}")),
    }
}

pub(crate) const CASES: &[Case] = &[
    case(
        "10 MB on standard output",
        include_str!("cases/ten_megabytes.py"),
        "1 MiB is kept, marked as cut; the program runs to its end",
    )
    .check(|seen| both_cut(seen, LIMIT, 0)),
    case(
        "endless standard output",
        include_str!("cases/endless_stdout.py"),
        "1 MiB is kept; stopped at the time limit",
    )
    .limits(|limits| limits.wall_ms = 3_000)
    .ends(&[End::TimedOut])
    .check(|seen| both_cut(seen, LIMIT, 0)),
    case(
        "endless standard error",
        include_str!("cases/endless_stderr.py"),
        "1 MiB is kept; stopped at the time limit",
    )
    .limits(|limits| limits.wall_ms = 3_000)
    .ends(&[End::TimedOut])
    .check(|seen| both_cut(seen, 0, LIMIT)),
    case(
        "endless output on both, from two processes",
        include_str!("cases/endless_both.py"),
        "1 MiB of each is kept; stopped at the time limit",
    )
    .limits(|limits| limits.wall_ms = 4_000)
    .ends(&[End::TimedOut])
    .check(|seen| both_cut(seen, LIMIT, LIMIT)),
    case(
        "closed streams",
        include_str!("cases/closed_streams.py"),
        "the end of the streams is not the end of the program",
    )
    .ends(&[End::Code(5)])
    .check(|seen| match seen.execution.stdout.text.as_str() {
        "before" => Ok(()),
        other => Err(format!("it printed {other:?}")),
    }),
    case(
        "output that is not text",
        include_str!("cases/not_text.py"),
        "kept; what is not text is replaced",
    )
    .check(|seen| {
        let found = (seen.execution.stdout.text.as_str(), seen.execution.stderr.text.as_str());
        let out = "\u{fffd}\u{fffd} half \u{fffd} nul \0 escape \x1b]0;title\x07\x1b[2J end";
        match found == (out, "\u{fffd}\x1b[31m") {
            true => Ok(()),
            false => Err(format!("{found:?}")),
        }
    }),
    case(
        "messages of the agent, on every descriptor and port",
        include_str!("cases/frames.py"),
        "treated as output; no port can be opened",
    )
    .ends(&[End::Code(7)])
    .check(|seen| {
        let lies = [&seen.execution.stdout, &seen.execution.stderr]
            .map(|output| output.text.matches("\"from_guest\": \"ended\"").count());
        match lies {
            [1, 1] => seen.tried(17),
            other => Err(format!("the words came back {other:?} times; {}", seen.output_tail())),
        }
    }),
    case(
        "8 MB of input that is not read",
        include_str!("cases/deaf_to_input.py"),
        "the program ends by itself",
    )
    .stdin(8 << 20)
    .check(|seen| match seen.execution.stdout.text.as_str() {
        // No files came back, and the request for them was not lost among the unread input.
        "not reading\n" => seen.brought(&[], &[]),
        other => Err(format!("it printed {other:?}")),
    }),
    case(
        "8 MB of input that is read byte by byte",
        include_str!("cases/waits_for_input.py"),
        "stopped at the time limit",
    )
    .stdin(8 << 20)
    .limits(|limits| limits.wall_ms = 2_000)
    .ends(&[End::TimedOut])
    .check(|seen| seen.brought(&[], &[])),
];
