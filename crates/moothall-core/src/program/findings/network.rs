//! Detects programs that try to use the network. Sandboxes have none, and the user should know that
//! a program expects it.

use std::collections::BTreeSet;

use super::{AttemptContext, listed};
use crate::{FindingSeverity, RunFinding};

/// Modules that use the network.
const MODULES: [&str; 21] = [
    "aiohttp",
    "boto3",
    "ftplib",
    "http.client",
    "httpx",
    "imaplib",
    "nntplib",
    "paramiko",
    "pip",
    "poplib",
    "pycurl",
    "requests",
    "smtplib",
    "socket",
    "ssl",
    "telnetlib",
    "urllib.request",
    "urllib3",
    "websocket",
    "websockets",
    "xmlrpc.client",
];

/// Python's error messages without a network.
const ERRORS: [&str; 10] = [
    "Name or service not known",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "No route to host",
    "ConnectionRefusedError",
    "ConnectionError",
    "URLError",
    "gaierror",
    "Max retries exceeded with url",
    "Failed to establish a new connection",
];

/// Warns if a program tries to use the network, and blocks if it failed because there is none.
pub(crate) fn attempted(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let source = attempt.source;
    let mut signs = BTreeSet::new();
    for import in source.imports() {
        signs.extend(MODULES.iter().copied().filter(|module| import.is_of(module)));
    }
    for line in &source.lines {
        let installs = line.texts().any(|text| text.contains("pip install"))
            || (line.texts().any(|text| text == "pip" || text == "pip3")
                && line.texts().any(|text| text == "install"));
        if installs {
            signs.insert("pip install");
        }
        if source.calls(line).iter().any(|call| call.path.starts_with("urllib.request.")) {
            signs.insert("urllib.request");
        }
    }
    let stderr = &attempt.execution.stderr.text;
    let failed = !attempt.execution.exit.is_zero();
    let seen = ERRORS.iter().copied().find(|error| stderr.contains(error));
    match (seen, signs.is_empty()) {
        (Some(error), _) if failed => {
            let message = format!("there is no network, and the program needs one: {error}");
            vec![attempt.finding("network.attempted", FindingSeverity::Block, &message)]
        }
        (Some(error), true) => {
            let message = format!("the program looked for a network: {error}");
            vec![attempt.finding("network.attempted", FindingSeverity::Warn, &message)]
        }
        (None, true) => Vec::new(),
        (_, false) => {
            let message = format!("the program looks for a network: {}", listed(signs));
            vec![attempt.finding("network.attempted", FindingSeverity::Warn, &message)]
        }
    }
}
