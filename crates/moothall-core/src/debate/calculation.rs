//! Calculations of a debate: short programs that a speaker attaches to a turn, and their results.
//!
//! The host runs each program in a fresh sandbox with the facts as its only input. What comes back
//! is untrusted. Constants are listed from the text of the program, so no program can hide them.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::claims::{CalculatedValue, CitableCalculation};
use crate::evidence::{FactId, FactSheet};
use crate::program::python::{PythonSource, PythonToken};
use crate::sandbox::{
    ExecuteRequest, ExecutionExit, FileRef, IsolationClass, SandboxExecution, SandboxFailureKind,
    SandboxLimits,
};
use crate::text::one_line;
use crate::{EffectResult, Sha256Hex};

/// Limits of a program.
pub(crate) const MAX_CODE_LINES: usize = 60;
pub(crate) const MAX_CODE_BYTES: usize = 4 * 1024;
/// The maximum length of a purpose.
pub(crate) const MAX_PURPOSE_CHARS: usize = 200;

/// How many programs are run for one speaker, and in one debate. The critic is one speaker.
pub(crate) const MAX_PER_SPEAKER: usize = 2;
pub(crate) const MAX_PER_DEBATE: usize = 8;

/// Limits of what a program returns.
const MAX_OUTPUT_BYTES: usize = 4 * 1024;
const MAX_VALUES: usize = 16;
const MAX_FACTS: usize = 100;
const MAX_CONSTANTS: usize = 40;
const MAX_NAME_CHARS: usize = 60;
const MAX_UNIT_CHARS: usize = 20;
const MAX_ERROR_CHARS: usize = 240;

/// Numbers that are not assumptions: signs, halves, quarters, months, percentages, days. Powers of
/// ten are not listed either.
const PLAIN_NUMBERS: [u32; 7] = [0, 1, 2, 4, 12, 100, 365];

/// The image in which programs run.
pub const CALCULATION_IMAGE: &str = "python";

/// Files of an execution.
const LOADER: &str = include_str!("calculate.py");
const LOADER_FILE: &str = "calculate.py";
const CODE_FILE: &str = "calculation.py";
const FACTS_FILE: &str = "facts.json";

/// A program that a speaker attaches to a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalculationRequest {
    /// What it shows, in one sentence.
    pub purpose: String,
    /// The Python program.
    pub code: String,
}

impl CalculationRequest {
    /// Why the program is not run, if its text is not accepted.
    fn fault(&self) -> Option<&'static str> {
        if self.code.trim().is_empty() {
            Some("it has no code")
        } else if self.code.len() > MAX_CODE_BYTES {
            Some("it is longer than 4 KiB")
        } else if self.code.lines().count() > MAX_CODE_LINES {
            Some("it has more than 60 lines")
        } else {
            None
        }
    }
}

/// A calculation of a debate with what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CalculationResult {
    /// The evidence id: `X0:m7-D2-1`.
    pub id: String,
    /// `critic` or the id of a decision maker.
    pub speaker: String,
    /// The decision maker of the thread; `all` for the opening.
    pub thread: String,
    /// The round in which it was attached.
    pub round: u32,
    /// What it shows, as its author says.
    pub purpose: String,
    /// The program.
    pub code: String,
    /// The hash of the program.
    pub code_sha256: Sha256Hex,
    /// The facts that the program read, by id without `F0:`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<String>>"))]
    pub facts: Vec<String>,
    /// Numbers in the program that are assumptions of its author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<String>>"))]
    pub constants: Vec<String>,
    /// The values, or why there are none.
    pub outcome: CalculationOutcome,
}

/// How a calculation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CalculationOutcome {
    /// The program returned values.
    Values {
        /// In the order in which the program returned them.
        values: Vec<CalculatedValue>,
    },
    /// The program ran and returned no usable values.
    Failed {
        /// The reason that the program or the sandbox gave.
        why: String,
    },
    /// The program was not run.
    NotRun {
        /// The reason.
        why: String,
    },
}

