use super::*;

#[test]
fn the_count_is_the_sum_of_the_answers_that_are_under_way() {
    let received = ReceivedText::default();
    assert_eq!(received.label_with_prompt(), None);
    let mut listener = received.listener(100);
    listener.text("Twelve bytes");
    listener.text("!");
    assert_eq!(received.label().as_deref(), Some("tokens received: about 4"));
    let mut other = received.listener(100);
    other.text("Four more");
    assert_eq!(received.label().as_deref(), Some("tokens received: about 6"));
    listener.restart();
    assert_eq!(received.label().as_deref(), Some("tokens received: about 3"));
    drop(other);
    assert_eq!(received.label(), None);
}

#[test]
fn a_large_prompt_is_shown_until_the_answer_begins() {
    let received = ReceivedText::default();
    let mut listener = received.listener(LARGE_PROMPT_TOKENS);
    assert_eq!(received.label(), None);
    let reads = "prompt tokens: about 2000";
    assert_eq!(received.label_with_prompt().as_deref(), Some(reads));
    listener.text("Four");
    assert_eq!(received.label_with_prompt().as_deref(), Some("tokens received: about 1"));
    drop(listener);
    assert_eq!((received.label_with_prompt(), received.longest_wait()), (None, None));
    let _small = received.listener(LARGE_PROMPT_TOKENS - 1);
    assert_eq!(received.label_with_prompt(), None);
    assert!(received.longest_wait().is_some());
}
