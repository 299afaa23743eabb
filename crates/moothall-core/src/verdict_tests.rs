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
                    cards.push(PanelCard {
                        move_id: case.move_id.clone(),
                        debate: u32::try_from(debate).unwrap(),
                        member: judge.id.clone(),
                        scorecard: card_of_sum(u32::try_from(value + noise).unwrap()),
                    });
                }
            }
        }
        Self { judges, cases, cards }
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
    for index in 0..random.cards.len() {
        let score = |random: &mut RandomCards, change: fn(u8) -> u8| {
            let score = random.cards[index].scorecard.scores.get_mut("a").unwrap();
            *score = change(*score);
        };
        score(&mut random, |score| score - 1);
        assert_ne!(verdict(&random.table()), before, "{:?}", random.cards[index]);
        score(&mut random, |score| score + 1);
    }
    assert_eq!(verdict(&random.table()), before);
}

/// 16 cases, 5 members and up to 4 debates, in a debug build.
#[test]
#[expect(clippy::disallowed_methods, reason = "measures the time of a pure function")]
fn a_verdict_takes_at_most_five_milliseconds() {
    let table = RandomCards::new(&mut SplitMix64::new(1), 15, 5, 4).table();
    let time = |_| {
        let start = std::time::Instant::now();
        let verdict = verdict(&table);
        (start.elapsed(), verdict.estimates.len())
    };
    let (fastest, cases) = (0..20).map(time).min().unwrap();
    assert_eq!(cases, 16);
    assert!(fastest.as_micros() <= 5_000, "{fastest:?}");
}
