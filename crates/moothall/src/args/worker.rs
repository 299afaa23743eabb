//! `moothall worker`, and which engine drives a run.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use moothall_restate::Build;

use super::serve::parse_pace;

/// Where Restate takes requests, unless somebody says otherwise.
const INGRESS: &str = "http://127.0.0.1:8080";

/// Where it is administered.
const ADMIN: &str = "http://127.0.0.1:9070";

const WORKER_EXAMPLES: &str = "\
Restate connects to workers, not the other way round: it must reach `--listen`, or `--url` if there
is a proxy. Several workers on one machine can share an address. Each build needs its own address:
a run ends on the build that started it.

All workers share one store, and each has its own API keys. On SIGTERM a worker finishes the steps
it is running and leaves the rest to other workers. Other machines can reach a worker only with
`--identity-key`.

Examples:
  moothall worker --register
  moothall worker --listen 127.0.0.1:9081 --register http://127.0.0.1:9070
  moothall consult HLXI --model demo --isolation none --engine restate";

#[derive(Debug, Args)]
#[command(after_help = WORKER_EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// Address where Restate sends work
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    pub(crate) listen: SocketAddr,
    /// Tell Restate, at the address where it is administered, that this build has workers here
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = ADMIN)]
    pub(crate) register: Option<String>,
    /// Address under which Restate reaches this worker [default: the one that it listens on]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Name of this build, by which Restate keeps runs together; workers of one build share it
    /// [default: the beginning of the program's SHA-256]
    #[arg(long, value_name = "NAME")]
    pub(crate) build: Option<Build>,
    /// Serve nobody but the Restate with this public key, such as publickeyv1_…
    #[arg(long, value_name = "KEY")]
    pub(crate) identity_key: Option<String>,
    /// Seconds that an answer of the demonstration takes
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_pace)]
    pub(crate) pace: Duration,
}

/// Who drives a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EngineArg {
    /// This process.
    Local,
    /// Workers of the Restate at this address.
    Restate(String),
}

impl EngineArg {
    /// Where the Restate is, if workers drive.
    pub(crate) fn restate(&self) -> Option<String> {
        match self {
            Self::Local => None,
            Self::Restate(url) => Some(url.clone()),
        }
    }
}

impl FromStr for EngineArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = match text {
            "local" => return Ok(Self::Local),
            "restate" => INGRESS,
            _ => text.strip_prefix("restate=").ok_or("it is local, restate or restate=URL")?,
        };
        let is_address = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        match url.split(',').all(is_address) {
            true => Ok(Self::Restate(url.trim_end_matches('/').to_owned())),
            false => Err(format!("an address such as {INGRESS} follows `restate=`")),
        }
    }
}
