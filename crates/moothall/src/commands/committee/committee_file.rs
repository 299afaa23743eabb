//! Reads a committee from TOML, reporting all mistakes, and writes it with comments.

use std::fmt::Write as _;
use std::path::Path;

use moothall_core::TextKind;
use moothall_core::consult::committee::{
    CommitteeMember, InferenceAgents, InvalidCommittee, ScoreMetric, TOP_LEVEL,
};
use moothall_core::consult::{ChanceLevel, Committee, ControlPlan, VerdictPlan};
use moothall_core::model::ModelList;
use toml::Value;
use toml::de::{DeTable, DeValue};

use super::committee_folder;
use crate::config::{ConfigProblem, line_of, nearest};
use crate::error::CliError;
use crate::files;

const MAX_FILE_BYTES: u64 = 256 * 1024;

const HEAD: &str = "\
# A committee: analysts propose moves, the critic attacks them, decision makers defend and then score
# them. Use it with `moothall consult TICKER --committee FILE`, and check it with
# `moothall committee check FILE`. The file controls what models are told: read a file from somebody
# else before you use it.
";

/// The known keys of each table.
const KEYS: CommitteeKeys = CommitteeKeys {
    name: "",
    keys: &["name", "title", "rounds", "moves_per_analyst"],
    tables: &[
        CommitteeKeys { name: "analysts", keys: SEAT, tables: &[] },
        CommitteeKeys { name: "critic", keys: SEAT, tables: &[] },
        CommitteeKeys { name: "decision_makers", keys: SEAT, tables: &[] },
        CommitteeKeys { name: "panel", keys: SEAT, tables: &[] },
        CommitteeKeys {
            name: "verdict",
            keys: &["again", "rounds_again", "stop_at", "lead", "interval", "repeat", "forecasts"],
            tables: &[CommitteeKeys {
                name: "controls",
                keys: &["known_bad", "weakened"],
                tables: &[],
            }],
        },
        CommitteeKeys {
            name: "inference",
            keys: &[],
            tables: &[
                CommitteeKeys { name: "F1", keys: &["model"], tables: &[] },
                CommitteeKeys { name: "F2", keys: &["model"], tables: &[] },
            ],
        },
        CommitteeKeys { name: "prompts", keys: &[], tables: &[] },
        CommitteeKeys { name: "memo", keys: &[], tables: &[] },
        CommitteeKeys {
            name: "metrics",
            keys: &["id", "name", "asks"],
            tables: &[CommitteeKeys { name: "levels", keys: &["from", "means"], tables: &[] }],
        },
    ],
};
const SEAT: &[&str] = &["id", "name", "lens", "model"];

/// The keys of a table and its subtables.
struct CommitteeKeys {
    name: &'static str,
    keys: &'static [&'static str],
    tables: &'static [Self],
}

impl CommitteeKeys {
    fn known(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().copied().chain(self.tables.iter().map(|table| table.name))
    }
}

/// Reads a committee file or directory. All mistakes are returned together, with their lines.
///
/// Errors: the file cannot be read.
pub(crate) fn read(path: &Path) -> Result<Result<Committee, Vec<ConfigProblem>>, CliError> {
    if path.is_dir() {
        return committee_folder::read(path);
    }
    let unreadable = || CliError::usage("cannot read the committee file");
    let called = path.display().to_string();
    let text = files::read_text(path, &called, MAX_FILE_BYTES, unreadable)?;
    Ok(parse(&called, &text))
}

/// Reads a committee from text, with the same limit as a file.
///
/// Errors: the text is too long.
pub(crate) fn parse_text(
    name: &str,
    text: &str,
) -> Result<Result<Committee, Vec<ConfigProblem>>, CliError> {
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(CliError::usage(format!(
            "`{name}` is larger than {} KiB",
            MAX_FILE_BYTES >> 10
        ))
        .with_hint("shorten the descriptions of the members"));
    }
    Ok(parse(name, text))
}

