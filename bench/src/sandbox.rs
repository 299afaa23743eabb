//! Compares the cost of sandboxes with the bare engines doing the same work, and measures how much
//! templates and pools save.
//!
//! Everything is measured in one run, in pairs of bare and ours, one directly after the other.
//! "Ours" is what every caller gets: records, limits, the agent, and for QEMU the jail. "Bare" is
//! the engine alone: `runc run` and `runsc run` of the same bundle with the program instead of the
//! agent, and the same QEMU command line with a plain socket to the agent.

mod bare_container;
mod bare_machine;
mod measurements;
mod setup;
mod times;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use moothall_sandbox::{SandboxEngine as _, jail};

use self::measurements::Plan;
use self::setup::World;
pub(crate) use self::setup::{images, target};
use self::times::{Pairs, Times};
use crate::{Size, machine, say};

/// The hidden command with which this program runs QEMU in the jail.
pub(crate) const JAIL: &str = "jail";

/// The promises of SPECIFICATION.md.
const MAX_BARE_RATIO: f64 = 1.25;
const MIN_CLONE_SPEEDUP: f64 = 15.0;
const MAX_HAND_OVER_MS: f64 = 5.0;
const MAX_SECOND_PROCESS_MS: f64 = 1500.0;
const MAX_SERVER_MS: f64 = 200.0;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
    /// Use this `moothall` binary to measure the duration of a whole command
    #[arg(long, value_name = "FILE")]
    moothall: PathBuf,
}

/// Implements [`JAIL`]: enters the jail and executes the hypervisor.
pub(crate) fn enter_jail(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Err(error) = jail::enter(arguments);
    let _ = writeln!(std::io::stderr(), "error: {}", error.failure().detail);
    ExitCode::FAILURE
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let plan = args.size.pick(Plan::SMOKE, Plan::FULL);
    tokio::runtime::Runtime::new()?.block_on(measure(&plan, args))
}

/// Prints the report and collects the thresholds that are not met.
struct Report {
    broken: Vec<String>,
}

async fn measure(plan: &Plan, args: &Args) -> Result<()> {
    let world = World::open().await?;
    say(&format!("sandbox benchmark on {}", machine::description()));
    say(&format!(
        "python `print(1)`, default limits; microvm is {}, runsc {}, runc {}; load before: {}",
        world.microvm.version(),
        world.runsc.version(),
        world.runc.version(),
        load(),
    ));
    say("");
    let mut report = Report { broken: Vec::new() };
    report.head();

    let runc = measurements::containers(&world, &world.runc, plan.runc).await?;
    report.pairs("runc: new sandbox to result", &runc);
    let runsc = measurements::containers(&world, &world.runsc, plan.runsc).await?;
    report.pairs("runsc: new sandbox to result", &runsc);
    let machines = measurements::machines(&world, plan).await?;
    report.pairs("microvm: boot to first answer", &machines.boot_answer);
    report.pairs("microvm: boot to result", &machines.boot_result);
    report.pairs("microvm: clone to first answer", &machines.clone_answer);
    report.pairs("microvm: clone to result", &machines.clone_result);
    for (name, engine, count) in [
        ("microvm", world.cloned(), plan.microvm_hand_overs),
        ("runsc", Arc::clone(&world.runsc), plan.runsc_hand_overs),
    ] {
        let pooled = measurements::pooled(&world, engine, count, plan.pooled_results).await?;
        report.at_most(
            &format!("{name}: hand-over from the pool"),
            &pooled.hand_over,
            99,
            MAX_HAND_OVER_MS,
        );
        report.line(&format!("{name}: pooled, to result"), &pooled.result, None, "");
    }
    let second = measurements::second_process(&world, &args.moothall, plan.second_process).await?;
    report.at_most("`moothall exec`, new process", &second, 95, MAX_SECOND_PROCESS_MS);
    let (servers, programs) = (plan.servers, plan.server_programs);
    for engine in ["runsc", "microvm"] {
        let moothall = &args.moothall;
        let server =
            measurements::through_server(&world, moothall, engine, servers, programs).await?;
        report.line(&format!("serve, {engine}: first program"), &server.cold, None, "");
        let later = format!("serve, {engine}: later programs");
        match engine {
            "runsc" => report.at_most(&later, &server.warm, 50, MAX_SERVER_MS),
            // Limited by the emulated CPU.
            _ => report.line(&later, &server.warm, None, ""),
        }
    }

    say("");
    let faster = machines.boot_answer.ours.p50() / machines.clone_answer.ours.p50();
    say(&format!(
        "a clone answers {faster:.1} times sooner than a boot (promise: at least {MIN_CLONE_SPEEDUP})"
    ));
    report.expect(faster >= MIN_CLONE_SPEEDUP, "a clone is not fast enough");
    for (name, engine, count) in [
        ("microvm", world.cloned(), plan.microvm_at_once),
        ("runsc", Arc::clone(&world.runsc), plan.runsc_at_once),
        ("runc", Arc::clone(&world.runc), plan.runc_at_once),
    ] {
        if count > 0 {
            let took = measurements::at_once(&world, engine, count).await?.as_secs_f64();
            say(&format!(
                "{count} at once on {name}, 2 GiB for all: none failed, {took:.1} s in all, {:.1} a second",
                f64::from(count) / took
            ));
        }
    }
    say(&format!("load after: {}", load()));
    if report.broken.is_empty() || args.size.smoke {
        return Ok(());
    }
    bail!("thresholds not met: {}", report.broken.join("; "))
}