impl CalculationResult {
    /// A calculation that has not been run.
    pub(crate) fn new(
        id: String,
        speaker: &str,
        thread: &str,
        round: u32,
        request: CalculationRequest,
    ) -> Self {
        let why = request.fault().unwrap_or_default().to_owned();
        let code = match request.code {
            long if long.len() > MAX_CODE_BYTES => {
                let end = long.floor_char_boundary(MAX_CODE_BYTES);
                long.get(..end).unwrap_or_default().to_owned()
            }
            code => code,
        };
        Self {
            id,
            speaker: speaker.to_owned(),
            thread: thread.to_owned(),
            round,
            purpose: one_line(&request.purpose, MAX_PURPOSE_CHARS),
            facts: Vec::new(),
            constants: assumed_constants(&code),
            code_sha256: Sha256Hex::of(code.as_bytes()),
            code,
            outcome: CalculationOutcome::NotRun { why },
        }
    }

    /// Whether the program can be run: its text is within the limits.
    pub(crate) fn is_runnable(&self) -> bool {
        matches!(&self.outcome, CalculationOutcome::NotRun { why } if why.is_empty())
    }

    /// The execution of the program with these facts.
    pub fn request(&self, facts: FileRef) -> ExecuteRequest {
        let sources = [(LOADER_FILE, LOADER), (CODE_FILE, self.code.as_str())];
        let path = |name: &str| name.parse().ok();
        ExecuteRequest {
            image: CALCULATION_IMAGE.to_owned(),
            sources: sources
                .into_iter()
                .filter_map(|(name, text)| Some((path(name)?, text.to_owned())))
                .collect(),
            inputs: path(FACTS_FILE).map(|path| (path, facts)).into_iter().collect(),
            argv: vec!["python3".to_owned(), LOADER_FILE.to_owned()],
            env: BTreeMap::new(),
            stdin: String::new(),
            limits: SandboxLimits {
                wall_ms: 5_000,
                cpu_seconds: 3,
                cpu_permille: 1_000,
                memory_bytes: 128 << 20,
                pids: 16,
                output_bytes: MAX_OUTPUT_BYTES as u64,
                file_bytes: 1 << 20,
                disk_bytes: 4 << 20,
                open_files: 64,
            },
            collect: false,
        }
    }

    /// Reads the result of the execution. `None` if it is the result of another effect.
    pub(crate) fn finish(&mut self, result: &EffectResult) -> Option<()> {
        match result {
            EffectResult::Executed(execution) => self.read_execution(execution),
            EffectResult::NotExecuted(failure) => {
                self.outcome =
                    CalculationOutcome::NotRun { why: not_run_reason(failure.kind).to_owned() };
            }
            _ => return None,
        }
        Some(())
    }

    fn read_execution(&mut self, execution: &SandboxExecution) {
        if execution.attestation.class == IsolationClass::None {
            let why = not_run_reason(SandboxFailureKind::NoEngine).to_owned();
            self.outcome = CalculationOutcome::NotRun { why };
            return;
        }
        let read = match &execution.exit {
            ExecutionExit::Exited { code: 0 } if execution.stdout.truncated => {
                Err("it printed more than 4 KiB".to_owned())
            }
            ExecutionExit::Exited { code: 0 } => LoaderReport::read(&execution.stdout.text),
            // The detail differs between two equal runs.
            ExecutionExit::SandboxDied { .. } => Err("the sandbox died".to_owned()),
            exit => Err(exit.to_string()),
        };
        self.outcome = match read {
            Ok(report) => {
                self.facts = report.facts;
                for constant in report.constants {
                    if self.constants.len() < MAX_CONSTANTS && !self.constants.contains(&constant) {
                        self.constants.push(constant);
                    }
                }
                match report.values {
                    Ok(values) => CalculationOutcome::Values { values },
                    Err(why) => CalculationOutcome::Failed { why },
                }
            }
            Err(why) => CalculationOutcome::Failed { why },
        };
    }

    /// The values; empty if it failed or was not run.
    pub fn values(&self) -> &[CalculatedValue] {
        match &self.outcome {
            CalculationOutcome::Values { values } => values,
            CalculationOutcome::Failed { .. } | CalculationOutcome::NotRun { .. } => &[],
        }
    }