/// `name` precedes the line number of each mistake.
pub(crate) fn parse(name: &str, text: &str) -> Result<Committee, Vec<ConfigProblem>> {
    let place = |offset: Option<usize>| match offset {
        Some(offset) => format!("{name}:{}", line_of(text, offset)),
        None => name.to_owned(),
    };
    let broken = |error: &toml::de::Error| {
        let detail = error.message().lines().next().unwrap_or("invalid TOML");
        ConfigProblem::new(format!("{}: {detail}", place(error.span().map(|span| span.start))))
    };
    let table = DeTable::parse(text).map_err(|error| vec![broken(&error)])?;
    let mut problems = Vec::new();
    unknown_keys(&KEYS, table.get_ref(), &mut |key, offset, known| {
        let problem = ConfigProblem::new(format!("{}: unknown key `{key}`", place(Some(offset))));
        let hint = match nearest(known.iter().copied(), key) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("valid keys: {}", known.join(", ")),
        };
        problems.push((offset, problem.with_hint(hint)));
    });
    if !problems.is_empty() {
        problems.sort_by_key(|(offset, _)| *offset);
        return Err(problems.into_iter().map(|(_, problem)| problem).collect());
    }
    let mut committee: Committee = toml::from_str(text).map_err(|error| {
        let hint = "`moothall committee show` prints a complete example";
        vec![broken(&error).with_hint(hint)]
    })?;
    match committee.normalize_texts().and_then(|()| committee.validate()) {
        Ok(()) => Ok(committee),
        Err(error) => Err(vec![problem(name, &error)]),
    }
}

/// `name` is the file or directory.
pub(crate) fn problem(name: &str, error: &InvalidCommittee) -> ConfigProblem {
    let hint = match error {
        InvalidCommittee::OwnText { fault, .. } => fault.problem.hint(),
        _ => "`moothall committee show` prints a valid committee".to_owned(),
    };
    ConfigProblem::new(format!("{name}: {error}")).with_hint(hint)
}

/// Reports every unknown key with its offset and the keys that are valid there.
fn unknown_keys(
    keys: &CommitteeKeys,
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
        if below.known().next().is_none() {
            // The names of texts are checked with the texts.
            continue;
        }
        match value.get_ref() {
            DeValue::Table(table) => unknown_keys(below, table, report),
            DeValue::Array(items) => {
                for item in items {
                    if let DeValue::Table(table) = item.get_ref() {
                        unknown_keys(below, table, report);
                    }
                }
            }
            // Deserialization reports values of the wrong type.
            _ => {}
        }
    }
}

/// Renders a committee as a file for [`read`].
pub(crate) fn render(committee: &Committee) -> String {
    let mut text = HEAD.to_owned();
    let mut out = CommitteeWriter(&mut text);
    out.note("A short name.");
    out.pair("name", &committee.name);
    out.note("A one-line description.");
    out.pair("title", &committee.title);
    out.note("Rounds of each debate, from 1 to 20. A debate takes 1 + 3 + 6 × (rounds − 1) + 3");
    out.note_on("calls with three decision makers: 61 for ten rounds.");
    out.number("rounds", committee.rounds);
    out.note("Moves proposed by each analyst, from 1 to 5.");
    out.number("moves_per_analyst", committee.moves_per_analyst);
    out.section(
        "Analysts, who propose moves (1 to 8). An id is short and stable: letters, digits, - and _. The \
         lens\n# is copied into the prompt as written; a short decision rule works better than a \
         biography.\n# Every member may have its own model: model = \"provider/name\", or a list of models, each used when\n# the ones before it are unavailable.",
    );
    for seat in &committee.analysts {
        out.seat("[[analysts]]", seat);
    }
    out.section("The critic, who attacks every move.");
    out.seat("[critic]", &committee.critic);
    out.section("Decision makers, who defend a move and then score it (1 to 5), each in a separate conversation.");
    for seat in &committee.decision_makers {
        out.seat("[[decision_makers]]", seat);
    }
    if !committee.panel.is_empty() {
        out.section(
            "The blind panel (3 to 9 members). It scores cases and takes no part in the debates. Use \
             three or\n# more models that do not debate, so that its members err independently.",
        );
    }
    for seat in &committee.panel {
        out.seat("[[panel]]", seat);
    }
    if let Some(plan) = &committee.verdict {
        out.verdict(plan);
    }
    let InferenceAgents { f1, f2 } = &committee.inference;
    let agents = [("F1", f1), ("F2", f2)].into_iter();
    let agents: Vec<_> = agents.filter_map(|(id, agent)| Some((id, agent.as_ref()?))).collect();
    if !agents.is_empty() {
        out.section(
            "The inference agents, who read the evidence first: F1 the numbers, F2 the texts.",
        );
    }
    for (id, agent) in agents {
        let _ = writeln!(out.0, "\n[inference.{id}]");
        out.models(&agent.model);
    }
    out.section(&format!(
        "Metrics (1 to 8), each scored from 1 to {TOP_LEVEL} by each decision maker. Levels define what \
         a\n# score means, lowest first, starting at 1. Describe something observable, so that \
         two scorers\n# agree."
    ));
    for metric in &committee.metrics {
        out.metric(metric);
    }
    for (kind, texts) in [(TextKind::Prompt, &committee.prompts), (TextKind::Memo, &committee.memo)]
    {
        if !texts.is_empty() {
            out.section("Texts that replace built-in ones; see `moothall prompts list`.");
            let _ = writeln!(out.0, "\n[{}]", kind.folder());
        }
        texts.iter().for_each(|(name, text)| out.pair(name, text));
    }
    text
}

