//! Keeps `moothall-core` and the crates below it free of I/O and nondeterminism: limits their
//! dependencies and what their sources may use.
//!
//! Dependencies are an allowlist, so adding one requires an explicit decision here. Clippy's
//! `disallowed-methods` in core checks resolved types, while this rule checks tokens; it also
//! covers `async`, `use` lines and whole modules.

use std::path::Path;

use anyhow::{Context, Result};

use super::{ProblemLevel, TidyProblem};
use crate::shell;
use crate::tokens::{RustToken, tokens};
use crate::tree::{SourceTree, is_test_file};

pub(crate) const ID: &str = "core-purity";

const CORE: &str = "moothall-core";
const MANIFEST: &str = "crates/moothall-core/Cargo.toml";
const SOURCES: &[&str] = &[
    "crates/moothall-core/src/",
    "crates/moothall-evidence/src/",
    "crates/moothall-gate/src/",
    "crates/moothall-types/src/",
];

/// Dependencies that core's manifest may list.
const DIRECT: &[&str] = &[
    "aho-corasick",
    "globset",
    "moothall-evidence",
    "moothall-gate",
    "moothall-types",
    "regex",
    "rust_decimal",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "similar",
    "thiserror",
    "toml",
    "ts-rs",
    "unicode-normalization",
];

/// Transitive dependencies: data structures, number formatting, hashing, text search, derive
/// macros.
const INDIRECT: &[&str] = &[
    "arrayvec",
    // Detects the compiler version in build scripts.
    "autocfg",
    "block-buffer",
    "bstr",
    "cfg-if",
    "const-oid",
    "cpufeatures",
    "crypto-common",
    "digest",
    "dyn-clone",
    "equivalent",
    "foldhash",
    "hashbrown",
    "hybrid-array",
    "indexmap",
    "itoa",
    // Only on ARM, where cpufeatures uses the C library to detect CPU features.
    "libc",
    "memchr",
    "num-traits",
    "proc-macro2",
    "quote",
    "ref-cast",
    "ref-cast-impl",
    "regex-automata",
    "regex-syntax",
    "schemars_derive",
    "serde_core",
    "serde_derive",
    "serde_derive_internals",
    "serde_spanned",
    "syn",
    "thiserror-impl",
    "tinyvec",
    "tinyvec_macros",
    "toml_datetime",
    "toml_parser",
    "toml_writer",
    // Derives TypeScript declarations for the web UI, which only tests write to files. Its macro
    // colours warnings with `termcolor`, which needs the Windows crates on Windows; none of these
    // crates are linked into the product.
    "termcolor",
    "ts-rs-macros",
    "winapi-util",
    "windows-link",
    "windows-sys",
    "typenum",
    "unicode-ident",
    "winnow",
    "zmij",
];

/// Modules of `std` that do I/O or read global state.
const FORBIDDEN_MODULES: &[&str] = &["env", "fs", "net", "os", "process", "thread"];

/// Identifiers that make a decision depend on more than its arguments.
const FORBIDDEN_IDENTIFIERS: &[(&str, &str)] = &[
    ("HashMap", "its iteration order is not deterministic: use BTreeMap"),
    ("HashSet", "its iteration order is not deterministic: use BTreeSet"),
    ("Instant", "take time as an argument"),
    ("SystemTime", "take time as an argument"),
    ("async", "return an `Effect` and let the engine await it"),
    ("unsafe", "core needs no unsafe code"),
];

/// A crate in core's dependency tree. Depth 1 is a dependency in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoreDependency {
    name: String,
    depth: usize,
}

/// Lists core's dependencies on all platforms.
///
/// Uses `cargo tree -p` and not `cargo metadata`, which enables every feature that any workspace
/// crate requests and so lists dependencies that core does not have.
pub(crate) fn dependencies(root: &Path) -> Result<Vec<CoreDependency>> {
    let printed = shell::read(
        root,
        &[
            "cargo",
            "tree",
            "--locked",
            "--package",
            CORE,
            "--edges",
            "normal,build",
            "--target",
            "all",
            "--prefix",
            "depth",
            "--format",
            "{p}",
            "--no-dedupe",
        ],
    )?;
    let mut found = parse(&printed)?;
    found.sort();
    found.dedup();
    Ok(found)
}

