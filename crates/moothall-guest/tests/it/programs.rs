//! Programs with the restrictions that an unprivileged agent can apply.

use std::time::Instant;

use moothall_core::guest::{ExitCause, GuestFrame, GuestStream, HostMessage, ProgramExit};

use crate::guest::{Guest, Outcome, exited, request, shell};

#[test]
fn a_program_gets_arguments_input_and_only_the_usual_variables() {
    let mut guest = Guest::start();
    let mut request = request(&["sh", "-c", "cat; echo \"$0 $1\" >&2; env | sort", "a", "b c"]);
    request.env = [("MORE".to_owned(), "x y".to_owned())].into();
    let (outcome, ended) = guest.run(request, b"input\n");
    let folder = guest.workspace().display();
    let variables = format!(
        "input\nHOME=/workspace\nLANG=C.UTF-8\nMORE=x y\nMPLBACKEND=Agg\nMPLCONFIGDIR=/tmp\n\
         PATH=/usr/local/bin:/usr/bin:/bin\nPWD={folder}\nPYTHONDONTWRITEBYTECODE=1\nTMPDIR=/tmp\n"
    );
    assert_eq!(outcome, exited(0, &variables, "a b c\n"));
    let nothing_else = ProgramExit {
        way: ExitCause::Exited(0),
        stdout_truncated: false,
        stderr_truncated: false,
        left_running: 0,
    };
    assert_eq!(ended, nothing_else);
}

#[test]
fn the_exit_code_or_signal_of_a_program_is_reported() {
    let mut guest = Guest::start();
    assert_eq!(guest.run(shell("exit 42"), b"").0, exited(42, "", ""));
    let (outcome, _) = guest.run(shell("kill -SEGV $$"), b"");
    assert_eq!(outcome.way, ExitCause::Signalled(11));
}

#[test]
fn a_program_has_only_its_streams_open_and_no_new_privileges() {
    let mut guest = Guest::start();
    let script = "ls /proc/self/fd | wc -w; while read line; do case $line in NoNewPrivs*) echo $line;; esac; done < /proc/self/status; ulimit -c; ulimit -n";
    // Four: three streams and the folder that `ls` reads.
    assert_eq!(guest.run(shell(script), b"").0, exited(0, "4\nNoNewPrivs: 1\n0\n256\n", ""));
}

#[test]
fn output_beyond_the_limit_is_dropped_and_the_program_continues() {
    let mut guest = Guest::start();
    let mut request = shell("head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2; exit 3");
    request.limits.output_bytes = 100_000;
    let (outcome, ended) = guest.run(request, b"");
    assert_eq!(outcome, exited(3, &"x".repeat(100_000), "end\n"));
    assert_eq!((ended.stdout_truncated, ended.stderr_truncated), (true, false));
}

#[test]
fn output_of_exactly_the_limit_is_whole() {
    let mut guest = Guest::start();
    let mut request = shell("printf 12345; printf 123456 >&2");
    request.limits.output_bytes = 5;
    let (outcome, ended) = guest.run(request, b"");
    assert_eq!(outcome, exited(0, "12345", "12345"));
    assert_eq!((ended.stdout_truncated, ended.stderr_truncated), (false, true));
}

#[test]
fn a_program_that_prints_endlessly_is_stopped_at_the_time_limit() {
    let mut guest = Guest::start();
    let mut request = request(&["yes"]);
    request.limits.wall_ms = 300;
    request.limits.output_bytes = 10;
    let (outcome, ended) = guest.run(request, b"");
    let way = ExitCause::TimedOut;
    assert_eq!(outcome, Outcome { way, stdout: "y\n".repeat(5), stderr: String::new() });
    assert!(ended.stdout_truncated);
}

#[test]
fn a_sleeping_program_is_stopped_at_the_time_limit_with_its_output() {
    let mut guest = Guest::start();
    let mut request = shell("echo before; sleep 1000; echo after");
    request.limits.wall_ms = 300;
    let started = Instant::now();
    let (outcome, _) = guest.run(request, b"");
    let way = ExitCause::TimedOut;
    assert_eq!(outcome, Outcome { way, stdout: "before\n".to_owned(), stderr: String::new() });
    assert!(started.elapsed().as_millis() >= 300);
    assert_eq!(guest.run(request_true(), b"").0, exited(0, "", ""));
}

