//! Typesets Moothall documents as PDF, for the program `moothall-pdf`.
//!
//! The layout engine is typst: it breaks lines and pages, repeats table headers and writes tagged,
//! searchable PDF. With its dependencies it is as large as the rest of the product, so no other
//! crate depends on this one; `moothall` starts the program instead.
//!
//! The template is part of this crate, and the document is data: a JSON string that the template
//! reads and prints piece by piece. Model output is never parsed as markup. The template has access
//! to one file (itself), and to no packages, network or clock, so equal documents give equal bytes.
//!
//! The font is Libertinus Serif (SIL Open Font License 1.1, see `fonts/LICENSES.txt`), with DejaVu
//! Sans Mono for missing glyphs. They cover Latin, Greek and Cyrillic; other scripts are shown as
//! boxes.

mod world;

use typst::foundations::Smart;
use typst_layout::PagedDocument;
use typst_pdf::PdfOptions;

use self::world::TemplateWorld;

/// Maximum size of a document as JSON; a memo has a few hundred thousand bytes.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Layout recurses deeply in unoptimized builds.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Error from typesetting a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PdfError {
    /// The document is longer than [`MAX_BYTES`].
    #[error("the document is too long to typeset (limit: {MAX_BYTES} bytes)")]
    TooLong,
    /// The template failed. For a document from `moothall` this is a bug.
    #[error("the template failed: {0}")]
    Template(String),
    /// The typesetter panicked.
    #[error("the typesetter panicked")]
    Panicked,
    /// Reading the document, writing the PDF or starting a thread failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Paper size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PdfPaperSize {
    /// 210 × 297 mm
    A4,
    /// 8.5 × 11 in
    Letter,
}

/// A typeset document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdfFile {
    /// Content of the PDF file.
    pub bytes: Vec<u8>,
    /// Number of pages.
    pub pages: usize,
}

/// Typesets a document, given as JSON.
pub fn typeset(document: String, paper: PdfPaperSize) -> Result<PdfFile, PdfError> {
    if document.len() > MAX_BYTES {
        return Err(PdfError::TooLong);
    }
    std::thread::Builder::new()
        .name("typeset".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || compile(document, paper))?
        .join()
        .map_err(|_| PdfError::Panicked)?
}

fn compile(document: String, paper: PdfPaperSize) -> Result<PdfFile, PdfError> {
    let world = TemplateWorld::new(document, paper)?;
    let document: PagedDocument = typst::compile(&world).output.map_err(template_error)?;
    let options =
        PdfOptions { creator: Smart::Custom(Some("moothall".to_owned())), ..PdfOptions::default() };
    let bytes = typst_pdf::pdf(&document, &options).map_err(template_error)?;
    Ok(PdfFile { bytes, pages: document.pages().len() })
}

fn template_error(errors: impl IntoIterator<Item = typst::diag::SourceDiagnostic>) -> PdfError {
    let first = errors.into_iter().next();
    PdfError::Template(first.map(|error| error.message.to_string()).unwrap_or_default())
}
