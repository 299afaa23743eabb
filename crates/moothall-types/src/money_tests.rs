use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: Option<u64>) {
    assert_eq!(text.parse::<MicroUsd>().ok(), expected.map(MicroUsd::new), "{text:?}");
}

#[test]
fn common_spellings_of_an_amount_are_parsed() {
    check("2.50", Some(2_500_000));
    check("$2.50", Some(2_500_000));
    check(" 3 ", Some(3_000_000));
    check("0.000001", Some(1));
    check("5.", Some(5_000_000));
    check("0.0000001", None);
    check("-1", None);
    check("1e3", None);
    check("", None);
    check(".5", None);
    check("18446744073710", None);
}

#[test]
fn amounts_are_shown_with_cents_and_no_idle_zeros() {
    assert_eq!(MicroUsd::new(2_500_000).to_string(), "$2.50");
    assert_eq!(MicroUsd::new(125).to_string(), "$0.000125");
    assert_eq!(MicroUsd::ZERO.to_string(), "$0.00");
    assert_eq!(MicroUsd::new(10_000_000).to_string(), "$10.00");
}

#[test]
fn amounts_in_the_configuration_may_be_numbers_or_strings() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Section {
        #[serde(with = "dollars_option", default)]
        usd: Option<MicroUsd>,
    }
    let read = |json: &str| serde_json::from_str::<Section>(json).ok().map(|section| section.usd);
    assert_eq!(read(r#"{"usd": 2.5}"#), Some(Some(MicroUsd::new(2_500_000))));
    assert_eq!(read(r#"{"usd": 2}"#), Some(Some(MicroUsd::new(2_000_000))));
    assert_eq!(read(r#"{"usd": "$0.10"}"#), Some(Some(MicroUsd::new(100_000))));
    assert_eq!(read("{}"), Some(None));
    assert_eq!(read(r#"{"usd": -1}"#), None);
    let written = serde_json::to_string(&Section { usd: Some(MicroUsd::new(2_500_000)) }).unwrap();
    assert_eq!(written, r#"{"usd":"2.50"}"#);
}

proptest! {
    #[test]
    fn a_displayed_amount_is_parsed_back(micros in 0..u64::MAX) {
        let amount = MicroUsd::new(micros);
        prop_assert_eq!(amount.to_string().parse::<MicroUsd>(), Ok(amount));
    }
}
