//! Memo sections on the user's input and on the effect of the debates, also as JSON. Scores and
//! counts come from values; user text is only quoted.

use serde_json::{Value, json};

use super::consult_report::ConsultReport;
use super::document::{DocumentBlock, TextSpan};
use super::own_sections::OwnSections;
use super::verdict_summary::VerdictSummary;
use crate::consult::{ConsultResult, MoveReviewDecision, RECOMMENDED, RankedMove};
use crate::debate::BaselineScores;

/// A section of the memo: a heading and paragraphs, without markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoSection {
    /// The heading.
    pub heading: &'static str,
    /// Paragraphs written by Moothall.
    pub lines: Vec<String>,
    /// Lines written by a person, shown as a quote.
    pub quoted: Vec<String>,
}

impl MemoSection {
    /// Whether it compares scores, as opposed to reporting user input.
    pub fn is_about_scores(&self) -> bool {
        matches!(self.heading, DO_NOTHING_HEADING | DEBATE_EFFECT_HEADING)
    }
}

const BRIEF_HEADING: &str = "The brief";
const CHANGES_HEADING: &str = "Changes by a reviewer before the debates";
const DO_NOTHING_HEADING: &str = "Doing nothing";
const DEBATE_EFFECT_HEADING: &str = "Was the debate worth it?";

/// The brief, the reviewer's changes, the scores of doing nothing, and the effect of the debates,
/// as far as available.
pub fn sections(view: &ConsultReport) -> Vec<MemoSection> {
    let sections = [brief(view), changes(view), doing_nothing(view), debate_effect_section(view)];
    sections.into_iter().flatten().collect()
}

/// The sections as document blocks.
pub(crate) fn blocks(view: &ConsultReport, own: &OwnSections<'_>) -> Vec<DocumentBlock> {
    let mut all = Vec::new();
    for MemoSection { heading, lines, quoted } in sections(view) {
        let mut blocks = vec![DocumentBlock::heading(1, heading)];
        blocks.extend(lines.iter().map(|line| DocumentBlock::paragraph(line)));
        if !quoted.is_empty() {
            let items = quoted.iter().map(|line| vec![TextSpan::text(line)]).collect();
            blocks.push(DocumentBlock::List { numbered: false, items });
        }
        let name = match heading {
            BRIEF_HEADING => "brief",
            CHANGES_HEADING => "changes",
            DO_NOTHING_HEADING => "doing_nothing",
            _ => "debate_effect",
        };
        all.extend(own.apply(name, &[], blocks));
    }
    all
}

fn brief(view: &ConsultReport) -> Option<MemoSection> {
    let brief = view.input.terms.brief.as_ref()?;
    let note = "Written by the person who requested this memo. The analysts read it; it is not evidence, and its numbers were not checked.";
    let lines = brief.lines().map(str::trim).filter(|line| !line.is_empty());
    Some(MemoSection {
        heading: BRIEF_HEADING,
        lines: vec![note.to_owned()],
        quoted: lines.map(str::to_owned).collect(),
    })
}

fn changes(view: &ConsultReport) -> Option<MemoSection> {
    let ranked = view.ranked.as_ref()?;
    let mut moves: Vec<&RankedMove> = ranked.moves().filter(|one| one.said.is_some()).collect();
    moves.sort_by_key(|one| (one.move_id.len(), one.move_id.clone()));
    if moves.is_empty() {
        return None;
    }
    let words = |one: &&RankedMove| {
        let said = one.said.as_ref().map(MoveReviewDecision::describe).unwrap_or_default();
        format!("{} ({}): {said}.", one.move_id, one.title)
    };
    let lines = moves.iter().map(words).collect();
    Some(MemoSection { heading: CHANGES_HEADING, lines, quoted: Vec::new() })
}

