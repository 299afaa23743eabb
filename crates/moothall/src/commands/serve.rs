//! `moothall serve`: runs in the browser and over HTTP.

mod browser;
mod desk;
mod facts;
mod probing;
mod telling;
mod veil;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use moothall_core::access::{Scope, TeamName};
use moothall_core::consult::{Committee, board};
use moothall_models::connection::is_loopback;
use moothall_server::{
    Access, Admits, App, Exporter, Feed, Guard, Limits, Metrics, Spans, Timing, Workspace,
    Workspaces, login_code, login_link,
};
use moothall_workspace::DraftStore;
use reqwest::Url;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::desk::ProgramDesk;
use self::telling::Causes;
use self::veil::Veil;
use super::draft::store::{failed, options_of, warn_about_policy};
use super::{committee, login};
use crate::args::{AuthArg, Global, ServeArgs};
use crate::config::Loaded;
use crate::error::{CliError, Exit};
use crate::files;
use crate::launch::ServerDefaults;
use crate::local::Local;
use crate::pace::Pace;
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::user_input;
use crate::{config, logging, open_files};

pub(super) fn run(global: &Global, args: &ServeArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    let metrics = Arc::<Metrics>::default();
    let (spans, exporter) = match &args.otlp {
        None => (Spans::counting(Arc::clone(&metrics)), None),
        Some(endpoint) => {
            let (spans, exporter) = collector(endpoint)?;
            (spans.and_counting(Arc::clone(&metrics)), Some(exporter))
        }
    };
    logging::start_with(&loaded.resolved.config.log, global.verbose, spans);
    refuse_other_machines(args)?;
    refuse_plain_http(args)?;
    let limits = Limits { connections: open_files::connection_limits(), ..Limits::default() };
    let offline = files::whole(args.offline.as_deref())?;
    let workspaces = Arc::new(workspaces(global, &loaded, args)?);
    let committees = committees(&args.committee)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| CliError::failed("the async runtime cannot start").with_source(error))?;
    runtime.block_on(async {
        let local = Arc::new(Local::open(&loaded).await?);
        let listener = listen(args.addr)?;
        let address = listener.local_addr().unwrap_or(args.addr);
        let closing = CancellationToken::new();
        let feed = Feed::new(local.store.clone());
        let watching =
            tokio::spawn(Arc::clone(&feed).watch(Timing::default(), closing.child_token()));
        let files = committees.iter().map(|(_, file)| file.clone());
        let veil = Veil::of(&loaded, files.chain(offline.clone()).chain(args.workspace.clone()));
        let causes = match args.auth {
            AuthArg::Tokens => Causes::Logged(veil),
            AuthArg::Link | AuthArg::None => Causes::Told,
        };
        let defaults = ServerDefaults {
            model: args.model.clone(),
            offline,
            committees,
            restate: args.engine.restate(),
        };
        let desk = Arc::new(ProgramDesk::new(
            global.config.clone(),
            Arc::clone(&local),
            Arc::clone(&feed),
            defaults,
            Pace::of(args.pace),
            causes,
        ));
        let origin = match &args.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{address}"),
        };
        let guard = match &args.public_url {
            Some(_) => Guard::named(&origin).ok_or_else(not_an_origin)?,
            None => Guard::local(address),
        };
        let admits = match args.auth {
            AuthArg::None => Admits::Everyone,
            AuthArg::Link | AuthArg::Tokens => Admits::Credentials,
        };
        let access = Access::new(local.shared_accounts(), admits, &origin);
        let app = App::new(local.store.clone(), desk.clone(), feed, access, closing.clone())
            .with_metrics(metrics)
            .with_workspaces(Arc::clone(&workspaces));
        let looking = tokio::spawn(workspaces.watch(closing.child_token()));
        // It ends after the runs, whose spans it sends.
        let done = CancellationToken::new();
        let exporting = exporter.map(|exporter| tokio::spawn(exporter.run(done.clone())));
        let leave = end_on_signal(closing.clone())?;
        let link = match args.auth {
            AuthArg::Link => {
                let code = login_code(local.accounts(), TeamName::local(), Scope::Admin).await;
                Some(login_link(&origin, &code.map_err(login::refusal)?))
            }
            AuthArg::Tokens | AuthArg::None => None,
        };
        introduce(&origin, link.as_deref());
        // The file with the link is removed when the server ends.
        let _redirect = match (args.open, &link) {
            (true, Some(link)) => browser::open_privately(link, &loaded.places.folders.state),
            (true, None) => browser::open(&origin),
            (false, _) => None,
        };
        let served = tokio::select! {
            served = moothall_server::serve(listener, app, guard, limits) => served,
            () = leave.cancelled() => Ok(()),
        };
        closing.cancel();
        // Runs that nobody waits for can be resumed all the same.
        tokio::select! {
            () = moothall_server::Desk::shut_down(&*desk) => {}
            () = leave.cancelled() => {}
        }
        let _ = tokio::join!(watching, looking);
        done.cancel();
        if let Some(exporting) = exporting {
            let _ = exporting.await;
        }
        local.close().await;
        served.map_err(|error| CliError::failed("the server broke off").with_source(error))?;
        Ok(Exit::Fine)
    })
}

