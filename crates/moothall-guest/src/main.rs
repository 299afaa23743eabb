//! The agent inside a sandbox; all of it is in the library.

use std::io::Write as _;
use std::process::ExitCode;

use moothall_guest::GuestError;

fn main() -> ExitCode {
    match moothall_guest::run(std::env::args().skip(1)) {
        GuestError::HostGone => ExitCode::SUCCESS,
        error => {
            // Where nobody listens, nobody is told.
            let _ = writeln!(std::io::stderr(), "moothall-guest: {error}");
            ExitCode::FAILURE
        }
    }
}
