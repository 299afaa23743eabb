use std::collections::BTreeMap;

use moothall_core::Sha256Hex;

use super::{JournalCheckpoint, missing_checkpoint};

/// Notes at these records without a link to the previous one, as older versions wrote them.
fn older(seqs: &[u64]) -> BTreeMap<u64, JournalCheckpoint> {
    let note = JournalCheckpoint { hash: Sha256Hex::of(b""), previous: None };
    seqs.iter().map(|seq| (*seq, note)).collect()
}

#[test]
fn a_missing_checkpoint_is_tolerated_longer_in_old_journals() {
    let check = |seqs: &[u64], records, expected: Option<u64>| {
        assert_eq!(missing_checkpoint(&older(seqs), records, 0), expected, "{seqs:?} {records}");
    };
    check(&[], 0, None);
    check(&[1], 256, None);
    check(&[1, 257, 513], 700, None);
    // Signed after ten minutes, and late because a process was killed before signing.
    check(&[1, 20, 280, 541], 800, None);
    check(&[1, 513], 700, Some(257));
    check(&[1, 257], 769, Some(513));
    check(&[], 4974, Some(256));
}

#[test]
fn a_checkpoint_named_by_its_successor_or_the_anchor_must_exist() {
    let linked = |pairs: &[(u64, u64)]| -> BTreeMap<u64, JournalCheckpoint> {
        let note =
            |previous| JournalCheckpoint { hash: Sha256Hex::of(b""), previous: Some(previous) };
        pairs.iter().map(|(seq, previous)| (*seq, note(*previous))).collect()
    };
    assert_eq!(missing_checkpoint(&linked(&[(1, 0), (20, 1)]), 30, 20), None);
    assert_eq!(missing_checkpoint(&linked(&[(1, 0), (40, 20)]), 50, 40), Some(20));
    assert_eq!(missing_checkpoint(&linked(&[(1, 0)]), 30, 20), Some(20));
}
