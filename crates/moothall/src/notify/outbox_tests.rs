use super::*;

const NOW: u64 = 1_763_000_000_000;

fn message(id: &str) -> WebhookMessage {
    let (timestamp, body) = ("1763000000".to_owned(), "{}".to_owned());
    WebhookMessage { id: id.to_owned(), timestamp, body }
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
    outbox.keep(&message("b-run.finished-1"), NOW).unwrap();
    outbox.keep(&message("a-run.failed-2"), NOW + 1).unwrap();
    outbox.keep(&message("a-run.failed-2"), NOW + 1).unwrap();
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
    outbox.keep(&message("a"), NOW).unwrap();
    let mut kept = outbox.messages(NOW).unwrap().remove(0);
    let mut delays = vec![kept.next_at_ms - NOW];
    for _ in 0..9 {
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
        outbox.keep(&message(&format!("m-{number}")), NOW + number).unwrap();
    }
    outbox.keep(&message("../../outside"), NOW + 1_000).unwrap();
    fs_err::write(folder.path().join("outbox/broken.json"), "{").unwrap();
    let kept = ids(&outbox, NOW);
    assert_eq!((kept.len(), kept[0].as_str()), (MAX_MESSAGES, "m-3"));
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs_err::read_dir(folder.path().join("outbox")).unwrap().count(), MAX_MESSAGES);
}
