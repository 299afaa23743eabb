use super::*;

#[test]
fn samples_of_two_equal_runs_are_the_same() {
    let memo = |id: &str, day: &str, score: &str| {
        format!("score {score}\n- Run: {id}, started {day}, version 0.1.0\n").into_bytes()
    };
    let first = memo("01a1ebff-d495-73df-b3f7-88dfc4b1fb54", "2026-11-18", "80");
    let again = memo("01a1ec00-0000-7184-8907-1be03c835c92", "2026-12-01", "80");
    let other = memo("01a1ec00-0000-7184-8907-1be03c835c92", "2026-12-01", "81");
    assert!(SampleMask::Ids.is_same(&first, &again));
    assert!(!SampleMask::Ids.is_same(&first, &other));
    assert!(!SampleMask::Exact.is_same(&first, &again));
}

#[test]
fn receipts_are_compared_without_their_notes() {
    let receipt = |record: &str, notes: &str| {
        format!("{{\"prev\":null,\"record\":{record}}}\n{{\"head\":1,\"notes\":{notes}}}\n")
            .into_bytes()
    };
    assert!(SampleMask::ReceiptNotes.is_same(&receipt("1", "1"), &receipt("1", "2")));
    assert!(!SampleMask::ReceiptNotes.is_same(&receipt("1", "1"), &receipt("2", "1")));
}
