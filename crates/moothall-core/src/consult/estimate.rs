//! Estimates the model usage of a consultation before anything is spent.
//!
//! Prompts are counted as they will be sent: each prompt of a chain is the previous one plus the
//! new messages, and a caching provider reads the previous part from its cache. The low estimate
//! assumes short messages, a smaller dossier and no rewrites. The high estimate assumes messages of
//! full length, every rewrite, and a dossier that each debate writes to the cache again. Retries
//! after unreadable replies are not included.

use super::committee::{Committee, CommitteeMember, ScoreMetric};
use super::dossier::dossier_tokens;
use super::input::{ConsultInput, EvidenceSource};
use super::prompt::document_tokens;
use super::proposals;
use crate::model::{CallPurpose, ModelName, TokenUsage};
use crate::tokens_expected;

/// Estimated model usage of a consultation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsultEstimate {
    /// Model calls, excluding rewrites, retries and scores without a debate.
    pub calls: u32,
    /// Model calls for scores without a debate: doing nothing, and the baseline.
    pub beside: u32,
    /// By role, in the order of the stages.
    pub roles: Vec<RoleEstimate>,
}

/// Estimate for one role. Prices differ by model, so the cost is a sum over roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleEstimate {
    /// The role.
    pub purpose: CallPurpose,
    /// Model of this role.
    pub model: ModelName,
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

/// Estimates a consultation. `dossier` is the length of the dossier in tokens, if known.
pub fn estimate(input: &ConsultInput, dossier: Option<u32>) -> ConsultEstimate {
    let committee = &input.committee;
    let most = dossier_tokens(input.calls.window_tokens);
    let (low, high) = match dossier {
        Some(known) => (u64::from(known), u64::from(known)),
        None => (most * 5 / 8, most),
    };
    let full = u64::from(document_tokens(input));
    let message = u64::from(input.calls.message_tokens);
    let low =
        TextLengths { dossier: low, document: full / 6, message: 150.min(message), move_: 500 };
    let high = TextLengths { dossier: high, document: full, message, move_: full / 3 };
    let models = &input.models;
    let mut roles = Vec::new();
    let mut add = |purpose,
                   model: &ModelName,
                   count: u32,
                   of: &dyn Fn(&TextLengths, EstimateBound) -> TokenUsage| {
        let (low, high) = (of(&low, EstimateBound::Low), of(&high, EstimateBound::High));
        roles.push(RoleEstimate { purpose, model: model.clone(), calls: count, low, high });
    };
    if input.gather.source == EvidenceSource::Synthetic {
        for purpose in [CallPurpose::SynthesizeFinancials, CallPurpose::SynthesizeNews] {
            add(purpose, models.inference(), 1, &|lengths, _| TokenUsage {
                input: 150,
                output: lengths.document,
                ..TokenUsage::default()
            });
        }
    }
    for purpose in [CallPurpose::InferFinancial, CallPurpose::InferTrend] {
        add(purpose, models.inference(), 1, &|lengths, bound| {
            chain(0, lengths.dossier + 500, lengths.document, 300, 1 + bound.rewrites(1))
        });
    }
    let shares = committee.shares(input.moves);
    let analysts = u32::try_from(shares.iter().filter(|share| **share > 0).count()).unwrap_or(0);
    let moves = input.all_moves();
    let brief = input.terms.brief.as_deref().map_or(0, |brief| tokens_expected(brief) + 80);
    add(CallPurpose::Analyst, models.analyst(), analysts, &|lengths, bound| {
        let own = 600 + brief + tokens_expected(proposals::schema(input.calls.prompts, 3).text());
        let asked = shares.iter().filter(|share| **share > 0).map(|share| {
            let first = chain(lengths.dossier, own, lengths.document, 300, 1);
            // Each rewrite branches off the first reply.
            let again = after(lengths.dossier + own, lengths.document + 300, lengths.move_);
            first.plus(&times(&again, u64::from(bound.rewrites(*share))))
        });
        with_one_cache_write(
            asked.fold(TokenUsage::default(), |sum, one| sum.plus(&one)),
            lengths.dossier,
        )
    });
    let debate = DebatePromptLengths::of(committee);
    let opening_and_threads =
        moves.saturating_mul(1 + debate.makers.saturating_mul(debate.rounds.saturating_sub(1)));
    add(CallPurpose::Critic, models.critic(), opening_and_threads, &|lengths, bound| {
        let sum = times(&debate.critic(lengths), u64::from(moves));
        bound.with_dossier_cache_write(sum, lengths.dossier, moves)
    });
    let answers = moves.saturating_mul(debate.makers).saturating_mul(debate.rounds);
    add(CallPurpose::DecisionMaker, models.decision_maker(), answers, &|lengths, bound| {
        let sum = times(&debate.decision_makers(lengths), u64::from(moves));
        bound.with_dossier_cache_write(sum, lengths.dossier, moves)
    });
    add(
        CallPurpose::Score,
        models.decision_maker(),
        moves.saturating_mul(debate.makers),
        &|lengths, _| times(&debate.scores(lengths), u64::from(moves)),
    );
    if let Some(parent) = &input.parent {
        roles.retain(|role| !parent.from.reuses(role.purpose));
    }
    let base = roles.len();
    let mut beside = |purpose, of: u32| {
        let count = of.saturating_mul(debate.makers);
        // Counted alike for debated moves: the dossier is read from the cache, the rest is new.
        let usage = |lengths: &TextLengths| times(&debate.alone(lengths), u64::from(of));
        let (low, high) = (usage(&low), usage(&high));
        let model = models.decision_maker().clone();
        roles.push(RoleEstimate { purpose, model, calls: count, low, high });
    };
    if input.terms.do_nothing {
        beside(CallPurpose::ScoreNothing, 1);
    }
    if input.terms.baseline {
        beside(CallPurpose::ScoreBaseline, moves);
    }
    let count =
        |roles: &[RoleEstimate]| roles.iter().map(|role| role.calls).fold(0, u32::saturating_add);
    let (base, beside) = roles.split_at(base);
    ConsultEstimate { calls: count(base), beside: count(beside), roles }
}

/// Text lengths in tokens.
struct TextLengths {
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

    fn decision_makers(&self, lengths: &TextLengths) -> TokenUsage {
        let own = self.maker + lengths.move_ + lengths.message + USER_TURN_TOKENS;
        let one = chain(
            lengths.dossier,
            own,
            lengths.message,
            lengths.message + USER_TURN_TOKENS,
            self.rounds,
        );
        times(&one, u64::from(self.makers))
    }

    fn alone(&self, lengths: &TextLengths) -> TokenUsage {
        let own = self.maker + lengths.move_ + self.scoring;
        times(&after(lengths.dossier, own, lengths.message), u64::from(self.makers))
    }

    fn scores(&self, lengths: &TextLengths) -> TokenUsage {
        let own = self.maker + lengths.move_;
        let before = lengths.dossier + own + 2 * u64::from(self.rounds) * lengths.message;
        let one = after(before, lengths.message + self.scoring, lengths.message);
        times(&one, u64::from(self.makers))
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
