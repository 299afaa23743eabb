//! `moothall config show|path|check`.

use crate::args::{ConfigCommand, Global};
use crate::config::{self, Environment, Places, resolve};
use crate::context::Context;
use crate::error::Exit;
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
            // Reads no file, so that it helps where a file is broken.
            let places = Places::find(&Environment::of_process()?, explicit, "".as_ref())?;
            terminal::print(&config::path(&places, *json))?;
            Ok(Exit::Fine)
        }
        ConfigCommand::Check { json } => {
            let environment = Environment::of_process()?;
            let mut places = Places::find(&environment, explicit, "".as_ref())?;
            let resolved = places.read(&environment, toml::Table::new()).and_then(resolve);
            terminal::print(&config::check(&resolved, *json))?;
            if resolved.is_err() {
                return Ok(Exit::Usage);
            }
            // Keys and the catalog lie in files of their own; their problems come as errors.
            Context::load(explicit, toml::Table::new())?;
            Ok(Exit::Fine)
        }
    }
}
