//! `moothall image`: manages the kernels and root file systems of sandboxes.

mod bundle;

use moothall_core::text::{sanitize, sanitize_line};
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime};

use moothall_sandbox::SandboxError;
use moothall_sandbox::image::{
    BuildOptions, BuildOutcome, BuildProgress, BuildStep, ExistingImagePolicy, ImageBuilder,
    ImageListing, ImageProblem, ImageRecipe, ImageStore, RebuildComparison, SandboxImage,
};
use serde_json::{Value, json};

use super::{InterruptibleResult, block_on};
use crate::args::GlobalArgs;
use crate::args::image::{ImageBuildArgs, ImageCommand, ImageListArgs, ImageVerifyArgs};
use crate::config;
use crate::debate_image;
use crate::error::{CliError, CliExit};
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};
use crate::work_progress::{WorkProgress, WorkSize};

/// Digits of a digest on the screen; enough to distinguish images.
const SHORT_DIGEST: usize = 12;

pub(crate) fn run(global: &GlobalArgs, command: &ImageCommand) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let store = ImageStore::at(loaded.locations.folders.images());
    match command {
        ImageCommand::Build(args) => build(&store, args),
        ImageCommand::List(args) => list(&store, args),
        ImageCommand::Verify(args) => verify(&store, args),
        ImageCommand::Export(args) => bundle::export(&store, args),
        ImageCommand::Import(args) => bundle::import(&store, args),
    }
}

fn build(store: &ImageStore, args: &ImageBuildArgs) -> anyhow::Result<CliExit> {
    let recipes = recipes(&args.names)?;
    let existing =
        if args.force { ExistingImagePolicy::Replace } else { ExistingImagePolicy::Keep };
    let work = async {
        let mut done = Vec::new();
        let mut builder =
            ImageBuilder::new(store, options(&args.mirror)?, show_step(args.json)).await?;
        for recipe in &recipes {
            let started = Instant::now();
            let built = builder.build(recipe, existing).await?;
            if !args.json {
                print_built(recipe, &built, started.elapsed().as_secs_f64());
            }
            done.push(built);
        }
        Ok(done)
    };
    let done = interruptible(work)?;
    if args.json {
        let image = |built: &BuildOutcome| {
            let (image, state) = match built {
                BuildOutcome::Kept(image) => (image, "kept"),
                BuildOutcome::New(image) => (image, "built"),
            };
            let mut json = image_json(image);
            json["state"] = state.into();
            json
        };
        let report = json!({"images": done.iter().map(image).collect::<Vec<_>>()});
        terminal::print(&format!("{report:#}\n"))?;
    }
    Ok(CliExit::Fine)
}

fn list(store: &ImageStore, args: &ImageListArgs) -> anyhow::Result<CliExit> {
    let listed = store.list().map_err(image_error)?;
    let older = store.untagged().map_err(image_error)?;
    if args.json {
        let row = |listed: &ImageListing| match &listed.image {
            Ok(image) => {
                let mut json = image_json(image);
                json["built_unix"] = listed.built.and_then(unix_seconds).into();
                json["packages"] = json!(image.packages);
                json["python_modules"] = json!(image.python_modules);
                json
            }
            Err(error) => json!({"name": listed.name, "problem": error.to_string()}),
        };
        let report = json!({
            "folder": store.folder().to_string_lossy(),
            "images": listed.iter().map(row).collect::<Vec<_>>(),
            "older": older,
        });
        terminal::print(&format!("{report:#}\n"))?;
        return Ok(CliExit::Fine);
    }
    if listed.is_empty() {
        terminal::note("no images; create them with `moothall image build`\n");
        return Ok(CliExit::Fine);
    }
    let mut text = String::new();
    for ImageListing { name, built, image } in &listed {
        // Writing to a String cannot fail.
        let _ = match image {
            Ok(image) => writeln!(
                text,
                "{BOLD}{name:<8}{BOLD:#}  {}  {:>9}  {:>3} packages  {DIM}{}{DIM:#}",
                short_digest(image),
                megabytes(image.bytes),
                image.packages.len(),
                built.map_or_else(String::new, age),
            ),
            Err(error) => writeln!(
                text,
                "{BOLD}{name:<8}{BOLD:#}  {YELLOW}{}{YELLOW:#}",
                sanitize_line(&error.to_string())
            ),
        };
    }
    terminal::print(&text)?;
    if !older.is_empty() {
        terminal::note(&format!(
            "{DIM}{} older images are no longer used by new sandboxes and can be deleted from {}{DIM:#}\n",
            older.len(),
            store.folder().display()
        ));
    }
    Ok(CliExit::Fine)
}

