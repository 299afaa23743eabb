//! Reads and writes the files and pipes of commands.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
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

/// Extensions of files that a memo would damage: formats of `moothall report`, and documents.
const OTHER_FORMATS: [&str; 8] = ["pdf", "html", "htm", "csv", "json", "jsonl", "docx", "xlsx"];

/// Makes the path of a memo absolute. A memo is Markdown, which must not replace, for example, a PDF.
pub(crate) fn memo_path(path: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    if let Some(path) = path
        && let Some(extension) = path.extension()
        && OTHER_FORMATS.iter().any(|known| extension.eq_ignore_ascii_case(known))
    {
        let problem =
            format!("`--memo` writes Markdown, but `{}` has another format", path.display());
        return Err(CliError::usage(problem).with_hint(
            "pass `--memo memo.md`, and export other formats of the finished run with \
             `moothall report RUN --format pdf --output memo.pdf`",
        ));
    }
    absolute_path(path)
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

/// Reads a text file; a missing one is empty.
pub(crate) fn read_or_empty(file: &Path) -> io::Result<String> {
    match fs_err::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// Who can read a file that does not exist yet. An existing file keeps its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewFileMode {
    /// Only the user.
    Private,
    /// Everyone that the umask allows.
    Shared,
}

/// Replaces the content of a file atomically, unless it has changed since `before` was read. A
/// symbolic link is kept, and the file that it leads to is replaced.
pub(crate) fn replace_text(
    file: &Path,
    before: &str,
    after: &str,
    mode: NewFileMode,
) -> io::Result<()> {
    let target = match fs_err::canonicalize(file) {
        Ok(target) => target,
        Err(_) => std::path::absolute(file)?,
    };
    let folder = target.parent().map_or_else(PathBuf::new, Path::to_owned);
    fs_err::create_dir_all(&folder)?;
    if read_or_empty(&target)? != before {
        return Err(io::Error::other("the file was changed in the meantime"));
    }
    let mut builder = tempfile::Builder::new();
    if mode == NewFileMode::Shared {
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut fresh = builder.tempfile_in(&folder)?;
    if let Ok(there) = fs_err::metadata(&target) {
        fresh.as_file().set_permissions(there.permissions())?;
    }
    fresh.write_all(after.as_bytes())?;
    fresh.as_file().sync_all()?;
    fresh.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Removed (`-`) and added (`+`) lines in file order.
pub(crate) fn line_difference(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let count_equal = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    // Edits are small and files may be large, so only the part between equal ends is compared.
    let first = count_equal(&mut old.iter().zip(&new));
    let last = count_equal(&mut old[first..].iter().rev().zip(new[first..].iter().rev()));
    let (old, new) = (&old[first..old.len() - last], &new[first..new.len() - last]);
    // Length of the longest common subsequence from each pair of lines on.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (one, line) in old.iter().enumerate().rev() {
        for (other, with) in new.iter().enumerate().rev() {
            common[one][other] = match line == with {
                true => common[one + 1][other + 1] + 1,
                false => common[one + 1][other].max(common[one][other + 1]),
            };
        }
    }
    let (mut one, mut other, mut lines) = (0, 0, Vec::new());
    while one < old.len() || other < new.len() {
        if one < old.len() && other < new.len() && old[one] == new[other] {
            (one, other) = (one + 1, other + 1);
        } else if other == new.len()
            || (one < old.len() && common[one + 1][other] >= common[one][other + 1])
        {
            lines.push(format!("- {}", old[one]));
            one += 1;
        } else {
            lines.push(format!("+ {}", new[other]));
            other += 1;
        }
    }
    lines
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
