//! Benchmarks of scripted judges without the rest of a run: cases, cards, repeats and verdicts.
#![allow(clippy::print_stdout, reason = "prints the measured figures")]

use std::collections::{BTreeMap, BTreeSet};

use super::scripted_judge::UNIT_POINTS;
use super::*;
use crate::consult::{PanelRecord, Proposal};
use crate::debate::{Objection, ObjectionSeverity, ObjectionState, ScoreBasis, Scorecard};
use crate::verdict::{
    CaseFile, CaseKind, DebateSchedule, HiddenNames, NoiseAllowances, PanelCard, PanelCase,
    PanelJudge, PanelLabel, TierList, VerdictRules,
};

const METRICS: [&str; 4] = ["impact", "feasibility", "risk", "fit"];
const COMPANIES: usize = 40;

/// A panel: models of its members, and the rules of its verdicts.
struct SimulatedEval {
    judges: ScriptedJudges,
    members: Vec<PanelJudge>,
    rules: VerdictRules,
    schedule: DebateSchedule,
}

/// A company with its verdict.
struct EvalRun {
    company: BenchmarkCompany,
    titles: BTreeMap<String, String>,
    record: PanelRecord,
    tiers: TierList,
}

impl SimulatedEval {
    fn new(world: JudgeWorld) -> Self {
        let members = world.judges.keys().enumerate();
        let members = members
            .map(|(index, model)| PanelJudge {
                id: format!("P{}", index + 1),
                model: model.clone(),
            })
            .collect();
        let judges = ScriptedJudges::new(BenchmarkSet::synthetic_1(), world);
        let (rules, schedule) = (VerdictRules::default(), DebateSchedule::default());
        Self { judges, members, rules, schedule }
    }

    fn run(&self, company: &BenchmarkCompany) -> EvalRun {
        let moves = || (1..).zip(&company.moves);
        let titles = moves().map(|(n, one)| (format!("m{n}"), one.proposal.title.clone()));
        let case = |(n, _)| PanelCase { move_id: format!("m{n}"), kind: CaseKind::Move };
        let mut record = PanelRecord {
            metrics: METRICS.map(str::to_owned).into(),
            top_score: 120,
            judges: self.members.clone(),
            label: PanelLabel::of(&self.members, &BTreeSet::new()),
            rules: self.rules,
            cases: moves().map(case).collect(),
            cards: Vec::new(),
            controls: Vec::new(),
        };
        let mut debates = BTreeMap::<String, u32>::new();
        let mut next: Vec<String> = moves().map(|(n, _)| format!("m{n}")).collect();
        for repeated in 0.. {
            for move_id in next {
                let debate = debates.entry(move_id.clone()).or_default();
                *debate += 1;
                let place = move_id[1..].parse::<usize>().unwrap() - 1;
                let case = debated(&company.moves[place].proposal, *debate);
                record.cards.extend(self.cards(company, &move_id, *debate, &case));
            }
            let tiers = record.tiers().unwrap();
            next = self.schedule.next_moves(repeated, &tiers);
            if next.is_empty() {
                return EvalRun {
                    company: company.clone(),
                    titles: titles.collect(),
                    record,
                    tiers,
                };
            }
        }
        unreachable!()
    }

    fn cards(
        &self,
        company: &BenchmarkCompany,
        move_id: &str,
        debate: u32,
        case: &str,
    ) -> Vec<PanelCard> {
        let card = |member: &PanelJudge| {
            let question = JudgeQuestion {
                model: &member.model,
                lens: &member.id,
                dossier: &company.name,
                case,
            };
            let scores = self.judges.score(&question, &METRICS);
            let basis = match scores {
                Some(_) => ScoreBasis::Structured,
                None => ScoreBasis::NotScored,
            };
            let scores = METRICS.iter().zip(scores.into_iter().flatten());
            let scores = scores.map(|(metric, score)| (metric.to_string(), score as u8)).collect();
            PanelCard {
                move_id: move_id.to_owned(),
                debate,
                member: member.id.clone(),
                scorecard: Scorecard { scores, reasoning: String::new(), basis },
            }
        };
        self.members.iter().map(card).collect()
    }

    fn report(&self) -> BenchmarkReport {
        let companies = self.judges.set().companies.iter().take(COMPANIES);
        let runs: Vec<EvalRun> = companies.map(|company| self.run(company)).collect();
        let results: Vec<CompanyResult<'_>> = runs
            .iter()
            .map(|EvalRun { company, titles, record, tiers }| CompanyResult {
                company,
                titles,
                record,
                tiers,
            })
            .collect();
        let judges = &self.judges.world().judges;
        let styles = judges.iter().map(|(model, judge)| (model.clone(), judge.style)).collect();
        BenchmarkReport::of(&results, &styles).unwrap()
    }
}

fn debated(proposal: &Proposal, debate: u32) -> String {
    let objection = Objection {
        id: "O1".to_owned(),
        severity: ObjectionSeverity::Major,
        text: format!("Nothing shows that the figures hold, debate {debate}."),
        evidence: Vec::new(),
        round: 1,
        state: ObjectionState::Open,
        open_in: Vec::new(),
        reply: None,
    };
    CaseFile::of(proposal, Some(&[objection]), &HiddenNames::default()).text
}

