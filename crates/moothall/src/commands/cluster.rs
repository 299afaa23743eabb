//! `moothall cluster`: runs Restate, PostgreSQL and workers on one machine, for evaluation.

mod managed_process;
mod plan;
mod postgres;
mod programs;
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

use self::managed_process::ClusterProcess;
use self::plan::{ClusterPlan, WorkerSet, write_private};
use self::postgres::{PostgresFiles, PostgresServer};
use self::programs::{ClusterPrograms, InstallMode};
use super::{runtime, worker};
use crate::args::{
    ClusterCommand, ClusterDirFlags, ClusterDownArgs, ClusterStatusArgs, ClusterUpArgs, GlobalArgs,
};
use crate::config::{self, LoadedConfig};
use crate::database::DATABASE_URL_VARIABLE;
use crate::display;
use crate::error::{CliError, CliExit};
use crate::files;
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// How long a worker may take to register with Restate.
const WORKER_START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long processes may take to stop. Workers wait for calls in progress, which are paid for.
const WORKER_STOP_TIMEOUT: Duration = Duration::from_secs(75);
const SERVER_STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Shell file that exports the URL of the database.
const ENV_FILE: &str = "env";

pub(crate) fn run(global: &GlobalArgs, command: &ClusterCommand) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    match command {
        ClusterCommand::Up(args) => up(global, &loaded, args),
        ClusterCommand::Status(args) => status(&loaded, args),
        ClusterCommand::Down(args) => down(&loaded, args),
    }
}

/// Absolute path of the cluster directory, because its processes start in other directories.
fn folder(loaded: &LoadedConfig, place: &ClusterDirFlags) -> Result<PathBuf, CliError> {
    let folder = match &place.dir {
        Some(folder) => folder.clone(),
        None => loaded.locations.folders.data.join("cluster"),
    };
    std::path::absolute(folder)
        .map_err(|error| CliError::usage("invalid cluster directory").with_source(error))
}

fn up(global: &GlobalArgs, loaded: &LoadedConfig, args: &ClusterUpArgs) -> anyhow::Result<CliExit> {
    let folder = folder(loaded, &args.place)?;
    let installed = ClusterPrograms::find(if args.install {
        InstallMode::Missing
    } else {
        InstallMode::Nothing
    })?;
    create_cluster_dir(&folder).map_err(|error| {
        CliError::failed("cannot create the cluster directory").with_source(error)
    })?;
    let _lock = lock_cluster(&folder)?;
    let mut plan = load_or_create_plan(&folder, args)?;
    let build = worker::build_of_this_program()?;
    plan.activate_build(&folder, &build.to_string(), args.workers)?;
    plan.write(&folder)?;
    let database = plan.database.url();
    let environment = format!("export {DATABASE_URL_VARIABLE}='{database}'\n");
    write_private(&folder, ENV_FILE, environment.as_bytes())?;
    runtime()?.block_on(async {
        let postgres = PostgresServer::find(&folder, &installed.postgres, &plan.database)?;
        announce_starts(&folder, &plan);
        restate::start(&folder, &installed.restate, &plan).await?;
        postgres.start().await?;
        postgres.wait_until_healthy().await?;
        restate::wait_until_healthy(&folder, &plan).await?;
        if let Some(set) = plan.workers.last() {
            start_workers(global, &folder, &plan, set).await?;
        }
        anyhow::Ok(())
    })?;
    // Escapes single quotes for the shell.
    let file = folder.join(ENV_FILE).display().to_string().replace('\'', r"'\''");
    let message = "the cluster is up; the first line makes a shell use its database, the second line \
                 starts a run:";
    terminal::note(&format!("{message}\n"));
    terminal::print(&format!(
        ". '{file}'\nmoothall consult HLXI --model demo --isolation none --runner restate={}\n",
        plan.ingress()
    ))?;
    Ok(CliExit::Fine)
}

/// Not readable by other users. As root, the PostgreSQL account needs to enter the directory.
fn create_cluster_dir(folder: &Path) -> std::io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs_err::create_dir_all(parent)?;
    }
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(folder)
}

/// Prints what is about to be started.
fn announce_starts(folder: &Path, plan: &ClusterPlan) {
    let mut missing = Vec::new();
    match count_stopped((1..=plan.nodes.len()).map(|number| restate::node_process(folder, number)))
    {
        0 => {}
        1 => missing.push("Restate".to_owned()),
        nodes => missing.push(format!("{nodes} Restate nodes")),
    }
    if !postgres::part(folder).is_alive() {
        missing.push("PostgreSQL".to_owned());
    }
    let workers = plan.workers.last().map(|set| set.processes(folder)).unwrap_or_default();
    match count_stopped(workers) {
        0 => {}
        workers => missing.push(display::counted(workers, "worker")),
    }
    if let Some(last) = missing.pop() {
        let and = if missing.is_empty() { "" } else { " and " };
        note(&format!("starting {}{and}{last}", missing.join(", ")));
    }
}

