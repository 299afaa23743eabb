//! Arguments of `calls`.

use clap::{Args, ValueEnum};
use moothall_core::view::CallResult;

const CALLS_EXAMPLES: &str = "\
Calls are listed in the order in which they finished. START counts from the first call of the run,
QUEUED is the time a call waited for its start, and LENGTH includes rate limits and repeated
attempts. A prompt is not stored: it is rebuilt from the journal and compared with its hash.

Examples:
  moothall calls 019a85c0-2f6e
  moothall calls 019a85c0-2f6e --role critic --move m7
  moothall calls 019a85c0-2f6e --result rejected
  moothall calls 019a85c0-2f6e --sort cost --limit 10
  moothall calls 019a85c0-2f6e m7/round-3/D2
  moothall calls 019a85c0-2f6e --jsonl > calls.jsonl";

#[derive(Debug, Args)]
#[command(after_help = CALLS_EXAMPLES)]
pub(crate) struct CallsArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Show only this call, with its prompt and answer
    #[arg(value_name = "CALL", conflicts_with_all = ["role", "stage", "move_id", "round", "call_model", "result", "retries", "text", "sort", "limit", "jsonl"])]
    pub(crate) call: Option<String>,
    /// Show only calls of this role or member, such as critic, analysts or D2
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// Show only calls of this stage, such as debate or write
    #[arg(long, value_name = "STAGE")]
    pub(crate) stage: Option<String>,
    /// Show only calls about this move
    #[arg(long = "move", value_name = "MOVE")]
    pub(crate) move_id: Option<String>,
    /// Show only calls of this round of a debate, or attempt of a program or an edit
    #[arg(long, value_name = "N")]
    pub(crate) round: Option<u32>,
    /// Show only calls to this model
    #[arg(long = "model", value_name = "MODEL", id = "call_model")]
    pub(crate) model: Option<String>,
    /// Show only calls with this result: used, degraded, rejected or failed
    #[arg(long, value_name = "RESULT")]
    pub(crate) result: Option<CallResult>,
    /// Show only retries and calls without an answer
    #[arg(long)]
    pub(crate) retries: bool,
    /// Show only calls with this text in their name, reason or answer
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Sort the calls; all but `time` put the largest first
    #[arg(long, value_enum, value_name = "KEY", default_value_t = CallSortArg::Time)]
    pub(crate) sort: CallSortArg,
    /// Show at most this many calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Print one JSON object: calls and sums
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Print one JSON object per call and line
    #[arg(long)]
    pub(crate) jsonl: bool,
}

/// Orders of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallSortArg {
    Time,
    Length,
    Cost,
    Tokens,
}