/// A probability as files write it: `0.9`.
fn fraction(level: ChanceLevel) -> String {
    let digits = format!("{:03}", level.thousandths() % 1_000);
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    format!("{}.{digits}", level.thousandths() / 1_000)
}

/// Writing to a String cannot fail.
struct CommitteeWriter<'a>(&'a mut String);

impl CommitteeWriter<'_> {
    fn note(&mut self, comment: &str) {
        let _ = writeln!(self.0, "\n# {comment}");
    }

    fn note_on(&mut self, comment: &str) {
        let _ = writeln!(self.0, "# {comment}");
    }

    fn section(&mut self, comment: &str) {
        let _ = writeln!(self.0, "\n\n# {comment}");
    }

    fn number(&mut self, key: &str, number: u32) {
        let _ = writeln!(self.0, "{key} = {number}");
    }

    fn pair(&mut self, key: &str, text: &str) {
        let _ = writeln!(self.0, "{key} = {}", Value::from(text));
    }

    fn models(&mut self, models: &ModelList) {
        let value = match models.fallbacks() {
            [] => Value::from(models.first().to_string()),
            _ => Value::from(models.iter().map(ToString::to_string).collect::<Vec<_>>()),
        };
        let _ = writeln!(self.0, "model = {value}");
    }

    fn seat(&mut self, head: &str, seat: &CommitteeMember) {
        let _ = writeln!(self.0, "\n{head}");
        self.pair("id", &seat.id);
        self.pair("name", &seat.name);
        self.pair("lens", &seat.lens);
        if let Some(model) = &seat.model {
            self.models(model);
        }
    }

    fn verdict(&mut self, plan: &VerdictPlan) {
        self.section("How the verdict is reached: see `moothall consult --help` for `--verdict`.");
        let _ = writeln!(self.0, "\n[verdict]");
        self.note_on(
            "The best so many moves are debated again, stage by stage; [] for no repeats.",
        );
        let _ = writeln!(self.0, "again = {:?}", plan.again);
        self.number("rounds_again", plan.rounds_again);
        self.note_on("The repeats end when the lead has at most so many moves.");
        self.number("stop_at", plan.stop_at);
        self.note_on("The lead contains the best move, and an interval the true value, with these");
        self.note_on("probabilities.");
        let _ = writeln!(self.0, "lead = {}", fraction(plan.lead));
        let _ = writeln!(self.0, "interval = {}", fraction(plan.interval));
        let ControlPlan { known_bad, weakened } = plan.controls;
        let _ = writeln!(self.0, "controls = {{ known_bad = {known_bad}, weakened = {weakened} }}");
        if plan.repeat > 1 {
            self.note_on("Debates and panel happen so often, to see how well verdicts agree.");
            self.number("repeat", plan.repeat);
        }
        if let Some(forecasts) = plan.forecasts {
            self.note_on("Whether members also state chances about the next filings.");
            let _ = writeln!(self.0, "forecasts = {forecasts}");
        }
    }

    fn metric(&mut self, metric: &ScoreMetric) {
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
#[path = "committee_file_tests.rs"]
mod tests;
