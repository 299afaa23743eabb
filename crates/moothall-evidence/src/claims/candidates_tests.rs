use super::of_facts;
use crate::claims::support_tests::{decimal, facts, index, sheet};
use crate::evidence::{FactId, FactSheet};

/// Checks all candidates of the facts, formatted as text.
#[track_caller]
fn check(ids: &[&str], expected: &[&str]) {
    check_in(&sheet(), ids, expected);
}

#[track_caller]
fn check_in(sheet: &FactSheet, ids: &[&str], expected: &[&str]) {
    let index = index(sheet);
    let shown: Vec<String> = of_facts(&facts(&index, ids))
        .iter()
        .map(|known| {
            let value = known.value.round_dp(4).normalize();
            format!("{} = {value} ({:?}, {:?})", known.formula, known.unit, known.reading)
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn two_periods_of_one_metric_make_change_growth_and_multiple() {
    check(
        &["Revenue:FY2025", "Revenue:FY2023"],
        &[
            "Revenue:FY2025 = 1250000000 (Money, Level)",
            "Revenue:FY2023 = 800000000 (Money, Level)",
            "Revenue:FY2025 - Revenue:FY2023 = 450000000 (Money, Difference)",
            "Revenue:FY2025 / Revenue:FY2023 = 1.5625 (ComputedMultiple, Level)",
            "growth of Revenue:FY2025 over Revenue:FY2023 = 0.5625 (Ratio, Change)",
            "yearly growth from Revenue:FY2023 to Revenue:FY2025 = 0.25 (Ratio, Change)",
            "Revenue over 2 periods = 2050000000 (Money, Level)",
            "mean of Revenue over 2 periods = 1025000000 (Money, Level)",
        ],
    );
}

#[test]
fn two_metrics_of_one_year_make_distance_sum_and_share() {
    check(
        &["Capex:FY2025", "Revenue:FY2025"],
        &[
            "Capex:FY2025 = 48700000 (Money, Level)",
            "Revenue:FY2025 = 1250000000 (Money, Level)",
            "Capex:FY2025 - Revenue:FY2025 = 1201300000 (Money, Distance)",
            "Capex:FY2025 + Revenue:FY2025 = 1298700000 (Money, Level)",
            "Capex:FY2025 / Revenue:FY2025 = 0.039 (Ratio, Level)",
            "Capex:FY2025 / Revenue:FY2025 = 0.039 (ComputedMultiple, Level)",
            "Revenue:FY2025 / Capex:FY2025 = 25.6674 (Ratio, Level)",
            "Revenue:FY2025 / Capex:FY2025 = 25.6674 (ComputedMultiple, Level)",
        ],
    );
}

#[test]
fn a_quarter_and_its_year_make_a_share_and_no_growth() {
    check(
        &["Revenue:FY2025Q4", "Revenue:FY2025"],
        &[
            "Revenue:FY2025Q4 = 340000000 (Money, Level)",
            "Revenue:FY2025 = 1250000000 (Money, Level)",
            "Revenue:FY2025Q4 / Revenue:FY2025 = 0.272 (Ratio, Level)",
        ],
    );
}

#[test]
fn the_later_of_two_quarters_is_compared_with_the_earlier() {
    check(
        &["Revenue:FY2025Q4", "Revenue:FY2025Q3"],
        &[
            "Revenue:FY2025Q4 = 340000000 (Money, Level)",
            "Revenue:FY2025Q3 = 310000000 (Money, Level)",
            "Revenue:FY2025Q4 - Revenue:FY2025Q3 = 30000000 (Money, Difference)",
            "Revenue:FY2025Q4 / Revenue:FY2025Q3 = 1.0968 (ComputedMultiple, Level)",
            "growth of Revenue:FY2025Q4 over Revenue:FY2025Q3 = 0.0968 (Ratio, Change)",
            "Revenue over 2 periods = 650000000 (Money, Level)",
            "mean of Revenue over 2 periods = 325000000 (Money, Level)",
        ],
    );
}

#[test]
fn a_quarter_has_no_share_of_a_loss() {
    check(
        &["NetIncome:FY2025Q4", "NetIncome:FY2025"],
        &[
            "NetIncome:FY2025Q4 = -30000000 (Money, Level)",
            "NetIncome:FY2025 = -120000000 (Money, Level)",
        ],
    );
}

#[test]
fn two_losses_make_a_change_of_losses() {
    check(
        &["NetIncome:FY2025", "NetIncome:FY2024"],
        &[
            "NetIncome:FY2025 = -120000000 (Money, Level)",
            "NetIncome:FY2024 = -150000000 (Money, Level)",
            "NetIncome:FY2025 - NetIncome:FY2024 = 30000000 (Money, LossDifference)",
            "NetIncome:FY2025 / NetIncome:FY2024 = 0.8 (ComputedMultiple, Level)",
            "growth of NetIncome:FY2025 over NetIncome:FY2024 = -0.2 (Ratio, LossGrowth)",
            "NetIncome over 2 periods = -270000000 (Money, Level)",
            "mean of NetIncome over 2 periods = -135000000 (Money, Level)",
        ],
    );
}

#[test]
fn balances_are_not_added_over_time_and_ratios_do_not_grow() {
    check(
        &["Cash:FY2025", "Cash:FY2024", "GrossMargin:FY2025", "GrossMargin:FY2024"],
        &[
            "Cash:FY2025 = 74300000 (Money, Level)",
            "Cash:FY2024 = 61000000 (Money, Level)",
            "GrossMargin:FY2025 = 0.469 (Ratio, Level)",
            "GrossMargin:FY2024 = 0.462 (Ratio, Level)",
            "Cash:FY2025 - Cash:FY2024 = 13300000 (Money, Difference)",
            "Cash:FY2025 / Cash:FY2024 = 1.218 (ComputedMultiple, Level)",
            "growth of Cash:FY2025 over Cash:FY2024 = 0.218 (Ratio, Change)",
            "GrossMargin:FY2025 - GrossMargin:FY2024 = 0.007 (Points, Difference)",
        ],
    );
}

#[test]
fn a_year_and_a_quarter_of_another_year_are_not_compared() {
    check(
        &["Revenue:FY2024", "Revenue:FY2025Q4"],
        &[
            "Revenue:FY2024 = 1000000000 (Money, Level)",
            "Revenue:FY2025Q4 = 340000000 (Money, Level)",
        ],
    );
    check(
        &["Revenue:FY2025Q4", "Revenue:FY2024"],
        &[
            "Revenue:FY2025Q4 = 340000000 (Money, Level)",
            "Revenue:FY2024 = 1000000000 (Money, Level)",
        ],
    );
}

#[test]
fn the_last_quarter_of_a_year_is_before_the_first_one_of_the_next() {
    let mut sheet = sheet();
    let mut quarter = |id: &str, value: &str| {
        let mut fact = sheet.facts[&FactId::parse("Revenue:FY2025Q4").unwrap()].clone();
        fact.value = decimal(value);
        sheet.facts.insert(FactId::parse(id).unwrap(), fact);
    };
    quarter("Revenue:FY2024Q4", "200000000");
    quarter("Revenue:FY2025Q1", "250000000");
    check_in(
        &sheet,
        &["Revenue:FY2025Q1", "Revenue:FY2024Q4"],
        &[
            "Revenue:FY2025Q1 = 250000000 (Money, Level)",
            "Revenue:FY2024Q4 = 200000000 (Money, Level)",
            "Revenue:FY2025Q1 - Revenue:FY2024Q4 = 50000000 (Money, Difference)",
            "Revenue:FY2025Q1 / Revenue:FY2024Q4 = 1.25 (ComputedMultiple, Level)",
            "growth of Revenue:FY2025Q1 over Revenue:FY2024Q4 = 0.25 (Ratio, Change)",
            "Revenue over 2 periods = 450000000 (Money, Level)",
            "mean of Revenue over 2 periods = 225000000 (Money, Level)",
        ],
    );
}

#[test]
fn nothing_grows_from_zero_and_a_loss_after_it_is_no_larger_loss() {
    let mut sheet = sheet();
    let id = FactId::parse("NetIncome:FY2024").unwrap();
    sheet.facts.get_mut(&id).unwrap().value = decimal("0");
    check_in(
        &sheet,
        &["NetIncome:FY2025", "NetIncome:FY2024"],
        &[
            "NetIncome:FY2025 = -120000000 (Money, Level)",
            "NetIncome:FY2024 = 0 (Money, Level)",
            "NetIncome:FY2025 - NetIncome:FY2024 = -120000000 (Money, Difference)",
            "NetIncome over 2 periods = -120000000 (Money, Level)",
            "mean of NetIncome over 2 periods = -60000000 (Money, Level)",
        ],
    );
}

#[test]
fn growth_is_a_change_and_a_multiple_and_a_difference_of_ratios_is_in_points() {
    check(
        &["Revenue.yoy:FY2025"],
        &[
            "Revenue.yoy:FY2025 = 0.25 (Ratio, Change)",
            "1 + Revenue.yoy:FY2025 = 1.25 (ComputedMultiple, Level)",
        ],
    );
    check(
        &["GrossMargin.delta:FY2025"],
        &[
            "GrossMargin.delta:FY2025 = 0.007 (Ratio, Change)",
            "GrossMargin.delta:FY2025 = 0.007 (Points, Change)",
        ],
    );
}

#[test]
fn money_over_shares_of_one_period_is_per_share() {
    check(
        &["NetIncome:FY2025", "SharesDiluted:FY2025", "CurrentRatio:FY2025"],
        &[
            "NetIncome:FY2025 = -120000000 (Money, Level)",
            "SharesDiluted:FY2025 = 100000000 (Shares, Level)",
            "CurrentRatio:FY2025 = 0.89 (Multiple, Level)",
            "NetIncome:FY2025 / SharesDiluted:FY2025 = -1.2 (PerShare, Level)",
        ],
    );
    check(
        &["NetIncome:FY2025Q4", "SharesDiluted:FY2025"],
        &[
            "NetIncome:FY2025Q4 = -30000000 (Money, Level)",
            "SharesDiluted:FY2025 = 100000000 (Shares, Level)",
        ],
    );
}
