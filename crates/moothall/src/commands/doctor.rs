//! `moothall doctor`: shows the installed version and tests how well each sandbox of this machine
//! isolates programs.

mod mcp_clients;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use moothall_core::sandbox::IsolationClass;
use moothall_core::text::sanitize_line;
use moothall_sandbox::image::{ImageListing, ImageRecipe};
use moothall_sandbox::{
    EngineName, ProbeReport, ProbedEngine, SandboxError, SandboxHost, choose, version_warning,
};
use moothall_server::dto::{DoctorResponse, DraftBypassRow, EngineRow, RunStorageInfo};
use serde_json::json;

use self::mcp_clients::{DraftBypass, find_bypasses};
use super::key::source_label;
use super::{InterruptibleResult, block_on};
use crate::args::{DoctorArgs, GlobalArgs};
use crate::config::{self, LoadedConfig};
use crate::context::CommandContext;
use crate::database::DatabaseConfig;
use crate::error::{CliError, CliExit};
use crate::installation::Installation;
use crate::isolation;
use crate::keys::KeySource;
use crate::logging;
use crate::run_store::{self, FILE_NAME};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};
use crate::work_progress::{WorkProgress, WorkSize};

/// The image for the tests.
const IMAGE: &str = "python";

/// For failures with many possible causes.
const LOG_HINT: &str = "see what the engine reports with `moothall doctor -vv`";

/// Values of [`DoctorProblem::part`].
const SANDBOXES: &str = "sandboxes";
const RUNS: &str = "runs";

struct DoctorProblem {
    part: String,
    message: String,
    error: CliError,
}

impl DoctorProblem {
    fn new(part: &str, error: CliError) -> Self {
        Self { part: part.to_owned(), message: error.full_message(), error }
    }

    /// Uses the sandbox's own message, because [`isolation::failure`] says that a program was not
    /// run.
    fn of_sandbox(part: &str, error: SandboxError) -> Self {
        let message = error.to_string();
        Self { part: part.to_owned(), message, error: isolation::failure(error) }
    }
}

/// Where runs are stored.
enum RunLocation {
    File(PathBuf),
    Database {
        place: String,
        tls: &'static str,
        server: String,
    },
    /// A database that cannot be used; a [`DoctorProblem`] says why.
    Unavailable {
        place: Option<String>,
    },
}

