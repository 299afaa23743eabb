//! Simulates panels to measure controls, repeats and the calibration.
#![allow(clippy::print_stdout, reason = "prints the measured figures")]

use super::world::*;
use super::*;

fn panel_of_five() -> SimulatedPanel {
    SimulatedPanel::new(5, 1)
}

/// How often a panel passed its controls, failed them, and how often its first member was left out.
struct ControlFigures {
    passed: f64,
    failed: f64,
    first_left_out: f64,
}

impl ControlFigures {
    fn of(panel: &SimulatedPanel, gaps: PlantedGaps, panels: u32, seed: u64) -> Self {
        let mut found = Self { passed: 0.0, failed: 0.0, first_left_out: 0.0 };
        let mut rng = SplitMix64::new(seed);
        for _ in 0..panels {
            let company = SimulatedCompany::new(WORLD, panel, &mut rng);
            let mut table = company.table(panel);
            for index in 0..WORLD.moves {
                company.debate(panel, index, 1, &mut rng, &mut table);
            }
            let controls = company.controls(panel, gaps, &mut rng);
            let report = ControlReport::of(&table, &controls).unwrap();
            found.passed += flag(report.check == PanelCheck::Passed);
            found.failed += flag(report.check == PanelCheck::Failed);
            found.first_left_out += flag(report.left_out.contains("P1"));
        }
        let panels = f64::from(panels);
        let share = |count: f64| count / panels;
        Self {
            passed: share(found.passed),
            failed: share(found.failed),
            first_left_out: share(found.first_left_out),
        }
    }
}

