use proptest::prelude::*;

use super::*;

fn known(is_assumed: bool, values: &[(&str, &str, &str)]) -> Vec<CitableCalculation> {
    let value = |(name, value, unit): &(&str, &str, &str)| CalculatedValue {
        name: (*name).to_owned(),
        value: value.parse().unwrap(),
        unit: (*unit).to_owned(),
    };
    let values = values.iter().map(value).collect();
    vec![CitableCalculation { id: "X0:m7-D2-1".to_owned(), is_assumed, values }]
}

fn verdicts(text: &str, known: &[CitableCalculation]) -> Vec<(String, ClaimVerdict)> {
    let claims = calculation_quotes(text, known);
    claims.into_iter().map(|claim| (claim.printed, claim.verdict)).collect()
}

#[test]
fn a_quote_must_equal_a_value_of_the_calculation_at_its_printed_precision() {
    let values = [("margin", "14.23", "%"), ("cost", "1234567890", "USD"), ("cover", "3.5", "x")];
    let known = known(false, &values);
    for (text, verdict) in [
        ("The margin is 14.2% [X0:m7-D2-1].", ClaimVerdict::OkDerived),
        ("The margin is 14.23% [X0:m7-D2-1].", ClaimVerdict::OkDerived),
        ("The margin is 14.3% [X0:m7-D2-1].", ClaimVerdict::WrongValue),
        ("It costs $1.23 billion [X0:M7-d2-1].", ClaimVerdict::OkDerived),
        ("It costs $1.32 billion [X0:m7-D2-1].", ClaimVerdict::WrongValue),
        ("Cover is 3.5x [X0:m7-D2-1].", ClaimVerdict::OkDerived),
        ("Cover is 3.5% [X0:m7-D2-1].", ClaimVerdict::WrongValue),
        ("The margin is -14.2% [X0:m7-D2-1].", ClaimVerdict::WrongSign),
    ] {
        let found = verdicts(text, &known);
        assert_eq!(
            found.iter().map(|(_, verdict)| *verdict).collect::<Vec<_>>(),
            [verdict],
            "{text}"
        );
    }
}

/// The verdict about the only number of a text, if the calculation has only this value.
fn verdict(text: &str, value: &str, unit: &str) -> ClaimVerdict {
    let found = verdicts(&format!("{text} [X0:m7-D2-1]."), &known(false, &[("it", value, unit)]));
    let [(_, verdict)] = found.as_slice() else { panic!("{text}: {found:?}") };
    *verdict
}

#[test]
fn a_value_is_compared_in_the_unit_of_the_text() {
    use ClaimVerdict::{OkDerived, WrongValue};
    for (text, value, unit, expected) in [
        ("It costs $1.25 billion", "1.25", "USD billion", OkDerived),
        ("It costs $1.25 billion", "1.25", "USD bn", OkDerived),
        ("It costs $1,250 million", "1.25", "billion", OkDerived),
        ("It costs $640 million", "640", "USD million", OkDerived),
        ("It costs $640 million", "640", "USD mn", OkDerived),
        ("It costs $640 million", "640", "USD", WrongValue),
        ("It costs $640,000", "640", "thousand USD", OkDerived),
        ("It costs $640 million", "640", "bps", WrongValue),
        ("It costs $640", "640", "days", WrongValue),
        ("It costs $640", "640", "x", WrongValue),
        ("It costs $640", "640", "%", WrongValue),
        ("It costs $640", "640", "points", WrongValue),
        ("Margin is 14.2%", "0.142", "ratio", OkDerived),
        ("Margin is 14.2%", "0.142", "", OkDerived),
        ("Margin is 14.2%", "14.2", "ratio", WrongValue),
        ("Margin is 14.2%", "14.2", "pp", OkDerived),
        ("Margin is 14.2%", "14.2", "USD", WrongValue),
        ("Margin rises by 1.5 percentage points", "1.5", "points", OkDerived),
        ("Margin rises by 1.5 percentage points", "0.015", "share", OkDerived),
        ("Margin rises by 150 basis points", "150", "bps", OkDerived),
        ("Margin rises by 150 basis points", "1.5", "%", OkDerived),
        ("Margin rises by 150 basis points", "1.5", "points", OkDerived),
        ("Margin rises by 150 basis points", "0.015", "ratio", WrongValue),
        ("DSO is 45 days", "45", "days", OkDerived),
        ("DSO is 45 days", "45", "", OkDerived),
        ("DSO is 45 days", "45", "USD", WrongValue),
        ("Cover is 3.5x", "3.5", "times", OkDerived),
        ("Cover is 3.5x", "3.5", "ratio", OkDerived),
        ("Cover is 3.5x", "3.5", "days", WrongValue),
    ] {
        assert_eq!(verdict(text, value, unit), expected, "{text}: {value} {unit}");
    }
}

