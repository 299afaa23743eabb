//! `moothall serve`: the web UI and the HTTP API.

pub(crate) mod browser;
mod doctor_cache;
mod error_mapping;
mod page_data;
mod path_redaction;
mod run_service;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use moothall_core::access::{AccessScope, TeamName};
use moothall_core::consult::{Committee, board};
use moothall_models::connection::is_loopback;
use moothall_server::{
    AccessControl, AccessMode, AppState, EventFeed, FeedTiming, OriginGuard, ServedWorkspace,
    ServerLimits, ServerMetrics, WorkspaceRegistry, login_code, login_link,
};
use moothall_workspace::DraftStore;
use reqwest::Url;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Builder as RuntimeBuilder;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::error_mapping::ErrorDisclosure;
use self::path_redaction::PathRedactor;
use self::run_service::LocalRunService;
use super::draft::store::{failed, options_of, warn_about_policy};
use super::{build_runtime, committee, login};
use crate::args::{AuthArg, GlobalArgs, ServeArgs};
use crate::config::LoadedConfig;
use crate::demo_delay::DemoDelay;
use crate::error::{CliError, CliExit};
use crate::files;
use crate::launch::ServerDefaults;
use crate::run_store::RunStore;
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::user_input;
use crate::{config, logging, notify, open_files, process_resources};

pub(crate) fn run(global: &GlobalArgs, args: &ServeArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    let metrics = Arc::<ServerMetrics>::default();
    logging::start_counting(&loaded.resolved.config.log, global.verbose, Arc::clone(&metrics));
    refuse_other_machines(args)?;
    refuse_plain_http(args)?;
    let limits =
        ServerLimits { connections: open_files::connection_limits(), ..ServerLimits::default() };
    let offline = files::absolute_path(args.offline.as_deref())?;
    let workspaces = Arc::new(workspaces(global, &loaded, args)?);
    let committees = committees(&args.committee)?;
    let runtime = build_runtime(&mut RuntimeBuilder::new_multi_thread())?;
    process_resources::keep_sandboxes(runtime.handle().clone());
    runtime.block_on(async {
        let local = Arc::new(RunStore::open(&loaded).await?);
        let listener = listen(args.addr)?;
        let address = listener.local_addr().unwrap_or(args.addr);
        let closing = CancellationToken::new();
        let feed = EventFeed::new(local.store.clone());
        let feed_watch =
            tokio::spawn(Arc::clone(&feed).watch(FeedTiming::default(), closing.child_token()));
        let files = committees.iter().map(|(_, file)| file.clone());
        let redactor =
            PathRedactor::of(&loaded, files.chain(offline.clone()).chain(args.workspace.clone()));
        let disclosure = match args.auth {
            AuthArg::Tokens => ErrorDisclosure::Logged(redactor),
            AuthArg::Link | AuthArg::None => ErrorDisclosure::Told,
        };
        let defaults = ServerDefaults {
            model: args.model.clone(),
            offline,
            committees,
            restate: args.runner.restate(),
            allows_feeds: args.auth != AuthArg::Tokens,
        };
        let service = Arc::new(LocalRunService::new(
            global.config.clone(),
            Arc::clone(&local),
            Arc::clone(&feed),
            defaults,
            DemoDelay::of(args.pace),
            disclosure,
        ));
        let origin = match &args.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{address}"),
        };
        let guard = match &args.public_url {
            Some(_) => OriginGuard::named(&origin).ok_or_else(not_an_origin)?,
            None => OriginGuard::local(address),
        };
        let access_mode = match args.auth {
            AuthArg::None => AccessMode::Everyone,
            AuthArg::Link | AuthArg::Tokens => AccessMode::Credentials,
        };
        let access = AccessControl::new(local.shared_accounts(), access_mode, &origin);
        let app =
            AppState::new(local.store.clone(), service.clone(), feed, access, closing.clone())
                .with_metrics(metrics)
                .with_workspaces(Arc::clone(&workspaces))
                .with_review_links(notify::review_links(&loaded));
        let workspace_watch = tokio::spawn(workspaces.watch(closing.child_token()));
        let resending =
            tokio::spawn(notify::resend_until(global.config.clone(), closing.child_token()));
        let force_exit = cancel_on_signal(closing.clone())?;
        let link = match args.auth {
            AuthArg::Link => {
                let code =
                    login_code(local.accounts(), TeamName::local(), AccessScope::Admin).await;
                Some(login_link(&origin, &code.map_err(login::refusal)?))
            }
            AuthArg::Tokens | AuthArg::None => None,
        };
        print_url(&origin, link.as_deref());
        // Dropping it when the server stops removes the file with the link.
        let _redirect = match (args.open, &link) {
            (true, Some(link)) => browser::open_privately(link, &loaded.locations.folders.state),
            (true, None) => browser::open(&origin),
            (false, _) => None,
        };
        let served = tokio::select! {
            served = moothall_server::serve(listener, app, guard, limits) => served,
            () = force_exit.cancelled() => Ok(()),
        };
        closing.cancel();
        // If a second signal ends the wait, the runs can still be resumed.
        tokio::select! {
            () = async {
                moothall_server::RunService::shut_down(&*service).await;
                process_resources::end_kept_sandboxes().await;
            } => {}
            () = force_exit.cancelled() => {}
        }
        let _ = tokio::join!(feed_watch, workspace_watch, resending);
        local.close().await;
        served.map_err(|error| {
            CliError::failed("the server stopped unexpectedly").with_source(error)
        })?;
        Ok(CliExit::Fine)
    })
}