fn verify(store: &ImageStore, args: &ImageVerifyArgs) -> anyhow::Result<CliExit> {
    let names: Vec<String> = match &args.name {
        Some(name) => vec![name.clone()],
        None => store.list().map_err(image_error)?.into_iter().map(|listed| listed.name).collect(),
    };
    if names.is_empty() {
        return Err(CliError::usage("no images to verify")
            .with_hint("create them with `moothall image build`")
            .into());
    }
    let mut checked = Vec::new();
    let total = names.len() as u64;
    let progress = WorkProgress::start("hashing the images", args.json);
    for (done, name) in (0..).zip(&names) {
        progress.step(&format!("hashing {name}"), WorkSize::Steps { done, total });
        let problems = store.verify(name).map_err(image_error)?;
        if !args.json {
            show_problems(name, &problems)?;
        }
        checked.push((name.as_str(), problems, None));
    }
    drop(progress);
    if args.rebuild {
        let recipes = recipes(&names)?;
        let work = async {
            let mut builder =
                ImageBuilder::new(store, options(&args.mirror)?, show_step(args.json)).await?;
            for (recipe, (_, _, rebuilt)) in recipes.iter().zip(&mut checked) {
                *rebuilt = Some(builder.rebuild(recipe).await?);
            }
            Ok(())
        };
        interruptible(work)?;
    }
    if args.json {
        let row =
            |(name, problems, rebuilt): &(&str, Vec<ImageProblem>, Option<RebuildComparison>)| {
                let mut row =
                    json!({"name": name, "holds": problems.is_empty(), "problems": problems});
                if let Some(rebuilt) = rebuilt {
                    row["rebuilt"] = rebuilt_json(rebuilt);
                }
                row
            };
        let report = json!({"images": checked.iter().map(row).collect::<Vec<_>>()});
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        for (name, _, rebuilt) in &checked {
            if let Some(rebuilt) = rebuilt {
                terminal::print(&format!("{}\n", rebuilt_line(name, rebuilt)))?;
            }
        }
    }
    let holds = checked.iter().all(|(_, problems, rebuilt)| {
        problems.is_empty() && !matches!(rebuilt, Some(RebuildComparison::OtherBytes(_)))
    });
    Ok(if holds { CliExit::Fine } else { CliExit::VerdictNegative })
}

fn show_problems(name: &str, problems: &[ImageProblem]) -> anyhow::Result<()> {
    const SHOWN: usize = 20;
    if problems.is_empty() {
        terminal::print(&format!("{GREEN}ok{GREEN:#}  {name} matches its digest\n"))?;
        return Ok(());
    }
    let mut text = format!("{YELLOW}{name} does not match its digest{YELLOW:#}\n");
    for problem in problems.iter().take(SHOWN) {
        let _ = writeln!(text, "  {}", sanitize_line(&problem.to_string()));
    }
    if problems.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", problems.len() - SHOWN);
    }
    terminal::print(&text)?;
    terminal::note(&format!("hint: rebuild it with `moothall image build --force {name}`\n"));
    Ok(())
}

fn recipes(names: &[String]) -> Result<Vec<ImageRecipe>, CliError> {
    let all: Vec<String> = ImageRecipe::names().map(str::to_owned).collect();
    let names = if names.is_empty() { &all } else { names };
    names.iter().map(|name| ImageRecipe::named(name).map_err(image_error)).collect()
}

fn options(mirrors: &[String]) -> Result<BuildOptions, SandboxError> {
    if let Some(flag) = mirrors.iter().find(|mirror| mirror.starts_with('-')) {
        return Err(SandboxError::Request(format!("`{flag}` is not a mirror")));
    }
    Ok(debate_image::build_options(mirrors.to_owned()))
}

fn interruptible<T>(work: impl Future<Output = Result<T, SandboxError>>) -> Result<T, CliError> {
    match block_on(work)? {
        InterruptibleResult::Done(done) => done.map_err(image_error),
        InterruptibleResult::Cancelled => {
            Err(CliError::new(CliExit::Cancelled, "cancelled; the unfinished build was removed"))
        }
    }
}

/// Shows the current build step, and a line for each finished one.
fn show_step(is_json: bool) -> impl FnMut(BuildProgress<'_>) + Send + Sync {
    let mut progress: Option<WorkProgress> = None;
    let mut finished = 0;
    move |step| match step {
        BuildProgress::Started(image, step) => {
            let started = progress.get_or_insert_with(|| WorkProgress::start("building", is_json));
            let (what, usual) = step_name(step);
            let number = finished % BUILD_STEPS + 1;
            let what = format!("{image}: {what} (step {number} of {BUILD_STEPS})");
            started.step(&what, WorkSize::Usually(usual));
        }
        BuildProgress::Finished(image, step, took) => {
            finished += 1;
            // Ended here, because messages follow the last step.
            drop(progress.take());
            if !is_json {
                let ((what, _), took) = (step_name(step), took.as_secs_f64());
                terminal::note(&format!("{DIM}{image:<8}  {what} … {took:.1} s{DIM:#}\n"));
            }
        }
    }
}

