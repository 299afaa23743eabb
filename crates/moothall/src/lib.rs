//! The binary's library: flags, configuration, wiring and terminal output. It decides nothing about
//! a trial.

mod archive;
mod args;
mod artifacts;
mod commands;
pub mod config;
mod context;
mod database;
mod display;
mod draft_backup;
pub mod error;
mod files;
mod filings;
pub mod folders;
mod guest_binary;
mod isolation;
pub mod keys;
mod launch;
mod local;
mod logging;
mod notice;
mod offline;
mod open_files;
mod pace;
mod pdf_helper;
mod pdf_sandbox;
mod terminal;
mod turnstile;
mod user_input;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::error::{CliError, Exit};

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Clap prints help and versions to stdout and mistakes to stderr; where neither can be
            // written, nobody reads them.
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { Exit::Fine } else { Exit::Usage }.into();
        }
    };
    terminal::set_color(cli.global.color);
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let error = CliError::from(error);
            terminal::show_error(&error);
            error.exit.into()
        }
    }
}
