//! The output of `--estimate`, as text and as JSON.

use std::fmt::Write as _;

use moothall_core::MicroUsd;
use moothall_core::consult::{ConsultEstimate, RoleEstimate, needed_window};
use moothall_core::model::{CallPurpose, ModelName};
use serde_json::{Value, json};

use super::{
    AlternativeCost, CheaperVerdict, CostEstimate, FallbackCost, SmallWindow, SpendLimit,
    format_range,
};
use crate::display::{cents, short_number};
use crate::terminal::{BOLD, DIM, YELLOW};

impl CostEstimate {
    /// The output of `--estimate`.
    pub(crate) fn render(&self, cap: SpendLimit, others: &[AlternativeCost], json: bool) -> String {
        match json {
            true => format!("{:#}\n", self.json(cap, others)),
            false => self.text(cap, others),
        }
    }

    pub(crate) fn text(&self, cap: SpendLimit, others: &[AlternativeCost]) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text, cap);
        for line in self.cheaper_lines() {
            let _ = writeln!(text, "{DIM}{line}{DIM:#}");
        }
        for AlternativeCost { model, cost } in others {
            let cost = cost.map_or_else(|| "price unknown".to_owned(), format_range);
            let _ = writeln!(text, "{DIM}with `--model {model}`: {cost}{DIM:#}");
        }
        text
    }

    fn write(&self, text: &mut String, cap: SpendLimit) -> std::fmt::Result {
        let (moves, rounds) = (self.moves, self.rounds);
        writeln!(text, "{BOLD}{}{BOLD:#}: {moves} moves, {rounds} rounds each", self.ticker)?;
        let names = self.estimate.roles.iter().map(|role| role.model.to_string().len());
        let wide = names.max().unwrap_or(0).max(5);
        let labels: Vec<String> =
            self.estimate.roles.iter().map(|role| role_label(&self.estimate, role)).collect();
        let label = labels.iter().map(String::len).max().unwrap_or(0).max(18);
        writeln!(
            text,
            "{BOLD}{:<label$}  {:<wide$}  {:>5}  {:>15}  {:>15}  {:>15}{BOLD:#}",
            "role", "model", "calls", "prompt tokens", "answer tokens", "cost"
        )?;
        for ((role, cost), name) in self.estimate.roles.iter().zip(&self.costs).zip(&labels) {
            writeln!(
                text,
                "{:<label$}  {:<wide$}  {:>5}  {:>15}  {:>15}  {:>15}",
                name,
                role.model.to_string(),
                role.calls,
                span(role.low.prompt(), role.high.prompt()),
                span(role.low.output, role.high.output),
                cost.map_or_else(|| "unknown".to_owned(), format_range),
            )?;
        }
        let (low, high) = (self.estimate.low(), self.estimate.high());
        writeln!(
            text,
            "{BOLD}{:<label$}  {:<wide$}  {:>5}  {:>15}  {:>15}  {:>15}{BOLD:#}",
            "all",
            "",
            self.estimate.all_calls(),
            span(low.prompt(), high.prompt()),
            span(low.output, high.output),
            self.cost.map_or_else(|| "unknown".to_owned(), format_range),
        )?;
        if let Some(note) = self.fallback_note() {
            let mut names: Vec<&ModelName> =
                self.estimate.roles.iter().flat_map(|role| &role.fallbacks).collect();
            names.sort();
            names.dedup();
            let names: Vec<String> = names.into_iter().map(ToString::to_string).collect();
            writeln!(text, "{DIM}{note} ({}){DIM:#}", names.join(", "))?;
        }
        if !self.free {
            if let Some(uncached) = self.uncached {
                let cached = share(high.cache_read, high.prompt());
                writeln!(
                    text,
                    "{DIM}assumes that {cached}% of the prompt tokens are read from the provider's cache; \
                     {} without the cache{DIM:#}",
                    cents(uncached)
                )?;
            }
            writeln!(text, "{DIM}prices as of {}; retries are not included{DIM:#}", self.dated)?;
        }
        match (&self.speed, self.only_model()) {
            (Some(speed), _) => {
                writeln!(text, "{DIM}{}{DIM:#}", speed.line(low.total(), high.total()))?;
            }
            (None, Some(model)) => {
                writeln!(text, "{DIM}time unknown until a run with {model} has finished{DIM:#}")?;
            }
            (None, None) => {}
        }
        for small in &self.small_windows {
            writeln!(text, "{YELLOW}{}{YELLOW:#}", self.window_note(small))?;
        }
        writeln!(text, "{DIM}limit: {}{DIM:#}", cap.description())
    }

    /// The model of all roles, whose finished runs tell its speed.
    fn only_model(&self) -> Option<&ModelName> {
        if self.estimate.roles.iter().any(|role| !role.fallbacks.is_empty()) {
            return None;
        }
        let mut models = self.estimate.roles.iter().map(|role| &role.model);
        let first = models.next().filter(|model| !model.is_demo())?;
        models.all(|model| model == first).then_some(first)
    }

    pub(crate) fn window_note(&self, small: &SmallWindow) -> String {
        let (model, longest) = (&small.model, short_number(self.largest_call.prompt()));
        let window = match small.window {
            Some(window) => format!(
                "{model} has {window}: too small, so evidence and earlier rounds may be shortened"
            ),
            None => format!(
                "the context window of {model} is unknown; set `context` in [provider.{}]",
                model.provider()
            ),
        };
        format!("largest prompt about {longest} tokens; {window}")
    }

    pub(crate) fn json(&self, cap: SpendLimit, others: &[AlternativeCost]) -> Value {
        let others = others.iter().map(|AlternativeCost { model, cost }| {
            json!({
                "model": model,
                "low_usd": cost.map(|range| range.low.decimal()),
                "high_usd": cost.map(|range| range.high.decimal()),
            })
        });
        let roles = self.estimate.roles.iter().zip(&self.costs).map(|(role, cost)| {
            json!({
                "role": role.purpose,
                "model": role.model,
                "fallbacks": role.fallbacks,
                "members": role.members,
                "calls": role.calls,
                "low": role.low,
                "high": role.high,
                "low_usd": cost.map(|range| range.low.decimal()),
                "high_usd": cost.map(|range| range.high.decimal()),
            })
        });
        let budget = cap.budget();
        let cheaper = self.cheaper.iter().map(|CheaperVerdict { flag, calls, cost }| {
            json!({
                "flag": flag,
                "all_calls": calls,
                "low_usd": cost.map(|range| range.low.decimal()),
                "high_usd": cost.map(|range| range.high.decimal()),
            })
        });
        let small_windows = self.small_windows.iter().map(
            |SmallWindow { model, window }| json!({ "model": model, "context_tokens": window }),
        );
        json!({
            "ticker": self.ticker,
            "moves": self.moves,
            "rounds": self.rounds,
            "calls": self.estimate.calls,
            "beside_calls": self.estimate.beside,
            "all_calls": self.estimate.all_calls(),
            "low": self.estimate.low(),
            "high": self.estimate.high(),
            "largest_prompt_tokens": self.largest_call.prompt(),
            "needed_window_tokens": needed_window(&self.largest_call),
            "small_windows": small_windows.collect::<Vec<_>>(),
            "low_usd": self.cost.map(|range| range.low.decimal()),
            "high_usd": self.cost.map(|range| range.high.decimal()),
            "fallback_usd": match self.with_fallbacks {
                Some(FallbackCost::AtMost(most)) => Some(most.decimal()),
                Some(FallbackCost::Unknown) | None => None,
            },
            "uncached_usd": self.uncached.map(MicroUsd::decimal),
            "low_minutes": self.speed.as_ref().map(|speed| speed.minutes(self.estimate.low().total())),
            "high_minutes":
                self.speed.as_ref().map(|speed| speed.minutes(self.estimate.high().total())),
            "cap_usd": budget.usd.map(MicroUsd::decimal),
            "cap_tokens": budget.tokens,
            "prices_dated": self.dated,
            "roles": roles.collect::<Vec<_>>(),
            "alternatives": others.collect::<Vec<_>>(),
            "cheaper_verdicts": cheaper.collect::<Vec<_>>(),
        })
    }
}

