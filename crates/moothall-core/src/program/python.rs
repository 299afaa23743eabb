//! A lightweight Python tokenizer that tells code from strings and comments.
//!
//! Hand-written, because existing parsers add a hundred thousand lines and reject a program with
//! one wrong bracket, while the checks must work on every program, especially broken ones. They are
//! not the only safeguard: a program that evades them still runs in a sandbox, and its behavior
//! there is checked too.
//!
//! Reading always terminates, never fails and takes linear time.

mod calls;
mod files;
mod imports;
mod stdlib;

pub use self::calls::{CallArgument, PythonCall};
pub(crate) use self::files::base_name;
pub use self::files::{FileAccess, FileUse};
pub use self::imports::PythonImport;
pub use self::stdlib::is_standard;

use std::collections::BTreeMap;

/// A token of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PythonToken<'a> {
    /// A name or a keyword.
    Name(&'a str),
    /// A number as written.
    Number(&'a str),
    /// The content of a string, with escapes resolved.
    Text(String),
    /// Everything else.
    Sign(&'a str),
}

impl PythonToken<'_> {
    /// Whether it is this name or sign.
    pub fn is(&self, word: &str) -> bool {
        matches!(self, Self::Name(text) | Self::Sign(text) if *text == word)
    }
}

/// One statement, or the header of a compound statement. Statements that share a line, and a body
/// on the header's line, are separate entries; a statement that spans several lines is one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonStatement<'a> {
    /// The line number where it starts, from 1.
    pub number: usize,
    /// The indentation.
    pub indent: usize,
    /// The tokens.
    pub tokens: Vec<PythonToken<'a>>,
}

impl<'a> PythonStatement<'a> {
    /// Whether it starts with this keyword.
    pub fn starts_with(&self, keyword: &str) -> bool {
        self.tokens.first().is_some_and(|token| token.is(keyword))
    }

    /// The contents of its strings.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        texts(&self.tokens)
    }

    /// The names it contains.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.tokens.iter().filter_map(|token| match token {
            PythonToken::Name(name) => Some(*name),
            _ => None,
        })
    }
}

pub(crate) fn texts<'t>(tokens: &'t [PythonToken<'_>]) -> impl Iterator<Item = &'t str> {
    tokens.iter().filter_map(|token| match token {
        PythonToken::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

/// A tokenized program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PythonSource<'a> {
    /// The statements.
    pub lines: Vec<PythonStatement<'a>>,
    /// The comments, without `#`.
    pub comments: Vec<&'a str>,
    /// For each line, the index of its enclosing header.
    parents: Vec<Option<usize>>,
    /// Import aliases: `np` for `numpy`, `join` for `os.path.join`.
    aliases: BTreeMap<&'a str, String>,
    /// Names that are assigned a constant text.
    constants: BTreeMap<&'a str, String>,
}

impl<'a> PythonSource<'a> {
    /// Tokenizes a program.
    pub fn read(text: &'a str) -> Self {
        let mut reader = PythonTokenizer::new(text);
        reader.read();
        let parents = parents(&reader.lines);
        let mut source =
            Self { lines: reader.lines, comments: reader.comments, parents, ..Self::default() };
        source.aliases = imports::aliases(&source.lines);
        source.constants = files::constants(&source);
        source
    }

    /// The enclosing headers of line `index`, innermost first.
    pub fn enclosing_headers(&self, index: usize) -> impl Iterator<Item = &PythonStatement<'a>> {
        let parent = |index: usize| self.parents.get(index).copied().flatten();
        std::iter::successors(parent(index), move |index| parent(*index))
            .filter_map(|index| self.lines.get(index))
    }

    /// Whether two programs differ only in comments and whitespace within lines.
    pub fn is_equivalent_to(&self, other: &PythonSource<'_>) -> bool {
        self.lines.len() == other.lines.len()
            && self
                .lines
                .iter()
                .zip(&other.lines)
                .all(|(a, b)| a.indent == b.indent && a.tokens == b.tokens)
    }
}

/// Keywords of compound statements.
const COMPOUND_KEYWORDS: [&str; 13] = [
    "if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class",
    "async", "match",
];

fn parents(lines: &[PythonStatement<'_>]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            while open.last().is_some_and(|head| lines[*head].indent >= line.indent) {
                open.pop();
            }
            let parent = open.last().copied();
            if COMPOUND_KEYWORDS.iter().any(|head| line.starts_with(head)) {
                open.push(index);
            }
            parent
        })
        .collect()
}

struct PythonTokenizer<'a> {
    text: &'a str,
    at: usize,
    number: usize,
    lines: Vec<PythonStatement<'a>>,
    comments: Vec<&'a str>,
    line: Option<PythonStatement<'a>>,
    brackets: usize,
    /// The indentation of the next statement.
    indent: usize,
    at_line_start: bool,
}

