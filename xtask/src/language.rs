//! Measures how the tree names its types and how plainly it writes.
//!
//! Names are counted over structs, enums and traits outside tests. Prose is counted in Markdown (`docs`), Rust
//! comments (`comments`), string literals with a space outside tests (`strings`) and the TypeScript of the web UI
//! (`web`). Code spans and code blocks are not prose.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde::Deserialize;

use crate::tokens::{RustToken, parse, tokens};
use crate::tree::{SourceTree, is_test_file};

const SETTINGS: &str = include_str!("../language.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LanguageSettings {
    pub(crate) limits: BTreeMap<String, f64>,
    #[serde(rename = "phrase")]
    pub(crate) phrases: Vec<OddPhrase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OddPhrase {
    phrases: Vec<String>,
    /// The phrase is fine where this word follows, as in "is no longer".
    unless_before: Option<String>,
    pub(crate) write: String,
}

/// One odd phrase in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PhraseHit {
    pub(crate) path: String,
    pub(crate) phrase: String,
    pub(crate) write: String,
}

/// A measured value and, for prose, where it comes from.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) hits: Vec<PhraseHit>,
}

impl LanguageSettings {
    pub(crate) fn built_in() -> Result<Self> {
        toml::from_str(SETTINGS).context("cannot read xtask/language.toml")
    }

    /// All measurements of the tree, in the order of the settings file.
    pub(crate) fn measure(&self, tree: &SourceTree) -> Result<Vec<Measurement>> {
        let mut all = measure_names(tree)?;
        let phrases = self.phrases_by_first_word();
        for (name, texts) in prose(tree)? {
            let mut words = 0;
            let mut hits = Vec::new();
            for (path, text) in texts {
                let text = words_of(&text);
                words += text.iter().filter(|word| *word != BREAK).count();
                hits.extend(phrase_hits(&phrases, &path, &text));
            }
            all.push(Measurement { name, value: rate(hits.len(), words, 10_000.0), hits });
        }
        Ok(all)
    }

    /// The phrases by their first word, because nearly every word of the tree begins none.
    fn phrases_by_first_word(&self) -> BTreeMap<&str, Vec<(&str, &OddPhrase)>> {
        let mut phrases = BTreeMap::<&str, Vec<_>>::new();
        for entry in &self.phrases {
            for phrase in &entry.phrases {
                let first = phrase.split(' ').next().unwrap_or_default();
                phrases.entry(first).or_default().push((phrase.as_str(), entry));
            }
        }
        phrases
    }
}

fn phrase_hits(
    phrases: &BTreeMap<&str, Vec<(&str, &OddPhrase)>>,
    path: &str,
    words: &[String],
) -> Vec<PhraseHit> {
    let mut hits = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for (phrase, entry) in phrases.get(word.as_str()).into_iter().flatten() {
            let mut rest = words.iter().skip(at);
            let is_here =
                phrase.split(' ').all(|word| rest.next().is_some_and(|next| next == word));
            let next = rest.next();
            if is_here && (next.is_none() || next != entry.unless_before.as_ref()) {
                hits.push(PhraseHit {
                    path: path.to_owned(),
                    phrase: (*phrase).to_owned(),
                    write: entry.write.clone(),
                });
            }
        }
    }
    hits
}

#[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^52")]
fn rate(count: usize, of: usize, per: f64) -> f64 {
    if of == 0 { 0.0 } else { per * count as f64 / of as f64 }
}

fn is_product(path: &str) -> bool {
    let excluded = ["benches", "bench", "fuzz", "examples"];
    !is_test_file(path) && !path.split('/').any(|part| excluded.contains(&part))
}

