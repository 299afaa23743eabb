//! `moothall draft`, `review`, `policy` and `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const DRAFT_EXAMPLES: &str = "\
A draft is a proposal for one file. Nothing in the workspace changes before the gate has judged it;
what the gate will not decide waits for a person (`moothall review`).

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
  moothall review approve drf_… --seal 3f2a9c0d11aa
  moothall review reject drf_… --seal 3f2a9c0d11aa --reason 'not now'
  moothall review send-back drf_… --seal 3f2a9c0d11aa --reason 'keep the tests'

The seal is the hash of everything that was shown. An approval holds for these bytes and for nothing
else: a draft that changed meanwhile has another one.";

/// Which workspace.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkspaceFlags {
    /// The folder whose files are drafted
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub(crate) workspace: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Whether a view is kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct HandoffFlags {
    /// Keep a view of the drafts in `_handoff` of the workspace, for tools that read files; it is
    /// kept until `--handoff=off`
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
pub(crate) struct DraftArgs {
    #[command(flatten)]
    pub(crate) flags: WorkspaceFlags,
    #[command(flatten)]
    pub(crate) view: HandoffFlags,
    /// The worker that acts; each sees its own drafts only
    #[arg(long, value_name = "NAME", default_value = "cli", global = true)]
    pub(crate) worker: String,
    #[command(subcommand)]
    pub(crate) command: DraftCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DraftCommand {
    /// Open a draft of a file; asked twice, it gives the same one
    Request {
        /// The file, relative to the workspace
        path: String,
        /// What it is for: letters, digits, `-`, `_` and `.`
        #[arg(long, value_name = "TASK")]
        task: String,
        /// The file may be new
        #[arg(long)]
        new: bool,
    },
    /// Print the text of a draft
    Read {
        /// The draft
        draft: String,
    },
    /// Give a draft a new text, or let its file go, move or be run
    Write(DraftWriteArgs),
    /// Replace text that stands in the draft exactly once
    Edit {
        /// The draft
        draft: String,
        /// What is there
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        old: String,
        /// What shall be there
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        new: String,
    },
    /// Print what the gate would say, and the difference; changes nothing
    Check {
        /// The drafts
        #[arg(required = true)]
        drafts: Vec<String>,
    },
    /// Hand drafts in; together they are applied all or not at all
    Submit {
        /// The drafts
        #[arg(required = true)]
        drafts: Vec<String>,
        /// What the change is
        #[arg(long, value_name = "TEXT", default_value = "")]
        summary: String,
    },
    /// Show where a draft stands
    Status {
        /// The draft
        draft: String,
    },
    /// List drafts that are open
    List {
        /// The closed ones as well
        #[arg(long)]
        all: bool,
    },
    /// Give a draft up
    Discard {
        /// The draft
        draft: String,
    },
    /// Merge a draft onto the file as it is now; it has to be submitted again
    Rebase {
        /// The draft
        draft: String,
    },
    /// Make drafts of a plain answer: fenced blocks that name their file, or a unified diff
    Import {
        /// The answer, or `-` for standard input
        file: PathBuf,
        /// What it is for
        #[arg(long, value_name = "TASK")]
        task: String,
        /// The file of a block that does not name one
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
        /// Hand them in at once
        #[arg(long)]
        submit: bool,
    },
    /// Take an applied draft back, with everything that was submitted with it
    Undo {
        /// The draft
        draft: String,
    },
    /// Give up every draft and remove all stored contents; the journal stays
    Purge {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DraftWriteArgs {
    /// The draft
    pub(crate) draft: String,
    /// A file with the whole new text; standard input where it is `-`
    #[arg(long, value_name = "FILE", required_unless_present_any = ["delete", "rename", "executable", "not_executable"])]
    pub(crate) file: Option<PathBuf>,
    /// Only if the draft's text has this SHA-256
    #[arg(long, value_name = "HASH")]
    pub(crate) if_match: Option<String>,
    /// Let the file go
    #[arg(long, conflicts_with_all = ["file", "rename", "executable", "not_executable"])]
    pub(crate) delete: bool,
    /// Let the file move
    #[arg(long, value_name = "PATH", conflicts_with_all = ["file", "executable", "not_executable"])]
    pub(crate) rename: Option<String>,
    /// Let the file be run
    #[arg(long, conflicts_with_all = ["file", "not_executable"])]
    pub(crate) executable: bool,
    /// Do not let it be run any more
    #[arg(long, conflicts_with = "file")]
    pub(crate) not_executable: bool,
}

#[derive(Debug, Args)]
#[command(after_help = REVIEW_EXAMPLES)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    pub(crate) flags: WorkspaceFlags,
    /// Name to record with a decision; only a label [default: your login name]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) by: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<ReviewCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewCommand {
    /// List what waits for a person
    List,
    /// Show a submission: the difference, and the findings beside its lines
    Show {
        /// The draft
        draft: String,
        /// Show long lines to their end
        #[arg(long)]
        full: bool,
    },
    /// Let it be applied
    Approve(ReviewSayArgs),
    /// Close it
    Reject(ReviewSayArgs),
    /// Give it back to its worker with a comment
    SendBack(ReviewSayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReviewSayArgs {
    /// The draft
    pub(crate) draft: String,
    /// The seal that `moothall review show` printed: all of it or its first 12 digits
    #[arg(long, value_name = "HASH")]
    pub(crate) seal: String,
    /// Why
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
    /// Say which policies are in force and what is wrong with them
    Check,
    /// Judge a file as a draft of a path, without making one
    Test {
        /// The file in the workspace that would be changed
        path: String,
        /// The text it would have; standard input where it is `-`
        #[arg(long, value_name = "FILE")]
        draft: PathBuf,
    },
    /// Let this workspace's policy loosen the built-in one
    ///
    /// A policy that comes with a repository may only make things stricter. This shows what it loosens;
    /// with `--yes` the policy is trusted, as long as its text stays the same.
    Trust {
        /// Trust it
        #[arg(long)]
        yes: bool,
    },
    /// Show what the policy says about a path
    Explain {
        /// The path, relative to the workspace
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
    /// Check the whole chain and its signed checkpoints
    Verify {
        /// A record that you know of: its number and its hash
        #[arg(long, value_name = "SEQ:HASH")]
        anchor: Option<String>,
    },
    /// Print what happened, oldest first
    Show {
        /// Only what is about this draft
        #[arg(long, value_name = "DRAFT")]
        draft: Option<String>,
    },
    /// Write the records as they are, one JSON object a line
    Export {
        /// The file, or `-` for standard output
        file: PathBuf,
    },
}
