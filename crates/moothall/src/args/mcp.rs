//! Arguments of `mcp`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use moothall_core::MicroUsd;

use super::HandoffFlags;

const EXAMPLES: &str = "\
Agents that speak the Model Context Protocol get tools for drafting file changes; the gate checks
every submission before anything is written (see `moothall draft --help`). The process that agents
talk to cannot open files, start programs or use the network; it forwards requests to another
process.

Examples:
  moothall mcp --workspace .
  moothall mcp --workspace . --check
  moothall mcp --workspace . --http 127.0.0.1:7788
  claude mcp add moothall -- moothall mcp --workspace .";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// Use this workspace directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Act as this worker; a worker sees only its own drafts
    #[arg(long, value_name = "NAME", default_value = "mcp")]
    pub(crate) worker: String,
    #[command(flatten)]
    pub(crate) view: HandoffFlags,
    /// Select the tools: `drafts`, or `all` to add `sandbox_run`, `facts`, `check` and `consult`
    #[arg(long, value_enum, value_name = "SET", default_value_t = ToolsArg::Drafts)]
    pub(crate) tools: ToolsArg,
    /// Select the tool names: `draft_request`, `ollama_request_draft`, or both
    #[arg(long, value_enum, value_name = "NAMES", default_value_t = ToolNamesArg::Neutral)]
    pub(crate) tool_names: ToolNamesArg,
    /// Limit what all consultations of the agent may cost together, in dollars [default: 0, which
    /// allows free models only]
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// Serve HTTP on this loopback address instead of standard input and output
    #[arg(long, value_name = "ADDR", conflicts_with = "socket")]
    pub(crate) http: Option<SocketAddr>,
    /// Serve HTTP on this Unix socket, accessible only to you
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// Read the client token from this file, with --http; created if missing [default: mcp-token in
    /// the state directory]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Set the review page for drafts, with `{draft}` for the draft id; capable clients are asked
    /// to open it when review is needed
    #[arg(long, value_name = "URL", value_parser = review_url)]
    pub(crate) review_url: Option<String>,
    /// Serve even if the serving process cannot be confined
    #[arg(long)]
    pub(crate) allow_unconfined: bool,
    /// Confine the process, test the confinement, report the result, and exit
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

/// Arguments of the helper processes of `mcp`.
#[derive(Debug, Clone, Args)]
pub(crate) struct McpPartArgs {
    /// Helper process to run
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
    #[arg(long)]
    pub(crate) budget: Option<MicroUsd>,
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
        false => Err("expected an http or https URL that contains `{draft}`".to_owned()),
    }
}
