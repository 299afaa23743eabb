//! Detects programs that make up missing input data.

use std::collections::BTreeSet;

use super::task_files::{FileRole, asks_for_made_up_data, file_name, mentions};
use super::{AttemptContext, listed};
use crate::program::python::{FileAccess, FileUse, PythonCall, PythonToken, base_name};
use crate::{FindingSeverity, RunFinding};

/// Word prefixes that programs use for made-up data.
const MADE_UP_DATA_PREFIXES: [&str; 8] =
    ["sample", "dummy", "mock", "fake", "placeholder", "simulat", "hypothetical", "synthetic"];

/// A statement with at least this many literals looks like data.
const DATA_TOKENS: usize = 4;

/// The maximum number of file names taken from one attempt's errors.
const MAX_MISSING_FILES: usize = 20;

/// If a file that the task reads was not given, a program that exits with 0 cannot have solved the
/// task: it made the content up or ignored that the file is missing.
pub(crate) fn inputs(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    if !attempt.execution.exit.is_zero() {
        return missing_input_findings(attempt);
    }
    if asks_for_made_up_data(attempt.task) {
        return Vec::new();
    }
    let program = DataUsage::of(attempt);
    let named = mentions(attempt.task);
    let mut findings = Vec::new();
    for mention in &named {
        let name = mention.name.as_str();
        let is_left = attempt.execution.files.keys().any(|path| is_named(path.as_str(), name));
        if is_given(attempt, name)
            || mention.role == FileRole::Output
            || program.quotes(attempt.task, name)
        {
            continue;
        }
        if mention.role == FileRole::Unsaid && is_left {
            continue;
        }
        // A program that opens no files and contains no data only uses the name as text.
        let is_a_word = program.looks_for(name) && !program.opens_files && !program.holds_data;
        let is_sure = (mention.role == FileRole::Input && !is_a_word)
            || program.writes(name)
            || program.invents
            || was_missed(attempt, name);
        findings.extend(if program.reads_another_input(attempt, name) || !is_sure {
            Some(missing(attempt, FindingSeverity::Warn, name))
        } else if program.looks_for(name) && !program.writes(name) && !program.holds_data {
            Some(missing(attempt, FindingSeverity::Block, name))
        } else {
            Some(fabricated(attempt, &program, name))
        });
    }
    let only_missed = attempt.missed.iter().map(|path| base_name(path)).filter(|name| {
        named.iter().all(|mention| !mention.name.eq_ignore_ascii_case(name))
            && !is_given(attempt, name)
            && !attempt.execution.files.keys().any(|path| is_named(path.as_str(), name))
    });
    for name in only_missed {
        if program.writes(name) || program.invents {
            findings.push(fabricated(attempt, &program, name));
        }
    }
    findings
}

/// Files an attempt did not find: named in its error output, not opened for writing, and not given.
pub(crate) fn missed_files(attempt: &AttemptContext<'_>) -> BTreeSet<String> {
    let uses = attempt.source.file_uses();
    let is_written =
        |path: &str| uses.iter().any(|used| used.how == FileAccess::Write && used.path == path);
    let execution = attempt.execution;
    [&execution.stderr.text, &execution.stdout.text]
        .into_iter()
        .flat_map(|text| not_found(text))
        .filter(|path| {
            let below = path.strip_prefix("/workspace/").unwrap_or(path);
            file_name(path).is_some()
                && !below.starts_with("out/")
                && !path.starts_with("/tmp/")
                && !is_written(path)
                && !is_given(attempt, base_name(path))
        })
        .take(MAX_MISSING_FILES)
        .map(|path| path.chars().take(200).collect())
        .collect()
}

/// The paths in `No such file or directory: 'users.json'`.
fn not_found(text: &str) -> impl Iterator<Item = &str> {
    text.split("No such file or directory: ").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        rest[1..].split(['\n', quote]).next()
    })
}

/// A failed program that did not find a file: tells the user which file to provide.
fn missing_input_findings(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let missed = missed_files(attempt);
    if missed.is_empty() {
        return Vec::new();
    }
    let names = listed(missed.iter().map(|path| base_name(path)));
    let message = format!("the program looks for {names}, which was not given");
    vec![attempt.finding("input.missing", FindingSeverity::Warn, &message)]
}

fn missing(attempt: &AttemptContext<'_>, severity: FindingSeverity, name: &str) -> RunFinding {
    let message =
        format!("the task names `{name}`, which was not given, and the program ended with 0");
    attempt.finding("input.missing", severity, &message)
}

