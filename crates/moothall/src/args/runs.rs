//! Commands about runs that are kept.

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
    /// Show those in this state only: running, paused, finished, failed or cancelled
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<RunState>,
    /// Show at most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Delete runs for good, with their answers, events and files, and give their space back
    Rm(RemoveArgs),
    /// Delete the runs that are older than you want to keep them
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The runs: their ids or the beginnings of them
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) how: DeleteFlags,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Delete what has not changed for so long, such as 30d, 12h or 6months
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub(crate) older_than: Duration,
    /// Keep the newest so many, however old they are
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) keep: usize,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) how: DeleteFlags,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteFlags {
    /// Delete runs as well that are paused or interrupted and could go on; a run that a process
    /// drives is never deleted
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask
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
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print the last program that was written, and nothing else (`run`)
    #[arg(long, conflicts_with = "json")]
    pub(crate) code: bool,
    /// Print the memo as Markdown, and nothing else (`consult`)
    #[arg(long, conflicts_with_all = ["json", "code"])]
    pub(crate) memo: bool,
    /// Print one move and what its trial came to, and nothing else (`consult`)
    #[arg(long = "move", value_name = "MOVE", conflicts_with_all = ["memo", "code"])]
    pub(crate) move_id: Option<String>,
    /// Print the conversation of that move with this decision maker (`consult`)
    #[arg(long, value_name = "D", requires = "move_id")]
    pub(crate) thread: Option<String>,
    /// Write every document into this folder: facts, inferences, moves, conversations, scores
    /// (`consult`)
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    /// Write the receipt to this file (see: moothall verify)
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write the files that the last program left into this folder (`run`)
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Wait for further events until the run ends; Ctrl-C stops waiting, not the run
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Start with the event of this number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from: u64,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const APPROVE_EXAMPLES: &str = "\
Without `--move`, every move that is held back is approved.

Examples:
  moothall approve 019a85c0-2f6e
  moothall approve 019a85c0-2f6e --move m7 --note \"the 10-K/A has the corrected figure\"";

#[derive(Debug, Args)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ApproveArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The move that is held back [default: every move that is]
    #[arg(long = "move", value_name = "MOVE")]
    pub(crate) move_id: Option<String>,
    /// Who approves [default: your login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Why
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
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The most that the whole run may cost, in dollars, with what it has spent already
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// The most tokens that the whole run may use, with what it has used already
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Write the receipt to this file (see: moothall verify)
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write all events to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

impl ResumeArgs {
    /// The budget that replaces the run's own.
    pub(crate) fn raised_budget(&self) -> Budget {
        Budget { usd: self.budget, tokens: self.budget_tokens }
    }
}

fn parse_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "not a time such as 30d, 12h or 6months".to_owned())
}
