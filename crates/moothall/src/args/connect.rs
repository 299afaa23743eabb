//! Arguments of `connect` and `hook`.

use clap::{Args, ValueEnum};

use super::ToolsArg;

const CONNECT_EXAMPLES: &str = "\
Adds `moothall mcp` to the MCP servers of a coding agent. The change is shown before it is written;
order and comments of the file are kept. `--remove` takes the entry out again.

With --hook, the agent also asks the gate before it edits a file with its own tools. If the policy
would reject or escalate the edit, the agent must use a draft. A hook is early advice: it does not
see what a shell command writes. Cursor and Zed have no such hook.

Examples:
  moothall connect claude-code
  moothall connect codex --hook
  moothall connect gemini --project --yes
  moothall connect zed --print
  moothall connect claude-code --remove";

#[derive(Debug, Args)]
#[command(after_help = CONNECT_EXAMPLES)]
pub(crate) struct ConnectArgs {
    /// Agent to connect
    #[arg(value_enum, value_name = "CLIENT")]
    pub(crate) client: ConnectClient,
    /// Also add a hook that checks the agent's own edits before they are made
    #[arg(long, conflicts_with = "remove")]
    pub(crate) hook: bool,
    /// Select the tools: `drafts`, or `all` to add `sandbox_run`, `facts`, `check` and `consult`
    #[arg(long, value_enum, value_name = "SET", default_value_t = ToolsArg::Drafts)]
    pub(crate) tools: ToolsArg,
    /// Write the file of the project in the working directory instead of the user's file
    #[arg(long)]
    pub(crate) project: bool,
    /// Remove the entries that this command added
    #[arg(long)]
    pub(crate) remove: bool,
    /// Print the entries without reading or writing any file
    #[arg(long, conflicts_with_all = ["remove", "yes"])]
    pub(crate) print: bool,
    /// Write without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// A coding agent that `moothall connect` can configure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConnectClient {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    Opencode,
    Zed,
}

impl ConnectClient {
    /// The name on the command line, which is also the name of its worker.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Opencode => "opencode",
            Self::Zed => "zed",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// Agent that calls the hook
    #[arg(value_enum, value_name = "CLIENT")]
    pub(crate) client: ConnectClient,
}
