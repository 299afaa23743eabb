//! Estimates the calls, tokens and cost of a consultation before anything is spent.

mod report;

use moothall_core::MicroUsd;
use moothall_core::consult::{
    Committee, ConsultEstimate, ConsultInput, RoleEstimate, RoleModels, VerdictMode, estimate,
    needed_window,
};
use moothall_core::debate::CallSettings;
use moothall_core::model::{ModelName, TokenUsage};
use moothall_models::catalog::ModelPrices;
use moothall_models::{Budget, Catalog};

use crate::context::CommandContext;
use crate::display::{cents, short_number};
use crate::launch::run_speed::RunSpeed;

/// Reservations count every prompt byte as a token, about four times too many. The cap includes a
/// few such calls, so a short run is not stopped by its own reservations.
const BYTES_PER_TOKEN: u64 = 4;
const SPARE_CALLS: u64 = 3;

/// An estimate with prices.
#[derive(Debug)]
pub(crate) struct CostEstimate {
    estimate: ConsultEstimate,
    /// The length of the evidence in tokens, if known.
    evidence: Option<u64>,
    /// The cost of each role, in the order of the estimate; `None` if a price is unknown.
    costs: Vec<Option<CostRange>>,
    /// The expected cost; `None` if a price is unknown.
    pub(crate) cost: Option<CostRange>,
    /// The cost if nothing is read from the provider's cache.
    uncached: Option<MicroUsd>,
    /// The upper estimate if the most expensive fallbacks give all answers, if that is more.
    pub(crate) with_fallbacks: Option<FallbackCost>,
    /// Whether all models are free.
    pub(crate) free: bool,
    /// Upper bound of one call, in dollars and tokens.
    worst_call: (Option<MicroUsd>, u64),
    dated: String,
    moves: u32,
    rounds: u32,
    ticker: String,
    /// The longest call, if nothing is shortened to fit a window.
    largest_call: TokenUsage,
    small_windows: Vec<SmallWindow>,
    cheaper: Vec<CheaperVerdict>,
    /// The speed of earlier runs with the same model.
    pub(crate) speed: Option<RunSpeed>,
}

/// A model for whose window prompts are shortened, or whose window is unknown.
#[derive(Debug)]
pub(crate) struct SmallWindow {
    model: ModelName,
    window: Option<u64>,
}

/// The longest call of a consultation whose prompts are not shortened to fit a window.
fn largest_call(input: &ConsultInput, evidence: Option<u64>) -> TokenUsage {
    let CallSettings { message_tokens, document_tokens, window_tokens, .. } =
        CallSettings::default();
    let calls =
        CallSettings { message_tokens, document_tokens, window_tokens, ..input.calls.clone() };
    estimate(&ConsultInput { calls, ..input.clone() }, evidence).largest_call
}

fn small_windows(
    catalog: &Catalog,
    input: &ConsultInput,
    largest: &TokenUsage,
) -> Vec<SmallWindow> {
    let needed = needed_window(largest);
    let models = input.called_models().into_iter().filter(|model| !model.is_demo());
    let windows = models
        .map(|model| SmallWindow { model: model.clone(), window: catalog.card(model).context });
    windows.filter(|small| small.window.is_none_or(|window| window < needed)).collect()
}

/// The same consultation with a verdict that costs less.
#[derive(Debug)]
struct CheaperVerdict {
    flag: &'static str,
    calls: u32,
    /// `None` if a price is unknown.
    cost: Option<CostRange>,
}

/// Rounds that are nearly as good for a verdict as more of them.
const ENOUGH_ROUNDS: u32 = 4;

/// Cheaper ways to a verdict, if the best moves are debated again.
fn cheaper_verdicts(
    catalog: &Catalog,
    input: &ConsultInput,
    evidence: Option<u64>,
) -> Vec<CheaperVerdict> {
    if input.committee.verdict_mode() != VerdictMode::Full {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut add = |flag, change: &dyn Fn(&mut Committee)| {
        let mut input = input.clone();
        change(&mut input.committee);
        let estimate = CostEstimate::of(catalog, &input, evidence);
        let calls = estimate.estimate.all_calls();
        found.push(CheaperVerdict { flag, calls, cost: estimate.cost });
    };
    if input.committee.rounds > ENOUGH_ROUNDS {
        add("--rounds 4", &|committee| committee.rounds = ENOUGH_ROUNDS);
    }
    add("--verdict panel", &|committee| {
        if let Some(plan) = &mut committee.verdict {
            plan.again.clear();
        }
    });
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CostRange {
    pub(crate) low: MicroUsd,
    pub(crate) high: MicroUsd,
}

/// The upper estimate with fallbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FallbackCost {
    AtMost(MicroUsd),
    /// The price of a fallback is unknown.
    Unknown,
}

/// The cost of the same consultation with another model.
#[derive(Debug)]
pub(crate) struct AlternativeCost {
    model: ModelName,
    /// `None` if the price is unknown.
    cost: Option<CostRange>,
}

/// The spend limit of a run and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpendLimit {
    /// Set by a flag or the configuration.
    Given(Budget),
    /// 1.5 times the upper estimate, in dollars.
    Dollars(MicroUsd),
    /// 1.5 times the upper estimate, in tokens, because a price is unknown.
    Tokens(u64),
    /// No limit, because all models are free.
    None,
}

