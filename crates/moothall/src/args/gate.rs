//! Arguments of `moothall gate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const GATE_EXAMPLES: &str = "\
Examples:
  moothall gate                             everything that is not committed
  moothall gate --staged                    what `git commit` would commit
  moothall gate origin/main..HEAD           the commits of a branch
  git diff | moothall gate --patch -        a patch, applied to HEAD
  moothall gate --format sarif main..HEAD   findings for code scanning
  moothall gate install                     judge every commit of this repository

Exit codes: 0 accepted, 1 rejected, 3 a person must decide, 2 and 4 the change was not judged";

#[derive(Debug, Args)]
#[command(after_help = GATE_EXAMPLES)]
pub(crate) struct GateArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GateCommand>,
    /// Judge the difference between two commits, A..B, or since their common ancestor, A...B
    /// [default: everything that is not committed]
    #[arg(value_name = "A..B", conflicts_with_all = ["staged", "worktree", "patch"])]
    pub(crate) range: Option<String>,
    /// Judge what is staged for the next commit
    #[arg(long, conflicts_with_all = ["worktree", "patch"])]
    pub(crate) staged: bool,
    /// Judge all files on disk that differ from HEAD, including untracked ones, and what is staged
    #[arg(long, conflicts_with = "patch")]
    pub(crate) worktree: bool,
    /// Judge a patch in git's format; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) patch: Option<PathBuf>,
    /// Apply the patch to this commit, whose policy judges it
    #[arg(long, value_name = "COMMIT", requires = "patch", default_value = "HEAD")]
    pub(crate) base: String,
    /// Do not require the policy's checks and reviewing model, because they run elsewhere
    #[arg(long)]
    pub(crate) skip_checks: bool,
    /// Select the output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) format: GateFormatArg,
    /// Print JSON; the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Judge the repository of this directory
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub(crate) workspace: PathBuf,
}

impl GateArgs {
    /// Whether something to judge is selected, which a subcommand does not use.
    pub(crate) fn has_selection(&self) -> bool {
        self.range.is_some() || self.staged || self.worktree || self.patch.is_some()
    }

    pub(crate) fn format(&self) -> GateFormatArg {
        if self.json { GateFormatArg::Json } else { self.format }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum GateCommand {
    /// Install a git hook that judges every commit; an existing hook is kept and runs first
    Install {
        /// Remove the hook, and restore the previous one
        #[arg(long)]
        remove: bool,
    },
}

/// The output format of `gate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum GateFormatArg {
    /// Code frames for people
    #[default]
    Text,
    /// Every file with its findings
    Json,
    /// SARIF 2.1.0, for code scanning and editors
    Sarif,
    /// Annotations of a GitHub workflow
    Github,
    /// JUnit XML, for GitLab and other servers
    Junit,
}
