//! Estimates the model usage of a consultation before anything is spent.
//!
//! Prompts are counted as they will be sent: each prompt of a chain is the previous one plus the
//! new messages, and a caching provider reads the previous part from its cache. The low estimate
//! assumes short messages, a smaller dossier and no rewrites. The high estimate assumes messages of
//! full length, every rewrite, and a dossier that each debate writes to the cache again. Retries
//! after unreadable replies are not included.

use super::committee::{Committee, CommitteeMember, ScoreMetric};
use super::dossier::{dossier_tokens, reading_tokens};
use super::input::{ConsultInput, EvidenceSource};
use super::panel_prompt::{self, CASE_TOKENS};
use super::prompt::document_tokens;
use super::proposals;
use super::verdict_plan::{ControlPlan, VerdictPlan};
use crate::debate::{CALCULATION_TOKENS, MAX_PER_DEBATE, base_calls, window_for};
use crate::model::{CallPurpose, ModelList, ModelName, TokenUsage};
use crate::tokens_expected;

/// Head and citation rules of a dossier.
const DOSSIER_RULES_TOKENS: u64 = 400;

/// The same in the prompts of F1 and F2, which need few rules.
const INFERENCE_RULES_TOKENS: u64 = 250;

/// Estimated model usage of a consultation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsultEstimate {
    /// Model calls, excluding rewrites, retries and scores without a debate.
    pub calls: u32,
    /// Model calls for scores without a debate: doing nothing, and the baseline.
    pub beside: u32,
    /// By role, in the order of the stages.
    pub roles: Vec<RoleEstimate>,
    /// The longest call of the high estimate.
    pub largest_call: TokenUsage,
}

/// The smallest context window in which this call is not shortened.
pub fn needed_window(call: &TokenUsage) -> u64 {
    window_for(call.total())
}

/// Estimate for the members of a role that use one model. Prices differ by model, so the cost is a
/// sum over these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleEstimate {
    /// The role.
    pub purpose: CallPurpose,
    /// Preferred model of these members.
    pub model: ModelName,
    /// Its fallbacks.
    pub fallbacks: Vec<ModelName>,
    /// Ids of the members of this role that use the model.
    pub members: Vec<String>,
    /// Model calls, excluding rewrites and retries.
    pub calls: u32,
    /// Low estimate.
    pub low: TokenUsage,
    /// High estimate.
    pub high: TokenUsage,
}

impl ConsultEstimate {
    /// All model calls, excluding rewrites and retries.
    pub fn all_calls(&self) -> u32 {
        self.calls.saturating_add(self.beside)
    }

    /// Low estimate over all roles.
    pub fn low(&self) -> TokenUsage {
        self.roles.iter().fold(TokenUsage::default(), |sum, role| sum.plus(&role.low))
    }

    /// High estimate over all roles.
    pub fn high(&self) -> TokenUsage {
        self.roles.iter().fold(TokenUsage::default(), |sum, role| sum.plus(&role.high))
    }
}

/// Model calls of a consultation, excluding rewrites and retries: 922 for the board, 924 with
/// synthetic evidence, plus three that score doing nothing.
pub fn calls(input: &ConsultInput) -> u32 {
    estimate(input, None).all_calls()
}

