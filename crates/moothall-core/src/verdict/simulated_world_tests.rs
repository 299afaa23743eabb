//! Simulated companies: moves with known values, and judges with known errors.
//!
//! The unit is the standard deviation of the true values between moves. Core has no crate for
//! random numbers, so the generator is SplitMix64 (Steele, Lea, Flood 2014) with Marsaglia's polar
//! method for normal values.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::debate::{ScoreBasis, Scorecard};

pub(crate) const METRICS: [&str; 4] = ["a", "b", "c", "d"];
/// Points of the 120 that one unit is worth, and the score of an average move.
pub(crate) const UNIT_POINTS: f64 = 9.6;
const AVERAGE_POINTS: f64 = 72.0;
/// A debate of four rounds has this much more variance than one of ten.
const SHORT_DEBATE: f64 = 1.25;

pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `below` - 1; the bias is negligible for small numbers.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self, deviation: f64) -> f64 {
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                return deviation * u * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }
}

/// Standard deviations of everything that separates a card from the true value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedWorld {
    pub(crate) moves: usize,
    pub(crate) shared: f64,
    pub(crate) taste: f64,
    pub(crate) lens: f64,
    pub(crate) debate: f64,
    pub(crate) card: f64,
}

/// The world of the design; a debate has ten rounds.
pub(crate) const WORLD: SimulatedWorld =
    SimulatedWorld { moves: 15, shared: 0.40, taste: 0.65, lens: 0.30, debate: 0.50, card: 0.60 };

/// A panel, and how its moves are debated.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedPanel {
    pub(crate) models: usize,
    pub(crate) members_per_model: usize,
    /// Members from the first on whose cards have nothing to do with the move.
    pub(crate) random_members: usize,
    pub(crate) rules: VerdictRules,
    pub(crate) schedule: DebateSchedule,
}

impl SimulatedPanel {
    pub(crate) fn new(models: usize, members_per_model: usize) -> Self {
        let (rules, schedule) = (VerdictRules::default(), DebateSchedule::default());
        Self { models, members_per_model, random_members: 0, rules, schedule }
    }

    pub(crate) fn members(&self) -> usize {
        self.models * self.members_per_model
    }

    pub(crate) fn judges(&self) -> Vec<PanelJudge> {
        let judge = |index: usize| PanelJudge {
            id: format!("P{}", index + 1),
            model: format!("model-{}", index % self.models),
        };
        (0..self.members()).map(judge).collect()
    }
}

/// A company: what does not change when its moves are debated and scored again.
pub(crate) struct SimulatedCompany {
    pub(crate) world: SimulatedWorld,
    pub(crate) truth: Vec<f64>,
    pub(crate) shared: Vec<f64>,
    /// By model, then by move.
    pub(crate) taste: Vec<Vec<f64>>,
    /// By member, then by move.
    pub(crate) lens: Vec<Vec<f64>>,
}

impl SimulatedCompany {
    pub(crate) fn new(world: SimulatedWorld, panel: &SimulatedPanel, rng: &mut SplitMix64) -> Self {
        let mut values = |deviation: f64| -> Vec<f64> {
            (0..world.moves).map(|_| rng.normal(deviation)).collect()
        };
        let (truth, shared) = (values(1.0), values(world.shared));
        let taste = (0..panel.models).map(|_| values(world.taste)).collect();
        let lens = (0..panel.members()).map(|_| values(world.lens)).collect();
        Self { world, truth, shared, taste, lens }
    }

    pub(crate) fn best(&self) -> usize {
        let better = |a: &usize, b: &usize| self.truth[*a].total_cmp(&self.truth[*b]);
        (0..self.truth.len()).max_by(better).unwrap()
    }

    /// The true value relative to the mean of the moves, in points.
    pub(crate) fn true_points(&self, index: usize) -> f64 {
        let mean = self.truth.iter().sum::<f64>() / self.truth.len() as f64;
        (self.truth[index] - mean) * UNIT_POINTS
    }

    /// Whether the interval of an estimate contains the true value.
    pub(crate) fn is_covered(&self, verdict: &TierList, index: usize, one: &MoveEstimate) -> bool {
        let value = self.true_points(index) * 10.0 + f64::from(verdict.mean_score);
        let ScoreInterval { low, high } = one.interval.unwrap();
        (f64::from(low)..=f64::from(high)).contains(&value)
    }

    /// What a member thinks of a move before noise of debate and card.
    pub(crate) fn opinion(&self, panel: &SimulatedPanel, member: usize, index: usize) -> f64 {
        let taste = &self.taste[member % panel.models];
        self.truth[index] + self.shared[index] + taste[index] + self.lens[member][index]
    }

    pub(crate) fn table(&self, panel: &SimulatedPanel) -> CardTable {
        let case = |index: usize| PanelCase { move_id: move_id(index), kind: CaseKind::Move };
        let cases = (0..self.truth.len()).map(case).collect();
        CardTable::new(scale(), panel.judges(), cases).unwrap()
    }

