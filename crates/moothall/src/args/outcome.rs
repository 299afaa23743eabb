//! Arguments of `outcome`.

use clap::{Args, Subcommand};
use moothall_core::evidence::CalendarDay;

use super::EvidenceFlags;

const RECORD_EXAMPLES: &str = "\
The filings are gathered again. A question is answered by the first value that was filed for its
period; later corrections do not change the answer. Questions without a filing stay open.

Whether the company announced a move of the lead is answered after a year: by your note, or if the
company has filed no 8-K in that year.

Examples:
  moothall outcome record 019a85c0-2f6e
  moothall outcome record 019a85c0-2f6e --offline ./recording
  moothall outcome record 019a85c0-2f6e --move m7 --taken 2027-02-14
  moothall outcome record 019a85c0-2f6e --move m2 --not-taken";

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
    /// Note what became of this move; requires --taken or --not-taken
    #[arg(long = "move", value_name = "MOVE", requires = "note")]
    pub(crate) move_id: Option<String>,
    /// The day on which the company announced the move
    #[arg(long, value_name = "DAY", group = "note", requires = "move_id", value_parser = super::consult::parse_day)]
    pub(crate) taken: Option<CalendarDay>,
    /// Note that the company has not announced the move until today
    #[arg(long, group = "note", requires = "move_id")]
    pub(crate) not_taken: bool,
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
