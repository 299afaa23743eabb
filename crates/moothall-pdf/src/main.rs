//! The `moothall-pdf` program: reads a document as JSON from standard input and writes a PDF to
//! standard output. `moothall` starts it for every PDF. The typesetter is as large as the rest of the
//! product; as a separate program it is built and loaded only for PDFs, and can be killed.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use moothall_pdf::{MAX_BYTES, PdfError, PdfPaperSize, typeset};

/// Exit code for a wrong command line, as in `moothall`.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let paper = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--version"), None) => {
            let _ = writeln!(std::io::stdout(), "moothall-pdf {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        (Some("a4"), None) => PdfPaperSize::A4,
        (Some("letter"), None) => PdfPaperSize::Letter,
        _ => {
            let usage = "usage: moothall-pdf a4|letter <document.json >memo.pdf";
            let _ = writeln!(std::io::stderr(), "error: {usage}");
            return ExitCode::from(USAGE);
        }
    };
    match run(paper) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(paper: PdfPaperSize) -> Result<(), PdfError> {
    let mut document = String::new();
    // One byte over the limit is enough to detect a document that is too long.
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().lock().take(most).read_to_string(&mut document)?;
    let pdf = typeset(document, paper)?;
    let mut out = std::io::stdout().lock();
    out.write_all(&pdf.bytes)?;
    out.flush()?;
    Ok(())
}