impl RunLocation {
    /// Opens the configured database to find problems with it.
    async fn find(loaded: &LoadedConfig, problems: &mut Vec<DoctorProblem>) -> Self {
        let database = match DatabaseConfig::of(loaded) {
            Ok(Some(database)) => database,
            Ok(None) => return Self::File(loaded.locations.folders.data.join(FILE_NAME)),
            Err(error) => {
                problems.push(DoctorProblem::new(RUNS, error));
                return Self::Unavailable { place: None };
            }
        };
        let (place, tls) = (database.address.location(), database.address.tls());
        let version = async {
            let store = database.open().await?;
            let server = store.server_version().await.map_err(run_store::store_error)?;
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

    fn row(&self) -> RunStorageInfo {
        match self {
            Self::File(path) => RunStorageInfo {
                file: Some(path.display().to_string()),
                ..RunStorageInfo::default()
            },
            Self::Database { place, tls, server } => RunStorageInfo {
                database: Some(place.clone()),
                tls: Some((*tls).to_owned()),
                postgresql: Some(server.clone()),
                file: None,
            },
            Self::Unavailable { place } => {
                RunStorageInfo { database: place.clone(), ..RunStorageInfo::default() }
            }
        }
    }

    fn line(&self) -> String {
        match self {
            Self::File(path) => format!("runs: file {}\n", path.display()),
            Self::Database { place, tls, server } => {
                let server = sanitize_line(server);
                format!("runs: database {place}, PostgreSQL {server}, TLS {tls}\n")
            }
            Self::Unavailable { place } => {
                let place = place.as_deref().unwrap_or("the database");
                format!("runs: {YELLOW}cannot use {place}{YELLOW:#}\n")
            }
        }
    }
}

/// Test result of one engine.
struct EngineCheck {
    name: EngineName,
    found: Result<ProbedEngine, EngineProblem>,
}

/// Why an engine could not be tested.
struct EngineProblem {
    state: &'static str,
    problem: String,
    hint: Option<String>,
    version: Option<String>,
}

impl EngineProblem {
    fn not_tested(problem: &str) -> Self {
        Self { state: "not tested", problem: problem.to_owned(), hint: None, version: None }
    }
}

impl From<SandboxError> for EngineProblem {
    fn from(error: SandboxError) -> Self {
        let hint = isolation::hint(&error).unwrap_or_else(|| LOG_HINT.to_owned());
        let problem = error.failure().detail;
        Self { state: "does not work", problem, hint: Some(hint), version: None }
    }
}

/// Test results of this machine.
pub(crate) struct DoctorResults {
    checked: Vec<EngineCheck>,
    chosen: Option<ProbedEngine>,
    images: Vec<String>,
    /// Images made from another recipe than the one in this program.
    outdated_images: Vec<String>,
    installation: Installation,
    draft_bypasses: Vec<DraftBypass>,
    /// How `moothall guard` copies a workspace, or why it does not work.
    guard: Result<&'static str, CliError>,
    run_location: RunLocation,
    problems: Vec<DoctorProblem>,
}

impl DoctorResults {
    /// The report for the web UI, or the problem that prevented the tests.
    pub(crate) fn into_report(mut self) -> Result<DoctorResponse, CliError> {
        match self.problems.iter().position(|problem| problem.part != SANDBOXES) {
            Some(first) => Err(self.problems.swap_remove(first).error),
            None => Ok(self.report()),
        }
    }

    /// The report for `--json`: the web UI's report, the sources of API keys, the model and the
    /// problems.
    fn json(&self, access: &ModelAccess) -> serde_json::Result<String> {
        let mut report = serde_json::to_value(self.report())?;
        let keys = access.keys.iter().map(|(provider, source)| {
            json!({ "provider": provider, "source": source.kind(), "detail": source.to_string() })
        });
        report["keys"] = keys.collect();
        report["model"] = json!(access.model);
        report["guard"] = match &self.guard {
            Ok(copy) => json!({ "works": true, "copy": copy }),
            Err(error) => {
                json!({ "works": false, "problem": error.full_message(), "hint": error.hint })
            }
        };
        let problems = self.problems.iter().map(|DoctorProblem { part, message, error }| {
            json!({ "part": part, "problem": message, "hint": error.hint })
        });
        report["problems"] = problems.collect();
        serde_json::to_string_pretty(&report)
    }

    fn text(&self, access: &ModelAccess) -> String {
        let mut text = format!("{}\n\n", self.installation);
        text.push_str(&table(&self.checked, self.chosen.as_ref(), &self.images));
        for name in &self.outdated_images {
            let _ = writeln!(
                text,
                "{YELLOW}image {name} was made for another version of moothall{YELLOW:#}\n\
                 hint: replace it with `moothall image build {name}`, or import the one of this release"
            );
        }
        match &self.guard {
            Ok(copy) => {
                let _ = writeln!(text, "guard: works, with {copy}");
            }
            Err(error) => {
                let problem = sanitize_line(&error.full_message());
                let _ = writeln!(text, "guard: {YELLOW}does not work: {problem}{YELLOW:#}");
                if let Some(hint) = &error.hint {
                    let _ = writeln!(text, "hint: {}", sanitize_line(hint));
                }
            }
        }
        text.push_str(&self.run_location.line());
        text.push_str(&key_line(&access.keys));
        text.push_str(&model_line(access));
        for DoctorProblem { part, message, error } in &self.problems {
            let message = sanitize_line(message);
            let _ = writeln!(text, "\n{YELLOW}{part}: {message}{YELLOW:#}");
            if let Some(hint) = &error.hint {
                let _ = writeln!(text, "hint: {}", sanitize_line(hint));
            }
        }
        text
    }

    fn report(&self) -> DoctorResponse {
        let chosen = self.chosen.as_ref().map(|chosen| &chosen.report);
        let draft_bypasses = self.draft_bypasses.iter().map(|way| DraftBypassRow {
            file: way.file.display().to_string(),
            server: way.server.clone(),
        });
        DoctorResponse {
            tried_at_ms: moothall_store::now_ms(),
            engines: self.checked.iter().map(engine_row).collect(),
            chosen: chosen.map(|report| report.engine.to_string()),
            class: chosen.map(|report| report.class),
            images: self.images.clone(),
            outdated_images: self.outdated_images.clone(),
            version: self.installation.version().to_owned(),
            installed_as: self.installation.kind().to_owned(),
            ways_around: draft_bypasses.collect(),
            runs: self.run_location.row(),
        }
    }
}

pub(crate) fn run(global: &GlobalArgs, args: &DoctorArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    if !args.json {
        warn_of(&draft_bypasses(&loaded));
    }
    let progress = WorkProgress::start("looking for sandbox engines", args.json);
    let on_test = |name: EngineName| {
        if !args.json {
            terminal::note(&format!("{DIM}testing {name} …{DIM:#}\n"));
        }
        progress
            .step(&format!("starting a {name} sandbox and trying to break out"), WorkSize::Unknown);
    };
    let examined = block_on(examine(&loaded, on_test));
    drop(progress);
    let InterruptibleResult::Done(mut examined) = examined? else {
        return Err(CliError::new(CliExit::Cancelled, "cancelled").into());
    };
    let access = ModelAccess::find(global).unwrap_or_else(|error| {
        examined.problems.push(DoctorProblem::new("keys", error));
        ModelAccess::default()
    });
    if args.json {
        let report = examined
            .json(&access)
            .map_err(|error| CliError::failed("cannot serialize the report").with_source(error))?;
        terminal::print(&format!("{report}\n"))?;
    } else {
        terminal::print(&examined.text(&access))?;
    }
    Ok(if examined.problems.is_empty() { CliExit::Fine } else { CliExit::Failed })
}

/// Which models this machine can call.
#[derive(Default)]
struct ModelAccess {
    /// Where the key of each provider comes from; providers without a key are left out.
    keys: Vec<(String, KeySource)>,
    /// The model of commands that name none, with its fallbacks.
    model: Option<String>,
}

impl ModelAccess {
    fn find(global: &GlobalArgs) -> Result<Self, CliError> {
        let context = CommandContext::load(global.config.as_deref(), toml::Table::new())?;
        let source = |name: &str| Some((name.to_owned(), context.keys.source(name)?.clone()));
        let keys = context.keys.providers().filter_map(source).collect();
        let model = context.model(None).ok().map(|model| model.to_string());
        Ok(Self { keys, model })
    }
}

fn model_line(access: &ModelAccess) -> String {
    match &access.model {
        Some(model) => format!("model: {model}\n"),
        None => "model: none; choose one with `moothall init`, or pass `--model demo`\n".to_owned(),
    }
}

fn key_line(keys: &[(String, KeySource)]) -> String {
    let keys: Vec<String> = keys
        .iter()
        .map(|(provider, source)| format!("{provider} ({})", source_label(source)))
        .collect();
    match keys.is_empty() {
        true => "keys: none; set one with `moothall key set PROVIDER`\n".to_owned(),
        false => format!("keys: {}\n", sanitize_line(&keys.join(", "))),
    }
}

/// Tests every engine of this machine, which starts sandboxes and is slow. Missing parts become
/// problems in the result, so the rest is still tested.
pub(crate) async fn examine(
    loaded: &LoadedConfig,
    mut on_test: impl FnMut(EngineName),
) -> DoctorResults {
    let mut problems = Vec::new();
    let policy = isolation::policy(loaded, None, false)
        .map_err(|error| problems.push(DoctorProblem::new("configuration", error)))
        .ok();
    let (host, host_hint) = match isolation::host(loaded) {
        Ok(host) => (Some(host), None),
        Err(error) => {
            let hint = error.hint.clone().unwrap_or_else(|| LOG_HINT.to_owned());
            problems.push(DoctorProblem::new("host", error));
            (None, Some(hint))
        }
    };
    let mut images = Vec::new();
    let mut outdated_images = Vec::new();
    let mut has_image = false;
    if let Some(host) = &host {
        match host.images().find(IMAGE) {
            Ok(_) => has_image = true,
            Err(error) => {
                problems.push(DoctorProblem::of_sandbox(&format!("image {IMAGE}"), error))
            }
        }
        match host.images().list() {
            Ok(found) => {
                let outdated = found.iter().filter(|listing| is_outdated(listing));
                outdated_images.extend(outdated.map(|listing| listing.name.clone()));
                images.extend(found.into_iter().map(|image| image.name));
            }
            Err(error) => problems.push(DoctorProblem::of_sandbox("images", error)),
        }
    }
    // Before the sandboxes, because it is fast.
    let run_location = RunLocation::find(loaded, &mut problems).await;
    let mut checked = Vec::new();
    for name in EngineName::ALL {
        on_test(name);
        let found = match &host {
            Some(host) => check(host, name, has_image).await,
            None => Err(EngineProblem {
                hint: host_hint.clone(),
                ..EngineProblem::not_tested("sandboxes cannot be used on this machine")
            }),
        };
        checked.push(EngineCheck { name, found });
    }
    let probed: Vec<ProbedEngine> =
        checked.iter().filter_map(|checked| checked.found.as_ref().ok().cloned()).collect();
    let chosen = policy.map(|policy| choose(&probed, &policy));
    let chosen = match chosen {
        Some(Ok(chosen)) => Some(chosen),
        // Without the image no engine can be chosen, and the missing image is already reported.
        Some(Err(error)) if has_image => {
            problems.push(DoctorProblem::of_sandbox(SANDBOXES, error));
            None
        }
        _ => None,
    };
    let guard = super::guard::probe(&loaded.locations.folders.state).await;
    DoctorResults {
        guard,
        checked,
        chosen,
        images,
        outdated_images,
        installation: Installation::of_this_program(),
        draft_bypasses: draft_bypasses(loaded),
        run_location,
        problems,
    }
}

/// Whether an image was made from another recipe than the one in this program. The agent is not
/// part of an image, so images of other versions with the same recipe fit.
fn is_outdated(listing: &ImageListing) -> bool {
    let recipe = ImageRecipe::named(&listing.name).and_then(|recipe| recipe.hash());
    matches!((&listing.image, recipe), (Ok(image), Ok(recipe)) if image.recipe != recipe)
}

async fn check(
    host: &SandboxHost,
    name: EngineName,
    has_image: bool,
) -> Result<ProbedEngine, EngineProblem> {
    let engine = host.engine(name).await?;
    if !has_image {
        return Err(EngineProblem {
            hint: Some(format!("build the image: `moothall image build {IMAGE}`")),
            version: Some(engine.version().to_owned()),
            ..EngineProblem::not_tested("the test image is missing")
        });
    }
    Ok(host.probe_uncached(engine, IMAGE).await?)
}

fn draft_bypasses(loaded: &LoadedConfig) -> Vec<DraftBypass> {
    find_bypasses(Path::new("."), loaded.environment.get("HOME").map(Path::new))
}

fn warn_of(draft_bypasses: &[DraftBypass]) {
    for DraftBypass { file, server } in draft_bypasses {
        let (file, server) = (file.display().to_string(), sanitize_line(server));
        let file = sanitize_line(&file);
        terminal::note(&format!(
            "{YELLOW}warning: {file} also lists `{server}`, which lets an agent bypass drafts{YELLOW:#}\n"
        ));
    }
}

fn engine_row(checked: &EngineCheck) -> EngineRow {
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
            limits_not_held: Some(unenforced_limits(report)),
            start_ms: Some(report.start_ms),
            run_ms: Some(report.run_ms),
            advice: advice(report),
            problem: None,
        },
        Err(not_tested) => EngineRow {
            engine,
            problem: Some(not_tested.problem.clone()),
            version: not_tested.version.clone(),
            advice: not_tested.hint.clone(),
            ..EngineRow::default()
        },
    }
}