/// Reads the committee files. Names must be unique because requests refer to committees by name.
fn committees(files: &[PathBuf]) -> Result<Vec<(Committee, PathBuf)>, CliError> {
    let mut all: Vec<(Committee, PathBuf)> = Vec::new();
    for file in files {
        let file = fs_err::canonicalize(file).map_err(|error| {
            CliError::usage("cannot read the committee file").with_source(error)
        })?;
        let one = committee::find(file.to_str())?;
        if one.name == board().name || all.iter().any(|(other, _)| other.name == one.name) {
            return Err(CliError::usage(format!("two committees have the name `{}`", one.name))
                .with_hint("change the `name` of one of them"));
        }
        all.push((one, file));
    }
    Ok(all)
}

/// Opens the workspaces. Opening a draft store completes changes that a crash interrupted.
fn workspaces(
    global: &GlobalArgs,
    loaded: &LoadedConfig,
    args: &ServeArgs,
) -> Result<WorkspaceRegistry, CliError> {
    if args.workspace.is_empty() {
        return Ok(WorkspaceRegistry::default());
    }
    let person = user_input::user_name(loaded, args.by.as_deref(), "reviews")?;
    let mut all = Vec::new();
    for folder in &args.workspace {
        let options = options_of(global.config.as_deref(), loaded, folder)?;
        let folder = options.workspace.clone();
        let store = DraftStore::open(options).map_err(failed)?;
        warn_about_policy(&store);
        all.push(
            ServedWorkspace::new(&folder, store).map_err(|error| {
                CliError::failed("cannot read the workspace").with_source(error)
            })?,
        );
    }
    Ok(WorkspaceRegistry::new(all, person).with_user(rustix::process::getuid().as_raw()))
}

/// Anyone who can reach the server can try to spend its user's money.
fn refuse_other_machines(args: &ServeArgs) -> Result<(), CliError> {
    let address = args.addr;
    if address.ip().is_loopback() {
        return Ok(());
    }
    match (args.auth, &args.public_url) {
        (AuthArg::Tokens, Some(_)) => Ok(()),
        (AuthArg::Tokens, None) => Err(CliError::usage(format!(
            "{address} is reachable from other machines, but `--public-url` is not set"
        ))
        .with_hint("pass `--public-url https://moothall.example.com`")),
        (AuthArg::Link | AuthArg::None, _) => {
            Err(CliError::usage(format!("{address} is reachable from other machines")).with_hint(
                "listen on 127.0.0.1 and connect with `ssh -L 7777:127.0.0.1:7777`, \
                 or pass `--auth tokens`",
            ))
        }
    }
}

/// Without TLS, anyone who can read the network traffic gets the tokens.
fn refuse_plain_http(args: &ServeArgs) -> Result<(), CliError> {
    let Some(text) = &args.public_url else { return Ok(()) };
    // An invalid URL is rejected later, as an origin.
    let is_plain = Url::parse(text).is_ok_and(|url| url.scheme() == "http" && !is_loopback(&url));
    if !is_plain {
        return Ok(());
    }
    if args.insecure {
        let message = "tokens and cookies are sent unencrypted (`--insecure`)";
        terminal::note(&format!("{YELLOW}warning: {message}{YELLOW:#}\n"));
        return Ok(());
    }
    let https = text.replacen("http://", "https://", 1);
    Err(CliError::usage(format!(
        "the public URL `{text}` has no TLS: tokens and cookies would be sent unencrypted"
    ))
    .with_hint(format!(
        "put a TLS proxy in front and pass `--public-url {https}`, or pass `--insecure`"
    )))
}

fn not_an_origin() -> CliError {
    CliError::usage("invalid `--public-url`: not a web origin")
        .with_hint("use only a scheme and a host, such as https://moothall.example.com")
}

/// Accept queue of the kernel. When it is full, clients retry only after one second.
const BACKLOG: u32 = 4_096;

fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // Like `TcpListener::bind`, so the port of a server that just stopped can be reused.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map_err(|error| {
        let taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let failed = CliError::failed(format!("cannot listen on {address}")).with_source(error);
        match taken {
            true => failed.with_hint(
                "another server may use this port; `--addr 127.0.0.1:0` picks a free one",
            ),
            false => failed,
        }
    })
}

/// Cancels `closing` on the first SIGINT or SIGTERM, and the returned token on the second one,
/// which skips waiting for runs.
fn cancel_on_signal(closing: CancellationToken) -> Result<CancellationToken, CliError> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| CliError::failed("cannot listen for signals").with_source(error))
    };
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let force_exit = CancellationToken::new();
    let force_exit_token = force_exit.clone();
    tokio::spawn(async move {
        for token in [closing, force_exit_token] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if !token.is_cancelled() {
                token.cancel();
                let message = "stopping: active runs are being paused · press Ctrl-C again to exit immediately";
                terminal::note(&format!("\n{DIM}{message}{DIM:#}\n"));
            }
        }
    });
    Ok(force_exit)
}

fn print_url(url: &str, link: Option<&str>) {
    // Standard output gets only the URL, so that scripts can read it.
    let _ = terminal::print(&format!("{url}\n"));
    if !moothall_ui::is_built() {
        let message = "the web UI is not part of this build; run `cargo xtask web` to build it";
        terminal::note(&format!("{YELLOW}note: {message}{YELLOW:#}\n"));
    }
    terminal::note(&format!("{BOLD}Moothall{BOLD:#} {DIM}· press Ctrl-C to stop{DIM:#}\n"));
    if let Some(link) = link {
        terminal::note(&format!("single-use sign-in link: {link}\n"));
    }
}