#[track_caller]
fn assert_recovered(name: &str, found: f64, planted: f64) {
    println!("{name:28} planted {planted:8.3}  found {found:8.3}  ratio {:.3}", found / planted);
    let ratio = found / planted;
    assert!((0.75..=1.25).contains(&ratio), "{name} is {found:.3}, planted {planted:.3}");
}

/// Checks a report against the world that it was made with; five judges with one model each.
fn check_recovery(world: &JudgeWorld, found: &BenchmarkReport) {
    let judge = world.judges.values().next().unwrap();
    let points = UNIT_POINTS * UNIT_POINTS;
    let card = judge.card * judge.card * points;
    // One of five moves has the style of a judge.
    let preference = judge.self_preference * judge.self_preference * 0.16;
    let taste = (judge.taste * judge.taste + judge.lens * judge.lens + preference) * points;
    let MeasuredComponents { per_debate, .. } = found.components;
    let components = found.components;
    assert_recovered(
        "between models",
        components.between_models.unwrap(),
        taste + card * per_debate,
    );
    let debate = world.debate * world.debate * points;
    assert_recovered("between debates", components.between_debates.unwrap(), debate + card / 5.0);
    assert_recovered("card noise", components.between_cards.unwrap(), card);
    assert_recovered("shared error", components.shared_error.unwrap(), world.shared_error);
    assert_recovered("verbosity", found.verbosity, judge.verbosity);
    assert_recovered("points per unit", found.points_per_unit, UNIT_POINTS * judge.slope);
    assert_recovered("luck of a debate", components.debate.unwrap(), world.debate);
    let preference = found.judges.iter().map(|one| one.self_preference.unwrap()).sum::<f64>() / 5.0;
    assert_recovered("self-preference", preference, judge.self_preference);
}

#[test]
fn planted_errors_of_judges_are_recovered() {
    let eval = SimulatedEval::new(JudgeWorld::default());
    let found = eval.report();
    println!("{found:#?}");
    check_recovery(eval.judges.world(), &found);
    assert!(found.best_in_lead >= 34, "{}", found.best_in_lead);
    let coverage = found.coverage.unwrap();
    assert!((0.92..=0.99).contains(&coverage), "{coverage}");
    let (brier, base_rate) = (found.brier.unwrap(), found.brier_of_base_rate.unwrap());
    assert!(brier < base_rate * 0.7, "{brier}");
    assert_eq!(found.chances.iter().map(|bin| bin.entries).sum::<u32>(), 600);
    let given: u32 = found.judges.iter().map(|judge| judge.cards.0).sum();
    let wanted: u32 = found.judges.iter().map(|judge| judge.cards.1).sum();
    assert!(given < wanted && given * 100 > wanted * 97, "{given} of {wanted}");
}

#[test]
fn other_planted_errors_are_recovered_too() {
    let mut world = JudgeWorld { seed: 2, shared_error: 0.6, debate: 0.7, ..JudgeWorld::default() };
    for judge in world.judges.values_mut() {
        (judge.taste, judge.card, judge.verbosity) = (0.8, 0.5, 5.0);
        (judge.self_preference, judge.failure) = (0.7, 0.0);
    }
    check_recovery(&world.clone(), &SimulatedEval::new(world).report());
}

#[test]
fn exact_judges_find_the_planted_order() {
    let mut eval = SimulatedEval::new(JudgeWorld::without_noise());
    let allowances = NoiseAllowances::default();
    eval.rules.allowances =
        NoiseAllowances { shared_error: 0, single_model: 0, single_debate: 0, ..allowances };
    let found = eval.report();
    println!("tau {:.3}, lead is best {} of 40", found.tau, found.lead_is_best);
    assert!(found.tau >= 0.93, "{}", found.tau);
    assert!(found.lead_is_best >= 38, "{}", found.lead_is_best);
    assert_eq!(found.flips, Some(0.0));
    assert!(found.components.shared_error.unwrap() < 0.05);
    assert!(found.verbosity.abs() < 0.5, "{}", found.verbosity);
}

#[test]
fn measured_allowances_widen_the_lead_when_judges_share_a_large_error() {
    let world = JudgeWorld { shared_error: 0.8, ..JudgeWorld::default() };
    let mut eval = SimulatedEval::new(world);
    let default = eval.report();
    let measured = default.measurement("synthetic-1", "");
    assert!((650..=1_050).contains(&measured.shared_error), "{measured:?}");
    let mut file = JudgeFile::default();
    file.replace(measured);
    let models: Vec<String> = eval.judges.world().judges.keys().cloned().collect();
    let allowances = file.allowances(&models, crate::Sha256Hex::of(b"file")).unwrap();
    eval.rules.allowances = allowances;
    let with = eval.report();
    println!("best in lead {} → {}", default.best_in_lead, with.best_in_lead);
    assert!(with.best_in_lead >= default.best_in_lead);
    assert!(with.lead_size > default.lead_size && with.coverage > default.coverage);
    // One model alone: its taste is part of the shared error.
    let mut world = JudgeWorld::default();
    world.judges.retain(|model, _| model == "judge-1");
    let mut eval = SimulatedEval::new(world);
    let judge = eval.members[0].clone();
    let member = |n: usize| PanelJudge { id: format!("P{n}"), ..judge.clone() };
    eval.members = (1..=5).map(member).collect();
    let alone = eval.report().measurement("synthetic-1", "");
    assert_eq!(alone.single_model, 0);
    assert!(alone.shared_error > 600, "{alone:?}");
}
