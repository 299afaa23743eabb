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

#[test]
fn a_notification_contains_only_the_run() {
    let run_id: RunId = "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap();
    assert_eq!(
        WebhookMessage::new(
            WebhookFormat::Json,
            &run_id,
            RunNotification::Budget,
            1_763_000_000_999
        ),
        WebhookMessage {
            id: "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c-run.budget-1763000000999".to_owned(),
            timestamp: "1763000000".to_owned(),
            body: r#"{"type":"run.budget","run_id":"019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c","state":"paused","at":"2025-11-13T02:13:20Z"}"#.to_owned(),
        }
    );
}

/// The example of the Standard Webhooks specification.
#[test]
fn signature_is_that_of_standard_webhooks() {
    let message = WebhookMessage {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
        timestamp: "1614265330".to_owned(),
        body: r#"{"test": 2432232314}"#.to_owned(),
    };
    let signed = message.signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    assert_eq!(signed, Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned()));
    message.signature("whsec_not base64").unwrap_err();
    message.signature("any other secret").unwrap();
}

#[test]
fn each_chat_gets_its_own_body() {
    let run_id: RunId = "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap();
    let id = run_store::short_id(&run_id);
    let body = |format| {
        let message =
            WebhookMessage::new(format, &run_id, RunNotification::Waiting, 1_763_000_000_999);
        serde_json::from_str::<Value>(&message.body).unwrap()
    };
    let text = format!("moothall: run {id} needs review");
    let both = format!("{text}\n`moothall show {id}`");
    assert_eq!(
        body(WebhookFormat::Slack),
        json!({
            "text": text,
            "blocks": [{ "type": "section", "text": { "type": "mrkdwn", "text": both } }],
        })
    );
    assert_eq!(
        body(WebhookFormat::Discord),
        json!({ "content": both, "allowed_mentions": { "parse": [] } })
    );
    let card = json!({
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            { "type": "TextBlock", "text": text, "wrap": true },
            { "type": "TextBlock", "text": format!("moothall show {id}"), "wrap": true },
        ],
    });
    let content_type = "application/vnd.microsoft.card.adaptive";
    assert_eq!(
        body(WebhookFormat::Teams),
        json!({
            "type": "message",
            "attachments": [{ "contentType": content_type, "content": card }],
        })
    );
}
