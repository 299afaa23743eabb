//! Which files a program reads and writes, as far as their names are written out.

use std::collections::BTreeMap;

use super::{Call, Source, Token};

/// The most text that is put together for one path or constant.
const MAX_PATH_BYTES: usize = 1000;

/// One use of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The path as far as it is written out.
    pub path: String,
    /// What is done with it.
    pub how: How,
    /// The line.
    pub line: usize,
}

impl FileUse {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        base_name(&self.path)
    }
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is only read.
    Read,
    /// It is written, changed, moved or removed.
    Write,
}

pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Source<'_> {
    /// All uses of files that can be seen.
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

    fn uses(&self, call: &Call<'_, '_>) -> Vec<(String, How)> {
        let argument = |place: usize, name: &str, how: How| {
            let path = call.argument(place, name).and_then(|found| self.path_in(found.tokens));
            path.map(|path| (path, how))
        };
        let receiver = |how: How| self.receiver_path(call).map(|path| (path, how));
        let found = match (call.path.as_str(), call.name()) {
            ("open" | "io.open" | "codecs.open" | "gzip.open" | "bz2.open" | "lzma.open", _)
            | ("zipfile.ZipFile" | "tarfile.open", _) => [argument(0, "file", mode(call, 1)), None],
            (
                "os.remove" | "os.unlink" | "os.chmod" | "os.truncate" | "os.rmdir" | "os.utime",
                _,
            )
            | ("shutil.rmtree" | "numpy.save" | "numpy.savetxt" | "numpy.savez", _)
            | ("sqlite3.connect" | "shelve.open" | "dbm.open", _) => {
                [argument(0, "path", How::Write), None]
            }
            ("os.rename" | "os.replace" | "shutil.move", _) => {
                [argument(0, "src", How::Write), argument(1, "dst", How::Write)]
            }
            ("os.symlink" | "os.link", _) => [argument(1, "dst", How::Write), None],
            ("shutil.copy" | "shutil.copy2" | "shutil.copyfile" | "shutil.copytree", _) => {
                [argument(0, "src", How::Read), argument(1, "dst", How::Write)]
            }
            ("numpy.load" | "numpy.loadtxt" | "numpy.genfromtxt", _)
            | ("xml.etree.ElementTree.parse", _) => [argument(0, "fname", How::Read), None],
            (path, _) if path.starts_with("pandas.read_") => {
                [argument(0, "filepath_or_buffer", How::Read), None]
            }
            (_, "open") => [receiver(mode(call, 0)), None],
            (_, "read_text" | "read_bytes") => [receiver(How::Read), None],
            (_, "write_text" | "write_bytes" | "touch" | "unlink" | "chmod" | "symlink_to") => {
                [receiver(How::Write), None]
            }
            (_, "savefig" | "save") => [argument(0, "fname", How::Write), None],
            (_, "to_csv" | "to_json" | "to_excel" | "to_parquet" | "to_html" | "to_pickle") => {
                [argument(0, "path_or_buf", How::Write), None]
            }
            _ => [None, None],
        };
        found.into_iter().flatten().collect()
    }

    /// The path whose method is called: `Path("a").open()`, `TARGET.write_text(…)`.
    fn receiver_path(&self, call: &Call<'_, '_>) -> Option<String> {
        match call.path.rsplit_once('.') {
            Some(("", _)) => self.path_in(call.receiver),
            Some((name, _)) => self.constants.get(name).cloned(),
            None => None,
        }
    }

    /// The strings and fixed names of an expression, joined as paths are: `os.path.join("a", "b")`
    /// and `Path("a") / "b"` are both `a/b`.
    fn path_in(&self, tokens: &[Token<'_>]) -> Option<String> {
        let mut path = String::new();
        for token in tokens {
            let part = match token {
                Token::Text(text) => self.with_constants(text),
                Token::Name("__file__") => "/workspace/main.py".to_owned(),
                Token::Name(name) => self.constants.get(name).cloned().unwrap_or_default(),
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

    /// `{FOLDER}/a` with the folder's name put in.
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

/// What an opening is for. A mode that is not written out counts as reading: what the sandbox
/// forbids, it forbids anyway.
fn mode(call: &Call<'_, '_>, place: usize) -> How {
    let mode = call.argument(place, "mode").and_then(|argument| argument.text());
    if mode.is_some_and(|mode| mode.contains(['w', 'a', 'x', '+'])) {
        How::Write
    } else {
        How::Read
    }
}

/// Names that are given a path or another text once and for all: `TARGET = Path("a") / "b"`.
pub(super) fn constants<'a>(source: &Source<'a>) -> BTreeMap<&'a str, String> {
    let mut known = Source { aliases: source.aliases.clone(), ..Source::default() };
    for line in &source.lines {
        let [Token::Name(name), equals, value @ ..] = line.tokens.as_slice() else { continue };
        let is_plain = value.iter().all(|token| match token {
            Token::Text(_) => true,
            Token::Name(name) => {
                matches!(*name, "Path" | "os" | "path" | "join" | "pathlib" | "__file__")
                    || known.constants.contains_key(name)
            }
            Token::Sign(sign) => matches!(*sign, "(" | ")" | "/" | "," | "." | "+"),
            Token::Number(_) => false,
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
