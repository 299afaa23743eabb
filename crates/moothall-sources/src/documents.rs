//! Reads the user's own documents from a folder, or from the files of a request.
//!
//! Plain text is read in this process. PDF parsers are too large to audit, so PDF text is extracted
//! in a sandbox and never in this process.

mod folder_walker;
mod pdf;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use moothall_core::consult::GatherFailureKind;
use moothall_core::evidence::documents::{FoundDocument, documents, text_of};
use moothall_core::evidence::{DocumentKind, SourceFile, UserDocument};
use moothall_core::{Sha256Hex, tokens_expected};

pub use self::folder_walker::MAX_FILES as MAX_DOCUMENTS;
use self::folder_walker::{DocumentFile, FolderWalkResult, collect, size_limit, walk};
use crate::gatherer::GatherError;
use moothall_sandbox::ProgramExecutor;

/// Each PDF needs its own sandbox. PDFs over this limit are reported as missing.
const MAX_PDFS: usize = 20;
/// Time limit for extracting one PDF. Generous because emulated CPUs are slow and reports are long.
const PDF_TIMEOUT: Duration = Duration::from_secs(120);
/// Upper limit on the number of `missing` lines.
const MAX_MISSING: usize = 30;

/// A folder of documents. Nothing is read until [`DocumentFolder::read`] is called.
#[derive(Debug)]
pub struct DocumentFolder {
    location: DocumentLocation,
    pdf: Option<Arc<dyn ProgramExecutor>>,
    pdf_timeout: Duration,
}

#[derive(Debug, Clone)]
enum DocumentLocation {
    Path(PathBuf),
    /// Content by name. The names are labels and never paths of this machine.
    Memory(BTreeMap<String, Vec<u8>>),
}

impl DocumentLocation {
    fn walk(self) -> std::io::Result<FolderWalkResult> {
        match self {
            Self::Path(root) => walk(&root),
            Self::Memory(files) => Ok(collect(files)),
        }
    }
}

/// The documents read from a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderDocuments {
    /// Sorted by name.
    pub documents: Vec<UserDocument>,
    /// Files that could not be read, one line each.
    pub missing: Vec<String>,
    /// Hashes and sizes of the files the documents were read from.
    pub sources: Vec<SourceFile>,
}

impl DocumentFolder {
    /// PDFs are extracted with the `pdf` executor. Without one they are reported as missing.
    pub fn new(path: PathBuf, pdf: Option<Arc<dyn ProgramExecutor>>) -> Self {
        Self { location: DocumentLocation::Path(path), pdf, pdf_timeout: PDF_TIMEOUT }
    }

    /// The files of a request, by name, read in the same way as those of a folder.
    pub fn in_memory(
        files: BTreeMap<String, Vec<u8>>,
        pdf: Option<Arc<dyn ProgramExecutor>>,
    ) -> Self {
        Self { location: DocumentLocation::Memory(files), pdf, pdf_timeout: PDF_TIMEOUT }
    }

    /// The maximum size of a document with this file name, in bytes; `None` if its type is not
    /// supported.
    pub fn size_limit(name: &str) -> Option<u64> {
        DocumentKind::of_name(name).map(size_limit)
    }

    /// Whether a document with this file name is read in a sandbox, which is slow.
    pub fn needs_sandbox(name: &str) -> bool {
        DocumentKind::of_name(name) == Some(DocumentKind::Pdf)
    }

    /// Sets the time limit for extracting one PDF.
    #[must_use]
    pub fn with_pdf_timeout(self, pdf_timeout: Duration) -> Self {
        Self { pdf_timeout, ..self }
    }

    /// The folder's name as shown in evidence. Never includes its path.
    pub fn label(path: &Path) -> String {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let name: String = name.unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
        let name: String = name.trim().chars().take(60).collect();
        if name.is_empty() { "documents".to_owned() } else { name }
    }

    /// The length of all documents in tokens; `None` if they cannot be read here, as PDFs are only
    /// read in a sandbox. Blocks.
    pub fn text_tokens(self) -> Option<u64> {
        let walked = self.location.walk().ok()?;
        let tokens = walked.files.iter().map(|file| match file.kind {
            DocumentKind::Pdf => None,
            _ => text_of(&file.bytes).map(tokens_expected),
        });
        tokens.sum()
    }

    /// Reads the folder. Fails if no document is readable, because a user who names a folder
    /// expects documents in it.
    pub async fn read(&self) -> Result<FolderDocuments, GatherError> {
        let location = self.location.clone();
        let walked = tokio::task::spawn_blocking(move || location.walk()).await;
        let FolderWalkResult { files, mut missing } = match walked {
            Ok(Ok(walked)) => walked,
            Ok(Err(error)) => {
                let detail = format!("cannot read the documents folder: {error}");
                return Err(GatherError::new(GatherFailureKind::NoDocuments, detail));
            }
            Err(_) => {
                let detail = "reading the documents was interrupted";
                return Err(GatherError::new(GatherFailureKind::NoDocuments, detail));
            }
        };
        let (mut found, mut sources, mut pdfs) = (Vec::new(), Vec::new(), 0);
        for file in files {
            let text = if file.kind == DocumentKind::Pdf {
                pdfs += 1;
                self.pdf_text(&file, pdfs).await
            } else {
                let text = text_of(&file.bytes).map(str::to_owned);
                text.ok_or_else(|| "not UTF-8 text".to_owned())
            };
            match text {
                Ok(text) => {
                    let (sha256, bytes) = (Sha256Hex::of(&file.bytes), file.bytes.len() as u64);
                    let url = format!("document:{}", file.name);
                    sources.push(SourceFile { url, sha256, bytes });
                    let DocumentFile { name, kind, .. } = file;
                    found.push(FoundDocument { name, kind, sha256, bytes, text });
                }
                Err(why) => missing.push(format!("{}: {why}", file.name)),
            }
        }
        let (documents, unread) = documents(found);
        missing.extend(unread);
        if documents.is_empty() {
            let why = match missing.first() {
                Some(first) => format!("no document could be read; {first}"),
                None => "the folder contains no documents".to_owned(),
            };
            return Err(GatherError::new(GatherFailureKind::NoDocuments, why).with_hint(
                "supported files: Markdown (.md), text (.txt), tables (.csv, .tsv) and .pdf",
            ));
        }
        sources.retain(|source| {
            documents.iter().any(|one| source.url == format!("document:{}", one.name))
        });
        missing.sort();
        let more = missing.len().saturating_sub(MAX_MISSING);
        if more > 0 {
            missing.truncate(MAX_MISSING);
            missing.push(format!("documents: {more} more could not be read"));
        }
        Ok(FolderDocuments { documents, missing, sources })
    }

    async fn pdf_text(&self, file: &DocumentFile, number: usize) -> Result<String, String> {
        if number > MAX_PDFS {
            return Err(format!("too many PDFs (limit: {MAX_PDFS})"));
        }
        match &self.pdf {
            Some(executor) => pdf::text(&**executor, &file.bytes, self.pdf_timeout).await,
            None => Err("PDFs are only read in a sandbox, and none is available".to_owned()),
        }
    }
}
