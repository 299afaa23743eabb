use super::of_facts;
use crate::claims::support_tests::{facts, index, sheet};

/// Checks all candidates of the facts, formatted as text.
#[track_caller]
fn check(ids: &[&str], expected: &[&str]) {
    let sheet = sheet();
    let index = index(&sheet);
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
