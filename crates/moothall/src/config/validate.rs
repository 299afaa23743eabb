//! What the type of a value cannot say: names, addresses, and values that must fit each other.
//!
//! Nothing here quotes a value that may be a secret in the wrong place.

use moothall_core::model::ModelName;
use moothall_models::Catalog;
use moothall_models::connection::is_loopback;
use moothall_sources::edgar::Contact;

use super::Config;
use super::hints;
use super::origin::{Origin, Origins};
use super::problem::Problem;
use super::schema::dotted;
use crate::database;

pub(crate) fn problems(config: &Config, origins: &Origins) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |path: &[&str], message: &str, hint: String| {
        let place = match place(origins, path) {
            Origin::Default => String::new(),
            place => format!("{place}: "),
        };
        problems.push(Problem {
            message: format!("{place}`{}` {message}", dotted(path)),
            is_warning: false,
            hint: Some(hint),
        });
    };

    if let Some(Err(error)) = config.model.as_ref().map(|model| model.parse::<ModelName>()) {
        let hint = "`moothall models` lists some".to_owned();
        report(&["model"], &format!("cannot be used: {error}"), hint);
    }
    if config.retry.first_delay > config.retry.max_delay {
        let hint = "lower it, or raise `retry.max_delay`".to_owned();
        report(&["retry", "first_delay"], "is longer than `retry.max_delay`", hint);
    }
    let evidence = &config.evidence;
    if evidence.contact.as_deref().is_some_and(|contact| Contact::parse(contact).is_err()) {
        let hint = "write it like \"ada@example.com\"; the SEC wants to know who asks".to_owned();
        report(&["evidence", "contact"], "is not a mail address", hint);
    }
    for (key, url) in [("data_url", &evidence.data_url), ("www_url", &evidence.www_url)] {
        if let Err(fault) = check_base_url(url) {
            let hint = "write it like \"https://host:port\"".to_owned();
            report(&["evidence", key], fault, hint);
        }
    }
    let notify = &config.notify;
    if let Some(Err(fault)) = notify.webhook.as_deref().map(check_webhook) {
        let hint = "write it like \"https://example.com/hooks/moothall\"".to_owned();
        report(&["notify", "webhook"], fault, hint);
    }
    if notify.webhook_secret_env.as_deref().is_some_and(|variable| !is_variable(variable)) {
        let hint =
            "it takes the name of a variable, such as \"HOOK_SECRET\", never the secret itself";
        let fault = "is not the name of an environment variable";
        report(&["notify", "webhook_secret_env"], fault, hint.to_owned());
    }
    if let Some(Err(fault)) = config.store.url.as_deref().map(database::check_setting) {
        let hint = format!(
            "write it like \"postgres://user@host/database\"; a password belongs into ~/.pgpass, or \
             the whole address into `{}`",
            database::DATABASE_URL_VARIABLE
        );
        report(&["store", "url"], &fault, hint);
    }
    // A catalog of the user's own may define further providers; then only its reader can say which
    // exist.
    // Read only where there is a section to look up: this runs at every start.
    let look_up = config.catalog.is_none() && !config.provider.is_empty();
    let known = look_up.then(Catalog::built_in).and_then(Result::ok);
    for (name, provider) in &config.provider {
        let section = ["provider", name.as_str()];
        if !is_name(name) {
            report(
                &section,
                "is not a name for a provider",
                "use lower-case letters, digits, `-` and `_`".to_owned(),
            );
        } else if let Some(known) = known.as_ref().filter(|known| known.provider(name).is_none())
            && provider.base_url.is_none()
        {
            let names = known.providers().map(|provider| provider.name.as_str());
            let hint = match hints::nearest(names, name) {
                Some(near) => {
                    format!("did you mean `provider.{near}`? a new provider needs a `base_url`")
                }
                None => "a new provider needs a `base_url`".to_owned(),
            };
            report(&section, "is not a known provider", hint);
        }
        if let Some(Err(fault)) = provider.base_url.as_deref().map(check_base_url) {
            let hint = "write it like \"https://host:port/v1\"; keys have their own place, see `moothall config path`".to_owned();
            report(&["provider", name, "base_url"], fault, hint);
        }
        if provider.key_env.as_deref().is_some_and(|variable| !is_variable(variable)) {
            let hint =
                "it takes the name of a variable, such as \"LAB_API_KEY\", never the key itself"
                    .to_owned();
            report(
                &["provider", name, "key_env"],
                "is not the name of an environment variable",
                hint,
            );
        }
        if provider.timeout.is_some_and(|timeout| timeout.is_zero()) {
            report(
                &["provider", name, "timeout"],
                "is zero, so that nothing can be answered",
                "remove it".to_owned(),
            );
        }
    }
    problems
}

/// The origin of the key itself, or of the first key below it.
fn place<'a>(origins: &'a Origins, path: &[&str]) -> &'a Origin {
    let path: Vec<String> = path.iter().map(|segment| (*segment).to_owned()).collect();
    let below = origins.range(path.clone()..).next().filter(|(key, _)| key.starts_with(&path));
    below.map_or(&Origin::Default, |(_, origin)| origin)
}

fn is_name(name: &str) -> bool {
    let inner = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    // Two underscores separate the parts of a variable's name.
    name.bytes().all(inner)
        && !name.contains("__")
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.ends_with('_')
}

/// A key pasted here would pass as a lower-case name, so only capitals count.
fn is_variable(variable: &str) -> bool {
    variable.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && variable.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
}

/// Only what could betray a secret or cannot work at all; the HTTP client knows the rest.
fn check_base_url(url: &str) -> Result<(), &'static str> {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Err("begins with neither `https://` nor `http://`");
    };
    let host = rest.split('/').next().unwrap_or_default();
    if rest.contains('@') {
        Err("holds a user name or a password")
    } else if rest.contains(['?', '#']) {
        Err("holds a query")
    } else if host.is_empty()
        || rest.contains(|letter: char| letter.is_whitespace() || letter.is_control())
    {
        Err("is not an address")
    } else {
        Ok(())
    }
}

/// What is told goes over the network, so it is told in the clear to nobody but this machine.
fn check_webhook(url: &str) -> Result<(), &'static str> {
    let url = reqwest::Url::parse(url).map_err(|_| "is not an address")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or a password");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(&url) => Ok(()),
        "http" => Err("is without TLS, and not on this machine"),
        _ => Err("begins with neither `https://` nor `http://`"),
    }
}
