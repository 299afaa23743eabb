//! The decision of `moothall gate` in its output formats.

use std::fmt::Write as _;

use moothall_core::gate::{ChangeFinding, ChangeSetDecision, FileDecision, GateAction};
use moothall_workspace::ObjectId;
use serde_json::json;

use crate::args::GateFormatArg;
use crate::display;
use crate::display::annotations::{self, AnnotatedFile, AnnotationLevel, FileAnnotation};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Width of code frames that are not shown on a terminal.
const PLAIN_WIDTH: usize = 120;
/// Further findings are counted in the text output.
const MAX_SHOWN: usize = 100;
/// The path that findings about the whole change are reported for, where a format needs one.
const WHOLE_CHANGE: &str = ".";

/// Everything that a report shows.
pub(crate) struct GateReportPage<'a> {
    pub(crate) decision: &'a ChangeSetDecision,
    /// The commit before the change, or `None` before the first commit.
    pub(crate) base: Option<&'a ObjectId>,
    /// What a policy asked for and did not get.
    pub(crate) notes: &'a [String],
}

/// A finding with its place.
struct PlacedFinding<'a> {
    path: &'a str,
    finding: &'a ChangeFinding,
    annotation: FileAnnotation,
}

impl<'a> PlacedFinding<'a> {
    fn new(path: &'a str, finding: &'a ChangeFinding) -> Self {
        let level = match finding.action {
            GateAction::Reject => AnnotationLevel::Error,
            GateAction::Escalate => AnnotationLevel::Warning,
            GateAction::Allow | GateAction::Warn => AnnotationLevel::Note,
        };
        let source = finding.source.as_deref().unwrap_or_default();
        let annotation = FileAnnotation {
            rule: finding.rule.name().to_owned(),
            level,
            message: format!("{} [{}]", finding.message, finding.rule),
            span: source.len() - source.trim_start().len()..source.trim_end().len(),
        };
        Self { path, finding, annotation }
    }

    fn file(&self) -> AnnotatedFile<'_> {
        AnnotatedFile {
            path: self.path,
            text: self.finding.source.as_deref().unwrap_or_default(),
            first_line: self.finding.line,
            annotations: std::slice::from_ref(&self.annotation),
        }
    }
}

impl GateReportPage<'_> {
    pub(crate) fn render(&self, format: GateFormatArg) -> String {
        let placed = self.placed();
        let files = || placed.iter().map(PlacedFinding::file).collect::<Vec<_>>();
        match format {
            GateFormatArg::Text => self.text(&placed),
            GateFormatArg::Json => self.json(),
            GateFormatArg::Sarif => format!("{:#}\n", annotations::sarif(&files())),
            GateFormatArg::Github => {
                let mut text = annotations::github_commands(&files());
                let _ = writeln!(text, "{}", self.summary());
                text
            }
            GateFormatArg::Junit => self.junit(),
        }
    }

    fn placed(&self) -> Vec<PlacedFinding<'_>> {
        let whole = self.decision.findings.iter().map(|one| PlacedFinding::new(WHOLE_CHANGE, one));
        let of_files =
            self.decision.files.iter().flat_map(|file| {
                file.findings.iter().map(|one| PlacedFinding::new(&file.path, one))
            });
        whole.chain(of_files).collect()
    }

    /// The decision in one line.
    fn summary(&self) -> String {
        let stats = &self.decision.stats;
        let files = display::counted(self.decision.files.len(), "file");
        let word = outcome(self.decision.action);
        format!("{word}: {files}, +{} -{}", stats.added, stats.removed)
    }

    fn text(&self, placed: &[PlacedFinding<'_>]) -> String {
        let width = match terminal::stdout_is_terminal() {
            true => terminal::size().0,
            false => PLAIN_WIDTH,
        };
        let mut order: Vec<&PlacedFinding<'_>> = placed.iter().collect();
        // The most severe findings come last, next to the decision.
        order.sort_by_key(|one| one.finding.action);
        let hidden = order.len().saturating_sub(MAX_SHOWN);
        let mut text = String::new();
        if hidden > 0 {
            let _ = writeln!(text, "{DIM}{hidden} less severe findings are not shown{DIM:#}\n");
        }
        for one in order.iter().skip(hidden) {
            text.push_str(&one.file().code_frames(width));
        }
        for note in self.notes {
            let _ = writeln!(text, "{YELLOW}policy{YELLOW:#}: {}", display::line(note));
        }
        let style = if self.decision.action < GateAction::Escalate { GREEN } else { YELLOW };
        let summary = self.summary();
        let (word, rest) = summary.split_once(':').unwrap_or((&summary, ""));
        let _ = writeln!(text, "{BOLD}{style}{word}{style:#}{BOLD:#}:{rest}");
        text
    }

    fn json(&self) -> String {
        let mut report = json!({
            "outcome": outcome(self.decision.action).replace(' ', "_"),
            "base": self.base.map(ObjectId::as_str),
            "policy_notes": self.notes,
        });
        if let (Some(report), Ok(serde_json::Value::Object(decision))) =
            (report.as_object_mut(), serde_json::to_value(self.decision))
        {
            report.extend(decision);
        }
        format!("{report:#}\n")
    }

    fn junit(&self) -> String {
        let decision = self.decision;
        let is_failed = |action: GateAction| action >= GateAction::Escalate;
        let whole = FileDecisionRow { name: "(whole change)", findings: &decision.findings };
        let rows: Vec<FileDecisionRow<'_>> =
            std::iter::once(whole).chain(decision.files.iter().map(FileDecisionRow::of)).collect();
        let failures = rows.iter().filter(|row| is_failed(row.action())).count();
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"moothall gate\" tests=\"{}\" failures=\"{failures}\" errors=\"0\">\n",
            rows.len()
        );
        for row in &rows {
            let name = xml_text(row.name);
            let _ = write!(xml, "    <testcase classname=\"moothall.gate\" name=\"{name}\"");
            if row.findings.is_empty() {
                xml.push_str("/>\n");
                continue;
            }
            xml.push_str(">\n");
            let list: String = row.findings.iter().map(|one| finding_line(row.name, one)).collect();
            let list = xml_text(&list);
            if is_failed(row.action()) {
                let message = outcome(row.action());
                let _ = writeln!(
                    xml,
                    "      <failure type=\"{}\" message=\"{message}\">{list}</failure>",
                    row.action()
                );
            } else {
                let _ = writeln!(xml, "      <system-out>{list}</system-out>");
            }
            xml.push_str("    </testcase>\n");
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }
}

/// A test case of a JUnit report.
struct FileDecisionRow<'a> {
    name: &'a str,
    findings: &'a [ChangeFinding],
}

impl<'a> FileDecisionRow<'a> {
    fn of(file: &'a FileDecision) -> Self {
        Self { name: &file.path, findings: &file.findings }
    }

    fn action(&self) -> GateAction {
        self.findings.iter().map(|one| one.action).max().unwrap_or(GateAction::Allow)
    }
}

fn finding_line(path: &str, finding: &ChangeFinding) -> String {
    let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{} {path}{line}: {} [{}]\n", finding.action, finding.message, finding.rule)
}

fn outcome(action: GateAction) -> &'static str {
    match action {
        GateAction::Allow | GateAction::Warn => "accepted",
        GateAction::Escalate => "needs a person",
        GateAction::Reject => "rejected",
    }
}

/// Escapes text for XML, and replaces characters that XML does not allow.
fn xml_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
