//! `moothall prompts`: lists, prints and exports the texts that a committee can replace.

use std::fmt::Write as _;
use std::path::Path;

use moothall_core::consult::board;
use moothall_core::{BuiltInText, Sha256Hex, TextKind, built_in_texts};
use serde_json::{Value, json};

use super::committee;
use crate::args::{GlobalArgs, PromptsCommand};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM};

pub(crate) fn run(global: &GlobalArgs, command: &PromptsCommand) -> anyhow::Result<CliExit> {
    match command {
        PromptsCommand::List { json: true } => {
            let texts: Vec<Value> = built_in_texts().iter().map(text_json).collect();
            terminal::print(&format!("{:#}\n", json!({ "texts": texts })))?;
        }
        PromptsCommand::List { json: false } => terminal::print(&list())?,
        PromptsCommand::Show { name } => terminal::print(find(name)?.text)?,
        PromptsCommand::Export { dir } => export(dir)?,
        PromptsCommand::Check { dir, json } => return committee::check(global, dir, *json),
    }
    Ok(CliExit::Fine)
}

fn text_json(text: &BuiltInText) -> Value {
    json!({
        "file": text.file(),
        "purpose": text.purpose,
        "required": text.required(),
        "optional": text.optional(),
        "sha256": Sha256Hex::of(text.text.as_bytes()),
    })
}

fn list() -> String {
    let texts = built_in_texts();
    let width = texts.iter().map(|text| text.file().len()).max().unwrap_or_default();
    let mut shown = String::new();
    for text in &texts {
        let names = text.required().into_iter().map(|name| format!("{{{{{name}}}}}"));
        let names: Vec<String> = names.collect();
        // Writing to a String cannot fail.
        let _ = writeln!(shown, "{BOLD}{:<width$}{BOLD:#}  {}", text.file(), text.purpose);
        if !names.is_empty() {
            let _ = writeln!(shown, "{:<width$}  {DIM}{}{DIM:#}", "", names.join(" "));
        }
    }
    shown
}

/// Finds a text by file or name. `brief` is a prompt and a memo section.
fn find(name: &str) -> Result<BuiltInText, CliError> {
    let wanted = name.strip_suffix(".md").unwrap_or(name);
    let texts = built_in_texts();
    let is_wanted =
        |one: &&BuiltInText| one.name == wanted || one.file().strip_suffix(".md") == Some(wanted);
    let found: Vec<&BuiltInText> = texts.iter().filter(is_wanted).collect();
    match found.as_slice() {
        [only] => Ok(**only),
        [] => Err(CliError::usage(format!(
            "no prompt or memo section named `{}`",
            display::line(name)
        ))
        .with_hint("`moothall prompts list` prints all names")),
        several => {
            let files: Vec<String> = several.iter().map(|one| one.file()).collect();
            Err(CliError::usage(format!("`{wanted}` is the name of several texts"))
                .with_hint(format!("use one of: {}", files.join(", "))))
        }
    }
}

fn export(folder: &Path) -> Result<(), CliError> {
    let unwritable =
        |error: std::io::Error| CliError::failed("cannot write the texts").with_source(error);
    fs_err::create_dir_all(folder).map_err(unwritable)?;
    let shown = folder.display();
    if fs_err::read_dir(folder).map_err(unwritable)?.next().is_some() {
        return Err(CliError::usage(format!("`{shown}` is not empty"))
            .with_hint("choose a new directory; existing files are not overwritten"));
    }
    for kind in TextKind::ALL {
        fs_err::create_dir(folder.join(kind.folder())).map_err(unwritable)?;
    }
    let committee =
        (committee::COMMITTEE_FILE.to_owned(), committee::render(&board().with_default_verdict()));
    let texts = built_in_texts().into_iter().map(|one| (one.file(), one.text.to_owned()));
    let files: Vec<(String, String)> = texts.chain([committee]).collect();
    for (name, text) in &files {
        fs_err::write(folder.join(name), text).map_err(unwritable)?;
    }
    let many = files.len();
    terminal::note(&format!(
        "{DIM}wrote {many} files to {shown}; delete the ones you do not change, then run \
         `moothall prompts check {shown}`{DIM:#}\n"
    ));
    Ok(())
}
