#[path = "secrets_corpus.rs"]
mod corpus;

use self::corpus::{ALNUM, Corpus, Dice, placed, tokens};
use super::*;
use crate::drafts::RelPath;
use crate::gate::Content;

fn key() -> FingerprintKey {
    FingerprintKey::new([7; 32])
}

fn found(bytes: &[u8]) -> Vec<Secret> {
    scan(bytes, &key())
}

/// The figures of SPECIFICATION.md: printed with `--nocapture`.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are wanted")]
fn the_generated_corpus_is_told_apart() {
    let (mut missed, mut alarms, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    let (mut positives, mut tricks, mut harmless) = (0, 0, 0);
    for seed in 0..6 {
        let corpus = Corpus::of(seed);
        positives += corpus.credentials.len();
        for (name, bytes) in corpus.credentials {
            if found(&bytes).is_empty() {
                missed.push(name);
            }
        }
        tricks += corpus.disguises.len();
        for (name, bytes) in corpus.disguises {
            if !found(&bytes).iter().any(|secret| secret.tier == Tier::Specific) {
                hidden.push(name);
            }
        }
        harmless += corpus.harmless.len();
        for bytes in corpus.harmless {
            let kinds: Vec<_> = found(&bytes).into_iter().map(|secret| secret.kind).collect();
            if !kinds.is_empty() {
                alarms.push((kinds, String::from_utf8(bytes).unwrap()));
            }
        }
    }
    let caught = positives - missed.len();
    println!(
        "recall {caught}/{positives}, false alarms {} of {harmless}, evasions {}/{tricks}",
        alarms.len(),
        tricks - hidden.len()
    );
    assert!(positives >= 70 * 6 && harmless >= 64 * 6 && tricks >= 10 * 6);
    assert_eq!(hidden, Vec::<&str>::new());
    assert!(caught * 100 >= positives * 97, "missed {missed:?}");
    let precise = caught * 100 >= (caught + alarms.len()) * 97;
    assert!(precise, "{alarms:?}");
}

#[test]
fn every_vendor_format_is_of_the_surer_tier() {
    let mut dice = Dice(1);
    for (name, token) in tokens(&mut dice) {
        let seen = found(placed(2, &token).as_bytes());
        assert!(seen.iter().any(|secret| secret.tier == Tier::Specific), "{name}: {seen:?}");
    }
}

#[test]
fn every_pattern_compiles() {
    for pattern in TABLE.iter() {
        assert!(pattern.regex().is_some(), "{}", pattern.kind);
        assert!(!pattern.words.is_empty(), "{}", pattern.kind);
    }
}

#[test]
fn a_finding_names_the_line_and_not_the_value() {
    let token = format!("ghp_{}", Dice(3).of(ALNUM, 36));
    let seen = found(format!("one\ntwo\nkey = \"{token}\"\n").as_bytes());
    let expected = Secret {
        kind: "github-token",
        tier: Tier::Specific,
        line: 3,
        sha256: Sha256Hex::of(token.as_bytes()),
        fingerprint: key().fingerprint(token.as_bytes()),
    };
    assert_eq!(seen, std::slice::from_ref(&expected));
    assert!(!format!("{expected:?}").contains(&token[4..20]));
    let other = FingerprintKey::new([8; 32]);
    assert_ne!(other.fingerprint(token.as_bytes()), expected.fingerprint);
}

#[test]
fn two_tokens_side_by_side_are_two_findings() {
    let mut dice = Dice(4);
    let (one, two) = (dice.of(ALNUM, 36), dice.of(ALNUM, 36));
    assert_eq!(found(format!("ghp_{one},ghp_{two}").as_bytes()).len(), 2);
}

#[test]
fn many_credentials_that_were_there_do_not_hide_one_that_comes() {
    let mut dice = Dice(5);
    let mut lines = || format!("t = 'ghp_{}'\n", dice.of(ALNUM, 36));
    let base: String = (0..MAX_FOUND + 10).map(|_| lines()).collect();
    let draft = format!("{base}{}", lines());
    let path = RelPath::parse("fixtures.py").unwrap();
    let side = |text| Content { bytes: str::as_bytes(text), executable: false };
    let change = FileChange {
        path: &path,
        rename_to: None,
        base: Some(side(&base)),
        draft: Some(side(&draft)),
        twins: &[],
    };
    let lines: Vec<_> = look(&change, &key()).into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines, [Some(MAX_FOUND + 11)]);
}

#[test]
fn the_fingerprint_is_hmac_sha_256() {
    // RFC 4231, test case 2, has the key "Jefe"; a key that is filled up with zeros is the same.
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(b"Jefe");
    let seen = FingerprintKey::new(bytes).fingerprint(b"what do ya want for nothing?");
    assert_eq!(seen, "5bdcc146bf60754e");
}
