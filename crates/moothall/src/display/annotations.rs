//! Findings about places in text files, as code frames, SARIF 2.1.0 or workflow commands of GitHub.

use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use moothall_core::text::sanitize_line;
use serde_json::{Value, json};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnnotationLevel {
    Error,
    Warning,
    Note,
}

impl AnnotationLevel {
    fn sarif_name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    fn github_name(self) -> &'static str {
        match self {
            Self::Note => "notice",
            Self::Error | Self::Warning => self.sarif_name(),
        }
    }
}

/// One finding about a part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileAnnotation {
    /// The rule, such as `claims.wrong-value`.
    pub(crate) rule: String,
    pub(crate) level: AnnotationLevel,
    pub(crate) message: String,
    /// The place, in bytes of the file.
    pub(crate) span: Range<usize>,
}

/// A file, or one line of it, and the findings about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnotatedFile<'a> {
    pub(crate) path: &'a str,
    /// The text that spans refer to; empty if it must not be shown.
    pub(crate) text: &'a str,
    /// The number of the text's first line in the file, from 1. `None` if the findings are about
    /// the whole file.
    pub(crate) first_line: Option<usize>,
    pub(crate) annotations: &'a [FileAnnotation],
}

/// A place by line and column, both counted from 1. Columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl TextPosition {
    /// The position of a byte; the end of the text if the byte is beyond it.
    pub(crate) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        Self { line, column: before[start..].chars().count() + 1 }
    }
}

impl AnnotatedFile<'_> {
    /// The findings as code frames for a terminal of this width. Everything invisible in the file
    /// is replaced.
    pub(crate) fn code_frames(&self, width: usize) -> String {
        let path = sanitize_line(self.path);
        let renderer = Renderer::styled().term_width(width);
        let mut frames = String::new();
        for annotation in self.annotations {
            let level = match annotation.level {
                AnnotationLevel::Error => Level::ERROR,
                AnnotationLevel::Warning => Level::WARNING,
                AnnotationLevel::Note => Level::NOTE,
            };
            let title = level.primary_title(sanitize_line(&annotation.message));
            let frame = match self.region(annotation) {
                Some((from, _)) if !self.text.is_empty() => {
                    let (line, marked) = self.shown_line(&annotation.span);
                    let snippet = Snippet::source(line)
                        .path(path.as_str())
                        .line_start(from.line)
                        .annotation(AnnotationKind::Primary.span(marked));
                    title.element(snippet)
                }
                Some((from, _)) => title.element(Origin::path(path.as_str()).line(from.line)),
                None => title.element(Origin::path(path.as_str())),
            };
            frames.push_str(&renderer.render(&[frame]));
            frames.push_str("\n\n");
        }
        frames
    }

    /// Start and end of a finding in the file, or `None` if it is about the whole file.
    fn region(&self, annotation: &FileAnnotation) -> Option<(TextPosition, TextPosition)> {
        let before = self.first_line?.saturating_sub(1);
        let place = |byte| {
            let TextPosition { line, column } = TextPosition::of(self.text, byte);
            TextPosition { line: line + before, column }
        };
        Some((place(annotation.span.start), place(annotation.span.end)))
    }

    /// The line where the span starts, sanitized, and the part of it that the span covers.
    fn shown_line(&self, span: &Range<usize>) -> (String, Range<usize>) {
        let (before, rest) = self.text.split_at_checked(span.start).unwrap_or((self.text, ""));
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = before.len() + rest.find('\n').unwrap_or(rest.len());
        let mut line = sanitize_line(&before[start..]);
        let marked_from = line.len();
        let marked = self.text.get(span.start..span.end.min(end)).unwrap_or_default();
        line.push_str(&sanitize_line(marked));
        let marked_to = line.len();
        let rest = self.text.get(before.len() + marked.len()..end).unwrap_or_default();
        line.push_str(&sanitize_line(rest));
        (line, marked_from..marked_to)
    }

    fn sarif_result(&self, annotation: &FileAnnotation) -> Value {
        let mut place = json!({ "artifactLocation": { "uri": percent_encoded_path(self.path) } });
        if let Some((from, to)) = self.region(annotation) {
            place["region"] = json!({
                "startLine": from.line,
                "startColumn": from.column,
                "endLine": to.line,
                "endColumn": to.column,
            });
        }
        json!({
            "ruleId": annotation.rule,
            "level": annotation.level.sarif_name(),
            "message": { "text": annotation.message },
            "locations": [{ "physicalLocation": place }],
        })
    }
}

/// The findings about all files as one SARIF 2.1.0 document.
pub(crate) fn sarif(files: &[AnnotatedFile<'_>]) -> Value {
    let mut rules: Vec<&str> = Vec::new();
    let mut results = Vec::new();
    for file in files {
        rules.extend(file.annotations.iter().map(|annotation| annotation.rule.as_str()));
        results.extend(file.annotations.iter().map(|annotation| file.sarif_result(annotation)));
    }
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> = rules.into_iter().map(|id| json!({ "id": id })).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "moothall",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The findings as workflow commands, which GitHub shows beside the lines of a pull request.
pub(crate) fn github_commands(files: &[AnnotatedFile<'_>]) -> String {
    let mut commands = String::new();
    for file in files {
        for annotation in file.annotations {
            let place = file.region(annotation).map_or_else(String::new, |(from, to)| {
                let (line, end) = (from.line, to.line);
                format!(",line={line},col={},endLine={end},endColumn={}", from.column, to.column)
            });
            // Writing to a String cannot fail.
            let _ = writeln!(
                commands,
                "::{} file={}{place},title={}::{}",
                annotation.level.github_name(),
                escaped_property(file.path),
                escaped_property(&annotation.rule),
                escaped_data(&annotation.message),
            );
        }
    }
    commands
}

/// Escapes the message of a workflow command, so that it cannot start another command.
fn escaped_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escaped_property(text: &str) -> String {
    escaped_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A path as a relative URI reference.
fn percent_encoded_path(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            // Writing to a String cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
#[path = "annotations_tests.rs"]
mod tests;
