//! Admission of runs: once per idempotency key, and within the limits of a token.

use std::sync::Arc;

use moothall_core::access::{
    AccessScope, CredentialLimits, RunLimitError, RunOwner, ScopeSet, TeamName, TokenId,
};
use moothall_core::{MicroUsd, RunId, Sha256Hex};
use moothall_store::{
    AdmissionDecision, AdmissionTerms, IdempotencyKey, MAX_REQUEST_KEY_BYTES, NewRun, NewToken,
    RunCommit, RunFilter, RunMatch, RunState, Store, StoreError, TeamFilter,
};

use crate::support::{Kept, Place, keeps_the_contract, new_run, run_id, spent, the_end};

keeps_the_contract! {
    request_that_is_made_again_finds_its_run_and_another_one_is_refused
    run_of_a_team_or_a_token_that_is_not_there_is_refused
    requests_that_come_at_once_make_one_run_and_stay_within_the_limit
    runs_that_have_not_ended_count_until_they_do
    money_of_a_day_counts_in_the_worst_case_while_a_run_goes_on_and_as_it_was_when_it_ended
    cap_of_a_run_grows_only_into_what_is_left_of_the_day
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn team(name: &str) -> TeamName {
    name.parse().unwrap()
}

fn token() -> TokenId {
    "0123456789ab".parse().unwrap()
}

const TODAY: AdmissionTerms = AdmissionTerms { idempotency_key: None, day_began_at_ms: DAY_MS };

/// A store with a team `south` and a token with these limits.
async fn with_token(place: &dyn Place, limits: CredentialLimits) -> Arc<dyn Kept> {
    let store = place.open().await;
    store.create_team(&team("south"), 7).await.unwrap();
    store
        .create_token(NewToken {
            id: token(),
            team: TeamName::local(),
            label: String::new(),
            secret: Sha256Hex::of(b"secret"),
            scopes: ScopeSet::only(AccessScope::Run),
            limits,
            created_at_ms: 0,
            expires_at_ms: None,
        })
        .await
        .unwrap();
    store
}

fn asked(key: &str, what: &str) -> AdmissionTerms {
    let request_sha256 = Sha256Hex::of(what.as_bytes());
    let idempotency_key = Some(IdempotencyKey { key: key.to_owned(), request_sha256 });
    AdmissionTerms { idempotency_key, ..TODAY }
}

fn of_team(number: u32, name: &str) -> NewRun {
    let owner = RunOwner { team: team(name), token: Some(token()) };
    NewRun { owner, created_at_ms: 2 * DAY_MS, ..new_run(&run_id(number)) }
}

fn capped(number: u32, cents: u64) -> NewRun {
    NewRun { cap: Some(MicroUsd::new(cents * 10_000)), ..of_team(number, "local") }
}

async fn ids(store: &dyn Store, name: &str) -> Vec<RunId> {
    let filter = RunFilter { teams: TeamFilter::Only(team(name)), state: None, limit: 100 };
    store.runs(filter).await.unwrap().into_iter().map(|row| row.run_id).collect()
}

async fn request_that_is_made_again_finds_its_run_and_another_one_is_refused(place: &dyn Place) {
    let store = with_token(place, CredentialLimits::default()).await;
    let ask = async |run: NewRun, terms: AdmissionTerms| store.admit_run(run, terms).await.unwrap();
    assert_eq!(ask(of_team(1, "local"), asked("k", "HLXI")).await, AdmissionDecision::Created);
    let before = AdmissionDecision::AlreadyCreated(run_id(1));
    assert_eq!(ask(of_team(2, "local"), asked("k", "HLXI")).await, before);
    assert_eq!(ask(of_team(2, "local"), asked("k", "AAPL")).await, AdmissionDecision::OtherRequest);
    // Keys are scoped to a team.
    assert_eq!(ask(of_team(3, "south"), asked("k", "AAPL")).await, AdmissionDecision::Created);
    assert_eq!(ask(of_team(4, "local"), asked("l", "HLXI")).await, AdmissionDecision::Created);
    assert_eq!(ids(&*store, "local").await, [4, 1].map(run_id));
    assert_eq!(ids(&*store, "south").await, [3].map(run_id));
    // Runs of other teams are not found and cause no ambiguity.
    let find = async |prefix: &str, name| {
        store.find_runs(prefix, TeamFilter::Only(team(name))).await.unwrap()
    };
    assert_eq!(find("0000000", "south").await, RunMatch::One(run_id(3)));
    assert_eq!(find("00000001", "south").await, RunMatch::None);
    // The key is deleted with its run.
    store.delete_runs(&[run_id(1)]).await.unwrap();
    assert_eq!(ask(of_team(5, "local"), asked("k", "AAPL")).await, AdmissionDecision::Created);
    let long = asked(&"k".repeat(MAX_REQUEST_KEY_BYTES + 1), "HLXI");
    let refused = store.admit_run(of_team(6, "local"), long).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
}

async fn run_of_a_team_or_a_token_that_is_not_there_is_refused(place: &dyn Place) {
    let store = with_token(place, CredentialLimits::default()).await;
    let refused = store.create_run(of_team(1, "west")).await;
    assert!(matches!(refused, Err(StoreError::UnknownTeam(name)) if name == team("west")));
    let refused = store.admit_run(of_team(1, "west"), asked("k", "HLXI")).await;
    assert!(matches!(refused, Err(StoreError::UnknownTeam(name)) if name == team("west")));
    let nobody = RunOwner { token: Some("ffffffffffff".parse().unwrap()), ..RunOwner::local() };
    let refused = store.admit_run(NewRun { owner: nobody, ..of_team(1, "local") }, TODAY).await;
    assert!(matches!(refused, Err(StoreError::UnknownToken(_))), "{refused:?}");
    assert_eq!(store.run(&run_id(1)).await.unwrap(), None);
}

async fn requests_that_come_at_once_make_one_run_and_stay_within_the_limit(place: &dyn Place) {
    let three = CredentialLimits { runs_at_once: Some(3), ..CredentialLimits::default() };
    // A separate handle each, like several processes.
    let mut stores = vec![with_token(place, three).await];
    for _ in 1..8 {
        stores.push(place.open().await);
    }
    let start = |number: u32, terms: AdmissionTerms| {
        let store = Arc::clone(&stores[number as usize % stores.len()]);
        tokio::spawn(async move { store.admit_run(of_team(number, "local"), terms).await.unwrap() })
    };
    let tasks: Vec<_> = (1..=8).map(|number| start(number, asked("k", "HLXI"))).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers.retain(|answer| *answer == AdmissionDecision::Created);
    assert_eq!(answers.len(), 1);

    let tasks: Vec<_> = (11..=18).map(|number| start(number, TODAY)).collect();
    let mut made = 0;
    for task in tasks {
        match task.await.unwrap() {
            AdmissionDecision::Created => made += 1,
            AdmissionDecision::Refused(excess) => {
                assert_eq!(excess, RunLimitError::Runs { running: 3, allowed: 3 });
            }
            other => panic!("{other:?}"),
        }
    }
    // One run already existed.
    assert_eq!(made, 2);
}

async fn runs_that_have_not_ended_count_until_they_do(place: &dyn Place) {
    let store = with_token(
        place,
        CredentialLimits { runs_at_once: Some(2), ..CredentialLimits::default() },
    )
    .await;
    let start = async |number| store.admit_run(of_team(number, "local"), TODAY).await.unwrap();
    assert_eq!(start(1).await, AdmissionDecision::Created);
    assert_eq!(start(2).await, AdmissionDecision::Created);
    let paused = RunCommit { state: Some(RunState::Paused), ..RunCommit::default() };
    store.commit(&run_id(2), paused).await.unwrap();
    let full = AdmissionDecision::Refused(RunLimitError::Runs { running: 2, allowed: 2 });
    assert_eq!(start(3).await, full);
    store.commit(&run_id(1), the_end()).await.unwrap();
    assert_eq!(start(3).await, AdmissionDecision::Created);
    // Runs of other tokens or without a token do not count.
    store.create_run(new_run(&run_id(4))).await.unwrap();
    store.commit(&run_id(3), the_end()).await.unwrap();
    assert_eq!(start(5).await, AdmissionDecision::Created);
}

async fn money_of_a_day_counts_in_the_worst_case_while_a_run_goes_on_and_as_it_was_when_it_ended(
    place: &dyn Place,
) {
    let dollars = |cents: u64| MicroUsd::new(cents * 10_000);
    let store = with_token(
        place,
        CredentialLimits { usd_a_day: Some(dollars(1_000)), ..CredentialLimits::default() },
    )
    .await;
    let start = async |run| store.admit_run(run, TODAY).await.unwrap();
    let refused = |wanted, left| {
        let (wanted, left, allowed) = (dollars(wanted), dollars(left), dollars(1_000));
        AdmissionDecision::Refused(RunLimitError::Spend { wanted, left, allowed })
    };
    assert_eq!(start(capped(1, 600)).await, AdmissionDecision::Created);
    assert_eq!(start(capped(2, 500)).await, refused(500, 400));
    let cost = RunCommit { spent: Some(spent(1_500_000)), ..the_end() };
    store.commit(&run_id(1), cost).await.unwrap();
    assert_eq!(start(capped(2, 850)).await, AdmissionDecision::Created);
    assert_eq!(start(capped(3, 1)).await, refused(1, 0));
    store.commit(&run_id(2), the_end()).await.unwrap();
    // A run from before the day counts only while it is unfinished.
    let early = |number, cents| NewRun { created_at_ms: 1, ..capped(number, cents) };
    store.create_run(early(4, 900)).await.unwrap();
    assert_eq!(start(capped(5, 851)).await, refused(851, 0));
    store
        .commit(&run_id(4), RunCommit { spent: Some(spent(9_000_000)), ..the_end() })
        .await
        .unwrap();
    assert_eq!(start(capped(5, 851)).await, refused(851, 850));
    assert_eq!(start(capped(5, 850)).await, AdmissionDecision::Created);
    let uncapped = RunLimitError::Uncapped { allowed: dollars(1_000) };
    assert_eq!(start(of_team(6, "local")).await, AdmissionDecision::Refused(uncapped));
}

async fn cap_of_a_run_grows_only_into_what_is_left_of_the_day(place: &dyn Place) {
    let dollars = |cents: u64| MicroUsd::new(cents * 10_000);
    let limits = CredentialLimits {
        usd_a_day: Some(dollars(1_000)),
        runs_at_once: Some(2),
        ..CredentialLimits::default()
    };
    let store = with_token(place, limits).await;
    for number in [1, 2] {
        let made = store.admit_run(capped(number, 400), TODAY).await.unwrap();
        assert_eq!(made, AdmissionDecision::Created);
    }
    let change = async |cap| store.change_cap(&run_id(1), cap, DAY_MS).await.unwrap();
    let (left, allowed) = (dollars(600), dollars(1_000));
    let wanted = dollars(601);
    assert_eq!(change(Some(wanted)).await, Err(RunLimitError::Spend { wanted, left, allowed }));
    assert_eq!(change(None).await, Err(RunLimitError::Uncapped { allowed }));
    assert_eq!(store.run(&run_id(1)).await.unwrap().unwrap().cap, Some(dollars(400)));
    assert_eq!(change(Some(left)).await, Ok(()));
    assert_eq!(store.run(&run_id(1)).await.unwrap().unwrap().cap, Some(left));
    // A run without a token has no limits.
    store.create_run(new_run(&run_id(3))).await.unwrap();
    let cap = Some(dollars(99_999));
    assert_eq!(store.change_cap(&run_id(3), cap, DAY_MS).await.unwrap(), Ok(()));
    store.commit(&run_id(3), the_end()).await.unwrap();
    let ended = store.change_cap(&run_id(3), cap, DAY_MS).await;
    assert!(matches!(ended, Err(StoreError::RunEnded { .. })), "{ended:?}");
    let unknown = store.change_cap(&run_id(9), cap, DAY_MS).await;
    assert!(matches!(unknown, Err(StoreError::UnknownRun(_))), "{unknown:?}");
}
