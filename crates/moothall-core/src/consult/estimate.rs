//! What a consultation takes, before anything is spent.
//!
//! The prompts are counted as they will be sent: a chain's prompt is the one before it and what was
//! said since, and a provider that caches reads the part before from its cache. The lower end has
//! short messages, a smaller dossier and nothing to write again; the upper end has messages of full
//! length, every rewrite, and a dossier that each debate writes to the cache anew. Questions that
//! are asked again because an answer cannot be read are not in it.

use super::committee::{Committee, Metric, Seat};
use super::dossier::dossier_tokens;
use super::input::{ConsultInput, EvidenceSource};
use super::prompt::document_tokens;
use super::proposals;
use crate::model::{ModelName, Purpose, Usage};
use crate::tokens_expected;

/// What a consultation takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Model calls, rewrites and re-asks apart, and without those that score what is not debated.
    pub calls: u32,
    /// Model calls that score without a debate: doing nothing, and the baseline.
    pub beside: u32,
    /// By role, in the order of the layers.
    pub roles: Vec<RoleEstimate>,
}

/// What one role takes. Prices differ by model, so the cost is a sum over roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleEstimate {
    /// The role.
    pub purpose: Purpose,
    /// Who is asked.
    pub model: ModelName,
    /// Model calls, rewrites and re-asks apart.
    pub calls: u32,
    /// The least to expect.
    pub low: Usage,
    /// The most to expect.
    pub high: Usage,
}

impl Estimate {
    /// Model calls in all, rewrites and re-asks apart.
    pub fn all_calls(&self) -> u32 {
        self.calls.saturating_add(self.beside)
    }

    /// The least to expect in all.
    pub fn low(&self) -> Usage {
        self.roles.iter().fold(Usage::default(), |sum, role| sum.plus(&role.low))
    }

    /// The most to expect in all.
    pub fn high(&self) -> Usage {
        self.roles.iter().fold(Usage::default(), |sum, role| sum.plus(&role.high))
    }
}

/// Model calls of a consultation, rewrites and re-asks apart: 922 for the board, 924 where the
/// evidence is made up, and three beside them that score doing nothing.
pub fn calls(input: &ConsultInput) -> u32 {
    estimate(input, None).all_calls()
}

/// What a consultation takes; `dossier` is the length of the dossier in tokens, where it is known.
pub fn estimate(input: &ConsultInput, dossier: Option<u32>) -> Estimate {
    let committee = &input.committee;
    let most = dossier_tokens(input.calls.window_tokens);
    let (low, high) = match dossier {
        Some(known) => (u64::from(known), u64::from(known)),
        None => (most * 5 / 8, most),
    };
    let full = u64::from(document_tokens(input));
    let message = u64::from(input.calls.message_tokens);
    let low = Lengths { dossier: low, document: full / 6, message: 150.min(message), move_: 500 };
    let high = Lengths { dossier: high, document: full, message, move_: full / 3 };
    let models = &input.models;
    let mut roles = Vec::new();
    let mut add =
        |purpose, model: &ModelName, count: u32, of: &dyn Fn(&Lengths, Bound) -> Usage| {
            let (low, high) = (of(&low, Bound::Low), of(&high, Bound::High));
            roles.push(RoleEstimate { purpose, model: model.clone(), calls: count, low, high });
        };
    if input.gather.source == EvidenceSource::Synthetic {
        for purpose in [Purpose::SynthesizeFinancials, Purpose::SynthesizeNews] {
            add(purpose, models.inference(), 1, &|lengths, _| Usage {
                input: 150,
                output: lengths.document,
                ..Usage::default()
            });
        }
    }
    for purpose in [Purpose::InferFinancial, Purpose::InferTrend] {
        add(purpose, models.inference(), 1, &|lengths, bound| {
            chain(0, lengths.dossier + 500, lengths.document, 300, 1 + bound.rewrites(1))
        });
    }
    let shares = committee.shares(input.moves);
    let analysts = u32::try_from(shares.iter().filter(|share| **share > 0).count()).unwrap_or(0);
    let moves = input.all_moves();
    let brief = input.terms.brief.as_deref().map_or(0, |brief| tokens_expected(brief) + 80);
    add(Purpose::Analyst, models.analyst(), analysts, &|lengths, bound| {
        let own = 600 + brief + tokens_expected(proposals::schema().text());
        let asked = shares.iter().filter(|share| **share > 0).map(|share| {
            let first = chain(lengths.dossier, own, lengths.document, 300, 1);
            // Each move that is written again is a branch of its own behind the first answer.
            let again = after(lengths.dossier + own, lengths.document + 300, lengths.move_);
            first.plus(&times(&again, u64::from(bound.rewrites(*share))))
        });
        written_once(asked.fold(Usage::default(), |sum, one| sum.plus(&one)), lengths.dossier)
    });
    let debate = Debate::of(committee);
    let opening_and_threads =
        moves.saturating_mul(1 + debate.makers.saturating_mul(debate.rounds.saturating_sub(1)));
    add(Purpose::Critic, models.critic(), opening_and_threads, &|lengths, bound| {
        let sum = times(&debate.critic(lengths), u64::from(moves));
        bound.dossier_written(sum, lengths.dossier, moves)
    });
    let answers = moves.saturating_mul(debate.makers).saturating_mul(debate.rounds);
    add(Purpose::DecisionMaker, models.decision_maker(), answers, &|lengths, bound| {
        let sum = times(&debate.decision_makers(lengths), u64::from(moves));
        bound.dossier_written(sum, lengths.dossier, moves)
    });
    add(
        Purpose::Score,
        models.decision_maker(),
        moves.saturating_mul(debate.makers),
        &|lengths, _| times(&debate.scores(lengths), u64::from(moves)),
    );
    let base = roles.len();
    let mut beside = |purpose, of: u32| {
        let count = of.saturating_mul(debate.makers);
        // Of a move that is debated, too, only the question is new.
        let usage = |lengths: &Lengths| times(&debate.alone(lengths), u64::from(of));
        let (low, high) = (usage(&low), usage(&high));
        let model = models.decision_maker().clone();
        roles.push(RoleEstimate { purpose, model, calls: count, low, high });
    };
    if input.terms.do_nothing {
        beside(Purpose::ScoreNothing, 1);
    }
    if input.terms.baseline {
        beside(Purpose::ScoreBaseline, moves);
    }
    let count =
        |roles: &[RoleEstimate]| roles.iter().map(|role| role.calls).fold(0, u32::saturating_add);
    let (base, beside) = roles.split_at(base);
    Estimate { calls: count(base), beside: count(beside), roles }
}