/// Parses lines such as `2cpufeatures v0.3.1`.
fn parse(printed: &str) -> Result<Vec<CoreDependency>> {
    let parse_line = |line: &str| {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (depth, package) = line.split_at(digits);
        let name = package.split_whitespace().next()?.to_owned();
        Some(CoreDependency { name, depth: depth.parse().ok()? })
    };
    printed
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| parse_line(line).with_context(|| format!("cannot read `{line}` of cargo tree")))
        .collect()
}

pub(crate) fn check_dependencies(dependencies: &[CoreDependency]) -> Vec<TidyProblem> {
    let forbidden = |dependency: &&CoreDependency| match dependency.depth {
        0 => false,
        1 => !DIRECT.contains(&dependency.name.as_str()),
        _ => {
            !DIRECT.contains(&dependency.name.as_str())
                && !INDIRECT.contains(&dependency.name.as_str())
        }
    };
    let mut names: Vec<_> =
        dependencies.iter().filter(forbidden).map(|dependency| &dependency.name).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| TidyProblem {
            path: MANIFEST.to_owned(),
            line: None,
            rule: ID,
            level: ProblemLevel::Fail,
            message: format!("`{CORE}` pulls in `{name}`, which is not on the allowlist"),
            hint: format!(
                "`cargo tree -p {CORE} -i {name}` shows which crate needs it; if it does no I/O, list it in xtask/src/tidy/core_purity.rs"
            ),
        })
        .collect()
}

pub(crate) fn check_sources(tree: &SourceTree) -> Vec<TidyProblem> {
    let sources = tree.rust().filter(|(path, _)| {
        SOURCES.iter().any(|prefix| path.starts_with(prefix)) && !is_test_file(path)
    });
    sources.flat_map(|(path, source)| check_source(path, source)).collect()
}

fn check_source(path: &str, source: &str) -> Vec<TidyProblem> {
    let problem = |line, message: String, hint: &str| TidyProblem {
        path: path.to_owned(),
        line,
        rule: ID,
        level: ProblemLevel::Fail,
        message,
        hint: hint.to_owned(),
    };
    let tokens = match tokens(source) {
        Ok(tokens) => tokens,
        Err(error) => return vec![problem(None, format!("{error:#}"), "fix the syntax error")],
    };
    let words = tokens.iter().filter_map(|token| {
        let (word, cure) = FORBIDDEN_IDENTIFIERS.iter().find(|(word, _)| *word == token.text)?;
        Some(problem(Some(token.line), format!("`{word}` in `{CORE}`"), cure))
    });
    let modules = std_modules(&tokens)
        .filter(|token| FORBIDDEN_MODULES.contains(&token.text.as_str()))
        .map(|token| {
            problem(
                Some(token.line),
                format!("`std::{}` in `{CORE}`", token.text),
                "return an `Effect` instead",
            )
        });
    let mut problems: Vec<_> = words.chain(modules).collect();
    problems.sort_by_key(|problem| problem.line);
    problems
}

/// The `fs` tokens of `std::fs` and of `use std::{cmp, fs::File}`.
fn std_modules(tokens: &[RustToken]) -> impl Iterator<Item = &RustToken> {
    tokens.windows(4).enumerate().flat_map(|(at, window)| match window {
        [std, colon, colon_again, next]
            if std.text == "std" && colon.text == ":" && colon_again.text == ":" =>
        {
            if next.text == "{" { first_of_each(&tokens[at + 4..]) } else { vec![next] }
        }
        _ => Vec::new(),
    })
}

/// The first token of each item in a brace group. `tokens` starts after the opening brace.
fn first_of_each(tokens: &[RustToken]) -> Vec<&RustToken> {
    let mut first_tokens = Vec::new();
    let mut depth = 0;
    let mut starts = true;
    for token in tokens {
        match token.text.as_str() {
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            "{" => depth += 1,
            "," if depth == 0 => {
                starts = true;
                continue;
            }
            _ if starts => first_tokens.push(token),
            _ => {}
        }
        starts = false;
    }
    first_tokens
}

#[cfg(test)]
#[path = "core_purity_tests.rs"]
mod tests;
