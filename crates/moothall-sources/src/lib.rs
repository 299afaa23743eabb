//! Evidence about a company: SEC filings, the user's own documents, and headlines.
//!
//! All input is untrusted: sizes, times and redirects are limited, and PDFs are read in a sandbox.
//! `moothall-core` interprets the bytes.

mod combined_gatherer;
mod documents;
pub mod edgar;
mod evidence_gatherer;
mod gatherer;
mod news;

pub use crate::combined_gatherer::CombinedGatherer;
pub use crate::documents::{DocumentFolder, FolderDocuments, MAX_DOCUMENTS};
pub use crate::evidence_gatherer::{EvidenceGatherer, GatherFuture};
pub use crate::gatherer::{EvidenceOrigin, FilingGatherer, GatherError};
pub use crate::news::{NewsHeadlines, NewsSource};