/// Estimates a consultation. `evidence` is the length of the gathered evidence in tokens, if known.
pub fn estimate(input: &ConsultInput, evidence: Option<u64>) -> ConsultEstimate {
    let committee = &input.committee;
    let most = dossier_tokens(input.calls.window_tokens);
    let most = most + input.added_tokens(&["dossier", "cite", "cite_documents"]);
    let full = u64::from(document_tokens(input));
    let (low, high) = match evidence {
        // F1 and F2 become part of the dossier.
        Some(known) => {
            let reading = reading_tokens(input.calls.window_tokens);
            let known = known.saturating_add(DOSSIER_RULES_TOKENS);
            let shortest = known.saturating_add(2 * reading.min(full / 6));
            (shortest.min(most), known.saturating_add(2 * reading).min(most))
        }
        None => (most * 5 / 8, most),
    };
    let read = evidence.map(|known| known.saturating_add(INFERENCE_RULES_TOKENS).min(most));
    let message = u64::from(input.calls.message_tokens);
    let calculations = CalculationTokens::of(input);
    let low = TextLengths {
        read: read.unwrap_or(low),
        dossier: low,
        document: full / 6,
        message: 150.min(message),
        move_: 500,
    };
    let message = message + calculations.message;
    let high = TextLengths {
        read: read.unwrap_or(high),
        dossier: high,
        document: full,
        message,
        move_: full / 3,
    };
    let mut roles = Vec::new();
    let mut add = |purpose,
                   (models, members): (&ModelList, Vec<&CommitteeMember>),
                   count: u32,
                   of: &dyn Fn(&TextLengths, EstimateBound) -> TokenUsage| {
        let (low, high) = (of(&low, EstimateBound::Low), of(&high, EstimateBound::High));
        let members = members.iter().map(|member| member.id.clone()).collect();
        let (model, fallbacks) = (models.first().clone(), models.fallbacks().to_vec());
        roles.push(RoleEstimate { purpose, model, fallbacks, members, calls: count, low, high });
    };
    if input.gather.source == EvidenceSource::Synthetic {
        for purpose in [CallPurpose::SynthesizeFinancials, CallPurpose::SynthesizeNews] {
            let agent = (input.inference_model(purpose), Vec::new());
            add(purpose, agent, 1, &|lengths, _| TokenUsage {
                input: 150,
                output: lengths.document,
                ..TokenUsage::default()
            });
        }
    }
    for purpose in [CallPurpose::InferFinancial, CallPurpose::InferTrend] {
        let agent = (input.inference_model(purpose), Vec::new());
        let inference = match purpose {
            CallPurpose::InferTrend => ["trend", "trend_documents"],
            _ => ["financial", "financial_documents"],
        };
        add(purpose, agent, 1, &|lengths, bound| {
            let own = 500 + input.added_tokens(&inference);
            chain(0, lengths.read + own, lengths.document, 300, 1 + bound.rewrites(1))
        });
    }
    let moves = input.all_moves();
    let brief = input.terms.brief.as_deref().map_or(0, |brief| tokens_expected(brief) + 80);
    let schema = tokens_expected(proposals::schema(input.calls.prompts, 3).text());
    let own = 600 + brief + schema + input.added_tokens(&["analyst", "propose", "brief"]);
    // Each rewrite branches off the first reply.
    let rewrite =
        |lengths: &TextLengths| after(lengths.dossier + own, lengths.document + 300, lengths.move_);
    let analysts = input.called_analysts();
    let called = analysts.iter().map(|(analyst, _)| *analyst);
    for group in by_model(called, |analyst| input.analyst_model(analyst)) {
        let ids: Vec<&str> = group.1.iter().map(|member| member.id.as_str()).collect();
        let in_group = analysts.iter().filter(|(one, _)| ids.contains(&one.id.as_str()));
        let shares: Vec<u32> = in_group.map(|(_, share)| *share).collect();
        add(CallPurpose::Analyst, group, count(shares.len()), &|lengths, bound| {
            let asked = shares.iter().map(|share| {
                let first = chain(lengths.dossier, own, lengths.document, 300, 1);
                first.plus(&times(&rewrite(lengths), u64::from(bound.rewrites(*share))))
            });
            with_one_cache_write(
                asked.fold(TokenUsage::default(), |sum, one| sum.plus(&one)),
                lengths.dossier,
            )
        });
    }
    let mut debate = DebatePromptLengths::of(committee);
    debate.critic += input.added_tokens(&["critic", "case", "open", "findings", "press"]);
    debate.maker += input.added_tokens(&["decision_maker", "case", "answer"]);
    debate.scoring += input.added_tokens(&["score", "score_alone"]);
    debate.critic += calculations.rules;
    debate.maker += calculations.rules;
    let panel = PanelCounts::of(input, moves);
    let short = debate.with_rounds(panel.rounds_again);
    let opening_and_threads = moves
        .saturating_mul(debate.critic_calls())
        .saturating_add(panel.whole_debates.saturating_mul(debate.critic_calls()))
        .saturating_add(panel.short_debates.saturating_mul(short.critic_calls()));
    let whole = moves.saturating_add(panel.whole_debates);
    let critic = (input.critic_model(), vec![&committee.critic]);
    add(CallPurpose::Critic, critic, opening_and_threads, &|lengths, bound| {
        let again = times(&short.critic(lengths), u64::from(panel.short_debates));
        let sum = times(&debate.critic(lengths), u64::from(whole)).plus(&again);
        bound.with_dossier_cache_write(sum, lengths.dossier, moves)
    });
    let makers = by_model(&committee.decision_makers, |maker| input.decision_maker_model(maker));
    for group in &makers {
        let makers = count(group.1.len());
        let rounds = whole
            .saturating_mul(debate.rounds)
            .saturating_add(panel.short_debates.saturating_mul(short.rounds));
        let answers = rounds.saturating_mul(makers);
        add(CallPurpose::DecisionMaker, group.clone(), answers, &|lengths, bound| {
            let of_all = u64::from(whole).saturating_mul(u64::from(makers));
            let again = u64::from(panel.short_debates).saturating_mul(u64::from(makers));
            let again = times(&short.decision_maker(lengths), again);
            let sum = times(&debate.decision_maker(lengths), of_all).plus(&again);
            bound.with_dossier_cache_write(sum, lengths.dossier, moves)
        });
    }
    let mut score = |purpose, of: u32, one: &dyn Fn(&TextLengths) -> TokenUsage| {
        for group in &makers {
            let calls = of.saturating_mul(count(group.1.len()));
            add(purpose, group.clone(), calls, &|lengths, _| {
                times(&one(lengths), u64::from(calls))
            });
        }
    };
    score(CallPurpose::Score, moves, &|lengths| debate.score(lengths));
    // Counted alike for debated moves: the dossier is read from the cache, the rest is new.
    if input.terms.do_nothing {
        score(CallPurpose::ScoreNothing, 1, &|lengths| debate.alone(lengths));
    }
    if input.terms.baseline {
        score(CallPurpose::ScoreBaseline, moves, &|lengths| debate.alone(lengths));
    }
    for group in by_model(&committee.panel, |member| input.panel_model(member)) {
        let calls = panel.cases.saturating_mul(count(group.1.len()));
        let own = panel_prompt::rules_tokens(input) + debate.scoring;
        add(CallPurpose::PanelScore, group, calls, &|lengths, bound| {
            let case = CASE_TOKENS + calculations.case;
            let one = after(lengths.dossier + own, case, lengths.message);
            // Members of one model share the dossier in its cache.
            let sum = times(&one, u64::from(calls));
            bound.with_dossier_cache_write(sum, lengths.dossier, 1)
        });
    }
    if committee.verdict.as_ref().is_some_and(VerdictPlan::asks_forecasts) {
        for group in by_model(&committee.panel, |member| input.panel_model(member)) {
            let calls = count(group.1.len());
            add(CallPurpose::Forecast, group, calls, &|lengths, _| {
                times(&after(lengths.dossier, CASE_TOKENS, lengths.message), u64::from(calls))
            });
        }
    }
    // The scores follow a whole debate. Cases of the panel have a fixed length.
    let longest = [rewrite(&high), debate.score(&high)];
    let largest_call = longest.into_iter().max_by_key(TokenUsage::total).unwrap_or_default();
    if let Some(parent) = &input.parent {
        roles.retain(|role| !parent.from.reuses(role.purpose));
    }
    let is_beside = |role: &&RoleEstimate| {
        matches!(role.purpose, CallPurpose::ScoreNothing | CallPurpose::ScoreBaseline)
    };
    roles.retain(|role| role.purpose != CallPurpose::PanelScore || role.calls > 0);
    let all = roles.iter().map(|role| role.calls).fold(0, u32::saturating_add);
    let beside = roles.iter().filter(is_beside);
    let beside = beside.map(|role| role.calls).fold(0, u32::saturating_add);
    ConsultEstimate { calls: all.saturating_sub(beside), beside, roles, largest_call }
}

