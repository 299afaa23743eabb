use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn growth_over_years_is_a_root() {
    assert_eq!(growth_rate(decimal("100"), decimal("121"), 2), Some(decimal("0.1")));
    assert_eq!(growth_rate(decimal("1"), decimal("32"), 5), Some(decimal("1")));
    assert_eq!(growth_rate(decimal("8"), decimal("1"), 3), Some(decimal("-0.5")));
    assert_eq!(growth_rate(decimal("7"), decimal("7"), 5), Some(decimal("0")));
    assert_eq!(growth_rate(decimal("1"), decimal("1.5"), 1), Some(decimal("0.5")));
}

#[test]
fn growth_from_or_to_zero_or_a_negative_value_is_none() {
    for (old, new) in [("0", "1"), ("1", "0"), ("-1", "1"), ("1", "-1"), ("1", "10000000")] {
        assert_eq!(growth_rate(decimal(old), decimal(new), 3), None);
    }
    assert_eq!(growth_rate(decimal("1"), decimal("2"), 0), None);
    assert_eq!(growth_rate(decimal("1"), decimal("2"), 21), None);
}

#[test]
fn arithmetic_overflow_gives_none() {
    assert_eq!(quotient(Decimal::MAX, decimal("0.1")), None);
    assert_eq!(quotient(Decimal::ONE, Decimal::ZERO), None);
    assert_eq!(average(Decimal::MAX, Decimal::MAX), None);
}

proptest! {
    #[test]
    fn compounding_the_growth_rate_gives_the_new_value(
        old in 1i64..1_000_000_000_000,
        new in 1i64..1_000_000_000_000,
        years in 1u32..=20,
    ) {
        let (old, new) = (Decimal::from(old), Decimal::from(new));
        let Some(rate) = growth_rate(old, new, years) else {
            let growth = new / old;
            prop_assert!(growth > Decimal::from(1_000_000) || growth < Decimal::new(1, 6));
            return Ok(());
        };
        let mut reached = old;
        for _ in 0..years {
            reached *= Decimal::ONE + rate;
        }
        let off = (reached / new - Decimal::ONE).abs();
        prop_assert!(off < Decimal::new(1, 8), "{old} to {new} in {years}: {rate}, off by {off}");
    }
}
