//! Starts an agent in its private view and watches over it until it ends.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use fs_err as fs;
use moothall_models::Catalog;
use moothall_sandbox::guard::{
    AgentOutput, EgressLog, EgressRules, GuardFault, GuardLimits, GuardPart, GuardPlan,
    GuardedProcess, HostRule, PrivateCopy, StartedAgent,
};
use moothall_sandbox::jail::JailCommand;
use moothall_workspace::{AgentStart, BaseIndex};
use tokio::signal::unix::{SignalKind, signal};

use super::guard_error;
use super::record::{GuardEnd, GuardRun, write_base};
use super::review_notes::{REVIEW_FILE, REVIEW_VARIABLE, has_review_notes};
use super::view_paths::find_agent;
use crate::args::GuardFlags;
use crate::commands::runtime;
use crate::error::CliError;
use crate::terminal::{self, DIM, YELLOW};
use crate::work_progress::{WorkProgress, WorkSize};

/// An agent starts after this time even if the workspace is not indexed yet.
const INDEX_WAIT: Duration = Duration::from_millis(100);
/// The proxy's port in the agent's network.
const PROXY_PORT: u16 = 3128;
/// Variables that every agent gets.
const PASSED: [&str; 8] =
    ["PATH", "TERM", "COLORTERM", "LANG", "TZ", "USER", "LOGNAME", "NO_COLOR"];
/// Time limit of one check.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The network of a run.
struct AgentNetwork {
    rules: EgressRules,
    ports: Vec<u16>,
    /// `None` if the agent has no proxy.
    proxy: Option<u16>,
}

/// Runs an agent until it ends, reaches its time limit or is interrupted. Afterwards none of its
/// processes exists.
pub(crate) fn run_agent(
    run: &mut GuardRun,
    agent: &[OsString],
    flags: &GuardFlags,
    json: bool,
) -> Result<GuardEnd, CliError> {
    let began = Instant::now();
    let workspace = run.record.workspace.clone();
    let home_at = home_directory();
    if home_at.starts_with(&workspace) {
        return Err(CliError::usage("the workspace contains your home directory")
            .with_hint("choose a smaller workspace: `--workspace DIR`"));
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let (name, args) =
        agent.split_first().ok_or_else(|| CliError::usage("missing agent command"))?;
    let found = find_agent(name, &search, &workspace, &home_at)?;
    let mut read = found.read;
    for path in &run.record.options.read {
        let shown = path.display();
        let real = fs::canonicalize(path).map_err(|error| {
            CliError::usage(format!("cannot read `{shown}`")).with_source(error)
        })?;
        let private = [home_at.as_path(), workspace.as_path(), Path::new("/tmp")];
        if private.iter().any(|private| private.starts_with(&real)) {
            return Err(CliError::usage(format!("`{shown}` contains a directory that is private"))
                .with_hint("pass the directories in it that the agent needs"));
        }
        read.push(real);
    }
    let network = network(run)?;
    let environment = environment(run, flags, &home_at, network.proxy)?;
    copy_home(run, flags)?;
    let plan = GuardPlan {
        workspace,
        copy: run.copy(),
        home: run.folder("home"),
        home_at,
        tmp: run.folder("tmp"),
        root: run.folder("root"),
        read,
        ports: network.ports.clone(),
        limits: run.record.options.limits,
    };
    let mut command_line = vec![found.program.into_os_string()];
    command_line.extend(args.iter().cloned());
    if run.record.options.full_copy {
        make_full_copy(run, json)?;
    }
    let index = IndexThread::start(run)?;
    let output = if json { AgentOutput::Stderr } else { AgentOutput::Inherit };
    let session = GuardSession { plan, environment, command_line, output };
    let timeout = Duration::from_secs(run.record.options.timeout_seconds);
    let terminal_settings = rustix::termios::tcgetattr(io::stdin()).ok();
    let log = EgressLog::default();
    let ended = runtime()?.block_on(async {
        index.start.now();
        let started = match session.start().await {
            Err(fault) if fault.part == GuardPart::Overlay => {
                terminal::note(&format!(
                    "{YELLOW}overlays are not available here: making a full copy{YELLOW:#}\n"
                ));
                run.record.options.full_copy = true;
                make_full_copy(run, json)?;
                let plan = GuardPlan { copy: run.copy(), ..session.plan.clone() };
                GuardSession { plan, ..session }.start().await
            }
            started => started,
        };
        let started = started.map_err(|fault| guard_error(&fault))?;
        if !json {
            let seconds = began.elapsed().as_secs_f64();
            let id = &run.record.id;
            terminal::note(&format!(
                "{DIM}guard {id}: private copy ready after {seconds:.2} s{DIM:#}\n"
            ));
        }
        watch(started, &network, &log, timeout).await
    });
    if let Some(settings) = terminal_settings {
        // A killed agent leaves the terminal in its own mode.
        let when = rustix::termios::OptionalActions::Now;
        let _ = rustix::termios::tcsetattr(io::stdin(), when, &settings);
    }
    index.finish()?;
    let end = ended?;
    run.record.hosts = log.records();
    run.record.end = Some(end);
    run.record.ended_at_ms = Some(moothall_store::now_ms());
    Ok(end)
}

/// Everything to start a process in a view.
pub(crate) struct GuardSession {
    pub(crate) plan: GuardPlan,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) command_line: Vec<OsString>,
    pub(crate) output: AgentOutput,
}

