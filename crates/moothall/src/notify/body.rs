//! The body of a notice for each kind of receiver.
//!
//! Values of drafts (titles, paths, names) are untrusted. Each format shows them as plain text: a
//! title can neither mention people nor look like a link.

use moothall_workspace::SubmissionNoticeKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::notice::{Notice, NoticeSubject, NoticeText, draft_kind, path, time_text, title};
use crate::config::TargetKind;

const LINK_LABEL: &str = "Review the draft";

/// A mail, before it gets its addresses. Stored in the outbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MailBody {
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) html: String,
}

/// The body for a kind of receiver, stored and sent unchanged.
pub(crate) fn body(kind: TargetKind, notice: &Notice, link: Option<&str>) -> String {
    match kind {
        TargetKind::Json => json_body(notice, link).to_string(),
        TargetKind::Slack => slack_body(&notice.text(link)).to_string(),
        TargetKind::Teams => teams_body(&notice.text(link)).to_string(),
        TargetKind::Discord => discord_body(&notice.text(link)).to_string(),
        TargetKind::Email => json!(mail_body(&notice.text(link))).to_string(),
        // Desktops interpret markup, so only the fixed sentence is shown.
        TargetKind::Desktop => notice.text(None).sentence,
    }
}

fn json_body(notice: &Notice, link: Option<&str>) -> Value {
    let at = time_text(notice.at_ms);
    match &notice.subject {
        NoticeSubject::Run { run_id, notification } => json!({
            "type": notification.kind(),
            "run_id": run_id,
            "state": notification.state(),
            "at": at,
        }),
        NoticeSubject::Draft { number, submission } => {
            let mut body = json!({
                "type": draft_kind(&submission.kind),
                "notice": number,
                "draft_id": submission.draft,
                "title": title(submission),
                "path": path(submission),
                "more_files": submission.more_files,
            });
            match &submission.kind {
                SubmissionNoticeKind::NeedsReview => {
                    body["rules"] = json!(submission.rules);
                    if let Some(link) = link {
                        body["link"] = json!(link);
                    }
                }
                SubmissionNoticeKind::Decided { decision, by } => {
                    body["decision"] = json!(decision);
                    body["by"] = json!(moothall_core::text::sanitize_line(by));
                }
            }
            body["at"] = json!(at);
            body
        }
        NoticeSubject::Test => json!({ "type": "test", "at": at }),
    }
}

fn slack_body(text: &NoticeText) -> Value {
    let sentence = format!("moothall: {}", text.sentence);
    let mut lines = vec![sentence.clone()];
    lines.extend(text.details.iter().map(|(name, value)| {
        let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!("{name}: {}", code(&value))
    }));
    lines.extend(text.link.as_ref().map(|link| format!("<{link}|{LINK_LABEL}>")));
    lines.extend(text.command.as_deref().map(code));
    json!({
        "text": sentence,
        "blocks": [{ "type": "section", "text": { "type": "mrkdwn", "text": lines.join("\n") } }],
    })
}

fn teams_body(text: &NoticeText) -> Value {
    let plain = |line: String| json!({ "type": "TextBlock", "text": line, "wrap": true });
    let mut body = vec![plain(format!("moothall: {}", text.sentence))];
    // A text run, unlike a text block, has no markup.
    body.extend(text.details.iter().map(|(name, value)| {
        let run = json!({ "type": "TextRun", "text": format!("{name}: {value}") });
        json!({ "type": "RichTextBlock", "inlines": [run] })
    }));
    body.extend(text.command.clone().map(plain));
    let mut card = json!({ "type": "AdaptiveCard", "version": "1.4", "body": body });
    if let Some(link) = &text.link {
        card["actions"] = json!([{ "type": "Action.OpenUrl", "title": LINK_LABEL, "url": link }]);
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": card,
        }],
    })
}

fn discord_body(text: &NoticeText) -> Value {
    let mut lines = vec![format!("moothall: {}", text.sentence)];
    lines.extend(text.details.iter().map(|(name, value)| format!("{name}: {}", code(value))));
    lines.extend(text.link.as_ref().map(|link| format!("{LINK_LABEL}: <{link}>")));
    lines.extend(text.command.as_deref().map(code));
    json!({ "content": lines.join("\n"), "allowed_mentions": { "parse": [] } })
}

/// Text in backquotes is shown unchanged: no links, no mentions, no formatting.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}

fn mail_body(text: &NoticeText) -> MailBody {
    let sentence = format!("moothall: {}", text.sentence);
    let file = text.details.iter().find(|(name, _)| *name == "File");
    let subject = match file {
        Some((_, file)) => format!("{sentence}: {file}"),
        None => sentence.clone(),
    };
    let mut plain = format!("{sentence}\n");
    let mut html = format!("<p>{}</p>\n", escape_html(&sentence));
    if !text.details.is_empty() {
        plain.push('\n');
        html.push_str("<ul>\n");
        for (name, value) in &text.details {
            plain.push_str(&format!("{name}: {value}\n"));
            html.push_str(&format!("<li>{name}: <code>{}</code></li>\n", escape_html(value)));
        }
        html.push_str("</ul>\n");
    }
    if let Some(link) = &text.link {
        plain.push_str(&format!("\n{LINK_LABEL}:\n{link}\n"));
        html.push_str(&format!("<p><a href=\"{}\">{LINK_LABEL}</a></p>\n", escape_html(link)));
    }
    if let Some(command) = &text.command {
        plain.push_str(&format!("\nIn a terminal: {command}\n"));
        html.push_str(&format!("<p>In a terminal: <code>{}</code></p>\n", escape_html(command)));
    }
    MailBody { subject, text: plain, html }
}

fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
