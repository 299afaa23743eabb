//! Arguments of `consult`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use moothall_core::evidence::CalendarDay;
use moothall_core::model::ModelName;
use moothall_core::{IsolationChoice, MicroUsd, NewsChoice};

use super::sources::{SourceArg, parse_news};
use super::{EvidenceFlags, OutputFileFlags, RecordingFlags, RunnerArg};
use crate::launch::PARALLEL_MOVES;

const CONSULT_EXAMPLES: &str = "\
Ctrl-C pauses the run: calls in progress finish and are saved, and `moothall resume` continues from
there. A second Ctrl-C exits immediately; the run can still be resumed, and calls that were in
progress are repeated. `moothall cancel` ends a run permanently.

HLXI (Helix Instruments) is a fictional company. Its sample filings are built in, so you can try
Moothall without an API key, a network connection or other files.

Your own documents are Markdown, text, CSV and PDF files in a directory. Agents cite them as
[U0:plan:3], and every quotation and number is checked against the passage. PDFs are read only in a
sandbox. For news, the headline, link, date and source are stored and cited as [N0:1].

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
    /// Ticker of the company, as listed in the United States; omit it with --name
    #[arg(value_name = "TICKER")]
    pub(crate) ticker: Option<String>,
    /// Directory of your own documents, for `--source files` or `--source filings,files`
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Name an unlisted company; requires `--source files DIR`
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Use this model for every role, as provider/name, or `demo` [default: from the configuration
    /// or the available API key]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelName>,
    /// Use another model for a role (inference, analyst, critic, decision-maker) or a member (F1, F2,
    /// analyst_1, D2); overrides the committee file (repeatable)
    #[arg(long, value_name = "MEMBER=MODEL")]
    pub(crate) model_for: Vec<MemberModel>,
    /// Set the base URL of the provider, for any server with a compatible API
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Set the rounds of each debate [default: from the committee; the built-in one has 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) rounds: Option<u32>,
    /// Set the total number of moves [default: from the committee; the built-in one proposes 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=40))]
    pub(crate) moves: Option<u32>,
    /// Debate this many moves in parallel; 1 debates them one after another
    #[arg(long, value_name = "N", default_value_t = PARALLEL_MOVES, value_parser = clap::value_parser!(u32).range(1..=40))]
    pub(crate) parallel_moves: u32,
    /// Use this committee: `board`, a file, or a directory with its own prompts and memo sections
    /// (see: moothall committee, moothall prompts) [default: board]
    #[arg(long, value_name = "NAME|PATH")]
    pub(crate) committee: Option<String>,
    /// Select the sources of evidence
    #[arg(
        long,
        value_enum,
        value_name = "SOURCE",
        value_delimiter = ',',
        default_value = "filings"
    )]
    pub(crate) source: Vec<SourceArg>,
    /// Add news headlines: `gdelt`, `rss:URL`, or a file in either format [default: none]
    #[arg(long, value_name = "gdelt|rss:URL|FILE", value_parser = parse_news)]
    pub(crate) news: Option<NewsChoice>,
    #[command(flatten)]
    pub(crate) evidence: EvidenceFlags,
    /// Describe the purpose of the moves (question, goals, constraints), as text or a file; every
    /// analyst reads it and the memo shows it
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) brief: Option<String>,
    /// Add your own moves from a TOML or JSON file (see: moothall moves --help); they are checked,
    /// debated and ranked like the others
    #[arg(long, value_name = "FILE")]
    pub(crate) add_moves: Option<PathBuf>,
    /// Pause after this step for `moothall moves`; continue with `moothall resume`
    #[arg(long, value_enum, value_name = "STEP")]
    pub(crate) pause_after: Option<PauseAfterArg>,
    /// Also score every move without its debate and report whether the debates changed the top
    /// moves; three more calls per move
    #[arg(long)]
    pub(crate) baseline: bool,
    /// Choose who executes the run: this process (`local`), or the workers of a Restate cluster
    /// (`restate` or `restate=URL`; see: moothall worker --help)
    #[arg(long = "runner", alias = "engine", value_name = "RUNNER", default_value = "local")]
    pub(crate) runner: RunnerArg,
    /// Isolate debates with this sandbox [default: from the configuration, else auto]
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) isolation: Option<DebateIsolationArg>,
    /// Allow `auto` to choose a container on the host kernel if nothing stronger works
    #[arg(long)]
    pub(crate) allow_shared_kernel: bool,
    /// Limit the cost, in dollars [default: 1.5 times the upper estimate]
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// Limit the tokens, prompts and answers together
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Print the estimated calls, tokens and cost without starting a run
    #[arg(long, visible_alias = "dry-run")]
    pub(crate) estimate: bool,
    /// Skip the confirmation before money is spent
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Also rank moves with wrong numbers or bad citations; their findings are still shown
    #[arg(long)]
    pub(crate) accept_findings: bool,
    #[command(flatten)]
    pub(crate) replies: RecordingFlags,
    #[command(flatten)]
    pub(crate) output: ConsultOutputFlags,
}

/// Where a consultation writes its results.
#[derive(Debug, Args)]
pub(crate) struct ConsultOutputFlags {
    /// Write the memo to this file as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) memo: Option<PathBuf>,
    /// Write all documents to this directory: facts, inferences, moves, debates, scores
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) files: OutputFileFlags,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// Steps after which a consultation can pause for review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PauseAfterArg {
    /// After the moves are proposed and checked, before the debates
    Moves,
}

/// Isolation of debates. Unlike programs, debates are only text, so they may run without isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DebateIsolationArg {
    /// The strongest sandbox that works on this machine
    Auto,
    /// QEMU microVM with its own kernel, on KVM or emulated
    Microvm,
    /// gVisor: a kernel in user space
    Runsc,
    /// Container on the host kernel
    Runc,
    /// Container on the host kernel
    Crun,
    /// No isolation: in the process of moothall
    None,
}

impl From<DebateIsolationArg> for IsolationChoice {
    fn from(engine: DebateIsolationArg) -> Self {
        match engine {
            DebateIsolationArg::Auto => Self::Auto,
            DebateIsolationArg::Microvm => Self::Microvm,
            DebateIsolationArg::Runsc => Self::Runsc,
            DebateIsolationArg::Runc => Self::Runc,
            DebateIsolationArg::Crun => Self::Crun,
            DebateIsolationArg::None => Self::None,
        }
    }
}

/// A model for one role or member: `critic=openai/gpt-5-mini`. The committee determines which names
/// are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberModel {
    pub(crate) member: String,
    pub(crate) model: ModelName,
}

impl ConsultArgs {
    pub(crate) fn member_models(&self) -> Vec<(String, ModelName)> {
        self.model_for.iter().map(|one| (one.member.clone(), one.model.clone())).collect()
    }
}

impl FromStr for MemberModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (member, model) = text
            .split_once('=')
            .ok_or_else(|| "expected MEMBER=MODEL, such as critic=openai/gpt-5-mini".to_owned())?;
        let model = model
            .parse()
            .map_err(|error: moothall_core::model::InvalidModelName| error.to_string())?;
        Ok(Self { member: member.to_owned(), model })
    }
}

pub(crate) fn parse_day(text: &str) -> Result<CalendarDay, String> {
    CalendarDay::parse(text).ok_or_else(|| "expected a date such as 2025-12-31".to_owned())
}
