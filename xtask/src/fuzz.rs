//! `cargo xtask fuzz`: runs every target of `fuzz/` with libFuzzer for a limited time.
//!
//! `fuzz/libfuzzer` is a separate workspace because it needs nightly. Seeds are committed in
//! `fuzz/seeds/TARGET`; new inputs are written to the target directory to keep the working tree
//! clean.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::shell;

const FOLDER: &str = "fuzz/libfuzzer";
const MANIFEST: &str = "fuzz/libfuzzer/Cargo.toml";

#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// Set the time for each target, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run only these targets (default: all)
    targets: Vec<String>,
}

pub(crate) fn run(args: &FuzzArgs) -> Result<()> {
    let root = shell::root()?;
    let manifest = fs_err::read_to_string(root.join(MANIFEST)).map_err(|error| {
        anyhow!(
            "cannot read the fuzz targets: {error}
hint: create them with `cargo fuzz init`"
        )
    })?;
    let targets = select_targets(target_names(&manifest)?, &args.targets)?;
    require_tools(&root)?;
    let seconds = args.seconds;
    for target in &targets {
        shell::note(&format!("== fuzz {target} for {seconds} s"));
        fuzz(&root, target, seconds)?;
    }
    shell::say(&format!("{} fuzz targets, {seconds} s each: no failures", targets.len()));
    Ok(())
}

/// The `[[bin]]` names of a manifest. No names is an error, because a fuzz run without targets
/// would pass without testing anything.
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

fn select_targets(targets: Vec<String>, requested: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = requested.iter().find(|name| !targets.contains(name)) {
        bail!("no fuzz target `{unknown}`\nhint: there are {}", targets.join(", "));
    }
    Ok(targets
        .into_iter()
        .filter(|name| requested.is_empty() || requested.contains(name))
        .collect())
}

fn require_tools(root: &Path) -> Result<()> {
    shell::require_nightly(root)?;
    if !shell::works(root, &["rustup", "run", "nightly", "cargo", "fuzz", "--version"]) {
        bail!("cannot find `cargo-fuzz`\nhint: run `bash .ci/tools.sh`");
    }
    Ok(())
}

fn fuzz(root: &Path, target: &str, seconds: u32) -> Result<()> {
    let folder = shell::target_dir(root).join("fuzz");
    let found = folder.join("corpus").join(target);
    fs_err::create_dir_all(&found)?;
    let seeds = root.join("fuzz/seeds").join(target);
    let seeds = seeds.to_string_lossy();

    let folder = folder.to_string_lossy();
    let found = found.to_string_lossy();
    let limit = format!("-max_total_time={seconds}");
    let mut command_line = vec!["rustup", "run", "nightly", "cargo", "fuzz", "run"];
    command_line.extend(["--fuzz-dir", FOLDER, "--target-dir", &folder, target]);
    // libFuzzer writes new inputs to the first directory and only reads the others.
    command_line.extend([&*found, &*seeds]);
    command_line.extend(["--", &limit, "-print_final_stats=1"]);
    shell::run(root, &command_line)
        .with_context(|| format!("fuzz target `{target}` failed; the failing input is named above"))
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod tests;
