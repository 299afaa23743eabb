#[path = "secrets_corpus.rs"]
mod corpus;

use self::corpus::{ALNUM, CorpusRng, SecretCorpus, placed, tokens};
use super::*;
use crate::drafts::RelPath;
use crate::gate::{FileContent, FileContext};

fn key() -> FingerprintKey {
    FingerprintKey::new([7; 32])
}

fn found(bytes: &[u8]) -> Vec<SecretFinding> {
    scan(bytes, &key()).secrets
}

/// The numbers in SPECIFICATION.md, printed with `--nocapture`.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are wanted")]
fn the_generated_corpus_is_told_apart() {
    let (mut missed, mut alarms, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    let (mut positives, mut tricks, mut harmless) = (0, 0, 0);
    for seed in 0..6 {
        let corpus = SecretCorpus::of(seed);
        positives += corpus.credentials.len();
        for (name, bytes) in corpus.credentials {
            if found(&bytes).is_empty() {
                missed.push(name);
            }
        }
        tricks += corpus.disguises.len();
        for (name, bytes) in corpus.disguises {
            if !found(&bytes).iter().any(|secret| secret.tier == SecretTier::Specific) {
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
fn a_documentation_example_of_a_known_format_is_noted_once_and_not_a_credential() {
    let text = b"aws_access_key_id = AKIAIOSFODNN7EXAMPLE\nagain = AKIAIOSFODNN7EXAMPLE\n";
    let scan = scan(text, &key());
    assert_eq!(scan.secrets, []);
    let examples: Vec<_> = scan.examples.iter().map(|one| (one.kind, one.line)).collect();
    assert_eq!(examples, [("aws-access-key", 1)]);
}

#[test]
fn every_vendor_token_format_is_in_the_specific_tier() {
    let mut dice = CorpusRng(1);
    for (name, token) in tokens(&mut dice) {
        let seen = found(placed(2, &token).as_bytes());
        assert!(seen.iter().any(|secret| secret.tier == SecretTier::Specific), "{name}: {seen:?}");
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
    let token = format!("ghp_{}", CorpusRng(3).of(ALNUM, 36));
    let seen = found(format!("one\ntwo\nkey = \"{token}\"\n").as_bytes());
    let expected = SecretFinding {
        kind: "github-token",
        tier: SecretTier::Specific,
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
    let mut dice = CorpusRng(4);
    let (one, two) = (dice.of(ALNUM, 36), dice.of(ALNUM, 36));
    assert_eq!(found(format!("ghp_{one},ghp_{two}").as_bytes()).len(), 2);
}

#[test]
fn a_new_credential_is_found_among_many_existing_ones() {
    let mut dice = CorpusRng(5);
    let mut lines = || format!("t = 'ghp_{}'\n", dice.of(ALNUM, 36));
    let base: String = (0..MAX_FOUND + 10).map(|_| lines()).collect();
    let draft = format!("{base}{}", lines());
    let path = RelPath::parse("fixtures.py").unwrap();
    let side = |text| FileContent { bytes: str::as_bytes(text), executable: false };
    let change = FileChange {
        path: &path,
        rename_to: None,
        base: Some(side(&base)),
        draft: Some(side(&draft)),
        around: FileContext::default(),
    };
    let lines: Vec<_> =
        check(&change, &key(), &AtomicBool::new(false)).into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines, [Some(MAX_FOUND + 11)]);
}

#[test]
fn the_fingerprint_is_hmac_sha_256() {
    // RFC 4231, test case 2, uses the key "Jefe"; padding it with zeros gives the same HMAC.
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(b"Jefe");
    let seen = FingerprintKey::new(bytes).fingerprint(b"what do ya want for nothing?");
    assert_eq!(seen, "5bdcc146bf60754e");
}

/// Twenty texts that make a naive scanner repeat work. The gate benchmark measures them.
const HOSTILE: &str = include_str!("secrets_hostile.json");

#[test]
fn the_credential_scan_takes_linear_time() {
    let pieces: Vec<String> = serde_json::from_str(HOSTILE).unwrap();
    assert_eq!(pieces.len(), 20);
    for piece in pieces {
        let steps = |size: usize| {
            let scan = scan(piece.repeat(size / piece.len()).as_bytes(), &key());
            assert!(scan.complete, "{piece:?}");
            // Several passes read every byte.
            assert!(scan.steps > 4 * size as u64, "{piece:?}: {}", scan.steps);
            scan.steps
        };
        let (small, large) = (steps(64 << 10), steps(256 << 10));
        assert!(large <= 5 * small, "{piece:?}: {small} steps, then {large}");
    }
}

#[test]
fn a_scan_is_over_when_its_steps_are_spent() {
    let stop = AtomicBool::new(false);
    let mut work = ScanBudget::for_bytes(10, &stop);
    let most = usize::try_from(10 * STEPS_PER_BYTE + MIN_STEPS).unwrap();
    work.spend(most);
    assert!(!work.is_over());
    work.spend(1);
    assert!(work.is_over());
    let mut work = ScanBudget::for_bytes(10, &stop);
    work.spend(most + 1);
    let mut found = 0;
    for_each_view(b"ghp_0123456789", &PREFIXES, &mut work, &mut |view, work| {
        scan_view(view, work, &mut |_, _, _, _| found += 1);
    });
    assert_eq!(found, 0);
}

#[test]
fn a_cancelled_credential_scan_ends_and_is_marked_incomplete() {
    let text = "ghp_ key = \"".repeat(1000);
    let scan = scan_beyond(BTreeSet::new(), text.as_bytes(), &key(), &AtomicBool::new(true));
    assert!(!scan.complete && !scan.is_clean());
}

#[test]
fn a_credential_in_a_simple_disguise_is_found() {
    let token = format!("ghp_{}", CorpusRng(6).of(ALNUM, 36));
    let encode = |bytes: &[u8]| base64_of(bytes);
    let codes = |format: &dyn Fn(u8) -> String| token.bytes().map(format).collect::<String>();
    let disguises = [
        ("example appended", format!("t = \"{token}example\"[:40]")),
        ("one more character", format!("t = \"{token}X\"")),
        ("an underscore before", format!("t_{token}")),
        ("a letter before", format!("x{token}")),
        ("an escaped line break before", format!("\"line\\n{token}\"")),
        ("base64 twice", encode(encode(token.as_bytes()).as_bytes())),
        ("base64 after one character", format!("x{}", encode(token.as_bytes()))),
        ("base64 after a byte that is no text", encode(format!("é{token}").as_bytes())),
        ("base64 wrapped at 20", wrapped(&encode(token.as_bytes()), 20)),
        ("octal escapes", codes(&|byte| format!("\\{byte:03o}"))),
        ("braced escapes", codes(&|byte| format!("\\u{{{byte:x}}}"))),
        ("HTML entities", codes(&|byte| format!("&#{byte};"))),
        ("a list of parts", format!("\"\".join([\"{}\", \"{}\"])", &token[..20], &token[20..])),
        ("a comment between", format!("a = \"{}\" # part\n\"{}\"", &token[..20], &token[20..])),
    ];
    let missed: Vec<_> = disguises
        .iter()
        .filter(|(_, text)| found(text.as_bytes()).is_empty())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(missed, Vec::<&&str>::new());
    let small = "-----begin rsa private key-----\nMIIEpAIBAAKCAQEAu3Zr8qLmN0Pq\n";
    assert_eq!(found(small.as_bytes())[0].kind, "private-key");
}

fn wrapped(text: &str, width: usize) -> String {
    let lines = text.as_bytes().chunks(width);
    lines.map(|line| std::str::from_utf8(line).unwrap()).collect::<Vec<_>>().join("\n")
}

fn base64_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |group: &[u8], at: usize| {
        let bits = group
            .iter()
            .enumerate()
            .fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize])
    };
    bytes.chunks(3).flat_map(|group| (0..=group.len()).map(move |at| digit(group, at))).collect()
}

#[test]
fn a_chosen_password_is_found_and_a_placeholder_is_not() {
    for value in ["Tr0ub4dor&3", "hunter2!correcthorse"] {
        assert_eq!(found(format!("password = \"{value}\"\n").as_bytes()).len(), 1, "{value}");
    }
    for value in ["changeme", "password_field", "user-name-1", "a=1&b=2", "secret_key"] {
        assert_eq!(found(format!("password = \"{value}\"\n").as_bytes()), [], "{value}");
    }
}

#[test]
fn a_hidden_credential_is_not_in_the_text_and_the_rest_is() {
    for (name, token) in tokens(&mut CorpusRng(1)) {
        let (shown, hidden) = hide_secrets(&format!("Grüße\n{}\nlast line", placed(2, &token)));
        assert!(hidden >= 1 && shown.contains("[hidden: "), "{name}: {shown}");
        assert!(!shown.contains(&token), "{name}: {shown}");
        assert!(shown.starts_with("Grüße\n") && shown.ends_with("\nlast line"), "{name}: {shown}");
    }
}

#[test]
fn a_text_without_credentials_is_shown_unchanged() {
    for text in ["", "Revenue grew by 12.4 % [F0:Revenue:FY2025].", "ä\u{200b}b\n\nc"] {
        assert_eq!(hide_secrets(text), (text.to_owned(), 0));
    }
}

#[test]
fn an_encoded_credential_hides_its_line() {
    let (_, token) = tokens(&mut CorpusRng(3)).into_iter().next().unwrap();
    let encoded = token.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let (shown, hidden) = hide_secrets(&format!("first\nkey = \"{encoded}\"\nlast"));
    assert!(hidden >= 1 && !shown.contains(&encoded), "{shown}");
    assert!(shown.starts_with("first\n[hidden: ") && shown.ends_with("]\nlast"), "{shown}");
}

/// Regression: only the first line was hidden, or a line of prose before it.
#[test]
fn a_credential_over_several_lines_hides_all_of_them() {
    let token = format!("ghp_{}", CorpusRng(6).of(ALNUM, 36));
    let (start, end) = token.split_at(20);
    for text in [
        wrapped(&base64_of(token.as_bytes()), 20),
        wrapped(&base64_of(base64_of(token.as_bytes()).as_bytes()), 30),
        format!("key = \"{start}\" +\n  \"{end}\""),
    ] {
        let (shown, hidden) = hide_secrets(&format!("one, two\n\nthree:\n{text}\nthe last"));
        assert!(hidden >= 1, "{shown}");
        assert!(shown.starts_with("one, two\n\nthree:\n[hidden: "), "{shown}");
        assert!(shown.ends_with("]\nthe last"), "{shown}");
        for line in text.lines() {
            assert!(!shown.contains(line), "{shown}");
        }
    }
}

/// Regression: positions in other encodings were taken for positions in the text.
#[test]
fn a_finding_in_wrapped_base64_or_utf_16_names_its_line() {
    let token = format!("ghp_{}", CorpusRng(6).of(ALNUM, 36));
    let lines = |bytes: &[u8]| found(bytes).iter().map(|one| one.line).collect::<Vec<_>>();
    for before in [
        "",
        "one.\n",
        "A long line of prose in front, of nearly a hundred bytes in UTF-16.\n\n",
        "価格は百円です。\n",
    ] {
        for times in [1, 9] {
            let before = before.repeat(times);
            let line = before.lines().count() + 1;
            let coded = wrapped(&base64_of(token.as_bytes()), 20);
            assert_eq!(
                lines(format!("{before}{coded}\nthe last\n").as_bytes()),
                [line],
                "{before:?}"
            );
            let wide = format!("\u{feff}{before}key = \"{token}\"\nlast\n");
            let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
            // Lines of the file as bytes: a line break is the byte 10.
            let above =
                wide.windows(2).take_while(|pair| *pair != b"k\0").filter(|pair| pair[0] == b'\n');
            assert_eq!(lines(&wide), [above.count() + 1], "{before:?}");
        }
    }
}

#[test]
fn a_finding_in_another_reading_names_the_line_of_the_text() {
    let token = format!("ghp_{}", CorpusRng(6).of(ALNUM, 36));
    let (start, end) = token.split_at(20);
    let escaped: String = token.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
    let unseen: String = token.chars().flat_map(|c| [c, '\u{200b}']).collect();
    let texts = [
        format!("key = \"{escaped}\""),
        format!("key = \"{start}\" + \"{end}\""),
        format!("key = \"{unseen}\""),
    ];
    for before in
        ["a = \"\\x41\\x42\"\n", "b = \"x\" + \"y\"\n", "c\u{200b}\n", "d = \"x\" +\n \"y\"\n"]
    {
        for text in &texts {
            for times in [0, 1, 7] {
                let before = before.repeat(times);
                let line = before.lines().count() + 1;
                let seen = found(format!("{before}{text}\nlast\n").as_bytes());
                let lines: Vec<usize> = seen.iter().map(|one| one.line).collect();
                assert_eq!(lines, [line], "{before:?} {text:?}");
            }
        }
    }
}