/// The committees of files. Requests know them by name, so no two have the same.
fn committees(files: &[PathBuf]) -> Result<Vec<(Committee, PathBuf)>, CliError> {
    let mut all: Vec<(Committee, PathBuf)> = Vec::new();
    for file in files {
        let file = fs_err::canonicalize(file)
            .map_err(|error| CliError::usage("the committee cannot be read").with_source(error))?;
        let one = committee::find(file.to_str())?;
        if one.name == board().name || all.iter().any(|(other, _)| other.name == one.name) {
            return Err(CliError::usage(format!("two committees are called `{}`", one.name))
                .with_hint("give one of them another `name`"));
        }
        all.push((one, file));
    }
    Ok(all)
}

/// The workspaces whose drafts are shown, each with what a crash left finished.
fn workspaces(global: &Global, loaded: &Loaded, args: &ServeArgs) -> Result<Workspaces, CliError> {
    if args.workspace.is_empty() {
        return Ok(Workspaces::default());
    }
    let person = user_input::who(loaded, args.by.as_deref(), "reviews")?;
    let mut all = Vec::new();
    for folder in &args.workspace {
        let options = options_of(global.config.as_deref(), loaded, folder)?;
        let folder = options.workspace.clone();
        let store = DraftStore::open(options).map_err(failed)?;
        warn_about_policy(&store);
        all.push(Workspace::new(&folder, store).map_err(|error| {
            CliError::failed("the workspace cannot be read").with_source(error)
        })?);
    }
    Ok(Workspaces::new(all, person).with_user(rustix::process::getuid().as_raw()))
}

/// Who can reach the server can try to spend its user's money.
fn refuse_other_machines(args: &ServeArgs) -> Result<(), CliError> {
    let address = args.addr;
    if address.ip().is_loopback() {
        return Ok(());
    }
    match (args.auth, &args.public_url) {
        (AuthArg::Tokens, Some(_)) => Ok(()),
        (AuthArg::Tokens, None) => Err(CliError::usage(format!(
            "{address} can be reached from other machines, and nobody says under which name"
        ))
        .with_hint("`--public-url https://moothall.example.com` does")),
        (AuthArg::Link | AuthArg::None, _) => {
            Err(CliError::usage(format!("{address} can be reached from other machines")).with_hint(
                "listen on 127.0.0.1; from elsewhere, `ssh -L 7777:127.0.0.1:7777` leads here. \
                 For others there is `--auth tokens`",
            ))
        }
    }
}

/// Whoever can read the network between a browser and a server without TLS gets its tokens.
fn refuse_plain_http(args: &ServeArgs) -> Result<(), CliError> {
    let Some(text) = &args.public_url else { return Ok(()) };
    // What cannot be parsed is refused as an origin later.
    let is_plain = Url::parse(text).is_ok_and(|url| url.scheme() == "http" && !is_loopback(&url));
    if !is_plain {
        return Ok(());
    }
    if args.insecure {
        let words = "tokens and cookies cross the network unencrypted (`--insecure`)";
        terminal::note(&format!("{YELLOW}warning: {words}{YELLOW:#}\n"));
        return Ok(());
    }
    let https = text.replacen("http://", "https://", 1);
    Err(CliError::usage(format!(
        "the public URL `{text}` has no TLS: tokens and cookies would cross the network unencrypted"
    ))
    .with_hint(format!(
        "put a proxy with TLS in front and pass `--public-url {https}`, or pass `--insecure`"
    )))
}

fn not_an_origin() -> CliError {
    CliError::usage("`--public-url` is not an address that browsers know a server by")
        .with_hint("it has a scheme and a name and nothing else: https://moothall.example.com")
}

fn collector(endpoint: &str) -> Result<(Spans, Exporter), CliError> {
    if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
        return Err(CliError::usage("`--otlp` is not an address of a collector")
            .with_hint("it is where OTLP over HTTP is listened for: http://127.0.0.1:4318"));
    }
    moothall_server::exporter(endpoint)
        .map_err(|error| CliError::failed("spans cannot be sent").with_source(error))
}

/// Connections that the kernel holds until they are accepted. When there are more, clients wait for a
/// second before they try again.
const BACKLOG: u32 = 4_096;

fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // As `TcpListener::bind` does: the port of a server that has just ended can be used again.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map_err(|error| {
        let taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let failed = CliError::failed(format!("cannot listen on {address}")).with_source(error);
        match taken {
            true => failed
                .with_hint("another server may be there; `--addr 127.0.0.1:0` takes a free port"),
            false => failed,
        }
    })
}

/// Ctrl-C, or a polite request of the system to end. What is returned is cancelled by a second one:
/// then nothing is waited for.
fn end_on_signal(closing: CancellationToken) -> Result<CancellationToken, CliError> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| CliError::failed("signals cannot be listened to").with_source(error))
    };
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let leave = CancellationToken::new();
    let leaving = leave.clone();
    tokio::spawn(async move {
        for token in [closing, leaving] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if !token.is_cancelled() {
                token.cancel();
                let words = "ending: runs under way stand still · again leaves at once";
                terminal::note(&format!("\n{DIM}{words}{DIM:#}\n"));
            }
        }
    });
    Ok(leave)
}

fn introduce(url: &str, link: Option<&str>) {
    // The address is what a script wants to read.
    let _ = terminal::print(&format!("{url}\n"));
    if !moothall_ui::is_built() {
        let words = "the pages are not in this build; `cargo xtask web` makes them";
        terminal::note(&format!("{YELLOW}note: {words}{YELLOW:#}\n"));
    }
    terminal::note(&format!("{BOLD}Moothall{BOLD:#} {DIM}· Ctrl-C ends it{DIM:#}\n"));
    if let Some(link) = link {
        terminal::note(&format!("sign in, once: {link}\n"));
    }
}
