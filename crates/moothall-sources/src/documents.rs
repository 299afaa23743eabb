//! A user's own documents: which files of a folder are read, and how.
//!
//! Plain text is read here. A PDF is a program for a reader that nobody audits whole, so its text is
//! taken out in a sandbox and never in this process.

mod pdf;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::consult::GatherFailureKind;
use moothall_core::evidence::documents::{FoundDocument, documents, text_of};
use moothall_core::evidence::{DocumentKind, SourceFile, UserDocument};

use self::walk::{File, Walked, walk};
use crate::gatherer::GatherError;
use moothall_sandbox::Executor;

/// More PDFs are named as missing: each takes a sandbox of its own.
const MAX_PDFS: usize = 20;
/// How long the reader of one PDF may take: emulated CPUs are slow, and reports are long.
const PDF_PATIENCE: Duration = Duration::from_secs(120);
/// What is missing is told in at most so many lines.
const MAX_MISSING: usize = 30;

/// A folder of documents. Nothing is read before somebody asks.
#[derive(Debug)]
pub struct DocumentFolder {
    path: PathBuf,
    pdf: Option<Arc<dyn Executor>>,
    pdf_patience: Duration,
}

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// In the order of their names.
    pub documents: Vec<UserDocument>,
    /// What could not be read, one line each.
    pub missing: Vec<String>,
    /// The files behind them.
    pub sources: Vec<SourceFile>,
}

impl DocumentFolder {
    /// The documents in this folder. PDFs are read by a program that `pdf` executes; without it
    /// they are named as missing.
    pub fn new(path: PathBuf, pdf: Option<Arc<dyn Executor>>) -> Self {
        Self { path, pdf, pdf_patience: PDF_PATIENCE }
    }

    /// Stops the reader of one PDF after so long.
    #[must_use]
    pub fn with_pdf_patience(self, pdf_patience: Duration) -> Self {
        Self { pdf_patience, ..self }
    }

    /// What a folder is called in evidence: its own name, never where it is.
    pub fn label(path: &Path) -> String {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let name: String = name.unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
        let name: String = name.trim().chars().take(60).collect();
        if name.is_empty() { "documents".to_owned() } else { name }
    }

    /// Reads the folder. A folder without a single document that can be read is a failure, because
    /// whoever named it expects some.
    pub async fn read(&self) -> Result<Documents, GatherError> {
        let root = self.path.clone();
        let walked = tokio::task::spawn_blocking(move || walk(&root)).await;
        let Walked { files, mut missing } = match walked {
            Ok(Ok(walked)) => walked,
            Ok(Err(error)) => {
                let detail = format!("the folder of documents cannot be read: {error}");
                return Err(GatherError::new(GatherFailureKind::NoDocuments, detail));
            }
            Err(_) => {
                let detail = "the documents could not be read to their end";
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
                text.ok_or_else(|| "it is not UTF-8 text".to_owned())
            };
            match text {
                Ok(text) => {
                    let (sha256, bytes) = (Sha256Hex::of(&file.bytes), file.bytes.len() as u64);
                    let url = format!("document:{}", file.name);
                    sources.push(SourceFile { url, sha256, bytes });
                    let File { name, kind, .. } = file;
                    found.push(FoundDocument { name, kind, sha256, bytes, text });
                }
                Err(why) => missing.push(format!("{}: {why}", file.name)),
            }
        }
        let (documents, unread) = documents(found);
        missing.extend(unread);
        if documents.is_empty() {
            let why = match missing.first() {
                Some(first) => format!("none of the documents could be read; {first}"),
                None => "the folder holds no documents".to_owned(),
            };
            return Err(GatherError::new(GatherFailureKind::NoDocuments, why)
                .with_hint("Markdown (.md), text (.txt), tables (.csv, .tsv) and .pdf are read"));
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
        Ok(Documents { documents, missing, sources })
    }

    async fn pdf_text(&self, file: &File, number: usize) -> Result<String, String> {
        if number > MAX_PDFS {
            return Err(format!("no more than {MAX_PDFS} PDFs are read"));
        }
        match &self.pdf {
            Some(executor) => pdf::text(&**executor, &file.bytes, self.pdf_patience).await,
            None => Err("a PDF is read in a sandbox only, and there is none".to_owned()),
        }
    }
}
