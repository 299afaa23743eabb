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
