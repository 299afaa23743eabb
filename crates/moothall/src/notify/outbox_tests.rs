use super::*;

const NOW: u64 = 1_763_000_000_000;

fn message(id: &str, at_ms: u64) -> KeptMessage {
    KeptMessage::new(WEBHOOK, id, "{}".to_owned(), at_ms, at_ms)
}

fn outbox(folder: &tempfile::TempDir) -> NotificationOutbox {
    NotificationOutbox { folder: folder.path().join("outbox") }
}

fn ids(outbox: &NotificationOutbox, now_ms: u64) -> Vec<String> {
    outbox.messages(now_ms).unwrap().into_iter().map(|kept| kept.id).collect()
}

#[test]
fn messages_are_kept_in_order_for_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = outbox(&folder);
    assert_eq!(ids(&outbox, NOW), Vec::<String>::new());
    outbox.write(&message("b-run.finished-1", NOW)).unwrap();
    outbox.write(&message("a-run.failed-2", NOW + 1)).unwrap();
    outbox.write(&message("a-run.failed-2", NOW + 1)).unwrap();
    assert_eq!(ids(&outbox, NOW + 1), ["b-run.finished-1", "a-run.failed-2"]);
    assert_eq!(ids(&outbox, NOW + 1 + MAX_AGE_MS), ["a-run.failed-2"]);
    let left = outbox.messages(NOW + 1).unwrap();
    outbox.remove(&left[0]).unwrap();
    outbox.remove(&left[0]).unwrap();
    assert_eq!(ids(&outbox, NOW + 1), Vec::<String>::new());
}

#[test]
fn delays_double_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = outbox(&folder);
    outbox.write(&message("a", NOW)).unwrap();
    let mut kept = outbox.messages(NOW).unwrap().remove(0);
    let mut delays = Vec::new();
    for _ in 0..10 {
        kept.postpone(NOW);
        delays.push(kept.next_at_ms - NOW);
    }
    let seconds: Vec<u64> = delays.iter().map(|delay| delay / 1000).collect();
    assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]);
}

#[test]
fn surplus_and_unreadable_files_are_deleted_and_names_stay_in_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = outbox(&folder);
    for number in 0..MAX_MESSAGES as u64 + 2 {
        outbox.write(&message(&format!("m-{number}"), NOW + number)).unwrap();
    }
    outbox.write(&message("../../outside", NOW + 1_000)).unwrap();
    fs_err::write(folder.path().join("outbox/broken.json"), "{").unwrap();
    let kept = ids(&outbox, NOW);
    assert_eq!((kept.len(), kept[0].as_str()), (MAX_MESSAGES, "m-3"));
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs_err::read_dir(folder.path().join("outbox")).unwrap().count(), MAX_MESSAGES);
}

#[test]
fn receivers_have_their_own_messages_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = outbox(&folder);
    let mut other = message("a", NOW);
    other.target = "ops".to_owned();
    outbox.write(&message("a", NOW)).unwrap();
    outbox.write(&other).unwrap();
    assert_eq!(outbox.messages(NOW).unwrap().len(), 2);
    outbox.remove(&other).unwrap();
    assert_eq!(outbox.messages(NOW).unwrap(), [message("a", NOW)]);
    let failed = TargetResult { at_ms: NOW, error: Some("status 500".to_owned()) };
    outbox.set_result("ops", &failed);
    assert_eq!((outbox.result("ops"), outbox.result("webhook")), (Some(failed), None));
    // The directory of results is not a message.
    assert_eq!(outbox.messages(NOW).unwrap().len(), 1);
}

/// Messages of earlier versions have no receiver.
#[test]
fn a_message_of_an_earlier_version_is_one_of_the_webhook() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = outbox(&folder);
    fs_err::create_dir_all(folder.path().join("outbox")).unwrap();
    let old = format!(
        r#"{{"id":"r-run.finished-1","body":"{{}}","created_at_ms":{NOW},"next_at_ms":{NOW},"retries":0}}"#
    );
    fs_err::write(folder.path().join("outbox/r-run.finished-1.json"), old).unwrap();
    let kept = outbox.messages(NOW).unwrap();
    assert_eq!(kept[0].target, WEBHOOK);
    outbox.remove(&kept[0]).unwrap();
    assert_eq!(outbox.messages(NOW).unwrap(), []);
}

#[test]
fn only_one_process_sends_messages() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = outbox(&folder);
    let held = outbox.try_lock().unwrap();
    assert!(held.is_some());
    assert!(outbox.try_lock().unwrap().is_none());
    drop(held);
    assert!(outbox.try_lock().unwrap().is_some());
}
