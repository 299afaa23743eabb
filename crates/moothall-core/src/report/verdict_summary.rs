//! The verdict of a panel in sentences and rows, for every place that shows it.
//!
//! Moves within a tier are listed by estimate, but no sentence orders them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::consult_report::ConsultReport;
use super::document::{DocumentBlock, DocumentField, DocumentTable, TableColumn, TextSpan, Words};
use crate::consult::{DO_NOTHING_ID, PanelVerdict};
use crate::verdict::{
    AllowanceSource, CaseKind, MoveEstimate, NoiseComponent, PanelCheck, PanelLabel, TierList,
    VerdictHeadline, VerdictTier,
};
use crate::view::move_number;

/// Pairs with the same worse moves are listed together; at most so many groups.
const MAX_GROUPS: usize = 3;

/// Marks numbers in a memo that come from the panel and not from a filing.
const CARDS: &str = "[A0: cards of the panel]";

/// The verdict of a consultation, ready to be shown.
#[derive(Debug, Clone, Copy)]
pub struct VerdictSummary<'a> {
    view: &'a ConsultReport,
    /// The verdict.
    pub verdict: &'a PanelVerdict,
}

/// One row of the tier table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictRow {
    /// The tier; `None` if the move is in none.
    pub tier: Option<VerdictTier>,
    /// `m7`; `m0` for doing nothing.
    pub move_id: String,
    /// The title.
    pub title: String,
    /// The score in whole points.
    pub score: i32,
    /// The interval in whole points.
    pub interval: Option<(i32, i32)>,
    /// Chance to be among the best three, in percent.
    pub top3_percent: Option<u32>,
    /// Number of scored debates.
    pub debates: u32,
    /// Whether checks hold the move back.
    pub is_held: bool,
}

impl VerdictTier {
    /// The tier as users see it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Lead => "lead",
            Self::Middle => "middle",
            Self::Behind => "behind",
        }
    }
}

impl<'a> VerdictSummary<'a> {
    /// The verdict of a consultation; `None` if no panel sat or it has not finished a stage.
    pub fn of(view: &'a ConsultReport) -> Option<Self> {
        let verdict = view.ranked.as_ref()?.verdict.as_deref()?;
        Some(Self { view, verdict })
    }