fn doing_nothing(view: &ConsultReport) -> Option<MemoSection> {
    let ranked = view.ranked.as_ref()?;
    if let Some(verdict) = VerdictSummary::of(view) {
        let lines = verdict.do_nothing_lines();
        return (!lines.is_empty()).then_some(MemoSection {
            heading: DO_NOTHING_HEADING,
            lines,
            quoted: Vec::new(),
        });
    }
    let nothing = ranked.do_nothing.as_ref()?;
    let given = nothing.scorecards.iter().filter(|(_, card)| card.is_given());
    let cards: Vec<String> = given.map(|(id, card)| format!("{id} {}", card.sum())).collect();
    let mut lines = Vec::new();
    if nothing.is_scored() {
        lines.push(format!(
            "Doing nothing (m0): score {}/{} ({}), without a debate.",
            nothing.total_score,
            nothing.top_score,
            cards.join(", ")
        ));
    }
    lines.push(if !nothing.is_scored() {
        "Doing nothing (m0) is not scored: a decision maker gave no usable scores.".to_owned()
    } else if nothing.is_given() {
        let below = moves_below_do_nothing(ranked, nothing);
        match below.is_empty() {
            true => "No ranked move scores below it.".to_owned(),
            false => {
                let below = below.iter().map(|(id, score)| format!("{id} ({score})"));
                format!("Moves that score below it: {}.", below.collect::<Vec<_>>().join(", "))
            }
        }
    } else {
        "Missing scores were replaced by a neutral 5, so no move is compared with it.".to_owned()
    });
    Some(MemoSection { heading: DO_NOTHING_HEADING, lines, quoted: Vec::new() })
}

/// Ranked moves that score less than doing nothing, best first.
fn moves_below_do_nothing<'a>(
    ranked: &'a ConsultResult,
    nothing: &BaselineScores,
) -> Vec<(&'a str, u32)> {
    let placed = ranked.moves().filter(|one| one.rank.is_some());
    let scores = placed.filter_map(|one| {
        let score = one.debated.as_ref()?.score()?;
        (score < nothing.total_score).then_some((one.rank, one.move_id.as_str(), score))
    });
    let mut below: Vec<_> = scores.collect();
    below.sort_unstable();
    below.into_iter().map(|(_, id, score)| (id, score)).collect()
}

/// How the debates changed the ranking.
struct DebateEffect<'a> {
    /// The top moves by scores without a debate.
    before: Vec<&'a str>,
    /// The top moves as ranked.
    after: Vec<&'a str>,
    /// Move, score without a debate and score after it, in rank order.
    moved: Vec<(&'a str, u32, u32)>,
}

impl<'a> DebateEffect<'a> {
    /// Compares ranked moves that every decision maker scored both times.
    fn of(ranked: &'a ConsultResult) -> Option<Self> {
        if ranked.verdict.is_some() {
            // The panel orders the moves, and it scores only debated ones.
            return None;
        }
        let mut compared: Vec<(&RankedMove, &BaselineScores, u32)> = ranked
            .moves()
            .filter(|one| one.rank.is_some() && !one.has_neutral_scores())
            .filter_map(|one| {
                let alone = ranked.baseline.iter().find(|alone| alone.move_id == one.move_id)?;
                let after = one.debated.as_ref()?.score()?;
                alone.is_given().then_some((one, alone, after))
            })
            .collect();
        if compared.is_empty() {
            return None;
        }
        let best = |compared: &[(&'a RankedMove, &BaselineScores, u32)]| {
            compared.iter().take(RECOMMENDED).map(|(one, ..)| one.move_id.as_str()).collect()
        };
        compared.sort_by_key(|(one, ..)| one.rank);
        let moved = compared
            .iter()
            .map(|(one, alone, after)| (one.move_id.as_str(), alone.total_score, *after))
            .collect();
        let after = best(&compared);
        // The ranking order: by total, then by spread.
        compared.sort_by_key(|(one, alone, _)| {
            (u32::MAX - alone.total_score, alone.spread, one.move_id.len(), one.move_id.clone())
        });
        Some(Self { before: best(&compared), after, moved })
    }

    fn entered_top(&self) -> Vec<&'a str> {
        self.after.iter().filter(|id| !self.before.contains(id)).copied().collect()
    }

    fn left_top(&self) -> Vec<&'a str> {
        self.before.iter().filter(|id| !self.after.contains(id)).copied().collect()
    }

    /// The average absolute score change, in tenths of a point.
    fn average_tenths(&self) -> u32 {
        let sum: u32 = self.moved.iter().map(|(_, before, after)| before.abs_diff(*after)).sum();
        let many = u32::try_from(self.moved.len()).unwrap_or(u32::MAX).max(1);
        sum.saturating_mul(10).saturating_add(many / 2) / many
    }

    /// The move with the largest score change; the better ranked of equals.
    fn largest_shift(&self) -> Option<&(&'a str, u32, u32)> {
        let moved = self.moved.iter().rev();
        moved.max_by_key(|(_, before, after)| before.abs_diff(*after))
    }
}

