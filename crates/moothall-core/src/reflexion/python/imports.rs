//! What a program imports.

use std::collections::BTreeMap;

use super::{Line, Source, Token};

/// One imported module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Its full name, such as `urllib.request`. For `from a import b` that is `a.b`, which may be a
    /// module or something in it.
    pub module: String,
    /// The line.
    pub line: usize,
    /// Whether it stands in a `try`, so that the program may do without.
    pub guarded: bool,
}

impl Import {
    /// The part before the first dot.
    pub fn top(&self) -> &str {
        self.module.split('.').next().unwrap_or(&self.module)
    }

    /// Whether this is the module or something in it.
    pub fn is_of(&self, module: &str) -> bool {
        self.module
            .strip_prefix(module)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl Source<'_> {
    /// All imports, in order. Those by `__import__` and `importlib.import_module` count where the
    /// name is written out.
    pub fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let guarded = self.heads(index).any(|head| head.starts_with("try"));
            let import = |module| Import { module, line: line.number, guarded };
            found.extend(imported(line).into_iter().map(|(module, _)| import(module)));
            let calls = self.calls(line).into_iter().filter(|call| {
                matches!(call.path.as_str(), "__import__" | "importlib.import_module")
            });
            found.extend(
                calls.filter_map(|call| Some(import(call.args.first()?.text()?.to_owned()))),
            );
        }
        found
    }
}

/// What names stand for after the imports of these lines.
pub(super) fn aliases<'a>(lines: &[Line<'a>]) -> BTreeMap<&'a str, String> {
    lines.iter().flat_map(imported).filter_map(|(module, name)| Some((name?, module))).collect()
}

/// The modules that a line imports, and the names that stand for them afterwards. `import a.b`
/// makes `a` known, which needs no other name.
fn imported<'a>(line: &Line<'a>) -> Vec<(String, Option<&'a str>)> {
    let tokens = line.tokens.as_slice();
    match tokens.first() {
        Some(first) if first.is("import") => parts(&tokens[1..])
            .filter_map(|part| {
                let module = dotted(part);
                (!module.is_empty()).then(|| (module, name_after_as(part)))
            })
            .collect(),
        Some(first) if first.is("from") => {
            let Some(at) = tokens.iter().position(|token| token.is("import")) else {
                return Vec::new();
            };
            // A relative import is of the program's own files.
            if tokens.get(1).is_some_and(|token| token.is(".")) {
                return Vec::new();
            }
            let module = dotted(&tokens[1..at]);
            parts(&tokens[at + 1..])
                .filter_map(|part| {
                    let Some(Token::Name(name)) = part.iter().find(|token| !token.is("(")) else {
                        return None;
                    };
                    Some((format!("{module}.{name}"), name_after_as(part).or(Some(*name))))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn parts<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'t [Token<'a>]> {
    tokens.split(|token| token.is(","))
}

/// `a . b as c` is `a.b`.
fn dotted(tokens: &[Token<'_>]) -> String {
    tokens
        .iter()
        .take_while(|token| !token.is("as"))
        .filter_map(|token| match token {
            Token::Name(text) => Some(*text),
            Token::Sign(".") => Some("."),
            _ => None,
        })
        .collect()
}

fn name_after_as<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let at = tokens.iter().position(|token| token.is("as"))?;
    match tokens.get(at + 1) {
        Some(Token::Name(name)) => Some(*name),
        _ => None,
    }
}