fn request_true() -> moothall_core::guest::GuestRunRequest {
    request(&["true"])
}

#[test]
fn the_host_can_stop_a_program() {
    let mut guest = Guest::start();
    guest.say(&HostMessage::Run(shell("trap '' TERM INT; echo started; while :; do :; done")));
    assert_eq!(
        guest.hear_frame(),
        Some(GuestFrame::Data(GuestStream::Stdout, b"started\n".to_vec()))
    );
    guest.say(&HostMessage::Kill);
    assert_eq!(guest.hear_end().0.way, ExitCause::Killed);
    // The end of its input and a second kill request were still in transit.
    guest.say(&HostMessage::Kill);
    guest.say(&HostMessage::End);
    assert_eq!(guest.run(request_true(), b"").0, exited(0, "", ""));
}

#[test]
fn processes_left_running_by_a_program_are_stopped_and_counted() {
    let mut guest = Guest::start();
    let script =
        "sleep 1000 & (setsid sleep 1000 &) ; nohup sleep 1000 >/dev/null 2>&1 & echo done";
    let started = Instant::now();
    let (outcome, ended) = guest.run(shell(script), b"");
    assert_eq!((outcome, ended.left_running), (exited(0, "done\n", ""), 3));
    // It did not wait for processes that hold the program's streams.
    assert!(started.elapsed().as_secs() < 100);
}

#[test]
fn a_file_cannot_grow_beyond_the_limit() {
    let mut guest = Guest::start();
    let mut request = shell("trap '' XFSZ; head -c 3000 /dev/zero > large; echo $?; wc -c < large");
    request.limits.file_bytes = 1024;
    let (outcome, _) = guest.run(request, b"");
    assert_eq!((outcome.way, outcome.stdout.as_str()), (ExitCause::Exited(0), "1\n1024\n"));
}

#[test]
fn open_files_are_limited() {
    let mut guest = Guest::start();
    let mut request = request(&[
        "python3",
        "-c",
        "import os\ntry:\n  while True: os.dup(0)\nexcept OSError as e: print(e)",
    ]);
    request.limits.open_files = 16;
    assert_eq!(guest.run(request, b"").0, exited(0, "[Errno 24] Too many open files\n", ""));
}

#[test]
fn a_program_that_uses_up_its_cpu_time_gets_a_signal() {
    let mut guest = Guest::start();
    let mut request = shell("while :; do :; done");
    request.limits.cpu_seconds = 1;
    let (outcome, _) = guest.run(request, b"");
    let sigxcpu = 24;
    assert_eq!(outcome.way, ExitCause::Signalled(sigxcpu));
}

#[test]
fn a_program_can_echo_large_input_while_reading_it() {
    let mut guest = Guest::start();
    let input = vec![b'x'; 5 << 20];
    let mut request = request(&["cat"]);
    request.limits.output_bytes = 10 << 20;
    let (outcome, ended) = guest.run(request, &input);
    assert_eq!(outcome.stdout.len(), input.len());
    assert_eq!((outcome.way, ended.stdout_truncated), (ExitCause::Exited(0), false));
}

#[test]
fn unread_program_input_is_discarded() {
    let mut guest = Guest::start();
    let input = vec![b'x'; 3 << 20];
    let (outcome, _) = guest.run(shell("exec <&-; sleep 0.1; echo done"), &input);
    assert_eq!(outcome, exited(0, "done\n", ""));
    let mut request = shell("sleep 1000");
    request.limits.wall_ms = 300;
    assert_eq!(guest.run(request, &input).0.way, ExitCause::TimedOut);
    assert_eq!(guest.run(request_true(), b"").0, exited(0, "", ""));
}

#[test]
fn a_program_cannot_look_into_the_agent() {
    let mut guest = Guest::start();
    let script = "cat /proc/$PPID/environ > /dev/null 2>&1; echo $?; ls /proc/$PPID/fd > /dev/null 2>&1; echo $?";
    let (outcome, _) = guest.run(shell(script), b"");
    // Processes that may trace any process can read it; in a container none can.
    let expected = if rustix::process::geteuid().is_root() { "0\n0\n" } else { "1\n2\n" };
    assert_eq!(outcome, exited(0, expected, ""));
}