impl GuardSession {
    pub(crate) async fn start(&self) -> Result<StartedAgent, GuardFault> {
        let program = std::env::current_exe().map_err(|error| GuardFault {
            part: GuardPart::Control,
            problem: format!("cannot find this program: {error}"),
        })?;
        let launcher = JailCommand { program, args: Vec::new() };
        let Self { plan, environment, command_line, output } = self;
        GuardedProcess::start(&launcher, plan, environment, command_line, *output).await
    }
}

/// Serves the agent's connections until it ends.
async fn watch(
    started: StartedAgent,
    network: &AgentNetwork,
    log: &EgressLog,
    timeout: Duration,
) -> Result<GuardEnd, CliError> {
    let StartedAgent { mut process, listeners } = started;
    let mut connections = tokio::task::JoinSet::new();
    for (listener, port) in listeners.into_iter().zip(network.ports.clone()) {
        let (log, rules) = (log.clone(), network.rules.clone());
        let is_proxy = network.proxy == Some(port);
        connections.spawn(async move {
            match is_proxy {
                true => log.serve_proxy(listener, rules).await,
                false => log.forward_port(listener, port).await,
            }
        });
    }
    let no_signal =
        |error: io::Error| CliError::failed("cannot wait for signals").with_source(error);
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signal)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(no_signal)?;
    let end = tokio::select! {
        exit = process.wait() => GuardEnd::from(exit.map_err(|fault| guard_error(&fault))?),
        _ = tokio::signal::ctrl_c() => GuardEnd::Interrupted,
        _ = terminate.recv() => GuardEnd::Interrupted,
        _ = hangup.recv() => GuardEnd::Interrupted,
        () = tokio::time::sleep(timeout) => GuardEnd::Deadline,
    };
    process.kill().await;
    if process.was_out_of_memory() {
        terminal::note(&format!(
            "{YELLOW}a process of the agent was killed at the memory limit{YELLOW:#}\n"
        ));
    }
    Ok(end)
}

/// Reads the workspace's index while the agent starts.
struct IndexThread {
    start: Arc<AgentStart>,
    thread: std::thread::JoinHandle<io::Result<()>>,
}

impl IndexThread {
    fn start(run: &GuardRun) -> Result<Self, CliError> {
        let start = Arc::new(AgentStart::default());
        let (send, done) = mpsc::channel::<()>();
        let (workspace, folder) = (run.record.workspace.clone(), run.folder(""));
        let started = Arc::clone(&start);
        // A resumed run has an index.
        let is_needed = !run.folder("base.json").exists();
        let work = move || -> io::Result<()> {
            if is_needed {
                let index = BaseIndex::read(&workspace, &started)?;
                let _ = send.send(());
                write_base(&folder, &index)?;
            }
            Ok(())
        };
        let thread = std::thread::Builder::new()
            .name("guard-index".to_owned())
            .spawn(work)
            .map_err(|error| CliError::failed("cannot start a thread").with_source(error))?;
        let _ = done.recv_timeout(INDEX_WAIT);
        Ok(Self { start, thread })
    }

    fn finish(self) -> Result<(), CliError> {
        let indexed = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("panicked")));
        indexed.map_err(|error| CliError::failed("cannot index the workspace").with_source(error))
    }
}

pub(crate) fn home_directory() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.unwrap_or_else(|| PathBuf::from("/agent"));
    let home = fs::canonicalize(&home).unwrap_or(home);
    match home.parent() {
        Some(_) => home,
        None => PathBuf::from("/agent"),
    }
}

