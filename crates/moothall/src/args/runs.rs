//! Arguments of commands that work on stored runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use moothall_core::MicroUsd;
use moothall_models::Budget;
use moothall_store::RunState;

const RUNS_EXAMPLES: &str = "\
Examples:
  moothall runs --state paused
  moothall runs rm 019a85c0-2f6e 019a85c1-2f6e
  moothall runs prune --older-than 30d --keep 10 --dry-run";

#[derive(Debug, Args)]
#[command(after_help = RUNS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// Show only runs in this state: running, paused, finished, failed or cancelled
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<RunState>,
    /// Show at most this many runs, newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Delete runs permanently, with their answers, events and files
    Rm(RemoveArgs),
    /// Delete runs older than a given age
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Run ids or unique prefixes
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) how: DeleteFlags,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Delete runs that have not changed for this long, such as 30d, 12h or 6months
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub(crate) older_than: Duration,
    /// Keep this many of the newest runs, regardless of their age
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) keep: usize,
    /// List the runs that would be deleted, without deleting them
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) how: DeleteFlags,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteFlags {
    /// Also delete paused or interrupted runs that could be resumed; a run that is being executed
    /// is never deleted
    #[arg(long)]
    pub(crate) force: bool,
    /// Skip the confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  moothall show 019a85c0-2f6e
  moothall show 019a85c0-2f6e --memo > memo.md
  moothall show 019a85c0-2f6e --move m7
  moothall show 019a85c0-2f6e --move m7 --thread D2";

#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print only the last generated program (`run`)
    #[arg(long, conflicts_with = "json")]
    pub(crate) code: bool,
    /// Print only the memo, as Markdown (`consult`)
    #[arg(long, conflicts_with_all = ["json", "code"])]
    pub(crate) memo: bool,
    /// Print only this move and its results (`consult`)
    #[arg(long = "move", value_name = "MOVE", conflicts_with_all = ["memo", "code"])]
    pub(crate) move_id: Option<String>,
    /// Print the debate of that move with this decision maker (`consult`)
    #[arg(long, value_name = "D", requires = "move_id")]
    pub(crate) thread: Option<String>,
    /// Write all documents to this directory: facts, inferences, moves, debates, scores (`consult`)
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    /// Write the receipt to this file (see: moothall verify)
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write the files created by the last program to this directory (`run`)
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Wait for new events until the run ends; Ctrl-C stops waiting, not the run
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Start at this event number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from: u64,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const APPROVE_EXAMPLES: &str = "\
Without `--move`, all moves that need approval are approved.

Examples:
  moothall approve 019a85c0-2f6e
  moothall approve 019a85c0-2f6e --verdict --note \"order agrees with our own review\"
  moothall approve 019a85c0-2f6e --move m7 --note \"the 10-K/A has the corrected figure\"";

#[derive(Debug, Args)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ApproveArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Approve only this move [default: all moves that need approval]
    #[arg(long = "move", value_name = "MOVE")]
    pub(crate) move_id: Option<String>,
    /// Approve the verdict of a panel that failed its controls; the warning stays
    #[arg(long, conflicts_with = "move_id")]
    pub(crate) verdict: bool,
    /// Record this name with the approval [default: your login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Give a reason
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  moothall resume 019a85c0-2f6e
  moothall resume 019a85c0-2f6e --budget 0.50";

#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Limit the cost of the whole run, in dollars, including what is already spent
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// Limit the tokens of the whole run, including those already used
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Write the receipt to this file (see: moothall verify)
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write all events to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

impl ResumeArgs {
    /// The budget that replaces the one stored with the run.
    pub(crate) fn raised_budget(&self) -> Budget {
        Budget { usd: self.budget, tokens: self.budget_tokens }
    }
}

fn parse_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "expected a duration such as 30d, 12h or 6months".to_owned())
}
