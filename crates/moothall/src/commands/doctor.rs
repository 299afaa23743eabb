//! `moothall doctor`: what the sandboxes of this machine are worth, found out by running them.

mod clients;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use moothall_core::sandbox::IsolationClass;
use moothall_core::text::shown_line;
use moothall_sandbox::{
    EngineName, Host, ProbeReport, ProbedEngine, SandboxError, choose, version_warning,
};
use moothall_server::wire::{Doctor, EngineRow, RunsKept, WayAroundRow};
use serde_json::json;

use self::clients::{WayAround, ways_around};
use super::{Interruptible, block_on};
use crate::args::{DoctorArgs, Global};
use crate::config::{self, Loaded};
use crate::database::Database;
use crate::error::{CliError, Exit};
use crate::isolation;
use crate::local::{self, FILE_NAME};
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// The image that probes run in.
const IMAGE: &str = "python";

/// The parts of a machine that [`DoctorProblem`]s are about.
const SANDBOXES: &str = "sandboxes";
const RUNS: &str = "runs";

/// Something that is needed and missing.
struct DoctorProblem {
    part: String,
    words: String,
    error: CliError,
}

impl DoctorProblem {
    fn new(part: &str, error: CliError) -> Self {
        Self { part: part.to_owned(), words: error.words(), error }
    }

    /// In the sandbox's own words: no program was to be run.
    fn of_sandbox(part: &str, error: SandboxError) -> Self {
        let words = error.to_string();
        Self { part: part.to_owned(), words, error: isolation::failure(error) }
    }
}

/// Where runs are kept.
enum RunsIn {
    File(PathBuf),
    Database {
        place: String,
        tls: &'static str,
        server: String,
    },
    /// A database that cannot be used; the problem says why.
    Unavailable {
        place: Option<String>,
    },
}

impl RunsIn {
    /// Opens a database that is configured: whatever is wrong with it is said here.
    async fn found(loaded: &Loaded, problems: &mut Vec<DoctorProblem>) -> Self {
        let database = match Database::of(loaded) {
            Ok(Some(database)) => database,
            Ok(None) => return Self::File(loaded.places.folders.data.join(FILE_NAME)),
            Err(error) => {
                problems.push(DoctorProblem::new(RUNS, error));
                return Self::Unavailable { place: None };
            }
        };
        let (place, tls) = (database.address.place(), database.address.tls());
        let version = async {
            let store = database.open().await?;
            let server = store.server_version().await.map_err(local::broken)?;
            store.close().await;
            Ok::<_, CliError>(server)
        };
        match version.await {
            Ok(server) => Self::Database { place, tls, server },
            Err(error) => {
                problems.push(DoctorProblem::new(RUNS, error));
                Self::Unavailable { place: Some(place) }
            }
        }
    }

    fn row(&self) -> RunsKept {
        match self {
            Self::File(path) => {
                RunsKept { file: Some(path.display().to_string()), ..RunsKept::default() }
            }
            Self::Database { place, tls, server } => RunsKept {
                database: Some(place.clone()),
                tls: Some((*tls).to_owned()),
                postgresql: Some(server.clone()),
                file: None,
            },
            Self::Unavailable { place } => {
                RunsKept { database: place.clone(), ..RunsKept::default() }
            }
        }
    }

    fn line(&self) -> String {
        match self {
            Self::File(path) => format!("runs: the file {}\n", path.display()),
            Self::Database { place, tls, server } => {
                let server = shown_line(server);
                format!("runs: the database {place}, PostgreSQL {server}, TLS {tls}\n")
            }
            Self::Unavailable { place } => {
                let place = place.as_deref().unwrap_or("a database");
                format!("runs: {YELLOW}{place} cannot be used{YELLOW:#}\n")
            }
        }
    }
}

/// What was found out about one engine.
struct Checked {
    name: EngineName,
    found: Result<ProbedEngine, EngineProblem>,
}

/// Why an engine could not be tried.
struct EngineProblem {
    state: &'static str,
    problem: String,
    hint: Option<String>,
    version: Option<String>,
}

impl From<SandboxError> for EngineProblem {
    fn from(error: SandboxError) -> Self {
        let hint = isolation::hint(&error);
        Self { state: "does not work", problem: error.failure().detail, hint, version: None }
    }
}

/// What was found out about this machine.
pub(super) struct Examined {
    checked: Vec<Checked>,
    chosen: Option<ProbedEngine>,
    images: Vec<String>,
    around: Vec<WayAround>,
    runs_in: RunsIn,
    problems: Vec<DoctorProblem>,
}

impl Examined {
    /// The report for pages, or the problem because of which nothing could be tried.
    pub(super) fn into_report(mut self) -> Result<Doctor, CliError> {
        match self.problems.iter().position(|problem| problem.part != SANDBOXES) {
            Some(first) => Err(self.problems.swap_remove(first).error),
            None => Ok(self.report()),
        }
    }

