//! The project's own tasks. `cargo xtask ci` is what to run before a commit; `.ci/run` is the whole
//! gate.

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
mod leak;
mod race;
mod shell;
mod tidy;
mod tokens;
mod tree;
mod web;

/// The project's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Run format, clippy, tests and tidy; with `--changed` only what a change can break
    #[command(alias = "check")]
    Ci(ci::Args),
    /// House rules that no other tool checks: crate edges, core's purity, file length, fresh files,
    /// links.
    Tidy(tidy::Args),
    /// Writes the generated files that are committed.
    Codegen,
    /// Builds the book into the target folder.
    Book,
    /// Show what a gate run compiled, how long it took and what was compiled more than once
    Compilations(compilations::Args),
    /// Measures a promise of SPECIFICATION.md.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Many viewers of one run, and many runs at once, on the server; the same as `bench load`.
    Load(bench::Length),
    /// Runs every fuzz target for a while (needs nightly and cargo-fuzz).
    Fuzz(fuzz::Args),
    /// Makes what a user downloads: program, images, container file, hashes.
    Dist(dist::Args),
    /// Builds the agent that runs inside sandboxes, as one static file.
    Guest,
    /// Executes programs in sandboxes while their owner is killed again and again; nothing may stay.
    Leak(leak::Args),
    /// Counts what a long debate reads from the local model's cache (`MOOTHALL_TEST_LOCAL_MODEL`).
    Hits(hits::Args),
    /// Race drafts against links, renames and people who save
    Race(race::Args),
    /// Kills consultations again and again; every one must end as if nobody had touched it.
    Chaos(chaos::Args),
    /// Builds the web interface that is embedded in the product; checks it, or tries it in a browser.
    Web(web::Args),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Ci(args) => ci::run(&args),
        Task::Tidy(args) => tidy::run(&args),
        Task::Codegen => codegen::run(),
        Task::Book => book::run(),
        Task::Compilations(args) => compilations::run(&args),
        Task::Bench(bench) => bench::run(&bench),
        Task::Load(length) => bench::run(&bench::Bench::Load(length)),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Dist(args) => dist::run(&args),
        Task::Guest => guest::run(),
        Task::Leak(args) => leak::run(&args),
        Task::Hits(args) => hits::run(&args),
        Task::Race(args) => race::run(&args),
        Task::Chaos(args) => chaos::run(&args),
        Task::Web(args) => web::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
