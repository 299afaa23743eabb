//! Reads and writes the files and pipes of commands.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use moothall_core::RunId;
use moothall_core::model::OutputSchema;
use moothall_core::receipt::Receipt;
use moothall_core::sandbox::{FileRef, GuestPath};
use moothall_engine::RunRecord;
use moothall_models::{RecordingMode, RecordingStore};
use moothall_store::Store;

use crate::artifacts::{self, WrittenFiles};
use crate::error::CliError;

/// The text of an argument, or of standard input. `what` names it in errors, `hint` tells how to
/// pass it.
pub(crate) fn argument_or_stdin(
    argument: Option<&str>,
    what: &str,
    hint: &str,
    most_bytes: u64,
) -> Result<String, CliError> {
    let text = match argument {
        Some(argument) if argument != "-" => argument.to_owned(),
        None if io::stdin().is_terminal() => {
            return Err(CliError::usage(format!("missing {what}")).with_hint(hint));
        }
        _ => {
            let mut text = String::new();
            let read = io::stdin().take(most_bytes + 1).read_to_string(&mut text);
            read.map_err(|error| {
                CliError::usage(format!("cannot read the {what} from standard input"))
                    .with_source(error)
            })?;
            if text.len() as u64 > most_bytes {
                let message = format!("the {what} is longer than {most_bytes} bytes");
                return Err(CliError::usage(message));
            }
            text
        }
    };
    if text.trim().is_empty() {
        Err(CliError::usage(format!("the {what} is empty")).with_hint(hint))
    } else {
        Ok(text)
    }
}

/// Makes a path absolute.
pub(crate) fn absolute_path(path: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| {
            CliError::usage(format!("cannot use the path `{}`", path.display())).with_source(error)
        })
    };
    path.map(absolute).transpose()
}

/// Reads a text file; `called` names it in the error if it is too large.
pub(crate) fn read_text(
    path: &Path,
    called: &str,
    most_bytes: u64,
    unreadable: impl Fn() -> CliError,
) -> Result<String, CliError> {
    let file = fs_err::File::open(path).map_err(|error| unreadable().with_source(error))?;
    let mut text = String::new();
    file.take(most_bytes + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable().with_source(error))?;
    if text.len() as u64 > most_bytes {
        let message = format!("{called} is larger than {} KiB", most_bytes >> 10);
        return Err(CliError::usage(message));
    }
    Ok(text)
}

/// Reads a JSON schema, named after its file.
pub(crate) fn read_schema(path: &Path) -> Result<OutputSchema, CliError> {
    let text = fs_err::read_to_string(path)
        .map_err(|error| CliError::usage("cannot read the schema").with_source(error))?;
    let name = path.file_stem().map_or_else(|| "answer".into(), |stem| stem.to_string_lossy());
    OutputSchema::parse(&name, &text)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}

/// Writes the events of a run, one JSON object per line.
pub(crate) fn write_events(path: &Path, record: &RunRecord) -> anyhow::Result<()> {
    let lines: Result<String, serde_json::Error> =
        record.sequenced().map(|event| Ok(serde_json::to_string(&event)? + "\n")).collect();
    fs_err::write(path, lines?)
        .map_err(|error| CliError::failed("cannot write the events").with_source(error))?;
    Ok(())
}

pub(crate) fn write_receipt(path: &Path, receipt: &Receipt) -> anyhow::Result<()> {
    fs_err::write(path, receipt.write()?)
        .map_err(|error| CliError::failed("cannot write the receipt").with_source(error))?;
    Ok(())
}

/// Writes stored files of a program to a directory.
pub(crate) async fn write_artifacts(
    store: &dyn Store,
    run_id: &RunId,
    files: &BTreeMap<GuestPath, FileRef>,
    folder: &Path,
) -> anyhow::Result<WrittenFiles> {
    let mut written = WrittenFiles::default();
    for (path, file) in files {
        let bytes = store.artifact(run_id, &file.sha256).await?.ok_or_else(|| {
            CliError::failed(format!("the store no longer has the file `{path}` of this run"))
                .with_hint("the store was modified; restore a backup, or start the run again")
        })?;
        // One at a time, so they need not all fit into memory.
        let one = BTreeMap::from([(path.clone(), bytes)]);
        written.extend(artifacts::write(folder, &one)?);
    }
    Ok(written)
}

pub(crate) fn with_line_break(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

pub(crate) fn recording(
    record: Option<&Path>,
    replay: Option<&Path>,
) -> Result<RecordingMode, CliError> {
    Ok(match (record, replay) {
        (Some(folder), _) => {
            // Before any call, because a reply that cannot be recorded is paid for in vain.
            fs_err::create_dir_all(folder)
                .map_err(|error| CliError::usage("cannot record replies").with_source(error))?;
            RecordingMode::Record(RecordingStore::at(folder))
        }
        (None, Some(folder)) => RecordingMode::Replay(RecordingStore::at(folder)),
        (None, None) => RecordingMode::Off,
    })
}
