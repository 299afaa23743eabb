//! Connections of a guarded agent: an HTTP proxy that only forwards `CONNECT` to allowed hosts, and
//! forwarded ports on loopback. Neither adds anything to the traffic, and neither sees inside TLS.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moothall_core::text::sanitize_line;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Size limit of a request's head.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// Time limit for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for a connection to a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit of connections at a time.
const MAX_CONNECTIONS: usize = 256;
/// Limit of hosts in the log.
const MAX_LOGGED_HOSTS: usize = 500;
const HTTPS: u16 = 443;

/// A host that the agent may connect to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostRule {
    host: String,
    port: u16,
    /// Whether it was written as `*.host`.
    subdomains: bool,
}

/// Why a text is not a [`HostRule`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid host: expected a name such as `api.example.com`, `*.example.com` or `host:8443`")]
pub struct HostRuleFault;

impl HostRule {
    /// Parses `host`, `host:port` or `*.host`. Without a port, HTTPS is allowed.
    pub fn parse(text: &str) -> Result<Self, HostRuleFault> {
        let (host, port) = match text.parse::<IpAddr>() {
            Ok(_) => (text, HTTPS),
            Err(_) => split_port(text, HTTPS).ok_or(HostRuleFault)?,
        };
        let (host, subdomains) = match host.strip_prefix("*.") {
            Some(parent) => (parent, true),
            None => (host, false),
        };
        if port == 0 || !is_host(host) || (subdomains && !host.contains('.')) {
            return Err(HostRuleFault);
        }
        Ok(Self { host: host.to_ascii_lowercase(), port, subdomains })
    }

    fn allows(&self, host: &str, port: u16) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_host = match self.subdomains {
            true => host.strip_suffix(&self.host).is_some_and(|rest| rest.ends_with('.')),
            false => host == self.host,
        };
        port == self.port && is_host
    }

    /// Whether the user named this machine or an address: a local address is then intended.
    fn is_literal(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok()
    }
}

/// Splits `host:port` and `[v6]:port`.
fn split_port(text: &str, default: u16) -> Option<(&str, u16)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None => default,
        };
        return Some((host, port));
    }
    match text.split_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((text, default)),
    }
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (1..=63).contains(&label.len()) && label.chars().all(plain)
    };
    text.parse::<IpAddr>().is_ok() || (text.len() <= 253 && text.split('.').all(is_label))
}

/// The hosts that the agent may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressRules(Vec<HostRule>);

impl EgressRules {
    pub fn new(rules: Vec<HostRule>) -> Self {
        Self(rules)
    }

    fn rule(&self, host: &str, port: u16) -> Option<&HostRule> {
        self.0.iter().find(|rule| rule.allows(host, port))
    }
}

/// Connections to one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressRecord {
    pub host: String,
    pub port: u16,
    pub allowed: bool,
    pub connections: u64,
}

/// Connections by host, port and whether they were allowed.
type HostCounts = BTreeMap<(String, u16, bool), u64>;

/// The hosts that the agent connected to or tried to.
#[derive(Debug, Clone, Default)]
pub struct EgressLog(Arc<Mutex<HostCounts>>);

impl EgressLog {
    fn count(&self, host: &str, port: u16, allowed: bool) {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let host = sanitize_line(host);
        if hosts.len() < MAX_LOGGED_HOSTS || hosts.contains_key(&(host.clone(), port, allowed)) {
            *hosts.entry((host, port, allowed)).or_default() += 1;
        }
    }

    pub fn records(&self) -> Vec<EgressRecord> {
        let hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts
            .iter()
            .map(|((host, port, allowed), connections)| EgressRecord {
                host: host.clone(),
                port: *port,
                allowed: *allowed,
                connections: *connections,
            })
            .collect()
    }

