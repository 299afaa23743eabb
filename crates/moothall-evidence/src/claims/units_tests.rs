use super::{
    NumberSuffix, PrintedCurrency, PrintedUnit, SuffixContext, currency_after, currency_before,
    suffix,
};

#[test]
fn currencies_before_a_number_are_recognised() {
    for (before, expected) in [
        ("was $", Some((PrintedCurrency::AnyDollar, 4))),
        ("was US$", Some((PrintedCurrency::Code("USD"), 4))),
        ("was US$ ", Some((PrintedCurrency::Code("USD"), 4))),
        ("was R$", Some((PrintedCurrency::Code("BRL"), 4))),
        ("was €", Some((PrintedCurrency::Code("EUR"), 4))),
        ("was EUR ", Some((PrintedCurrency::Code("EUR"), 4))),
        ("was EUR", Some((PrintedCurrency::Code("EUR"), 4))),
        ("an AMATEUR", None),
        ("was ", None),
    ] {
        assert_eq!(currency_before(before), expected, "{before}");
    }
}

#[test]
fn currencies_after_a_number_are_recognised() {
    for (rest, expected) in [
        (" dollars of sales", Some((PrintedCurrency::AnyDollar, 8))),
        (" USD", Some((PrintedCurrency::Code("USD"), 4))),
        (" euros", Some((PrintedCurrency::Code("EUR"), 6))),
        (" CEO", None),
        (" people", None),
    ] {
        assert_eq!(currency_after(rest), expected, "{rest}");
    }
}

#[test]
fn a_plain_dollar_sign_matches_any_dollar_currency_only() {
    assert!(PrintedCurrency::AnyDollar.matches_code("USD"));
    assert!(PrintedCurrency::AnyDollar.matches_code("CAD"));
    assert!(!PrintedCurrency::AnyDollar.matches_code("EUR"));
    assert!(!PrintedCurrency::Code("CAD").matches_code("USD"));
}

const PLAIN: SuffixContext = SuffixContext { has_currency: false, has_decimals: false, digits: 1 };

#[track_caller]
fn check(rest: &str, before: SuffixContext, unit: Option<PrintedUnit>, scale: Option<u32>) {
    let NumberSuffix { unit: found_unit, scale: found_scale, .. } = suffix(rest, before);
    assert_eq!((found_unit, found_scale), (unit, scale), "{rest}");
}

#[test]
fn units_after_a_number_are_recognised() {
    for (rest, unit) in [
        ("%", PrintedUnit::Percent),
        (" per cent", PrintedUnit::Percent),
        (" percentage points", PrintedUnit::Points),
        ("pp higher", PrintedUnit::Points),
        (" bps", PrintedUnit::BasisPoints),
        ("-basis-point", PrintedUnit::BasisPoints),
        ("x", PrintedUnit::Multiple),
        ("×", PrintedUnit::Multiple),
        ("-fold", PrintedUnit::Multiple),
        (" days", PrintedUnit::Days),
    ] {
        check(rest, PLAIN, Some(unit), None);
    }
    check("×100", PLAIN, None, None);
    check(" xenon", PLAIN, None, None);
}

#[test]
fn a_single_letter_is_a_scale_only_after_money_or_decimals() {
    let money = SuffixContext { has_currency: true, ..PLAIN };
    let decimals = SuffixContext { has_decimals: true, digits: 3, ..PLAIN };
    check("M", PLAIN, None, None);
    check("M", money, None, Some(6));
    check("m", money, None, Some(6));
    check("B", decimals, None, Some(9));
    check("m", SuffixContext { digits: 3, ..PLAIN }, None, None);
    check("+ billion", PLAIN, None, Some(9));
    check(" MILLION", PLAIN, None, Some(6));
}
