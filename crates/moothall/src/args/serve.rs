//! `moothall serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use moothall_core::model::ModelName;

const SERVE_EXAMPLES: &str = "\
The server listens on this machine only, and answers pages of its own and programs on this machine.
It shows and drives the same runs as every other command. Ctrl-C ends it: runs under way stand
still, and go on when they are resumed, here or with `moothall resume`.

Examples:
  moothall serve --open --model demo
  moothall serve --addr 127.0.0.1:8080
  curl -s http://127.0.0.1:7777/api/runs
  curl -s http://127.0.0.1:7777/api/runs --json '{\"workflow\": \"consult\", \"ticker\": \"HLXI\"}'
  curl -N http://127.0.0.1:7777/api/runs/RUN/events";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address to listen on; only addresses of this machine itself. Port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777")]
    pub(crate) addr: SocketAddr,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
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
}

fn parse_pace(text: &str) -> Result<Duration, String> {
    let wrong = || "a pace is from 0 to 60 seconds, such as 2.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    match (0.0..=60.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(wrong()),
    }
}
