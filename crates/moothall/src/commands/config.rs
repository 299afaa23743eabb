//! `moothall config show|path|check`.

use crate::args::{ConfigCommand, GlobalArgs};
use crate::config::{self, ConfigError, ConfigLocations, ConfigProblem, EnvVars, resolve};
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::terminal;

pub(crate) fn run(global: &GlobalArgs, command: &ConfigCommand) -> anyhow::Result<CliExit> {
    let explicit = global.config.as_deref();
    match command {
        ConfigCommand::Show { json } => {
            let loaded = config::load(explicit, toml::Table::new())?;
            terminal::print(&config::show(&loaded.resolved, *json))?;
            Ok(CliExit::Fine)
        }
        ConfigCommand::Path { json } => {
            let environment = EnvVars::of_process()?;
            let mut locations = ConfigLocations::find(&environment, explicit, "".as_ref())?;
            // A `.env` file can change the directories. Errors are ignored, because this command
            // must also work with a broken configuration.
            let _ = locations.read(&environment, toml::Table::new());
            terminal::print(&config::path(&locations, *json))?;
            Ok(CliExit::Fine)
        }
        ConfigCommand::Check { json } => {
            let environment = EnvVars::of_process()?;
            let mut locations = ConfigLocations::find(&environment, explicit, "".as_ref())?;
            let resolved = locations.read(&environment, toml::Table::new()).and_then(resolve);
            // API keys and the catalog are in separate files, which only `CommandContext::load` reads.
            let resolved = resolved.and_then(|resolved| {
                CommandContext::load(explicit, toml::Table::new()).map_err(problem)?;
                Ok(resolved)
            });
            terminal::print(&config::check(&resolved, *json))?;
            let is_fine = resolved.is_ok_and(|resolved| resolved.warnings.is_empty());
            Ok(if is_fine { CliExit::Fine } else { CliExit::Usage })
        }
    }
}

fn problem(error: CliError) -> ConfigError {
    ConfigProblem { message: error.full_message(), hint: error.hint, is_warning: false }.into()
}
