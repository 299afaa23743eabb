use super::*;

#[test]
fn what_begins_like_a_formula_is_words() {
    for (words, expected) in [
        ("=1+1", "\"'=1+1\""),
        ("+1", "\"'+1\""),
        ("-1", "\"'-1\""),
        ("@SUM(A1)", "\"'@SUM(A1)\""),
        ("\t=1", "\"'=1\""),
        ("\r=1", "\"'=1\""),
        ("\u{200b}=1", "\"'=1\""),
        ("＝1", "\"'＝1\""),
        ("=HYPERLINK(\"https://x\",\"y\")", "\"'=HYPERLINK(\"\"https://x\"\",\"\"y\"\")\""),
        ("a, \"b\"\nc", "\"a, \"\"b\"\" c\""),
        ("plain", "plain"),
    ] {
        assert_eq!(cell(words), expected, "{words:?}");
    }
}
