//! Confines itself, then execs the given program. See the library's `jail` module.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Err(error) = moothall_sandbox::jail::enter(std::env::args_os().skip(1));
    let _ = writeln!(std::io::stderr(), "moothall-jail: {}", error.failure().detail);
    ExitCode::FAILURE
}