fn measure_names(tree: &SourceTree) -> Result<Vec<Measurement>> {
    let mut names = BTreeMap::<String, usize>::new();
    let (mut supers, mut lines) = (0, 0);
    for (path, text) in tree.rust().filter(|(path, _)| is_product(path)) {
        let tokens = tokens(text).with_context(|| path.to_owned())?;
        for name in type_names(&tokens) {
            *names.entry(name.to_owned()).or_default() += 1;
        }
        supers += tokens.windows(3).filter(|window| is_pub_super(window)).count();
        lines += text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
    }
    let types: usize = names.values().sum();
    let repeated: usize = names.values().filter(|count| **count > 1).sum();
    let one_word: usize =
        names.iter().filter(|(name, _)| is_one_word(name)).map(|(_, count)| count).sum();
    let measurement = |name, value| Measurement { name, value, hits: Vec::new() };
    Ok(vec![
        measurement("repeated_type_names", rate(repeated, types, 100.0)),
        measurement("one_word_type_names", rate(one_word, types, 100.0)),
        measurement("pub_super", rate(supers, lines, 1_000.0)),
    ])
}

fn is_one_word(name: &str) -> bool {
    name.chars().filter(char::is_ascii_uppercase).count() == 1
}

fn is_pub_super(window: &[RustToken]) -> bool {
    window.iter().map(|token| token.text.as_str()).eq(["pub", "(", "super"])
}

fn type_names(tokens: &[RustToken]) -> impl Iterator<Item = &str> {
    let items = tokens.windows(2).filter_map(|pair| match pair {
        [keyword, name] if matches!(keyword.text.as_str(), "struct" | "enum" | "trait") => {
            Some(name.text.as_str())
        }
        _ => None,
    });
    items.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// String literals with a space, without doc comments, each with its line.
pub(crate) fn messages(source: &str) -> Result<Vec<(usize, String)>> {
    let mut found = Vec::new();
    collect_messages(parse(source)?, &mut found);
    Ok(found)
}

fn collect_messages(stream: TokenStream, found: &mut Vec<(usize, String)>) {
    for tree in stream {
        match tree {
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let inner = text.trim_start_matches(['r', '#']).trim_end_matches('#');
                if let Some(inner) =
                    inner.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'))
                    && inner.contains(' ')
                {
                    found.push((literal.span().start().line, inner.to_owned()));
                }
            }
            TokenTree::Group(group) => {
                let mut inside = group.stream().into_iter();
                let is_doc = group.delimiter() == Delimiter::Bracket
                    && matches!(inside.next(), Some(TokenTree::Ident(ident)) if ident == "doc");
                if !is_doc {
                    collect_messages(group.stream(), found);
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

type Texts = Vec<(String, String)>;

fn prose(tree: &SourceTree) -> Result<Vec<(&'static str, Texts)>> {
    let (mut docs, mut comments, mut strings, mut web) =
        (Texts::new(), Texts::new(), Texts::new(), Texts::new());
    for (path, text) in tree.texts() {
        if path.ends_with(".md") {
            docs.push((path.to_owned(), without_code(text)));
        } else if path.ends_with(".rs") {
            comments.push((path.to_owned(), without_code(&comments_of(text))));
            if is_product(path) {
                let found = messages(text).with_context(|| path.to_owned())?;
                let found: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
                strings.push((path.to_owned(), found.join("\n")));
            }
        } else if is_web_source(path) {
            web.push((path.to_owned(), text.to_owned()));
        }
    }
    Ok(vec![("docs", docs), ("comments", comments), ("strings", strings), ("web", web)])
}

fn is_web_source(path: &str) -> bool {
    path.starts_with("web/src/")
        && (path.ends_with(".ts") || path.ends_with(".tsx"))
        && !path.contains(".test.")
        && !path.contains("/gen/")
}

fn comments_of(source: &str) -> String {
    let mut found = String::new();
    for line in source.lines() {
        if let Some(comment) = line.trim_start().strip_prefix("//") {
            found.push_str(comment.trim_start_matches(['/', '!']));
            found.push('\n');
        }
    }
    found
}

/// The text without fenced blocks and code spans.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose.split('`').step_by(2).collect::<Vec<_>>().join(" x ")
}

const BREAK: &str = "|";

/// The words in lower case; punctuation between two words is [`BREAK`].
fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphabetic() || c == '\'' || c == '’' {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !c.is_whitespace() {
            words.push(BREAK.to_owned());
        }
    }
    words
}

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;
