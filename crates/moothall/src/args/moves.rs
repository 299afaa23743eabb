//! Arguments of `moves`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

const MOVES_EXAMPLES: &str = "\
A consultation started with `--pause-after moves` pauses before the debates. Your changes are stored
with the run and take effect on `moothall resume`. The last change to a move wins. Edited and added
moves are checked like those of the analysts, but not rewritten.

A file is TOML or JSON. A move needs a title and a thesis; all other fields are optional:

  title = \"Sell the idle plant\"
  thesis = \"It costs more than it earns.\"
  actions = [\"The board names a buyer.\"]
  what_must_be_true = [\"There is a buyer.\"]
  evidence = [\"F0:Capex:FY2025\"]
  risks = [\"The price is low.\"]
  cost = \"Little.\"
  horizon = \"Two years.\"
  kill_criteria = [\"No offer by summer.\"]

Write several moves in one file as [[moves]], or as a JSON list.

Examples:
  moothall moves 019a85c0-2f6e
  moothall moves 019a85c0-2f6e --veto m3 --reason \"tried in 2024\" --by Ada
  moothall moves 019a85c0-2f6e --write drafts
  moothall moves 019a85c0-2f6e --edit m5=drafts/m5.toml --add mine.toml
  moothall resume 019a85c0-2f6e";

#[derive(Debug, Args)]
#[command(after_help = MOVES_EXAMPLES)]
pub(crate) struct MovesArgs {
    /// Run id or unique prefix
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Exclude this move from the debates (repeatable)
    #[arg(long, value_name = "MOVE")]
    pub(crate) veto: Vec<String>,
    /// Give the reason for all vetoes of this command
    #[arg(long = "reason", alias = "why", value_name = "TEXT", requires = "veto")]
    pub(crate) why: Option<String>,
    /// Replace this move with the one in the file (repeatable)
    #[arg(long, value_name = "MOVE=FILE")]
    pub(crate) edit: Vec<MoveEditArg>,
    /// Add the moves in this file (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) add: Vec<PathBuf>,
    /// Record this name with the changes [default: your login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Undo all earlier changes made with this command
    #[arg(long)]
    pub(crate) undo: bool,
    /// Write every move to this directory as an editable file
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parsed from `m5=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoveEditArg {
    pub(crate) move_id: String,
    pub(crate) file: PathBuf,
}

impl FromStr for MoveEditArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((move_id, file)) if !move_id.is_empty() && !file.is_empty() => {
                Ok(Self { move_id: move_id.to_owned(), file: file.into() })
            }
            _ => Err("expected MOVE=FILE, such as m5=m5.toml".to_owned()),
        }
    }
}