/// Lengths of texts in tokens.
struct Lengths {
    dossier: u64,
    document: u64,
    message: u64,
    move_: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Low,
    High,
}

impl Bound {
    fn rewrites(self, most: u32) -> u32 {
        if self == Self::High { most } else { 0 }
    }

    /// A dossier that is read from a cache was written to it before: once, or by every debate where
    /// they begin at the same time.
    fn dossier_written(self, usage: Usage, dossier: u64, debates: u32) -> Usage {
        let writes = if self == Self::High { u64::from(debates) } else { 1 };
        let written = dossier.saturating_mul(writes).min(usage.cache_read);
        Usage {
            cache_read: usage.cache_read - written,
            cache_write_5m: usage.cache_write_5m + written,
            ..usage
        }
    }
}

/// The prompts of a debate, in tokens.
struct Debate {
    rounds: u32,
    makers: u32,
    critic: u64,
    maker: u64,
    scoring: u64,
}

impl Debate {
    fn of(committee: &Committee) -> Self {
        let lens = |seat: &Seat| tokens_expected(&seat.lens) + 500;
        let makers = committee.decision_makers.iter();
        let level = |metric: &Metric| -> u64 {
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

    /// The opening, and then one chain for each decision maker that grows out of it.
    fn critic(&self, lengths: &Lengths) -> Usage {
        let own = self.critic + lengths.move_;
        let opening = chain(lengths.dossier, own, lengths.message, 0, 1);
        let threads = (1..self.rounds).fold(Usage::default(), |sum, round| {
            let before = lengths.dossier + own + 2 * u64::from(round - 1) * lengths.message;
            sum.plus(&after(before, 2 * lengths.message + TAIL, lengths.message))
        });
        opening.plus(&times(&threads, u64::from(self.makers)))
    }

    fn decision_makers(&self, lengths: &Lengths) -> Usage {
        let own = self.maker + lengths.move_ + lengths.message + TAIL;
        let one = chain(lengths.dossier, own, lengths.message, lengths.message + TAIL, self.rounds);
        times(&one, u64::from(self.makers))
    }

    fn alone(&self, lengths: &Lengths) -> Usage {
        let own = self.maker + lengths.move_ + self.scoring;
        times(&after(lengths.dossier, own, lengths.message), u64::from(self.makers))
    }

    fn scores(&self, lengths: &Lengths) -> Usage {
        let own = self.maker + lengths.move_;
        let before = lengths.dossier + own + 2 * u64::from(self.rounds) * lengths.message;
        let one = after(before, lengths.message + self.scoring, lengths.message);
        times(&one, u64::from(self.makers))
    }
}

/// What the user's turn adds to the other side's message.
const TAIL: u64 = 60;

/// A conversation of so many calls behind a shared prefix that is cached already.
fn chain(shared: u64, own: u64, answer: u64, question: u64, calls: u32) -> Usage {
    let mut sum = Usage::default();
    let (mut before, mut added) = (shared, own);
    for _ in 0..calls {
        sum = sum.plus(&after(before, added, answer));
        before += added;
        added = answer + question;
    }
    sum
}

/// One call: what stood there before is read from the cache, what was added is written to it.
fn after(before: u64, added: u64, answer: u64) -> Usage {
    Usage { cache_read: before, cache_write_5m: added, output: answer, ..Usage::default() }
}

fn written_once(usage: Usage, shared: u64) -> Usage {
    Bound::Low.dossier_written(usage, shared, 1)
}

fn times(usage: &Usage, count: u64) -> Usage {
    let many = |tokens: u64| tokens.saturating_mul(count);
    Usage {
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