/// How much calculations add to prompts and answers; nothing if they are off.
#[derive(Default)]
struct CalculationTokens {
    /// To a message, on average over a debate.
    message: u64,
    rules: u64,
    /// To a case of the panel.
    case: u64,
}

impl CalculationTokens {
    fn of(input: &ConsultInput) -> Self {
        if !input.terms.calculations {
            return Self::default();
        }
        let makers = count(input.committee.decision_makers.len());
        let turns = u64::from(base_calls(input.committee.rounds, makers)).max(1);
        let all = u64::from(CALCULATION_TOKENS) * MAX_PER_DEBATE as u64;
        Self { message: all.div_ceil(turns), rules: 400, case: 1_600 }
    }
}

/// How much a panel adds: an upper bound, because repeats may end early and facts for planted moves
/// may be missing.
struct PanelCounts {
    /// Debates of all rounds that only the panel scores: those of later passes.
    whole_debates: u32,
    /// Short debates that only the panel scores: repeats, doing nothing and planted moves.
    short_debates: u32,
    rounds_again: u32,
    /// Cases that every member scores.
    cases: u32,
}

impl PanelCounts {
    fn of(input: &ConsultInput, moves: u32) -> Self {
        let Some(plan) = &input.committee.verdict else {
            return Self { whole_debates: 0, short_debates: 0, rounds_again: 1, cases: 0 };
        };
        let ControlPlan { known_bad, weakened } = plan.controls;
        let planted = known_bad.saturating_add(u32::from(input.terms.do_nothing));
        let short_debates = plan.schedule().most_repeats(moves).saturating_add(planted);
        let copies = weakened.min(moves).saturating_mul(2);
        let cases = moves.saturating_add(short_debates).saturating_add(copies);
        Self {
            whole_debates: moves.saturating_mul(plan.repeat.saturating_sub(1)),
            short_debates: short_debates.saturating_mul(plan.repeat),
            rounds_again: plan.rounds_again,
            cases: cases.saturating_mul(plan.repeat),
        }
    }
}

