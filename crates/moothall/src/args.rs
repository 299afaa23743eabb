//! The command line as people type it. The doc comments are the help texts.

mod access;
mod backup;
mod cluster;
mod committee;
mod consult;
mod diff;
mod drafts;
mod edit;
mod evidence;
pub(crate) mod image;
mod init;
mod mcp;
mod moves;

mod report;
mod run;
mod runs;
pub(crate) mod sandbox;
mod serve;
mod sources;
mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use moothall_core::MicroUsd;
use moothall_core::model::ModelName;

pub(crate) use self::access::{CreateTokenArgs, Lifetime, TeamCommand, TokenCommand};
pub(crate) use self::backup::{BackupArgs, RestoreArgs};
pub(crate) use self::cluster::{
    ClusterCommand, ClusterDownArgs, ClusterPlace, ClusterStatusArgs, ClusterUpArgs,
};
pub(crate) use self::committee::CommitteeCommand;
pub(crate) use self::consult::{ConsultArgs, RoleModel, RoleName};
pub(crate) use self::diff::DiffArgs;
pub(crate) use self::drafts::{
    AuditArgs, AuditCommand, DraftArgs, DraftCommand, DraftWriteArgs, HandoffArg, HandoffFlags,
    PolicyArgs, PolicyCommand, ReviewArgs, ReviewCommand, ReviewSayArgs, WorkspaceFlags,
};
pub(crate) use self::edit::EditArgs;
pub(crate) use self::evidence::{CheckArgs, EvidenceFlags, FactsArgs};
pub(crate) use self::init::InitArgs;
pub(crate) use self::mcp::{McpArgs, McpPart, McpPartArgs, ToolNamesArg, ToolsArg};
pub(crate) use self::moves::{EditedMove, MovesArgs};
pub(crate) use self::report::{ReportArgs, ReportFormat};
pub(crate) use self::run::RunArgs;
pub(crate) use self::runs::{
    ApproveArgs, CancelArgs, DeleteFlags, EventsArgs, PauseArgs, PruneArgs, RemoveArgs, ReplayArgs,
    ResumeArgs, RunsArgs, RunsCommand, ShowArgs,
};
pub(crate) use self::sandbox::{DoctorArgs, ExecArgs, SandboxCommand, SandboxFlags};
pub(crate) use self::serve::{AuthArg, LoginArgs, ServeArgs};
pub(crate) use self::sources::Subject;
pub(crate) use self::worker::{EngineArg, WorkerArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0    fine
  1    the verdict is negative
  2    the command or the configuration is wrong
  3    a person must decide
  4    failed
  5    stopped by the budget; what exists is a partial result
  130  cancelled

Try it without a key:  moothall consult HLXI --model demo";

/// Moothall puts what AI agents make on trial before anyone trusts it.
#[derive(Debug, Parser)]
#[command(name = "moothall", version, after_help = EXIT_CODES, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options for every command")]
pub(crate) struct Global {
    /// Configuration file to use instead of ./moothall.toml or the one in your config folder
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
    /// Say more about the work on standard error (-vv for details, -vvv for everything)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set up model and contact in a few questions, and see a demonstration
    Init(InitArgs),
    /// Watch and start runs in the browser, and over HTTP
    Serve(ServeArgs),
    /// Drive runs for a Restate cluster, with any number of other workers
    Worker(WorkerArgs),
    /// Try many workers on this machine: Restate, PostgreSQL and workers, up and down together
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Print a link that signs a browser in to `moothall serve`, once
    Login(LoginArgs),
    /// Put strategic moves for a listed company on trial: evidence, debate, scores, a memo
    Consult(Box<ConsultArgs>),
    /// Show, check and make committees: who proposes, attacks and scores moves
    #[command(subcommand)]
    Committee(CommitteeCommand),
    /// Print what a company filed as a sheet of facts, each with its filing
    Facts(FactsArgs),
    /// Check the numbers of a text against what a company filed
    Check(CheckArgs),
    /// Let a model write a program for a task, run it in a sandbox, judge it, and try again
    Run(Box<RunArgs>),
    /// List the runs that are kept, and delete those that are not worth it any more
    Runs(RunsArgs),
    /// Show what is known about a run: moves or attempts, verdict, findings, cost, files
    Show(ShowArgs),
    /// Make the memo of a consultation: Markdown, HTML, PDF; or its scores or its receipt
    Report(ReportArgs),
    /// Print the events of a run, or follow them while it goes on
    Events(EventsArgs),
    /// Let a run stand still, whichever process drives it; `resume` lets it go on
    Pause(PauseArgs),
    /// Stop a run for good, whichever process drives it
    Cancel(CancelArgs),
    /// Let a run go on that was killed or paused; nothing that was answered is asked again
    Resume(ResumeArgs),
    /// Show the moves of a consultation; veto, edit or add some before they are debated
    Moves(MovesArgs),
    /// Let a move be ranked that is held back by what code found in it
    Approve(ApproveArgs),
    /// Derive a run again from what was answered, offline, and compare
    Replay(ReplayArgs),
    /// Show what is different between two consultations: moves, scores, facts, gaps
    Diff(DiffArgs),
    /// Write all runs, drafts and audit journals into one file
    Backup(BackupArgs),
    /// Restore the runs and drafts of a backup
    Restore(RestoreArgs),
    /// Make, list and take back the tokens with which others call a server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Make and list the teams that share a server
    #[command(subcommand)]
    Team(TeamCommand),
    /// Let a model change files through drafts: the gate judges, the model learns, people decide
    Edit(Box<EditArgs>),
    /// Propose changes to files; the gate judges them before anything is written
    Draft(DraftArgs),
    /// Decide what the gate will not: see what waits, approve, reject or send back
    Review(ReviewArgs),
    /// Show, check and try the policy that the gate goes by
    Policy(PolicyArgs),
    /// Check and read the journal of drafts
    Audit(AuditArgs),
    /// Give agents tools that draft changes to files, over the Model Context Protocol
    Mcp(McpArgs),
    /// Ask a model one question through the gateway that every trial uses
    Ask(Box<AskArgs>),
    /// List providers and models: prices, limits, and whether a key is present
    Models(ModelsArgs),
    /// Check a receipt offline and derive its verdict again
    Verify(VerifyArgs),
    /// Run a Python program in a sandbox, without a model
    Exec(Box<ExecArgs>),
    /// Find out by trying which sandboxes work on this machine and how strong they are
    Doctor(DoctorArgs),
    /// Show the sandboxes that exist now, and clean up after programs that were killed
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Build, list and verify the images that sandboxes are made of
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// Show, find and check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for your shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page (try: moothall man | man -l -)
    Man {
        /// The command whose page is wanted
        command: Option<String>,
    },
    /// Put a hypervisor behind walls of its own and become it
    #[command(hide = true, disable_help_flag = true)]
    Jail {
        /// What the jail is told by this program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
    /// Be one of the processes behind `moothall mcp`
    #[command(hide = true)]
    McpPart(McpPartArgs),
    /// Print the reference pages of the book
    #[command(subcommand, hide = true)]
    Docs(DocsCommand),
}

const ASK_EXAMPLES: &str = "\
Examples:
  moothall ask --model demo \"hello\"
  moothall ask --model anthropic/claude-haiku-5-5 --budget 0.01 \"What is a moot hall?\"
  moothall ask --schema answer.schema.json --json \"How many moons has Mars?\"
  moothall ask --model openai/my-model --base-url http://127.0.0.1:8080/v1 \"hello\"
  git diff | moothall ask --system \"Review this change.\"";

#[derive(Debug, Args)]
#[command(after_help = ASK_EXAMPLES)]
pub(crate) struct AskArgs {
    /// The question; read from standard input where it is left out or `-`
    pub(crate) question: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// Instructions for the model
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// JSON schema that the answer must follow; the answer is checked, and asked for once more
    /// where it does not
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// The most tokens the answer may have, thinking included
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: u32,
    /// Sampling temperature from 0 to 2; left out for models that take none
    #[arg(long, value_name = "T", value_parser = parse_temperature)]
    pub(crate) temperature: Option<moothall_core::model::Temperature>,
    /// How much a thinking model thinks; left out for models that take none
    #[arg(long, value_enum, value_name = "EFFORT")]
    pub(crate) effort: Option<EffortArg>,
    /// Seconds that one try may take
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) calls: CallFlags,
    /// Print one JSON object: text, usage, cost, latency
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which model is called.
#[derive(Debug, Args)]
pub(crate) struct ModelFlags {
    /// Model to call, as provider/name, or `demo` [default: from the configuration or the key that is
    /// present]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelName>,
    /// Address of the model's provider, for any server that speaks its language
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

/// What model calls may cost, and what is kept of them.
#[derive(Debug, Args)]
pub(crate) struct CallFlags {
    /// The most that this may cost, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// The most tokens that this may use, prompts and answers together
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    #[command(flatten)]
    pub(crate) replies: RepliesFlags,
    #[command(flatten)]
    pub(crate) files: FilesFlags,
}

/// Whether replies are kept, or kept ones repeated.
#[derive(Debug, Args)]
pub(crate) struct RepliesFlags {
    /// Keep every reply in this folder, for --replay
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Repeat the replies of this folder and ask nobody
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,
}

/// What is left of a run in files.
#[derive(Debug, Args)]
pub(crate) struct FilesFlags {
    /// Write the receipt to this file (see: moothall verify)
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write the events to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffortArg {
    Low,
    Medium,
    High,
}

impl From<EffortArg> for moothall_core::model::Effort {
    fn from(effort: EffortArg) -> Self {
        match effort {
            EffortArg::Low => Self::Low,
            EffortArg::Medium => Self::Medium,
            EffortArg::High => Self::High,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Show this provider only
    pub(crate) provider: Option<String>,
    /// Make one small real call, to this model or to the one that would be asked
    #[arg(long, value_name = "MODEL", num_args = 0..=1, conflicts_with = "provider")]
    pub(crate) check: Option<Option<ModelName>>,
    /// Address of the model's provider, with --check
    #[arg(long, value_name = "URL", requires = "check")]
    pub(crate) base_url: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The receipt file
    pub(crate) receipt: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every setting with its value and where it comes from
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Where the configuration is looked for, and the folders in use
    Path {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what is wrong with the configuration
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DocsCommand {
    /// All commands and their help
    Cli,
    /// All settings
    Config,
    /// The built-in providers and models
    Models,
}

fn parse_temperature(text: &str) -> Result<moothall_core::model::Temperature, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let thousandths = (number * 1000.0).round();
    let in_range = (0.0..=2000.0).contains(&thousandths);
    in_range
        .then(|| moothall_core::model::Temperature::from_thousandths(thousandths as u16))
        .flatten()
        .ok_or_else(|| "a temperature is from 0 to 2".to_owned())
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
