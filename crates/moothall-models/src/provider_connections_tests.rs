use super::*;

#[test]
fn the_status_names_the_failure_that_has_lasted_longest_until_its_provider_answers() {
    let connections = ProviderConnections::default();
    let (first, second) = (connections.call_outage(), connections.call_outage());
    assert_eq!(connections.status(), ConnectionStatus::default());
    failing(&first, "lab/a", FailureKind::Overloaded);
    failing(&second, "lab/b", FailureKind::Transport);
    assert_eq!(outage(&connections), Some(("lab/a".to_owned(), FailureKind::Overloaded)));
    failing(&first, "lab/a", FailureKind::TimedOut);
    let latest = Some(("lab/a".to_owned(), FailureKind::TimedOut));
    assert_eq!(outage(&connections), latest, "the latest reason");
    connections.note_answered("lab/a");
    assert_eq!(outage(&connections), Some(("lab/b".to_owned(), FailureKind::Transport)));
    connections.note_answered("lab/b");
    assert_eq!(outage(&connections), None);
}

/// The address is the model's name.
fn failing(call: &CallOutage, model: &str, kind: FailureKind) {
    call.note_failing(model, &model.parse().unwrap(), kind);
}

fn outage(connections: &ProviderConnections) -> Option<(String, FailureKind)> {
    connections.status().outage.map(|outage| (outage.model.to_string(), outage.kind))
}

/// Regression: a provider that was given up was "not answering" until it answered another call.
#[test]
fn a_call_that_was_given_up_is_no_outage() {
    let connections = ProviderConnections::default();
    let (first, second) = (connections.call_outage(), connections.call_outage());
    failing(&first, "lab/a", FailureKind::Overloaded);
    failing(&second, "lab/a", FailureKind::Server);
    drop(first);
    assert_eq!(outage(&connections), Some(("lab/a".to_owned(), FailureKind::Server)));
    drop(second);
    assert_eq!(outage(&connections), None);
}

#[test]
fn a_provider_whose_answer_cannot_be_used_has_answered() {
    let connections = ProviderConnections::default();
    let call = connections.call_outage();
    failing(&call, "lab/a", FailureKind::Transport);
    // Only a part of the answer arrived.
    failing(&call, "lab/a", FailureKind::Truncated);
    assert_eq!(outage(&connections), Some(("lab/a".to_owned(), FailureKind::Truncated)));
    failing(&call, "lab/a", FailureKind::EmptyReply);
    assert_eq!(outage(&connections), None);
}

#[test]
fn concurrent_failures_of_one_server_are_one_warning_a_second() {
    let connections = ProviderConnections::default();
    let start = Instant::now();
    let after = |ms| start + Duration::from_millis(ms);
    let warns = |address, tries, now| connections.is_worth_a_warning(address, tries, now);
    assert!(warns("http://a", 1, start));
    assert!(!warns("http://a", 1, after(1)), "another call that fails at the same time");
    assert!(warns("http://a", 2, after(2)), "the next attempt of the first call");
    assert!(warns("http://b", 1, after(3)), "another server");
    assert!(!warns("http://a", 1, after(999)));
    assert!(warns("http://a", 1, after(1000)));
}
