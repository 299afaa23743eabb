//! What a memo says about itself: labels, warnings, what is missing, and the record of the run.

use std::collections::BTreeSet;

use super::RunFacts;
use crate::evidence::DataCheck;
use crate::report::document::{Block, Document, Field, Span};
use crate::report::view::ConsultView;
use crate::report::visible::visible_line;
use crate::sandbox::IsolationClass;

const NOT_ADVICE: &str = "Not investment, legal, tax or accounting advice; no recommendation to buy or sell securities. \
    Figures come from XBRL as filed and are unaudited here; check the linked filings.";

/// Numbers of the run have no filing behind them, and say where they are from.
const RECORDED: &str = "[A0: record of this run]";

/// The blocks with what stands around them on every page.
pub(super) fn framed(view: &ConsultView, run: &RunFacts, blocks: Vec<Block>) -> Document {
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
    Document {
        title: visible_line(&title),
        subtitle: visible_line(&subtitle.join(" · ")),
        running_head: visible_line(&format!("{title}, as of {day}")),
        watermark: (!watermark.is_empty()).then(|| watermark.join(" · ")),
        running_foot: "Machine-made research aid. Not advice.".to_owned(),
        blocks,
    }
}

/// What a reader must know before the first word.
pub(super) fn labels(view: &ConsultView, run: &RunFacts) -> Vec<Block> {
    let is_fictional = view.evidence().is_some_and(|evidence| evidence.company.fictional);
    [
        (is_fictional, "Fictional company: it exists to show how this program works."),
        (
            view.proceedings.is_synthetic(),
            "Synthetic data: a model invented the numbers and the news.",
        ),
        (run.demonstration, "Demonstration: no model was asked; the words are canned."),
        (view.outcome.is_none(), "Not finished: this is what there is so far."),
    ]
    .into_iter()
    .filter(|(is_so, _)| *is_so)
    .map(|(_, words)| Block::Notice { words: vec![Span::strong(words)] })
    .collect()
}

/// What a reader should know about the age of the evidence.
pub(super) fn warnings(view: &ConsultView) -> Vec<Block> {
    let warnings = view.evidence().map(|evidence| evidence.warnings()).unwrap_or_default();
    warnings.iter().map(|warning| Block::notice(&format!("Age of the data: {warning}"))).collect()
}

/// What is not there, and what to know about what is.
pub(super) fn missing(view: &ConsultView) -> Vec<Block> {
    let ranked = view.ranked.iter().flat_map(|ranked| ranked.missing.iter().cloned());
    let sheet = view.evidence().and_then(|evidence| evidence.sheet.as_ref());
    let missing: Vec<String> = ranked.chain(sheet.and_then(|sheet| sheet.gap_words())).collect();
    let mut blocks = Vec::new();
    if !missing.is_empty() {
        blocks.push(Block::heading(1, "What is missing"));
        let items = missing.iter().map(|line| vec![Span::text(line)]).collect();
        blocks.push(Block::List { numbered: false, items });
    }
    // Restatements and other tags are many and stand in the sheet; here is what changes a reading.
    let worth_telling = |check: &&DataCheck| {
        matches!(
            check,
            DataCheck::Split { .. } | DataCheck::UnreadableRows { .. } | DataCheck::Identity { .. }
        )
    };
    let checks = sheet.iter().flat_map(|sheet| sheet.checks.iter().filter(worth_telling));
    let told: Vec<_> = checks.map(|check| vec![Span::text(&format!("⚠ {check}"))]).collect();
    if !told.is_empty() {
        blocks.push(Block::heading(1, "What to know about the filings"));
        blocks.push(Block::List { numbered: false, items: told });
    }
    blocks
}

/// Who made it, of what, at what cost and behind which walls.
pub(super) fn record(view: &ConsultView, run: &RunFacts) -> Vec<Block> {
    let mut rows = Vec::new();
    let mut field = |name: &str, value: &str| rows.push(Field::new(name, value));
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
        &format!("{}, begun {}, version {} {RECORDED}", run.run_id, run.started_on, run.build),
    );
    field("Models", &models(view));
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
    field("Model calls", &calls(run));
    let cost = run.cost.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    field("Cost", &format!("{cost} {RECORDED}"));
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
    let mut blocks = vec![Block::heading(1, "Run record")];
    if classes.contains(&IsolationClass::None) {
        blocks.push(Block::notice("Debates ran in the program's own process, without a sandbox."));
    }
    blocks.push(Block::Fields { rows });
    blocks.push(Block::Fine { words: vec![Span::text(&fine)] });
    blocks
}

fn calls(run: &RunFacts) -> String {
    format!(
        "{} ({} of them rewrites or asked again), {} prompt tokens ({} read from cache), {} written {RECORDED}",
        run.calls,
        run.extra_calls,
        run.usage.prompt(),
        run.usage.cache_read,
        run.usage.output
    )
}

fn models(view: &ConsultView) -> String {
    let models = view.input.models.distinct().into_iter();
    models.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn day(view: &ConsultView, run: &RunFacts) -> String {
    view.as_of().map_or_else(|| run.started_on.clone(), |day| day.to_string())
}
