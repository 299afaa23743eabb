use super::*;

fn team(name: &str) -> TeamName {
    name.parse().unwrap()
}

fn member(scopes: &str) -> AccessCaller {
    AccessCaller::Known(TeamMember {
        owner: RunOwner { team: team("north"), token: None },
        scopes: scopes.parse().unwrap(),
        limits: CredentialLimits::default(),
    })
}

/// Checks the decision for each scope on own, foreign, missing and common objects.
#[track_caller]
fn check(caller: &AccessCaller, expected: [(AccessScope, [Heard; 4]); 4]) {
    let (own, foreign) = (team("north"), team("south"));
    let objects = [
        AccessObject::Of(&own),
        AccessObject::Of(&foreign),
        AccessObject::Missing,
        AccessObject::Common,
    ];
    let heard = AccessScope::ALL.map(|scope| {
        let words =
            objects.map(|object| decide(caller, scope, object).map_err(AccessRefusal::code));
        (scope, words)
    });
    assert_eq!(heard, expected);
}

type Heard = Result<(), ErrorCode>;

const MAY: [Heard; 4] = [Ok(()), Err(ErrorCode::NotFound), Err(ErrorCode::NotFound), Ok(())];
const MAY_NOT: [Heard; 4] = [Err(ErrorCode::ScopeMissing); 4];

#[test]
fn every_caller_gets_the_documented_access_decision() {
    use AccessScope::{Admin, Read, Review, Run};
    for (caller, code) in [
        (AccessCaller::Nobody, ErrorCode::SignInFirst),
        (AccessCaller::Unknown, ErrorCode::UnknownCredential),
        (AccessCaller::Expired, ErrorCode::ExpiredCredential),
        (AccessCaller::Revoked, ErrorCode::RevokedCredential),
    ] {
        check(&caller, AccessScope::ALL.map(|scope| (scope, [Err(code); 4])));
    }
    for (scopes, [run, review, admin]) in [
        ("read", [MAY_NOT, MAY_NOT, MAY_NOT]),
        ("run", [MAY, MAY_NOT, MAY_NOT]),
        ("review", [MAY_NOT, MAY, MAY_NOT]),
        ("run,review", [MAY, MAY, MAY_NOT]),
        ("admin", [MAY, MAY, MAY]),
        (&ScopeSet::all().to_string(), [MAY, MAY, MAY]),
    ] {
        check(&member(scopes), [(Read, MAY), (Run, run), (Review, review), (Admin, admin)]);
    }
}

#[test]
fn every_refusal_says_what_to_do() {
    for refusal in [
        AccessRefusal::SignInFirst,
        AccessRefusal::UnknownCredential,
        AccessRefusal::ExpiredCredential,
        AccessRefusal::RevokedCredential,
        AccessRefusal::ScopeMissing(AccessScope::Run),
        AccessRefusal::NotThere,
    ] {
        assert!(!refusal.hint().is_empty(), "{refusal:?}");
    }
}

#[test]
fn scopes_are_parsed_and_displayed_in_one_order() {
    for (text, written) in [
        ("read", "read"),
        ("review,run", "run,review"),
        ("admin,read,admin", "read,admin"),
        ("read,run,review,admin", "read,run,review,admin"),
    ] {
        let scopes: ScopeSet = text.parse().unwrap();
        assert_eq!(scopes.to_string(), written);
        assert_eq!(written.parse(), Ok(scopes));
    }
    for wrong in ["", "read,", ",read", "Read", "read run", "all", "read,run,"] {
        assert_eq!(wrong.parse::<ScopeSet>(), Err(UnknownScope), "{wrong:?}");
    }
}

#[test]
fn names_of_teams_are_short_and_plain() {
    for name in ["a", "local", "risk-2", &"a".repeat(40)] {
        assert_eq!(team(name).as_str(), name);
    }
    for name in ["", "-a", "2a", "a-", "Risk", "a b", "a/b", "a\u{1b}[2J", "größe", &"a".repeat(41)]
    {
        assert!(name.parse::<TeamName>().is_err(), "{name:?}");
    }
    assert_eq!(team("local"), TeamName::local());
}

#[test]
fn a_token_secret_is_not_a_valid_token_id() {
    assert!("0123456789ab".parse::<TokenId>().is_ok());
    for wrong in ["", "0123456789a", "0123456789abc", "0123456789AB", "moot_1234567"] {
        assert!(wrong.parse::<TokenId>().is_err(), "{wrong:?}");
    }
}