impl Report {
    fn head(&self) {
        say(&row(["milliseconds", "n", "p50", "p95", "p99", "bare p50", "ratio", "promise"]));
        say(&row(["---", "---:", "---:", "---:", "---:", "---:", "---:", "---"]));
    }

    fn line(&self, name: &str, times: &Times, against: Option<&Pairs>, promise: &str) {
        let number = |percent| format!("{:.1}", times.percentile(percent));
        let (bare, ratio) = match against {
            Some(pairs) => (format!("{:.1}", pairs.bare.p50()), format!("{:.2}", pairs.ratio())),
            None => (String::new(), String::new()),
        };
        say(&row([
            name,
            &times.count().to_string(),
            &number(50),
            &number(95),
            &number(99),
            &bare,
            &ratio,
            promise,
        ]));
    }

    fn pairs(&mut self, name: &str, pairs: &Pairs) {
        let promise = format!("ratio at most {MAX_BARE_RATIO}");
        self.line(name, &pairs.ours, Some(pairs), &promise);
        let ratio = pairs.ratio();
        self.expect(ratio <= MAX_BARE_RATIO, &format!("{name}: {ratio:.2} times bare"));
    }

    fn at_most(&mut self, name: &str, times: &Times, percent: usize, most_ms: f64) {
        // With few samples, the slowest one depends more on the machine than on our code.
        let percent = if times.count() < 100 { percent.min(95) } else { percent };
        self.line(name, times, None, &format!("p{percent} at most {most_ms} ms"));
        let found = times.percentile(percent);
        self.expect(found <= most_ms, &format!("{name}: {found:.1} ms"));
    }

    fn expect(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.broken.push(otherwise.to_owned());
        }
    }
}

/// A table row, aligned for terminals and valid in Markdown.
fn row(cells: [&str; 8]) -> String {
    let [name, n, p50, p95, p99, bare, ratio, promise] = cells;
    format!(
        "| {name:<32} | {n:>4} | {p50:>8} | {p95:>8} | {p99:>8} | {bare:>8} | {ratio:>5} | {promise:<19} |"
    )
}

/// The load average of the machine.
fn load() -> String {
    let text = fs_err::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// The command line of a running process.
fn command_line(pid: i32) -> Result<Vec<String>> {
    let bytes = fs_err::read(format!("/proc/{pid}/cmdline"))?;
    let arguments = String::from_utf8(bytes)?;
    Ok(arguments.trim_end_matches('\0').split('\0').map(ToOwned::to_owned).collect())
}
