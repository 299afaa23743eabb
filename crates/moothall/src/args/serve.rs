//! `moothall serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use moothall_core::access::{Scope, TeamName};
use moothall_core::model::ModelName;

use super::EngineArg;

const SERVE_EXAMPLES: &str = "\
The server listens on this machine only unless told otherwise, and answers whoever opens its link or
has a token of `moothall token create`.
It shows and drives the same runs as every other command. Ctrl-C ends it: runs under way stand
still, and go on when they are resumed, here or with `moothall resume`.

Examples:
  moothall serve --open --model demo
  moothall serve --addr 127.0.0.1:8080
  curl -s -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7777/api/runs
  curl -s -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7777/api/runs \\
    --json '{\"workflow\": \"consult\", \"ticker\": \"HLXI\"}'
  curl -N -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7777/api/runs/RUN/events";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address to listen on; other addresses than this machine's own need `--auth tokens`. Port 0
    /// takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777")]
    pub(crate) addr: SocketAddr,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Who is let in: whoever opens the link that is printed, or has a token (`link`); whoever has a
    /// token (`tokens`); everyone who can reach this machine's own address (`none`)
    #[arg(long, value_name = "WHO", value_enum, default_value_t = AuthArg::Link)]
    pub(crate) auth: AuthArg,
    /// Address under which browsers reach the server, such as https://moothall.example.com, where
    /// something stands in front of it
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Allow a public URL without TLS: tokens and session cookies cross the network unencrypted
    #[arg(long, requires = "public_url")]
    pub(crate) insecure: bool,
    /// Collector that spans are sent to, as OTLP over HTTP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Model for runs that name none, as provider/name, or `demo` [default: from the configuration
    /// or the key that is present]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelName>,
    /// Seconds that an answer of the demonstration takes, so that there is something to watch; 0 is
    /// as fast as it goes
    #[arg(long, value_name = "SECONDS", default_value = "2.5", value_parser = parse_pace)]
    pub(crate) pace: Duration,
    /// Use the recorded filings in this folder and no network
    #[arg(long, value_name = "DIR")]
    pub(crate) offline: Option<PathBuf>,
    /// Offer the committee of this file, too; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) committee: Vec<PathBuf>,
    /// Show the drafts of this folder, for people to review; may be given more than once
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Vec<PathBuf>,
    /// Who reviews without a token [default: whoever is logged in]
    #[arg(long, value_name = "NAME", requires = "workspace")]
    pub(crate) by: Option<String>,
    /// Who drives consultations that are started here: this process (`local`), or the workers of a
    /// Restate cluster (`restate`, or `restate=URL`; see: moothall worker --help)
    #[arg(long, value_name = "ENGINE", default_value = "local")]
    pub(crate) engine: EngineArg,
}

/// Who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthArg {
    Link,
    Tokens,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Address of the server, as `moothall serve` prints it
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:7777")]
    pub(crate) url: String,
    /// The team the browser acts for
    #[arg(long, value_name = "TEAM", default_value = "local")]
    pub(crate) team: TeamName,
    /// What it may do: read, run, review or admin
    #[arg(long, value_name = "SCOPE", default_value = "admin")]
    pub(crate) scope: Scope,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) fn parse_pace(text: &str) -> Result<Duration, String> {
    let wrong = || "a pace is from 0 to 60 seconds, such as 2.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    match (0.0..=60.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(wrong()),
    }
}
