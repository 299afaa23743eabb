//! Builds walls around itself and becomes the program that it is told to start. See the module
//! `jail` of the library.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Err(error) = moothall_sandbox::jail::enter(std::env::args_os().skip(1));
    let _ = writeln!(std::io::stderr(), "moothall-jail: {}", error.failure().detail);
    ExitCode::FAILURE
}
