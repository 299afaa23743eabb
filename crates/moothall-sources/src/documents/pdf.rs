//! Extracts the text of a PDF with a program in a sandbox.
//!
//! The PDF is passed in and the text is returned as files, both with size limits. A PDF that
//! crashes its parser, exhausts its memory or runs into the time limit affects only the sandbox;
//! the caller gets an error message.

use std::collections::BTreeMap;
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{
    ExecuteRequest, ExecutionExit, FileRef, GuestPath, SandboxExecution, SandboxFailure,
    SandboxLabels, SandboxLimits,
};

use moothall_sandbox::{ExecutionJob, ExecutionOutput, ProgramExecutor};

const IMAGE: &str = "documents";
const PROGRAM: &str = include_str!("pdf_text.py");
const MAX_TEXT_BYTES: usize = 2 << 20;
const MEMORY_BYTES: u64 = 256 << 20;

/// Returns the text of a PDF, or the reason it could not be extracted.
pub(crate) async fn text(
    executor: &dyn ProgramExecutor,
    bytes: &[u8],
    timeout: Duration,
) -> Result<String, String> {
    let path = |text: &str| -> Result<GuestPath, String> {
        text.parse().map_err(|_| "invalid sandbox path".to_owned())
    };
    let (input, output) = (path("document.pdf")?, path("text.txt")?);
    let file = FileRef { sha256: Sha256Hex::of(bytes), bytes: bytes.len() as u64 };
    let request = ExecuteRequest {
        inputs: BTreeMap::from([(input.clone(), file)]),
        limits: SandboxLimits {
            wall_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            cpu_seconds: timeout.as_secs().max(1),
            cpu_permille: 1000,
            memory_bytes: MEMORY_BYTES,
            output_bytes: 64 << 10,
            file_bytes: 4 << 20,
            ..SandboxLimits::default()
        },
        collect: true,
        ..ExecuteRequest::python(IMAGE, path("pdf_text.py")?, PROGRAM)
    };
    let labels = SandboxLabels(BTreeMap::from([
        ("project".to_owned(), "moothall".to_owned()),
        ("purpose".to_owned(), "pdf".to_owned()),
    ]));
    let inputs = BTreeMap::from([(input, bytes.to_vec())]);
    let job = ExecutionJob { labels: &labels, request: &request, inputs };
    let ExecutionOutput { execution, mut files } = executor.execute(job).await.map_err(not_run)?;
    if let Some(reason) = failure_reason(&execution, timeout) {
        return Err(reason);
    }
    let text = files.remove(&output).ok_or("the PDF extractor produced no text")?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("text is longer than {MAX_TEXT_BYTES} bytes"));
    }
    String::from_utf8(text).map_err(|_| "the PDF extractor produced invalid UTF-8".to_owned())
}

fn not_run(failure: SandboxFailure) -> String {
    let detail: String = failure.detail.chars().filter(|c| !c.is_control()).take(300).collect();
    format!("cannot read the PDF in a sandbox: {detail}")
}

/// Explains a failed extraction. Program output is untrusted and is never included.
fn failure_reason(execution: &SandboxExecution, timeout: Duration) -> Option<String> {
    let seconds = timeout.as_secs();
    let mib = MEMORY_BYTES >> 20;
    Some(match &execution.exit {
        ExecutionExit::Exited { code: 0 } => return None,
        // Exit codes chosen by `pdf_text.py`.
        ExecutionExit::Exited { code: 10 } => {
            "the image `documents` has no PDF extractor; run `moothall image build documents`"
                .to_owned()
        }
        ExecutionExit::Exited { code: 11 } => "the PDF is encrypted".to_owned(),
        ExecutionExit::Exited { code: 12 } => "not a readable PDF".to_owned(),
        ExecutionExit::Exited { code: 13 } => {
            "the PDF has no text; run OCR on scanned pages first".to_owned()
        }
        ExecutionExit::Exited { code: 14 } | ExecutionExit::OutOfMemory => {
            format!("the PDF extractor used more than {mib} MiB and was stopped")
        }
        ExecutionExit::TimedOut => format!("the PDF extractor timed out after {seconds} seconds"),
        ExecutionExit::Exited { code } => format!("the PDF extractor failed with exit code {code}"),
        ExecutionExit::Signalled { signal } => {
            format!("the PDF extractor was killed by signal {signal}")
        }
        ExecutionExit::SandboxDied { .. } => "the PDF extractor's sandbox crashed".to_owned(),
    })
}
