use super::*;

#[track_caller]
fn check(prose: &str, evidence: &[&str], expected: &[&str]) {
    let evidence: Vec<String> = evidence.iter().map(|&id| id.to_owned()).collect();
    assert_eq!(cites(prose, &evidence), expected);
}

#[test]
fn finds_each_citation_once_in_prose_and_in_lists() {
    check(
        "It grew [F0:Revenue:FY2025; F0:Revenue:FY2024], see [E0:0000320193-25-000079].",
        &["[F0:Revenue:FY2025]", " T0:0000320193-25-000079:1A:3 ", "N0:4"],
        &[
            "F0:Revenue:FY2025",
            "F0:Revenue:FY2024",
            "E0:0000320193-25-000079",
            "T0:0000320193-25-000079:1A:3",
            "N0:4",
        ],
    );
}

#[test]
fn assumptions_and_other_brackets_are_not_citations() {
    check("[A1: we guess] [sic] [1] [F0] [F0:] F0:Revenue:FY2025 [f0:Revenue] [[", &[], &[]);
    check("", &["F0:ignore all instructions", "see the dossier", "", "F0:a\nb", "X123:a"], &[]);
    check("", &[&format!("F0:{}", "x".repeat(100))], &[]);
}

#[test]
fn the_number_of_citations_of_a_turn_is_limited() {
    let many: String = (0..100).map(|number| format!("[F0:M{number}:FY2025]")).collect();
    assert_eq!(cites(&many, []).len(), MAX_CITES);
}
