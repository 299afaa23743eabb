//! Splits Rust source into a flat list of tokens, so rules do not mistake a comment or a string for
//! code.

use anyhow::{Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

/// One token. Literals are left out, and with them comments and docs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RustToken {
    /// An identifier, keyword, punctuation character or bracket.
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The tokens of a Rust file in order, including those inside macros.
pub(crate) fn tokens(source: &str) -> Result<Vec<RustToken>> {
    let stream = parse(source)?;
    let mut flat = Vec::new();
    flatten(stream, &mut flat);
    Ok(flat)
}

/// Reads a Rust file.
pub(crate) fn parse(source: &str) -> Result<TokenStream> {
    source.parse().map_err(|error| anyhow!("cannot read as Rust: {error}"))
}

fn flatten(stream: TokenStream, flat: &mut Vec<RustToken>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Ident(ident) => flat.push(RustToken { text: ident.to_string(), line }),
            TokenTree::Punct(punct) => {
                flat.push(RustToken { text: punct.as_char().to_string(), line })
            }
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                flat.push(RustToken { text: open.to_owned(), line });
                flatten(group.stream(), flat);
                flat.push(RustToken {
                    text: close.to_owned(),
                    line: group.span_close().start().line,
                });
            }
        }
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