fn count_stopped(parts: impl IntoIterator<Item = ClusterProcess>) -> usize {
    parts.into_iter().filter(|part| !part.is_alive()).count()
}

fn note(message: &str) {
    terminal::note(&format!("{DIM}{message}{DIM:#}\n"));
}

/// Locks the cluster directory. The kernel releases the lock when the process ends.
fn lock_cluster(folder: &Path) -> Result<fs_err::File, CliError> {
    let failed = |error: std::io::Error| {
        CliError::failed("cannot lock the cluster directory").with_source(error)
    };
    let file = fs_err::File::create(folder.join("lock")).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => {
            let message = format!(
                "another process is starting or stopping the cluster in {}",
                folder.display()
            );
            Err(CliError::failed(message)
                .with_hint("wait for it to finish; check with `moothall cluster status`"))
        }
        Err(error) => Err(failed(error.into())),
    }
}

/// Reads the plan in the directory, or creates one.
fn load_or_create_plan(folder: &Path, args: &ClusterUpArgs) -> Result<ClusterPlan, CliError> {
    let Some(plan) = ClusterPlan::read(folder)? else {
        return ClusterPlan::new(args.nodes.unwrap_or(1));
    };
    let nodes = plan.nodes.len();
    match args.nodes {
        Some(wanted) if wanted != nodes => {
            let message = format!(
                "cannot change the number of Restate nodes: the cluster has {}",
                display::counted(nodes, "node")
            );
            Err(CliError::usage(message).with_hint(
                "create another cluster with `--dir`, or start over after \
                 `moothall cluster down --purge`",
            ))
        }
        _ => Ok(plan),
    }
}

async fn start_workers(
    global: &GlobalArgs,
    folder: &Path,
    plan: &ClusterPlan,
    set: &WorkerSet,
) -> Result<(), CliError> {
    let program = std::env::current_exe().map_err(|error| {
        CliError::failed("cannot find the moothall executable").with_source(error)
    })?;
    let listen = format!("127.0.0.1:{}", set.port);
    let (admin, database) = (plan.admin(), plan.database.url());
    let mut arguments = vec!["worker", "--listen", &listen, "--register", &admin];
    arguments.extend(["--build", &set.build]);
    let config =
        files::absolute_path(global.config.as_deref())?.map(|path| path.display().to_string());
    if let Some(config) = &config {
        arguments.extend(["--config", config]);
    }
    // A worker prints its address once it is registered with Restate.
    let ready_line = format!("{}\n", set.url());
    let mut starting = Vec::new();
    for part in set.processes(folder) {
        if !part.is_alive() {
            let before = count_in_log(&part, &ready_line);
            part.start(&program, &arguments, |command| {
                command.env(DATABASE_URL_VARIABLE, &database);
            })
            .await?;
            starting.push((part, before));
        }
    }
    for (part, before) in starting {
        part.wait_until_healthy(WORKER_START_TIMEOUT, async || {
            count_in_log(&part, &ready_line) > before
        })
        .await?;
    }
    // Stop workers beyond the new count.
    for part in set.excess_processes(folder) {
        part.stop(Signal::TERM, WORKER_STOP_TIMEOUT).await?;
    }
    Ok(())
}

fn count_in_log(part: &ClusterProcess, text: &str) -> usize {
    let log = fs_err::read(part.log()).unwrap_or_default();
    String::from_utf8_lossy(&log).matches(text).count()
}

