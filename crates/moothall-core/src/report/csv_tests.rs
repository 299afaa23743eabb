use super::*;

#[test]
fn csv_cells_that_look_like_formulas_are_escaped_unless_numeric() {
    for (words, expected) in [
        ("=1+1", "\"'=1+1\""),
        ("+1", "\"'+1\""),
        ("-1", "-1"),
        ("-1.5", "-1.5"),
        ("-1+2", "\"'-1+2\""),
        ("-1.5.2", "\"'-1.5.2\""),
        ("-", "\"'-\""),
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