/// Groups members by model, in the order of the committee.
fn by_model<'a>(
    members: impl IntoIterator<Item = &'a CommitteeMember>,
    model: impl Fn(&'a CommitteeMember) -> &'a ModelList,
) -> Vec<(&'a ModelList, Vec<&'a CommitteeMember>)> {
    let mut groups: Vec<(&ModelList, Vec<&CommitteeMember>)> = Vec::new();
    for member in members {
        let own = model(member);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, group)) => group.push(member),
            None => groups.push((own, vec![member])),
        }
    }
    groups
}

fn count(members: usize) -> u32 {
    u32::try_from(members).unwrap_or(u32::MAX)
}

/// Text lengths in tokens.
struct TextLengths {
    /// The evidence that F1 and F2 read, without what they write.
    read: u64,
    dossier: u64,
    document: u64,
    message: u64,
    move_: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EstimateBound {
    Low,
    High,
}

impl EstimateBound {
    fn rewrites(self, most: u32) -> u32 {
        if self == Self::High { most } else { 0 }
    }

    /// Counts the first read of the dossier as a cache write: once, or once per debate if all
    /// debates start at the same time.
    fn with_dossier_cache_write(self, usage: TokenUsage, dossier: u64, debates: u32) -> TokenUsage {
        let writes = if self == Self::High { u64::from(debates) } else { 1 };
        let written = dossier.saturating_mul(writes).min(usage.cache_read);
        TokenUsage {
            cache_read: usage.cache_read - written,
            cache_write_5m: usage.cache_write_5m + written,
            ..usage
        }
    }
}

/// Prompt lengths of a debate, in tokens.
struct DebatePromptLengths {
    rounds: u32,
    makers: u32,
    critic: u64,
    maker: u64,
    scoring: u64,
}

impl DebatePromptLengths {
    fn of(committee: &Committee) -> Self {
        let lens = |seat: &CommitteeMember| tokens_expected(&seat.lens) + 500;
        let makers = committee.decision_makers.iter();
        let level = |metric: &ScoreMetric| -> u64 {
            let levels = metric.levels.iter().map(|level| tokens_expected(&level.means) + 4);
            tokens_expected(&metric.asks) + levels.sum::<u64>()
        };
        Self {
            rounds: committee.rounds,
            makers: u32::try_from(committee.decision_makers.len()).unwrap_or(u32::MAX),
            critic: lens(&committee.critic),
            maker: makers.map(lens).max().unwrap_or(0),
            scoring: 100 + committee.metrics.iter().map(level).sum::<u64>(),
        }
    }

