//! Arguments of `draft`, `review`, `policy` and `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const DRAFT_EXAMPLES: &str = "\
A draft is a proposed change to one file. Nothing in the workspace changes until the gate has
checked it; drafts that the gate escalates wait for review (`moothall review`).

Examples:
  moothall draft request src/watchdog.py --task version-flag
  moothall draft edit drf_… --old 'import sys' --new 'import sys, argparse'
  moothall draft check drf_…
  moothall draft submit drf_… --summary 'adds --version'
  moothall draft import answer.md --task version-flag --submit";

const REVIEW_EXAMPLES: &str = "\
Examples:
  moothall review
  moothall review show drf_…
  moothall review approve drf_… --if-match 3f2a9c0d11aa
  moothall review reject drf_… --if-match 3f2a9c0d11aa --reason 'not now'
  moothall review send-back drf_… --if-match 3f2a9c0d11aa --reason 'keep the tests'
  moothall review hunks drf_…
  moothall review approve drf_… --if-match 3f2a9c0d11aa --hunks 1,3
  moothall review approve drf_… --if-match 3f2a9c0d11aa --content Makefile.mine
  moothall review comment drf_… --if-match 3f2a9c0d11aa --line 12 --text 'why?'

The seal is a hash of everything that `review show` printed. A decision applies only to that exact
content: a draft that has changed since then has a different seal.";

/// Workspace and output format.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkspaceFlags {
    /// Use this workspace directory
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub(crate) workspace: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Handoff view for tools that read files.
#[derive(Debug, Clone, Args)]
pub(crate) struct HandoffFlags {
    /// Keep a view of the drafts in `_handoff` in the workspace, for tools that read files; stays
    /// on until `--handoff=off`
    #[arg(
        long,
        value_enum,
        value_name = "SWITCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "on",
        global = true
    )]
    pub(crate) handoff: Option<HandoffArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HandoffArg {
    On,
    Off,
}

