//! `moothall doctor`: what the sandboxes of this machine are worth, found out by running them.

mod clients;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use moothall_core::sandbox::IsolationClass;
use moothall_sandbox::{EngineName, ProbeReport, ProbedEngine, SandboxError, choose};
use moothall_server::wire::{Doctor, EngineRow, RunsKept, WayAroundRow};

use self::clients::{WayAround, ways_around};
use super::{Interruptible, block_on};
use crate::args::{DoctorArgs, Global};
use crate::config::{self, Loaded};
use crate::database::Database;
use crate::error::{CliError, Exit};
use crate::isolation;
use crate::local::{self, FILE_NAME};
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW, harmless_line};

/// The image that probes run in.
const IMAGE: &str = "python";

/// Where runs are kept.
enum RunsIn {
    File(PathBuf),
    Database { place: String, tls: &'static str, server: String },
}

impl RunsIn {
    /// Opens a database that is configured: whatever is wrong with it is said here.
    async fn found(loaded: &Loaded) -> Result<Self, CliError> {
        let Some(database) = Database::of(loaded)? else {
            return Ok(Self::File(loaded.places.folders.data.join(FILE_NAME)));
        };
        let (place, tls) = (database.address.place(), database.address.tls());
        let store = database.open().await?;
        let server = store.server_version().await.map_err(local::broken)?;
        store.close().await;
        Ok(Self::Database { place, tls, server })
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
        }
    }

    fn line(&self) -> String {
        match self {
            Self::File(path) => format!("runs: the file {}\n", path.display()),
            Self::Database { place, tls, server } => {
                let server = harmless_line(server);
                format!("runs: the database {place}, PostgreSQL {server}, TLS {tls}\n")
            }
        }
    }
}

/// What was found out about one engine.
struct Checked {
    name: EngineName,
    found: Result<ProbedEngine, SandboxError>,
}

/// What was found out about this machine.
pub(super) struct Examined {
    checked: Vec<Checked>,
    chosen: Result<ProbedEngine, SandboxError>,
    images: Vec<String>,
    around: Vec<WayAround>,
    runs_in: RunsIn,
}

impl Examined {
    /// For programs, and for pages.
    pub(super) fn report(&self) -> Doctor {
        let chosen = self.chosen.as_ref().ok().map(|chosen| &chosen.report);
        let around = self.around.iter().map(|way| WayAroundRow {
            file: way.file.display().to_string(),
            server: way.server.clone(),
        });
        Doctor {
            tried_at_ms: local::now_ms(),
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
    let examined = examined?;
    if args.json {
        let report = serde_json::to_string_pretty(&examined.report())
            .map_err(|error| CliError::failed("the report cannot be written").with_source(error))?;
        terminal::print(&format!("{report}\n"))?;
    } else {
        let chosen = examined.chosen.as_ref().ok();
        let text = table(&examined.checked, chosen, &examined.images) + &examined.runs_in.line();
        terminal::print(&text)?;
    }
    match examined.chosen {
        Ok(_) => Ok(Exit::Fine),
        Err(error) => Err(isolation::failure(error).into()),
    }
}

/// Tries every engine of this machine. That starts sandboxes, and takes its time.
pub(super) async fn examine(
    loaded: &Loaded,
    mut trying: impl FnMut(EngineName),
) -> Result<Examined, CliError> {
    let policy = isolation::policy(loaded, None, false)?;
    let host = isolation::host(loaded)?;
    // Without the image nothing can be tried, and every engine would say the same.
    host.images().find(IMAGE).map_err(isolation::failure)?;
    // First: it takes a moment, and whoever asks about sandboxes waits for them anyway.
    let runs_in = RunsIn::found(loaded).await?;
    let mut checked = Vec::new();
    for name in EngineName::ALL {
        trying(name);
        let found = match host.engine(name).await {
            Ok(engine) => host.try_out(engine, IMAGE).await,
            Err(error) => Err(error),
        };
        checked.push(Checked { name, found });
    }
    let probed: Vec<ProbedEngine> =
        checked.iter().filter_map(|checked| checked.found.as_ref().ok().cloned()).collect();
    let images = host.images().list().map_err(isolation::failure)?;
    Ok(Examined {
        chosen: choose(&probed, &policy),
        checked,
        images: images.into_iter().map(|image| image.name).collect(),
        around: around(loaded),
        runs_in,
    })
}

fn around(loaded: &Loaded) -> Vec<WayAround> {
    ways_around(Path::new("."), loaded.environment.get("HOME").map(Path::new))
}

/// An agent that has drafts and a shell needs no drafts.
fn warn_of(around: &[WayAround]) {
    for WayAround { file, server } in around {
        let (file, server) = (file.display().to_string(), harmless_line(server));
        let file = harmless_line(&file);
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
            advice: advice(report).map(str::to_owned),
            problem: None,
        },
        Err(error) => EngineRow {
            engine,
            problem: Some(error.failure().detail),
            advice: isolation::hint(error),
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
fn advice(report: &ProbeReport) -> Option<&'static str> {
    match report.class {
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
                    harmless_line(&report.version),
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
                if let Some(advice) = advice(report) {
                    let _ = writeln!(text, "{:10}{DIM}{advice}{DIM:#}", "");
                }
            }
            Err(error) => {
                let problem = harmless_line(&error.failure().detail);
                let _ = writeln!(text, "{name:8}  {:13}  {YELLOW}does not work{YELLOW:#}", "-");
                let _ = writeln!(text, "{:10}{problem}", "");
                if let Some(hint) = isolation::hint(error) {
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
    let _ = writeln!(text, "images: {}", images.join(", "));
    text
}
