//! Entry point of the agent inside a sandbox.

use std::io::Write as _;
use std::process::ExitCode;

use moothall_guest::GuestError;

fn main() -> ExitCode {
    match moothall_guest::run(std::env::args().skip(1)) {
        GuestError::HostGone => ExitCode::SUCCESS,
        error => {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "moothall-guest: {error}");
            ExitCode::FAILURE
        }
    }
}
