//! Transports for MCP clients: standard streams, a local address, or a socket file.

use std::io::IsTerminal as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use moothall_mcp::{BearerToken, McpFrontend, McpHttpLimits, serve_http};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::McpArgs;
use crate::error::CliError;
use crate::open_files;
use crate::terminal::{self, BOLD, DIM};

/// Token file in the state directory.
const TOKEN_FILE: &str = "mcp-token";
/// Random bytes in a token, before hex encoding.
const TOKEN_BYTES: usize = 32;
const MAX_TOKEN_BYTES: u64 = 4096;

pub(crate) enum McpTransport {
    Streams,
    Address {
        listener: TcpListener,
        address: SocketAddr,
        token: String,
        file: PathBuf,
        limits: McpHttpLimits,
    },
    Socket {
        listener: UnixListener,
        file: PathBuf,
        limits: McpHttpLimits,
    },
}

impl McpTransport {
    pub(crate) fn open(args: &McpArgs, state: &Path) -> Result<Self, CliError> {
        if let Some(file) = &args.socket {
            let cannot = |error| {
                CliError::failed(format!("cannot listen on `{}`", file.display()))
                    .with_source(error)
                    .with_hint("another server may be using it, or it is not a socket")
            };
            let listener = bind_private_socket(file).map_err(cannot)?;
            return Ok(Self::Socket { listener, file: file.clone(), limits: limits() });
        }
        let Some(address) = args.http else { return Ok(Self::Streams) };
        if !address.ip().is_loopback() {
            return Err(CliError::usage(format!("{address} is reachable from other machines"))
                .with_hint("listen on 127.0.0.1 and connect with `ssh -L`"));
        }
        let cannot = |error| {
            CliError::failed(format!("cannot listen on {address}")).with_source(error).with_hint(
                "another server may use this port; `--http 127.0.0.1:0` picks a free one",
            )
        };
        let file = args.token_file.clone().unwrap_or_else(|| state.join(TOKEN_FILE));
        let token = load_or_create_token(&file)?;
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        Ok(Self::Address { listener, address, token, file, limits: limits() })
    }

    pub(crate) fn introduce(&self) {
        match self {
            // A client never starts it in a terminal.
            Self::Streams if std::io::stdin().is_terminal() => terminal::note(&format!(
                "{BOLD}Moothall{BOLD:#} {DIM}· waiting for an MCP client on standard input, which an agent starts itself · \
                 press Ctrl-D to stop{DIM:#}\n"
            )),
            Self::Streams => {}
            Self::Address { address, file, .. } => {
                // Scripts read the address from standard output.
                let _ = terminal::print(&format!("http://{address}/mcp\n"));
                let file = file.display();
                terminal::note(&format!(
                    "{BOLD}Moothall{BOLD:#} {DIM}· token file: {file} · press Ctrl-C to stop{DIM:#}\n"
                ));
            }
            Self::Socket { file, .. } => {
                let _ = terminal::print(&format!("{}\n", file.display()));
            }
        }
    }
}

pub(crate) async fn serve(transport: McpTransport, frontend: McpFrontend) -> std::io::Result<()> {
    let closing = CancellationToken::new();
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let signalled = closing.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        signalled.cancel();
    });
    match transport {
        McpTransport::Streams => Ok(()),
        McpTransport::Address { listener, address, token, limits, .. } => {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let port = address.port();
            let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
            let hosts = hosts.into_iter().chain([format!("[::1]:{port}")]).collect();
            let bearer = Some(BearerToken::of(&token));
            serve_http(listener, frontend, bearer, hosts, limits, closing).await
        }
        McpTransport::Socket { listener, limits, .. } => {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::UnixListener::from_std(listener)?;
            serve_http(listener, frontend, None, Vec::new(), limits, closing).await
        }
    }
}

/// Called before the process is confined, because a confined process cannot change its limits.
fn limits() -> McpHttpLimits {
    McpHttpLimits { connections: open_files::connection_limits(), ..McpHttpLimits::default() }
}

/// Creates a socket that only its user can open: a new directory gets mode 0700, and the umask
/// restricts the socket itself. A confined process cannot delete its socket, so a stale one is
/// replaced.
fn bind_private_socket(file: &Path) -> std::io::Result<UnixListener> {
    if fs_err::symlink_metadata(file).is_ok_and(|about| about.file_type().is_socket())
        && UnixStream::connect(file).is_err()
    {
        fs_err::remove_file(file)?;
    }
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(file);
    rustix::process::umask(before);
    listener
}

/// Reads the token from a file that only its owner can read; creates it if missing.
fn load_or_create_token(file: &Path) -> Result<String, CliError> {
    let shown = file.display();
    let cannot = |error: std::io::Error| {
        CliError::failed(format!("cannot use the token file `{shown}`")).with_source(error)
    };
    if !file.exists() {
        make_token(file).map_err(cannot)?;
    }
    let about = fs_err::metadata(file).map_err(cannot)?;
    if about.mode() & 0o077 != 0 || about.len() > MAX_TOKEN_BYTES {
        return Err(CliError::usage(format!(
            "the token file `{shown}` is readable by other users or too large"
        ))
        .with_hint(format!("run `chmod 600 {shown}`, or delete the file to create a new token")));
    }
    let text = fs_err::read_to_string(file).map_err(cannot)?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!("`{shown}` does not contain a valid token"))
            .with_hint(
                "a token has at least 32 characters; delete the file to create a new token",
            ));
    }
    Ok(token.to_owned())
}

fn make_token(file: &Path) -> std::io::Result<()> {
    use ring::rand::SecureRandom as _;
    use std::io::Write as _;
    let mut bytes = [0; TOKEN_BYTES];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("cannot get random bytes from the operating system"))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut made =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(made, "{token}")
}
