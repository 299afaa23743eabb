//! Arguments of `serve` and `login`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use moothall_core::access::{AccessScope, TeamName};
use moothall_core::model::ModelList;

use super::RunnerArg;

const SERVE_EXAMPLES: &str = "\
By default the server is reachable only from this machine. Sign in with the printed link or with a
token from `moothall token create`.
The server shows and executes the same runs as all other commands. Ctrl-C stops it: active runs are
paused and can be resumed here or with `moothall resume`.

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
    /// Listen on this address; non-loopback addresses need `--auth tokens`, and port 0 picks a free
    /// port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777")]
    pub(crate) addr: SocketAddr,
    /// Open the web UI in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Choose who has access: the printed sign-in link or a token (`link`), a token only
    /// (`tokens`), or everyone who can reach the loopback address (`none`)
    #[arg(long, value_name = "WHO", value_enum, default_value_t = AuthArg::Link)]
    pub(crate) auth: AuthArg,
    /// Set the URL that browsers use, such as https://moothall.example.com, if the server is behind
    /// a proxy
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Allow a public URL without TLS: tokens and session cookies cross the network unencrypted
    #[arg(long, requires = "public_url")]
    pub(crate) insecure: bool,
    /// Use this model for runs that do not name one, as provider/name, or `demo`; after a comma,
    /// models to use when it is unavailable [default: from the configuration or the available API
    /// key]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelList>,
    /// Delay each answer of the demo model by this many seconds, so that runs can be watched; 0
    /// disables the delay
    #[arg(long, value_name = "SECONDS", default_value = "2.5", value_parser = parse_pace)]
    pub(crate) pace: Duration,
    /// Use the recorded filings in this directory instead of the network
    #[arg(long, value_name = "DIR")]
    pub(crate) offline: Option<PathBuf>,
    /// Also offer the committee in this file or directory (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) committee: Vec<PathBuf>,
    /// Offer the drafts of this workspace directory for review (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Vec<PathBuf>,
    /// Record this reviewer name for decisions made without a token [default: your login name]
    #[arg(long, value_name = "NAME", requires = "workspace")]
    pub(crate) by: Option<String>,
    /// Choose who executes runs started here: this process (`local`), or the workers of a Restate
    /// cluster (`restate` or `restate=URL`; see: moothall worker --help)
    #[arg(long = "runner", alias = "engine", value_name = "RUNNER", default_value = "local")]
    pub(crate) runner: RunnerArg,
}

/// Access control of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthArg {
    Link,
    Tokens,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// URL of the server, as printed by `moothall serve`
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:7777")]
    pub(crate) url: String,
    /// Sign in for this team
    #[arg(long, value_name = "TEAM", default_value = "local")]
    pub(crate) team: TeamName,
    /// Grant this scope: read, run, review or admin
    #[arg(long, value_name = "SCOPE", default_value = "admin")]
    pub(crate) scope: AccessScope,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn parse_pace(text: &str) -> Result<Duration, String> {
    let wrong = || "expected 0 to 60 seconds, such as 2.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    match (0.0..=60.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(wrong()),
    }
}
