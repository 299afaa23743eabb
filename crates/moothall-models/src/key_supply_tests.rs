use std::sync::atomic::{AtomicUsize, Ordering};

use moothall_core::model::FailureKind;

use super::*;

fn key(text: &str) -> ApiKey {
    ApiKey::new(text.to_owned())
}

#[test]
fn secrets_split_across_chunks_are_redacted() {
    let secrets = SentSecrets::new([key("sk-0123456789"), key("token-of-gateway")]);
    let text = "your key is sk-0123456789, your token token-of-gateway, yes";
    for cut in 0..text.len() {
        let (mut pending, mut shown) = (String::new(), String::new());
        for piece in [&text[..cut], &text[cut..]] {
            pending.push_str(piece);
            shown.push_str(&secrets.take_harmless(&mut pending));
        }
        assert_eq!(shown + &pending, "your key is ***, your token ***, yes", "cut at {cut}");
    }
    assert_eq!(secrets.remove_from("sk-0123456789 token-of"), "*** ***");
    assert!(secrets.are_in("a token-of-gateway") && !secrets.are_in("a token"));
}

/// Returns the numbered keys of an access token that expires, then failures.
#[derive(Debug)]
struct TokenSequence {
    fetched: Arc<AtomicUsize>,
    available: usize,
}

impl KeyResolver for TokenSequence {
    fn resolve(&self) -> KeyFuture<'_> {
        let number = self.fetched.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match number < self.available {
                true => Ok(key(&format!("token-{number}"))),
                false => Err(ModelFailure::new(FailureKind::Auth, "no more tokens")),
            }
        })
    }
}

fn tokens(available: usize) -> (KeySupply, Arc<AtomicUsize>) {
    let fetched = Arc::new(AtomicUsize::new(0));
    (KeySupply::fetched_by(TokenSequence { fetched: Arc::clone(&fetched), available }), fetched)
}

#[tokio::test]
async fn a_key_is_fetched_once_and_shared_by_clones() {
    let (supply, fetched) = tokens(9);
    let other = supply.clone();
    let (one, two) = tokio::join!(supply.get(), other.get());
    assert_eq!((one.unwrap().expose(), two.unwrap().expose()), ("token-0", "token-0"));
    assert_eq!(fetched.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_rejected_key_is_replaced_once_for_all_calls() {
    let (supply, fetched) = tokens(2);
    let rejected = supply.get().await.unwrap();
    for _ in 0..3 {
        let fresh = supply.replacement_of(&rejected).await.unwrap();
        assert_eq!(fresh.expose(), "token-1");
    }
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
    // A key that cannot be replaced stays.
    assert!(supply.replacement_of(&key("token-1")).await.is_none());
    assert!(KeySupply::fixed(key("sk-1")).replacement_of(&key("sk-1")).await.is_none());
}

#[tokio::test]
async fn a_failed_fetch_is_tried_again_by_the_next_call() {
    let (supply, fetched) = tokens(0);
    assert_eq!(supply.get().await.unwrap_err().kind, FailureKind::Auth);
    assert_eq!(supply.get().await.unwrap_err().detail, "no more tokens");
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
}
