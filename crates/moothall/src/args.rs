//! Command-line arguments. The doc comments are the help texts.

mod access;
mod backup;
mod calls;
mod cluster;
mod committee;
mod connect;
mod consult;
mod demo;
mod diff;
mod drafts;
mod edit;
mod eval;
mod evidence;
mod fork;
mod gate;
mod guard;
pub(crate) mod image;
mod init;
mod key;
mod mcp;
mod moves;
mod outcome;
mod overview;
mod panel;
mod prompts;
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
use moothall_core::model::{ModelList, ModelName};

pub(crate) use self::access::{CreateTokenArgs, TeamCommand, TokenCommand, TokenLifetime};
pub(crate) use self::backup::{BackupArgs, RestoreArgs};
pub(crate) use self::calls::{CallSortArg, CallsArgs};
pub(crate) use self::cluster::{
    ClusterCommand, ClusterDirFlags, ClusterDownArgs, ClusterStatusArgs, ClusterUpArgs,
};
pub(crate) use self::committee::CommitteeCommand;
pub(crate) use self::connect::{ConnectArgs, ConnectClient, HookArgs};
pub(crate) use self::consult::{ConsultArgs, ConsultOutputFlags, MemberModel, VerdictFlags};
pub(crate) use self::demo::DemoArgs;
pub(crate) use self::diff::DiffArgs;
pub(crate) use self::drafts::{
    AuditArgs, AuditCommand, DraftCommand, DraftCommandArgs, DraftWriteArgs, HandoffArg,
    HandoffFlags, PolicyArgs, PolicyCommand, ReviewApproveArgs, ReviewArgs, ReviewCommand,
    ReviewCommentArgs, ReviewDecisionArgs, WorkspaceFlags,
};
pub(crate) use self::edit::EditCommandArgs;
pub(crate) use self::eval::EvalArgs;
pub(crate) use self::evidence::{
    CheckCommandArgs, CheckFormatArg, EvidenceFlags, FactsCommandArgs,
};
pub(crate) use self::fork::{ForkArgs, ForkSetting};
pub(crate) use self::gate::{GateArgs, GateCommand, GateFormatArg};
pub(crate) use self::guard::{GuardArgs, GuardCommand, GuardFlags};
pub(crate) use self::init::InitArgs;
pub(crate) use self::key::{KeyCommand, SetKeyArgs, TestKeyArgs};
pub(crate) use self::mcp::{McpArgs, McpPart, McpPartArgs, ToolNamesArg, ToolsArg};
pub(crate) use self::moves::{MoveEditArg, MovesArgs};
pub(crate) use self::outcome::{OutcomeCommand, OutcomeRecordArgs, OutcomeScoreArgs};
pub(crate) use self::overview::{all_commands, command};
pub(crate) use self::panel::PanelArgs;
pub(crate) use self::prompts::PromptsCommand;
pub(crate) use self::report::{ReportArgs, ReportFormat};
pub(crate) use self::run::RunArgs;
pub(crate) use self::runs::{
    ApproveArgs, CancelArgs, DeleteFlags, EventsArgs, PauseArgs, PruneArgs, RemoveArgs, ReplayArgs,
    ResumeArgs, RunsArgs, RunsCommand, ShowArgs,
};
pub(crate) use self::sandbox::{DoctorArgs, ExecArgs, SandboxCommand, SandboxFlags};
pub(crate) use self::serve::{AuthArg, LoginArgs, ServeArgs};
pub(crate) use self::sources::ConsultSubject;
pub(crate) use self::worker::{RunnerArg, WorkerArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the result is negative
  2    invalid command or configuration
  3    a person must decide
  4    failure
  5    stopped by the budget; the result is partial
  130  cancelled

Try it without an API key:  moothall demo";

/// Check what AI agents produce (memos, programs, file edits) before you rely on it
#[derive(Debug, Parser)]
#[command(name = "moothall", version, after_help = EXIT_CODES, max_term_width = 100, override_usage = "moothall [OPTIONS] <COMMAND>", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// Without a command, the start page is printed.
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Use this configuration file instead of ./moothall.toml or the user configuration
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Control when output is colored
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
    /// Increase logging on standard error (-vv for details, -vvv for everything)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print results and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Send traces to this OpenTelemetry collector with OTLP over HTTP, such as
    /// http://127.0.0.1:4318 [default: from the OTEL_* environment variables]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) otlp: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Take a guided tour: a consultation, a check, a sandbox, drafts and a receipt
    Demo(DemoArgs),
    /// Set up a model and a contact interactively, and run a demo
    Init(InitArgs),
    /// Store, list, test and remove API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Start the web UI and the HTTP API
    Serve(ServeArgs),
    /// Execute runs for a Restate cluster, alongside other workers
    Worker(WorkerArgs),
    /// Start and stop a local test cluster: Restate, PostgreSQL and workers
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Print a single-use sign-in link for `moothall serve`
    Login(LoginArgs),
    /// Propose, debate and score strategic moves for a listed company, and write a memo
    Consult(Box<ConsultArgs>),
    /// Show, check and create committees: the agents that propose, criticize and score moves
    #[command(subcommand)]
    Committee(CommitteeCommand),
    /// List, print and export the prompts and memo sections that a committee can replace
    #[command(subcommand)]
    Prompts(PromptsCommand),
    /// Print the facts from a company's filings, each with its source
    Facts(FactsCommandArgs),
    /// Check the numbers in a text against a company's filings
    Check(CheckCommandArgs),
    /// Generate a program for a task, run it in a sandbox, check the result, and retry
    Run(Box<RunArgs>),
    /// List stored runs, or delete them
    Runs(RunsArgs),
    /// Show a run: moves or attempts, result, findings, cost, files
    Show(ShowArgs),
    /// Export a consultation: the memo as Markdown, HTML or PDF, the scores, or the receipt
    Report(ReportArgs),
    /// Print the events of a run, or follow them live
    Events(EventsArgs),
    /// List the model calls of a run: times, tokens, costs, prompts and answers
    Calls(Box<CallsArgs>),
    /// Pause a run in any process; continue it with `moothall resume`
    Pause(PauseArgs),
    /// Cancel a run permanently, in any process
    Cancel(CancelArgs),
    /// Resume a paused or interrupted run; completed calls are not repeated
    Resume(ResumeArgs),
    /// Show the moves of a consultation; veto, edit or add moves before the debates
    Moves(MovesArgs),
    /// Allow a move to be ranked despite its findings
    Approve(ApproveArgs),
    /// Start a consultation from the results of an earlier one, with other settings
    Fork(Box<ForkArgs>),
    /// Recompute a run offline from its recorded replies, and compare the results
    Replay(ReplayArgs),
    /// Compare two consultations: moves, scores, facts, gaps
    Diff(DiffArgs),
    /// Measure a panel of models with moves whose true value is known
    Eval(Box<EvalArgs>),
    /// Compare forecasts of a panel with later filings
    #[command(subcommand)]
    Outcome(OutcomeCommand),
    /// Show how many planted controls each model of a panel caught, over all stored runs
    Panel(PanelArgs),
    /// Write all runs, drafts and audit logs to one file
    Backup(BackupArgs),
    /// Restore runs and drafts from a backup
    Restore(RestoreArgs),
    /// Create, list and revoke access tokens for a server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Create and list the teams that share a server
    #[command(subcommand)]
    Team(TeamCommand),
    /// Let a model edit files through drafts, with checks by the gate and human review
    Edit(Box<EditCommandArgs>),
    /// Judge a git diff by the policy: staged files, the working tree, commits or a patch
    Gate(GateArgs),
    /// Run a coding agent on a private copy of the workspace, and judge what it changed
    Guard(Box<GuardArgs>),
    /// Propose changes to files; the gate checks them before anything is written
    Draft(DraftCommandArgs),
    /// Review drafts that the gate escalated: list, approve, reject or send back
    Review(ReviewArgs),
    /// Show, check and test the policy of the gate
    Policy(PolicyArgs),
    /// Verify and read the audit log of drafts
    Audit(AuditArgs),
    /// Serve tools for drafting file changes to agents, over the Model Context Protocol
    Mcp(McpArgs),
    /// Add Moothall to Claude Code, Codex, Gemini CLI, Cursor, opencode or Zed
    Connect(ConnectArgs),
    /// Check an agent's edit before it is made; agents start it (`moothall connect --hook`)
    Hook(HookArgs),
    /// List and test receivers of notices, and send notices again that were not delivered
    #[command(subcommand)]
    Notify(NotifyCommand),
    /// Ask a model one question through the model gateway
    Ask(Box<AskArgs>),
    /// List providers and models: prices, limits, and whether an API key is set
    Models(ModelsArgs),
    /// Verify a receipt offline and recompute its result
    Verify(VerifyArgs),
    /// Run a Python program in a sandbox, without a model
    Exec(Box<ExecArgs>),
    /// Test which sandboxes work on this machine and how well they isolate
    Doctor(DoctorArgs),
    /// List active sandboxes, and clean up after killed processes
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Build, list and verify sandbox images
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// Show, locate and check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// Shell to generate the script for
        shell: Shell,
    },
    /// Print the manual page (try: moothall man | man -l -)
    Man {
        /// Command to print the page of
        command: Option<String>,
    },
    /// Describe a command, or list the commands
    Help {
        /// List all commands, including rarely used ones
        #[arg(long)]
        all: bool,
        /// Command to describe, such as `runs prune`
        command: Vec<String>,
    },
    /// Confine this process, then execute a hypervisor
    #[command(hide = true, disable_help_flag = true)]
    Jail {
        /// Arguments of the jail
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
    /// Run one of the helper processes of `moothall mcp`
    #[command(hide = true)]
    McpPart(McpPartArgs),
    /// Print the generated reference pages of the documentation
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
    /// Question to ask; reads standard input if omitted or `-`
    pub(crate) question: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// Set the system prompt
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Validate the answer against this JSON schema; an invalid answer is requested once more
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Limit the tokens of the answer, including thinking
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: u32,
    /// Set the sampling temperature, from 0 to 2; ignored for models without this setting
    #[arg(long, value_name = "T", value_parser = parse_temperature)]
    pub(crate) temperature: Option<moothall_core::model::Temperature>,
    /// Set the thinking effort; ignored for models without this setting
    #[arg(long, value_enum, value_name = "EFFORT")]
    pub(crate) effort: Option<EffortArg>,
    /// Time out each attempt after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) calls: CallFlags,
    /// Print one JSON object: text, usage, cost, latency
    #[arg(long)]
    pub(crate) json: bool,
}

