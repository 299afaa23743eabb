//! Validation beyond types: names, URLs, and values that depend on each other.
//!
//! Messages never quote a value that may be a misplaced secret.

use moothall_core::model::ModelChoice;
use moothall_models::Catalog;
use moothall_sources::edgar::SecContact;

use super::Config;
use super::hints;
use super::origin::{ConfigOrigin, Origins};
use super::problem::ConfigProblem;
use super::schema::dotted;
use crate::database;

pub(crate) fn problems(config: &Config, origins: &Origins) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    let mut report = |path: &[&str], message: &str, hint: String| {
        let place = match place(origins, path) {
            ConfigOrigin::Default => String::new(),
            place => format!("{place}: "),
        };
        problems.push(ConfigProblem {
            message: format!("{place}`{}` {message}", dotted(path)),
            is_warning: false,
            hint: Some(hint),
        });
    };

    let default = (vec!["model"], config.model.as_ref());
    let roles = config.models.roles().map(|(role, models)| (vec!["models", role], models));
    for (path, models) in std::iter::once(default).chain(roles) {
        if let Some(Err(error)) = models.map(ModelChoice::parse) {
            let hint = "see `moothall models`".to_owned();
            report(&path, &format!("is invalid: {error}"), hint);
        }
    }
    if config.retry.first_delay > config.retry.max_delay {
        let hint = "lower it, or raise `retry.max_delay`".to_owned();
        report(&["retry", "first_delay"], "is longer than `retry.max_delay`", hint);
    }
    let evidence = &config.evidence;
    if evidence.contact.as_deref().is_some_and(|contact| SecContact::parse(contact).is_err()) {
        let hint = "use an address like \"ada@example.com\"; the SEC requires a contact".to_owned();
        report(&["evidence", "contact"], "is not an email address", hint);
    }
    for (key, url) in [("data_url", &evidence.data_url), ("www_url", &evidence.www_url)] {
        if let Err(fault) = check_base_url(url) {
            let hint = "use a URL like \"https://host:port\"".to_owned();
            report(&["evidence", key], fault, hint);
        }
    }
    super::notify::check(&config.notify, &mut report);
    if let Some(Err(fault)) = config.store.url.as_deref().map(database::check_setting) {
        let hint = format!(
            "use a URL like \"postgres://user@host/database\"; put the password in ~/.pgpass, or \
             the complete URL in `{}`",
            database::DATABASE_URL_VARIABLE
        );
        report(&["store", "url"], &fault, hint);
    }
    // A user's catalog may define more providers, so unknown names are reported only without one.
    // The built-in catalog is parsed only if there is a section to look up, because this runs at
    // every start.
    let look_up = config.catalog.is_none() && !config.provider.is_empty();
    let known = look_up.then(Catalog::built_in).and_then(Result::ok);
    for (name, provider) in &config.provider {
        let section = ["provider", name.as_str()];
        if !is_name(name) {
            report(
                &section,
                "is not a valid provider name",
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
            let hint =
                "use a URL like \"https://host:port/v1\"; for API keys, see `moothall config path`"
                    .to_owned();
            report(&["provider", name, "base_url"], fault, hint);
        }
        if provider.key_env.as_deref().is_some_and(|variable| !is_variable(variable)) {
            let hint = "use the name of a variable, such as \"LAB_API_KEY\", never the key itself"
                .to_owned();
            report(
                &["provider", name, "key_env"],
                "is not the name of an environment variable",
                hint,
            );
        }
        for (key, timeout) in
            [("timeout", provider.timeout), ("key_command_timeout", provider.key_command_timeout)]
        {
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                report(&["provider", name, key], "must not be zero", "remove it".to_owned());
            }
        }
        if let Some(Err(fault)) = provider.proxy.as_deref().map(check_proxy) {
            let hint = "use a URL like \"http://proxy.example.com:3128\"; put a proxy with a password in `HTTPS_PROXY`";
            report(&["provider", name, "proxy"], fault, hint.to_owned());
        }
        for header in provider.headers.keys() {
            if is_secret_name(header) {
                let hint = format!(
                    "put the name of a variable in `provider.{name}.header_env`, or for the API key run `moothall key set {name}`"
                );
                let path = ["provider", name.as_str(), "headers", header.as_str()];
                report(&path, "is a secret, which does not belong in the configuration", hint);
            }
        }
        for parameter in provider.query.keys() {
            let path = ["provider", name.as_str(), "query", parameter.as_str()];
            if is_secret_name(parameter) {
                let hint = format!("run `moothall key set {name}`");
                report(&path, "is a secret, which does not belong in the configuration", hint);
            } else if !is_parameter(parameter) {
                let hint = "use letters, digits, `-` and `_`".to_owned();
                report(&path, "is not the name of a query parameter", hint);
            }
        }
        let headers = [
            ("headers", &provider.headers),
            ("header_env", &provider.header_env),
            ("header_command", &provider.header_command),
        ];
        for (key, headers) in headers {
            for (header, value) in headers {
                let path = ["provider", name.as_str(), key, header.as_str()];
                if !is_header(header) {
                    let hint = "use letters, digits and `-`; `host` and `content-length` are set by the connection";
                    report(&path, "is not a header that can be set", hint.to_owned());
                } else if key == "header_env" && !is_variable(value) {
                    let hint = "use the name of a variable, such as \"GATEWAY_TOKEN\", never the secret itself";
                    report(&path, "is not the name of an environment variable", hint.to_owned());
                } else if key == "headers" && !value.bytes().all(|b| matches!(b, 0x20..=0x7e)) {
                    let hint = "use printable ASCII characters".to_owned();
                    report(&path, "is not a valid value of a header", hint);
                }
            }
        }
    }
    problems
}

