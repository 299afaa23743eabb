//! A verdict is the same on every platform and in every build, and depends on every card.

use std::collections::BTreeSet;

use super::world::{SplitMix64, card_of_sum, scale};
use super::*;
use crate::Sha256Hex;

/// A changed hash means that stored runs would choose other moves when they are replayed.
const HASH: &str = "16590c11bb29183a70fb2e81124dfacf71c32c47a444af691aa93dd2ebcad13a";

/// Cards of whole numbers, so that nothing but the verdict can differ between platforms.
struct RandomCards {
    judges: Vec<PanelJudge>,
    cases: Vec<PanelCase>,
    cards: Vec<PanelCard>,
}

fn card(case: &PanelCase, debate: u64, judge: &PanelJudge, sum: u64) -> PanelCard {
    PanelCard {
        move_id: case.move_id.clone(),
        debate: u32::try_from(debate).unwrap(),
        member: judge.id.clone(),
        scorecard: card_of_sum(u32::try_from(sum).unwrap()),
    }
}

impl RandomCards {
    fn new(rng: &mut SplitMix64, moves: u64, members: u64, most_debates: u64) -> Self {
        let models = 1 + rng.below(members);
        let judge = |index: u64| PanelJudge {
            id: format!("P{index}"),
            model: format!("model-{}", index % models),
        };
        let case = |number: u64| PanelCase {
            move_id: format!("m{number}"),
            kind: match number {
                0 => CaseKind::DoNothing,
                3 => CaseKind::HeldMove,
                _ => CaseKind::Move,
            },
        };
        let judges: Vec<PanelJudge> = (0..members).map(judge).collect();
        let cases: Vec<PanelCase> = (0..=moves).map(case).collect();
        let mut cards = Vec::new();
        for case in &cases {
            let value = 10 + rng.below(20);
            for debate in 1..=1 + rng.below(most_debates) {
                for judge in &judges {
                    // One card in twenty is missing.
                    let (noise, is_missing) = (rng.below(11), rng.below(20) == 0);
                    if is_missing {
                        continue;
                    }
                    cards.push(card(case, debate, judge, value + noise));
                }
            }
        }
        Self { judges, cases, cards }
    }

    /// Replaces the cards by one for each case, debate and member.
    fn complete(&mut self, debates: u64) {
        let mut rng = SplitMix64::new(3);
        self.cards.clear();
        for case in &self.cases {
            for (debate, judge) in (1..=debates)
                .flat_map(|debate| self.judges.iter().map(move |judge| (debate, judge)))
            {
                self.cards.push(card(case, debate, judge, 10 + rng.below(30)));
            }
        }
    }

    fn table(&self) -> CardTable {
        let (judges, cases) = (self.judges.clone(), self.cases.clone());
        let mut table = CardTable::new(scale(), judges, cases).unwrap();
        for card in &self.cards {
            table.add(card).unwrap();
        }
        table
    }
}

fn verdict(table: &CardTable) -> TierList {
    let label = PanelLabel::of(table.judges(), &BTreeSet::new());
    let controls = ControlReport::of(table, &[]).unwrap();
    TierList::of(table, &VerdictRules::default(), label, controls)
}

#[test]
fn two_hundred_tables_give_the_same_verdicts_in_every_build() {
    let mut rng = SplitMix64::new(200);
    let mut all = Vec::new();
    for number in 0..200 {
        let (members, debates) = (3 + rng.below(7), 1 + rng.below(4));
        let verdict =
            verdict(&RandomCards::new(&mut rng, 5 + number % 16, members, debates).table());
        let TierList { mean_score, estimates, told_apart, components, reliability, .. } = &verdict;
        let numbers = (mean_score, estimates, told_apart, components, reliability);
        all.extend(serde_json::to_vec(&numbers).unwrap());
        let json = serde_json::to_vec(&verdict).unwrap();
        assert_eq!(serde_json::from_slice::<TierList>(&json).unwrap(), verdict);
    }
    assert_eq!(Sha256Hex::of(&all).to_string(), HASH);
}

#[test]
fn a_change_of_any_card_by_one_point_changes_the_verdict() {
    let mut random = RandomCards::new(&mut SplitMix64::new(2), 15, 5, 4);
    let before = verdict(&random.table());
    assert!(random.cards.len() > 150);
    let metrics: Vec<String> = random.cards[0].scorecard.scores.keys().cloned().collect();
    assert_eq!(metrics.len(), 4);
    for index in 0..random.cards.len() {
        for metric in &metrics {
            let set = |random: &mut RandomCards, score: u8| {
                random.cards[index].scorecard.scores.insert(metric.clone(), score);
            };
            let score = random.cards[index].scorecard.scores[metric];
            for changed in [score - 1, score + 1].into_iter().filter(|changed| *changed <= 10) {
                set(&mut random, changed);
                assert_ne!(verdict(&random.table()), before, "{metric}: {:?}", random.cards[index]);
            }
            set(&mut random, score);
        }
    }
    assert_eq!(verdict(&random.table()), before);
}

/// 16 cases, 5 members and 4 debates, in a debug build.
#[test]
#[expect(clippy::disallowed_methods, reason = "measures the time of a pure function")]
fn a_verdict_takes_at_most_five_milliseconds() {
    let mut random = RandomCards::new(&mut SplitMix64::new(1), 15, 5, 4);
    random.complete(4);
    assert_eq!(random.cards.len(), 16 * 5 * 4);
    let table = random.table();
    let time = |_| {
        let start = std::time::Instant::now();
        let verdict = verdict(&table);
        (start.elapsed(), verdict.estimates.len())
    };
    let (fastest, cases) = (0..20).map(time).min().unwrap();
    assert_eq!(cases, 16);
    assert!(fastest.as_micros() <= 5_000, "{fastest:?}");
}