/// One row of the status table.
#[derive(Debug, Serialize)]
struct ClusterProcessStatus {
    name: String,
    state: ClusterProcessState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<String>,
    log: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ClusterProcessState {
    Up,
    /// The process is running but not responding.
    Unwell,
    Down,
}

impl ClusterProcessStatus {
    fn new(part: &ClusterProcess, is_healthy: bool, address: String) -> Self {
        let pid = part.pid().map(|pid| pid.as_raw_nonzero().get());
        let state = match (pid, is_healthy) {
            (Some(_), true) => ClusterProcessState::Up,
            (Some(_), false) => ClusterProcessState::Unwell,
            (None, _) => ClusterProcessState::Down,
        };
        Self { name: part.name.clone(), state, pid, address, admin: None, log: part.log() }
    }
}

fn status(loaded: &LoadedConfig, args: &ClusterStatusArgs) -> anyhow::Result<CliExit> {
    let folder = folder(loaded, &args.place)?;
    let plan = ClusterPlan::read(&folder)?.ok_or_else(|| no_cluster(&folder))?;
    let parts = runtime()?.block_on(collect_status(&folder, &plan))?;
    if args.json {
        let report = json!({
            "folder": folder,
            "engine": format!("restate={}", plan.ingress()),
            "environment": folder.join(ENV_FILE),
            "parts": parts,
        });
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        terminal::print(&table(&parts))?;
    }
    match parts.iter().filter(|part| part.state != ClusterProcessState::Up).count() {
        0 => Ok(CliExit::Fine),
        all if all == parts.len() => Err(CliError::failed("the cluster is down")
            .with_hint("start it with `moothall cluster up`; its runs are kept")
            .into()),
        _ => Err(CliError::failed("part of the cluster is down or not responding")
            .with_hint("restart it with `moothall cluster up`; its log shows the cause")
            .into()),
    }
}

fn no_cluster(folder: &Path) -> CliError {
    CliError::usage(format!("no cluster in {}", folder.display()))
        .with_hint("create one with `moothall cluster up`")
}

async fn collect_status(
    folder: &Path,
    plan: &ClusterPlan,
) -> Result<Vec<ClusterProcessStatus>, CliError> {
    let mut parts = Vec::new();
    for (index, node) in plan.nodes.iter().enumerate() {
        let part = restate::node_process(folder, index + 1);
        let is_healthy = part.is_alive() && restate::is_healthy(node).await;
        let shown = ClusterProcessStatus::new(&part, is_healthy, node.ingress_url());
        parts.push(ClusterProcessStatus { admin: Some(node.admin_url()), ..shown });
    }
    let part = postgres::part(folder);
    let port = plan.database.port;
    let is_healthy = accepts_connections(port).await;
    parts.push(ClusterProcessStatus::new(&part, is_healthy, format!("127.0.0.1:{port}/moothall")));
    for set in &plan.workers {
        let is_healthy = accepts_connections(set.port).await;
        parts.extend(
            set.processes(folder)
                .iter()
                .map(|part| ClusterProcessStatus::new(part, is_healthy, set.url())),
        );
    }
    Ok(parts)
}

/// Whether the port accepts connections.
async fn accepts_connections(port: u16) -> bool {
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

fn table(parts: &[ClusterProcessStatus]) -> String {
    let width = parts.iter().map(|part| part.name.len()).max().unwrap_or_default();
    let mut text =
        format!("{BOLD}{:width$}  {:6}  {:>7}  address{BOLD:#}\n", "part", "state", "process");
    for ClusterProcessStatus { name, state, pid, address, admin, log } in parts {
        let (style, state) = match state {
            ClusterProcessState::Up => (GREEN, "up"),
            ClusterProcessState::Unwell => (YELLOW, "unwell"),
            ClusterProcessState::Down => (YELLOW, "down"),
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

fn down(loaded: &LoadedConfig, args: &ClusterDownArgs) -> anyhow::Result<CliExit> {
    let folder = folder(loaded, &args.place)?;
    let plan = ClusterPlan::read(&folder)?.ok_or_else(|| no_cluster(&folder))?;
    let _lock = lock_cluster(&folder)?;
    let stopped = runtime()?.block_on(stop(&folder, &plan))?;
    if args.purge {
        purge(&folder)?;
    }
    let gone = if args.purge { ", deleted all data of the cluster" } else { "" };
    let message = match stopped {
        0 => "nothing was running".to_owned(),
        stopped => format!("stopped {}", display::counted(stopped, "part")),
    };
    terminal::print(&format!("{message}{gone}\n"))?;
    Ok(CliExit::Fine)
}

/// Stops clients before the servers that they write to.
async fn stop(folder: &Path, plan: &ClusterPlan) -> Result<usize, CliError> {
    let of_set = |set: &WorkerSet| [set.processes(folder), set.excess_processes(folder)].concat();
    let workers: Vec<ClusterProcess> = plan.workers.iter().flat_map(of_set).collect();
    if workers.iter().any(ClusterProcess::is_alive) {
        note("stopping workers: steps in progress will finish first");
    }
    let mut stopped = stop_all(workers, Signal::TERM, WORKER_STOP_TIMEOUT).await?;
    let nodes =
        (1..=plan.nodes.len()).map(|number| restate::node_process(folder, number)).collect();
    stopped += stop_all(nodes, Signal::TERM, SERVER_STOP_TIMEOUT).await?;
    // SIGINT stops PostgreSQL without waiting for its clients.
    stopped += stop_all(vec![postgres::part(folder)], Signal::INT, SERVER_STOP_TIMEOUT).await?;
    Ok(stopped)
}

async fn stop_all(
    parts: Vec<ClusterProcess>,
    signal: Signal,
    timeout: Duration,
) -> Result<usize, CliError> {
    let mut tasks = tokio::task::JoinSet::new();
    for part in parts {
        tasks.spawn(async move { part.stop(signal, timeout).await });
    }
    let mut stopped = 0;
    for ended in tasks.join_all().await {
        stopped += usize::from(ended?);
    }
    Ok(stopped)
}

/// Deletes only files of the cluster, because `--dir` can be any directory.
fn purge(folder: &Path) -> Result<(), CliError> {
    let failed =
        |error: std::io::Error| CliError::failed("cannot delete the cluster").with_source(error);
    let database = PostgresFiles::find(folder)?.folder;
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
        if of_a_part || [plan::FILE_NAME, ENV_FILE, "lock"].contains(&&*name) {
            fs_err::remove_file(path).map_err(failed)?;
        }
    }
    // Fails if other files are left, which are not deleted.
    let _ = fs_err::remove_dir(folder);
    Ok(())
}
