//! `moothall notify`: tests the configured notifications and sends kept ones again.

use super::runtime;
use crate::args::{GlobalArgs, NotifyCommand};
use crate::error::CliExit;
use crate::notify::{self, ResendResult};
use crate::terminal;
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, command: &NotifyCommand) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    match command {
        NotifyCommand::Test => {
            let sent = runtime()?.block_on(notify::send_test(&loaded))?;
            terminal::print(&format!("sent a test message to {}\n", sent.join(" and ")))?;
            Ok(CliExit::Fine)
        }
        NotifyCommand::Resend => {
            let ResendResult { sent, left } = runtime()?.block_on(notify::resend_all(&loaded))?;
            terminal::print(&format!("messages sent: {sent}, left: {left}\n"))?;
            Ok(CliExit::Fine)
        }
    }
}
