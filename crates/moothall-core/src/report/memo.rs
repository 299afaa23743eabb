//! The board memo: recommendations, objections, sources and missing data.
//!
//! Model output is untrusted: it is reduced to visible text, and every number in it is checked
//! again here. Unsupported statements get a mark, and the marks are explained at the end. Numbers
//! stated by Moothall itself (scores, counts) come from values, never from text.

mod front_matter;
mod other_moves;
mod recommended;
mod scores;
mod sources;
mod writer;

pub use self::sources::{CitedFact, cited};
use self::writer::MemoWriter;
use super::consult_report::ConsultReport;
use super::document::{DocumentBlock, DocumentTable, ReportDocument, TableColumn, TextSpan, Words};
use super::own_sections::OwnSections;
use super::verdict_summary::VerdictSummary;
use crate::MicroUsd;
use crate::consult::committee::TOP_LEVEL;
use crate::consult::{Committee, ConsultResult, RankedMove};
use crate::debate::{DebateResult, Objection};
use crate::model::TokenUsage;
use crate::view::{CostBreakdown, FallbackUse};

/// Facts about the run that cannot be derived from the text of its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// The run.
    pub run_id: String,
    /// The build that ran it.
    pub build: String,
    /// The start date, such as `2026-11-15`.
    pub started_on: String,
    /// The number of answered model calls.
    pub calls: u64,
    /// How many of them were rewrites and retries.
    pub extra_calls: u64,
    /// Tokens of all answers.
    pub usage: TokenUsage,
    /// The total cost; `None` if any price is unknown.
    pub cost: Option<MicroUsd>,
    /// The cost by role, stage and model.
    pub costs: CostBreakdown,
    /// Answers that fallbacks gave, by role.
    pub fallbacks: Vec<FallbackUse>,
    /// Whether the demo model was used.
    pub demonstration: bool,
}

/// Builds the memo of a consultation, complete or not.
pub fn memo(view: &ConsultReport, run: &RunFacts) -> ReportDocument {
    let mut writer = MemoWriter::new(view);
    let mut blocks = front_matter::labels(view, run);
    blocks.extend(front_matter::warnings(view));
    let own = OwnSections::new(view, front_matter::day(view, run));
    blocks.extend(own.apply("recommendation", &[], recommendation(view, &mut writer)));
    blocks.extend(super::sections::blocks(view, &own));
    blocks.extend(recommended::recommended_blocks(view, &own, &mut writer));
    let others = other_moves::other_move_blocks(view, &mut writer);
    blocks.extend(own.apply("other_moves", &[], others));
    blocks.extend(VerdictSummary::of(view).iter().flat_map(VerdictSummary::basis_blocks));
    blocks.extend(own.apply("sources", &[], writer.sources()));
    blocks.extend(own.apply("missing", &[], front_matter::missing(view)));
    blocks.extend(own.apply("filing_notes", &[], front_matter::filing_notes(view)));
    blocks.extend(own.apply("marks", &[], writer.marks()));
    blocks.extend(own.apply("record", &[], front_matter::record(view, run)));
    front_matter::with_front_matter(view, run, blocks)
}

fn recommendation(view: &ConsultReport, writer: &mut MemoWriter<'_>) -> Vec<DocumentBlock> {
    let mut blocks = vec![DocumentBlock::heading(1, "Recommendation")];
    if let Some(verdict) = VerdictSummary::of(view) {
        blocks.extend(verdict.blocks());
        blocks.extend(score_legend(&view.input.committee, ScoredBy::Panel));
        return blocks;
    }
    let ranked = view.ranked.as_ref().filter(|ranked| !ranked.recommended.is_empty());
    let Some(ranked) = ranked else {
        blocks.push(DocumentBlock::paragraph(
            "No move is recommended. Missing data is listed below.",
        ));
        return blocks;
    };
    let recommended = ranked.recommended.as_slice();
    let item = |one: &RankedMove| {
        vec![TextSpan::strong(&one.title), TextSpan::text(&format!(" ({})", one.move_id))]
    };
    let items = recommended.iter().map(item).collect();
    blocks.push(DocumentBlock::List { numbered: true, items });
    blocks.push(comparison_table(recommended, writer));
    blocks.extend(score_legend(&view.input.committee, ScoredBy::DecisionMakers));
    blocks.extend(close_call_note(ranked).map(|words| DocumentBlock::paragraph(&words)));
    blocks
}

