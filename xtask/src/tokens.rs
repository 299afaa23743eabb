//! Rust source as a flat list of tokens, so that rules do not mistake a comment or a string for
//! code.

use anyhow::{Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

/// One token that matters to a rule; literals are left out, and with them comments and docs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// An identifier, keyword, punctuation character or bracket.
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The tokens of a Rust file in order, those inside macros included.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>> {
    let stream: TokenStream =
        source.parse().map_err(|error| anyhow!("cannot read as Rust: {error}"))?;
    let mut flat = Vec::new();
    flatten(stream, &mut flat);
    Ok(flat)
}

fn flatten(stream: TokenStream, flat: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Ident(ident) => flat.push(Token { text: ident.to_string(), line }),
            TokenTree::Punct(punct) => flat.push(Token { text: punct.as_char().to_string(), line }),
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                flat.push(Token { text: open.to_owned(), line });
                flatten(group.stream(), flat);
                flat.push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
        }
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