    /// The report for programs: that of pages and the problems.
    fn json(&self) -> serde_json::Result<String> {
        let mut report = serde_json::to_value(self.report())?;
        let problems = self.problems.iter().map(|DoctorProblem { part, words, error }| {
            json!({ "part": part, "problem": words, "hint": error.hint })
        });
        report["problems"] = problems.collect();
        serde_json::to_string_pretty(&report)
    }

    fn text(&self) -> String {
        let mut text = table(&self.checked, self.chosen.as_ref(), &self.images);
        text.push_str(&self.runs_in.line());
        for DoctorProblem { part, words, error } in &self.problems {
            let words = shown_line(words);
            let _ = writeln!(text, "\n{YELLOW}{part}: {words}{YELLOW:#}");
            if let Some(hint) = &error.hint {
                let _ = writeln!(text, "hint: {}", shown_line(hint));
            }
        }
        text
    }

    /// For programs, and for pages.
    fn report(&self) -> Doctor {
        let chosen = self.chosen.as_ref().map(|chosen| &chosen.report);
        let around = self.around.iter().map(|way| WayAroundRow {
            file: way.file.display().to_string(),
            server: way.server.clone(),
        });
        Doctor {
            tried_at_ms: moothall_store::now_ms(),
            engines: self.checked.iter().map(engine_row).collect(),
            chosen: chosen.map(|report| report.engine.to_string()),
            class: chosen.map(|report| report.class),
            images: self.images.clone(),
            ways_around: around.collect(),
            runs: self.runs_in.row(),
        }
    }
}

pub(super) fn run(global: &Global, args: &DoctorArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    if !args.json {
        warn_of(&around(&loaded));
    }
    let trying = |name: EngineName| {
        if !args.json {
            terminal::note(&format!("{DIM}trying {name} …{DIM:#}\n"));
        }
    };
    let Interruptible::Done(examined) = block_on(examine(&loaded, trying))? else {
        return Err(CliError::new(Exit::Cancelled, "cancelled").into());
    };
    if args.json {
        let report = examined
            .json()
            .map_err(|error| CliError::failed("the report cannot be written").with_source(error))?;
        terminal::print(&format!("{report}\n"))?;
    } else {
        terminal::print(&examined.text())?;
    }
    Ok(if examined.problems.is_empty() { Exit::Fine } else { Exit::Failed })
}

/// Tries every engine of this machine. That starts sandboxes, and takes its time. Whatever is missing
/// is a problem in the result, so that the rest is found out as well.
pub(super) async fn examine(loaded: &Loaded, mut trying: impl FnMut(EngineName)) -> Examined {
    let mut problems = Vec::new();
    let policy = isolation::policy(loaded, None, false)
        .map_err(|error| problems.push(DoctorProblem::new("configuration", error)))
        .ok();
    let host = isolation::host(loaded)
        .map_err(|error| problems.push(DoctorProblem::new("host", error)))
        .ok();
    let mut images = Vec::new();
    let mut has_image = false;
    if let Some(host) = &host {
        match host.images().find(IMAGE) {
            Ok(_) => has_image = true,
            Err(error) => {
                problems.push(DoctorProblem::of_sandbox(&format!("image {IMAGE}"), error))
            }
        }
        match host.images().list() {
            Ok(found) => images.extend(found.into_iter().map(|image| image.name)),
            Err(error) => problems.push(DoctorProblem::of_sandbox("images", error)),
        }
    }
    // First: it takes a moment, and whoever asks about sandboxes waits for them anyway.
    let runs_in = RunsIn::found(loaded, &mut problems).await;
    let mut checked = Vec::new();
    for name in EngineName::ALL {
        trying(name);
        let found = match &host {
            Some(host) => check(host, name, has_image).await,
            None => Err(untried("sandboxes cannot be used here", None)),
        };
        checked.push(Checked { name, found });
    }
    let probed: Vec<ProbedEngine> =
        checked.iter().filter_map(|checked| checked.found.as_ref().ok().cloned()).collect();
    let chosen = policy.map(|policy| choose(&probed, &policy));
    let chosen = match chosen {
        Some(Ok(chosen)) => Some(chosen),
        // Without an image, nothing could be chosen, and the problem is the image.
        Some(Err(error)) if has_image => {
            problems.push(DoctorProblem::of_sandbox(SANDBOXES, error));
            None
        }
        _ => None,
    };
    Examined { checked, chosen, images, around: around(loaded), runs_in, problems }
}

async fn check(
    host: &Host,
    name: EngineName,
    has_image: bool,
) -> Result<ProbedEngine, EngineProblem> {
    let engine = host.engine(name).await?;
    if !has_image {
        let version = Some(engine.version().to_owned());
        return Err(untried("the image that it would be tried with is missing", version));
    }
    Ok(host.try_out(engine, IMAGE).await?)
}

fn untried(problem: &str, version: Option<String>) -> EngineProblem {
    EngineProblem { state: "not tried", problem: problem.to_owned(), hint: None, version }
}

fn around(loaded: &Loaded) -> Vec<WayAround> {
    ways_around(Path::new("."), loaded.environment.get("HOME").map(Path::new))
}

