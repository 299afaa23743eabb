use proptest::prelude::*;

use super::*;

fn settings() -> NotifyTarget {
    NotifyTarget {
        from: Some("Moothall <moothall@example.com>".to_owned()),
        to: vec!["ada@example.com".to_owned(), "bob@example.com".to_owned()],
        ..NotifyTarget::default()
    }
}

fn mail(subject: &str) -> Message {
    let body = MailBody {
        subject: subject.to_owned(),
        text: format!("text {subject}"),
        html: "<p>html</p>".to_owned(),
    };
    compose("ops", &settings(), "drf_1-draft.needs_review-1-4f2a91c3", body).unwrap()
}

/// The names of the headers before the body, with folded lines joined.
fn header_names(mail: &Message) -> Vec<String> {
    let text = String::from_utf8(mail.formatted()).unwrap();
    let head = text.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ");
    head.split("\r\n").map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

const HEADERS: [&str; 7] =
    ["From", "Subject", "Message-ID", "To", "Date", "MIME-Version", "Content-Type"];

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn a_mail_has_both_bodies_and_an_id_that_stays_the_same() {
    let text = String::from_utf8(mail("a draft needs review").formatted()).unwrap();
    for part in [
        "Message-ID: <drf1-draft.needsreview-1-4f2a91c3.ops@example.com>\r\n",
        "Subject: a draft needs review\r\n",
        "To: ada@example.com, bob@example.com\r\n",
        "multipart/alternative",
        "text/plain",
        "text/html",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_invalid_address_is_a_setting_to_correct() {
    let body = || MailBody { subject: String::new(), text: String::new(), html: String::new() };
    let wrong = NotifyTarget { to: vec!["nobody".to_owned()], ..settings() };
    let error = compose("ops", &wrong, "1", body()).unwrap_err();
    assert!(!error.retry && error.why.contains("`to` is not an email address"), "{error:?}");
    let injected = NotifyTarget {
        to: vec!["ada@example.com\r\nBcc: eve@example.com".to_owned()],
        ..settings()
    };
    compose("ops", &injected, "1", body()).unwrap_err();
}

proptest! {
    /// A title or path of a draft ends up in the subject.
    #[test]
    fn no_subject_adds_a_header(subject in "(\\PC|[\r\n\t\u{0}\u{85}\u{2028}:<>=?]|Bcc: |\r\n){0,80}") {
        let mut expected = HEADERS.map(str::to_owned).to_vec();
        expected.sort();
        let mail = mail(&subject);
        prop_assert_eq!(sorted(header_names(&mail)), expected);
        prop_assert_eq!(mail.envelope().to().len(), 2);
    }
}
