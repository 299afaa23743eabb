//! Decodes the files in an HTTP request. Their names are labels and are never used as paths.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moothall_core::evidence::news::MAX_NEWS_BYTES;
use moothall_core::sandbox::GuestPath;
use moothall_core::{ErrorCode, text};
use moothall_server::dto::RequestFile;
use moothall_sources::{DocumentFolder, MAX_DOCUMENTS};
use moothall_store::MAX_ARTIFACT_BYTES;

use crate::display;
use crate::error::CliError;

/// Limit of all files of a request together.
const MAX_TOTAL_BYTES: usize = 32 << 20;

const MAX_NAME_CHARS: usize = 120;

/// Decodes documents for a consultation.
pub(crate) fn documents(files: &[RequestFile]) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    if files.len() > MAX_DOCUMENTS {
        let count = files.len();
        return Err(refused(format!("too many documents: {count} (limit: {MAX_DOCUMENTS})")));
    }
    let mut documents = BTreeMap::new();
    let mut total = 0;
    for file in files {
        let name = file_name(file)?;
        let Some(max_bytes) = DocumentFolder::size_limit(name) else {
            return Err(refused(format!("unsupported type of document `{name}`")).with_hint(
                "supported files: Markdown (.md), text (.txt), tables (.csv, .tsv) and .pdf",
            ));
        };
        let content = content(file, usize::try_from(max_bytes).unwrap_or(usize::MAX), &mut total)?;
        if documents.insert(name.to_owned(), content).is_some() {
            return Err(same_name(name));
        }
    }
    Ok(documents)
}

/// Decodes input files for a program.
pub(crate) fn inputs(files: &[RequestFile]) -> Result<BTreeMap<GuestPath, Vec<u8>>, CliError> {
    let mut inputs = BTreeMap::new();
    let mut total = 0;
    for file in files {
        let name = file_name(file)?;
        let path: GuestPath = name.parse().map_err(|_| bad_name(name))?;
        let content = content(file, MAX_ARTIFACT_BYTES, &mut total)?;
        if inputs.insert(path, content).is_some() {
            return Err(same_name(name));
        }
    }
    Ok(inputs)
}

/// Decodes a file with news.
pub(crate) fn news(file: &RequestFile) -> Result<(String, Vec<u8>), CliError> {
    let decoded = file_name(file)
        .and_then(|name| Ok((name.to_owned(), content(file, MAX_NEWS_BYTES, &mut 0)?)));
    decoded.map_err(|error| error.with_code(ErrorCode::BadNews))
}

fn file_name(file: &RequestFile) -> Result<&str, CliError> {
    let name = file.name.as_str();
    let is_hidden = |c: char| c == '/' || c == '\\' || c.is_control() || text::is_unseen(c);
    let is_valid = !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && name.trim() == name
        && !name.starts_with('.')
        && !name.chars().any(is_hidden);
    if is_valid { Ok(name) } else { Err(bad_name(name)) }
}

fn bad_name(name: &str) -> CliError {
    let name = display::cut(&display::line(name), MAX_NAME_CHARS);
    refused(format!("invalid file name `{name}`")).with_hint(format!(
        "use a plain file name such as `plan.md`: at most {MAX_NAME_CHARS} characters, no \
         directories, no leading dot"
    ))
}

fn same_name(name: &str) -> CliError {
    refused(format!("two files have the name `{name}`")).with_hint("rename one of them")
}

/// Decodes one file and adds its size to `total`.
fn content(file: &RequestFile, max_bytes: usize, total: &mut usize) -> Result<Vec<u8>, CliError> {
    let name = &file.name;
    let content = match (&file.text, &file.base64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(encoded)) => STANDARD.decode(encoded).map_err(|error| {
            refused(format!("`{name}` is not valid base64"))
                .with_source(error)
                .with_hint("use the standard alphabet with padding, without line breaks")
        })?,
        (None, None) | (Some(_), Some(_)) => {
            return Err(refused(format!("`{name}` needs either `text` or `base64`"))
                .with_hint("send a text file as `text` and any other file as `base64`"));
        }
    };
    if content.len() > max_bytes {
        let limit = display_size(max_bytes);
        return Err(refused(format!("`{name}` is larger than {limit}"))
            .with_hint("send a smaller file, or split it"));
    }
    *total += content.len();
    if *total > MAX_TOTAL_BYTES {
        let limit = display_size(MAX_TOTAL_BYTES);
        return Err(refused(format!("the files are larger than {limit} together"))
            .with_hint("send fewer or smaller files"));
    }
    Ok(content)
}

fn display_size(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}

fn refused(message: String) -> CliError {
    CliError::usage(message).with_code(ErrorCode::BadFile)
}

#[cfg(test)]
#[path = "request_files_tests.rs"]
mod tests;
