//! Parses the flags that select a company and its sources of evidence.

use std::path::Path;

use clap::ValueEnum;
use moothall_core::NewsChoice;
use moothall_core::consult::EvidenceSource;

use super::ConsultArgs;
use crate::error::CliError;

/// Sources of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceArg {
    /// The company's SEC filings
    Filings,
    /// Your own documents in the directory DIR; combine both with `filings,files`
    Files,
    /// Invented by a model; marked wherever it is shown
    Synthetic,
}

pub(crate) fn parse_news(text: &str) -> Result<NewsChoice, String> {
    match text.split_once(':') {
        _ if text == "gdelt" => Ok(NewsChoice::Gdelt),
        Some(("rss", url)) => Ok(NewsChoice::Rss(url.to_owned())),
        Some(("http" | "https", _)) => Err(format!("write a feed as `rss:{text}`")),
        _ if text.is_empty() => Err("expected gdelt, rss:URL or a file".to_owned()),
        _ => Ok(NewsChoice::File(text.into())),
    }
}

/// The company of a consultation and its sources of evidence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConsultSubject<'a> {
    /// As typed; `None` for an unlisted company.
    pub(crate) ticker: Option<&'a str>,
    /// Name of an unlisted company.
    pub(crate) name: Option<&'a str>,
    pub(crate) source: EvidenceSource,
    /// Directory of the user's documents.
    pub(crate) folder: Option<&'a Path>,
}

impl ConsultArgs {
    /// Resolves the positional arguments. With `--name` there is no ticker, so the first positional
    /// argument is the directory.
    pub(crate) fn subject(&self) -> Result<ConsultSubject<'_>, CliError> {
        let has = |source| self.source.contains(&source);
        let name = self.name.as_deref().map(str::trim);
        let (ticker, folder) = match (name, self.ticker.as_deref(), self.folder.as_deref()) {
            (Some(_), Some(_), Some(_)) => {
                return Err(CliError::usage("a ticker and `--name` cannot be combined"));
            }
            (Some(_), first, folder) => (None, first.map(Path::new).or(folder)),
            (None, Some(ticker), folder) => (Some(ticker), folder),
            (None, None, _) => {
                return Err(CliError::usage("missing company").with_hint(
                    "pass a ticker, such as AAPL, or an unlisted company: \
                     `--name \"Acme\" --source files DIR`",
                ));
            }
        };
        let source = match (has(SourceArg::Synthetic), has(SourceArg::Filings)) {
            (true, _) if self.source.len() > 1 => {
                return Err(CliError::usage(
                    "`--source synthetic` cannot be combined with other sources",
                ));
            }
            (true, _) => EvidenceSource::Synthetic,
            (false, true) => EvidenceSource::Filings,
            (false, false) => EvidenceSource::Files,
        };
        if name.is_some() && source != EvidenceSource::Files {
            return Err(CliError::usage(
                "`--name` needs `--source files`: an unlisted company has no filings",
            )
            .with_hint("pass a directory of documents: `--name \"Acme\" --source files DIR`"));
        }
        match (has(SourceArg::Files), folder) {
            (true, None) => Err(CliError::usage("missing directory of documents")
                .with_hint("pass `--source files DIR`")),
            (false, Some(folder)) => {
                let words = format!("unexpected argument `{}`", folder.display());
                Err(CliError::usage(words)
                    .with_hint("to use a directory of documents, pass `--source filings,files`"))
            }
            _ => Ok(ConsultSubject { ticker, name, source, folder }),
        }
    }
}