fn span(low: u64, high: u64) -> String {
    match low == high {
        true => short_number(high),
        false => format!("{} – {}", short_number(low), short_number(high)),
    }
}

fn share(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}

/// The role, with its members if they use several models.
fn role_label(estimate: &ConsultEstimate, role: &RoleEstimate) -> String {
    let name = purpose(role.purpose);
    let rows = estimate.roles.iter().filter(|other| other.purpose == role.purpose);
    if rows.count() > 1 { format!("{name} {}", role.members.join(", ")) } else { name.to_owned() }
}

fn purpose(purpose: CallPurpose) -> &'static str {
    match purpose {
        CallPurpose::SynthesizeFinancials => "synthetic figures",
        CallPurpose::SynthesizeNews => "synthetic news",
        CallPurpose::InferFinancial => "inference F1",
        CallPurpose::InferTrend => "inference F2",
        CallPurpose::Analyst => "analysts",
        CallPurpose::Critic => "critic",
        CallPurpose::DecisionMaker => "decision makers",
        CallPurpose::Score => "scores",
        CallPurpose::ScoreNothing => "do-nothing option",
        CallPurpose::ScoreBaseline => "baseline scores",
        CallPurpose::PanelScore => "panel",
        CallPurpose::Forecast => "forecasts",
        _ => "others",
    }
}
