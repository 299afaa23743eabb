//! Imports of a program.

use std::collections::BTreeMap;

use super::{PythonSource, PythonStatement, PythonToken};

/// One imported module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonImport {
    /// The full name, such as `urllib.request`. For `from a import b` it is `a.b`, which may be a
    /// module or an item in it.
    pub module: String,
    /// The line number.
    pub line: usize,
    /// Whether it is inside a `try`, so the program may work without it.
    pub guarded: bool,
}

impl PythonImport {
    /// The part before the first dot.
    pub fn top(&self) -> &str {
        self.module.split('.').next().unwrap_or(&self.module)
    }

    /// Whether this is the module or an item in it.
    pub fn is_of(&self, module: &str) -> bool {
        self.module
            .strip_prefix(module)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl PythonSource<'_> {
    /// All imports, in order, including `__import__` and `importlib.import_module` with a literal
    /// name.
    pub fn imports(&self) -> Vec<PythonImport> {
        let mut found = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let guarded = self.enclosing_headers(index).any(|head| head.starts_with("try"));
            let import = |module| PythonImport { module, line: line.number, guarded };
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

/// The aliases defined by the imports of these lines.
pub(crate) fn aliases<'a>(lines: &[PythonStatement<'a>]) -> BTreeMap<&'a str, String> {
    lines.iter().flat_map(imported).filter_map(|(module, name)| Some((name?, module))).collect()
}

/// The modules a line imports, and the names they are bound to. `import a.b` binds `a`, which needs
/// no alias.
fn imported<'a>(line: &PythonStatement<'a>) -> Vec<(String, Option<&'a str>)> {
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
            // A relative import refers to the program's own files.
            if tokens.get(1).is_some_and(|token| token.is(".")) {
                return Vec::new();
            }
            let module = dotted(&tokens[1..at]);
            parts(&tokens[at + 1..])
                .filter_map(|part| {
                    let Some(PythonToken::Name(name)) = part.iter().find(|token| !token.is("("))
                    else {
                        return None;
                    };
                    Some((format!("{module}.{name}"), name_after_as(part).or(Some(*name))))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn parts<'t, 'a>(tokens: &'t [PythonToken<'a>]) -> impl Iterator<Item = &'t [PythonToken<'a>]> {
    tokens.split(|token| token.is(","))
}

/// `a . b as c` is `a.b`.
fn dotted(tokens: &[PythonToken<'_>]) -> String {
    tokens
        .iter()
        .take_while(|token| !token.is("as"))
        .filter_map(|token| match token {
            PythonToken::Name(text) => Some(*text),
            PythonToken::Sign(".") => Some("."),
            _ => None,
        })
        .collect()
}

fn name_after_as<'a>(tokens: &[PythonToken<'a>]) -> Option<&'a str> {
    let at = tokens.iter().position(|token| token.is("as"))?;
    match tokens.get(at + 1) {
        Some(PythonToken::Name(name)) => Some(*name),
        _ => None,
    }
}
