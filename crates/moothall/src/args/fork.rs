//! Arguments of `fork`.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use moothall_core::MicroUsd;
use moothall_core::consult::ForkPoint;
use moothall_core::model::ModelList;

use super::{
    ConsultOutputFlags, MemberModel, MoveEditArg, RecordingFlags, RunnerArg, VerdictFlags,
};

const FORK_EXAMPLES: &str = "\
A fork is a new run. It reuses the results of an earlier consultation up to a point without paying
for them again, and continues from there:

  --from moves     reuses evidence and inference; proposes, debates and ranks moves again
  --from debates   also reuses the moves; debates and ranks them again

A change that affects an earlier stage is refused, because its results could not be reused. Other
settings are those of the earlier run. `moothall verify` also compares the receipt of a fork with
the earlier run, if that run is stored on this machine.

Examples:
  moothall fork 019a85c0-2f6e --from debates --set critic=openai/gpt-5-mini
  moothall fork 019a85c0-2f6e --from debates --set rounds=4 --edit-move m3=m3.toml
  moothall fork 019a85c0-2f6e --from debates --verdict full --panel openai/gpt-5-mini
  moothall fork 019a85c0-2f6e --from moves --brief \"Only moves without new debt.\"
  moothall diff 019a85c0-2f6e 01a1df13-fab7";

#[derive(Debug, Args)]
#[command(after_help = FORK_EXAMPLES)]
pub(crate) struct ForkArgs {
    /// Consultation to fork: run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Choose the first stage to execute again
    #[arg(long, value_enum, value_name = "STAGE")]
    pub(crate) from: ForkFromArg,
    /// Use this model for every role that is executed again, as provider/name, or `demo`;
    /// after a comma, models to use when it is unavailable
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelList>,
    /// Change one setting (repeatable): the model of a role or member, such as critic or D2, or
    /// the rounds of each debate
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<ForkSetting>,
    /// Use another committee: `board`, or a file (see: moothall committee)
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) committee: Option<String>,
    #[command(flatten)]
    pub(crate) verdict: VerdictFlags,
    /// Use another brief, as text or a file; requires `--from moves`
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) brief: Option<String>,
    /// Replace this move with the one in the file (repeatable); requires `--from debates`
    #[arg(long, value_name = "MOVE=FILE")]
    pub(crate) edit_move: Vec<MoveEditArg>,
    /// Record this name with edited moves [default: your login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Choose who executes the run: `local`, `restate` or `restate=URL` [default: as before]
    #[arg(long, value_name = "RUNNER")]
    pub(crate) runner: Option<RunnerArg>,
    /// Set the base URL of the provider [default: as before]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Limit the cost of the fork, in dollars [default: 1.5 times the upper estimate]
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// Limit the tokens of the fork, prompts and answers together
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Print the estimated calls, tokens and cost without starting a run
    #[arg(long, visible_alias = "dry-run")]
    pub(crate) estimate: bool,
    /// Skip the confirmation before money is spent
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) replies: RecordingFlags,
    #[command(flatten)]
    pub(crate) output: ConsultOutputFlags,
}

/// The first stage of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForkFromArg {
    /// Propose moves again, and debate them
    Moves,
    /// Debate the moves again
    Debates,
}

impl From<ForkFromArg> for ForkPoint {
    fn from(stage: ForkFromArg) -> Self {
        match stage {
            ForkFromArg::Moves => Self::Moves,
            ForkFromArg::Debates => Self::Debates,
        }
    }
}

/// A changed setting: `critic=openai/gpt-5-mini` or `rounds=4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ForkSetting {
    Model(MemberModel),
    Rounds(u32),
}

impl FromStr for ForkSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("rounds", rounds)) => match rounds.parse() {
                Ok(rounds @ 1..=20) => Ok(Self::Rounds(rounds)),
                _ => Err("rounds must be a number from 1 to 20".to_owned()),
            },
            _ => text.parse().map(Self::Model).map_err(|_: String| {
                "expected KEY=VALUE: a role or member with a model, such as \
                 critic=openai/gpt-5-mini, or rounds=4"
                    .to_owned()
            }),
        }
    }
}
