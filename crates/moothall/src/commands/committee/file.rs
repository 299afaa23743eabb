//! A committee as TOML: read with every mistake named, written with comments.

use std::fmt::Write as _;
use std::path::Path;

use moothall_core::consult::Committee;
use moothall_core::consult::committee::{Metric, Seat, TOP_LEVEL};
use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::config::{Problem, line_of, nearest};
use crate::error::CliError;
use crate::files;

/// The longest committee file.
const MAX_FILE_BYTES: u64 = 256 * 1024;

const HEAD: &str = "\
# A committee: analysts propose moves, the critic attacks them, decision makers defend and then score
# them. Use it with `moothall consult TICKER --committee FILE`; `moothall committee check FILE` says
# what is wrong with it. Whoever writes it decides what models are told: read it before you use one
# that somebody else wrote.
";

/// What each key means, by the table that it stands in.
const KEYS: Keys = Keys {
    name: "",
    keys: &["name", "title", "rounds", "moves_per_analyst"],
    tables: &[
        Keys { name: "analysts", keys: SEAT, tables: &[] },
        Keys { name: "critic", keys: SEAT, tables: &[] },
        Keys { name: "decision_makers", keys: SEAT, tables: &[] },
        Keys {
            name: "metrics",
            keys: &["id", "name", "asks"],
            tables: &[Keys { name: "levels", keys: &["from", "means"], tables: &[] }],
        },
    ],
};
const SEAT: &[&str] = &["id", "name", "lens"];

/// The keys of a table and the tables below it.
struct Keys {
    name: &'static str,
    keys: &'static [&'static str],
    tables: &'static [Self],
}

impl Keys {
    fn known(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().copied().chain(self.tables.iter().map(|table| table.name))
    }
}

/// Reads a committee file. What is wrong with it is a value: all of it at once, with its lines.
///
/// Errors: the file cannot be read at all.
pub(super) fn read(path: &Path) -> Result<Result<Committee, Vec<Problem>>, CliError> {
    let unreadable = || CliError::usage("the committee file cannot be read");
    let called = path.display().to_string();
    let text = files::read_text(path, &called, MAX_FILE_BYTES, unreadable)?;
    Ok(parse(&called, &text))
}

/// The committee in a text. `name` stands before the line of each mistake.
fn parse(name: &str, text: &str) -> Result<Committee, Vec<Problem>> {
    let place = |offset: Option<usize>| match offset {
        Some(offset) => format!("{name}:{}", line_of(text, offset)),
        None => name.to_owned(),
    };
    let broken = |error: &toml::de::Error| {
        let words = error.message().lines().next().unwrap_or("it is not TOML");
        Problem::new(format!("{}: {words}", place(error.span().map(|span| span.start))))
    };
    let table = DeTable::parse(text).map_err(|error| vec![broken(&error)])?;
    let mut problems = Vec::new();
    unknown_keys(&KEYS, table.get_ref(), &mut |key, offset, known| {
        let problem = Problem::new(format!("{}: unknown key `{key}`", place(Some(offset))));
        let hint = match nearest(known.iter().copied(), key) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys here are {}", known.join(", ")),
        };
        problems.push((offset, problem.with_hint(hint)));
    });
    if !problems.is_empty() {
        problems.sort_by_key(|(offset, _)| *offset);
        return Err(problems.into_iter().map(|(_, problem)| problem).collect());
    }
    let committee: Committee = toml::from_str(text).map_err(|error| {
        let hint = "`moothall committee show` prints a whole one";
        vec![broken(&error).with_hint(hint)]
    })?;
    match committee.validate() {
        Ok(()) => Ok(committee),
        Err(error) => Err(vec![
            Problem::new(format!("{name}: {error}"))
                .with_hint("`moothall committee show` prints one that can sit"),
        ]),
    }
}