    /// Whether the values count as an assumption: they follow from numbers that the author chose,
    /// or from no fact at all.
    pub fn is_assumed(&self) -> bool {
        !self.constants.is_empty() || self.facts.is_empty()
    }

    /// The calculation as the checks of claims know it.
    pub fn citable(&self) -> CitableCalculation {
        CitableCalculation {
            id: self.id.clone(),
            is_assumed: self.is_assumed(),
            values: self.values().to_vec(),
        }
    }

    /// The values in one line, or why there are none.
    pub fn outcome_text(&self) -> String {
        match &self.outcome {
            CalculationOutcome::Values { values } => {
                values.iter().map(CalculatedValue::text).collect::<Vec<_>>().join(", ")
            }
            CalculationOutcome::Failed { why } => format!("failed: {why}"),
            CalculationOutcome::NotRun { why } => format!("not run: {why}"),
        }
    }

    /// What the values are based on, in one line; empty if there are none.
    pub fn basis_text(&self) -> String {
        let mut parts = Vec::new();
        if !self.facts.is_empty() {
            parts.push(format!("facts read: {}", self.facts.join(", ")));
        }
        if !self.constants.is_empty() {
            parts.push(format!("assumed constants: {}", self.constants.join(", ")));
        }
        if !self.values().is_empty() && self.is_assumed() {
            parts.push("counts as an assumption".to_owned());
        }
        parts.join("; ")
    }
}

/// Why a program was not run. Receipts contain these texts, so equal reasons have equal texts.
fn not_run_reason(kind: SandboxFailureKind) -> &'static str {
    match kind {
        SandboxFailureKind::NoEngine => "no sandbox for calculations",
        SandboxFailureKind::Image => "the image `python` is missing or has changed",
        SandboxFailureKind::Request => "the facts are missing",
        SandboxFailureKind::Lost => "the sandbox could not be started",
    }
}

/// The facts as programs read them: values by id. The same sheet always has the same file.
pub fn calculation_facts(sheet: Option<&FactSheet>) -> Vec<u8> {
    let facts = sheet.into_iter().flat_map(|sheet| &sheet.facts);
    let values: BTreeMap<String, String> =
        facts.map(|(id, fact)| (id.to_string(), fact.value.to_string())).collect();
    // A map of texts can always be written.
    serde_json::to_vec(&values).unwrap_or_default()
}

/// What the loader printed, checked.
struct LoaderReport {
    facts: Vec<String>,
    constants: Vec<String>,
    values: Result<Vec<CalculatedValue>, String>,
}

/// What the loader printed. Nothing about it is trusted: the program may have printed it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedReport {
    error: Option<String>,
    facts: Vec<String>,
    literals: Vec<String>,
    values: Vec<PrintedValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedValue {
    name: String,
    unit: String,
    value: String,
}

impl LoaderReport {
    fn read(text: &str) -> Result<Self, String> {
        let unreadable = || "its output cannot be read".to_owned();
        if text.len() > MAX_OUTPUT_BYTES {
            return Err("it printed more than 4 KiB".to_owned());
        }
        let printed: PrintedReport = serde_json::from_str(text).map_err(|_| unreadable())?;
        let is_id = |id: &String| FactId::parse(id).is_some_and(|found| found.to_string() == **id);
        if printed.facts.len() > MAX_FACTS || !printed.facts.iter().all(is_id) {
            return Err(unreadable());
        }
        let facts: BTreeSet<String> = printed.facts.into_iter().collect();
        let literals = printed.literals.iter();
        let constants =
            literals.map(|literal| one_line(literal, 40)).filter_map(|text| constant(&text));
        let values = match printed.error {
            Some(error) => Err(one_line(&error, MAX_ERROR_CHARS)),
            None if printed.values.is_empty() => Err("it returned no result".to_owned()),
            None if printed.values.len() > MAX_VALUES => {
                Err(format!("it returned more than {MAX_VALUES} results"))
            }
            None => printed.values.iter().map(PrintedValue::read).collect(),
        };
        Ok(Self { facts: facts.into_iter().collect(), constants: constants.collect(), values })
    }
}

