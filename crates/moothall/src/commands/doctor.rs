//! `moothall doctor`: what the sandboxes of this machine are worth, found out by running them.

mod clients;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use moothall_core::sandbox::IsolationClass;
use moothall_sandbox::{EngineName, ProbeReport, ProbedEngine, SandboxError, choose};
use serde_json::{Value, json};

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

    fn json(&self) -> Value {
        match self {
            Self::File(path) => json!({ "file": path }),
            Self::Database { place, tls, server } => {
                json!({ "database": place, "tls": tls, "postgresql": server })
            }
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

pub(super) fn run(global: &Global, args: &DoctorArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let around = ways_around(Path::new("."), loaded.environment.get("HOME").map(Path::new));
    if !args.json {
        warn_of(&around);
    }
    let policy = isolation::policy(&loaded, None, false)?;
    let host = isolation::host(&loaded)?;
    // Without the image nothing can be tried, and every engine would say the same.
    host.images().find(IMAGE).map_err(isolation::failure)?;
    let work = async {
        // First: it takes a moment, and whoever asks about sandboxes waits for them anyway.
        let runs_in = RunsIn::found(&loaded).await?;
        let mut checked = Vec::new();
        for name in EngineName::ALL {
            if !args.json {
                terminal::note(&format!("{DIM}trying {name} …{DIM:#}\n"));
            }
            let found = match host.engine(name).await {
                Ok(engine) => host.try_out(engine, IMAGE).await,
                Err(error) => Err(error),
            };
            checked.push(Checked { name, found });
        }
        Ok::<_, CliError>((runs_in, checked))
    };
    let Interruptible::Done(found) = block_on(work)? else {
        return Err(CliError::new(Exit::Cancelled, "cancelled").into());
    };
    let (runs_in, checked) = found?;
    let probed: Vec<ProbedEngine> =
        checked.iter().filter_map(|checked| checked.found.as_ref().ok().cloned()).collect();
    let chosen = choose(&probed, &policy);
    let images = host.images().list().map_err(isolation::failure)?;
    let images: Vec<&str> = images.iter().map(|image| image.name.as_str()).collect();
    if args.json {
        let report = json!({
            "engines": checked.iter().map(engine_json).collect::<Vec<_>>(),
            "chosen": chosen.as_ref().ok().map(|chosen| chosen.report.engine),
            "class": chosen.as_ref().ok().map(|chosen| chosen.report.class),
            "images": images,
            "ways_around": around.iter().map(|way| json!({
                "file": way.file, "server": way.server,
            })).collect::<Vec<_>>(),
            "runs": runs_in.json(),
        });
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        let text = table(&checked, chosen.as_ref().ok(), &images) + &runs_in.line();
        terminal::print(&text)?;
    }
    match chosen {
        Ok(_) => Ok(Exit::Fine),
        Err(error) => Err(isolation::failure(error).into()),
    }
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

fn engine_json(checked: &Checked) -> Value {
    match &checked.found {
        Ok(ProbedEngine { report, .. }) => json!({
            "engine": report.engine,
            "works": report.faults().is_empty(),
            "version": report.version,
            "class": report.class,
            "self_tests": report.self_tests,
            "held_by": report.held_by,
            "limits_not_held": not_held(report),
            "start_ms": report.start_ms,
            "run_ms": report.run_ms,
            "advice": advice(report),
        }),
        Err(error) => json!({
            "engine": checked.name,
            "works": false,
            "problem": error.failure().detail,
            "advice": isolation::hint(error),
        }),
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

fn table(checked: &[Checked], chosen: Option<&ProbedEngine>, images: &[&str]) -> String {
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