#[derive(Debug, Args)]
#[command(after_help = DRAFT_EXAMPLES)]
pub(crate) struct DraftCommandArgs {
    #[command(flatten)]
    pub(crate) flags: WorkspaceFlags,
    #[command(flatten)]
    pub(crate) view: HandoffFlags,
    /// Act as this worker; a worker sees only its own drafts
    #[arg(long, value_name = "NAME", default_value = "cli", global = true)]
    pub(crate) worker: String,
    #[command(subcommand)]
    pub(crate) command: DraftCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DraftCommand {
    /// Open a draft of a file; repeating the request returns the same draft
    Request {
        /// File to draft, relative to the workspace
        path: String,
        /// Name the task: letters, digits, `-`, `_` and `.`
        #[arg(long, value_name = "TASK")]
        task: String,
        /// Allow a file that does not exist yet
        #[arg(long)]
        new: bool,
    },
    /// Print the content of a draft
    Read {
        /// Draft id
        draft: String,
    },
    /// Replace a draft's content, or delete, rename or chmod its file
    Write(DraftWriteArgs),
    /// Replace text that occurs exactly once in the draft
    Edit {
        /// Draft id
        draft: String,
        /// Text to replace
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        old: String,
        /// Replacement text
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        new: String,
    },
    /// Print the gate's decision and the diff, without submitting
    Check {
        /// Draft ids
        #[arg(required = true)]
        drafts: Vec<String>,
    },
    /// Submit drafts for review; several are applied atomically
    Submit {
        /// Draft ids
        #[arg(required = true)]
        drafts: Vec<String>,
        /// Describe the change
        #[arg(long, value_name = "TEXT", default_value = "")]
        summary: String,
    },
    /// Show the state of a draft
    Status {
        /// Draft id
        draft: String,
    },
    /// List open drafts
    List {
        /// Include closed drafts
        #[arg(long)]
        all: bool,
    },
    /// Discard a draft
    Discard {
        /// Draft id
        draft: String,
    },
    /// Merge a draft onto the current file; it must be submitted again
    Rebase {
        /// Draft id
        draft: String,
    },
    /// Create drafts from a model's answer: fenced code blocks with file names, or a unified diff
    Import {
        /// File with the answer, or `-` for standard input
        file: PathBuf,
        /// Name the task: letters, digits, `-`, `_` and `.`
        #[arg(long, value_name = "TASK")]
        task: String,
        /// Use this file for code blocks without a file name
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
        /// Submit the drafts as well
        #[arg(long)]
        submit: bool,
    },
    /// Undo an applied draft, and everything submitted with it
    Undo {
        /// Draft id
        draft: String,
    },
    /// Discard every draft and delete all stored contents; the audit log is kept
    Purge {
        /// Skip the confirmation
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DraftWriteArgs {
    /// Draft id
    pub(crate) draft: String,
    /// Read the complete new content from this file, or from standard input if `-`
    #[arg(long, value_name = "FILE", required_unless_present_any = ["delete", "rename", "executable", "not_executable"])]
    pub(crate) file: Option<PathBuf>,
    /// Fail unless the draft's content has this SHA-256
    #[arg(long, value_name = "HASH")]
    pub(crate) if_match: Option<String>,
    /// Delete the file
    #[arg(long, conflicts_with_all = ["file", "rename", "executable", "not_executable"])]
    pub(crate) delete: bool,
    /// Rename the file
    #[arg(long, value_name = "PATH", conflicts_with_all = ["file", "executable", "not_executable"])]
    pub(crate) rename: Option<String>,
    /// Set the executable bit
    #[arg(long, conflicts_with_all = ["file", "not_executable"])]
    pub(crate) executable: bool,
    /// Clear the executable bit
    #[arg(long, conflicts_with = "file")]
    pub(crate) not_executable: bool,
}

#[derive(Debug, Args)]
#[command(after_help = REVIEW_EXAMPLES)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    pub(crate) flags: WorkspaceFlags,
    /// Record this name with the decision; it is only a label [default: your login name]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) by: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<ReviewCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewCommand {
    /// List submissions that need review
    List,
    /// Show a submission: its diff, with findings next to the lines
    Show {
        /// Draft id
        draft: String,
        /// Do not truncate long lines
        #[arg(long)]
        full: bool,
    },
    /// Decide on a submission hunk by hunk, in the terminal
    ///
    /// For each hunk: `y` approves it, `n` rejects it, `e` edits the proposed content in `$VISUAL` or
    /// `$EDITOR`, `c` comments on a line, `q` quits without a decision, `?` lists all keys.
    Hunks {
        /// Draft id
        draft: String,
    },
    /// Approve a submission, or a part of it, and apply it
    Approve(ReviewApproveArgs),
    /// Reject a submission and close it
    Reject(ReviewDecisionArgs),
    /// Send a submission back to its worker with a comment
    SendBack(ReviewDecisionArgs),
    /// Comment on a line of a submission; its worker reads the comment
    Comment(ReviewCommentArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReviewApproveArgs {
    #[command(flatten)]
    pub(crate) decision: ReviewDecisionArgs,
    /// Approve only these hunks, with the numbers that `moothall review show` prints; the others are
    /// rejected
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) hunks: Vec<usize>,
    /// Apply the content of this file, or of standard input if `-`, instead of the proposed content
    #[arg(long, value_name = "FILE", conflicts_with = "hunks")]
    pub(crate) content: Option<PathBuf>,
    /// Confirm new findings about what `--hunks` or `--content` makes of the submission: the hash
    /// printed with them
    #[arg(long, value_name = "HASH")]
    pub(crate) confirm: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewCommentArgs {
    /// Draft id
    pub(crate) draft: String,
    /// Confirm the seal printed by `moothall review show`: in full or its first 12 digits
    #[arg(long = "if-match", alias = "seal", value_name = "HASH")]
    pub(crate) seal: String,
    /// Line of the draft, from 1
    #[arg(long, value_name = "LINE")]
    pub(crate) line: usize,
    /// Count lines in the file before the change
    #[arg(long)]
    pub(crate) old: bool,
    /// File of the submission [default: the file of the draft]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Comment, at most 2000 characters
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewDecisionArgs {
    /// Draft id
    pub(crate) draft: String,
    /// Confirm the seal printed by `moothall review show`: in full or its first 12 digits
    #[arg(long = "if-match", alias = "seal", value_name = "HASH")]
    pub(crate) seal: String,
    /// Give a reason
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(flatten)]
    pub(crate) flags: WorkspaceFlags,
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the policies in force and report their problems
    Check,
    /// Check a file as if it were a draft, without creating one
    Test {
        /// File in the workspace that would change
        path: String,
        /// Read its new content from this file, or from standard input if `-`
        #[arg(long, value_name = "FILE")]
        draft: PathBuf,
    },
    /// Allow this workspace's policy to loosen the built-in policy
    ///
    /// By default a policy in a repository can only be stricter. This command shows what the policy
    /// loosens; `--yes` trusts it until its content changes.
    Trust {
        /// Trust the policy
        #[arg(short, long)]
        yes: bool,
    },
    /// Show the policy rules for a path
    Explain {
        /// Path, relative to the workspace
        path: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) flags: WorkspaceFlags,
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify the hash chain and its signed checkpoints
    Verify {
        /// Require this known record: its number and hash
        #[arg(long, value_name = "SEQ:HASH")]
        anchor: Option<String>,
    },
    /// Print the records, oldest first
    Show {
        /// Print only the records of this draft
        #[arg(long, value_name = "DRAFT")]
        draft: Option<String>,
    },
    /// Export the raw records, one JSON object per line
    Export {
        /// File to write, or `-` for standard output
        file: PathBuf,
    },
}
