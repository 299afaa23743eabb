//! Compares the cost of the gateway with the bare HTTP client: CPU per call with many concurrent
//! calls, and memory per waiting call.
//!
//! The fake provider runs in this process. Every measurement runs in a separate process, so the
//! kernel's numbers cover only the client. Both clients send the same bytes and read the same
//! responses.

mod client;

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub(crate) use self::client::{ClientArgs, run as run_client};
use crate::{Size, machine, say};

/// The promises of SPECIFICATION.md.
const CPU_RATIO: f64 = 1.5;
const BYTES_PER_WAITING_CALL: f64 = 16.0 * 1024.0;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// reqwest alone: bytes out, bytes in
    Bare,
    /// The gateway: budget, rate limits, encoding, decoding, checks, billing
    Gateway,
    /// The gateway with one slot: all calls but one wait for it without a connection
    GatewayQueued,
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Gateway => "gateway",
            Self::GatewayQueued => "gateway-queued",
        }
    }
}

struct Plan {
    at_once: u32,
    calls_each: u32,
    repeats: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let plan = args.size.pick(
        Plan { at_once: 100, calls_each: 5, repeats: 1 },
        Plan { at_once: 1000, calls_each: 50, repeats: 9 },
    );
    tokio::runtime::Runtime::new()?.block_on(measure(&plan, args.size))
}

async fn measure(plan: &Plan, size: Size) -> Result<()> {
    let server = FakeProvider::start().await?;
    server.keep_only_totals();
    say(&format!("gateway benchmark on {}", machine::description()));
    say(&format!(
        "{} calls at once, {} each, middle of {} pairs of runs; OpenAI wire, 4 KiB prompt, loopback",
        plan.at_once, plan.calls_each, plan.repeats
    ));

    server.always(
        ProviderBehaviour::text("The board asks for a second opinion. ".repeat(10))
            .with_latency(Duration::from_millis(20)),
    );
    // Measured in pairs, using the median of their ratios: other load on the machine affects both
    // of a pair about equally.
    let mut pairs = Vec::new();
    for _ in 0..plan.repeats {
        let bare = cpu_per_call(&server, Subject::Bare, plan).await?;
        pairs.push((bare, cpu_per_call(&server, Subject::Gateway, plan).await?));
    }
    pairs.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let (bare, gateway) = pairs[pairs.len() / 2];
    let ratio = gateway / bare;
    say(&format!(
        "CPU per call            bare {bare:>8.1} µs   gateway {gateway:>8.1} µs   ratio {ratio:.2} (promise: at most {CPU_RATIO})"
    ));

    server.always(ProviderFault::Hang);
    let bare = bytes_per_waiting_call(&server, Subject::Bare, plan).await?;
    let gateway = bytes_per_waiting_call(&server, Subject::Gateway, plan).await?;
    let queued = bytes_per_waiting_call(&server, Subject::GatewayQueued, plan).await?;
    let beyond = gateway - bare;
    say(&format!(
        "memory per waiting call bare {:>8.1} KiB  gateway {:>8.1} KiB  beyond bare {:.1} KiB (promise: at most {:.0} KiB)",
        bare / 1024.0,
        gateway / 1024.0,
        beyond / 1024.0,
        BYTES_PER_WAITING_CALL / 1024.0,
    ));
    say(&format!(
        "memory per queued call  {:.1} KiB (waiting for a slot, not connected)",
        queued / 1024.0
    ));

    if !size.smoke && (ratio > CPU_RATIO || beyond > BYTES_PER_WAITING_CALL) {
        bail!("a threshold is not met");
    }
    Ok(())
}

/// CPU time per call, in microseconds.
async fn cpu_per_call(server: &FakeProvider, subject: Subject, plan: &Plan) -> Result<f64> {
    let mut child = start(server, subject, plan.at_once, plan.calls_each)?;
    let pid = child.id().context("the client is gone")?;
    let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    // The client prints `ready` after its first round, when all connections exist, and `done` at
    // the end; then it waits to be killed.
    expect(&mut lines, "ready").await?;
    let before = machine::cpu_time(pid)?;
    expect(&mut lines, "done").await?;
    let used = machine::cpu_time(pid)? - before;
    child.kill().await?;
    Ok(used.as_secs_f64() * 1e6 / f64::from(plan.at_once * plan.calls_each))
}

/// Memory per call that waits for its response, in bytes.
async fn bytes_per_waiting_call(
    server: &FakeProvider,
    subject: Subject,
    plan: &Plan,
) -> Result<f64> {
    let mut child = start(server, subject, plan.at_once, 0)?;
    let pid = child.id().context("the client is gone")?;
    let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    expect(&mut lines, "idle").await?;
    let before = machine::resident_bytes(pid)?;
    let expected = if subject == Subject::GatewayQueued { 1 } else { u64::from(plan.at_once) };
    for _ in 0..300 {
        if server.stats().in_flight >= expected {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Gives the last calls time to become idle.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let waiting = server.stats().in_flight;
    if waiting != expected {
        bail!("{waiting} calls wait at the server instead of {expected}");
    }
    let after = machine::resident_bytes(pid)?;
    child.kill().await?;
    while server.stats().in_flight > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(after.saturating_sub(before) as f64 / f64::from(plan.at_once))
}

fn start(server: &FakeProvider, subject: Subject, at_once: u32, calls_each: u32) -> Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("gateway-client")
        .args(["--subject", subject.name(), "--url", &server.base_url(ProviderProtocol::OpenAi)])
        .args(["--at-once", &at_once.to_string(), "--calls-each", &calls_each.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("the client cannot start")
}

async fn expect(
    lines: &mut tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
    word: &str,
) -> Result<()> {
    match lines.next_line().await?.as_deref() {
        Some(line) if line == word => Ok(()),
        other => bail!("the client said {other:?} instead of {word:?}"),
    }
}
