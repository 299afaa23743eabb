use std::collections::BTreeSet;

use super::*;

#[test]
fn secrets_are_long_random_and_never_printed() {
    let tokens: BTreeSet<String> =
        (0..100).map(|_| Credential::token().unwrap().reveal().to_owned()).collect();
    assert_eq!(tokens.len(), 100);
    for token in &tokens {
        let digits = token.strip_prefix("moot_").unwrap();
        assert_eq!(digits.len(), 64);
        assert!(digits.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
        assert_eq!(format!("{:?}", Credential::from_client(token)), "Credential(***)");
    }
}

#[test]
fn the_caller_of_a_token_depends_on_its_expiry() {
    let row = TokenRow {
        id: "0123456789ab".parse().unwrap(),
        team: TeamName::local(),
        label: String::new(),
        scopes: "run".parse().unwrap(),
        limits: CredentialLimits { runs_at_once: Some(2), ..CredentialLimits::default() },
        created_at_ms: 0,
        expires_at_ms: Some(100),
        last_used_at_ms: None,
        revoked_at_ms: None,
    };
    let owner = RunOwner { team: TeamName::local(), token: Some(row.id.clone()) };
    let known = AccessCaller::Known(TeamMember { owner, scopes: row.scopes, limits: row.limits });
    let session = |row: &TokenRow| SessionRow {
        team: TeamName::local(),
        token: Some(row.clone()),
        scopes: "admin".parse().unwrap(),
        expires_at_ms: 50,
        page_word: Credential::from_client("word"),
    };
    for (at_ms, expected) in [(99, &known), (100, &AccessCaller::Expired)] {
        assert_eq!(row.caller(at_ms), *expected);
    }
    // A session never has more scopes than its token and never outlives it.
    for (at_ms, expected) in [(49, &known), (50, &AccessCaller::Expired)] {
        assert_eq!(session(&row).caller(at_ms), *expected);
    }
    let revoked = TokenRow { revoked_at_ms: Some(1), ..row };
    assert_eq!(revoked.caller(200), AccessCaller::Revoked);
    assert_eq!(session(&revoked).caller(2), AccessCaller::Revoked);
}
