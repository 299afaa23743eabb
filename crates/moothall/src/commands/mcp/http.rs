//! Where clients come in: standard streams, an address of this machine, or a socket file.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use moothall_mcp::{Bearer, Front, HttpLimits, serve_http};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::McpArgs;
use crate::error::CliError;
use crate::open_files;
use crate::terminal::{self, BOLD, DIM};

/// The file with the token, in the state folder.
const TOKEN_FILE: &str = "mcp-token";
/// Bytes of a token before it is written down.
const TOKEN_BYTES: usize = 32;
/// The longest file that is read as a token.
const MAX_TOKEN_BYTES: u64 = 4096;

pub(super) enum Door {
    Streams,
    Address {
        listener: TcpListener,
        address: SocketAddr,
        token: String,
        file: PathBuf,
        limits: HttpLimits,
    },
    Socket {
        listener: UnixListener,
        file: PathBuf,
        limits: HttpLimits,
    },
}

impl Door {
    pub(super) fn open(args: &McpArgs, state: &Path) -> Result<Self, CliError> {
        if let Some(file) = &args.socket {
            let cannot = |error| {
                CliError::failed(format!("cannot listen on `{}`", file.display()))
                    .with_source(error)
                    .with_hint("another server may be there, or a file that is no socket")
            };
            let listener = listen_privately(file).map_err(cannot)?;
            return Ok(Self::Socket { listener, file: file.clone(), limits: limits() });
        }
        let Some(address) = args.http else { return Ok(Self::Streams) };
        if !address.ip().is_loopback() {
            return Err(CliError::usage(format!("{address} can be reached from other machines"))
                .with_hint("listen on 127.0.0.1; from elsewhere, `ssh -L` leads here"));
        }
        let cannot =
            |error| CliError::failed(format!("cannot listen on {address}")).with_source(error);
        let file = args.token_file.clone().unwrap_or_else(|| state.join(TOKEN_FILE));
        let token = token_of(&file)?;
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        Ok(Self::Address { listener, address, token, file, limits: limits() })
    }

    pub(super) fn introduce(&self) {
        match self {
            Self::Streams => {}
            Self::Address { address, file, .. } => {
                // The address is what a script wants to read.
                let _ = terminal::print(&format!("http://{address}/mcp\n"));
                let file = file.display();
                terminal::note(&format!(
                    "{BOLD}Moothall{BOLD:#} {DIM}· the token is in {file} · Ctrl-C ends it{DIM:#}\n"
                ));
            }
            Self::Socket { file, .. } => {
                let _ = terminal::print(&format!("{}\n", file.display()));
            }
        }
    }
}

pub(super) async fn serve(door: Door, front: Front) -> std::io::Result<()> {
    let closing = CancellationToken::new();
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let ending = closing.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        ending.cancel();
    });
    match door {
        Door::Streams => Ok(()),
        Door::Address { listener, address, token, limits, .. } => {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let port = address.port();
            let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
            let hosts = hosts.into_iter().chain([format!("[::1]:{port}")]).collect();
            let bearer = Some(Bearer::of(&token));
            serve_http(listener, front, bearer, hosts, limits, closing).await
        }
        Door::Socket { listener, limits, .. } => {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::UnixListener::from_std(listener)?;
            serve_http(listener, front, None, Vec::new(), limits, closing).await
        }
    }
}

/// Read before the process is confined: afterwards it may not change its limits.
fn limits() -> HttpLimits {
    HttpLimits { connections: open_files::connection_limits(), ..HttpLimits::default() }
}

/// A socket that its user alone can open: the folder is made for it, or the mode is set before
/// anybody can come. A confined process cannot clean up, so one that nobody listens on is in nobody's
/// way.
fn listen_privately(file: &Path) -> std::io::Result<UnixListener> {
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

/// The token of a file that nobody else can read; made where there is none.
fn token_of(file: &Path) -> Result<String, CliError> {
    let shown = file.display();
    let cannot = |error: std::io::Error| {
        CliError::failed(format!("the token `{shown}` cannot be used")).with_source(error)
    };
    if !file.exists() {
        make_token(file).map_err(cannot)?;
    }
    let about = fs_err::metadata(file).map_err(cannot)?;
    if about.mode() & 0o077 != 0 || about.len() > MAX_TOKEN_BYTES {
        return Err(CliError::usage(format!("others can read the token `{shown}`"))
            .with_hint(format!("`chmod 600 {shown}`, or remove it and another one is made")));
    }
    let text = fs_err::read_to_string(file).map_err(cannot)?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!("`{shown}` does not hold a token"))
            .with_hint("it has at least 32 characters; remove it and another one is made"));
    }
    Ok(token.to_owned())
}

fn make_token(file: &Path) -> std::io::Result<()> {
    use ring::rand::SecureRandom as _;
    use std::io::Write as _;
    let mut bytes = [0; TOKEN_BYTES];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("no randomness"))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut made =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(made, "{token}")
}
