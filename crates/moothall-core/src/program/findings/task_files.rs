//! Finds the files a task names and whether they are read or written.
//!
//! Uses heuristics on English words. A model is deliberately not asked, because the task's text
//! could manipulate its answer.

/// A file named in a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMention {
    /// The last component of its path.
    pub(crate) name: String,
    /// Its role where it is first mentioned.
    pub(crate) role: FileRole,
}

/// How a file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRole {
    /// The program reads it.
    Input,
    /// The program writes it.
    Output,
    /// The task does not say.
    Unsaid,
}

/// Extensions of data files. Names with other extensions are usually modules, hosts or versions.
const DATA: [&str; 46] = [
    "avro", "bin", "bmp", "cfg", "conf", "csv", "dat", "db", "docx", "eml", "feather", "geojson",
    "gif", "gz", "h5", "hdf5", "htm", "html", "ics", "ini", "jpeg", "jpg", "json", "jsonl", "log",
    "md", "mp3", "ndjson", "npy", "npz", "parquet", "pdf", "pickle", "pkl", "png", "sql", "sqlite",
    "svg", "tar", "toml", "tsv", "txt", "wav", "xlsx", "xml", "zip",
];

const EXTRA_DATA_EXTENSIONS: [&str; 9] =
    ["bib", "sqlite3", "tif", "tiff", "vcf", "webp", "xls", "yaml", "yml"];

/// Extensions of image and plot files.
const IMAGE_EXTENSIONS: [&str; 10] =
    ["bmp", "gif", "html", "jpeg", "jpg", "pdf", "png", "svg", "tiff", "webp"];

/// Word prefixes after which a file is read.
const READ_PREFIXES: [&str; 34] = [
    "aggregat",
    "analys",
    "analyz",
    "averag",
    "compar",
    "comput",
    "content",
    "convert",
    "count",
    "extract",
    "fetch",
    "filter",
    "given",
    "group",
    "import",
    "inspect",
    "list",
    "load",
    "merg",
    "open",
    "pars",
    "process",
    "read",
    "scan",
    "search",
    "sort",
    "sum",
    "tak",
    "transform",
    "use",
    "using",
    "validat",
    "inside",
    "calculat",
];

/// Word prefixes after which a file is written.
const WRITE_PREFIXES: [&str; 17] = [
    "build", "creat", "dump", "emit", "export", "generat", "mak", "output", "produc", "put",
    "record", "sav", "stor", "writ", "wrote", "into", "export",
];

/// Word prefixes after which a picture is written and any other file is read.
const PLOT_PREFIXES: [&str; 4] = ["draw", "plot", "render", "visuali"];

/// Objects of "write" that mean the program itself, not data.
const PROGRAMS: [&str; 12] = [
    "app",
    "application",
    "class",
    "code",
    "function",
    "module",
    "program",
    "python",
    "script",
    "snippet",
    "solution",
    "tool",
];

/// Words between a preposition and the file name.
const FILLERS: [&str; 16] = [
    "a", "an", "the", "file", "files", "named", "called", "new", "csv", "json", "text", "output",
    "my", "our", "this", "database",
];

/// Phrases that ask for made-up data.
const MADE_UP_DATA_PHRASES: [&str; 13] = [
    "make up",
    "made-up",
    "made up",
    "invent",
    "dummy",
    "mock",
    "fake",
    "synthetic",
    "create it",
    "creating it",
    "generate it",
    "if it does not exist",
    "if it doesn't exist",
];

/// How many words before a name are considered.
const MAX_WORDS_BEFORE: usize = 14;

/// The files named in the task, without duplicates, in order of first mention.
pub(crate) fn mentions(task: &str) -> Vec<FileMention> {
    let words = words(task);
    let mut found: Vec<FileMention> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let Some(name) = word.and_then(file_name) else { continue };
        if found.iter().all(|mention| !mention.name.eq_ignore_ascii_case(name)) {
            let role = role(&words[..index], name);
            found.push(FileMention { name: name.to_owned(), role });
        }
    }
    found
}

/// Whether the task asks for made-up data.
pub(crate) fn asks_for_made_up_data(task: &str) -> bool {
    let task = task.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| task.contains(word));
    has(&MADE_UP_DATA_PHRASES)
        || (has(&["sample data", "example data", "random data", "test data"])
            && has(&["creat", "generat", "make", "writ", "simulat"]))
}

/// The last component of a path if it is the name of a data file.
pub(crate) fn file_name(word: &str) -> Option<&str> {
    // The path of a URL is not a local file.
    if word.starts_with("//") {
        return None;
    }
    let name = word.rsplit('/').next()?;
    let (stem, kind) = name.rsplit_once('.')?;
    let kind = kind.to_lowercase();
    let is_data = DATA.contains(&kind.as_str()) || EXTRA_DATA_EXTENSIONS.contains(&kind.as_str());
    let is_name = stem.chars().any(char::is_alphanumeric) && !name.contains('*');
    (is_data && is_name).then_some(name)
}

/// The words of a text, with `None` at the end of each sentence.
fn words(text: &str) -> Vec<Option<&str>> {
    let belongs = |c: char| c.is_alphanumeric() || "_-./*+@#~".contains(c);
    let mut words = Vec::new();
    for piece in text.split(|c: char| !belongs(c) && !matches!(c, '!' | '?' | ';')) {
        for part in piece.split_inclusive(['!', '?', ';']) {
            let word = part.trim_end_matches(['!', '?', ';', '.', '-']);
            if !word.is_empty() {
                words.push(Some(word));
            }
            if part.ends_with(['!', '?', ';', '.']) {
                words.push(None);
            }
        }
    }
    words
}

fn role(before: &[Option<&str>], name: &str) -> FileRole {
    let sentence: Vec<String> = before
        .iter()
        .rev()
        .take_while(|word| word.is_some())
        .flatten()
        .take(MAX_WORDS_BEFORE)
        .map(|word| word.to_lowercase())
        .collect();
    let nearest = sentence.iter().find(|word| !FILLERS.contains(&word.as_str()));
    let begins = |word: &str, beginnings: &[&str]| {
        beginnings.iter().any(|beginning| word.starts_with(beginning))
    };
    let aims_at = nearest.is_some_and(|word| matches!(word.as_str(), "to" | "as" | "into"));
    if aims_at && !sentence.iter().any(|word| begins(word, &["compar", "append", "add", "accord"]))
    {
        return FileRole::Output;
    }
    for (back, word) in sentence.iter().enumerate() {
        let kind = name.rsplit('.').next().unwrap_or("").to_lowercase();
        if matches!(word.as_str(), "from" | "of") || begins(word, &READ_PREFIXES) {
            return FileRole::Input;
        }
        if begins(word, &PLOT_PREFIXES) {
            return if IMAGE_EXTENSIONS.contains(&kind.as_str()) {
                FileRole::Output
            } else {
                FileRole::Input
            };
        }
        // `sentence` is in reverse order, so following words have lower indices.
        let follows = &sentence[back.saturating_sub(4)..back];
        let of_a_program = follows.iter().any(|word| PROGRAMS.contains(&word.as_str()));
        if begins(word, &WRITE_PREFIXES) && !of_a_program {
            return FileRole::Output;
        }
    }
    FileRole::Unsaid
}

#[cfg(test)]
#[path = "task_files_tests.rs"]
mod tests;
