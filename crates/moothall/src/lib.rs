//! The library of the binary: flags, configuration, wiring and terminal output. It contains no
//! decision logic.

pub mod app_dirs;
mod archive;
mod args;
mod artifacts;
mod commands;
pub mod config;
mod context;
mod database;
mod debate_image;
mod demo_delay;
mod display;
mod draft_backup;
pub mod error;
mod evidence_sources;
mod files;
mod filing_recording;
mod guest_binary;
mod installation;
mod isolation;
mod judge_files;
pub mod keys;
mod launch;
mod logging;
mod notify;
mod open_files;
mod pdf_helper;
mod pdf_sandbox;
mod process_resources;
mod received_text;
mod release_images;
mod run_store;
mod store_limiter;
mod telemetry;
mod terminal;
mod user_input;
mod work_progress;

use std::process::ExitCode;

use clap::FromArgMatches as _;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::error::{CliError, CliExit};

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    // Before anything else: these processes must have one thread, and an agent waits for them.
    #[cfg(target_os = "linux")]
    {
        let mut args = std::env::args_os().skip(1);
        if args.next().is_some_and(|part| part == moothall_sandbox::guard::PART) {
            return commands::guard::enter(args);
        }
    }
    let parsed =
        args::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Clap prints help and version to stdout and errors to stderr; if that fails, there is
            // nothing left to do.
            let _ = error.print();
            let is_help =
                matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if is_help { CliExit::Fine } else { CliExit::Usage }.into();
        }
    };
    terminal::set_color(cli.global.color);
    terminal::set_quiet(cli.global.quiet);
    let done = telemetry::start(&cli).map_err(Into::into).and_then(|()| commands::run(cli));
    notify::finish_deliveries();
    telemetry::flush();
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            let error = CliError::from(error);
            terminal::show_error(&error);
            error.exit.into()
        }
    }
}
