//! Where the evidence of a consultation comes from, as flags say it.

use std::path::Path;

use clap::ValueEnum;
use moothall_core::NewsChoice;
use moothall_core::consult::EvidenceSource;

use super::ConsultArgs;
use crate::error::CliError;

/// Where the evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceArg {
    /// What the company filed with the SEC
    Filings,
    /// Your own documents, in the folder DIR; `filings,files` has both
    Files,
    /// A model makes it up; marked wherever it is shown
    Synthetic,
}

/// Reads the source of headlines.
pub(super) fn parse_news(text: &str) -> Result<NewsChoice, String> {
    match text.split_once(':') {
        _ if text == "gdelt" => Ok(NewsChoice::Gdelt),
        Some(("rss", url)) => Ok(NewsChoice::Rss(url.to_owned())),
        Some(("http" | "https", _)) => Err(format!("write `rss:{text}` for a feed")),
        _ if text.is_empty() => Err("write gdelt, rss:URL or a file".to_owned()),
        _ => Ok(NewsChoice::File(text.into())),
    }
}

/// Whom a consultation is about, and what is known of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject<'a> {
    /// As it was typed; a company that is not listed has none.
    pub(crate) ticker: Option<&'a str>,
    /// What a company that is not listed is called.
    pub(crate) name: Option<&'a str>,
    pub(crate) source: EvidenceSource,
    /// The folder of documents.
    pub(crate) folder: Option<&'a Path>,
}

impl ConsultArgs {
    /// Whom it is about. With `--name` there is no ticker, and what stands in its place is the
    /// folder.
    pub(crate) fn subject(&self) -> Result<Subject<'_>, CliError> {
        let has = |source| self.source.contains(&source);
        let name = self.name.as_deref().map(str::trim);
        let (ticker, folder) = match (name, self.ticker.as_deref(), self.folder.as_deref()) {
            (Some(_), Some(_), Some(_)) => {
                return Err(CliError::usage("a company has a ticker or a `--name`, not both"));
            }
            (Some(_), first, folder) => (None, first.map(Path::new).or(folder)),
            (None, Some(ticker), folder) => (Some(ticker), folder),
            (None, None, _) => {
                return Err(CliError::usage("whom is it about?").with_hint(
                    "name a ticker, such as AAPL, or a company of your own: \
                     `--name \"Acme\" --source files DIR`",
                ));
            }
        };
        let source = match (has(SourceArg::Synthetic), has(SourceArg::Filings)) {
            (true, _) if self.source.len() > 1 => {
                return Err(CliError::usage(
                    "evidence that a model makes up is not mixed with any other",
                ));
            }
            (true, _) => EvidenceSource::Synthetic,
            (false, true) => EvidenceSource::Filings,
            (false, false) => EvidenceSource::Files,
        };
        if name.is_some() && source != EvidenceSource::Files {
            return Err(CliError::usage("a company without a ticker files nothing")
                .with_hint("give a folder of documents: `--name \"Acme\" --source files DIR`"));
        }
        match (has(SourceArg::Files), folder) {
            (true, None) => Err(CliError::usage("the folder of documents is missing")
                .with_hint("write `--source files DIR`")),
            (false, Some(folder)) => {
                let words = format!("`{}` is one word too many", folder.display());
                Err(CliError::usage(words)
                    .with_hint("a folder of documents goes with `--source filings,files`"))
            }
            _ => Ok(Subject { ticker, name, source, folder }),
        }
    }
}
