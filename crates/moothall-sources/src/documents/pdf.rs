//! The text of a PDF, taken out of it by a program in a sandbox.
//!
//! The PDF goes in as a file and text comes back as a file, both bounded. Whatever a PDF does to its
//! reader, crash it, starve it or keep it busy, it does inside, and here it is a reason in words.

use std::collections::BTreeMap;
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{
    ExecuteRequest, Execution, Exit, FileRef, GuestPath, Labels, Limits, SandboxFailure,
};

use moothall_sandbox::{Executor, Job, Ran};

/// The image that the reader runs in.
const IMAGE: &str = "documents";
const PROGRAM: &str = include_str!("pdf_text.py");
/// The most text that is taken.
const MAX_TEXT_BYTES: usize = 2 << 20;
const MEMORY_BYTES: u64 = 256 << 20;

/// The text of a PDF, or why there is none.
pub(super) async fn text(
    executor: &dyn Executor,
    bytes: &[u8],
    patience: Duration,
) -> Result<String, String> {
    let path = |text: &str| -> Result<GuestPath, String> {
        text.parse().map_err(|_| "the sandbox takes no such path".to_owned())
    };
    let (input, output) = (path("document.pdf")?, path("text.txt")?);
    let file = FileRef { sha256: Sha256Hex::of(bytes), bytes: bytes.len() as u64 };
    let request = ExecuteRequest {
        inputs: BTreeMap::from([(input.clone(), file)]),
        limits: Limits {
            wall_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
            cpu_seconds: patience.as_secs().max(1),
            cpu_permille: 1000,
            memory_bytes: MEMORY_BYTES,
            output_bytes: 64 << 10,
            file_bytes: 4 << 20,
            ..Limits::default()
        },
        collect: true,
        ..ExecuteRequest::python(IMAGE, path("pdf_text.py")?, PROGRAM)
    };
    let labels = Labels(BTreeMap::from([
        ("project".to_owned(), "moothall".to_owned()),
        ("purpose".to_owned(), "pdf".to_owned()),
    ]));
    let inputs = BTreeMap::from([(input, bytes.to_vec())]);
    let job = Job { labels: &labels, request: &request, inputs };
    let Ran { execution, mut files } = executor.execute(job).await.map_err(not_run)?;
    if let Some(why) = trouble(&execution, patience) {
        return Err(why);
    }
    let text = files.remove(&output).ok_or("its reader left no text")?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("its text is longer than {MAX_TEXT_BYTES} bytes"));
    }
    String::from_utf8(text).map_err(|_| "its reader left something that is no text".to_owned())
}

fn not_run(failure: SandboxFailure) -> String {
    let detail: String = failure.detail.chars().filter(|c| !c.is_control()).take(300).collect();
    format!("a PDF is read in a sandbox only: {detail}")
}

/// Why the reader did not come to its end. Nothing that it printed is repeated.
fn trouble(execution: &Execution, patience: Duration) -> Option<String> {
    let seconds = patience.as_secs();
    let mib = MEMORY_BYTES >> 20;
    Some(match &execution.exit {
        Exit::Exited { code: 0 } => return None,
        // The codes that the program itself chooses.
        Exit::Exited { code: 10 } => {
            "the image `documents` has no reader of PDFs; `moothall image build documents` makes one \
             that has"
                .to_owned()
        }
        Exit::Exited { code: 11 } => "it is encrypted".to_owned(),
        Exit::Exited { code: 12 } => "it is not a PDF that can be read".to_owned(),
        Exit::Exited { code: 13 } => "it has no text; a scan has to be recognised first".to_owned(),
        Exit::Exited { code: 14 } | Exit::OutOfMemory => {
            format!("its reader was stopped: it took more than {mib} MiB")
        }
        Exit::TimedOut => format!("its reader was stopped after {seconds} seconds"),
        Exit::Exited { code } => format!("its reader failed with exit code {code}"),
        Exit::Signalled { signal } => format!("its reader was ended by signal {signal}"),
        Exit::SandboxDied { .. } => "the sandbox of its reader died".to_owned(),
    })
}
