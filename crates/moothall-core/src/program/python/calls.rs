//! Function calls of a program.

use super::{PythonSource, PythonStatement, PythonToken};

/// The maximum number of calls examined per statement. Nested calls share tokens, so a statement of
/// nothing but brackets would otherwise take quadratic time.
const MAX_CALLS_PER_STATEMENT: usize = 300;

/// A function call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonCall<'t, 'a> {
    /// The called function, with import aliases resolved: `os.path.join`. A method of an expression
    /// that is not a plain name starts with a dot: `.write_text`.
    pub path: String,
    /// The expression before a leading dot, such as `Path("a")`.
    pub receiver: &'t [PythonToken<'a>],
    /// The arguments.
    pub args: Vec<CallArgument<'t, 'a>>,
}

impl<'t, 'a> PythonCall<'t, 'a> {
    /// The last component of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// The argument with this name, otherwise the one at this position.
    pub fn argument(&self, place: usize, name: &str) -> Option<&CallArgument<'t, 'a>> {
        let named = self.args.iter().find(|argument| argument.name == Some(name));
        named.or_else(|| self.args.get(place).filter(|argument| argument.name.is_none()))
    }
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallArgument<'t, 'a> {
    /// The keyword, if it has one.
    pub name: Option<&'a str>,
    /// The tokens of its value.
    pub tokens: &'t [PythonToken<'a>],
}

impl CallArgument<'_, '_> {
    /// The content, if it is a single string literal.
    pub fn text(&self) -> Option<&str> {
        match self.tokens {
            [PythonToken::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl<'a> PythonSource<'a> {
    /// The calls of a line, from left to right.
    pub fn calls<'t>(&self, line: &'t PythonStatement<'a>) -> Vec<PythonCall<'t, 'a>> {
        let tokens = line.tokens.as_slice();
        if line.starts_with("def") || line.starts_with("class") {
            return Vec::new();
        }
        let closing = closing(tokens);
        (0..tokens.len())
            .filter_map(|at| self.call_at(tokens, &closing, at))
            .take(MAX_CALLS_PER_STATEMENT)
            .collect()
    }

    fn call_at<'t>(
        &self,
        tokens: &'t [PythonToken<'a>],
        closing: &[usize],
        open: usize,
    ) -> Option<PythonCall<'t, 'a>> {
        if !tokens[open].is("(") {
            return None;
        }
        let mut names = Vec::new();
        let mut start = open;
        while let Some(PythonToken::Name(name)) = start.checked_sub(1).map(|at| &tokens[at]) {
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
        Some(PythonCall { path, receiver, args: arguments(&tokens[open + 1..end.max(open + 1)]) })
    }
}

/// For every bracket the index of its counterpart; the end if it is not closed.
fn closing(tokens: &[PythonToken<'_>]) -> Vec<usize> {
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

/// Where the receiver of a method call starts: `Path("a")` before the dot at `dot`.
fn receiver_start(tokens: &[PythonToken<'_>], closing: &[usize], dot: usize) -> usize {
    let mut start = dot;
    while start > 0 {
        let before = &tokens[start - 1];
        start = match before {
            PythonToken::Name(_) | PythonToken::Text(_) => start - 1,
            sign if sign.is(".") => start - 1,
            sign if is_closing(sign) && closing[start - 1] < start => closing[start - 1],
            _ => break,
        };
        if start > 0
            && matches!(tokens[start], PythonToken::Name(_) | PythonToken::Text(_))
            && !tokens[start - 1].is(".")
        {
            break;
        }
    }
    start
}

fn arguments<'t, 'a>(tokens: &'t [PythonToken<'a>]) -> Vec<CallArgument<'t, 'a>> {
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
            [PythonToken::Name(name), equals, rest @ ..] if equals.is("=") => {
                CallArgument { name: Some(*name), tokens: rest }
            }
            _ => CallArgument { name: None, tokens: part },
        })
        .collect()
}

fn is_opening(token: &PythonToken<'_>) -> bool {
    matches!(token, PythonToken::Sign("(" | "[" | "{"))
}

fn is_closing(token: &PythonToken<'_>) -> bool {
    matches!(token, PythonToken::Sign(")" | "]" | "}"))
}
