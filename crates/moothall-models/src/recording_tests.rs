use std::sync::Arc;

use moothall_core::MicroUsd;
use moothall_core::model::{
    CallPurpose, PromptBlock, PromptTurn, StopReason, TokenUsage, UsageBasis,
};
use tempfile::TempDir;

use super::*;

fn request(question: &str) -> ModelRequest {
    let model = "openai/gpt-5-mini".parse().unwrap();
    ModelRequest {
        system: vec![PromptBlock::new("Be brief.")],
        ..ModelRequest::ask(model, question, 100)
    }
}

fn reply(text: &str) -> ModelReply {
    ModelReply {
        fallback: None,
        text: text.to_owned(),
        stop: StopReason::End,
        model: "gpt-5-mini-2025-08-07".to_owned(),
        usage: TokenUsage { input: 20, cache_read: 3, output: 2, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: Some(MicroUsd::new(9)),
    }
}

fn folder() -> (TempDir, RecordingStore) {
    let folder = TempDir::new().unwrap();
    let recordings = RecordingStore::at(folder.path().join("recordings"));
    (folder, recordings)
}

fn files(recordings: &RecordingStore) -> Vec<String> {
    let entries = fs_err::read_dir(&recordings.folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn file_of(request: &ModelRequest) -> String {
    format!("{}.json", request.hash().unwrap())
}

#[test]
fn a_recorded_reply_is_found_verbatim() {
    let (_folder, recordings) = folder();
    recordings.keep(&request("Why?"), &reply("Because.\n\u{1f980}")).unwrap();
    assert_eq!(recordings.find(&request("Why?")), Ok(reply("Because.\n\u{1f980}")));
}

#[test]
fn purpose_and_timeout_do_not_affect_the_recording_lookup() {
    let (_folder, recordings) = folder();
    recordings.keep(&request("Why?"), &reply("a")).unwrap();
    let same = ModelRequest { purpose: CallPurpose::Probe, timeout_ms: Some(5), ..request("Why?") };
    assert_eq!(recordings.find(&same), Ok(reply("a")));
}

#[test]
fn recording_a_reply_again_replaces_the_first_one() {
    let (_folder, recordings) = folder();
    recordings.keep(&request("Why?"), &reply("first")).unwrap();
    recordings.keep(&request("Why?"), &reply("second")).unwrap();
    assert_eq!(recordings.find(&request("Why?")), Ok(reply("second")));
    assert_eq!(files(&recordings), [file_of(&request("Why?"))]);
}

#[test]
fn equal_requests_can_be_recorded_concurrently() {
    // Regression: both shared one partial file; one renamed it while the other was writing, whose
    // call then failed.
    let (_folder, recordings) = folder();
    let recordings = Arc::new(recordings);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let recordings = Arc::clone(&recordings);
            std::thread::spawn(move || {
                (0..50).try_for_each(|_| recordings.keep(&request("Why?"), &reply("a")))
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    assert_eq!(files(&recordings), [file_of(&request("Why?"))]);
    assert_eq!(recordings.find(&request("Why?")), Ok(reply("a")));
}

#[test]
fn a_reply_that_cannot_be_recorded_fails_without_a_partial_file() {
    let (_folder, recordings) = folder();
    // A folder exists at the file's path.
    let taken = recordings.path(request("Why?").hash().unwrap());
    fs_err::create_dir_all(taken.join("inner")).unwrap();
    let failure = recordings.keep(&request("Why?"), &reply("a")).unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);
    assert!(failure.detail.starts_with("cannot record the reply: "), "{failure}");
    assert_eq!(files(&recordings), [file_of(&request("Why?"))]);
}

#[test]
fn a_recording_keeps_its_file_format() {
    let (_folder, recordings) = folder();
    recordings.keep(&request("Why?"), &reply("Because.")).unwrap();
    let path = recordings.path(request("Why?").hash().unwrap());
    insta::assert_snapshot!(fs_err::read_to_string(path).unwrap());
}

#[track_caller]
fn check_miss(recordings: &RecordingStore, wanted: &ModelRequest, rest: &str) {
    let expected =
        format!("no recording in {} matches this request; {rest}", recordings.folder.display());
    assert_eq!(recordings.find(wanted), Err(ModelFailure::new(FailureKind::NotFound, expected)));
}

#[test]
fn a_miss_names_the_nearest_recording_and_the_first_difference() {
    let (_folder, recordings) = folder();
    let near = request("What is a moot hall, and who met there in the evening?");
    let far = ModelRequest { turns: vec![PromptTurn::user("x"); 3], ..request("y") };
    recordings.keep(&near, &reply("near")).unwrap();
    recordings.keep(&far, &reply("far")).unwrap();
    let differs =
        |place: &str| format!("the nearest is {}, which differs at {place}", file_of(&near));
    let other_words = request("What is a moot hall, and who met there in the morning?");
    check_miss(&recordings, &other_words, &differs("/turns/0/block/text"));
    let longer = ModelRequest { max_tokens: 101, ..near.clone() };
    check_miss(&recordings, &longer, &differs("/max_tokens"));
    let mut one_more = near.clone();
    one_more.turns.push(PromptTurn::assistant("I think"));
    check_miss(&recordings, &one_more, &differs("/turns/1"));
    let without_system = ModelRequest { system: Vec::new(), ..near.clone() };
    check_miss(&recordings, &without_system, &differs("/system/0"));
    let colder =
        ModelRequest { temperature: Some(moothall_core::model::Temperature::ZERO), ..near.clone() };
    check_miss(&recordings, &colder, &differs("/temperature"));
}

#[test]
fn a_recording_miss_does_not_name_ignored_fields() {
    // Regression: the purpose is not hashed and cannot cause a miss, but it was reported as the
    // first difference.
    let (_folder, recordings) = folder();
    recordings.keep(&request("Why?"), &reply("a")).unwrap();
    let wanted =
        ModelRequest { purpose: CallPurpose::Probe, timeout_ms: Some(5), ..request("Who?") };
    let place = format!(
        "the nearest is {}, which differs at /turns/0/block/text",
        file_of(&request("Why?"))
    );
    check_miss(&recordings, &wanted, &place);
}

#[test]
fn a_folder_without_recordings_is_named_as_such() {
    let (_folder, recordings) = folder();
    check_miss(&recordings, &request("Why?"), "the folder contains no recordings");
    fs_err::create_dir_all(&recordings.folder).unwrap();
    fs_err::write(recordings.folder.join("notes.txt"), "not a recording").unwrap();
    fs_err::write(recordings.folder.join("broken.json"), "{").unwrap();
    check_miss(&recordings, &request("Why?"), "the folder contains no recordings");
}

#[track_caller]
fn check_unreadable(text: &[u8]) {
    let (_folder, recordings) = folder();
    recordings.keep(&request("Why?"), &reply("a")).unwrap();
    let name = file_of(&request("Why?"));
    fs_err::write(recordings.folder.join(&name), text).unwrap();
    let failure = recordings.find(&request("Why?")).unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);
    assert!(failure.detail.starts_with("cannot read a recording: "), "{failure}");
    assert!(failure.detail.contains(&name), "{failure}");
}

#[test]
fn a_recording_that_cannot_be_read_is_a_failure_that_names_it() {
    check_unreadable(b"");
    check_unreadable(b"{\"request\": ");
    check_unreadable(b"{}");
    check_unreadable(b"\xff\xfe");
}

#[test]
fn a_recording_under_the_name_of_another_request_is_not_used() {
    let (_folder, recordings) = folder();
    recordings.keep(&request("Why?"), &reply("Because.")).unwrap();
    let from = recordings.folder.join(file_of(&request("Why?")));
    let to = recordings.folder.join(file_of(&request("Who?")));
    fs_err::rename(from, to).unwrap();
    let failure = recordings.find(&request("Who?")).unwrap_err();
    assert!(failure.detail.ends_with("contains a different request"), "{failure}");
}
