//! `cargo xtask compilations LOG`: reports what a gate run compiled, how long it took, and why a
//! crate was compiled more than once. `.ci/rustc-timer` writes the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;

use crate::shell;

/// Maximum number of rows in each of the last two tables.
const MAX_TABLE_ROWS: usize = 12;

#[derive(Debug, ClapArgs)]
pub(crate) struct CompilationsArgs {
    /// Read this log, written by `.ci/rustc-timer`
    log: PathBuf,
}

pub(crate) fn run(args: &CompilationsArgs) -> Result<()> {
    let log = match args.log.exists() {
        true => fs_err::read_to_string(&args.log)?,
        false => String::new(),
    };
    shell::say(report(&parse(&log)?).trim_end());
    Ok(())
}

/// One line of the log: one compiler invocation.
#[derive(Debug, Clone, PartialEq)]
struct CompilationRecord {
    cpu_seconds: f64,
    crate_name: String,
    kind: String,
    opt_level: String,
    features: String,
    /// The target directory and profile, such as `guest/release`.
    folder: String,
}

fn parse(log: &str) -> Result<Vec<CompilationRecord>> {
    log.lines()
        .map(|line| parse_line(line).with_context(|| format!("unreadable line `{line}`")))
        .collect()
}

fn parse_line(line: &str) -> Result<CompilationRecord> {
    let mut columns = line.split('\t');
    let mut next = || columns.next().context("missing column");
    let cpu_seconds = next()?.split('+').map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    let [crate_name, kind, opt_level, features] =
        [next()?, next()?, next()?, next()?].map(str::to_owned);
    let folder = next()?;
    // `…/target/guest/x86_64-unknown-linux-gnu/guest/deps` → `x86_64-unknown-linux-gnu/guest`
    let folder = folder.split("/deps").next().and_then(|folder| folder.split("/build/").next());
    let parts: Vec<&str> = folder.unwrap_or_default().rsplit('/').take(2).collect();
    let folder = parts.into_iter().rev().collect::<Vec<_>>().join("/");
    Ok(CompilationRecord { cpu_seconds, crate_name, kind, opt_level, features, folder })
}

fn report(all: &[CompilationRecord]) -> String {
    let mut text = format!(
        "{} compilations, {} of CPU time\n\nby kind and place\n",
        all.len(),
        minutes(all.iter().map(|one| one.cpu_seconds).sum())
    );
    let mut places = BTreeMap::<(&str, &str), (usize, f64)>::new();
    let mut crates = BTreeMap::<&str, Vec<&CompilationRecord>>::new();
    for one in all {
        let place = places.entry((&one.kind, &one.folder)).or_default();
        place.0 += 1;
        place.1 += one.cpu_seconds;
        // All build scripts have the same few crate names.
        if one.kind != "build-script" {
            crates.entry(&one.crate_name).or_default().push(one);
        }
    }
    for ((kind, folder), (count, seconds)) in sorted(places, |(_, seconds)| *seconds) {
        let _ = writeln!(text, "  {:>9}  {count:>5} × {kind} in {folder}", minutes(seconds));
    }

    text.push_str("\nlongest\n");
    let mut longest: Vec<&CompilationRecord> = all.iter().collect();
    longest.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    for one in longest.into_iter().take(MAX_TABLE_ROWS) {
        let CompilationRecord { crate_name, kind, folder, .. } = one;
        let _ =
            writeln!(text, "  {:>9}  {crate_name} ({kind} in {folder})", minutes(one.cpu_seconds));
    }

    text.push_str("\ncompiled more than once\n");
    let repeated = crates.into_iter().filter(|(_, times)| times.len() > 1).collect();
    let seconds =
        |times: &Vec<&CompilationRecord>| times.iter().map(|one| one.cpu_seconds).sum::<f64>();
    let repeated = sorted(repeated, seconds);
    let more = repeated.len().saturating_sub(MAX_TABLE_ROWS);
    for (crate_name, times) in repeated.into_iter().take(MAX_TABLE_ROWS) {
        let _ = writeln!(
            text,
            "  {:>9}  {} × {crate_name}: {}",
            minutes(seconds(&times)),
            times.len(),
            reasons(&times).join(", ")
        );
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} others");
    }
    text
}

/// The properties in which the compilations of one crate differ.
fn reasons(times: &[&CompilationRecord]) -> Vec<String> {
    let different = |of: fn(&CompilationRecord) -> &String| -> Vec<String> {
        times.iter().map(|one| of(one).clone()).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let mut reasons = Vec::new();
    let [kinds, folders, levels] =
        [different(|one| &one.kind), different(|one| &one.folder), different(|one| &one.opt_level)];
    for (what, values) in [("kind", kinds), ("place", folders), ("opt-level", levels)] {
        if values.len() > 1 {
            reasons.push(format!("{what} ({})", values.join(" ")));
        }
    }
    let features = different(|one| &one.features).len();
    if features > 1 {
        reasons.push(format!("{features} feature sets"));
    }
    if reasons.is_empty() {
        reasons.push("features of a dependency, or two versions".to_owned());
    }
    reasons
}

fn sorted<K: Ord, V>(all: BTreeMap<K, V>, by: impl Fn(&V) -> f64) -> Vec<(K, V)> {
    let mut all: Vec<(K, V)> = all.into_iter().collect();
    all.sort_by(|a, b| by(&b.1).total_cmp(&by(&a.1)));
    all
}

fn minutes(seconds: f64) -> String {
    format!("{:.2} min", seconds / 60.0)
}

#[cfg(test)]
#[path = "compilations_tests.rs"]
mod tests;
