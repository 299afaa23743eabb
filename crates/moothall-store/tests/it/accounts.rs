//! Contract tests for teams and credentials, run on every implementation.

use std::sync::Arc;

use moothall_core::access::{CredentialLimits, ScopeSet, TeamName, TokenId};
use moothall_core::{MicroUsd, Sha256Hex};
use moothall_store::{
    Credential, LoginCode, MAX_LABEL_BYTES, NewSession, NewToken, SessionRow, StoreError,
    TeamFilter, TeamRow, TokenRow,
};

use crate::support::Kept;

macro_rules! keeps_the_contract {
    ($place:expr; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let place = $place;
                super::$name(crate::support::Place::open(&place).await).await;
            }
        )*
    };
    ($place:expr) => {
        keeps_the_contract! { $place;
            teams_are_made_once_and_local_is_always_there
            a_token_is_found_by_its_secret_as_it_was_made
            tokens_of_a_team_are_listed_oldest_first
            a_token_of_an_unknown_team_or_with_a_long_label_is_refused
            use_of_a_token_is_noted_and_never_goes_back
            a_token_is_taken_back_once_and_its_sessions_end
            a_session_is_found_with_its_token_until_it_ends
            sessions_that_have_had_their_time_are_forgotten
            a_login_code_is_taken_once_and_in_its_time
        }
    };
}

mod sqlite {
    keeps_the_contract!(crate::support::SqlitePlace::new());
}

mod memory {
    keeps_the_contract!(crate::support::MemoryPlace::default());
}

mod real_postgres {
    keeps_the_contract!(crate::support::PgPlace::new());
}

fn team(name: &str) -> TeamName {
    name.parse().unwrap()
}

fn token_id(number: u64) -> TokenId {
    format!("{number:012x}").parse().unwrap()
}

fn secret(text: &str) -> Sha256Hex {
    Sha256Hex::of(text.as_bytes())
}

fn scopes(text: &str) -> ScopeSet {
    text.parse().unwrap()
}

fn new_token(number: u64) -> NewToken {
    NewToken {
        id: token_id(number),
        team: TeamName::local(),
        label: "nightly".to_owned(),
        secret: secret(&format!("token {number}")),
        scopes: scopes("run,review"),
        limits: CredentialLimits {
            usd_a_day: Some(MicroUsd::new(5_000_000)),
            ..CredentialLimits::default()
        },
        created_at_ms: 1_000 - number,
        expires_at_ms: Some(9_000),
    }
}

fn row(token: NewToken) -> TokenRow {
    TokenRow {
        id: token.id,
        team: token.team,
        label: token.label,
        scopes: token.scopes,
        limits: token.limits,
        created_at_ms: token.created_at_ms,
        expires_at_ms: token.expires_at_ms,
        last_used_at_ms: None,
        revoked_at_ms: None,
    }
}

fn new_session(text: &str, token: Option<TokenId>) -> NewSession {
    NewSession {
        secret: secret(text),
        team: TeamName::local(),
        token,
        scopes: scopes("read"),
        created_at_ms: 10,
        expires_at_ms: 100,
        page_word: Credential::from_client(&format!("page word of {text}")),
    }
}

fn login_code(text: &str) -> LoginCode {
    LoginCode {
        secret: secret(text),
        team: TeamName::local(),
        scopes: scopes("admin"),
        expires_at_ms: 100,
    }
}

async fn teams_are_made_once_and_local_is_always_there(store: Arc<dyn Kept>) {
    store.create_team(&team("south"), 7).await.unwrap();
    for name in ["south", "local"] {
        let refused = store.create_team(&team(name), 8).await;
        assert!(matches!(refused, Err(StoreError::TeamExists(there)) if there == team(name)));
    }
    let expected = [("local", 0), ("south", 7)];
    let expected =
        expected.map(|(name, created_at_ms)| TeamRow { name: team(name), created_at_ms });
    assert_eq!(store.teams().await.unwrap(), expected);
}

async fn a_token_is_found_by_its_secret_as_it_was_made(store: Arc<dyn Kept>) {
    store.create_token(new_token(1)).await.unwrap();
    let found = store.token(&secret("token 1")).await.unwrap();
    assert_eq!(found, Some(row(new_token(1))));
    assert_eq!(store.token(&secret("token 2")).await.unwrap(), None);
    // Neither an id nor a secret can be used twice.
    for again in [
        NewToken { secret: secret("another"), ..new_token(1) },
        NewToken { id: token_id(2), ..new_token(1) },
    ] {
        let refused = store.create_token(again).await;
        assert!(matches!(refused, Err(StoreError::TokenExists(_))), "{refused:?}");
    }
    assert_eq!(store.tokens(TeamFilter::All).await.unwrap(), [row(new_token(1))]);
}

async fn tokens_of_a_team_are_listed_oldest_first(store: Arc<dyn Kept>) {
    store.create_team(&team("south"), 7).await.unwrap();
    let foreign = NewToken { team: team("south"), expires_at_ms: None, ..new_token(2) };
    for token in [new_token(1), foreign.clone(), new_token(3)] {
        store.create_token(token).await.unwrap();
    }
    let own = [row(new_token(3)), row(new_token(1))];
    assert_eq!(store.tokens(TeamFilter::Only(TeamName::local())).await.unwrap(), own);
    assert_eq!(
        store.tokens(TeamFilter::Only(team("south"))).await.unwrap(),
        [row(foreign.clone())]
    );
    assert_eq!(store.tokens(TeamFilter::Only(team("west"))).await.unwrap(), []);
    let [third, first] = own;
    assert_eq!(store.tokens(TeamFilter::All).await.unwrap(), [third, row(foreign), first]);
}

