//! `moothall cluster`: everything that many workers need, on one machine, for trying it out.

mod installed;
mod part;
mod plan;
mod postgres;
mod restate;

use std::fmt::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::json;

use self::installed::{Fetch, Installed};
use self::part::Part;
use self::plan::{Plan, WorkerSet, write_private};
use self::postgres::{Files, Postgres};
use super::{runtime, worker};
use crate::args::{
    ClusterCommand, ClusterDownArgs, ClusterPlace, ClusterStatusArgs, ClusterUpArgs, Global,
};
use crate::config::{self, Loaded};
use crate::database::DATABASE_URL_VARIABLE;
use crate::error::{CliError, Exit};
use crate::files;
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// How long a worker may take until Restate knows it.
const WORKER_PATIENCE: Duration = Duration::from_secs(60);

/// How long parts may take to end: workers wait for answers under way, which are paid for.
const WORKERS_END: Duration = Duration::from_secs(75);
const SERVERS_END: Duration = Duration::from_secs(60);

/// The file that a shell reads to use the database.
const ENVIRONMENT: &str = "env";

pub(super) fn run(global: &Global, command: &ClusterCommand) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    match command {
        ClusterCommand::Up(args) => up(global, &loaded, args),
        ClusterCommand::Status(args) => status(&loaded, args),
        ClusterCommand::Down(args) => down(&loaded, args),
    }
}

/// The folder of the cluster, in full: its parts are started in other folders.
fn folder(loaded: &Loaded, place: &ClusterPlace) -> Result<PathBuf, CliError> {
    let folder = match &place.dir {
        Some(folder) => folder.clone(),
        None => loaded.places.folders.data.join("cluster"),
    };
    std::path::absolute(folder)
        .map_err(|error| CliError::usage("the folder cannot be used").with_source(error))
}

fn up(global: &Global, loaded: &Loaded, args: &ClusterUpArgs) -> anyhow::Result<Exit> {
    let folder = folder(loaded, &args.place)?;
    let installed = Installed::find(if args.install { Fetch::Missing } else { Fetch::Nothing })?;
    make(&folder)
        .map_err(|error| CliError::failed("the cluster has no folder").with_source(error))?;
    let _alone = alone(&folder)?;
    let mut plan = planned(&folder, args)?;
    let build = worker::build_of_this_program()?;
    plan.take_build(&folder, &build.to_string(), args.workers)?;
    plan.write(&folder)?;
    let database = plan.database.url();
    let environment = format!("export {DATABASE_URL_VARIABLE}='{database}'\n");
    write_private(&folder, ENVIRONMENT, environment.as_bytes())?;
    runtime()?.block_on(async {
        let postgres = Postgres::find(&folder, &installed.postgres, &plan.database)?;
        note_missing(&folder, &plan);
        restate::start(&folder, &installed.restate, &plan).await?;
        postgres.start().await?;
        postgres.until_well().await?;
        restate::until_well(&folder, &plan).await?;
        if let Some(set) = plan.workers.last() {
            start_workers(global, &folder, &plan, set).await?;
        }
        anyhow::Ok(())
    })?;
    // As a shell reads it, whatever is in it.
    let file = folder.join(ENVIRONMENT).display().to_string().replace('\'', r"'\''");
    let words = "the cluster is up; the first line lets a shell keep its runs there, the second one \
                 starts a run:";
    terminal::note(&format!("{words}\n"));
    terminal::print(&format!(
        ". '{file}'\nmoothall consult HLXI --model demo --isolation none --engine restate={}\n",
        plan.ingress()
    ))?;
    Ok(Exit::Fine)
}

/// Nobody else looks into it; the account of the database passes through where it is not ours.
fn make(folder: &Path) -> std::io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs_err::create_dir_all(parent)?;
    }
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(folder)
}

/// Says what is about to be started.
fn note_missing(folder: &Path, plan: &Plan) {
    let mut missing = Vec::new();
    match dead((1..=plan.nodes.len()).map(|number| restate::part(folder, number))) {
        0 => {}
        1 => missing.push("Restate".to_owned()),
        nodes => missing.push(format!("{nodes} nodes of Restate")),
    }
    if !postgres::part(folder).is_alive() {
        missing.push("PostgreSQL".to_owned());
    }
    let workers = plan.workers.last().map(|set| set.parts(folder)).unwrap_or_default();
    match dead(workers) {
        0 => {}
        workers => missing.push(counted(workers, "worker")),
    }
    if let Some(last) = missing.pop() {
        let and = if missing.is_empty() { "" } else { " and " };
        note(&format!("starting {}{and}{last}", missing.join(", ")));
    }
}

