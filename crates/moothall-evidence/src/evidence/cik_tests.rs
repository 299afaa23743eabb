use super::*;

#[test]
fn a_number_and_a_padded_text_are_the_same_filer() {
    let apple = Cik::new(320_193).unwrap();
    assert_eq!(apple.to_string(), "0000320193");
    for written in ["320193", "\"0000320193\"", "\"320193\""] {
        assert_eq!(serde_json::from_str::<Cik>(written).unwrap(), apple);
    }
    assert_eq!(serde_json::to_string(&apple).unwrap(), "\"0000320193\"");
}

#[test]
fn an_invalid_filer_number_is_refused() {
    for written in [
        "0",
        "\"0000000000\"",
        "-1",
        "1.5",
        "10000000000",
        "\"\"",
        "\"12a\"",
        "\"+1\"",
        "null",
        "[1]",
    ] {
        assert!(serde_json::from_str::<Cik>(written).is_err(), "{written}");
    }
    assert_eq!(Cik::parse("00000320193"), None);
}