async fn a_token_of_an_unknown_team_or_with_a_long_label_is_refused(store: Arc<dyn Kept>) {
    let refused = store.create_token(NewToken { team: team("south"), ..new_token(1) }).await;
    assert!(matches!(refused, Err(StoreError::UnknownTeam(name)) if name == team("south")));
    let label = "x".repeat(MAX_LABEL_BYTES + 1);
    let refused = store.create_token(NewToken { label, ..new_token(1) }).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    assert_eq!(store.tokens(TeamFilter::All).await.unwrap(), []);
}

async fn use_of_a_token_is_noted_and_never_goes_back(store: Arc<dyn Kept>) {
    store.create_token(new_token(1)).await.unwrap();
    for (at_ms, expected) in [(50, 50), (40, 50), (60, 60)] {
        store.record_use(&token_id(1), at_ms).await.unwrap();
        let used = TokenRow { last_used_at_ms: Some(expected), ..row(new_token(1)) };
        assert_eq!(store.tokens(TeamFilter::All).await.unwrap(), [used]);
    }
}

async fn a_token_is_taken_back_once_and_its_sessions_end(store: Arc<dyn Kept>) {
    for number in [1, 2] {
        store.create_token(new_token(number)).await.unwrap();
        let session = new_session(&format!("session {number}"), Some(token_id(number)));
        store.create_session(session).await.unwrap();
    }
    for at_ms in [60, 70] {
        store.revoke_token(&token_id(1), at_ms).await.unwrap();
    }
    let revoked = TokenRow { revoked_at_ms: Some(60), ..row(new_token(1)) };
    assert_eq!(store.token(&secret("token 1")).await.unwrap(), Some(revoked));
    assert_eq!(store.session(&secret("session 1")).await.unwrap(), None);
    assert!(store.session(&secret("session 2")).await.unwrap().is_some());
    let unknown = store.revoke_token(&token_id(3), 60).await;
    assert!(matches!(unknown, Err(StoreError::UnknownToken(id)) if id == token_id(3)));
}

async fn a_session_is_found_with_its_token_until_it_ends(store: Arc<dyn Kept>) {
    store.create_token(new_token(1)).await.unwrap();
    store.create_session(new_session("with", Some(token_id(1)))).await.unwrap();
    store.create_session(new_session("without", None)).await.unwrap();
    let expected = |text: &str, token| SessionRow {
        team: TeamName::local(),
        token,
        scopes: scopes("read"),
        expires_at_ms: 100,
        page_word: Credential::from_client(&format!("page word of {text}")),
    };
    let with = store.session(&secret("with")).await.unwrap();
    assert_eq!(with, Some(expected("with", Some(row(new_token(1))))));
    assert_eq!(store.session(&secret("without")).await.unwrap(), Some(expected("without", None)));
    for _ in 0..2 {
        store.end_session(&secret("with")).await.unwrap();
        assert_eq!(store.session(&secret("with")).await.unwrap(), None);
    }
    let unknown = store.create_session(new_session("x", Some(token_id(9)))).await;
    assert!(matches!(unknown, Err(StoreError::UnknownToken(id)) if id == token_id(9)));
    let foreign = NewSession { team: team("south"), ..new_session("x", None) };
    let unknown = store.create_session(foreign).await;
    assert!(matches!(unknown, Err(StoreError::UnknownTeam(name)) if name == team("south")));
}

async fn sessions_that_have_had_their_time_are_forgotten(store: Arc<dyn Kept>) {
    store.create_session(new_session("old", None)).await.unwrap();
    let late = |text, created_at_ms| NewSession {
        created_at_ms,
        expires_at_ms: 1_000,
        ..new_session(text, None)
    };
    store.create_session(late("late", 99)).await.unwrap();
    assert!(store.session(&secret("old")).await.unwrap().is_some());
    store.create_session(late("later", 100)).await.unwrap();
    assert_eq!(store.session(&secret("old")).await.unwrap(), None);
    assert!(store.session(&secret("late")).await.unwrap().is_some());
}

async fn a_login_code_is_taken_once_and_in_its_time(store: Arc<dyn Kept>) {
    store.create_login_code(login_code("code"), 1).await.unwrap();
    let take = |text: &str, at_ms| {
        let (store, secret) = (Arc::clone(&store), secret(text));
        tokio::spawn(async move { store.take_login_code(&secret, at_ms).await.unwrap() })
    };
    let tasks: Vec<_> = (0..8).map(|_| take("code", 99)).collect();
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(task.await.unwrap());
    }
    assert_eq!(taken, [login_code("code")]);
    store.create_login_code(login_code("late"), 1).await.unwrap();
    assert_eq!(take("late", 100).await.unwrap(), None);
    // The code was consumed.
    assert_eq!(take("late", 99).await.unwrap(), None);
    let foreign = LoginCode { team: team("south"), ..login_code("x") };
    let unknown = store.create_login_code(foreign, 1).await;
    assert!(matches!(unknown, Err(StoreError::UnknownTeam(name)) if name == team("south")));
}