impl PrintedValue {
    fn read(&self) -> Result<CalculatedValue, String> {
        let name = one_line(&self.name, MAX_NAME_CHARS);
        if name.is_empty() {
            return Err("a result has no name".to_owned());
        }
        let digits = self.value.strip_prefix('-').unwrap_or(&self.value);
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value = Decimal::from_str_exact(&self.value).ok().filter(|_| is_number);
        let value = value.ok_or_else(|| format!("the value of {name} is out of range"))?;
        Ok(CalculatedValue { name, value, unit: one_line(&self.unit, MAX_UNIT_CHARS) })
    }
}

/// The numbers of a program that its author assumes, in order of appearance.
pub fn assumed_constants(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect_constants(code, 0, &mut found);
    found
}

fn collect_constants(code: &str, depth: usize, found: &mut Vec<String>) {
    let source = PythonSource::read(code);
    for line in &source.lines {
        let mut tokens = line.tokens.iter().peekable();
        let mut is_fraction = false;
        while let Some(token) = tokens.next() {
            let was_fraction = std::mem::replace(&mut is_fraction, token.is("."));
            let text = match token {
                PythonToken::Number(digits) => {
                    let mut text = (*digits).to_owned();
                    let is_hex = text.to_ascii_lowercase().starts_with("0x");
                    // The tokenizer splits `1e-5` and `.5`.
                    if !is_hex
                        && text.ends_with(['e', 'E'])
                        && let Some(PythonToken::Sign(sign @ ("+" | "-"))) = tokens.peek().copied()
                    {
                        tokens.next();
                        if let Some(PythonToken::Number(exponent)) = tokens.peek().copied() {
                            tokens.next();
                            text = format!("{text}{sign}{exponent}");
                        }
                    }
                    if was_fraction { format!("0.{text}") } else { text }
                }
                PythonToken::Text(text) => {
                    // Expressions of f-strings.
                    if depth == 0 {
                        for part in text.split('{').skip(1) {
                            let expression = part.split(['}', ':']).next().unwrap_or_default();
                            collect_constants(expression, depth + 1, found);
                        }
                    }
                    // `Decimal("0.08")`; other texts are names and fact ids.
                    text.trim().to_owned()
                }
                PythonToken::Name(_) | PythonToken::Sign(_) => continue,
            };
            let is_text = matches!(token, PythonToken::Text(_));
            if is_text && parse_number(&text).is_none() {
                continue;
            }
            if let Some(constant) = constant(&text)
                && found.len() < MAX_CONSTANTS
                && !found.contains(&constant)
            {
                found.push(constant);
            }
        }
    }
}

/// A literal in its plain form, or `None` if it is not an assumption.
fn constant(literal: &str) -> Option<String> {
    let Some(value) = parse_number(literal) else {
        // A number that is too large or too long, as written.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte);
        let is_number = literal.bytes().any(|byte| byte.is_ascii_digit());
        let is_written = is_number && literal.len() <= 80 && literal.bytes().all(is_plain);
        return is_written.then(|| one_line(literal, 40));
    };
    let value = value.normalize().abs();
    let is_plain = PLAIN_NUMBERS.iter().any(|plain| value == Decimal::from(*plain));
    let digits = value.mantissa().to_string();
    let is_power_of_ten = digits.trim_end_matches('0') == "1";
    (!is_plain && !is_power_of_ten).then(|| value.to_string())
}

/// The value of a Python literal, or of a text that Python reads as a decimal.
fn parse_number(literal: &str) -> Option<Decimal> {
    let text = literal.replace('_', "").to_ascii_lowercase();
    let is_number = |sign: char| sign.is_ascii_digit() || sign == '.';
    if !text.trim_start_matches(['+', '-']).starts_with(is_number) {
        return None;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let value = i128::from_str_radix(digits, radix).ok()?;
            return Decimal::try_from_i128_with_scale(value, 0).ok();
        }
    }
    let whole = text.strip_suffix('j').unwrap_or(&text);
    let whole = whole.trim_end_matches('.');
    match whole.contains('e') {
        true => Decimal::from_scientific(whole).ok(),
        false => whole.parse().ok(),
    }
}

#[cfg(test)]
#[path = "calculation_tests.rs"]
mod tests;
