//! Arguments of `worker`, and the choice of engine for a run.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use moothall_restate::WorkerBuild;

use super::serve::parse_pace;

/// Default ingress URL of Restate.
const INGRESS: &str = "http://127.0.0.1:8080";

/// Default admin URL of Restate.
const ADMIN: &str = "http://127.0.0.1:9070";

const WORKER_EXAMPLES: &str = "\
Restate connects to workers, not the other way round: it must be able to reach `--listen`, or
`--url` if there is a proxy. Several workers on one machine can share an address. Each build needs
its own address: a run finishes on the build that started it.

All workers share one store, and each has its own API keys. On SIGTERM a worker finishes the steps
in progress and leaves the rest to other workers. To accept connections from other machines, a
worker needs `--identity-key`.

Examples:
  moothall worker --register
  moothall worker --listen 127.0.0.1:9081 --register http://127.0.0.1:9070
  moothall consult HLXI --model demo --isolation none --runner restate";

#[derive(Debug, Args)]
#[command(after_help = WORKER_EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// Listen for Restate on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    pub(crate) listen: SocketAddr,
    /// Register this build with Restate, at the given admin URL
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = ADMIN)]
    pub(crate) register: Option<String>,
    /// Set the URL where Restate reaches this worker [default: the listen address]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Name this build; Restate keeps a run on one build, and its workers share the name [default:
    /// a prefix of the program's SHA-256]
    #[arg(long, value_name = "NAME")]
    pub(crate) build: Option<WorkerBuild>,
    /// Accept only requests signed by the Restate with this public key, such as publickeyv1_…
    #[arg(long, value_name = "KEY")]
    pub(crate) identity_key: Option<String>,
    /// Delay each answer of the demo model by this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_pace)]
    pub(crate) pace: Duration,
}

/// The process that executes a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunnerArg {
    /// This process.
    Local,
    /// Workers of the Restate cluster at this URL.
    Restate(String),
}

impl RunnerArg {
    /// URL of the Restate cluster, if workers execute the run.
    pub(crate) fn restate(&self) -> Option<String> {
        match self {
            Self::Local => None,
            Self::Restate(url) => Some(url.clone()),
        }
    }
}

impl FromStr for RunnerArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = match text {
            "local" => return Ok(Self::Local),
            "restate" => INGRESS,
            _ => text.strip_prefix("restate=").ok_or("expected local, restate or restate=URL")?,
        };
        let is_address = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        match url.split(',').all(is_address) {
            true => Ok(Self::Restate(url.trim_end_matches('/').to_owned())),
            false => Err(format!("expected a URL such as {INGRESS} after `restate=`")),
        }
    }
}