fn dead(parts: impl IntoIterator<Item = Part>) -> usize {
    parts.into_iter().filter(|part| !part.is_alive()).count()
}

fn note(words: &str) {
    terminal::note(&format!("{DIM}{words}{DIM:#}\n"));
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The right to change what is in the folder. The kernel frees it.
fn alone(folder: &Path) -> Result<fs_err::File, CliError> {
    let failed = |error: std::io::Error| {
        CliError::failed("the folder of the cluster cannot be used").with_source(error)
    };
    let file = fs_err::File::create(folder.join("lock")).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => {
            let words =
                format!("another process starts or stops the cluster in {}", folder.display());
            Err(CliError::failed(words).with_hint("wait for it: `moothall cluster status` tells"))
        }
        Err(error) => Err(failed(error.into())),
    }
}

/// The plan of the folder, or a new one.
fn planned(folder: &Path, args: &ClusterUpArgs) -> Result<Plan, CliError> {
    let Some(plan) = Plan::read(folder)? else { return Plan::new(args.nodes.unwrap_or(1)) };
    let nodes = plan.nodes.len();
    match args.nodes {
        Some(wanted) if wanted != nodes => {
            let words = format!("the cluster has {} of Restate", counted(nodes, "node"));
            Err(CliError::usage(words).with_hint(
                "that cannot be changed: make another one with `--dir`, or begin anew after \
                 `moothall cluster down --purge`",
            ))
        }
        _ => Ok(plan),
    }
}

async fn start_workers(
    global: &Global,
    folder: &Path,
    plan: &Plan,
    set: &WorkerSet,
) -> Result<(), CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed("this program cannot be found").with_source(error))?;
    let listen = format!("127.0.0.1:{}", set.port);
    let (admin, database) = (plan.admin(), plan.database.url());
    let mut arguments = vec!["worker", "--listen", &listen, "--register", &admin];
    arguments.extend(["--build", &set.build]);
    let config = files::whole(global.config.as_deref())?.map(|path| path.display().to_string());
    if let Some(config) = &config {
        arguments.extend(["--config", config]);
    }
    // It prints its address when Restate knows it.
    let said = format!("{}\n", set.url());
    let mut waited = Vec::new();
    for part in set.parts(folder) {
        if !part.is_alive() {
            let before = times_said(&part, &said);
            part.start(&program, &arguments, |command| {
                command.env(DATABASE_URL_VARIABLE, &database);
            })
            .await?;
            waited.push((part, before));
        }
    }
    for (part, before) in waited {
        part.until_well(WORKER_PATIENCE, async || times_said(&part, &said) > before).await?;
    }
    // Fewer than there were.
    for part in set.further(folder) {
        part.stop(Signal::TERM, WORKERS_END).await?;
    }
    Ok(())
}

fn times_said(part: &Part, words: &str) -> usize {
    let log = fs_err::read(part.log()).unwrap_or_default();
    String::from_utf8_lossy(&log).matches(words).count()
}

/// One part as it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<String>,
    log: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Up,
    /// It lives, and does not do its work.
    Unwell,
    Down,
}

impl Shown {
    fn new(part: &Part, is_well: bool, address: String) -> Self {
        let pid = part.pid().map(|pid| pid.as_raw_nonzero().get());
        let state = match (pid, is_well) {
            (Some(_), true) => State::Up,
            (Some(_), false) => State::Unwell,
            (None, _) => State::Down,
        };
        Self { name: part.name.clone(), state, pid, address, admin: None, log: part.log() }
    }
}

fn status(loaded: &Loaded, args: &ClusterStatusArgs) -> anyhow::Result<Exit> {
    let folder = folder(loaded, &args.place)?;
    let plan = Plan::read(&folder)?.ok_or_else(|| none_in(&folder))?;
    let parts = runtime()?.block_on(look(&folder, &plan))?;
    if args.json {
        let report = json!({
            "folder": folder,
            "engine": format!("restate={}", plan.ingress()),
            "environment": folder.join(ENVIRONMENT),
            "parts": parts,
        });
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        terminal::print(&table(&parts))?;
    }
    match parts.iter().filter(|part| part.state != State::Up).count() {
        0 => Ok(Exit::Fine),
        all if all == parts.len() => Err(CliError::failed("the cluster is down")
            .with_hint("`moothall cluster up` brings it back, with its runs")
            .into()),
        _ => Err(CliError::failed("a part of the cluster is not up")
            .with_hint("`moothall cluster up` brings it back; its log says why it went")
            .into()),
    }
}

fn none_in(folder: &Path) -> CliError {
    CliError::usage(format!("there is no cluster in {}", folder.display()))
        .with_hint("`moothall cluster up` makes one")
}