/// Hosts of the built-in model providers and of the flags. The configuration of a workspace is not
/// trusted to add hosts.
fn network(run: &GuardRun) -> Result<AgentNetwork, CliError> {
    let options = &run.record.options;
    if options.offline {
        return Ok(AgentNetwork { rules: EgressRules::default(), ports: Vec::new(), proxy: None });
    }
    let catalog = Catalog::built_in()
        .map_err(|error| CliError::failed("cannot read the model catalog").with_source(error))?;
    let mut rules: Vec<HostRule> = catalog
        .providers()
        .filter_map(|provider| reqwest::Url::parse(&provider.base_url).ok())
        .filter(|url| url.scheme() == "https")
        .filter_map(|url| HostRule::parse(url.host_str()?).ok())
        .collect();
    for host in &options.allow_host {
        let rule =
            HostRule::parse(host).map_err(|fault| CliError::usage(format!("`{host}`: {fault}")))?;
        rules.push(rule);
    }
    let proxy = (PROXY_PORT..).find(|port| !options.allow_loopback.contains(port));
    let ports = proxy.into_iter().chain(options.allow_loopback.iter().copied()).collect();
    Ok(AgentNetwork { rules: EgressRules::new(rules), ports, proxy })
}

/// The agent's whole environment.
fn environment(
    run: &GuardRun,
    flags: &GuardFlags,
    home_at: &Path,
    proxy: Option<u16>,
) -> Result<Vec<(OsString, OsString)>, CliError> {
    let mut environment = base_environment(home_at);
    let mut set = |name: &str, value: &str| environment.push((name.into(), value.into()));
    set("MOOTHALL_GUARD", &run.record.id);
    if has_review_notes(run) {
        set(REVIEW_VARIABLE, REVIEW_FILE);
    }
    if let Some(port) = proxy {
        let proxy = format!("http://127.0.0.1:{port}");
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
            set(name, &proxy);
        }
        set("NO_PROXY", "localhost,127.0.0.1,::1");
        set("no_proxy", "localhost,127.0.0.1,::1");
        // Node uses the proxy for `fetch` only if it is asked to.
        set("NODE_USE_ENV_PROXY", "1");
    }
    let given: Vec<(&str, Option<&str>)> = flags
        .env
        .iter()
        .map(|one| match one.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (one.as_str(), None),
        })
        .collect();
    for name in &run.record.options.environment {
        let value = match given.iter().find(|(one, _)| one == name) {
            Some((_, Some(value))) => OsString::from(value),
            _ => std::env::var_os(name).ok_or_else(|| {
                CliError::usage(format!("the environment variable `{name}` is not set"))
                    .with_hint(format!("set it, or pass `--env {name}=VALUE`"))
            })?,
        };
        if name.is_empty() || name.contains('\0') {
            return Err(CliError::usage("`--env` needs a name"));
        }
        environment.retain(|(known, _)| known != OsStr::new(name));
        environment.push((name.into(), value));
    }
    Ok(environment)
}

/// Variables of every process in a view.
pub(crate) fn base_environment(home_at: &Path) -> Vec<(OsString, OsString)> {
    let is_passed = |name: &OsStr| {
        let name = name.to_string_lossy();
        PASSED.contains(&name.as_ref()) || name.starts_with("LC_")
    };
    let mut environment: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| is_passed(name)).collect();
    let fixed = [
        ("HOME", home_at.as_os_str()),
        ("TMPDIR", OsStr::new("/tmp/agent")),
        ("SHELL", OsStr::new("/bin/sh")),
        // Inodes differ in an overlay; without these settings, git reads every file again.
        ("GIT_CONFIG_COUNT", OsStr::new("2")),
        ("GIT_CONFIG_KEY_0", OsStr::new("core.checkStat")),
        ("GIT_CONFIG_VALUE_0", OsStr::new("minimal")),
        ("GIT_CONFIG_KEY_1", OsStr::new("core.trustctime")),
        ("GIT_CONFIG_VALUE_1", OsStr::new("false")),
    ];
    environment.extend(fixed.map(|(name, value)| (name.into(), value.to_owned())));
    environment
}