    /// Debates a move with four rounds, and adds the cards of all members.
    pub(crate) fn debate(
        &self,
        panel: &SimulatedPanel,
        index: usize,
        number: u32,
        rng: &mut SplitMix64,
        table: &mut CardTable,
    ) {
        let luck = rng.normal(self.world.debate * SHORT_DEBATE.sqrt());
        let cards = self.cards(panel, rng, |member, _| self.opinion(panel, member, index) + luck);
        for (member, scorecard) in cards {
            let card = PanelCard { move_id: move_id(index), debate: number, member, scorecard };
            table.add(&card).unwrap();
        }
    }
}

/// How far controls are below the other moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlantedGaps {
    /// A copy below its original.
    pub(crate) copy: f64,
    /// A known-bad move below an average move.
    pub(crate) bad: f64,
}

impl SimulatedCompany {
    /// Two known-bad moves with a debate of their own, and weakened copies of three moves without
    /// one. A copy has the errors of its original except for those of lenses and cards.
    pub(crate) fn controls(
        &self,
        panel: &SimulatedPanel,
        gaps: PlantedGaps,
        rng: &mut SplitMix64,
    ) -> Vec<ControlCase> {
        let world = SimulatedWorld { moves: 2, ..self.world };
        let mut bad = Self::new(world, panel, rng);
        bad.truth = vec![-gaps.bad; 2];
        let mut controls = Vec::new();
        for index in 0..2 {
            let luck = rng.normal(world.debate * SHORT_DEBATE.sqrt());
            let cards =
                self.cards(panel, rng, |member, _| bad.opinion(panel, member, index) + luck);
            let (id, kind) = (format!("bad-{index}"), ControlKind::KnownBad);
            controls.push(ControlCase { id, kind, cards, original_cards: BTreeMap::new() });
        }
        for index in 0..3 {
            let original = |member: usize| self.opinion(panel, member, index);
            let cards = self.cards(panel, rng, |member, rng| {
                let lens = rng.normal(world.lens) - self.lens[member][index];
                original(member) + lens - gaps.copy
            });
            let original_cards = self.cards(panel, rng, |member, _| original(member));
            let kind = ControlKind::WeakenedCopy(move_id(index));
            controls.push(ControlCase { id: format!("copy-{index}"), kind, cards, original_cards });
        }
        controls
    }

    fn cards(
        &self,
        panel: &SimulatedPanel,
        rng: &mut SplitMix64,
        opinion: impl Fn(usize, &mut SplitMix64) -> f64,
    ) -> BTreeMap<String, Scorecard> {
        let mut cards = BTreeMap::new();
        for (member, judge) in panel.judges().into_iter().enumerate() {
            let value = match member < panel.random_members {
                true => rng.normal(1.0),
                false => opinion(member, rng) + rng.normal(self.world.card),
            };
            cards.insert(judge.id, card(value));
        }
        cards
    }
}

pub(crate) fn move_id(index: usize) -> String {
    format!("m{}", index + 1)
}

pub(crate) fn index_of(move_id: &str) -> usize {
    move_id[1..].parse::<usize>().unwrap() - 1
}

pub(crate) fn scale() -> CardScale {
    CardScale::new(METRICS.map(String::from), 120)
}

/// A card with whole scores from 1 to 10, as even as possible, for a value in units.
pub(crate) fn card(value: f64) -> Scorecard {
    let sum = ((AVERAGE_POINTS + UNIT_POINTS * value) / 3.0).round().clamp(4.0, 40.0) as u32;
    card_of_sum(sum)
}

pub(crate) fn card_of_sum(sum: u32) -> Scorecard {
    let score = |(index, metric): (u32, &str)| {
        (metric.to_owned(), u8::try_from((sum + index) / 4).unwrap())
    };
    let scores: BTreeMap<String, u8> = (0..).zip(METRICS).map(score).collect();
    Scorecard { scores, reasoning: String::new(), basis: ScoreBasis::Structured }
}

/// One run: all stages until the schedule ends.
pub(crate) struct SimulatedRun {
    pub(crate) table: CardTable,
    pub(crate) verdict: TierList,
    pub(crate) debates: usize,
}

impl SimulatedRun {
    /// A run without controls.
    pub(crate) fn new(
        company: &SimulatedCompany,
        panel: &SimulatedPanel,
        rng: &mut SplitMix64,
    ) -> Self {
        Self::with_controls(company, panel, &[], rng)
    }

    pub(crate) fn with_controls(
        company: &SimulatedCompany,
        panel: &SimulatedPanel,
        controls: &[ControlCase],
        rng: &mut SplitMix64,
    ) -> Self {
        let mut table = company.table(panel);
        let mut counts = vec![0_u32; company.truth.len()];
        let mut next: Vec<usize> = (0..company.truth.len()).collect();
        let label = PanelLabel::of(&panel.judges(), &BTreeSet::new());
        let mut repeated = 0;
        loop {
            for index in next {
                counts[index] += 1;
                company.debate(panel, index, counts[index], rng, &mut table);
            }
            let report = ControlReport::of(&table, controls).unwrap();
            let verdict = TierList::of(&table, &panel.rules, label, report);
            let again = panel.schedule.next_moves(repeated, &verdict);
            if again.is_empty() {
                let debates = counts.iter().sum::<u32>() as usize;
                return Self { table, verdict, debates };
            }
            next = again.iter().map(|id| index_of(id)).collect();
            repeated += 1;
        }
    }
}