fn fabricated(attempt: &AttemptContext<'_>, program: &DataUsage, name: &str) -> RunFinding {
    let how = if program.writes(name) { "writes it itself" } else { "makes its content up" };
    let message = format!("`{name}` was not given, and the program {how}");
    let mut finding = attempt.finding("input.fabricated", FindingSeverity::Block, &message);
    finding.evidence.extend(program.evidence.iter().cloned());
    finding
}

fn is_named(path: &str, name: &str) -> bool {
    base_name(path).eq_ignore_ascii_case(name)
}

/// Whether a file of this name is an input or a required output.
fn is_given(attempt: &AttemptContext<'_>, name: &str) -> bool {
    let mut given = attempt.inputs.keys().chain(&attempt.contract.outputs);
    given.any(|path| is_named(path.as_str(), name))
}

fn was_missed(attempt: &AttemptContext<'_>, name: &str) -> bool {
    attempt.missed.iter().any(|path| is_named(path, name))
}

/// How a program handles data, as far as its source shows.
struct DataUsage {
    uses: Vec<FileUse>,
    texts: Vec<String>,
    /// A comment or name says that data is made up.
    invents: bool,
    /// The source contains something that looks like data.
    holds_data: bool,
    /// It opens or looks for any files.
    opens_files: bool,
    evidence: Vec<String>,
}

impl DataUsage {
    fn of(attempt: &AttemptContext<'_>) -> Self {
        let source = attempt.source;
        let mut evidence = Vec::new();
        let is_invented = |word: &str| {
            let word = word.to_lowercase();
            MADE_UP_DATA_PREFIXES.iter().any(|beginning| {
                word.split(|c: char| !c.is_alphanumeric()).any(|part| part.starts_with(beginning))
            })
        };
        let comment = source.comments.iter().find(|comment| is_invented(comment));
        evidence.extend(comment.map(|comment| format!("comment: {}", clip(comment))));
        // `random.sample` is a function and does not mean made-up data.
        let confesses = source
            .lines
            .iter()
            .find(|line| line.names().any(|name| name != "sample" && is_invented(name)));
        evidence.extend(confesses.map(|line| format!("line {}", line.number)));
        let invents = comment.is_some() || confesses.is_some();
        let data = source.lines.iter().find(|line| {
            let mut literals = line
                .tokens
                .iter()
                .filter(|token| matches!(token, PythonToken::Text(_) | PythonToken::Number(_)));
            let in_brackets = line.tokens.iter().any(|token| token.is("[") || token.is("{"));
            (in_brackets && literals.nth(DATA_TOKENS - 1).is_some())
                || (line.tokens.len() > 1
                    && line.texts().any(|text| text.trim().lines().count() > 2))
        });
        evidence.extend(data.map(|line| format!("line {}: data in the program", line.number)));
        evidence.dedup();
        Self {
            uses: source.file_uses(),
            texts: source.lines.iter().flat_map(|line| line.texts()).map(str::to_owned).collect(),
            invents,
            holds_data: invents || data.is_some(),
            opens_files: source
                .lines
                .iter()
                .any(|line| source.calls(line).iter().any(|call| opens_files(call))),
            evidence,
        }
    }

    fn writes(&self, name: &str) -> bool {
        self.uses.iter().any(|used| used.how == FileAccess::Write && is_named(&used.path, name))
    }

    fn looks_for(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.texts.iter().any(|text| text.to_lowercase().contains(&name))
    }

    /// Whether it uses a passage of the task that contains the name as text, not a file.
    fn quotes(&self, task: &str, name: &str) -> bool {
        self.texts.iter().map(|text| text.trim()).any(|text| {
            text.contains(name) && text.contains(char::is_whitespace) && task.contains(text)
        })
    }

    /// The user may have named a file imprecisely: the program reads a given file of the same type.
    fn reads_another_input(&self, attempt: &AttemptContext<'_>, name: &str) -> bool {
        let kind = |name: &str| name.rsplit('.').next().unwrap_or("").to_lowercase();
        let same_kind = || attempt.inputs.keys().filter(|path| kind(path.as_str()) == kind(name));
        let names_one = || same_kind().any(|path| self.looks_for(base_name(path.as_str())));
        let looks_around = || {
            let is_folder = |text: &String| text.trim_end_matches('/') == "/inputs";
            same_kind().next().is_some() && self.texts.iter().any(is_folder)
        };
        names_one() || looks_around()
    }
}

fn opens_files(call: &PythonCall<'_, '_>) -> bool {
    const NAMES: [&str; 10] = [
        "open",
        "read_text",
        "read_bytes",
        "loadtxt",
        "genfromtxt",
        "connect",
        "exists",
        "is_file",
        "ZipFile",
        "parse",
    ];
    NAMES.contains(&call.name()) || call.path.starts_with("pandas.read_")
}

fn clip(text: &str) -> String {
    text.chars().take(120).collect()
}