/// Who gives the scores of the first table.
#[derive(Debug, Clone, Copy)]
enum ScoredBy {
    DecisionMakers,
    Panel,
}

/// How the highest score is made up, and who `D1` is. Every number of a memo has a source.
fn score_legend(committee: &Committee, by: ScoredBy) -> [DocumentBlock; 2] {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (members, metrics) = (committee.decision_makers.len(), committee.metrics.len());
    let sum = format!(
        "{members} decision maker{} × {metrics} metric{} × {TOP_LEVEL} points = {} [A0: the \
         committee]",
        plural(members),
        plural(metrics),
        committee.top_score()
    );
    let score = match by {
        ScoredBy::DecisionMakers => format!(
            "A score is the sum of the points that the decision makers give, at most {sum}. The \
             range is the difference between the highest and the lowest decision maker."
        ),
        ScoredBy::Panel => format!(
            "A score is the average of the points that the panel gives, on the scale of the \
             decision makers: at most {sum}."
        ),
    };
    let names = committee.decision_makers.iter().map(|seat| format!("{} {}", seat.id, seat.name));
    let names = format!("The decision makers are {}.", names.collect::<Vec<_>>().join(", "));
    [DocumentBlock::paragraph(&score), DocumentBlock::paragraph(&names)]
}

/// A comparison table of the recommended moves.
fn comparison_table(recommended: &[RankedMove], writer: &mut MemoWriter<'_>) -> DocumentBlock {
    let columns = vec![
        TableColumn::words("move"),
        TableColumn::words("result"),
        TableColumn::numbers("score range"),
        TableColumn::wide("strongest objection"),
        TableColumn::words("status"),
    ];
    let row = |one: &RankedMove| -> Option<Vec<Words>> {
        let debated = one.debated.as_ref()?;
        let objection = strongest(debated);
        let state = objection.map(severity_and_state).unwrap_or_default();
        Some(vec![
            vec![TextSpan::text(&one.move_id)],
            result(debated),
            vec![TextSpan::text(&debated.spread.to_string())],
            objection.map(|objection| writer.checked(&objection.text)).unwrap_or_default(),
            vec![TextSpan::text(&state)],
        ])
    };
    let rows = recommended.iter().filter_map(row).collect();
    DocumentBlock::Table(DocumentTable { columns, rows, has_total: false })
}

/// The score with a bar.
fn result(debated: &DebateResult) -> Words {
    let Some(value) = debated.score() else { return vec![TextSpan::text(&debated.score_text())] };
    let top = debated.top_score;
    vec![TextSpan::text(&format!("score {value}/{top} ")), TextSpan::Bar { value, top }]
}

/// The hardest open objection, otherwise the first of the most severe ones.
fn strongest(debated: &DebateResult) -> Option<&Objection> {
    let gravest = || debated.objections.iter().rev().max_by_key(|objection| objection.severity);
    debated.hardest_open().or_else(gravest)
}

/// `major, partly answered`.
fn severity_and_state(objection: &Objection) -> String {
    format!("{}, {}", objection.severity.word(), objection.state.word())
}

/// An objection after its label, such as `major:`.
fn labelled(label: &str, objection: &str, writer: &mut MemoWriter<'_>) -> Words {
    let mut words = vec![TextSpan::strong(&format!("{label}:")), TextSpan::text(" ")];
    words.extend(writer.checked(objection));
    words
}

fn close_call_note(ranked: &ConsultResult) -> Option<String> {
    let pairs: Vec<String> =
        ranked.close_calls().iter().map(|one| format!("{} and {}", one.upper, one.lower)).collect();
    (!pairs.is_empty()).then(|| {
        format!(
            "Too close to call: {}. Their totals differ by less than the decision makers' scores do.",
            pairs.join("; ")
        )
    })
}

/// The number of objections by state, as a sentence.
fn objection_counts(debated: &DebateResult) -> Option<String> {
    use crate::debate::ObjectionState as S;
    let all = debated.objections.len();
    let counts: Vec<String> = [S::Answered, S::Partly, S::Open, S::Conceded]
        .into_iter()
        .filter_map(|state| {
            let many = debated.objections.iter().filter(|one| one.state == state).count();
            (many > 0).then(|| format!("{many} {}", state.word()))
        })
        .collect();
    let noun = if all == 1 { "objection" } else { "objections" };
    (all > 0).then(|| format!("The critic raised {all} {noun}: {}.", counts.join(", ")))
}