impl<'a> PythonTokenizer<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            number: 1,
            lines: Vec::new(),
            comments: Vec::new(),
            line: None,
            brackets: 0,
            indent: 0,
            at_line_start: true,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn read(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            if self.at_line_start {
                self.at_line_start = false;
                self.indentation();
                continue;
            }
            match next {
                '\n' => {
                    self.at += 1;
                    self.number += 1;
                    if self.brackets == 0 {
                        self.end_statement();
                        self.at_line_start = true;
                    }
                }
                '#' => {
                    let comment = self.rest().split('\n').next().unwrap_or("");
                    self.comments.push(comment.trim_start_matches('#').trim());
                    self.at += comment.len();
                }
                '\\' => {
                    // Line continuation: skip the line break after the backslash.
                    self.at += 1;
                    let skipped = ["\r\n", "\n"].iter().find(|end| self.rest().starts_with(**end));
                    if let Some(end) = skipped {
                        self.at += end.len();
                        self.number += 1;
                    }
                }
                _ if next.is_whitespace() => self.at += next.len_utf8(),
                _ if self.string() => {}
                _ if next.is_alphabetic() || next == '_' => {
                    let word = self.take(|c| c.is_alphanumeric() || c == '_');
                    self.push(PythonToken::Name(word));
                }
                _ if next.is_ascii_digit() => {
                    let number = self.take(|c| c.is_alphanumeric() || matches!(c, '.' | '_'));
                    self.push(PythonToken::Number(number));
                }
                _ => self.sign(next),
            }
        }
        self.end_statement();
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn indentation(&mut self) {
        let mut column = 0;
        for c in self.rest().chars() {
            match c {
                ' ' => column += 1,
                '\t' => column = column / 8 * 8 + 8,
                '\u{feff}' | '\r' | '\u{c}' => {}
                _ => break,
            }
            self.at += c.len_utf8();
        }
        // Doubled, so a body on the header's line can be placed between the header and the
        // next line.
        self.indent = column * 2;
    }

    fn sign(&mut self, next: char) {
        let rest = self.rest();
        let pair = rest.get(..2).filter(|pair| {
            matches!(*pair, "->" | "**" | "//" | "<<" | ">>")
                || (pair.ends_with('=') && "=!<>:+-*/%&|^@".contains(next))
        });
        let sign = pair.unwrap_or_else(|| &rest[..next.len_utf8()]);
        self.at += sign.len();
        match sign {
            "(" | "[" | "{" => self.brackets += 1,
            ")" | "]" | "}" => self.brackets = self.brackets.saturating_sub(1),
            ";" if self.brackets == 0 => return self.end_statement(),
            _ => {}
        }
        self.push(PythonToken::Sign(sign));
        if sign == ":" && self.brackets == 0 && self.ends_header() {
            let indent = self.indent;
            self.end_statement();
            self.indent = indent + 1;
        }
    }

    /// Whether the colon just read ends a header. The colon of a lambda does not.
    fn ends_header(&self) -> bool {
        self.line.as_ref().is_some_and(|line| {
            COMPOUND_KEYWORDS.iter().any(|head| line.starts_with(head))
                && !line.names().any(|name| name == "lambda")
        })
    }

    fn push(&mut self, token: PythonToken<'a>) {
        let (number, indent) = (self.number, self.indent);
        self.line
            .get_or_insert_with(|| PythonStatement { number, indent, tokens: Vec::new() })
            .tokens
            .push(token);
    }

    fn end_statement(&mut self) {
        self.lines.extend(self.line.take());
    }

    /// Reads a string with its prefix, if one starts here.
    fn string(&mut self) -> bool {
        let rest = self.rest();
        let prefix = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(0);
        let quotes = &rest[prefix..];
        let known = |c: char| "rbfuRBFU".contains(c);
        if prefix > 2 || !rest[..prefix].chars().all(known) || !quotes.starts_with(['"', '\'']) {
            return false;
        }
        let raw = rest[..prefix].contains(['r', 'R']);
        let number = self.number;
        let quote = &quotes[..1];
        let triple = quotes
            .as_bytes()
            .get(..3)
            .is_some_and(|three| three.iter().all(|byte| *byte == quote.as_bytes()[0]));
        let end = if triple { &quotes[..3] } else { quote };
        let body = &quotes[end.len()..];
        let (length, closed) = string_length(body, end);
        let text = if raw { body[..length].to_owned() } else { unescape(&body[..length]) };
        let (indent, joins) = (self.indent, matches!(self.last(), Some(PythonToken::Text(_))));
        self.at += prefix + end.len() + length + if closed { end.len() } else { 0 };
        self.number += body[..length].matches('\n').count();
        match (&mut self.line, joins) {
            // Adjacent strings are concatenated.
            (Some(line), true) => {
                if let Some(PythonToken::Text(before)) = line.tokens.last_mut() {
                    before.push_str(&text);
                }
            }
            (Some(line), false) => line.tokens.push(PythonToken::Text(text)),
            (none, _) => {
                *none =
                    Some(PythonStatement { number, indent, tokens: vec![PythonToken::Text(text)] })
            }
        }
        true
    }

    fn last(&self) -> Option<&PythonToken<'a>> {
        self.line.as_ref().and_then(|line| line.tokens.last())
    }
}

/// The length of a string's content, and whether it is closed. An unclosed single-line string ends
/// at the line break.
fn string_length(body: &str, end: &str) -> (usize, bool) {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if body[at..].starts_with(end) {
            return (at, true);
        } else if c == '\n' && end.len() == 1 {
            return (at, false);
        }
    }
    (body.len(), false)
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else { break };
        rest = &rest[kind.len_utf8()..];
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        match kind {
            'n' => plain.push('\n'),
            't' => plain.push('\t'),
            'r' => plain.push('\r'),
            '\n' => {}
            '\\' | '\'' | '"' => plain.push(kind),
            _ => {
                let code = rest.get(..digits).filter(|_| digits > 0);
                let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
                match code.and_then(char::from_u32) {
                    Some(c) => {
                        plain.push(c);
                        rest = &rest[digits..];
                    }
                    None => plain.extend(['\\', kind]),
                }
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod tests;
