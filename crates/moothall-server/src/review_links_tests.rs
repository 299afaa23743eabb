use std::os::unix::fs::PermissionsExt as _;

use super::*;

const NOW: u64 = 1_763_000_000_000;
const LATER: u64 = NOW + 60_000;

fn draft() -> DraftId {
    DraftId::parse("drf_00000000000000000000000000000001").unwrap()
}

fn seal() -> Sha256Hex {
    Sha256Hex::of(b"a version")
}

fn store(folder: &tempfile::TempDir) -> ReviewLinkStore {
    ReviewLinkStore::at(folder.path().join("review-links"))
}

fn issue(store: &ReviewLinkStore) -> ReviewToken {
    store.issue("4f2a91c3", "ops", draft(), seal(), LATER).unwrap()
}

fn refusal(store: &ReviewLinkStore, token: &str, now_ms: u64) -> String {
    store.verify(token, now_ms).unwrap_err().to_string()
}

#[test]
fn a_token_names_its_draft_and_version_and_checking_does_not_use_it_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let token = issue(&store);
    for _ in 0..3 {
        let link = store.verify(token.reveal(), NOW).unwrap();
        assert_eq!(link.subject(), Some((draft(), seal())));
        assert_eq!((link.notice.as_str(), link.target.as_str()), ("4f2a91c3", "ops"));
    }
    assert!(token.link("https://host/").starts_with("https://host/review#"), "{token:?}");
    assert_eq!(format!("{token:?}"), "ReviewToken(…)");
}

#[test]
fn a_token_works_once_also_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let store_of_one = store(&folder);
    let token = issue(&store_of_one);
    let link = store_of_one.verify(token.reveal(), NOW).unwrap();
    store_of_one.claim(&link, NOW).unwrap();
    // Opened again, as after a restart.
    let other = store(&folder);
    assert_eq!(refusal(&other, token.reveal(), NOW), "this review link has been used");
    assert!(matches!(other.claim(&link, NOW), Err(ReviewLinkError::Used)));
    // Another token about the same version is independent.
    other.verify(issue(&other).reveal(), NOW).unwrap();
}

#[test]
fn of_many_concurrent_claims_one_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let link = store.verify(issue(&store).reveal(), NOW).unwrap();
    let won = std::thread::scope(|scope| {
        let claims: Vec<_> =
            (0..16).map(|_| scope.spawn(|| store.claim(&link, NOW).is_ok())).collect();
        claims.into_iter().map(|claim| usize::from(claim.join().unwrap())).sum::<usize>()
    });
    assert_eq!(won, 1);
}

#[test]
fn a_claim_that_is_released_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let token = issue(&store);
    let link = store.verify(token.reveal(), NOW).unwrap();
    store.claim(&link, NOW).unwrap().release();
    store.verify(token.reveal(), NOW).unwrap();
}

#[test]
fn an_expired_token_is_refused_and_its_use_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let token = issue(&store);
    let link = store.verify(token.reveal(), LATER - 1).unwrap();
    store.claim(&link, NOW).unwrap();
    assert_eq!(refusal(&store, token.reveal(), LATER), "this review link has expired");
    let young = store.issue("1", "ops", draft(), seal(), LATER + 10).unwrap();
    let young = store.verify(young.reveal(), LATER).unwrap();
    store.claim(&young, LATER).unwrap();
    let used = fs_err::read_dir(folder.path().join("review-links/used")).unwrap().count();
    assert_eq!(used, 1);
}

/// Every change of a token, and a token that another key signed, is refused in the same words.
#[test]
fn a_changed_or_foreign_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store_here = store(&folder);
    let token = issue(&store_here).reveal().to_owned();
    let invalid = "this review link is invalid";
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        // The last character of base64 has unused bits, which the decoder refuses as well.
        assert_eq!(refusal(&store_here, &changed, NOW), invalid, "{at}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let foreign = issue(&store(&elsewhere));
    assert_eq!(refusal(&store_here, foreign.reveal(), NOW), invalid);
    for text in ["", ".", "a.b", &token[1..], &token.replace('.', ""), &"A".repeat(2_000)] {
        assert_eq!(refusal(&store_here, text, NOW), invalid, "{text}");
    }
    // A signature of the payload without the context is not a token.
    let key = fs_err::read(folder.path().join("review-links/key")).unwrap();
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &payload);
    let forged = format!("{}.{}", URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(tag));
    assert_eq!(refusal(&store_here, &forged, NOW), invalid);
}

#[test]
fn the_key_is_private_and_an_accessible_one_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let token = issue(&store);
    let key = folder.path().join("review-links/key");
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&key), mode(key.parent().unwrap())), (0o600, 0o700));
    assert_eq!(fs_err::read_dir(key.parent().unwrap()).unwrap().count(), 1);
    fs_err::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(store.verify(token.reveal(), NOW), Err(ReviewLinkError::Io(_))));
}