/// Model selection.
#[derive(Debug, Args)]
pub(crate) struct ModelFlags {
    /// Use this model, as provider/name, or `demo`; after a comma, models to use when it is
    /// unavailable [default: from the configuration or the available API key]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelList>,
    /// Set the base URL of the provider, for any server with a compatible API
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

/// Budget and output files of model calls.
#[derive(Debug, Args)]
pub(crate) struct CallFlags {
    /// Limit the cost, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// Limit the tokens, prompts and answers together
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    #[command(flatten)]
    pub(crate) replies: RecordingFlags,
    #[command(flatten)]
    pub(crate) files: OutputFileFlags,
}

/// Recording and replay of model replies.
#[derive(Debug, Args)]
pub(crate) struct RecordingFlags {
    /// Record every reply in this directory, for --replay
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Replay the replies recorded in this directory instead of calling a model
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,
}

/// Output files of a run.
#[derive(Debug, Args)]
pub(crate) struct OutputFileFlags {
    /// Write the receipt to this file (see: moothall verify)
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write the events to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffortArg {
    Low,
    Medium,
    High,
}

impl From<EffortArg> for moothall_core::model::ReasoningEffort {
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
    /// Show only this provider
    pub(crate) provider: Option<String>,
    /// Make one small real call to this model, or to the default model
    #[arg(long, value_name = "MODEL", num_args = 0..=1, conflicts_with = "provider")]
    pub(crate) check: Option<Option<ModelName>>,
    /// Set the base URL of the provider, with --check
    #[arg(long, value_name = "URL", requires = "check")]
    pub(crate) base_url: Option<String>,
    /// Write the context window that your own server states into the configuration file, with --check
    #[arg(long, requires = "check")]
    pub(crate) save: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Receipt file
    pub(crate) receipt: PathBuf,
    /// Compare the receipt of a fork with the receipt of its parent [default: with the parent run,
    /// if it is stored on this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) parent: Option<PathBuf>,
    /// Also run the calculations of the debates again in sandboxes, and compare their output byte
    /// for byte
    #[arg(long)]
    pub(crate) calculations: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting with its value and origin
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show where configuration files are searched, and the directories in use
    Path {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Report problems in the configuration
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// List the receivers of notices with their last result
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a test message to everything that `[notify]` configures
    Test {
        /// Send it only to this target
        target: Option<String>,
    },
    /// Send messages that could not be delivered before
    Resend {
        /// Send only those of this target
        target: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DocsCommand {
    /// Print all commands and their help
    Cli,
    /// Print all settings
    Config,
    /// Print the built-in providers and models
    Models,
}

fn parse_temperature(text: &str) -> Result<moothall_core::model::Temperature, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let thousandths = (number * 1000.0).round();
    let in_range = (0.0..=2000.0).contains(&thousandths);
    in_range
        .then(|| moothall_core::model::Temperature::from_thousandths(thousandths as u16))
        .flatten()
        .ok_or_else(|| "temperature must be between 0 and 2".to_owned())
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