/// An agent that has drafts and a shell needs no drafts.
fn warn_of(around: &[WayAround]) {
    for WayAround { file, server } in around {
        let (file, server) = (file.display().to_string(), shown_line(server));
        let file = shown_line(&file);
        terminal::note(&format!(
            "{YELLOW}{file} gives an agent drafts, and with `{server}` a way around them{YELLOW:#}\n"
        ));
    }
}

fn engine_row(checked: &Checked) -> EngineRow {
    let engine = checked.name.to_string();
    match &checked.found {
        Ok(ProbedEngine { report, .. }) => EngineRow {
            engine,
            works: report.faults().is_empty(),
            version: Some(report.version.clone()),
            class: Some(report.class),
            self_tests: Some(report.self_tests.clone()),
            faults: Some(report.faults()),
            held_by: Some(report.held_by.clone()),
            limits_not_held: Some(not_held(report)),
            start_ms: Some(report.start_ms),
            run_ms: Some(report.run_ms),
            advice: advice(report),
            problem: None,
        },
        Err(untried) => EngineRow {
            engine,
            problem: Some(untried.problem.clone()),
            version: untried.version.clone(),
            advice: untried.hint.clone(),
            ..EngineRow::default()
        },
    }
}

fn not_held(report: &ProbeReport) -> Vec<moothall_core::sandbox::LimitName> {
    moothall_core::sandbox::LimitName::ALL
        .into_iter()
        .filter(|limit| !report.held_by.contains_key(limit))
        .collect()
}

/// What would make an engine that works better.
fn advice(report: &ProbeReport) -> Option<String> {
    let of_version = version_warning(report.engine.as_str(), &report.version);
    let of_class = class_advice(report.class).map(str::to_owned);
    let all: Vec<String> = of_version.into_iter().chain(of_class).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn class_advice(class: IsolationClass) -> Option<&'static str> {
    match class {
        IsolationClass::EmulatedVm => Some(
            "there is no usable KVM here, so the CPU is emulated: slow, and not a wall that QEMU vouches for; \
             on a machine of your own, enable virtualisation and join the group `kvm`",
        ),
        IsolationClass::SharedKernel => {
            Some("used only where you ask for it: it shares this machine's kernel")
        }
        IsolationClass::HardwareVm | IsolationClass::UserKernel | IsolationClass::None => None,
    }
}

fn table(checked: &[Checked], chosen: Option<&ProbedEngine>, images: &[String]) -> String {
    let mut text = format!(
        "{BOLD}{:8}  {:13}  {:14}  {:>9}  {:>9}  version{BOLD:#}\n",
        "engine", "class", "state", "start", "program"
    );
    for Checked { name, found } in checked {
        match found {
            Ok(ProbedEngine { report, .. }) => {
                let faults = report.faults();
                let (style, state) = match faults.is_empty() {
                    true => (GREEN, "works"),
                    false => (YELLOW, "does not hold"),
                };
                let _ = writeln!(
                    text,
                    "{name:8}  {:13}  {style}{state:14}{style:#}  {:>6} ms  {:>6} ms  {}",
                    report.class,
                    report.start_ms,
                    report.run_ms,
                    shown_line(&report.version),
                );
                for fault in faults {
                    let _ = writeln!(text, "{:10}{YELLOW}does not hold: {fault}{YELLOW:#}", "");
                }
                let open = not_held(report);
                if !open.is_empty() {
                    let open: Vec<String> = open.iter().map(ToString::to_string).collect();
                    let _ = writeln!(
                        text,
                        "{:10}{YELLOW}limits that nobody holds: {}{YELLOW:#}",
                        "",
                        open.join(", ")
                    );
                }
                if let Some(warning) = version_warning(name.as_str(), &report.version) {
                    let warning = shown_line(&warning);
                    let _ = writeln!(text, "{:10}{YELLOW}{warning}{YELLOW:#}", "");
                }
                if let Some(advice) = class_advice(report.class) {
                    let _ = writeln!(text, "{:10}{DIM}{advice}{DIM:#}", "");
                }
            }
            Err(untried) => {
                let (state, problem) = (untried.state, shown_line(&untried.problem));
                let _ = writeln!(text, "{name:8}  {:13}  {YELLOW}{state}{YELLOW:#}", "-");
                let _ = writeln!(text, "{:10}{problem}", "");
                if let Some(hint) = &untried.hint {
                    let _ = writeln!(text, "{:10}hint: {hint}", "");
                }
            }
        }
    }
    let _ = match chosen {
        Some(chosen) => writeln!(
            text,
            "\nprograms run on {BOLD}{}{BOLD:#}: {}",
            chosen.report.engine, chosen.report.class
        ),
        None => writeln!(text, "\n{YELLOW}nothing here is strong enough to run programs{YELLOW:#}"),
    };
    let images = if images.is_empty() { "none".to_owned() } else { images.join(", ") };
    let _ = writeln!(text, "images: {images}");
    text
}