#[test]
fn a_quote_must_have_the_sign_of_the_value() {
    use ClaimVerdict::{OkDerived, WrongSign};
    for (text, value, expected) in [
        ("The result is -$40 million", "-40000000", OkDerived),
        ("The result is ($40 million)", "-40000000", OkDerived),
        ("Profit falls by $40 million", "-40000000", OkDerived),
        ("The loss is $40 million", "-40000000", OkDerived),
        ("The result is $40 million", "-40000000", WrongSign),
        ("The result is -$40 million", "40000000", WrongSign),
        ("The result is $0 million", "0", OkDerived),
    ] {
        assert_eq!(verdict(text, value, "USD"), expected, "{text}: {value}");
    }
}

#[test]
fn the_best_of_several_values_decides() {
    let known = known(false, &[("before", "-14.2", "%"), ("after", "14.2", "%")]);
    let found = verdicts("The margin is 14.2% [X0:m7-D2-1].", &known);
    assert_eq!(found, [("14.2%".to_owned(), ClaimVerdict::OkDerived)]);
    // The last digit may be rounded in either direction, but that is noted.
    let known = self::known(false, &[("margin", "14.26", "%")]);
    let found = verdicts("The margin is 14.2% [X0:m7-D2-1].", &known);
    assert_eq!(found, [("14.2%".to_owned(), ClaimVerdict::Rounding)]);
}

#[test]
fn a_quote_with_an_assumption_beside_its_calculation_is_an_assumption() {
    let known = known(false, &[("margin", "14.2", "%")]);
    let found = verdicts("The margin is 15% [X0:m7-D2-1] [A1: a guess].", &known);
    assert_eq!(found, [("15%".to_owned(), ClaimVerdict::Assumption)]);
    let found = verdicts("The margin is 15% [X0:m7-D2-1], [X0:m7-D2-1].", &known);
    assert_eq!(found, [("15%".to_owned(), ClaimVerdict::WrongValue)]);
    let text = "The margin is 15% [X0:m7-D2-1] if costs grow by 3% [A1: a guess].";
    assert_eq!(verdicts(text, &known), [("15%".to_owned(), ClaimVerdict::WrongValue)]);
}

#[test]
fn values_that_rest_on_assumed_constants_count_as_assumptions() {
    let known = known(true, &[("payback", "3.2", "years")]);
    let found = verdicts("It pays back in 3.2 years [X0:m7-D2-1].", &known);
    assert_eq!(found, [("3.2".to_owned(), ClaimVerdict::Assumption)]);
}

#[test]
fn a_number_belongs_to_the_citation_that_follows_it() {
    let known = known(false, &[("margin", "14.2", "%")]);
    let text = "Revenue of $391 billion [F0:Revenue:FY2025] leaves 14.2% [X0:m7-D2-1].";
    assert_eq!(verdicts(text, &known), [("14.2%".to_owned(), ClaimVerdict::OkDerived)]);
    let text = "Revenue of $391 billion leaves 14.9% [F0:Revenue:FY2025] [X0:m7-D2-1].";
    assert_eq!(verdicts(text, &known), [], "one group cites the fact, too");
}

#[test]
fn a_calculation_that_does_not_exist_or_failed_supports_nothing() {
    let found = verdicts("It is 14% [X0:m9-D1-1].", &known(false, &[("margin", "14", "%")]));
    assert_eq!(found, [("[X0:m9-D1-1]".to_owned(), ClaimVerdict::BadCitation)]);
    let found = verdicts("It is 14% [X0:m7-D2-1].", &known(false, &[]));
    assert_eq!(found, [("14%".to_owned(), ClaimVerdict::WrongValue)]);
}

proptest! {
    #[test]
    fn any_text_can_be_checked(text in "([ -~äß]|\\[X0:m7-D2-1\\]|[0-9]{1,9}(\\.[0-9]{1,4})?%? ){0,40}") {
        let known = known(false, &[("margin", "14.2", "%"), ("cost", "-99999999999", "USD billion")]);
        let found = calculation_quotes(&text, &known);
        prop_assert_eq!(&found, &calculation_quotes(&text, &known));
    }
}