    /// Accepts connections to the proxy until the future is dropped.
    pub async fn serve_proxy(
        &self,
        listener: std::net::TcpListener,
        rules: EgressRules,
    ) -> io::Result<()> {
        let rules = Arc::new(rules);
        let log = self.clone();
        serve(listener, move |stream| {
            let (rules, log) = (Arc::clone(&rules), log.clone());
            async move { proxy(stream, &rules, &log).await }
        })
        .await
    }

    /// Forwards connections to the same port of this machine until the future is dropped.
    pub async fn forward_port(&self, listener: std::net::TcpListener, port: u16) -> io::Result<()> {
        let log = self.clone();
        serve(listener, move |mut stream| {
            let log = log.clone();
            async move {
                log.count("127.0.0.1", port, true);
                let address = (Ipv4Addr::LOCALHOST, port);
                if let Ok(mut server) = TcpStream::connect(address).await {
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                }
            }
        })
        .await
    }
}

async fn serve<F: Future<Output = ()> + Send + 'static>(
    listener: std::net::TcpListener,
    handle: impl Fn(TcpStream) -> F,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await.map_err(io::Error::other)?;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of file descriptors: the next connection may work.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let handled = handle(stream);
        connections.spawn(async move {
            handled.await;
            drop(permit);
        });
    }
}

async fn proxy(mut stream: TcpStream, rules: &EgressRules, log: &EgressLog) {
    let head = match timeout(HEAD_TIMEOUT, read_head(&mut stream)).await {
        Ok(Ok(Some(head))) => head,
        _ => return refuse(&mut stream, "400 Bad Request", "the request cannot be read").await,
    };
    let Some((host, port)) = connect_target(&head) else {
        let why = "only CONNECT is supported: use an https:// address";
        return refuse(&mut stream, "405 Method Not Allowed", why).await;
    };
    let Some(rule) = rules.rule(host, port) else {
        log.count(host, port, false);
        let why = format!("{host}:{port} is not allowed; pass --allow-host {host}:{port}");
        return refuse(&mut stream, "403 Forbidden", &why).await;
    };
    log.count(host, port, true);
    let Ok(mut server) = connect(host, port, rule).await else {
        return refuse(&mut stream, "502 Bad Gateway", "cannot connect to the host").await;
    };
    if stream.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n").await.is_ok() {
        let _ = copy_bidirectional(&mut stream, &mut server).await;
    }
}

/// Reads up to the empty line. A client waits for the answer, so nothing follows it yet. `None` if
/// the head is too long or incomplete.
async fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await?;
        if count == 0 || head.len() + count > MAX_HEAD_BYTES {
            return Ok(None);
        }
        head.extend_from_slice(&buffer[..count]);
    }
    Ok(String::from_utf8(head).ok())
}

/// The host and port of a `CONNECT` request.
fn connect_target(head: &str) -> Option<(&str, u16)> {
    let mut words = head.lines().next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if method != "CONNECT" || !version.starts_with("HTTP/1.") || words.next().is_some() {
        return None;
    }
    let (host, port) = split_port(target, HTTPS)?;
    let plain = host.strip_suffix('.').unwrap_or(host);
    (port != 0 && is_host(plain)).then_some((host, port))
}

/// Connects to a host. A name that resolves to this machine or to a link-local address, where
/// clouds serve credentials, is refused unless the rule names the address itself.
async fn connect(host: &str, port: u16, rule: &HostRule) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let addresses: Vec<SocketAddr> =
        timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((host, port))).await??.collect();
    for address in addresses {
        if !rule.is_literal() && is_local(address.ip()) {
            last = io::Error::from(io::ErrorKind::PermissionDenied);
            continue;
        }
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await? {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_unspecified() || address.is_link_local()
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_local(IpAddr::V4(mapped)),
            None => {
                address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local()
            }
        },
    }
}

async fn refuse(stream: &mut TcpStream, status: &str, why: &str) {
    let body = format!("moothall guard: {}\n", sanitize_line(why));
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
#[path = "egress_proxy_tests.rs"]
mod tests;