/// The origin of the key itself, or of the first key below it.
fn place<'a>(origins: &'a Origins, path: &[&str]) -> &'a ConfigOrigin {
    let path: Vec<String> = path.iter().map(|segment| (*segment).to_owned()).collect();
    let below = origins.range(path.clone()..).next().filter(|(key, _)| key.starts_with(&path));
    below.map_or(&ConfigOrigin::Default, |(_, origin)| origin)
}

pub(crate) fn is_name(name: &str) -> bool {
    let inner = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    // Two underscores separate the segments of a variable name.
    name.bytes().all(inner)
        && !name.contains("__")
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.ends_with('_')
}

/// Only upper case is accepted, so a pasted API key is rejected.
pub(crate) fn is_variable(variable: &str) -> bool {
    variable.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && variable.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
}

/// Headers that belong to the connection cannot be set. Another `host` would send the key to another
/// service behind the same address.
fn is_header(name: &str) -> bool {
    let reserved =
        ["host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade"];
    is_parameter(name) && !reserved.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
}

fn is_parameter(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Whether headers or parameters of this name are secrets.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    ["authorization", "proxy-authorization", "cookie", "key", "token", "access-token", "secret"]
        .contains(&name.as_str())
        || ["-key", "-token", "-secret", "apikey"].iter().any(|end| name.ends_with(end))
}

fn check_proxy(url: &str) -> Result<(), &'static str> {
    let url = reqwest::Url::parse(url).map_err(|_| "is not a valid URL")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    match url.scheme() {
        "http" | "https" if url.host_str().is_some() => Ok(()),
        _ => Err("must start with `http://` or `https://`"),
    }
}

/// Checks only for leaked secrets and URLs that can never work; the HTTP client checks the rest.
fn check_base_url(url: &str) -> Result<(), &'static str> {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Err("must start with `https://` or `http://`");
    };
    let host = rest.split('/').next().unwrap_or_default();
    if rest.contains('@') {
        Err("must not contain a user name or password")
    } else if rest.contains(['?', '#']) {
        Err("must not contain a query")
    } else if host.is_empty()
        || rest.contains(|letter: char| letter.is_whitespace() || letter.is_control())
    {
        Err("is not a valid URL")
    } else {
        Ok(())
    }
}
