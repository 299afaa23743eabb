//! What a program calls.

use super::{Line, Source, Token};

/// The most calls that are looked at in one statement. Nested calls share their words, so without
/// a bound a statement of nothing but brackets would take time in the square of its length.
const MAX_CALLS_A_LINE: usize = 300;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'t, 'a> {
    /// What is called, with the names of imports resolved: `os.path.join`. A method of something
    /// that is not a plain name begins with a dot: `.write_text`.
    pub path: String,
    /// What stands before a leading dot, such as `Path("a")`.
    pub receiver: &'t [Token<'a>],
    /// What it is given.
    pub args: Vec<Argument<'t, 'a>>,
}

impl<'t, 'a> Call<'t, 'a> {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// The argument of this name, or else the one at this place.
    pub fn argument(&self, place: usize, name: &str) -> Option<&Argument<'t, 'a>> {
        let named = self.args.iter().find(|argument| argument.name == Some(name));
        named.or_else(|| self.args.get(place).filter(|argument| argument.name.is_none()))
    }
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument<'t, 'a> {
    /// Its name, where it has one.
    pub name: Option<&'a str>,
    /// Its words.
    pub tokens: &'t [Token<'a>],
}

impl Argument<'_, '_> {
    /// Its text, where it is a string and nothing else.
    pub fn text(&self) -> Option<&str> {
        match self.tokens {
            [Token::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl<'a> Source<'a> {
    /// The calls of a line, from left to right.
    pub fn calls<'t>(&self, line: &'t Line<'a>) -> Vec<Call<'t, 'a>> {
        let tokens = line.tokens.as_slice();
        if line.starts_with("def") || line.starts_with("class") {
            return Vec::new();
        }
        let closing = closing(tokens);
        (0..tokens.len())
            .filter_map(|at| self.call_at(tokens, &closing, at))
            .take(MAX_CALLS_A_LINE)
            .collect()
    }

    fn call_at<'t>(
        &self,
        tokens: &'t [Token<'a>],
        closing: &[usize],
        open: usize,
    ) -> Option<Call<'t, 'a>> {
        if !tokens[open].is("(") {
            return None;
        }
        let mut names = Vec::new();
        let mut start = open;
        while let Some(Token::Name(name)) = start.checked_sub(1).map(|at| &tokens[at]) {
            names.push(*name);
            start -= 1;
            if start == 0 || !tokens[start - 1].is(".") {
                break;
            }
            start -= 1;
        }
        names.reverse();
        let first = *names.first()?;
        let is_method = tokens.get(start).is_some_and(|token| token.is("."));
        let (path, receiver) = if is_method {
            (
                format!(".{}", names.join(".")),
                &tokens[receiver_start(tokens, closing, start)..start],
            )
        } else {
            let known = self.aliases.get(first).map_or(first, String::as_str);
            names[0] = known;
            (names.join("."), &tokens[..0])
        };
        let end = closing.get(open).copied().unwrap_or(tokens.len()).min(tokens.len());
        Some(Call { path, receiver, args: arguments(&tokens[open + 1..end.max(open + 1)]) })
    }
}

/// For every opening bracket the place of its closing one, or the end.
fn closing(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut places = vec![tokens.len(); tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if is_opening(token) {
            open.push(at);
        } else if is_closing(token)
            && let Some(opening) = open.pop()
        {
            places[opening] = at;
            places[at] = opening;
        }
    }
    places
}

/// Where the thing begins whose method is called: `Path("a")` before the dot at `dot`.
fn receiver_start(tokens: &[Token<'_>], closing: &[usize], dot: usize) -> usize {
    let mut start = dot;
    while start > 0 {
        let before = &tokens[start - 1];
        start = match before {
            Token::Name(_) | Token::Text(_) => start - 1,
            sign if sign.is(".") => start - 1,
            sign if is_closing(sign) && closing[start - 1] < start => closing[start - 1],
            _ => break,
        };
        if start > 0
            && matches!(tokens[start], Token::Name(_) | Token::Text(_))
            && !tokens[start - 1].is(".")
        {
            break;
        }
    }
    start
}

fn arguments<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<Argument<'t, 'a>> {
    let mut depth = 0_usize;
    tokens
        .split(move |token| {
            if is_opening(token) {
                depth += 1;
            } else if is_closing(token) {
                depth = depth.saturating_sub(1);
            }
            depth == 0 && token.is(",")
        })
        .filter(|part| !part.is_empty())
        .map(|part| match part {
            [Token::Name(name), equals, rest @ ..] if equals.is("=") => {
                Argument { name: Some(*name), tokens: rest }
            }
            _ => Argument { name: None, tokens: part },
        })
        .collect()
}

fn is_opening(token: &Token<'_>) -> bool {
    matches!(token, Token::Sign("(" | "[" | "{"))
}

fn is_closing(token: &Token<'_>) -> bool {
    matches!(token, Token::Sign(")" | "]" | "}"))
}
