use super::*;

/// Changes with any text, filing or value of the set. A changed set needs a new name.
const SHA256: &str = "bf04ad88564d8e13835a7a43f3ffe0765138d95b8220a3faf5188719365b07d3";

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let (x, y) = (x / count, y / count);
    let sum = |value: fn(f64, f64) -> f64| {
        pairs.iter().map(|one| value(one.0 - x, one.1 - y)).sum::<f64>()
    };
    sum(|x, y| x * y) / (sum(|x, _| x * x) * sum(|_, y| y * y)).sqrt()
}

#[test]
fn synthetic_1_never_changes() {
    let found = BenchmarkSet::synthetic_1().sha256().unwrap().to_string();
    assert_eq!(found, SHA256, "the set `synthetic-1` changed");
}

#[test]
fn the_best_move_is_clear_and_the_worst_loses_money() {
    for company in BenchmarkSet::synthetic_1().companies {
        assert_eq!(company.moves.len(), 15);
        let mut units = company.true_units();
        units.sort_by(f64::total_cmp);
        assert!(units[14] - units[13] >= 0.5, "{} {units:?}", company.name);
        let values = company.moves.iter().map(|one| one.value);
        assert!(values.fold(f64::MAX, f64::min) < 0.0, "{}", company.name);
        let mut templates: Vec<_> = company.moves.iter().map(|one| one.template).collect();
        templates.sort_unstable();
        templates.dedup();
        assert!(templates.len() >= 7, "{templates:?}");
    }
}

#[test]
fn length_says_nothing_about_value() {
    let set = BenchmarkSet::synthetic_1();
    let mut pairs = Vec::new();
    for company in &set.companies {
        let units = company.true_units();
        let own: Vec<(f64, f64)> =
            units.iter().zip(&company.moves).map(|(unit, one)| (*unit, one.words as f64)).collect();
        // Words of a template differ a little at the same length.
        assert!(correlation(&own).abs() < 0.25, "{} {}", company.name, correlation(&own));
        pairs.extend(&own);
        let mut by_value: Vec<&BenchmarkMove> = company.moves.iter().collect();
        by_value.sort_by(|one, other| other.value.total_cmp(&one.value));
        let count = |moves: &[&BenchmarkMove], is: fn(usize) -> bool| {
            moves.iter().filter(|one| is(one.words)).count()
        };
        assert!(count(&by_value[..5], |words| words <= 140) >= 2, "{}", company.name);
        assert!(count(&by_value[10..], |words| words >= 280) >= 2, "{}", company.name);
    }
    assert!(correlation(&pairs).abs() < 0.1, "{}", correlation(&pairs));
}

#[test]
fn texts_state_inputs_completely_and_never_the_result() {
    let set = BenchmarkSet::synthetic_1();
    let mut titles = std::collections::BTreeSet::new();
    for company in &set.companies {
        for one in &company.moves {
            let case = CaseFile::of(&one.proposal, None, &HiddenNames::default());
            assert!(!case.text.contains('…'), "{}", case.text);
            assert!(
                case.text.contains(&one.inputs.sentences("").split(' ').next().unwrap().to_owned())
            );
            assert!(titles.insert(one.proposal.title.clone()), "{}", one.proposal.title);
            let result = (one.value * company.revenue as f64).round().abs() as i64;
            let printed = format!("{}.{:02} million", result / 100, result % 100);
            assert!(!case.text.contains(&printed), "{} {printed}", case.text);
            let text = case.text.to_lowercase();
            assert!(!text.contains("present value") && !text.contains("npv"), "{text}");
        }
    }
    assert_eq!(titles.len(), 600);
}

#[test]
fn sets_are_found_by_name_and_companies_by_ticker() {
    assert!(BenchmarkSet::find("synthetic-2").is_none());
    let set = BenchmarkSet::find("synthetic-1").unwrap();
    assert_eq!(set.company("EVAL-07").unwrap().number, 7);
    assert!(set.company("EVAL-41").is_none());
    let titles: Vec<String> =
        set.companies[0].moves.iter().map(|one| one.proposal.title.clone()).collect();
    let best = set.companies[0].best_of(titles.iter()).unwrap();
    assert!(set.companies[0].moves.iter().all(|one| one.value <= best.value));
}
