//! The memo's front matter and run record: labels, warnings, missing data and details of the run.

use std::collections::BTreeSet;

use super::RunFacts;
use crate::RuleId;
use crate::consult::{UNCITED_READING, group_by_model};
use crate::evidence::DataCheck;
use crate::report::consult_report::ConsultReport;
use crate::report::document::{DocumentBlock, DocumentField, ReportDocument, TextSpan, Words};
use crate::report::unsupported_numbers::unsupported_numbers;
use crate::report::visible::visible_line;
use crate::sandbox::IsolationClass;
use crate::view::CostPart;

const NOT_ADVICE: &str = "Not investment, legal, tax or accounting advice; no recommendation to buy or sell securities. \
    Figures come from XBRL as filed and are unaudited here; check the linked filings.";

/// Marks numbers about the run, which have no filing as a source.
const RECORDED: &str = "[A0: record of this run]";
/// Marks numbers that code compared or counted in the filings.
const COMPUTED: &str = "[A0: computed from the filings]";

/// Unsupported numbers that are listed; the others are counted.
const MAX_UNSUPPORTED: usize = 10;

/// Adds the title, header, footer and watermark.
pub(crate) fn with_front_matter(
    view: &ConsultReport,
    run: &RunFacts,
    blocks: Vec<DocumentBlock>,
) -> ReportDocument {
    let gather = &view.input.gather;
    let name = view.evidence().map_or_else(|| gather.subject(), |evidence| &evidence.company.name);
    let title = match gather.ticker.as_str() {
        "" => format!("Board memo: {name}"),
        ticker => format!("Board memo: {name} ({ticker})"),
    };
    let day = day(view, run);
    let mut subtitle = vec![format!("As of {day}")];
    if let Some(newest) = view.evidence().and_then(|evidence| evidence.newest_filing()) {
        subtitle.push(format!("newest filing used: {} of {}", newest.form, newest.filed));
    }
    subtitle.push(format!("models: {}", models(view)));
    let mut watermark = Vec::new();
    if view.proceedings.is_synthetic() {
        watermark.push("SYNTHETIC DATA");
    }
    if view.evidence().is_some_and(|evidence| evidence.company.fictional) {
        watermark.push("FICTIONAL COMPANY");
    }
    ReportDocument {
        title: visible_line(&title),
        subtitle: visible_line(&subtitle.join(" · ")),
        running_head: visible_line(&format!("{title}, as of {day}")),
        watermark: (!watermark.is_empty()).then(|| watermark.join(" · ")),
        running_foot: "Machine-made research aid. Not advice.".to_owned(),
        blocks,
    }
}

/// Notices at the top of the memo.
pub(crate) fn labels(view: &ConsultReport, run: &RunFacts) -> Vec<DocumentBlock> {
    let is_fictional = view.evidence().is_some_and(|evidence| evidence.company.fictional);
    [
        (is_fictional, "Fictional company, for demonstration only."),
        (
            view.proceedings.is_synthetic(),
            "Synthetic data: a model generated the numbers and the news.",
        ),
        (run.demonstration, "Demo model: the answers are scripted, no API was called."),
        (
            !run.fallbacks.is_empty(),
            "Some answers are from fallback models, listed in the run record.",
        ),
        (view.outcome.is_none(), "Not finished: this memo has the results so far."),
    ]
    .into_iter()
    .filter(|(is_so, _)| *is_so)
    .map(|(_, words)| DocumentBlock::Notice { words: vec![TextSpan::strong(words)] })
    .collect()
}

/// Warnings about the age of the evidence.
pub(crate) fn warnings(view: &ConsultReport) -> Vec<DocumentBlock> {
    let warnings = view.evidence().map(|evidence| evidence.warnings()).unwrap_or_default();
    warnings
        .iter()
        .map(|warning| DocumentBlock::notice(&format!("Age of the data: {warning}")))
        .collect()
}

/// Missing data.
pub(crate) fn missing(view: &ConsultReport) -> Vec<DocumentBlock> {
    let ranked = view.ranked.iter().flat_map(|ranked| ranked.missing.iter().cloned());
    let findings = view.outcome.iter().flat_map(|outcome| &outcome.findings);
    let uncited = findings
        .filter(|found| found.rule == RuleId::new(UNCITED_READING))
        .map(|found| format!("{}: {}", found.subject, found.message));
    let sheet = view.evidence().and_then(|evidence| evidence.sheet.as_ref());
    let values = sheet.and_then(|sheet| sheet.missing_values());
    let missing: Vec<String> = ranked.chain(uncited).chain(values).collect();
    let mut blocks = Vec::new();
    if !missing.is_empty() {
        blocks.push(DocumentBlock::heading(1, "What is missing"));
        let items = missing.iter().map(|line| vec![TextSpan::text(line)]).collect();
        blocks.push(DocumentBlock::List { numbered: false, items });
    }
    blocks
}

