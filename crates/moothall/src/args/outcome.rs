//! Arguments of `outcome`.

use clap::{Args, Subcommand};
use moothall_core::evidence::CalendarDay;

use super::EvidenceFlags;

const RECORD_EXAMPLES: &str = "\
The filings are gathered again. A question is answered by the first value that was filed for its
period; later corrections do not change the answer. Questions without a filing stay open.

Examples:
  moothall outcome record 019a85c0-2f6e
  moothall outcome record 019a85c0-2f6e --offline ./recording
  moothall outcome record 019a85c0-2f6e --move m7 --taken 2027-02-14";

const SCORE_EXAMPLES: &str = "\
Examples:
  moothall outcome score
  moothall outcome score 019a85c0-2f6e --json";

#[derive(Debug, Subcommand)]
pub(crate) enum OutcomeCommand {
    /// Answer the questions of a run from later filings, or note that a move was taken
    Record(OutcomeRecordArgs),
    /// Score the forecasts of all runs whose outcomes are recorded
    Score(OutcomeScoreArgs),
}

#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub(crate) struct OutcomeRecordArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// Note that the company took this move; requires --taken
    #[arg(long = "move", value_name = "MOVE", requires = "taken")]
    pub(crate) move_id: Option<String>,
    /// The day on which the company announced the move
    #[arg(long, value_name = "DAY", requires = "move_id", value_parser = super::consult::parse_day)]
    pub(crate) taken: Option<CalendarDay>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SCORE_EXAMPLES)]
pub(crate) struct OutcomeScoreArgs {
    /// Score only these runs [default: all with recorded outcomes]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