fn unenforced_limits(report: &ProbeReport) -> Vec<moothall_core::sandbox::LimitName> {
    moothall_core::sandbox::LimitName::ALL
        .into_iter()
        .filter(|limit| !report.held_by.contains_key(limit))
        .collect()
}

/// What to do about an engine that failed its self-tests, or how to improve one that works.
fn advice(report: &ProbeReport) -> Option<String> {
    let of_faults = (!report.faults().is_empty()).then(|| LOG_HINT.to_owned());
    let of_version = version_warning(report.engine.as_str(), &report.version);
    let of_class = class_advice(report.class).map(str::to_owned);
    let all: Vec<String> = of_faults.into_iter().chain(of_version).chain(of_class).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn class_advice(class: IsolationClass) -> Option<&'static str> {
    match class {
        IsolationClass::EmulatedVm => Some(
            "no usable KVM, so the CPU is emulated: slow, and QEMU does not treat emulation as a security boundary; \
             on your own machine, enable virtualization and join the group `kvm`",
        ),
        IsolationClass::SharedKernel => {
            Some("used only if you select it, because it shares this machine's kernel")
        }
        IsolationClass::HardwareVm | IsolationClass::UserKernel | IsolationClass::None => None,
    }
}

fn table(checked: &[EngineCheck], chosen: Option<&ProbedEngine>, images: &[String]) -> String {
    let mut text = format!(
        "{BOLD}{:8}  {:13}  {:14}  {:>9}  {:>9}  version{BOLD:#}\n",
        "engine", "class", "state", "start", "program"
    );
    for EngineCheck { name, found } in checked {
        match found {
            Ok(ProbedEngine { report, .. }) => {
                let faults = report.faults();
                let (style, state) = match faults.is_empty() {
                    true => (GREEN, "works"),
                    false => (YELLOW, "failed tests"),
                };
                let _ = writeln!(
                    text,
                    "{name:8}  {:13}  {style}{state:14}{style:#}  {:>6} ms  {:>6} ms  {}",
                    report.class,
                    report.start_ms,
                    report.run_ms,
                    sanitize_line(&report.version),
                );
                for fault in faults {
                    let _ = writeln!(text, "{:10}{YELLOW}failed: {fault}{YELLOW:#}", "");
                }
                let open = unenforced_limits(report);
                if !open.is_empty() {
                    let open: Vec<String> = open.iter().map(ToString::to_string).collect();
                    let _ = writeln!(
                        text,
                        "{:10}{YELLOW}limits not enforced: {}{YELLOW:#}",
                        "",
                        open.join(", ")
                    );
                }
                if let Some(warning) = version_warning(name.as_str(), &report.version) {
                    let warning = sanitize_line(&warning);
                    let _ = writeln!(text, "{:10}{YELLOW}{warning}{YELLOW:#}", "");
                }
                if let Some(advice) = class_advice(report.class) {
                    let _ = writeln!(text, "{:10}{DIM}{advice}{DIM:#}", "");
                }
            }
            Err(not_tested) => {
                let (state, problem) = (not_tested.state, sanitize_line(&not_tested.problem));
                let _ = writeln!(text, "{name:8}  {:13}  {YELLOW}{state}{YELLOW:#}", "-");
                let _ = writeln!(text, "{:10}{problem}", "");
                if let Some(hint) = &not_tested.hint {
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
        None => writeln!(
            text,
            "\n{YELLOW}no sandbox on this machine is strong enough to run programs{YELLOW:#}"
        ),
    };
    let images = match images.is_empty() {
        true => format!("none; build one with `moothall image build {IMAGE}`"),
        false => images.join(", "),
    };
    let _ = writeln!(text, "images: {images}");
    text
}
