//! `moothall config show|path|check`.

use crate::args::{ConfigCommand, Global};
use crate::config::{self, ConfigError, Environment, Places, Problem, resolve};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::terminal;

pub(super) fn run(global: &Global, command: &ConfigCommand) -> anyhow::Result<Exit> {
    let explicit = global.config.as_deref();
    match command {
        ConfigCommand::Show { json } => {
            let loaded = config::load(explicit, toml::Table::new())?;
            terminal::print(&config::show(&loaded.resolved, *json))?;
            Ok(Exit::Fine)
        }
        ConfigCommand::Path { json } => {
            let environment = Environment::of_process()?;
            let mut places = Places::find(&environment, explicit, "".as_ref())?;
            // A `.env` file may move the folders. What is wrong with a file is told elsewhere: this
            // helps where one is broken.
            let _ = places.read(&environment, toml::Table::new());
            terminal::print(&config::path(&places, *json))?;
            Ok(Exit::Fine)
        }
        ConfigCommand::Check { json } => {
            let environment = Environment::of_process()?;
            let mut places = Places::find(&environment, explicit, "".as_ref())?;
            let resolved = places.read(&environment, toml::Table::new()).and_then(resolve);
            // Keys and the catalog lie in files of their own, which only the next step reads.
            let resolved = resolved.and_then(|resolved| {
                Context::load(explicit, toml::Table::new()).map_err(problem)?;
                Ok(resolved)
            });
            terminal::print(&config::check(&resolved, *json))?;
            let is_fine = resolved.is_ok_and(|resolved| resolved.warnings.is_empty());
            Ok(if is_fine { Exit::Fine } else { Exit::Usage })
        }
    }
}

fn problem(error: CliError) -> ConfigError {
    Problem { message: error.words(), hint: error.hint, is_warning: false }.into()
}