/// The number of build steps of one image.
const BUILD_STEPS: u32 = 5;

/// What a step does, and how long it usually takes.
fn step_name(step: BuildStep) -> (&'static str, Duration) {
    let (what, seconds) = match step {
        BuildStep::Kernel => ("downloading the kernel", 5),
        BuildStep::Packages => ("downloading packages", 20),
        BuildStep::Bytecode => ("compiling Python modules", 10),
        BuildStep::Squash => ("writing the file system", 10),
        BuildStep::Hashes => ("hashing", 3),
    };
    (what, Duration::from_secs(seconds))
}

fn print_built(recipe: &ImageRecipe, built: &BuildOutcome, seconds: f64) {
    let (image, what) = match built {
        BuildOutcome::Kept(image) => (image, "already built from the same recipe".to_owned()),
        BuildOutcome::New(image) => (image, format!("built in {seconds:.0} s")),
    };
    terminal::note(&format!(
        "{GREEN}{:<8}{GREEN:#}  {what}: {}, {}, {}\n",
        recipe.name,
        recipe.summary,
        short_digest(image),
        megabytes(image.bytes)
    ));
    if matches!(built, BuildOutcome::Kept(_)) {
        terminal::note(&format!("{DIM}          --force rebuilds it with newer packages{DIM:#}\n"));
    }
}

fn image_json(image: &SandboxImage) -> Value {
    json!({
        "name": image.name,
        "sha256": image.sha256,
        "bytes": image.bytes,
        "kernel": image.kernel,
        "recipe": image.recipe,
        "folder": image.folder.to_string_lossy(),
    })
}

fn rebuilt_json(rebuilt: &RebuildComparison) -> Value {
    match rebuilt {
        RebuildComparison::Same => json!({"result": "same"}),
        RebuildComparison::OtherInputs(inputs) => {
            json!({"result": "other-inputs", "inputs": inputs})
        }
        RebuildComparison::OtherBytes(files) => json!({"result": "other-bytes", "files": files}),
    }
}

fn rebuilt_line(name: &str, rebuilt: &RebuildComparison) -> String {
    match rebuilt {
        RebuildComparison::Same => {
            format!("{GREEN}ok{GREEN:#}  {name} is reproducible: a new build is identical")
        }
        RebuildComparison::OtherInputs(inputs) => format!(
            "cannot compare {name} with a new build because its inputs have changed:\n  {}",
            sanitize_line(&inputs.join(", "))
        ),
        RebuildComparison::OtherBytes(files) => format!(
            "{YELLOW}{name} is not reproducible; files that differ in a new build:{YELLOW:#} {}",
            sanitize_line(&files.join(", "))
        ),
    }
}

/// Adds a hint if the cause is known.
fn image_error(error: SandboxError) -> CliError {
    let hint = match &error {
        SandboxError::Missing { program } => Some(match program.as_str() {
            "mmdebstrap" | "mksquashfs" | "apt-get" => {
                "on Debian and Ubuntu, run `apt install mmdebstrap squashfs-tools`; on other distributions, install the packages with these names and apt"
            }
            _ => "install it, or add its directory to PATH",
        }),
        SandboxError::Image { image, .. } if ImageRecipe::named(image).is_ok() => {
            Some("create it with `moothall image build`")
        }
        SandboxError::Host { what, .. } if what.ends_with("cannot be fetched") => {
            Some("see the output of mmdebstrap above; use another mirror with `--mirror URL`")
        }
        _ => None,
    };
    let exit = match &error {
        SandboxError::Missing { .. } | SandboxError::Image { .. } | SandboxError::Request(_) => {
            CliExit::Usage
        }
        _ => CliExit::Failed,
    };
    let mut message = error.to_string();
    if let Some(source) = std::error::Error::source(&error) {
        message = format!("{message}: {}", sanitize(&source.to_string()));
    }
    let error = CliError::new(exit, message);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn short_digest(image: &SandboxImage) -> String {
    image.sha256.to_string().chars().take(SHORT_DIGEST).collect()
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn unix_seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

fn age(built: SystemTime) -> String {
    let seconds = built.elapsed().map_or(0, |elapsed| elapsed.as_secs());
    match seconds {
        0..120 => "built just now".to_owned(),
        120..7200 => format!("built {} minutes ago", seconds / 60),
        7200..172_800 => format!("built {} hours ago", seconds / 3600),
        _ => format!("built {} days ago", seconds / 86_400),
    }
}