    fn tiers(&self) -> &'a TierList {
        &self.verdict.tiers
    }

    /// The verdict in one sentence, without a full stop.
    pub fn headline(&self) -> String {
        self.tiers().headline.text()
    }

    /// Who judged: `panel: 5 members, 3 models, independent · controls 5 of 5`.
    pub fn panel_line(&self) -> String {
        let controls = &self.tiers().controls.results;
        let caught = controls.iter().filter(|one| one.is_caught).count();
        let (members, models) = (self.verdict.record.judges.len(), self.models());
        let models = match models {
            1 => String::new(),
            models => format!(", {models} models"),
        };
        format!(
            "panel: {members} members{models}, {} · controls {caught} of {}",
            self.tiers().panel.text(),
            controls.len()
        )
    }

    fn models(&self) -> usize {
        let judges = &self.verdict.record.judges;
        let models: std::collections::BTreeSet<&str> =
            judges.iter().map(|judge| judge.model.as_str()).collect();
        models.len()
    }

    /// The warning about the panel's controls with its sign, `✗` or `!`.
    pub fn sign(&self) -> Option<String> {
        let warning = self.tiers().controls.warning()?;
        let sign = if self.verdict.is_failed() { "✗" } else { "!" };
        let approval =
            self.view.approvals.iter().find(|one| {
                self.verdict.approved && one.move_id == crate::consult::VERDICT_APPROVAL
            });
        let approval = approval.map_or_else(String::new, |one| match one.note.as_str() {
            "" => format!(" Approved by {}.", one.by),
            note => format!(" Approved by {}: {note}.", one.by),
        });
        Some(format!("{sign} {warning}{approval}"))
    }

    /// What follows from a panel of one model.
    pub fn label_note(&self) -> Option<&'static str> {
        (self.tiers().panel == PanelLabel::SingleModel)
            .then_some("One model judges: intervals include an allowance for its taste.")
    }

    /// How well repeated verdicts agree.
    pub fn stability(&self) -> Option<(String, String)> {
        let found = self.verdict.stability.as_ref()?;
        Some((found.headline(), found.figures()))
    }

    /// How far the stages went, if the run is not finished.
    pub fn progress(&self) -> Option<String> {
        let is_open = self.view.outcome.is_none();
        is_open.then(|| format!("stopped after stage {}", self.verdict.stages))
    }

    /// All scored cases by tier, best first; moves without a tier come last.
    pub fn rows(&self) -> Vec<VerdictRow> {
        let mut estimates: Vec<&MoveEstimate> = self.tiers().estimates.iter().collect();
        estimates.sort_by_key(|one| (one.tier.is_none(), one.tier, std::cmp::Reverse(one.score)));
        estimates.into_iter().map(|one| self.row(one)).collect()
    }

    /// What the panel says about a move or doing nothing: `tier lead, 80 of 120 (62 to 97)
    /// from the panel`.
    pub fn move_line(&self, move_id: &str) -> Option<String> {
        let row = self.row(self.verdict.estimate(move_id)?);
        let tier = row.tier.map(|tier| format!("tier {}", tier.text()));
        let tier = tier.unwrap_or_else(|| "no tier".to_owned());
        let interval =
            row.interval.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
        let top = self.verdict.record.top_score;
        Some(format!("{tier}, {} of {top}{interval} from the panel", row.score))
    }

    fn row(&self, one: &MoveEstimate) -> VerdictRow {
        let found = self.view.find_move(&one.move_id);
        let title = match one.kind {
            CaseKind::DoNothing => "Do nothing".to_owned(),
            _ => found.map(|found| found.proposal.title.clone()).unwrap_or_default(),
        };
        VerdictRow {
            tier: one.tier,
            move_id: one.move_id.clone(),
            title,
            score: in_points(one.score),
            interval: one.interval.map(|found| (in_points(found.low), in_points(found.high))),
            top3_percent: one.chance_top3.map(in_percent),
            debates: one.debates,
            is_held: one.kind == CaseKind::HeldMove,
        }
    }

    /// The moves of a tier, by number.
    fn ids_of(&self, tier: VerdictTier) -> Vec<&'a str> {
        let in_tier = self.tiers().estimates.iter().filter(|one| one.tier == Some(tier));
        sorted(in_tier.map(|one| one.move_id.as_str()).collect())
    }

    /// Which moves differ for certain: `m2 and m12 from m3, m7 and m9`.
    pub fn told_apart(&self) -> Option<String> {
        if self.is_failed() {
            return None;
        }
        let lead = self.ids_of(VerdictTier::Lead);
        let mut worse: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for pair in &self.tiers().told_apart {
            if lead.contains(&pair.better.as_str()) {
                worse.entry(&pair.better).or_default().push(&pair.worse);
            }
        }
        let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
        for better in lead {
            let Some(worse) = worse.get(better) else { continue };
            match groups.iter_mut().find(|(_, known)| known == worse) {
                Some((together, _)) => together.push(better),
                None => groups.push((vec![better], worse.clone())),
            }
        }
        groups.sort_by_key(|(_, worse)| std::cmp::Reverse(worse.len()));
        let groups = groups.into_iter().take(MAX_GROUPS);
        let text = |(better, worse): (Vec<&str>, Vec<&str>)| {
            format!("{} from {}", listed(&better), listed(&sorted(worse)))
        };
        let groups: Vec<String> = groups.map(text).collect();
        (!groups.is_empty())
            .then(|| format!("Told apart with 95 % confidence: {}.", groups.join("; ")))
    }

    /// What a second run would most likely show.
    pub fn expectation(&self) -> Option<String> {
        match self.tiers().headline {
            VerdictHeadline::Lead { moves: 1 } => {
                Some("A second run would most likely have the same winner.".to_owned())
            }
            VerdictHeadline::Lead { moves } => {
                Some(format!("A second run would most likely keep its winner among these {moves}."))
            }
            _ => None,
        }
    }

    /// Moves that are not shown to beat doing nothing.
    pub fn below_do_nothing(&self) -> Option<String> {
        if self.is_failed() {
            return None;
        }
        let estimates = self.tiers().estimates.iter();
        let below = estimates.filter(|one| one.is_not_shown_to_beat_doing_nothing());
        let ids = sorted(below.map(|one| one.move_id.as_str()).collect());
        (!ids.is_empty()).then(|| format!("Not shown to beat doing nothing: {}.", listed(&ids)))
    }

    /// What the panel found about doing nothing.
    pub(crate) fn do_nothing_lines(&self) -> Vec<String> {
        let Some(found) = self.verdict.estimate(DO_NOTHING_ID) else { return Vec::new() };
        let interval = found.interval.map_or_else(String::new, |interval| {
            format!(" ({} to {})", in_points(interval.low), in_points(interval.high))
        });
        let score = in_points(found.score);
        let top = self.verdict.record.top_score;
        let scored = format!(
            "Doing nothing (m0) was debated like the moves; the panel gives it {score} of {top}{interval} {CARDS}."
        );
        vec![scored]
    }

    /// The headline in words that need no explanation, for the first paragraph of a memo.
    fn opening(&self) -> String {
        let titles = |ids: &[&str]| {
            let title = |id: &&str| {
                let found = self.view.find_move(id);
                let title = found.map(|found| found.proposal.title.as_str()).unwrap_or_default();
                format!("{title} ({id})")
            };
            ids.iter().map(title).collect::<Vec<_>>().join("; ")
        };
        let lead = self.ids_of(VerdictTier::Lead);
        let moves: Vec<&str> = lead.into_iter().filter(|id| *id != DO_NOTHING_ID).collect();
        match self.tiers().headline {
            VerdictHeadline::PanelFailed if !self.verdict.approved => {
                "There is no verdict: the panel that scores the moves failed its test.".to_owned()
            }
            VerdictHeadline::PanelFailed => format!(
                "The panel that scores the moves failed its test, and a person accepted its \
                 verdict: {}.",
                titles(&moves)
            ),
            VerdictHeadline::TooFewMoves => {
                "Fewer than six moves were scored, which is too few for a reliable order."
                    .to_owned()
            }
            VerdictHeadline::DoNothingInLead if moves.is_empty() => {
                "No move is better than doing nothing, as far as the panel can tell.".to_owned()
            }
            VerdictHeadline::DoNothingInLead => format!(
                "The panel cannot tell doing nothing apart from the best moves: {}.",
                titles(&moves)
            ),
            VerdictHeadline::Lead { moves: 1 } => {
                format!("One move leads: {}.", titles(&moves))
            }
            VerdictHeadline::Lead { moves: count } => format!(
                "{count} moves lead, and their scores are too close to say which of them is best: \
                 {}.",
                titles(&moves)
            ),
        }
    }

    /// The first part of a memo: the verdict in words and the tier table.
    pub(crate) fn blocks(&self) -> Vec<DocumentBlock> {
        let mut blocks = vec![DocumentBlock::paragraph(&self.opening())];
        let (shown, lead) = (self.verdict.recommended().len(), self.ids_of(VerdictTier::Lead));
        let others = lead.iter().filter(|id| **id != DO_NOTHING_ID).count();
        if shown > 0 && shown < others {
            blocks.push(DocumentBlock::paragraph(
                "Not all of them are described below. This does not make the others worse: the \
                 choice within the lead is yours.",
            ));
        }
        blocks.extend(self.sign().map(|sign| DocumentBlock::notice(&sign)));
        blocks.extend(self.progress().map(|line| {
            DocumentBlock::notice(&format!("The run {line}; later stages may change the tiers."))
        }));
        blocks.push(self.table());
        let interval = self.verdict.record.rules.interval / 10;
        blocks.push(DocumentBlock::paragraph(&format!(
            "The interval contains the true score with a probability of {interval} % {CARDS}."
        )));
        let told_apart = self.told_apart();
        let told_apart = told_apart.map(|note| format!("{} {CARDS}.", note.trim_end_matches('.')));
        let notes = [told_apart, self.below_do_nothing(), self.expectation()];
        blocks.extend(notes.into_iter().flatten().map(|note| DocumentBlock::paragraph(&note)));
        blocks
    }

    fn table(&self) -> DocumentBlock {
        let columns = vec![
            TableColumn::words("tier"),
            TableColumn::wide("move"),
            TableColumn::words("score and interval"),
            TableColumn::numbers("% among best 3"),
            TableColumn::numbers("debates"),
        ];
        let dash = || "–".to_owned();
        let top = self.verdict.record.top_score;
        let row = |row: VerdictRow| -> Vec<Words> {
            let tier = match row.tier {
                Some(tier) => tier.text(),
                None if row.is_held => "held back",
                None => "–",
            };
            let interval = row.interval.map(|(low, high)| format!(" ({low} to {high})"));
            let top3 = row.top3_percent.map_or_else(dash, |percent| percent.to_string());
            let cells = [
                tier.to_owned(),
                format!("{}: {}", row.move_id, row.title),
                format!("score {}/{top}{}", row.score, interval.unwrap_or_default()),
                top3,
                row.debates.to_string(),
            ];
            cells.iter().map(|cell| vec![TextSpan::text(cell)]).collect()
        };
        let rows = self.rows().into_iter().map(row).collect();
        DocumentBlock::Table(DocumentTable { columns, rows, has_total: false })
    }

    /// What the verdict rests on: members, controls, noise and allowances.
    pub(crate) fn basis_blocks(&self) -> Vec<DocumentBlock> {
        let tiers = self.tiers();
        let mut rows = Vec::new();
        let mut field = |name: &str, value: &str| rows.push(DocumentField::new(name, value));
        let members: Vec<String> = self
            .verdict
            .record
            .judges
            .iter()
            .map(|judge| format!("{} ({})", judge.id, judge.model))
            .collect();
        field("Panel", &format!("{}: {}", tiers.panel.text(), members.join(", ")));
        if let Some(note) = self.label_note() {
            field("Independence", note);
        }
        let stages = self.verdict.stages;
        field("Stages", &format!("{stages} finished; the table shows the debates of each move"));
        for control in &tiers.controls.results {
            let result = if control.is_caught { "caught" } else { "missed" };
            let by = control.caught_by.len();
            let members = self.verdict.record.judges.len();
            let kind = control.kind.text();
            field(
                "Control",
                &format!("{kind}: {result} by the panel, caught by {by} of {members} members"),
            );
        }
        let left_out: Vec<&str> = tiers
            .controls
            .left_out
            .union(&tiers.members_with_missing_cards)
            .map(String::as_str)
            .collect();
        if !left_out.is_empty() {
            field("Left out", &format!("cards of {} do not count", left_out.join(", ")));
        }
        if let Some((headline, figures)) = self.stability() {
            field("Stability", &format!("{headline}: {figures} {CARDS}"));
        }
        field(
            "Reliability",
            &format!(
                "{} % of the differences between scores are not noise {CARDS}",
                in_percent(tiers.reliability)
            ),
        );
        let noise = [
            ("between models", tiers.components.between_models),
            ("between debates of a move", tiers.components.between_debates),
            ("of a single card", tiers.components.between_cards),
        ];
        let part = |(name, found): (&str, Option<NoiseComponent>)| {
            found.map(|found| format!("{name} {} points", tenths(found.deviation)))
        };
        let mut parts: Vec<String> = noise.into_iter().filter_map(part).collect();
        parts.push(format!("between moves {} points", tenths(tiers.components.between_moves)));
        field("Standard deviations", &format!("{} {CARDS}", parts.join(", ")));
        let allowances = &tiers.allowances;
        let source = match &allowances.source {
            AllowanceSource::Default => "built-in values".to_owned(),
            AllowanceSource::Measured(file) => format!("measured, file {file:.12}"),
        };
        field(
            "Allowances",
            &format!(
                "shared error {}, single model {}, single debate {} of the spread between moves ({source}) {CARDS}",
                thousandths(allowances.shared_error),
                thousandths(allowances.single_model),
                thousandths(allowances.single_debate),
            ),
        );
        vec![
            DocumentBlock::heading(1, "What this verdict rests on"),
            DocumentBlock::paragraph(
                "Panel members score each case alone. They do not see who proposed or defended a \
                 move, its number, other moves or other members. Controls with a known order test \
                 the panel. Models can still be wrong together; no panel can see that from inside.",
            ),
            DocumentBlock::Fields { rows },
        ]
    }

    /// The verdict for programs.
    pub(crate) fn json(&self) -> Value {
        let tiers = self.tiers();
        let tier = |tier: VerdictTier| {
            let moves: Vec<&str> =
                tiers.tier(tier).into_iter().map(|one| one.move_id.as_str()).collect();
            json!({"tier": tier, "moves": moves})
        };
        let all = [VerdictTier::Lead, VerdictTier::Middle, VerdictTier::Behind];
        json!({
            "headline": tiers.headline.text(),
            "panel": {"label": tiers.panel, "members": self.verdict.record.judges},
            "check": tiers.controls.check,
            "warning": tiers.controls.warning(),
            "approved": self.verdict.approved,
            "stages": self.verdict.stages,
            "final": self.view.outcome.is_some(),
            "tiers": all.map(tier),
            "estimates": tiers.estimates,
            "not_scored": tiers.not_scored,
            "told_apart": tiers.told_apart,
            "controls": tiers.controls.results,
            "left_out": tiers.controls.left_out.union(&tiers.members_with_missing_cards).collect::<Vec<_>>(),
            "components": tiers.components,
            "allowances": tiers.allowances,
            "reliability": tiers.reliability,
            "stability": self.verdict.stability,
            "cards": self.verdict.record.cards,
        })
    }

    /// Whether the verdict must not be relied on.
    pub fn is_failed(&self) -> bool {
        self.tiers().controls.check == PanelCheck::Failed
    }
}

fn sorted(mut ids: Vec<&str>) -> Vec<&str> {
    ids.sort_by_key(|id| (move_number(id), *id));
    ids
}

/// `m1, m2 and m3`.
fn listed(ids: &[&str]) -> String {
    match ids {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn in_points(tenths: i32) -> i32 {
    // Half points round away from zero.
    let half = if tenths < 0 { -5 } else { 5 };
    (tenths + half) / 10
}

fn in_percent(thousandths: u32) -> u32 {
    (thousandths + 5) / 10
}

fn tenths(value: u32) -> String {
    format!("{}.{}", value / 10, value % 10)
}

fn thousandths(value: u32) -> String {
    format!("{}.{:02}", value / 1_000, (value % 1_000) / 10)
}

#[cfg(test)]
#[path = "verdict_summary_tests.rs"]
mod tests;