    fn with_rounds(&self, rounds: u32) -> Self {
        Self { rounds, ..*self }
    }

    /// The opening, then one call in each thread and later round.
    fn critic_calls(&self) -> u32 {
        self.makers.saturating_mul(self.rounds.saturating_sub(1)).saturating_add(1)
    }

    /// The opening, followed by one chain per decision maker that branches off it.
    fn critic(&self, lengths: &TextLengths) -> TokenUsage {
        let own = self.critic + lengths.move_;
        let opening = chain(lengths.dossier, own, lengths.message, 0, 1);
        let threads = (1..self.rounds).fold(TokenUsage::default(), |sum, round| {
            let before = lengths.dossier + own + 2 * u64::from(round - 1) * lengths.message;
            sum.plus(&after(before, 2 * lengths.message + USER_TURN_TOKENS, lengths.message))
        });
        opening.plus(&times(&threads, u64::from(self.makers)))
    }

    fn decision_maker(&self, lengths: &TextLengths) -> TokenUsage {
        let own = self.maker + lengths.move_ + lengths.message + USER_TURN_TOKENS;
        chain(
            lengths.dossier,
            own,
            lengths.message,
            lengths.message + USER_TURN_TOKENS,
            self.rounds,
        )
    }

    fn alone(&self, lengths: &TextLengths) -> TokenUsage {
        let own = self.maker + lengths.move_ + self.scoring;
        after(lengths.dossier, own, lengths.message)
    }

    fn score(&self, lengths: &TextLengths) -> TokenUsage {
        let own = self.maker + lengths.move_;
        let before = lengths.dossier + own + 2 * u64::from(self.rounds) * lengths.message;
        after(before, lengths.message + self.scoring, lengths.message)
    }
}

/// Tokens that the user turn adds to the other side's message.
const USER_TURN_TOKENS: u64 = 60;

/// A conversation of `calls` calls after a shared prefix that is already cached.
fn chain(shared: u64, own: u64, answer: u64, question: u64, calls: u32) -> TokenUsage {
    let mut sum = TokenUsage::default();
    let (mut before, mut added) = (shared, own);
    for _ in 0..calls {
        sum = sum.plus(&after(before, added, answer));
        before += added;
        added = answer + question;
    }
    sum
}

/// One call: reads the earlier part from the cache and writes the added part to it.
fn after(before: u64, added: u64, answer: u64) -> TokenUsage {
    TokenUsage {
        cache_read: before,
        cache_write_5m: added,
        output: answer,
        ..TokenUsage::default()
    }
}

fn with_one_cache_write(usage: TokenUsage, shared: u64) -> TokenUsage {
    EstimateBound::Low.with_dossier_cache_write(usage, shared, 1)
}

fn times(usage: &TokenUsage, count: u64) -> TokenUsage {
    let many = |tokens: u64| tokens.saturating_mul(count);
    TokenUsage {
        input: many(usage.input),
        cache_read: many(usage.cache_read),
        cache_write_5m: many(usage.cache_write_5m),
        cache_write_1h: many(usage.cache_write_1h),
        output: many(usage.output),
        reasoning: many(usage.reasoning),
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
