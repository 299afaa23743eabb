//! Files a program reads and writes, as far as their paths are literals.

use std::collections::BTreeMap;

use super::{PythonCall, PythonSource, PythonToken};

/// The maximum length of an evaluated path or constant.
const MAX_PATH_BYTES: usize = 1000;

/// One use of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The path, as far as it is literal.
    pub path: String,
    /// Whether it is read or written.
    pub how: FileAccess,
    /// The line number.
    pub line: usize,
}

impl FileUse {
    /// The last component of the path.
    pub fn name(&self) -> &str {
        base_name(&self.path)
    }
}

/// How a file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// It is only read.
    Read,
    /// It is written, changed, moved or removed.
    Write,
}

pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl PythonSource<'_> {
    /// All recognizable uses of files.
    pub fn file_uses(&self) -> Vec<FileUse> {
        let lines = self.lines.iter();
        lines
            .flat_map(|line| {
                let calls = self.calls(line);
                let uses = calls.iter().flat_map(|call| self.uses(call)).collect::<Vec<_>>();
                uses.into_iter().map(|(path, how)| FileUse { path, how, line: line.number })
            })
            .collect()
    }

    fn uses(&self, call: &PythonCall<'_, '_>) -> Vec<(String, FileAccess)> {
        let argument = |place: usize, name: &str, how: FileAccess| {
            let path = call.argument(place, name).and_then(|found| self.path_in(found.tokens));
            path.map(|path| (path, how))
        };
        let receiver = |how: FileAccess| self.receiver_path(call).map(|path| (path, how));
        let found = match (call.path.as_str(), call.name()) {
            ("open" | "io.open" | "codecs.open" | "gzip.open" | "bz2.open" | "lzma.open", _)
            | ("zipfile.ZipFile" | "tarfile.open", _) => [argument(0, "file", mode(call, 1)), None],
            (
                "os.remove" | "os.unlink" | "os.chmod" | "os.truncate" | "os.rmdir" | "os.utime",
                _,
            )
            | ("shutil.rmtree" | "numpy.save" | "numpy.savetxt" | "numpy.savez", _)
            | ("sqlite3.connect" | "shelve.open" | "dbm.open", _) => {
                [argument(0, "path", FileAccess::Write), None]
            }
            ("os.rename" | "os.replace" | "shutil.move", _) => {
                [argument(0, "src", FileAccess::Write), argument(1, "dst", FileAccess::Write)]
            }
            ("os.symlink" | "os.link", _) => [argument(1, "dst", FileAccess::Write), None],
            ("shutil.copy" | "shutil.copy2" | "shutil.copyfile" | "shutil.copytree", _) => {
                [argument(0, "src", FileAccess::Read), argument(1, "dst", FileAccess::Write)]
            }
            ("numpy.load" | "numpy.loadtxt" | "numpy.genfromtxt", _)
            | ("xml.etree.ElementTree.parse", _) => [argument(0, "fname", FileAccess::Read), None],
            (path, _) if path.starts_with("pandas.read_") => {
                [argument(0, "filepath_or_buffer", FileAccess::Read), None]
            }
            (_, "open") => [receiver(mode(call, 0)), None],
            (_, "read_text" | "read_bytes") => [receiver(FileAccess::Read), None],
            (_, "write_text" | "write_bytes" | "touch" | "unlink" | "chmod" | "symlink_to") => {
                [receiver(FileAccess::Write), None]
            }
            (_, "savefig" | "save") => [argument(0, "fname", FileAccess::Write), None],
            (_, "to_csv" | "to_json" | "to_excel" | "to_parquet" | "to_html" | "to_pickle") => {
                [argument(0, "path_or_buf", FileAccess::Write), None]
            }
            _ => [None, None],
        };
        found.into_iter().flatten().collect()
    }

    /// The path whose method is called: `Path("a").open()`, `TARGET.write_text(…)`.
    fn receiver_path(&self, call: &PythonCall<'_, '_>) -> Option<String> {
        match call.path.rsplit_once('.') {
            Some(("", _)) => self.path_in(call.receiver),
            Some((name, _)) => self.constants.get(name).cloned(),
            None => None,
        }
    }

    /// The strings and constants of an expression, joined as path components: `os.path.join("a",
    /// "b")` and `Path("a") / "b"` both give `a/b`.
    fn path_in(&self, tokens: &[PythonToken<'_>]) -> Option<String> {
        let mut path = String::new();
        for token in tokens {
            let part = match token {
                PythonToken::Text(text) => self.with_constants(text),
                PythonToken::Name("__file__") => "/workspace/main.py".to_owned(),
                PythonToken::Name(name) => self.constants.get(name).cloned().unwrap_or_default(),
                _ => continue,
            };
            if part.is_empty() || path.len() + part.len() > MAX_PATH_BYTES {
                continue;
            }
            if part.starts_with('/') {
                path.clear();
            } else if !path.is_empty() && !path.ends_with('/') {
                path.push('/');
            }
            path.push_str(&part);
        }
        (!path.is_empty()).then_some(path)
    }

    /// Replaces constants in a format string such as `{FOLDER}/a`.
    fn with_constants(&self, text: &str) -> String {
        let short = text.len() <= MAX_PATH_BYTES && text.contains('{');
        if !short {
            return text.to_owned();
        }
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            whole.push_str(before);
            match after.split_once('}') {
                Some((name, tail)) if self.constants.contains_key(name) => {
                    whole.push_str(self.constants.get(name).map_or("", String::as_str));
                    rest = tail;
                }
                _ => {
                    whole.push('{');
                    rest = after;
                }
            }
        }
        whole.push_str(rest);
        whole
    }
}

/// Whether a file is opened for reading or writing. A mode that is not a literal counts as reading;
/// the sandbox blocks forbidden writes in any case.
fn mode(call: &PythonCall<'_, '_>, place: usize) -> FileAccess {
    let mode = call.argument(place, "mode").and_then(|argument| argument.text());
    if mode.is_some_and(|mode| mode.contains(['w', 'a', 'x', '+'])) {
        FileAccess::Write
    } else {
        FileAccess::Read
    }
}

/// Names that are assigned a constant path or text: `TARGET = Path("a") / "b"`.
pub(crate) fn constants<'a>(source: &PythonSource<'a>) -> BTreeMap<&'a str, String> {
    let mut known = PythonSource { aliases: source.aliases.clone(), ..PythonSource::default() };
    for line in &source.lines {
        let [PythonToken::Name(name), equals, value @ ..] = line.tokens.as_slice() else {
            continue;
        };
        let is_plain = value.iter().all(|token| match token {
            PythonToken::Text(_) => true,
            PythonToken::Name(name) => {
                matches!(*name, "Path" | "os" | "path" | "join" | "pathlib" | "__file__")
                    || known.constants.contains_key(name)
            }
            PythonToken::Sign(sign) => matches!(*sign, "(" | ")" | "/" | "," | "." | "+"),
            PythonToken::Number(_) => false,
        });
        if equals.is("=")
            && is_plain
            && let Some(path) = known.path_in(value)
        {
            known.constants.insert(name, path);
        }
    }
    known.constants
}