impl SpendLimit {
    pub(crate) fn budget(self) -> Budget {
        match self {
            Self::Given(budget) => budget,
            Self::Dollars(usd) => Budget { usd: Some(usd), tokens: None },
            Self::Tokens(tokens) => Budget { usd: None, tokens: Some(tokens) },
            Self::None => Budget::default(),
        }
    }

    fn description(self) -> String {
        match self {
            Self::Given(Budget { usd: Some(usd), .. }) => format!("{usd}, as configured"),
            Self::Given(Budget { tokens, .. }) => {
                format!("{} tokens, as configured", tokens.unwrap_or_default())
            }
            Self::Dollars(usd) => {
                format!("{}, 1.5 times the upper estimate; change it with `--budget`", cents(usd))
            }
            Self::Tokens(tokens) => format!(
                "{} tokens, 1.5 times the upper estimate, because a price is unknown; \
                 change it with `--budget-tokens`",
                short_number(tokens)
            ),
            Self::None => "none (free models)".to_owned(),
        }
    }
}

impl CostEstimate {
    /// `evidence` is the length of the evidence in tokens, if known.
    pub(crate) fn of(catalog: &Catalog, input: &ConsultInput, evidence: Option<u64>) -> Self {
        let estimate = estimate(input, evidence);
        let prices: Vec<Option<ModelPrices>> =
            estimate.roles.iter().map(|role| catalog.card(&role.model).prices).collect();
        let priced = |of: &dyn Fn(&ModelPrices, usize) -> MicroUsd| -> Vec<Option<MicroUsd>> {
            let one =
                |(at, prices): (usize, &Option<ModelPrices>)| prices.map(|prices| of(&prices, at));
            prices.iter().enumerate().map(one).collect()
        };
        let roles = &estimate.roles;
        let low = priced(&|prices, at| cost_of(prices, &roles[at].low, roles[at].calls));
        let high = priced(&|prices, at| cost_of(prices, &roles[at].high, roles[at].calls));
        let uncached =
            priced(&|prices, at| cost_of(prices, &without_cache(&roles[at].high), roles[at].calls));
        let costs: Vec<Option<CostRange>> = low
            .iter()
            .zip(&high)
            .map(|pair| Some(CostRange { low: (*pair.0)?, high: (*pair.1)? }))
            .collect();
        let sum = |all: &[Option<MicroUsd>]| all.iter().copied().sum::<Option<MicroUsd>>();
        let cost = sum(&low).zip(sum(&high)).map(|(low, high)| CostRange { low, high });
        let worst = |usage: &TokenUsage, calls: u32| TokenUsage {
            input: average(usage, calls).prompt().saturating_mul(BYTES_PER_TOKEN),
            output: average(usage, calls).output,
            ..TokenUsage::default()
        };
        // The most expensive model of a role; `None` if a price is unknown.
        let dearest = |of: &dyn Fn(&ModelPrices, &RoleEstimate) -> MicroUsd| {
            let models = |role: &RoleEstimate| {
                let models = std::iter::once(&role.model).chain(&role.fallbacks);
                let costs = models.map(|model| Some(of(&catalog.card(model).prices?, role)));
                costs.reduce(|one, other| Some(one?.max(other?))).flatten()
            };
            roles.iter().map(models).collect::<Vec<Option<MicroUsd>>>()
        };
        let worst_usd = dearest(&|prices, role| prices.cost(&worst(&role.high, role.calls)));
        let fallback_high = sum(&dearest(&|prices, role| cost_of(prices, &role.high, role.calls)));
        let with_fallbacks = match (cost, fallback_high) {
            (Some(range), Some(most)) if most > range.high => Some(FallbackCost::AtMost(most)),
            (Some(_), None) => Some(FallbackCost::Unknown),
            _ => None,
        };
        let largest_call = largest_call(input, evidence);
        let worst_tokens = roles.iter().map(|role| worst(&role.high, role.calls).total()).max();
        Self {
            costs,
            cost,
            uncached: sum(&uncached),
            with_fallbacks,
            free: with_fallbacks.is_none()
                && prices.iter().all(|prices| prices.is_some_and(|prices| prices.is_free())),
            worst_call: (worst_usd.into_iter().max().flatten(), worst_tokens.unwrap_or(0)),
            dated: catalog.dated().to_owned(),
            moves: input.all_moves(),
            rounds: input.committee.rounds,
            ticker: input.gather.subject().to_owned(),
            small_windows: small_windows(catalog, input, &largest_call),
            largest_call,
            cheaper: cheaper_verdicts(catalog, input, evidence),
            speed: None,
            estimate,
            evidence,
        }
    }

