//! `moothall consult`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use moothall_core::evidence::Day;
use moothall_core::model::ModelName;
use moothall_core::{IsolationChoice, MicroUsd, NewsChoice};

use super::sources::{SourceArg, parse_news};
use super::{EngineArg, EvidenceFlags, FilesFlags, RepliesFlags};
use crate::launch::PARALLEL_MOVES;

const CONSULT_EXAMPLES: &str = "\
Ctrl-C pauses the run: answers that are on their way are waited for and kept, and `moothall resume`
goes on where it stopped. A second Ctrl-C leaves at once; the run can still be resumed, and calls
that were under way are asked again. `moothall cancel` ends a run for good.

HLXI, Helix Instruments, is a company that does not exist. Its filings come with the program, so
that it can be tried without a key, without a network and without any other file.

Documents of your own are Markdown, text, CSV and PDF in a folder; agents cite them as [U0:plan:3],
and code checks every quotation and number against the passage. PDFs are read in a sandbox only.
Of news, headline, link, day and source are kept, and are cited as [N0:1].

Examples:
  moothall consult HLXI --model demo
  moothall consult --name Acme --source files ./documents --model demo
  moothall consult AAPL --estimate
  moothall consult AAPL --moves 5 --rounds 4 --budget 0.50
  moothall consult AAPL --brief \"Shall we grow abroad? No new debt.\" --pause-after moves
  moothall consult AAPL --source filings,files ./documents --news gdelt
  moothall consult AAPL --model-for critic=openai/gpt-5-mini --memo aapl.md
  moothall consult MSFT --as-of 2025-12-31 --committee my-board.toml --json --yes";

#[derive(Debug, Args)]
#[command(after_help = CONSULT_EXAMPLES)]
pub(crate) struct ConsultArgs {
    /// The company: its ticker, as listed in the United States; left out with --name
    #[arg(value_name = "TICKER")]
    pub(crate) ticker: Option<String>,
    /// The folder of your own documents, with `--source files` or `--source filings,files`
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// A company that is not listed, by its name; with `--source files DIR`
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Model that speaks for everyone, as provider/name, or `demo` [default: from the configuration
    /// or the key that is present]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelName>,
    /// Another model for one role: inference, analyst, critic or decision-maker; may be given more
    /// than once
    #[arg(long, value_name = "ROLE=MODEL")]
    pub(crate) model_for: Vec<RoleModel>,
    /// Address of the model's provider, for any server that speaks its language
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Rounds of each debate [default: those of the committee; the built-in one has 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) rounds: Option<u32>,
    /// Moves in all [default: as many as the committee proposes; the built-in one 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=40))]
    pub(crate) moves: Option<u32>,
    /// Moves that are debated at once; 1 debates them one after the other
    #[arg(long, value_name = "N", default_value_t = PARALLEL_MOVES, value_parser = clap::value_parser!(u32).range(1..=40))]
    pub(crate) parallel_moves: u32,
    /// Who sits on the committee: `board`, or a file (see: moothall committee) [default: board]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) committee: Option<String>,
    /// Where the evidence comes from
    #[arg(
        long,
        value_enum,
        value_name = "SOURCE",
        value_delimiter = ',',
        default_value = "filings"
    )]
    pub(crate) source: Vec<SourceArg>,
    /// Add headlines with their links: `gdelt`, `rss:URL`, or a file of either [default: none]
    #[arg(long, value_name = "gdelt|rss:URL|FILE", value_parser = parse_news)]
    pub(crate) news: Option<NewsChoice>,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// What the moves are for, in your words or a file of them: a question, goals, constraints; every
    /// analyst reads it, and the memo shows it
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) brief: Option<String>,
    /// Moves of your own, as TOML or JSON (see: moothall moves --help); they are checked, debated and
    /// ranked like the others
    #[arg(long, value_name = "FILE")]
    pub(crate) add_moves: Option<PathBuf>,
    /// Stand still after this step, for `moothall moves`; `moothall resume` lets it go on
    #[arg(long, value_enum, value_name = "STEP")]
    pub(crate) pause_after: Option<PauseAfter>,
    /// Let the decision makers score every move without its debate, too, and say whether the debate
    /// changed the top; it takes three calls more for each move
    #[arg(long)]
    pub(crate) baseline: bool,
    /// Who drives the run: this process (`local`), or the workers of a Restate cluster (`restate`, or
    /// `restate=URL`; see: moothall worker --help)
    #[arg(long, value_name = "ENGINE", default_value = "local")]
    pub(crate) engine: EngineArg,
    /// What keeps a debate apart from this machine [default: from the configuration, else auto]
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) isolation: Option<DebateEngine>,
    /// Let `auto` choose a container on this machine's own kernel where there is nothing stronger
    #[arg(long)]
    pub(crate) allow_shared_kernel: bool,
    /// The most that this may cost, in dollars [default: one and a half times the upper estimate]
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// The most tokens that this may use, prompts and answers together
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Print how many calls and tokens it takes and what it may cost, and start nothing
    #[arg(long)]
    pub(crate) estimate: bool,
    /// Do not ask before money is spent
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Rank moves with wrong numbers or bad citations too; their marks stay
    #[arg(long)]
    pub(crate) accept_findings: bool,
    #[command(flatten)]
    pub(crate) replies: RepliesFlags,
    /// Write the memo to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) memo: Option<PathBuf>,
    /// Write every document into this folder: facts, inferences, moves, conversations, scores
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) files: FilesFlags,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a consultation may wait for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PauseAfter {
    /// The moves are made and checked, and nothing is debated yet
    Moves,
}

/// What keeps a debate apart. A debate is text, so unlike a program it may go without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DebateEngine {
    /// The strongest that works on this machine
    Auto,
    /// QEMU: a kernel of its own, on KVM or emulated
    Microvm,
    /// gVisor: a kernel in user space
    Runsc,
    /// A container on this machine's own kernel
    Runc,
    /// A container on this machine's own kernel
    Crun,
    /// Nothing: in this program's own process
    None,
}

impl From<DebateEngine> for IsolationChoice {
    fn from(engine: DebateEngine) -> Self {
        match engine {
            DebateEngine::Auto => Self::Auto,
            DebateEngine::Microvm => Self::Microvm,
            DebateEngine::Runsc => Self::Runsc,
            DebateEngine::Runc => Self::Runc,
            DebateEngine::Crun => Self::Crun,
            DebateEngine::None => Self::None,
        }
    }
}

/// Who a model can speak for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoleName {
    Inference,
    Analyst,
    Critic,
    DecisionMaker,
}

/// A model for one role: `critic=openai/gpt-5-mini`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoleModel {
    pub(crate) role: RoleName,
    pub(crate) model: ModelName,
}

impl FromStr for RoleModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (role, model) = text
            .split_once('=')
            .ok_or_else(|| "write ROLE=MODEL, such as critic=openai/gpt-5-mini".to_owned())?;
        let role = match role {
            "inference" => RoleName::Inference,
            "analyst" => RoleName::Analyst,
            "critic" => RoleName::Critic,
            "decision-maker" => RoleName::DecisionMaker,
            _ => return Err("the roles are inference, analyst, critic and decision-maker".into()),
        };
        let model = model
            .parse()
            .map_err(|error: moothall_core::model::InvalidModelName| error.to_string())?;
        Ok(Self { role, model })
    }
}

pub(crate) fn parse_day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| "a day is written like 2025-12-31".to_owned())
}
