//! Opens the user's editor on a text.

use std::fs::Permissions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::process::Command;

use fs_err as fs;
use moothall_core::drafts::RelPath;

use crate::error::CliError;

/// Larger results are refused. The policy may set a lower limit.
const MAX_BYTES: u64 = 16 << 20;
const FALLBACK: &str = "vi";

/// Edits a text in `$VISUAL` or `$EDITOR`, in a private temporary file that is deleted afterwards.
pub(crate) fn edit_text(path: &RelPath, text: &str) -> Result<String, CliError> {
    let failed = |error: io::Error| CliError::failed("cannot edit the text").with_source(error);
    let folder = tempfile::Builder::new()
        .prefix("moothall-review-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(failed)?;
    let file = folder.path().join(file_name(path));
    let write = || -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.options_mut().mode(0o600);
        options.write(true).create_new(true).open(&file)?.write_all(text.as_bytes())
    };
    write().map_err(failed)?;
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.trim().is_empty())
        .unwrap_or_else(|| FALLBACK.to_owned());
    // As git does it: the variable may contain arguments.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$@\""), &editor])
        .arg(&file)
        .status()
        .map_err(failed)?;
    if !status.success() {
        return Err(CliError::failed(format!("the editor `{editor}` failed: {status}"))
            .with_hint("set `VISUAL` or `EDITOR` to an editor"));
    }
    let mut bytes = Vec::new();
    fs::File::open(&file)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::usage("the edited text is larger than 16 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| CliError::usage("the edited text is not UTF-8"))
}

/// Keeps the ending, which selects the editor's language. The rest of the name is the worker's
/// choice and is not used.
fn file_name(path: &RelPath) -> String {
    let ending = path.name().rsplit_once('.').map(|(_, ending)| ending);
    let is_plain =
        |text: &&str| text.len() <= 8 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match ending.filter(is_plain) {
        Some(ending) => format!("proposal.{ending}"),
        None => "proposal".to_owned(),
    }
}
