use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::{FindingSeverity, RuleId, RunFinding};

use super::*;

fn outcome(severity: FindingSeverity) -> Outcome {
    let finding = RunFinding {
        rule: RuleId::new("test.rule"),
        severity,
        subject: "m1".to_owned(),
        message: "a finding".to_owned(),
        evidence: Vec::new(),
    };
    let answered = Conclusion::Answered { text: "A hall.".to_owned(), value: None };
    Outcome::new(vec![finding], answered)
}

#[test]
fn only_events_the_user_does_not_know_of_are_notified() {
    let failure = ModelFailure::new(FailureKind::OverBudget, "too dear");
    let failed = Outcome::new(Vec::new(), Conclusion::Failed { kind: FailureKind::Auth });
    let cases = [
        (RunExit::Done(outcome(FindingSeverity::Note)), Some(RunNotification::Finished)),
        (RunExit::Done(outcome(FindingSeverity::Escalate)), Some(RunNotification::Waiting)),
        (RunExit::Done(outcome(FindingSeverity::Block)), Some(RunNotification::Finished)),
        (RunExit::Done(failed), Some(RunNotification::Failed)),
        (RunExit::Paused(RunPause::Budget(failure)), Some(RunNotification::Budget)),
        (
            RunExit::Paused(RunPause::Question("review the moves".to_owned())),
            Some(RunNotification::Question),
        ),
        (RunExit::Paused(RunPause::Person), None),
        (RunExit::Cancelled, None),
    ];
    for (ended, news) in cases {
        assert_eq!(RunNotification::of(&ended), news, "{ended:?}");
    }
}

/// A run that was paused on a question was announced as finished.
#[test]
fn a_run_that_needs_review_is_notified_with_its_actual_state() {
    for (news, state) in [
        (RunNotification::Question, RunState::Paused),
        (RunNotification::Waiting, RunState::Finished),
    ] {
        assert_eq!((news.kind(), news.state()), ("run.waiting", state), "{news:?}");
    }
}

fn submission(title: &str, path: &str) -> SubmissionNotice {
    SubmissionNotice {
        kind: SubmissionNoticeKind::NeedsReview,
        draft: moothall_core::drafts::DraftId::parse("drf_00000000000000000000000000000001")
            .unwrap(),
        seal: moothall_core::Sha256Hex::of(b"a version"),
        title: title.to_owned(),
        path: path.to_owned(),
        more_files: 2,
        rules: vec!["protected".to_owned(), "size".to_owned()],
        at_ms: 1_763_000_000_999,
    }
}

#[test]
fn a_notice_about_a_draft_names_title_files_and_rules_in_one_line_each() {
    let title = "  \nUpdate\u{202e} the build\u{7}\nsecond line";
    let text = Notice::of_draft("4f2a91c3".to_owned(), submission(title, "src/a\n.rs")).text(None);
    assert_eq!(
        text,
        NoticeText {
            sentence: "a draft needs review (notice 4f2a91c3)".to_owned(),
            details: vec![
                ("Title", "Update\u{fffd} the build\u{fffd}".to_owned()),
                ("File", "src/a\u{fffd}.rs and 2 more".to_owned()),
                ("Rule", "protected, size".to_owned()),
            ],
            command: Some("moothall review show drf_00000000000000000000000000000001".to_owned()),
            link: None,
        }
    );
}

#[test]
fn long_titles_are_cut_and_missing_ones_left_out() {
    let number = || "1".to_owned();
    let long = Notice::of_draft(number(), submission(&"ä".repeat(500), "a")).text(None);
    assert_eq!(long.details[0].1.chars().count(), MAX_TITLE_CHARS);
    let none = Notice::of_draft(number(), submission(" \n ", "a")).text(None);
    assert_eq!(none.details[0].0, "File");
}

#[test]
fn each_event_belongs_to_one_choice() {
    let events = [
        RunNotification::Finished,
        RunNotification::Failed,
        RunNotification::Budget,
        RunNotification::Refused,
        RunNotification::Outage,
        RunNotification::Question,
        RunNotification::Waiting,
    ];
    let names: Vec<&str> = events.iter().map(|one| one.event().as_str()).collect();
    assert_eq!(names, ["finished", "failed", "paused", "paused", "paused", "question", "question"]);
}