    /// Cheaper ways to a verdict, for prompts.
    pub(crate) fn cheaper_lines(&self) -> Vec<String> {
        let line = |CheaperVerdict { flag, calls, cost }: &CheaperVerdict| {
            let cost = match cost {
                _ if self.free => String::new(),
                Some(range) => format!(", {}", format_range(*range)),
                None => ", price unknown".to_owned(),
            };
            format!("with `{flag}`: {calls} calls{cost}")
        };
        self.cheaper.iter().map(line).collect()
    }

    /// The limit to apply: `given`, or one derived from the estimate.
    pub(crate) fn cap(&self, given: Budget) -> SpendLimit {
        if given != Budget::default() {
            return SpendLimit::Given(given);
        }
        let (worst_usd, worst_tokens) = self.worst_call;
        let with_headroom = |upper: u64, one: u64| {
            (upper.saturating_mul(3) / 2).max(upper.saturating_add(one.saturating_mul(SPARE_CALLS)))
        };
        match self.upper_cost() {
            _ if self.free => SpendLimit::None,
            Some(most) => {
                let worst = worst_usd.unwrap_or_default().micros();
                SpendLimit::Dollars(MicroUsd::new(with_headroom(most.micros(), worst)))
            }
            None => SpendLimit::Tokens(with_headroom(self.estimate.high().total(), worst_tokens)),
        }
    }

    /// The upper estimate, also if fallbacks give all answers; `None` if a price is unknown.
    pub(crate) fn upper_cost(&self) -> Option<MicroUsd> {
        match self.with_fallbacks {
            None => self.cost.map(|range| range.high),
            Some(FallbackCost::AtMost(most)) => Some(most),
            Some(FallbackCost::Unknown) => None,
        }
    }

    /// The cost with fallbacks, if it is higher.
    fn fallback_note(&self) -> Option<String> {
        Some(match self.with_fallbacks? {
            FallbackCost::AtMost(most) => format!("up to {} with fallback models", cents(most)),
            FallbackCost::Unknown => "price of a fallback model unknown".to_owned(),
        })
    }

    /// A one-line summary for prompts.
    pub(crate) fn line(&self) -> String {
        let cost = match self.cost {
            _ if self.free => "free".to_owned(),
            Some(range) => format_range(range),
            None => "price unknown".to_owned(),
        };
        let tokens = short_number(self.estimate.high().total());
        let note = self.fallback_note().map_or_else(String::new, |note| format!(", {note}"));
        format!("{} calls, up to {tokens} tokens, {cost}{note}", self.estimate.all_calls())
    }

    /// The same consultation with the default models of other providers, if one paid model has
    /// every role.
    pub(crate) fn alternatives(
        &self,
        context: &CommandContext,
        input: &ConsultInput,
    ) -> Vec<AlternativeCost> {
        let models = input.distinct_models();
        let [model] = models.as_slice() else { return Vec::new() };
        if self.free {
            return Vec::new();
        }
        let alternative = |model: ModelName| {
            let input = ConsultInput { models: RoleModels::all(model.clone()), ..input.clone() };
            AlternativeCost { cost: Self::of(&context.catalog, &input, self.evidence).cost, model }
        };
        context.alternatives_to(model).into_iter().map(alternative).collect()
    }
}

/// The cost of several calls. Prices rise for long prompts, so the average call is priced.
fn cost_of(prices: &ModelPrices, usage: &TokenUsage, calls: u32) -> MicroUsd {
    let one = prices.cost(&average(usage, calls)).micros();
    MicroUsd::new(one.saturating_mul(u64::from(calls)))
}

fn average(usage: &TokenUsage, calls: u32) -> TokenUsage {
    let calls = u64::from(calls.max(1));
    TokenUsage {
        input: usage.input.div_ceil(calls),
        cache_read: usage.cache_read.div_ceil(calls),
        cache_write_5m: usage.cache_write_5m.div_ceil(calls),
        cache_write_1h: usage.cache_write_1h.div_ceil(calls),
        output: usage.output.div_ceil(calls),
        reasoning: usage.reasoning.div_ceil(calls),
    }
}

fn without_cache(usage: &TokenUsage) -> TokenUsage {
    TokenUsage { input: usage.prompt(), output: usage.output, ..TokenUsage::default() }
}

/// Estimates are rounded up to whole cents.
fn format_range(range: CostRange) -> String {
    let whole = |amount: MicroUsd| MicroUsd::new(amount.micros().div_ceil(10_000) * 10_000);
    match (whole(range.low), whole(range.high)) {
        (low, high) if low == high => cents(high),
        (low, high) => format!("{} to {}", cents(low), cents(high)),
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
