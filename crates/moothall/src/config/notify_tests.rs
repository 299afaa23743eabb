use super::*;

fn problems(text: &str) -> Vec<String> {
    let section: NotifySection = toml::from_str(text).unwrap();
    let mut found = Vec::new();
    check(&section, &mut |path, message, _| {
        found.push(format!("{} {message}", path.join(".")));
    });
    found
}

#[test]
fn targets_of_every_kind_are_valid() {
    let text = r#"
        desktop = true
        webhook = "https://example.com/hook"
        server_url = "https://moothall.example.com"
        link_lifetime = "2h"
        target.own = { url = "http://127.0.0.1:9/hook", secret_env = "HOOK_SECRET" }
        target.chat = { kind = "slack", url_env = "CHAT_URL", events = ["failed", "needs-review"] }
        target.screen = { kind = "desktop" }
        target.mail = { kind = "email", url = "smtps://mail.example.com:465", from = "a@example.com", to = ["b@example.com"] }
    "#;
    assert_eq!(problems(text), Vec::<String>::new());
}

#[test]
fn mistakes_in_targets_are_reported_with_their_key() {
    let text = r#"
        server_url = "https://moothall.example.com/drafts"
        link_lifetime = "0s"
        target.webhook = { url = "https://example.com" }
        target.empty = {}
        target.both = { url = "https://example.com", url_env = "URL" }
        target.plain = { url = "http://example.com" }
        target.secret = { url = "https://example.com", secret_env = "whsec_abc" }
        target.mail = { kind = "email", url = "https://mail.example.com" }
        target.user = { kind = "email", url = "smtp://me:pass@mail.example.com", from = "a@b.c", to = ["a@b.c"] }
    "#;
    assert_eq!(
        problems(text),
        [
            "notify.server_url must not contain a path",
            "notify.link_lifetime must not be zero",
            "notify.target.both.url_env cannot be combined with `url`",
            "notify.target.empty.url is missing",
            "notify.target.mail.url must start with `smtps://` or `smtp://`",
            "notify.target.mail.from is missing",
            "notify.target.mail.to is missing",
            "notify.target.plain.url must use https, except on this machine",
            "notify.target.secret.secret_env is not the name of an environment variable",
            "notify.target.user.url must not contain a user name or password",
            "notify.target.webhook is not a valid target name",
        ]
    );
}
