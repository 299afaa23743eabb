//! Evidence about a company: SEC filings, the user's own documents, and headlines.
//!
//! Everything here reads what strangers wrote: sizes, times and redirects are bounded, and PDF files are read in a sandbox. What the
//! bytes mean is decided in `moothall-core`.

mod documents;
pub mod edgar;
mod gatherer;
mod gathering;
mod news;
mod sources;

pub use crate::documents::{DocumentFolder, Documents};
pub use crate::gatherer::{GatherError, Gatherer, Origin};
pub use crate::gathering::{GatherFuture, Gathering};
pub use crate::news::{News, NewsSource};
pub use crate::sources::Sources;
