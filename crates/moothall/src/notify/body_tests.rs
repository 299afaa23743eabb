use moothall_core::drafts::{DraftId, ReviewDecision};
use moothall_core::{RunId, Sha256Hex};
use moothall_workspace::SubmissionNotice;

use super::super::notice::RunNotification;
use super::*;

const LINK: &str = "https://moothall.example.com/review#TOKEN";
const KINDS: [TargetKind; 6] = [
    TargetKind::Json,
    TargetKind::Slack,
    TargetKind::Teams,
    TargetKind::Discord,
    TargetKind::Email,
    TargetKind::Desktop,
];

fn run_notice(notification: RunNotification) -> Notice {
    let run_id: RunId = "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap();
    Notice::of_run(&run_id, notification, 1_763_000_000_999)
}

fn draft_notice(kind: SubmissionNoticeKind, title: &str, path: &str) -> Notice {
    let submission = SubmissionNotice {
        kind,
        draft: DraftId::parse("drf_0e51a3c4b7d94f0a8c1b2d3e4f506172").unwrap(),
        seal: Sha256Hex::of(b"a version"),
        title: title.to_owned(),
        path: path.to_owned(),
        more_files: 1,
        rules: vec!["path.protected".to_owned()],
        at_ms: 1_763_000_000_999,
    };
    Notice::of_draft("4f2a91c3".to_owned(), submission)
}

fn sample() -> Notice {
    draft_notice(SubmissionNoticeKind::NeedsReview, "Build everything by default", "Makefile")
}

fn value(kind: TargetKind, notice: &Notice) -> Value {
    serde_json::from_str(&body(kind, notice, None)).unwrap()
}

#[test]
fn a_notice_contains_only_the_run() {
    let notice = run_notice(RunNotification::Budget);
    assert_eq!(notice.id, "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c-run.budget-1763000000999");
    assert_eq!(
        body(TargetKind::Json, &notice, None),
        r#"{"type":"run.budget","run_id":"019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c","state":"paused","at":"2025-11-13T02:13:20Z"}"#
    );
    assert_eq!(
        body(TargetKind::Desktop, &notice, None),
        "run 019a85c0-2f6e is paused: its budget is exhausted"
    );
}

#[test]
fn each_chat_gets_its_own_body() {
    let notice = run_notice(RunNotification::Waiting);
    let text = "moothall: run 019a85c0-2f6e needs review";
    let both = format!("{text}\n`moothall show 019a85c0-2f6e`");
    assert_eq!(
        value(TargetKind::Slack, &notice),
        json!({
            "text": text,
            "blocks": [{ "type": "section", "text": { "type": "mrkdwn", "text": both } }],
        })
    );
    assert_eq!(
        value(TargetKind::Discord, &notice),
        json!({ "content": both, "allowed_mentions": { "parse": [] } })
    );
    let card = json!({
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            { "type": "TextBlock", "text": text, "wrap": true },
            { "type": "TextBlock", "text": "moothall show 019a85c0-2f6e", "wrap": true },
        ],
    });
    let content_type = "application/vnd.microsoft.card.adaptive";
    assert_eq!(
        value(TargetKind::Teams, &notice),
        json!({
            "type": "message",
            "attachments": [{ "contentType": content_type, "content": card }],
        })
    );
}

#[test]
fn only_a_draft_that_needs_review_has_a_link() {
    let by = "ada".to_owned();
    let decided = SubmissionNoticeKind::Decided { decision: ReviewDecision::SendBack, by };
    let decided = draft_notice(decided, "title", "a");
    assert_eq!(
        value(TargetKind::Json, &decided),
        json!({
            "type": "draft.decided",
            "notice": "4f2a91c3",
            "draft_id": "drf_0e51a3c4b7d94f0a8c1b2d3e4f506172",
            "title": "title",
            "path": "a",
            "more_files": 1,
            "decision": "send_back",
            "by": "ada",
            "at": "2025-11-13T02:13:20Z",
        })
    );
    for kind in KINDS.into_iter().filter(|kind| *kind != TargetKind::Desktop) {
        assert!(body(kind, &sample(), Some(LINK)).contains(LINK), "{kind:?}");
        assert!(!body(kind, &sample(), None).contains("http"), "{kind:?}");
    }
    assert!(!body(TargetKind::Desktop, &sample(), Some(LINK)).contains(LINK));
}

/// A worker chooses the title. It must not become a link, a mention or markup.
#[test]
fn a_title_is_plain_text_everywhere() {
    let title =
        "<!channel> <https://evil.example|Approve> [x](https://evil.example) `@everyone`<b>";
    let notice = draft_notice(SubmissionNoticeKind::NeedsReview, title, "a`b");
    let slack = value(TargetKind::Slack, &notice);
    let slack = slack["blocks"][0]["text"]["text"].as_str().unwrap();
    assert!(slack.contains("Title: `&lt;!channel&gt; &lt;https:"), "{slack}");
    assert!(!slack.contains("<!channel") && !slack.contains("<https"), "{slack}");
    assert_eq!(slack.matches('`').count() % 2, 0, "{slack}");
    let discord = value(TargetKind::Discord, &notice);
    let discord = discord["content"].as_str().unwrap();
    // Inside of backquotes nothing has a meaning.
    assert_eq!(discord.matches('`').count(), 8, "{discord}");
    let teams = body(TargetKind::Teams, &notice, None);
    let teams: Value = serde_json::from_str(&teams).unwrap();
    let parts = teams["attachments"][0]["content"]["body"].as_array().unwrap();
    let with_title: Vec<&Value> =
        parts.iter().filter(|part| part.to_string().contains("evil")).collect();
    assert_eq!(with_title.len(), 1);
    assert_eq!(with_title[0]["type"], "RichTextBlock");
    let mail: MailBody = serde_json::from_str(&body(TargetKind::Email, &notice, None)).unwrap();
    assert!(!mail.html.contains("<b>") && !mail.html.contains("<https"), "{}", mail.html);
    assert!(!mail.subject.contains('\n'), "{}", mail.subject);
}

/// The guide shows the real bodies: every JSON or text block that is marked in it is compared.
#[test]
fn bodies_in_the_documentation_are_the_real_ones() {
    let page = include_str!("../../../../docs/src/guides/notifications.md");
    let run = run_notice(RunNotification::Finished);
    let pretty = |kind, notice: &Notice, link| {
        let body: Value = serde_json::from_str(&body(kind, notice, link)).unwrap();
        serde_json::to_string_pretty(&body).unwrap()
    };
    for kind in [TargetKind::Json, TargetKind::Slack, TargetKind::Teams, TargetKind::Discord] {
        let about_run = body(kind, &run, None);
        assert!(page.contains(&about_run), "the page lacks the {kind:?} body:\n{about_run}");
        let about_draft = pretty(kind, &sample(), Some(LINK));
        assert!(page.contains(&about_draft), "the page lacks the {kind:?} body:\n{about_draft}");
    }
    let mail: MailBody =
        serde_json::from_str(&body(TargetKind::Email, &sample(), Some(LINK))).unwrap();
    for part in [format!("Subject: {}", mail.subject), mail.text, mail.html] {
        assert!(page.contains(part.trim_end()), "the page lacks this part of the mail:\n{part}");
    }
    let desktop = body(TargetKind::Desktop, &run, None);
    assert!(page.contains(&desktop), "{desktop}");
}
