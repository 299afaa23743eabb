//! `moothall moves`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

const MOVES_EXAMPLES: &str = "\
A consultation that was started with `--pause-after moves` stands still before the debates. What is
said here is kept with the run; `moothall resume` tells it. The last word on a move counts. Moves
that are edited or added are checked like those of the analysts, and nobody writes them again.

A file is TOML or JSON. A move needs a title and a thesis; the rest may be left out:

  title = \"Sell the idle plant\"
  thesis = \"It costs more than it earns.\"
  actions = [\"The board names a buyer.\"]
  what_must_be_true = [\"There is a buyer.\"]
  evidence = [\"F0:Capex:FY2025\"]
  risks = [\"The price is low.\"]
  cost = \"Little.\"
  horizon = \"Two years.\"
  kill_criteria = [\"No offer by summer.\"]

Several moves stand in a file as [[moves]], or as a JSON list.

Examples:
  moothall moves 019a85c0-2f6e
  moothall moves 019a85c0-2f6e --veto m3 --why \"tried in 2024\" --by Ada
  moothall moves 019a85c0-2f6e --write drafts
  moothall moves 019a85c0-2f6e --edit m5=drafts/m5.toml --add mine.toml
  moothall resume 019a85c0-2f6e";

#[derive(Debug, Args)]
#[command(after_help = MOVES_EXAMPLES)]
pub(crate) struct MovesArgs {
    /// The run: its id or the beginning of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Do not let this move be debated; may be given more than once
    #[arg(long, value_name = "MOVE")]
    pub(crate) veto: Vec<String>,
    /// Why, for every veto of this command
    #[arg(long, value_name = "TEXT", requires = "veto")]
    pub(crate) why: Option<String>,
    /// Let this move read as the file says; may be given more than once
    #[arg(long, value_name = "MOVE=FILE")]
    pub(crate) edit: Vec<EditedMove>,
    /// Add the moves of this file; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) add: Vec<PathBuf>,
    /// Who says so [default: your login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Take back everything that was said here before
    #[arg(long)]
    pub(crate) undo: bool,
    /// Write every move into this folder as a file to edit
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `m5=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditedMove {
    pub(crate) move_id: String,
    pub(crate) file: PathBuf,
}

impl FromStr for EditedMove {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((move_id, file)) if !move_id.is_empty() && !file.is_empty() => {
                Ok(Self { move_id: move_id.to_owned(), file: file.into() })
            }
            _ => Err("write MOVE=FILE, such as m5=m5.toml".to_owned()),
        }
    }
}