/// Copies the named parts of the home directory, and makes the temporary directory.
fn copy_home(run: &GuardRun, flags: &GuardFlags) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::failed("cannot prepare the private home directory").with_source(error)
    };
    fs::create_dir_all(run.folder("tmp").join("agent")).map_err(failed)?;
    let home = home_directory();
    for path in &flags.copy_home {
        let shown = path.display();
        let source = fs::canonicalize(home.join(path)).map_err(|error| {
            CliError::usage(format!("cannot read `{shown}` in your home directory"))
                .with_source(error)
        })?;
        let inside =
            source.strip_prefix(&home).ok().filter(|inside| inside.components().count() > 0);
        let inside = inside.ok_or_else(|| {
            CliError::usage(format!("`{shown}` is not in your home directory"))
                .with_hint("use `--read` for other directories")
        })?;
        let target = run.folder("home").join(inside);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        copy_tree(&source, &target, &mut |_| {}).map_err(failed)?;
    }
    Ok(())
}

/// Copies the workspace, unless an earlier agent already worked on the copy.
fn make_full_copy(run: &GuardRun, json: bool) -> Result<(), CliError> {
    let target = run.folder("upper");
    let failed =
        |error: io::Error| CliError::failed("cannot copy the workspace").with_source(error);
    if fs::read_dir(&target).map_err(failed)?.next().is_some() {
        return Ok(());
    }
    let progress = WorkProgress::start("copying the workspace", json);
    let mut done = 0;
    let mut count = |bytes: u64| {
        done += bytes;
        progress.step("copying the workspace", WorkSize::Bytes { done, total: 0 });
    };
    copy_tree(&run.record.workspace, &target, &mut count).map_err(failed)
}

/// Copies files, directories and links. Skips sockets, pipes and devices. Never makes hard links,
/// through which an agent could change the original.
fn copy_tree(source: &Path, target: &Path, count: &mut dyn FnMut(u64)) -> io::Result<()> {
    let found = fs::symlink_metadata(source)?;
    if found.is_symlink() {
        return fs::os::unix::fs::symlink(fs::read_link(source)?, target);
    }
    if found.is_file() {
        count(fs::copy(source, target)?);
        return Ok(());
    }
    if !found.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        copy_tree(&entry.path(), &target.join(entry.file_name()), count)?;
    }
    fs::set_permissions(target, found.permissions())
}

/// Tests whether this machine can isolate an agent, in a directory on the same file system as
/// copies.
pub(crate) async fn probe(state: &Path) -> Result<&'static str, CliError> {
    let failed = |error: io::Error| {
        CliError::failed("cannot create a directory for the test").with_source(error)
    };
    fs::create_dir_all(state).map_err(failed)?;
    let folder =
        tempfile::Builder::new().prefix("guard-probe-").tempdir_in(state).map_err(failed)?;
    let at = |name: &str| folder.path().join(name);
    for name in ["workspace", "upper", "work", "home", "tmp", "root"] {
        fs::create_dir(at(name)).map_err(failed)?;
    }
    let overlay = PrivateCopy::Overlay { upper: at("upper"), work: at("work") };
    let mut result = try_copy(&at, overlay).await;
    if matches!(&result, Err(fault) if fault.part == GuardPart::Overlay) {
        result = try_copy(&at, PrivateCopy::Folder(at("upper"))).await;
    }
    // The kernel's own directory in it is not readable.
    let _ = super::record::remove_tree(folder.path());
    match result {
        Ok(PrivateCopy::Overlay { .. }) => Ok("overlays"),
        Ok(PrivateCopy::Folder(_)) => Ok("full copies (no overlays)"),
        Err(fault) => Err(guard_error(&fault)),
    }
}

async fn try_copy(
    at: &(dyn Fn(&str) -> PathBuf + Sync),
    copy: PrivateCopy,
) -> Result<PrivateCopy, GuardFault> {
    let plan = GuardPlan {
        workspace: at("workspace"),
        copy: copy.clone(),
        home: at("home"),
        home_at: PathBuf::from("/agent"),
        tmp: at("tmp"),
        root: at("root"),
        read: Vec::new(),
        ports: Vec::new(),
        limits: GuardLimits::default(),
    };
    let script =
        "echo x > probe && test ! -e \"$OUTSIDE\" && ! (echo x > /usr/moothall-probe) 2>/dev/null";
    let session = GuardSession {
        plan,
        environment: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("OUTSIDE".into(), at("home").into()),
        ],
        command_line: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
        output: AgentOutput::Stderr,
    };
    let mut started = session.start().await?;
    match started.process.wait().await? {
        moothall_sandbox::guard::AgentExit::Exited(0) if at("upper").join("probe").exists() => {
            Ok(copy)
        }
        _ => Err(GuardFault {
            part: GuardPart::View,
            problem: "the test of the isolation failed".to_owned(),
        }),
    }
}
