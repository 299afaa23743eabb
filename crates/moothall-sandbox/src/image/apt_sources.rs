//! Package mirrors from the host's apt configuration, so no mirror is hard-coded.
//!
//! The host may run another Debian release than the images and may have third-party sources. Only
//! sources for the host's own release are used, with their suites renamed: `trixie-security`
//! becomes `bookworm-security` at the same URL.

use std::fmt::Write as _;
use std::path::Path;

/// Suite names that a source may use instead of the host's code name.
const SYMBOLIC: [&str; 5] = ["oldstable", "sid", "stable", "testing", "unstable"];

/// Suite suffixes that are used. Others (backports, proposed updates) are not meant for images.
const POCKETS: [&str; 3] = ["", "-security", "-updates"];

/// The host's sources for `suite` in deb822 format. `None` if the host is not Debian or has no
/// usable source.
pub(crate) fn of_host(etc: &Path, suite: &str) -> Option<String> {
    let release = fs_err::read_to_string(etc.join("os-release")).ok()?;
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    if value("ID")? != "debian" {
        return None;
    }
    let own = value("VERSION_CODENAME").unwrap_or_default();
    let mut stanzas = String::new();
    let apt = etc.join("apt");
    let mut files = vec![apt.join("sources.list")];
    if let Ok(parts) = fs_err::read_dir(apt.join("sources.list.d")) {
        let mut parts: Vec<_> = parts.flatten().map(|entry| entry.path()).collect();
        parts.sort();
        files.append(&mut parts);
    }
    for file in files {
        let Ok(text) = fs_err::read_to_string(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => stanzas.push_str(&of_stanzas(&text, &own, suite)),
            Some("list") => stanzas.push_str(&of_lines(&text, &own, suite)),
            _ => {}
        }
    }
    (!stanzas.is_empty()).then_some(stanzas)
}

/// Parses the deb822 format: one field per line, stanzas separated by empty lines.
fn of_stanzas(text: &str, own: &str, wanted: &str) -> String {
    let mut out = String::new();
    let uncommented: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for stanza in uncommented.split(|line| line.trim().is_empty()) {
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in stanza {
            if line.starts_with([' ', '\t']) {
                // Continuation line, for example of an embedded key.
                if let Some((_, value)) = fields.last_mut() {
                    let _ = write!(value, "\n{line}");
                }
            } else if let Some((name, value)) = line.split_once(':') {
                fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let field = |name: &str| {
            fields.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
        };
        let is_off = matches!(field("enabled"), "no" | "false" | "0");
        let has_programs = field("types").split_whitespace().any(|kind| kind == "deb");
        if !is_off && has_programs {
            let suites = field("suites").split_whitespace();
            out.push_str(&stanza_for(field("uris"), suites, field("signed-by"), own, wanted));
        }
    }
    out
}

/// Parses the one-line format `deb [options] uri suite component…`.
fn of_lines(text: &str, own: &str, wanted: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let Some(rest) = line.trim().strip_prefix("deb ") else { continue };
        let rest = rest.split('#').next().unwrap_or_default().trim();
        let (options, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((options, rest)) => (options, rest),
            None => ("", rest),
        };
        let signed_by =
            options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
        let mut words = rest.split_whitespace();
        let (Some(uri), Some(suite)) = (words.next(), words.next()) else { continue };
        let suites = std::iter::once(suite);
        out.push_str(&stanza_for(uri, suites, signed_by.unwrap_or_default(), own, wanted));
    }
    out
}

fn stanza_for<'a>(
    uris: &str,
    suites: impl Iterator<Item = &'a str>,
    signed_by: &str,
    own: &str,
    wanted: &str,
) -> String {
    let mut renamed: Vec<String> = Vec::new();
    for suite in suites {
        let bases = SYMBOLIC.into_iter().chain((!own.is_empty()).then_some(own));
        let pocket =
            bases.filter_map(|base| suite.strip_prefix(base)).find(|p| POCKETS.contains(p));
        renamed.extend(pocket.map(|pocket| format!("{wanted}{pocket}")));
    }
    if renamed.is_empty() || uris.is_empty() {
        return String::new();
    }
    let suites = renamed.join(" ");
    let mut stanza = format!("Types: deb\nURIs: {uris}\nSuites: {suites}\nComponents: main\n");
    if !signed_by.is_empty() {
        // An embedded key starts on the next line.
        let space = if signed_by.starts_with('\n') { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = writeln!(stanza, "Signed-By:{space}{signed_by}");
    }
    stanza.push('\n');
    stanza
}

#[cfg(test)]
#[path = "apt_sources_tests.rs"]
mod tests;
