//! Runs `moothall-pdf`, the typesetter program in the same directory.
//!
//! The typesetter would double the build time and the size of the binary, and few commands need it.
//! As a separate program it can also be killed when it takes too long.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use moothall_core::report::PaperSize;
use moothall_core::report::document::ReportDocument;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::error::CliError;

const NAME: &str = "moothall-pdf";

/// Typesetting a memo takes less than a second; a debug build takes a few.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Typesets a document as PDF.
pub(crate) async fn typeset(
    document: &ReportDocument,
    paper: PaperSize,
) -> Result<Vec<u8>, CliError> {
    let program = std::env::current_exe().and_then(fs_err::canonicalize).map_err(cannot_start)?;
    typeset_with(&helper_path(&program), document, paper).await
}

/// Only the directory of this program is searched, because a `moothall-pdf` elsewhere on PATH may
/// be another version or untrusted.
fn helper_path(program: &Path) -> PathBuf {
    program.with_file_name(format!("{NAME}{}", std::env::consts::EXE_SUFFIX))
}

async fn typeset_with(
    helper: &Path,
    document: &ReportDocument,
    paper: PaperSize,
) -> Result<Vec<u8>, CliError> {
    let input = serde_json::to_vec(document)
        .map_err(|error| failed("cannot serialize the document").with_source(error))?;
    let mut child = Command::new(helper)
        .arg(paper.name())
        .env_clear() // API keys of this process are none of its business
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot_start)?;
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // If the helper stops reading, its error message explains why.
            let _ = stdin.write_all(&input).await;
        }
    };
    let both = async { tokio::join!(write, child.wait_with_output()).1 };
    let output = tokio::time::timeout(TIMEOUT, both)
        .await
        .map_err(|_| failed(format!("`{NAME}` took longer than {} s", TIMEOUT.as_secs())))?
        .map_err(cannot_start)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let reason = stderr.trim().trim_start_matches("error: ");
        return Err(failed(format!("`{NAME}` failed ({}): {reason}", output.status)));
    }
    Ok(output.stdout)
}

fn cannot_start(error: std::io::Error) -> CliError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return CliError::failed(format!("PDF output needs the program `{NAME}` next to `moothall`"))
            .with_hint(
                "install both programs of the release, or use `--format html` and print it from a browser",
            );
    }
    failed(format!("cannot start `{NAME}`")).with_source(error)
}

fn failed(message: impl Into<String>) -> CliError {
    CliError::failed(message)
        .with_hint("use `--format html`, which has the same content and can be printed")
}

#[cfg(test)]
#[path = "pdf_helper_tests.rs"]
mod tests;