/// Notes on the filings.
pub(crate) fn filing_notes(view: &ConsultReport) -> Vec<DocumentBlock> {
    let sheet = view.evidence().and_then(|evidence| evidence.sheet.as_ref());
    let mut blocks = Vec::new();
    // Restatements and alternative tags are numerous and listed in the fact sheet; show only checks
    // that change how the numbers are read.
    let worth_telling = |check: &&DataCheck| {
        matches!(
            check,
            DataCheck::Split { .. } | DataCheck::UnreadableRows { .. } | DataCheck::Identity { .. }
        )
    };
    let checks = sheet.iter().flat_map(|sheet| sheet.checks.iter().filter(worth_telling));
    let check_items: Vec<_> =
        checks.map(|check| vec![TextSpan::text(&format!("⚠ {check} {COMPUTED}"))]).collect();
    if !check_items.is_empty() {
        blocks.push(DocumentBlock::heading(1, "Notes on the filings"));
        blocks.push(DocumentBlock::List { numbered: false, items: check_items });
    }
    blocks
}

/// The run record: models, evidence, cost and isolation.
pub(crate) fn record(view: &ConsultReport, run: &RunFacts) -> Vec<DocumentBlock> {
    let mut rows = Vec::new();
    let mut field = |name: &str, value: &str| rows.push(DocumentField::new(name, value));
    if let Some(evidence) = view.evidence() {
        if let Some(cik) = evidence.company.cik {
            field("Filer", &format!("{}, CIK {cik}", evidence.company.name));
        }
        field("Evidence", &evidence.provenance.to_string());
        if let Some(sheet) = &evidence.sheet {
            field("As of", &sheet.as_of.to_string());
            field("Fact sheet F0", &format!("sha256 {}", sheet.hash()));
        }
    }
    field(
        "Run",
        &format!("{}, started {}, version {} {RECORDED}", run.run_id, run.started_on, run.build),
    );
    if let Some(parent) = &view.input.parent {
        field("Fork of", &format!("{} from the {} {RECORDED}", parent.run, parent.from));
    }
    field("Models", &group_by_model(&view.input.member_models()));
    for one in &run.fallbacks {
        field("Fallback", &format!("{} {RECORDED}", one.describe()));
    }
    let committee = &view.input.committee;
    field(
        "Committee",
        &format!(
            "{}: {} analysts, {} decision makers, {} rounds",
            committee.name,
            committee.analysts.len(),
            committee.decision_makers.len(),
            committee.rounds
        ),
    );
    for (file, sha256) in view.input.receipt_texts() {
        field("Own text", &format!("{file}, sha256 {sha256}"));
    }
    field("Model calls", &calls(run));
    let cost = run.cost.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    field("Cost", &format!("{cost} {RECORDED}"));
    for (title, parts) in run.costs.divisions().into_iter().filter(|(_, it)| !it.is_empty()) {
        let part = |part: &CostPart| format!("{} {}", part.name, part.cost_text());
        let parts: Vec<String> = parts.iter().map(part).collect();
        field(&format!("Cost {title}"), &format!("{} {RECORDED}", parts.join(", ")));
    }
    let moves = view.ranked.iter().flat_map(|ranked| ranked.moves());
    let (supported, total) = moves.fold((0, 0), |(supported, total), one| {
        (supported + one.support.supported, total + one.support.total)
    });
    field(
        "Numbers in the moves",
        &format!("{supported} of {total} supported or marked as assumptions {RECORDED}"),
    );
    let debates = view.debates.values();
    let classes: BTreeSet<IsolationClass> =
        debates.filter_map(|debate| Some(debate.isolation.as_ref()?.class)).collect();
    if !classes.is_empty() {
        let classes: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
        field("Isolation of the debates", &classes.join(", "));
    }
    for approval in &view.approvals {
        field("Approved", &format!("{} by {}: {}", approval.move_id, approval.by, approval.note));
    }
    let fine = format!("Machine-made research aid as of {}. {NOT_ADVICE}", day(view, run));
    let mut blocks = vec![DocumentBlock::heading(1, "Run record")];
    if classes.contains(&IsolationClass::None) {
        blocks
            .push(DocumentBlock::notice("Debates ran without a sandbox, in the Moothall process."));
    }
    blocks.push(DocumentBlock::Fields { rows });
    blocks.extend(unsupported_blocks(view));
    blocks.push(DocumentBlock::Fine { words: vec![TextSpan::text(&fine)] });
    blocks
}

/// The numbers that the count in the run record leaves out.
fn unsupported_blocks(view: &ConsultReport) -> Vec<DocumentBlock> {
    let numbers = unsupported_numbers(view);
    let line = |text: &str| vec![TextSpan::text(&format!("{text} {RECORDED}"))];
    let listed = numbers.iter().take(MAX_UNSUPPORTED);
    let mut items: Vec<Words> =
        listed.map(|number| line(&format!("⚠ {}", number.describe()))).collect();
    if items.is_empty() {
        return Vec::new();
    }
    let more = numbers.len().saturating_sub(MAX_UNSUPPORTED);
    if more > 0 {
        items.push(line(&format!("and {more} more")));
    }
    vec![
        DocumentBlock::heading(2, "Unsupported numbers"),
        DocumentBlock::List { numbered: false, items },
    ]
}

fn calls(run: &RunFacts) -> String {
    format!(
        "{} ({} of them rewrites or retries), {} prompt tokens ({} read from cache), {} output tokens {RECORDED}",
        run.calls,
        run.extra_calls,
        run.usage.prompt(),
        run.usage.cache_read,
        run.usage.output
    )
}

fn models(view: &ConsultReport) -> String {
    let models = view.input.distinct_models().into_iter();
    models.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

pub(crate) fn day(view: &ConsultReport, run: &RunFacts) -> String {
    view.as_of().map_or_else(|| run.started_on.clone(), |day| day.to_string())
}
