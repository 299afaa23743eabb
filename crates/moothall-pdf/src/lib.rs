//! Documents of Moothall as PDF.
//!
//! typst typesets them: it breaks lines and pages, repeats the heads of tables and writes tagged,
//! searchable PDF. It is a large dependency, so this crate is the only one that knows it.
//!
//! The template is a part of this crate and the document is data: a string of JSON that the template
//! reads and prints piece by piece. No word of a model is ever parsed as markup. The world that the
//! template sees has one file, the template itself, no packages, no network and no clock; so equal
//! documents have equal bytes.
//!
//! The letters are Libertinus Serif and DejaVu Sans Mono, which come with typst (SIL Open Font
//! License 1.1 and the Bitstream Vera licence). They have Latin, Greek and Cyrillic letters; signs
//! of other scripts are shown as boxes.

mod world;

use std::sync::mpsc;
use std::time::Duration;

use moothall_core::report::Paper;
use moothall_core::report::document::Document;
use typst::foundations::Smart;
use typst_layout::PagedDocument;
use typst_pdf::PdfOptions;

use self::world::OneFile;

/// The longest document that is typeset, as JSON; a memo has a few hundred thousand bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// How long typesetting may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Typesetting goes deep where code is not optimised.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Why there is no PDF.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PdfError {
    /// The document cannot be written down.
    #[error("the document cannot be handed to the typesetter")]
    Data(#[from] serde_json::Error),
    /// The document is too long.
    #[error("the document has {0} bytes, more than can be typeset")]
    TooLong(usize),
    /// It took too long.
    #[error("typesetting took longer than {PATIENCE:?}")]
    TooSlow,
    /// The typesetter found something wrong; with a document of ours that is a mistake of ours.
    #[error("the typesetter refused the document: {0}")]
    Refused(String),
    /// There was no thread to work in, or the typesetter broke in it.
    #[error("the typesetter broke")]
    Broken,
}

/// A document on pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdf {
    /// The file.
    pub bytes: Vec<u8>,
    /// How many pages it has.
    pub pages: usize,
}

/// Typesets a document.
pub fn pdf(document: &Document, paper: Paper) -> Result<Pdf, PdfError> {
    let data = serde_json::to_string(document)?;
    if data.len() > MAX_BYTES {
        return Err(PdfError::TooLong(data.len()));
    }
    let (done, typeset) = mpsc::channel();
    let work = move || {
        // Nobody waits any more where it took too long.
        let _ = done.send(typeset_now(data, paper));
    };
    std::thread::Builder::new()
        .name("typeset".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work)
        .map_err(|_| PdfError::Broken)?;
    match typeset.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(PdfError::TooSlow),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(PdfError::Broken),
    }
}

fn typeset_now(data: String, paper: Paper) -> Result<Pdf, PdfError> {
    let world = OneFile::new(data, paper)?;
    let document: PagedDocument = typst::compile(&world).output.map_err(refused)?;
    let options =
        PdfOptions { creator: Smart::Custom(Some("moothall".to_owned())), ..PdfOptions::default() };
    let bytes = typst_pdf::pdf(&document, &options).map_err(refused)?;
    Ok(Pdf { bytes, pages: document.pages().len() })
}

fn refused(errors: impl IntoIterator<Item = typst::diag::SourceDiagnostic>) -> PdfError {
    let first = errors.into_iter().next();
    PdfError::Refused(first.map(|error| error.message.to_string()).unwrap_or_default())
}
