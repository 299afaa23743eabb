//! Arguments of `key`.

use clap::{Args, Subcommand};
use moothall_core::model::ModelName;

const SET_EXAMPLES: &str = "\
Examples:
  moothall key set openai
  moothall key set openai < openai.key
  op read op://Private/OpenAI/key | moothall key set openai -";

const KEY_ORDER: &str = "\
A key is looked up in this order: environment variable, .env file, `key_command`, `key_file`,
`moothall key set`.";

#[derive(Debug, Subcommand)]
#[command(after_help = KEY_ORDER)]
pub(crate) enum KeyCommand {
    /// Store an API key in the keychain, or in a private file
    #[command(after_help = SET_EXAMPLES)]
    Set(SetKeyArgs),
    /// List the providers and where their keys come from
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Test an API key with the cheapest request
    Test(TestKeyArgs),
    /// Remove a stored API key
    Remove {
        /// Provider, such as openai
        provider: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SetKeyArgs {
    /// Provider, such as openai
    pub(crate) provider: String,
    /// `-` reads the key from standard input [default: if it is not a terminal]
    #[arg(value_name = "-", hide_possible_values = true)]
    pub(crate) input: Option<String>,
    /// Store the key in a private file, even if there is a keychain
    #[arg(long)]
    pub(crate) file: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestKeyArgs {
    /// Provider, such as openai
    pub(crate) provider: String,
    /// Make one small call to this model, which may cost a fraction of a cent
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelName>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
