//! Load on the server: many viewers of one run, and many concurrent runs.
//!
//! The product is started as a user starts it. Every viewer checks what it is sent: numbers without
//! a gap, none twice, to the last event. One viewer never reads its events, and no other viewer may
//! notice. Latency is from the time of the commit, which stands in the event, to the moment a viewer
//! has it; all of them are on this machine, and so is the model, which answers at a pace.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args as ClapArgs;
use moothall_store::now_ms;
use reqwest::Client;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::servers::{Server, committed_ms};
use crate::{Size, machine, say};

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
    /// Use this `moothall` binary
    #[arg(long)]
    program: PathBuf,
}

struct Load {
    viewers: usize,
    runs: usize,
    /// Maximum 99th percentile of the event latency.
    p99: Duration,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let load = args.size.pick(
        Load { viewers: 50, runs: 4, p99: Duration::MAX },
        Load { viewers: 2_000, runs: 200, p99: Duration::from_secs(3) },
    );
    say(&format!("load benchmark on {}", machine::description()));
    open_many_files()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let server = Server::start(&args.program, folder.path(), "2.5", &[])?;
        one_run(&server, &load).await?;
        drop(server);
        let folder = tempfile::tempdir()?;
        let server = Server::start(&args.program, folder.path(), "2.5", &[])?;
        many_runs(&server, &load).await
    })
}

/// Measures many viewers of one run.
async fn one_run(server: &Server, load: &Load) -> Result<()> {
    let before = server.resident_bytes()?;
    let run = server.begin(json!({"workflow": "consult", "ticker": "HLXI", "verdict": "off", "isolation": "none", "moves": 15, "rounds": 4})).await?;
    // A viewer that never reads its events.
    let mut idle_client = TcpStream::connect(server.address()).await?;
    let request =
        format!("GET /api/runs/{run}/events HTTP/1.1\r\nhost: {}\r\n\r\n", server.address());
    idle_client.write_all(request.as_bytes()).await?;
    let mut viewers = JoinSet::new();
    for _ in 0..load.viewers {
        let (client, url) = (server.client.clone(), server.events(&run));
        viewers.spawn(async move { view(&client, &url).await });
    }
    let mut most = before;
    let mut seen = Vec::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    while !viewers.is_empty() {
        tokio::select! {
            Some(ended) = viewers.join_next() => seen.push(ended??),
            _ = ticks.tick() => most = most.max(server.resident_bytes()?),
        }
    }
    drop(idle_client);
    let events = seen.first().map_or(0, |seen| seen.events);
    ensure!(seen.iter().all(|seen| seen.events == events), "viewers saw different runs");
    let latency = Latency::of(seen.into_iter().flat_map(|seen| seen.latencies).collect());
    let each = most.saturating_sub(before) / load.viewers as u64;
    say(&format!(
        "{} viewers of one run: {events} events each, none lost, doubled or out of order; latency \
         {latency}; {} KiB of the server for each viewer",
        load.viewers,
        each / 1024
    ));
    latency.within(load.p99)
}

/// Many concurrent runs, each with a viewer. Debates run in the process (class `none`).
async fn many_runs(server: &Server, load: &Load) -> Result<()> {
    let began = Instant::now();
    let mut viewers = JoinSet::new();
    for _ in 0..load.runs {
        let run = server.begin(json!({"workflow": "consult", "ticker": "HLXI", "verdict": "off", "isolation": "none", "moves": 2, "rounds": 3})).await?;
        let (client, url) = (server.client.clone(), server.events(&run));
        viewers.spawn(async move { view(&client, &url).await });
    }
    let started = began.elapsed();
    let mut latencies = Vec::new();
    let mut events = 0;
    while let Some(ended) = viewers.join_next().await {
        let seen = ended??;
        events += seen.events;
        latencies.extend(seen.latencies);
    }
    let latency = Latency::of(latencies);
    say(&format!(
        "{} runs, started within {:.1} s, all over after {:.1} s: {events} events, none lost, \
         doubled or out of order; latency {latency}",
        load.runs,
        started.as_secs_f64(),
        began.elapsed().as_secs_f64(),
    ));
    latency.within(load.p99)
}

/// The events that a viewer received.
struct Seen {
    events: u64,
    latencies: Vec<u32>,
}

/// Follows a run to its end and checks every event number.
async fn view(client: &Client, url: &str) -> Result<Seen> {
    let mut answer = client.get(url).send().await.context("a viewer cannot connect")?;
    ensure!(answer.status().is_success(), "a viewer is answered with {}", answer.status());
    let connected = now_ms();
    let mut seen = Seen { events: 0, latencies: Vec::new() };
    let mut rest = Vec::new();
    let mut ended = false;
    while let Some(bytes) = answer.chunk().await.context("a stream broke off")? {
        rest.extend_from_slice(&bytes);
        // Only complete frames; the rest of the last one arrives later.
        let complete = rest.windows(2).rposition(|two| two == b"\n\n").map_or(0, |end| end + 2);
        for frame in std::str::from_utf8(&rest[..complete])?.split("\n\n") {
            let Some(seq) = frame.strip_prefix("id: ").and_then(|rest| rest.split('\n').next())
            else {
                continue;
            };
            let seq: u64 = seq.parse()?;
            ensure!(seq == seen.events + 1, "event {seq} came after event {}", seen.events);
            ensure!(!ended, "an event came after the last one");
            seen.events = seq;
            ended = frame.contains("\nevent: pipeline_complete\n");
            let at = frame.split("\"at\":\"").nth(1).and_then(|rest| rest.split('"').next());
            let at = committed_ms(at.unwrap_or_default())?;
            // Events from before the connection have no latency.
            if at >= connected {
                seen.latencies.push(u32::try_from(now_ms().saturating_sub(at)).unwrap_or(u32::MAX));
            }
        }
        rest.drain(..complete);
    }
    ensure!(ended, "a stream ended after event {} and before its run", seen.events);
    Ok(seen)
}

/// Latencies in milliseconds, sorted.
struct Latency(Vec<u32>);

impl Latency {
    fn of(mut all: Vec<u32>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    fn at(&self, percent: usize) -> u32 {
        let last = self.0.len().saturating_sub(1);
        self.0.get(last * percent / 100).copied().unwrap_or_default()
    }

    fn within(&self, p99: Duration) -> Result<()> {
        ensure!(!self.0.is_empty(), "nobody saw anything happen");
        let found = Duration::from_millis(u64::from(self.at(99)));
        ensure!(found <= p99, "the p99 is {found:?}, and may be {p99:?}");
        Ok(())
    }
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {} ms, p99 {} ms, highest {} ms", self.at(50), self.at(99), self.at(100))
    }
}

/// Raises the limit of open files, because every connection uses one.
fn open_many_files() -> Result<()> {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;
    Ok(())
}
