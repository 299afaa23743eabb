//! `moothall committee`: shows, checks and creates committee files.

mod committee_file;
mod committee_folder;

use std::collections::BTreeSet;
use std::path::Path;

use moothall_core::consult::{Committee, board};
use moothall_core::text;
use serde_json::json;

pub(crate) use self::committee_file::render;
pub(crate) use self::committee_folder::COMMITTEE_FILE;
use super::{panel, runtime};
use crate::args::{CommitteeCommand, GlobalArgs};
use crate::config::{self, ConfigProblem};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal::{self, DIM};

pub(crate) fn run(global: &GlobalArgs, command: &CommitteeCommand) -> anyhow::Result<CliExit> {
    match command {
        CommitteeCommand::Show { committee, json } => {
            let committee = find(committee.as_deref())?.with_default_verdict();
            if *json {
                terminal::print(&format!("{:#}\n", serde_json::to_value(&committee)?))?;
            } else {
                // The file may come from another person, so terminal escapes are removed.
                terminal::print_answer(&render(&committee))?;
            }
            Ok(CliExit::Fine)
        }
        CommitteeCommand::Check { file, json } => check(global, file, *json),
        CommitteeCommand::New { file } => new(file),
    }
}

/// Finds a committee by name or path. The default is the built-in one.
pub(crate) fn find(name_or_path: Option<&str>) -> Result<Committee, CliError> {
    let built_in = board();
    match name_or_path {
        None => Ok(built_in),
        Some(name) if name == built_in.name => Ok(built_in),
        Some(name_or_path) => {
            let path = Path::new(name_or_path);
            // A word without `/` or `.` is a name unless such a file exists.
            let is_path = name_or_path.contains('/') || name_or_path.contains('.') || path.exists();
            if !is_path {
                return Err(CliError::usage(format!("no committee named `{name_or_path}`"))
                    .with_hint(
                        "use the built-in `board` or the path of a file or directory; \
                         `moothall committee new FILE` creates one",
                    ));
            }
            committee_file::read(path)?.map_err(|problems| refusal(path, &problems))
        }
    }
}

/// Reads a committee from text; `name` precedes the line number of each mistake.
pub(crate) fn in_text(name: &str, text: &str) -> Result<Committee, CliError> {
    committee_file::parse_text(name, text)?.map_err(|problems| {
        let messages: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
        let hint = problems.iter().find_map(|one| one.hint.clone());
        CliError::usage(messages.join("; "))
            .with_hint(hint.unwrap_or_else(|| "`moothall committee show` prints an example".into()))
    })
}

pub(crate) fn check(global: &GlobalArgs, path: &Path, as_json: bool) -> anyhow::Result<CliExit> {
    let committee = match committee_file::read(path)? {
        Ok(committee) => committee,
        Err(problems) => {
            if as_json {
                let report = json!({ "usable": false, "problems": problems });
                terminal::print(&format!("{report:#}\n"))?;
                return Ok(CliExit::Usage);
            }
            let Some((last, others)) = problems.split_last() else {
                return Err(refusal(path, &problems).into());
            };
            others.iter().for_each(|problem| terminal::show_error(&error(problem)));
            return Err(error(last).into());
        }
    };
    let committee = committee.with_default_verdict();
    let moves: u32 = committee.shares(None).iter().sum();
    let weak = weak_judges(global, &committee);
    if as_json {
        let warnings = committee.panel_warnings().into_iter().map(str::to_owned);
        let warnings: Vec<String> = warnings.chain(weak).collect();
        let report = json!({
            "usable": true,
            "name": committee.name,
            "moves": moves,
            "rounds": committee.rounds,
            "top_score": committee.top_score(),
            "texts": committee.own_files(),
            "panel_members": committee.panel.len(),
            "warnings": warnings,
        });
        terminal::print(&format!("{report:#}\n"))?;
        return Ok(CliExit::Fine);
    }
    terminal::print(&format!(
        "{} is valid: {}, {}, {}; {moves} moves, {} rounds each, scores out of {}\n",
        text::sanitize_line(&committee.name),
        display::counted(committee.analysts.len(), "analyst"),
        "one critic",
        display::counted(committee.decision_makers.len(), "decision maker"),
        committee.rounds,
        committee.top_score(),
    ))?;
    let members = display::counted(committee.panel.len(), "panel member");
    terminal::print(&format!("blind panel: {members}\n"))?;
    for warning in committee.panel_warnings() {
        let hint = "use three or more models for the panel that no debate uses";
        terminal::show_warning(&ConfigProblem::new(warning.to_owned()).with_hint(hint.to_owned()));
    }
    for warning in weak {
        let hint = "compare models with `moothall panel`, or measure them with `moothall eval`";
        terminal::show_warning(&ConfigProblem::new(warning).with_hint(hint.to_owned()));
    }
    for file in committee.own_files() {
        terminal::print(&format!("own text: {file}\n"))?;
    }
    Ok(CliExit::Fine)
}

/// Models of the panel that caught few of the controls in stored runs. A file is checked without a
/// usable store, too.
fn weak_judges(global: &GlobalArgs, committee: &Committee) -> Vec<String> {
    let Ok(loaded) = config::load(global.config.as_deref(), toml::Table::new()) else {
        return Vec::new();
    };
    let records = runtime().map(|runtime| runtime.block_on(panel::stored_records(&loaded)));
    let Ok(Ok(records)) = records else { return Vec::new() };
    let models = committee.panel.iter().filter_map(|member| member.model.as_ref());
    let models: BTreeSet<String> = models.map(|models| models.first().to_string()).collect();
    let weak = records.iter().filter(|one| models.contains(&one.model) && one.is_weak());
    weak.map(|one| format!("`{}` is a weak judge: {}", one.model, one.text())).collect()
}

fn new(path: &Path) -> anyhow::Result<CliExit> {
    let text = render(&board().with_default_verdict());
    let written = fs_err::OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = written.map_err(|error| {
        let refused = CliError::usage("cannot write the committee file").with_source(error);
        match path.symlink_metadata() {
            Ok(_) => refused.with_hint("choose another name; existing files are not overwritten"),
            Err(_) => refused,
        }
    })?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    let shown = path.display();
    terminal::note(&format!(
        "{DIM}wrote {shown}; edit it, then run `moothall committee check {shown}`{DIM:#}\n"
    ));
    Ok(CliExit::Fine)
}

/// The first mistake in a file, with the number of further ones as a hint.
fn refusal(path: &Path, problems: &[ConfigProblem]) -> CliError {
    let Some((first, others)) = problems.split_first() else {
        return CliError::usage(format!("{} is not a valid committee file", path.display()));
    };
    let shown = path.display();
    let more = match others.len() {
        0 => None,
        1 => Some(format!("`moothall committee check {shown}` shows 1 more problem")),
        many => Some(format!("`moothall committee check {shown}` shows {many} more problems")),
    };
    let hints: Vec<String> = first.hint.iter().cloned().chain(more).collect();
    let refused = CliError::usage(first.message.clone());
    if hints.is_empty() { refused } else { refused.with_hint(hints.join("\nhint: ")) }
}

fn error(problem: &ConfigProblem) -> CliError {
    let error = CliError::usage(problem.message.clone());
    match &problem.hint {
        Some(hint) => error.with_hint(hint.clone()),
        None => error,
    }
}