/// Tells of every key that no table of this kind has: its name, its place, and those that there
/// are.
fn unknown_keys(
    keys: &Keys,
    table: &DeTable<'_>,
    report: &mut dyn FnMut(&str, usize, &[&'static str]),
) {
    for (name, value) in table {
        let key: &str = name.get_ref();
        if !keys.known().any(|known| known == key) {
            let known: Vec<&'static str> = keys.known().collect();
            report(key, name.span().start, &known);
            continue;
        }
        let Some(below) = keys.tables.iter().find(|below| below.name == key) else { continue };
        match value.get_ref() {
            DeValue::Table(table) => unknown_keys(below, table, report),
            DeValue::Array(items) => {
                for item in items {
                    if let DeValue::Table(table) = item.get_ref() {
                        unknown_keys(below, table, report);
                    }
                }
            }
            // A value of another kind is told by whoever reads it as a committee.
            _ => {}
        }
    }
}

/// A committee as the file that [`read`] reads.
pub(super) fn render(committee: &Committee) -> String {
    let mut text = HEAD.to_owned();
    let mut out = Writer(&mut text);
    out.note("A short name.");
    out.pair("name", &committee.name);
    out.note("What it is, in one line.");
    out.pair("title", &committee.title);
    out.note("Rounds of each debate, from 1 to 20. A debate takes 1 + 3 + 6 × (rounds − 1) + 3");
    out.note_on("calls with three decision makers: 61 for ten rounds.");
    out.number("rounds", committee.rounds);
    out.note("How many moves each analyst proposes, from 1 to 5.");
    out.number("moves_per_analyst", committee.moves_per_analyst);
    out.section(
        "Who proposes moves: from 1 to 8. The id is stable and short, letters, digits, - and _; the \
         lens goes\n# into the prompt as it stands. A short rule of judgement does more than a \
         biography.",
    );
    for seat in &committee.analysts {
        out.seat("[[analysts]]", seat);
    }
    out.section("Who attacks every move.");
    out.seat("[critic]", &committee.critic);
    out.section("Who defends a move and then scores it: from 1 to 5, each in a thread of its own.");
    for seat in &committee.decision_makers {
        out.seat("[[decision_makers]]", seat);
    }
    out.section(&format!(
        "What is scored, each from 1 to {TOP_LEVEL} by each decision maker: from 1 to 8. Levels say \
         what a\n# score means, lowest first and beginning at 1; say what can be observed, so that \
         two scorers\n# mean the same thing."
    ));
    for metric in &committee.metrics {
        out.metric(metric);
    }
    text
}

/// Writing to a String cannot fail.
struct Writer<'a>(&'a mut String);

impl Writer<'_> {
    fn note(&mut self, words: &str) {
        let _ = writeln!(self.0, "\n# {words}");
    }

    fn note_on(&mut self, words: &str) {
        let _ = writeln!(self.0, "# {words}");
    }

    fn section(&mut self, words: &str) {
        let _ = writeln!(self.0, "\n\n# {words}");
    }

    fn number(&mut self, key: &str, number: u32) {
        let _ = writeln!(self.0, "{key} = {number}");
    }

    fn pair(&mut self, key: &str, text: &str) {
        let _ = writeln!(self.0, "{key} = {}", Value::from(text));
    }

    fn seat(&mut self, head: &str, seat: &Seat) {
        let _ = writeln!(self.0, "\n{head}");
        self.pair("id", &seat.id);
        self.pair("name", &seat.name);
        self.pair("lens", &seat.lens);
    }

    fn metric(&mut self, metric: &Metric) {
        let _ = writeln!(self.0, "\n[[metrics]]");
        self.pair("id", &metric.id);
        self.pair("name", &metric.name);
        self.pair("asks", &metric.asks);
        let _ = writeln!(self.0, "levels = [");
        for level in &metric.levels {
            let means = Value::from(level.means.as_str());
            let _ = writeln!(self.0, "    {{ from = {}, means = {means} }},", level.from);
        }
        let _ = writeln!(self.0, "]");
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
