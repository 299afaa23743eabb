//! Development tasks of this repository. Run `cargo xtask ci` before a commit; `.ci/run` is the
//! whole gate.

use std::process::ExitCode;

use clap::Parser;

mod bench;
mod book;
mod chaos;
mod ci;
mod codegen;
mod compilations;
mod dist;
mod fuzz;
mod guest;
mod hits;
mod language;
mod leak;
mod messages;
mod package;
mod race;
mod samples;
mod shell;
mod tidy;
mod tokens;
mod tree;
mod web;

/// Development tasks of this repository
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum XtaskCommand {
    /// Run format, clippy, tests and tidy; with `--changed` only what a change can break
    #[command(alias = "check")]
    Ci(ci::CiArgs),
    /// Check repository rules that no other tool checks: crate edges, core purity, file length,
    /// generated files, links
    Tidy(tidy::TidyArgs),
    /// Write the generated files that are committed
    Codegen,
    /// Build the book into the target directory
    Book,
    /// Show what a gate run compiled, how long it took and what was compiled more than once
    Compilations(compilations::CompilationsArgs),
    /// Run a benchmark of SPECIFICATION.md
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Load the server with many viewers and many concurrent runs (same as `bench load`)
    Load(bench::BenchSize),
    /// Run every fuzz target for a limited time (needs nightly and cargo-fuzz)
    Fuzz(fuzz::FuzzArgs),
    /// Build the release package: program, images, container file, checksums
    Dist(dist::DistArgs),
    /// Write the packages that users install (wheel, npm, deb, rpm, …), all from one binary
    Package(package::PackageArgs),
    /// Build the agent that runs inside sandboxes, as one static file
    Guest,
    /// Run programs in sandboxes, kill their owner repeatedly, and check that nothing is left on
    /// the host
    Leak(leak::LeakArgs),
    /// Measure how much of a long debate the local model reads from its cache
    /// (`MOOTHALL_TEST_LOCAL_MODEL`)
    Hits(hits::HitsArgs),
    /// Apply drafts while links, renames and user edits change the same files
    Race(race::RaceArgs),
    /// Kill consultations repeatedly and check that each result is the same as without kills
    Chaos(chaos::ChaosArgs),
    /// Write the sample results in `samples/`, or check that they are current
    Samples(samples::SamplesArgs),
    /// Build the web UI that is embedded in the product; check it, or test it in a browser
    Web(web::WebArgs),
}

fn main() -> ExitCode {
    let done = match XtaskCommand::parse() {
        XtaskCommand::Ci(args) => ci::run(&args),
        XtaskCommand::Tidy(args) => tidy::run(&args),
        XtaskCommand::Codegen => codegen::run(),
        XtaskCommand::Book => book::run(),
        XtaskCommand::Compilations(args) => compilations::run(&args),
        XtaskCommand::Bench(bench) => bench::run(&bench),
        XtaskCommand::Load(length) => bench::run(&bench::BenchCommand::Load(length)),
        XtaskCommand::Fuzz(args) => fuzz::run(&args),
        XtaskCommand::Dist(args) => dist::run(&args),
        XtaskCommand::Package(args) => package::run(&args),
        XtaskCommand::Guest => guest::run(),
        XtaskCommand::Leak(args) => leak::run(&args),
        XtaskCommand::Hits(args) => hits::run(&args),
        XtaskCommand::Race(args) => race::run(&args),
        XtaskCommand::Chaos(args) => chaos::run(&args),
        XtaskCommand::Samples(args) => samples::run(&args),
        XtaskCommand::Web(args) => web::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
