use super::*;

const MEMO: &str = "# Memo\n\n| a | $1 [F0:X:FY2025] |\n\n## Keep cash (m4)\n\nMoney is kept. Cash was $950.5 million in FY2025 [F0:Cash:FY2025]. More.\n\n### Evidence\n\n| source | value |\n\n### Strongest objection\n\nNone.\n";

#[test]
fn only_the_first_cited_amount_in_a_sentence_is_changed() {
    let change = changed_number(MEMO).unwrap();
    assert_eq!(change.before, "Cash was $950.5 million in FY2025 [F0:Cash:FY2025].");
    assert_eq!(change.after, "Cash was $150.5 million in FY2025 [F0:Cash:FY2025].");
    assert_eq!(change.text, MEMO.replace("$950.5", "$150.5"));
    assert_eq!(changed_number("Cash was $950 million.\n"), None);
    assert_eq!(changed_number("Cash was $ [F0:Cash:FY2025]\n"), None);
}

#[test]
fn changed_receipt_has_another_score_in_its_conclusion_only() {
    let receipt = "{\"total_score\":80}\n{\"conclusion\":\"ranked\",\"total_score\":80}\n";
    let changed = "{\"total_score\":80}\n{\"conclusion\":\"ranked\",\"total_score\":90}\n";
    assert_eq!(changed_score(receipt).as_deref(), Some(changed));
    assert_eq!(changed_score("{\"total_score\":80}"), None);
}

#[test]
fn memo_excerpt_shows_the_first_move_and_its_evidence() {
    let excerpt = memo_excerpt(MEMO, 40);
    assert!(excerpt.starts_with("## Keep cash (m4)\n\nMoney is kept."), "{excerpt}");
    assert!(excerpt.contains("| source | value |"), "{excerpt}");
    assert!(!excerpt.contains("objection"), "{excerpt}");
    assert_eq!(excerpt.lines().filter(|line| line.chars().count() > 44).count(), 0, "{excerpt}");
}

#[test]
fn long_commands_are_continued_on_the_next_line() {
    assert_eq!(wrap_command(&["verify", "receipt.jsonl"], 40), "moothall verify receipt.jsonl");
    assert_eq!(
        wrap_command(&["check", "memo-changed.md", "--facts", "HLXI"], 40),
        "moothall check memo-changed.md \\\n    --facts HLXI"
    );
}
