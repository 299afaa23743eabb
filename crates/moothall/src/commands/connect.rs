//! `moothall connect`: adds Moothall to the configuration of a coding agent, and removes it again.
//!
//! All changes are computed before the first file is written. A file that cannot be read is never
//! replaced.

mod clients;
mod json_entry;
mod toml_entry;

use std::path::{Path, PathBuf};

use moothall_core::text;

use self::clients::{ConnectPlan, ConnectSource};
use super::{prompt, runtime};
use crate::args::{ConnectArgs, GlobalArgs};
use crate::config;
use crate::error::{CliError, CliExit};
use crate::files::{self, NewFileMode};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// The largest configuration file that is edited. Claude Code keeps its history in its file.
const MAX_BYTES: u64 = 64 << 20;

/// A file with its content before and after; `None` if it does not exist.
#[derive(Debug)]
struct FileEdit {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
}

pub(crate) fn run(global: &GlobalArgs, args: &ConnectArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    let source = match args.project {
        true => ConnectSource::Project,
        false => ConnectSource::User(&loaded.environment),
    };
    let program = match args.project {
        // The file is shared, so it cannot name a path of this machine.
        true => clients::PROGRAM.to_owned(),
        false => program_of(loaded.environment.get("PATH").unwrap_or_default())?,
    };
    let plan = ConnectPlan::new(args, source, &program)?;
    if args.print {
        terminal::print(&plan.print()?)?;
        return Ok(CliExit::Fine);
    }
    let mut edits = Vec::new();
    for file in plan.files() {
        let before = read(&file.path)?;
        let after = match args.remove {
            true => file.without_entries(before.as_deref())?,
            false => Some(file.with_entries(before.as_deref())?),
        };
        if before != after {
            edits.push(FileEdit { path: file.path.clone(), before, after });
        }
    }
    if edits.is_empty() {
        let state = if args.remove { "is not connected" } else { "is already connected" };
        terminal::note(&format!("{} {state}; nothing was changed\n", args.client.name()));
        return Ok(CliExit::Fine);
    }
    edits.iter().for_each(show);
    if !args.yes && !confirm()? {
        return Err(CliError::new(CliExit::Cancelled, "nothing was written").into());
    }
    let mode = if args.project { NewFileMode::Shared } else { NewFileMode::Private };
    for edit in &edits {
        write(edit, mode)?;
    }
    if !args.remove {
        if args.project && !is_on_path(&loaded.environment) {
            terminal::note(&format!(
                "{YELLOW}warning: `moothall` is not on your PATH, so the client cannot start it{YELLOW:#}\n"
            ));
        }
        for note in plan.notes() {
            terminal::note(&format!("{note}\n"));
        }
    }
    Ok(CliExit::Fine)
}

fn confirm() -> Result<bool, CliError> {
    if !prompt::is_interactive() {
        return Err(CliError::usage("this change needs confirmation")
            .with_hint("write it without asking with `--yes`, or see the entries with `--print`"));
    }
    Ok(runtime()?.block_on(prompt::confirm_default_yes("Write these changes?")).unwrap_or(false))
}

/// Shows the changed lines.
fn show(edit: &FileEdit) {
    terminal::show(&format!("{BOLD}{}{BOLD:#}\n", path_text(&edit.path)));
    let lines = files::line_difference(
        edit.before.as_deref().unwrap_or_default(),
        edit.after.as_deref().unwrap_or_default(),
    );
    for line in lines {
        let style = if line.starts_with('+') { GREEN } else { YELLOW };
        terminal::show(&format!("  {style}{}{style:#}\n", text::sanitize_line(&line)));
    }
    if edit.after.is_none() {
        terminal::show(&format!("  {DIM}the file is deleted{DIM:#}\n"));
    }
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    let refused = || CliError::usage(format!("cannot read {}", path_text(path)));
    match fs_err::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused().with_source(error)),
        Ok(_) => {}
    }
    match fs_err::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CliError::usage(format!(
                "{} is a symbolic link to a file that does not exist",
                path_text(path)
            ))
            .with_hint("create the file or remove the link"));
        }
        Ok(there) if !there.is_file() => {
            return Err(CliError::usage(format!("{} is not a file", path_text(path))));
        }
        _ => {}
    }
    files::read_text(path, &path_text(path), MAX_BYTES, refused).map(Some)
}

fn write(edit: &FileEdit, mode: NewFileMode) -> Result<(), CliError> {
    let written = match &edit.after {
        Some(after) => {
            files::replace_text(&edit.path, edit.before.as_deref().unwrap_or_default(), after, mode)
        }
        None => fs_err::remove_file(&edit.path),
    };
    written.map_err(|error| {
        CliError::failed(format!("cannot write {}", path_text(&edit.path)))
            .with_source(error)
            .with_hint("if the client is running, close it and run the command again")
    })
}

fn path_text(path: &Path) -> String {
    text::sanitize_line(&path.display().to_string())
}

/// `moothall` if the PATH leads to this program, otherwise the path of this program.
fn program_of(path: &str) -> Result<String, CliError> {
    let cannot = |error: std::io::Error| {
        CliError::failed("cannot find the moothall executable").with_source(error)
    };
    let program = std::env::current_exe().map_err(cannot)?;
    let program = fs_err::canonicalize(program).map_err(cannot)?;
    let found = std::env::split_paths(path).find_map(|folder| {
        fs_err::canonicalize(folder.join(clients::PROGRAM)).ok().filter(|found| found.is_file())
    });
    if found.as_ref() == Some(&program) {
        return Ok(clients::PROGRAM.to_owned());
    }
    program.into_os_string().into_string().map_err(|_| {
        CliError::usage("the path of the moothall executable is not valid UTF-8")
            .with_hint("install moothall in a directory of your PATH")
    })
}

fn is_on_path(environment: &config::EnvVars) -> bool {
    let path = environment.get("PATH").unwrap_or_default();
    std::env::split_paths(path).any(|folder| folder.join(clients::PROGRAM).is_file())
}