fn flag(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

const SMALL_GAPS: PlantedGaps = PlantedGaps { copy: 1.0, bad: 2.0 };
const LARGE_GAPS: PlantedGaps = PlantedGaps { copy: 1.5, bad: 2.5 };

fn share_within(name: &str, share: f64, range: std::ops::RangeInclusive<f64>) {
    assert!(range.contains(&share), "{name} is {share:.4}, expected {range:?}");
}

#[test]
fn controls_tell_good_panels_from_random_ones() {
    let check = |name: &str, random_members: usize, gaps: PlantedGaps| {
        let panel = SimulatedPanel { random_members, ..panel_of_five() };
        let found = ControlFigures::of(&panel, gaps, 1_000, 1);
        let ControlFigures { passed, failed, first_left_out } = found;
        println!("{name}: passed {passed:.3}, failed {failed:.3}, P1 left out {first_left_out:.3}");
        found
    };
    let small = check("good panel, gaps 1.0 and 2.0", 0, SMALL_GAPS);
    share_within("passed", small.passed, 0.90..=1.0);
    share_within("failed", small.failed, 0.0..=0.005);
    let large = check("good panel, gaps 1.5 and 2.5", 0, LARGE_GAPS);
    share_within("passed", large.passed, 0.98..=1.0);
    share_within("failed", large.failed, 0.0..=0.005);
    let random = check("random panel", 5, SMALL_GAPS);
    share_within("passed at random", random.passed, 0.0..=0.06);
    share_within("failed at random", random.failed, 0.78..=1.0);
    let one = check("one random member", 1, SMALL_GAPS);
    share_within("left out", one.first_left_out, 0.45..=1.0);
}

#[test]
fn intervals_hold_after_a_random_member_is_left_out() {
    let panel = SimulatedPanel { random_members: 1, ..panel_of_five() };
    let (mut covered, mut estimates) = (0.0, 0.0);
    for number in 0..400 {
        let mut rng = SplitMix64::new(number);
        let company = SimulatedCompany::new(WORLD, &panel, &mut rng);
        let controls = company.controls(&panel, SMALL_GAPS, &mut rng);
        let SimulatedRun { verdict, .. } =
            SimulatedRun::with_controls(&company, &panel, &controls, &mut rng);
        if !verdict.controls.left_out.contains("P1") {
            continue;
        }
        for (index, one) in verdict.estimates.iter().enumerate() {
            covered += flag(company.is_covered(&verdict, index, one));
            estimates += 1.0;
        }
    }
    println!("interval holds truth {:.3} of {estimates}", covered / estimates);
    share_within("coverage", covered / estimates, 0.94..=1.0);
}

/// The shared error that 40 companies show.
pub(crate) fn measured_shared_error(
    world: SimulatedWorld,
    panel: &SimulatedPanel,
    seed: u64,
) -> Option<u32> {
    let mut rng = SplitMix64::new(seed);
    let mut runs = Vec::new();
    for _ in 0..40 {
        let company = SimulatedCompany::new(world, panel, &mut rng);
        let run = SimulatedRun::new(&company, panel, &mut rng);
        runs.push((company, run));
    }
    let cases: Vec<BenchmarkCase<'_>> = runs
        .iter()
        .map(|(company, run)| BenchmarkCase { table: &run.table, true_values: &company.truth })
        .collect();
    measure_shared_error(&cases)
}

#[test]
fn forty_companies_show_the_planted_noise() {
    let panel = panel_of_five();
    for (planted, seed) in [(0.4, 1), (0.4, 2), (0.8, 3), (0.8, 4)] {
        let world = SimulatedWorld { shared: planted, ..WORLD };
        let found = f64::from(measured_shared_error(world, &panel, seed).unwrap()) / 1_000.0;
        println!("shared error {planted}: measured {found:.3}");
        share_within("measured / planted", found / planted, 0.75..=1.25);
    }
    // Between models: taste, lens, and cards over the debates of a move. Between debates: their
    // luck and a fifth of the cards.
    let (taste, lens, card) = (0.65_f64.powi(2), 0.3_f64.powi(2), 0.6_f64.powi(2));
    let (mut models, mut debates, mut cards) = (0.0, 0.0, 0.0);
    let mut per_debate = 0.0;
    let mut rng = SplitMix64::new(1);
    for _ in 0..40 {
        let company = SimulatedCompany::new(WORLD, &panel, &mut rng);
        let verdict = SimulatedRun::new(&company, &panel, &mut rng).verdict;
        let variance = |component: Option<NoiseComponent>| {
            (f64::from(component.unwrap().deviation) / 10.0 / UNIT_POINTS).powi(2) / 40.0
        };
        let VarianceComponents { between_models, between_debates, between_cards, .. } =
            verdict.components;
        models += variance(between_models);
        debates += variance(between_debates);
        cards += variance(between_cards);
        let shares = verdict.estimates.iter().map(|one| 1.0 / f64::from(one.debates));
        per_debate += shares.sum::<f64>() / 15.0 / 40.0;
    }
    share_within("between models", models / (taste + lens + card * per_debate), 0.75..=1.25);
    share_within("between debates", debates / (0.25 * 1.25 + card / 5.0), 0.75..=1.25);
    share_within("between cards", cards / card, 0.75..=1.25);
}

#[test]
fn judges_without_noise_find_the_best_move() {
    let world =
        SimulatedWorld { shared: 0.0, taste: 0.0, lens: 0.0, debate: 0.0, card: 0.0, ..WORLD };
    let mut panel = panel_of_five();
    let allowances = &mut panel.rules.allowances;
    (allowances.shared_error, allowances.single_model, allowances.single_debate) = (0, 0, 0);
    let (mut tau, mut exact) = (0.0, 0);
    for number in 0..40 {
        let mut rng = SplitMix64::new(number);
        let mut company = SimulatedCompany::new(world, &panel, &mut rng);
        // The best move is at least half a unit better than the second.
        let best = company.best();
        company.truth[best] += 0.5;
        let first = SimulatedRun::new(&company, &panel, &mut rng).verdict;
        let second = SimulatedRun::new(&company, &panel, &mut rng).verdict;
        let report = StabilityReport::of(&[&first, &second]).unwrap();
        assert_eq!(
            (report.top3_overlap, report.tau, report.lead_overlap, report.winner_in_lead),
            (1_000, 1_000, 1_000, 1_000)
        );
        assert_eq!((report.contradictions, report.text()), (0, "repeatable"));
        let scores = first.estimates.iter().map(|one| one.score).zip(company.truth.clone());
        tau += kendall_tau(&scores.collect::<Vec<_>>()) / 40.0;
        let lead = first.tier(VerdictTier::Lead);
        exact += u32::from(lead.len() == 1 && lead[0].move_id == move_id(best));
    }
    println!("tau {tau:.3}, lead is exactly the best move in {exact} of 40");
    assert!(tau >= 0.93 && exact >= 38, "{tau} {exact}");
}

#[test]
fn random_judges_are_not_repeatable_and_fail_their_controls() {
    let panel = SimulatedPanel { random_members: 5, ..panel_of_five() };
    let (mut overlap, mut not_repeatable, mut failed) = (0.0, 0.0, 0.0);
    for number in 0..50 {
        let mut rng = SplitMix64::new(number);
        let company = SimulatedCompany::new(WORLD, &panel, &mut rng);
        let mut run = || {
            let controls = company.controls(&panel, SMALL_GAPS, &mut rng);
            SimulatedRun::with_controls(&company, &panel, &controls, &mut rng).verdict
        };
        let (first, second) = (run(), run());
        let report = StabilityReport::of(&[&first, &second]).unwrap();
        overlap += f64::from(report.top3_overlap) / 1_000.0 / 50.0;
        not_repeatable += flag(report.text() == "not repeatable") / 50.0;
        failed += flag(first.headline == VerdictHeadline::PanelFailed) / 50.0;
        assert!(first.controls.check != PanelCheck::Failed || first.recommended().is_empty());
    }
    println!("overlap {overlap:.3}, not repeatable {not_repeatable:.2}, failed {failed:.2}");
    share_within("overlap", overlap, 0.10..=0.35);
    share_within("not repeatable", not_repeatable, 0.80..=1.0);
    share_within("failed", failed, 0.75..=1.0);
}