fn tenths(tenths: u32) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn debate_effect_section(view: &ConsultReport) -> Option<MemoSection> {
    let effect = DebateEffect::of(view.ranked.as_ref()?)?;
    let list = |ids: &[&str]| ids.join(", ");
    let (before, after) = (list(&effect.before), list(&effect.after));
    let many = effect.after.len();
    let first = if !effect.entered_top().is_empty() {
        format!(
            "The debate changed the top {many}: {before} without a debate, {after} after it. Added: {}. Dropped: {}.",
            list(&effect.entered_top()),
            list(&effect.left_top())
        )
    } else if effect.before != effect.after {
        format!(
            "The debate changed the order of the top {many}, but not its members: {before} without a debate, {after} after it."
        )
    } else {
        format!("The debate did not change the top {many}: {after} with and without it.")
    };
    let mut second =
        format!("Scores changed by {} points on average", tenths(effect.average_tenths()));
    if let Some((id, before, after)) = effect.largest_shift().filter(|(_, b, a)| b != a) {
        second.push_str(&format!(", most for {id}: {before} without a debate, {after} after it"));
    }
    second.push('.');
    let lines = vec![first, second];
    Some(MemoSection { heading: DEBATE_EFFECT_HEADING, lines, quoted: Vec::new() })
}

/// The scores of doing nothing and the moves below it; null if it was not scored.
pub(crate) fn do_nothing_json(view: &ConsultReport) -> Value {
    let Some(ranked) = &view.ranked else { return Value::Null };
    let Some(nothing) = &ranked.do_nothing else { return Value::Null };
    let content = view.proceedings.nothing.as_ref().map(crate::consult::Move::markdown);
    let below: Option<Vec<&str>> = nothing
        .is_given()
        .then(|| moves_below_do_nothing(ranked, nothing).into_iter().map(|(id, _)| id).collect());
    let mut value = scores(nothing);
    value["content"] = json!(content);
    value["moves_below"] = json!(below);
    value
}

/// The baseline scores and how the debates changed them; null if there is no baseline.
pub(crate) fn baseline_json(view: &ConsultReport) -> Value {
    let Some(ranked) = view.ranked.as_ref().filter(|ranked| !ranked.baseline.is_empty()) else {
        return Value::Null;
    };
    let effect = DebateEffect::of(ranked);
    let moved = effect.as_ref().map(|effect| {
        let one = |(id, before, after): &(&str, u32, u32)| {
            let change = i64::from(*after) - i64::from(*before);
            json!({"move_id": id, "without_debate": before, "after_debate": after, "change": change})
        };
        effect.moved.iter().map(one).collect::<Vec<_>>()
    });
    json!({
        "scores": ranked.baseline.iter().map(scores).collect::<Vec<_>>(),
        "top_without_debate": effect.as_ref().map(|effect| &effect.before),
        "top_after_debate": effect.as_ref().map(|effect| &effect.after),
        "top_changed": effect.as_ref().map(|effect| !effect.entered_top().is_empty()),
        "order_changed": effect.as_ref().map(|effect| effect.before != effect.after),
        "average_change": effect.as_ref().map(|effect| tenths(effect.average_tenths())),
        "moves": moved,
    })
}

fn scores(of: &BaselineScores) -> Value {
    let by_agent: serde_json::Map<String, Value> = of
        .scorecards
        .iter()
        .map(|(id, card)| {
            let mut scores = json!(card.scores);
            scores["reasoning"] = json!(card.reasoning);
            (id.clone(), scores)
        })
        .collect();
    json!({
        "move_id": of.move_id,
        "total_score": of.is_scored().then_some(of.total_score),
        "top_score": of.top_score,
        "spread": of.spread,
        "given": of.is_given(),
        "scores_by_agent": by_agent,
    })
}

#[cfg(test)]
#[path = "sections_tests.rs"]
mod tests;
