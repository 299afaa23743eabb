//! `cargo xtask fuzz`: every target of `fuzz/` for a bounded time.
//!
//! `fuzz/` is a workspace of its own because its targets need nightly. Seeds are committed in
//! `fuzz/seeds/TARGET`; what the fuzzer finds goes to the target folder, so that a run leaves the
//! tree clean.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::shell;

const MANIFEST: &str = "fuzz/Cargo.toml";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Time for each target, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Build without optimization, which takes a third of the time, and run each target for a second
    #[arg(long, conflicts_with = "seconds")]
    smoke: bool,
    /// Only these targets; all by default.
    targets: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    let manifest = fs_err::read_to_string(root.join(MANIFEST)).map_err(|error| {
        anyhow!(
            "there are no fuzz targets: {error}
hint: they live in `fuzz/`, made with `cargo fuzz init`"
        )
    })?;
    let targets = chosen(target_names(&manifest)?, &args.targets)?;
    require_tools(&root)?;
    let seconds = if args.smoke { 1 } else { args.seconds };
    for target in &targets {
        shell::note(&format!("== fuzz {target} for {seconds} s"));
        fuzz(&root, target, seconds, args.smoke)?;
    }
    shell::say(&format!("{} fuzz targets, {seconds} s each: nothing found", targets.len()));
    Ok(())
}

/// The `[[bin]]` names of a manifest. A fuzz folder without any would pass by doing nothing, so
/// that is an error.
fn target_names(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table =
        toml::from_str(manifest).with_context(|| format!("cannot read `{MANIFEST}`"))?;
    let names: Vec<String> = manifest
        .get("bin")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|bin| bin.get("name")?.as_str())
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        bail!("`{MANIFEST}` lists no [[bin]]");
    }
    Ok(names)
}

fn chosen(known: Vec<String>, wanted: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(name)) {
        bail!("no fuzz target `{unknown}`\nhint: there are {}", known.join(", "));
    }
    Ok(known.into_iter().filter(|name| wanted.is_empty() || wanted.contains(name)).collect())
}

fn require_tools(root: &Path) -> Result<()> {
    shell::require_nightly(root)?;
    if !shell::works(root, &["rustup", "run", "nightly", "cargo", "fuzz", "--version"]) {
        bail!("cannot find `cargo-fuzz`\nhint: run `bash .ci/tools.sh`");
    }
    Ok(())
}

fn fuzz(root: &Path, target: &str, seconds: u32, smoke: bool) -> Result<()> {
    let folder = shell::target_dir(root).join("fuzz");
    let found = folder.join(if smoke { "smoke-corpus" } else { "corpus" }).join(target);
    // A smoke case starts from the seeds alone: reading what hours of fuzzing found takes minutes.
    if smoke && found.is_dir() {
        fs_err::remove_dir_all(&found)?;
    }
    fs_err::create_dir_all(&found)?;
    let seeds = root.join("fuzz/seeds").join(target);

    let folder = folder.to_string_lossy();
    let found = found.to_string_lossy();
    let seeds_shown = seeds.to_string_lossy();
    let limit = format!("-max_total_time={seconds}");
    let mut command_line =
        vec!["rustup", "run", "nightly", "cargo", "fuzz", "run", "--target-dir", &folder];
    if smoke {
        command_line.push("--dev");
    }
    command_line.push(target);
    // libFuzzer writes what it finds to the first folder and only reads the others.
    command_line.push(&found);
    if seeds.is_dir() {
        command_line.push(&seeds_shown);
    }
    command_line.extend(["--", &limit, "-print_final_stats=1"]);
    shell::run(root, &command_line).with_context(|| {
        format!("fuzz target `{target}` found something; the input is named above")
    })
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod tests;
