//! Benchmarks. `cargo xtask bench NAME` builds this program with the `measure` profile and runs one
//! of them; `--smoke` uses the debug build of the tests.

mod consult;
mod engine;
mod escalations;
mod gate;
mod gateway;
mod load;
mod machine;
mod sandbox;
mod scale;
mod servers;
mod store;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
enum Bench {
    /// Measure wall time, CPU and storage of a consultation, compared with LangGraph
    Consult(consult::Args),
    /// Measure wall time and CPU of debates on Restate, compared with Restate's bare SDK
    Engine(engine::Args),
    /// Run one measured worker of the engine benchmark
    #[command(hide = true)]
    EngineWorker(engine::WorkerArgs),
    /// Measure how much of a project's history is escalated because of its paths, from `git log`
    Escalations,
    /// Measure latency of the gate and of draft writes, compared with `git diff` and a plain write
    Gate(gate::Args),
    /// Measure CPU and memory of a model call through the gateway, compared with the bare HTTP
    /// client
    Gateway(gateway::Args),
    /// Run one measured process of the gateway benchmark
    #[command(hide = true)]
    GatewayClient(gateway::ClientArgs),
    /// Many viewers of one run, and many concurrent runs, on the server
    Load(load::Args),
    /// Measure sandbox latency, compared with the bare engines doing the same work
    Sandbox(sandbox::Args),
    /// Measure time, memory and storage of many concurrent consultations on two workers
    Scale(scale::Args),
    /// Measure commits per second of a PostgreSQL store, compared with SQLite
    Store(store::Args),
}

/// The size of a benchmark run.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Size {
    /// Run the smallest case that uses every part of the benchmark, and check no threshold
    #[arg(long)]
    smoke: bool,
}

impl Size {
    fn pick<T>(self, smoke: T, full: T) -> T {
        if self.smoke { smoke } else { full }
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == sandbox::JAIL) {
        return sandbox::enter_jail(arguments);
    }
    let done = match Bench::parse() {
        Bench::Consult(args) => consult::run(&args),
        Bench::Engine(args) => engine::run(&args),
        Bench::EngineWorker(args) => engine::run_worker(&args),
        Bench::Escalations => escalations::run(),
        Bench::Gate(args) => gate::run(&args),
        Bench::Gateway(args) => gateway::run(&args),
        Bench::GatewayClient(args) => gateway::run_client(&args),
        Bench::Load(args) => load::run(&args),
        Bench::Sandbox(args) => sandbox::run(&args),
        Bench::Scale(args) => scale::run(&args),
        Bench::Store(args) => store::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line of the report. A closed pipe is not an error.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
