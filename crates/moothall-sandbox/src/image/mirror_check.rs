//! Checks that a package mirror can be reached before an automatic build, because apt
//! takes minutes to give up without a network.

use std::path::Path;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::apt_sources;
use super::build::BuildOptions;
use crate::SandboxError;

/// Time limit for all connections together.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1500);

/// Fails if the host has no source for this suite, because the user did not choose the mirror that
/// would be used then, or if no mirror accepts a connection. With a proxy, or with sources that are
/// not plain HTTP, apt decides.
pub(crate) async fn require_mirror(
    etc: &Path,
    suite: &str,
    options: &BuildOptions,
) -> Result<(), SandboxError> {
    let Some(sources) = apt_sources::of_host(etc, suite) else {
        let problem = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(SandboxError::host("this system has no package source for the image")(problem));
    };
    let has_proxy = options.environment.keys().any(|name| {
        let name = name.to_ascii_lowercase();
        name == "http_proxy" || name == "https_proxy"
    });
    if has_proxy || apt_has_proxy(etc) {
        return Ok(());
    }
    let Some(addresses) = addresses(&sources) else { return Ok(()) };
    let mut connections = JoinSet::new();
    for (host, port) in addresses {
        connections.spawn(async move { TcpStream::connect((host.as_str(), port)).await });
    }
    let first_success = async {
        while let Some(connected) = connections.join_next().await {
            if matches!(connected, Ok(Ok(_))) {
                return true;
            }
        }
        false
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, first_success).await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => {
            let problem = std::io::Error::from(std::io::ErrorKind::NetworkUnreachable);
            Err(SandboxError::host("no package mirror can be reached")(problem))
        }
    }
}

fn apt_has_proxy(etc: &Path) -> bool {
    let apt = etc.join("apt");
    let parts = fs_err::read_dir(apt.join("apt.conf.d")).into_iter().flatten().flatten();
    let files = parts.map(|entry| entry.path()).chain([apt.join("apt.conf")]);
    files.filter_map(|file| fs_err::read_to_string(file).ok()).any(|text| text.contains("Proxy"))
}

/// Host and port of each source; `None` if one is not plain HTTP.
fn addresses(sources: &str) -> Option<Vec<(String, u16)>> {
    let lines = sources.lines().filter_map(|line| line.strip_prefix("URIs:"));
    lines.flat_map(str::split_whitespace).map(address).collect()
}

fn address(uri: &str) -> Option<(String, u16)> {
    let (rest, port) = match (uri.strip_prefix("http://"), uri.strip_prefix("https://")) {
        (Some(rest), _) => (rest, 80),
        (None, Some(rest)) => (rest, 443),
        (None, None) => return None,
    };
    let authority = rest.split('/').next()?;
    let host_port = authority.rsplit('@').next()?;
    match host_port.rsplit_once(':') {
        Some((host, port)) => Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?)),
        None => Some((host_port.to_owned(), port)),
    }
}

#[cfg(test)]
#[path = "mirror_check_tests.rs"]
mod tests;
