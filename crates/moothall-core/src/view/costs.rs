//! What the calls of a run cost, by role, stage and model. Derived from the events of its calls, so
//! the parts add up to the total exactly.

use serde::{Deserialize, Serialize};

use crate::MicroUsd;
use crate::event::RunEventBody;
use crate::model::CallPurpose;

/// The answered calls with one purpose and one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CallCosts {
    /// What the calls were for.
    pub purpose: CallPurpose,
    /// The model.
    pub model: String,
    /// The number of answers, with retries and rewrites.
    pub calls: u32,
    /// Prompt tokens, cached or not.
    pub prompt_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost of calls with a known price.
    pub cost_micro_usd: MicroUsd,
    /// Calls with an unknown price.
    pub unpriced_calls: u32,
}

impl CallCosts {
    /// Adds an event to the table, in the order in which purposes and models first appear.
    pub(crate) fn count(table: &mut Vec<Self>, body: &RunEventBody) {
        let RunEventBody::ModelReplied { purpose, model, usage, cost_micro_usd, .. } = body else {
            return;
        };
        let model = model.to_string();
        let known = table.iter().position(|row| row.purpose == *purpose && row.model == model);
        let at = known.unwrap_or(table.len());
        if known.is_none() {
            table.push(Self {
                purpose: *purpose,
                model,
                calls: 0,
                prompt_tokens: 0,
                output_tokens: 0,
                cost_micro_usd: MicroUsd::ZERO,
                unpriced_calls: 0,
            });
        }
        let Some(row) = table.get_mut(at) else { return };
        row.calls = row.calls.saturating_add(1);
        row.prompt_tokens = row.prompt_tokens.saturating_add(usage.prompt());
        row.output_tokens = row.output_tokens.saturating_add(usage.output);
        match cost_micro_usd {
            Some(cost) => row.cost_micro_usd = row.cost_micro_usd.saturating_add(*cost),
            None => row.unpriced_calls = row.unpriced_calls.saturating_add(1),
        }
    }
}

/// A part of the cost of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CostPart {
    /// The role, the stage or the model.
    pub name: String,
    /// The number of answers, with retries and rewrites.
    pub calls: u32,
    /// Prompt tokens, cached or not.
    pub prompt_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost of calls with a known price.
    pub cost_micro_usd: MicroUsd,
    /// Calls with an unknown price.
    pub unpriced_calls: u32,
}

impl CostPart {
    /// The cost as text.
    pub fn cost_text(&self) -> String {
        cost_text(self.cost_micro_usd, u64::from(self.unpriced_calls))
    }
}

/// A cost and the number of calls that it does not include, as text.
pub(crate) fn cost_text(cost: MicroUsd, unpriced_calls: u64) -> String {
    match (unpriced_calls, cost) {
        (0, cost) => cost.to_string(),
        (_, MicroUsd::ZERO) => "price unknown".to_owned(),
        (unpriced, cost) => format!("{cost} and {unpriced} calls with unknown price"),
    }
}

/// The cost of a run, divided in three ways. Each division has the same sum: the bill for all
/// answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CostBreakdown {
    /// By role: analysts, critic, decision makers.
    pub roles: Vec<CostPart>,
    /// By stage: infer, analyze, debate.
    pub stages: Vec<CostPart>,
    /// By model.
    pub models: Vec<CostPart>,
}

impl CostBreakdown {
    /// The breakdown of the calls with these events.
    pub fn of_events<'a>(bodies: impl IntoIterator<Item = &'a RunEventBody>) -> Self {
        let mut table = Vec::new();
        for body in bodies {
            CallCosts::count(&mut table, body);
        }
        Self::of(&table)
    }

    /// Adds up the rows of a table.
    pub fn of(table: &[CallCosts]) -> Self {
        // In the order of the stages, because calls of concurrent stages finish in any order.
        let mut rows: Vec<&CallCosts> = table.iter().collect();
        rows.sort_by(|one, other| (one.purpose, &one.model).cmp(&(other.purpose, &other.model)));
        let mut sums = Self::default();
        for row in rows {
            add(&mut sums.roles, role_of(row.purpose), row);
            add(&mut sums.stages, stage_of(row.purpose), row);
            add(&mut sums.models, &row.model, row);
        }
        sums
    }

    /// The three divisions with their titles.
    pub fn divisions(&self) -> [(&'static str, &[CostPart]); 3] {
        [("by role", &self.roles), ("by stage", &self.stages), ("by model", &self.models)]
    }
}

fn add(parts: &mut Vec<CostPart>, name: &str, row: &CallCosts) {
    let known = parts.iter().position(|part| part.name == name);
    let at = known.unwrap_or(parts.len());
    if known.is_none() {
        parts.push(CostPart {
            name: name.to_owned(),
            calls: 0,
            prompt_tokens: 0,
            output_tokens: 0,
            cost_micro_usd: MicroUsd::ZERO,
            unpriced_calls: 0,
        });
    }
    let Some(part) = parts.get_mut(at) else { return };
    part.calls = part.calls.saturating_add(row.calls);
    part.prompt_tokens = part.prompt_tokens.saturating_add(row.prompt_tokens);
    part.output_tokens = part.output_tokens.saturating_add(row.output_tokens);
    part.cost_micro_usd = part.cost_micro_usd.saturating_add(row.cost_micro_usd);
    part.unpriced_calls = part.unpriced_calls.saturating_add(row.unpriced_calls);
}

/// Who makes calls with this purpose. `web/src/results/costs.tsx` has the same names.
pub(crate) fn role_of(purpose: CallPurpose) -> &'static str {
    match purpose {
        CallPurpose::SynthesizeFinancials | CallPurpose::SynthesizeNews => "evidence",
        CallPurpose::InferFinancial | CallPurpose::InferTrend => "inference",
        CallPurpose::Analyst => "analysts",
        CallPurpose::Critic | CallPurpose::Critique => "critic",
        CallPurpose::DecisionMaker
        | CallPurpose::Score
        | CallPurpose::ScoreNothing
        | CallPurpose::ScoreBaseline => "decision makers",
        CallPurpose::PanelScore | CallPurpose::Forecast => "panel",
        CallPurpose::Generate => "programmer",
        CallPurpose::Edit => "editor",
        CallPurpose::Review => "reviewer",
        _ => "other",
    }
}

/// The stage of calls with this purpose. `web/src/results/costs.tsx` has the same names.
pub(crate) fn stage_of(purpose: CallPurpose) -> &'static str {
    match purpose {
        CallPurpose::SynthesizeFinancials | CallPurpose::SynthesizeNews => "gather",
        CallPurpose::InferFinancial | CallPurpose::InferTrend => "infer",
        CallPurpose::Analyst => "analyze",
        CallPurpose::Critic | CallPurpose::DecisionMaker => "debate",
        CallPurpose::Score => "score",
        CallPurpose::ScoreNothing | CallPurpose::ScoreBaseline => "score without debate",
        CallPurpose::PanelScore | CallPurpose::Forecast => "panel",
        CallPurpose::Generate => "write",
        CallPurpose::Critique => "critique",
        CallPurpose::Edit => "edit",
        CallPurpose::Review => "review",
        _ => "other",
    }
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;
