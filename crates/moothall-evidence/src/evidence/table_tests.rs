use super::*;
use crate::evidence::test_data::{
    ALL, ALPHABET, APPLE, JPMORGAN, LOGISTIC_PROPERTIES, NVIDIA, SNOWFLAKE,
};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[track_caller]
fn check_fixed(value: &str, decimals: u32, expected: &str) {
    assert_eq!(fixed(decimal(value), decimals), expected);
}

#[test]
fn printed_values_are_rounded_not_cut() {
    // `format!("{:.1}")` of this decimal is 31.9.
    check_fixed("31.97", 1, "32.0");
    check_fixed("-31.97", 1, "-32.0");
    check_fixed("0.05", 1, "0.1");
    check_fixed("2.5", 0, "3");
    check_fixed("-0.04", 1, "0.0");
    check_fixed("7", 2, "7.00");
}

/// A company with losses, gaps and ratios that are not meaningful.
#[test]
fn a_table_matches_its_snapshot() {
    insta::assert_snapshot!(SNOWFLAKE.sheet.table(1_000));
}

#[test]
fn a_small_table_matches_its_snapshot() {
    insta::assert_snapshot!(APPLE.sheet.table(400));
}

#[test]
fn a_table_of_a_small_filer_is_in_thousands() {
    insta::assert_snapshot!(LOGISTIC_PROPERTIES.sheet.table(800));
}

#[test]
fn splits_and_restatements_are_marked() {
    let table = NVIDIA.sheet.table(u64::MAX);
    assert!(table.contains("| EPSDiluted | 0.39s | 0.17r | 1.19r | 2.94 | 4.90 |"), "{table}");
    assert!(table.contains("; s = put on today's shares after a split"));
    let table = ALPHABET.sheet.table(u64::MAX);
    assert!(table.contains("Note: shares were split 20:1"), "{table}");
}

#[test]
fn a_table_stays_within_its_tokens() {
    for sample in ALL {
        for max_tokens in [300, 600, 1_000, 2_000, 5_000] {
            let table = sample.sheet.table(max_tokens);
            let tokens = tokens_expected(&table);
            assert!(tokens <= max_tokens, "{} {max_tokens}: {tokens}\n{table}", sample.name);
        }
    }
}

#[test]
fn a_larger_token_limit_never_gives_a_shorter_table() {
    let rows = |max_tokens| {
        let table = APPLE.sheet.table(max_tokens);
        let columns = table.lines().find(|line| line.starts_with("| |")).unwrap().to_owned();
        (columns, table.lines().filter(|line| line.starts_with("| ")).count())
    };
    let sizes: Vec<_> = (1..20).map(|step| rows(step * 350)).collect();
    for pair in sizes.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].1 <= pair[1].1);
    }
}

#[test]
fn a_table_reports_how_many_rows_are_left_out() {
    let whole = APPLE.sheet.table(u64::MAX);
    assert!(!whole.contains("Left out"));
    let cut = APPLE.sheet.table(3_000);
    let rows = |table: &str| table.lines().filter(|line| line.starts_with("| ")).count();
    let left_out = rows(&whole) - rows(&cut);
    assert!(cut.ends_with(&format!("Left out for length: {left_out} more rows.\n")), "{cut}");
}

#[test]
fn a_table_without_any_tokens_keeps_its_header() {
    let table = APPLE.sheet.table(0);
    assert!(table.starts_with("F0: Apple Inc. (CIK 0000320193)"));
    assert!(tokens_expected(&table) < 260);
}

#[test]
fn the_whole_sheet_fits_a_dossier() {
    let tokens = tokens_expected(&APPLE.sheet.table(u64::MAX));
    assert!(tokens < 6_500, "{tokens}");
    let bank = JPMORGAN.sheet.table(3_000);
    assert!(!bank.contains("Left out"), "{bank}");
}
