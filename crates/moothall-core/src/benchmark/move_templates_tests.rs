use super::*;

#[test]
fn every_template_reaches_every_value() {
    let revenue = 50_000.0;
    for template in MoveTemplate::ALL {
        for percent in -5..=7 {
            for factor in [0.95, 1.0, 1.05] {
                let wanted = f64::from(percent) / 100.0 * revenue;
                let scale = PlanScale { revenue, factor };
                let inputs = MoveInputs::solve(template, wanted, scale);
                let found = inputs.net_present_value();
                // A tenth of a percent of revenue is a twentieth of the usual difference of moves.
                assert!((found - wanted).abs() < 0.001 * revenue, "{inputs:?} {found} {wanted}");
                let text = inputs.sentences("pumps");
                assert!(!text.contains("$-") && !text.contains(" -"), "{text}");
                assert!(text.split(' ').count() <= 75, "{text}");
            }
        }
    }
}

#[test]
fn values_equal_a_calculation_by_hand() {
    // 10 million for 2.5 million in each of five years, sold again for 4 million.
    let inputs = MoveInputs::Acquisition {
        price: PlanAmount(1_000),
        cash: PlanAmount(250),
        resale: PlanAmount(400),
    };
    // 2.5 × 3.790787 + 4 × 0.620921 − 10 = 1.960652 million.
    assert!((inputs.net_present_value() - 196.0652).abs() < 0.001);
    let inputs = MoveInputs::Refinancing {
        debt: PlanAmount(10_000),
        old_rate: PlanShare(900),
        new_rate: PlanShare(500),
        fee: PlanAmount(1_000),
    };
    // 100 × 4 % × 3.790787 − 10 = 5.163147 million.
    assert!((inputs.net_present_value() - 516.3147).abs() < 0.001);
}

#[test]
fn printed_amounts_are_the_amounts_of_the_formula() {
    assert_eq!(PlanAmount(123_456).text(), "$1234.56 million [A1: plan]");
    assert_eq!(PlanAmount(7).text(), "$0.07 million [A1: plan]");
    assert_eq!(PlanShare(425).text(), "4.25% [A1: plan]");
}
