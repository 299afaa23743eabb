//! `moothall mcp`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::HandoffFlags;

const EXAMPLES: &str = "\
An agent that speaks the Model Context Protocol gets tools that draft changes to files; the gate
judges each submission before anything is written (see `moothall draft --help`). The part that
agents speak to opens no file, starts no program and reaches no network; what it is asked, another
process does.

Examples:
  moothall mcp --workspace .
  moothall mcp --workspace . --check
  moothall mcp --workspace . --http 127.0.0.1:7788
  claude mcp add moothall -- moothall mcp --workspace .";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// The folder whose files are drafted
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Whose drafts these are; each worker sees its own only
    #[arg(long, value_name = "NAME", default_value = "mcp")]
    pub(crate) worker: String,
    #[command(flatten)]
    pub(crate) view: HandoffFlags,
    /// The tools that are offered: those of drafts, or also `sandbox_run`, `facts` and `check`
    #[arg(long, value_enum, value_name = "SET", default_value_t = ToolsArg::Drafts)]
    pub(crate) tools: ToolsArg,
    /// The names they have: `draft_request`, or `ollama_request_draft`, or both
    #[arg(long, value_enum, value_name = "NAMES", default_value_t = ToolNamesArg::Neutral)]
    pub(crate) tool_names: ToolNamesArg,
    /// Speak HTTP on this address of this machine instead of standard input and output
    #[arg(long, value_name = "ADDR", conflicts_with = "socket")]
    pub(crate) http: Option<SocketAddr>,
    /// Speak HTTP on this socket file, which is made for you alone
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// The file with the token that clients show, with --http; made if it is not there [default:
    /// mcp-token in the state folder]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Where people review drafts in a browser, with `{draft}` for the draft; clients that can are
    /// asked to open it when a person must decide
    #[arg(long, value_name = "URL", value_parser = review_url)]
    pub(crate) review_url: Option<String>,
    /// Serve even where the walls around the serving part cannot be built
    #[arg(long)]
    pub(crate) allow_unconfined: bool,
    /// Build the walls, try them, say what holds, and end
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolsArg {
    Drafts,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolNamesArg {
    Neutral,
    Seed,
    Both,
}

/// The processes behind the one that agents speak to.
#[derive(Debug, Clone, Args)]
pub(crate) struct McpPartArgs {
    /// Which
    #[arg(value_enum)]
    pub(crate) part: McpPart,
    #[arg(long)]
    pub(crate) workspace: PathBuf,
    #[arg(long)]
    pub(crate) worker: String,
    #[command(flatten)]
    pub(crate) view: HandoffFlags,
    #[arg(long)]
    pub(crate) review_url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpPart {
    Gate,
    Runner,
}

fn review_url(text: &str) -> Result<String, String> {
    let web = text.starts_with("http://") || text.starts_with("https://");
    match web && text.contains("{draft}") && !text.contains(char::is_whitespace) {
        true => Ok(text.to_owned()),
        false => Err("an address of a page with `{draft}` in it".to_owned()),
    }
}