async fn look(folder: &Path, plan: &Plan) -> Result<Vec<Shown>, CliError> {
    let mut parts = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        let part = restate::part(folder, index + 1);
        let is_well = part.is_alive() && restate::is_well(node).await;
        let shown = Shown::new(&part, is_well, node.ingress_url());
        parts.push(Shown { admin: Some(node.admin_url()), ..shown });
    }
    let part = postgres::part(folder);
    let port = plan.database.port;
    let is_well = answers(port).await;
    parts.push(Shown::new(&part, is_well, format!("127.0.0.1:{port}/moothall")));
    for set in &plan.workers {
        let is_well = answers(set.port).await;
        parts.extend(set.parts(folder).iter().map(|part| Shown::new(part, is_well, set.url())));
    }
    Ok(parts)
}

/// Whether somebody takes connections there.
async fn answers(port: u16) -> bool {
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

fn table(parts: &[Shown]) -> String {
    let width = parts.iter().map(|part| part.name.len()).max().unwrap_or_default();
    let mut text =
        format!("{BOLD}{:width$}  {:6}  {:>7}  address{BOLD:#}\n", "part", "state", "process");
    for Shown { name, state, pid, address, admin, log } in parts {
        let (style, state) = match state {
            State::Up => (GREEN, "up"),
            State::Unwell => (YELLOW, "unwell"),
            State::Down => (YELLOW, "down"),
        };
        let pid = pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let _ = write!(text, "{name:width$}  {style}{state:6}{style:#}  {pid:>7}  {address}");
        if let Some(admin) = admin {
            let _ = write!(text, ", admin {admin}");
        }
        if style == YELLOW {
            let _ = write!(text, ", log {}", log.display());
        }
        text.push('\n');
    }
    text
}

fn down(loaded: &Loaded, args: &ClusterDownArgs) -> anyhow::Result<Exit> {
    let folder = folder(loaded, &args.place)?;
    let plan = Plan::read(&folder)?.ok_or_else(|| none_in(&folder))?;
    let _alone = alone(&folder)?;
    let stopped = runtime()?.block_on(stop(&folder, &plan))?;
    if args.purge {
        purge(&folder)?;
    }
    let gone = if args.purge { ", and everything of the cluster is deleted" } else { "" };
    let words = match stopped {
        0 => "nothing was up".to_owned(),
        stopped => format!("stopped {}", counted(stopped, "part")),
    };
    terminal::print(&format!("{words}{gone}\n"))?;
    Ok(Exit::Fine)
}

/// Whoever writes ends before whom it writes to.
async fn stop(folder: &Path, plan: &Plan) -> Result<usize, CliError> {
    let of_set = |set: &WorkerSet| [set.parts(folder), set.further(folder)].concat();
    let workers: Vec<Part> = plan.workers.iter().flat_map(of_set).collect();
    if workers.iter().any(Part::is_alive) {
        note("ending workers: steps under way are waited for");
    }
    let mut stopped = all_stopped(workers, Signal::TERM, WORKERS_END).await?;
    let nodes = (1..=plan.nodes.len()).map(|number| restate::part(folder, number)).collect();
    stopped += all_stopped(nodes, Signal::TERM, SERVERS_END).await?;
    // SIGINT: without waiting for whoever is connected.
    stopped += all_stopped(vec![postgres::part(folder)], Signal::INT, SERVERS_END).await?;
    Ok(stopped)
}

async fn all_stopped(parts: Vec<Part>, ask: Signal, patience: Duration) -> Result<usize, CliError> {
    let mut ending = tokio::task::JoinSet::new();
    for part in parts {
        ending.spawn(async move { part.stop(ask, patience).await });
    }
    let mut stopped = 0;
    for ended in ending.join_all().await {
        stopped += usize::from(ended?);
    }
    Ok(stopped)
}

/// Deletes what is ours and nothing else: a person may have named any folder.
fn purge(folder: &Path) -> Result<(), CliError> {
    let failed = |error: std::io::Error| {
        CliError::failed("the cluster cannot be deleted").with_source(error)
    };
    let database = Files::find(folder)?.folder;
    for path in [database, folder.join("restate")] {
        match fs_err::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
    for found in fs_err::read_dir(folder).map_err(failed)? {
        let path = found.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of_a_part = name.ends_with(".pid") || name.ends_with(".log");
        if of_a_part || [plan::FILE_NAME, ENVIRONMENT, "lock"].contains(&&*name) {
            fs_err::remove_file(path).map_err(failed)?;
        }
    }
    // Whatever else is there is not ours.
    let _ = fs_err::remove_dir(folder);
    Ok(())
}
