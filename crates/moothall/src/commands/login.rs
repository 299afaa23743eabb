//! `moothall login`: a link that signs a browser in, once.

use moothall_server::{AccessError, Guard, login_code, login_link};
use moothall_store::StoreError;
use serde_json::json;

use super::{runtime, team};
use crate::args::{Global, LoginArgs};
use crate::error::{CliError, Exit};
use crate::local::{self, Local};
use crate::terminal::{self, DIM};
use crate::{config, logging};

pub(super) fn run(global: &Global, args: &LoginArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let origin = args.url.trim_end_matches('/');
    if Guard::named(origin).is_none() {
        return Err(CliError::usage("that is not the address of a server")
            .with_hint("it is what `moothall serve` prints, such as http://127.0.0.1:7777")
            .into());
    }
    runtime()?.block_on(async {
        let local = Local::open(&loaded).await?;
        let made = login_code(local.accounts(), args.team.clone(), args.scope).await;
        local.close().await;
        let link = login_link(origin, &made.map_err(refusal)?);
        if args.json {
            terminal::print(&format!("{:#}\n", json!({ "link": link })))?;
        } else {
            terminal::print(&format!("{link}\n"))?;
            terminal::note(&format!("{DIM}it counts once, and for ten minutes{DIM:#}\n"));
        }
        Ok(Exit::Fine)
    })
}

/// What a person is told where no link can be made.
pub(super) fn refusal(error: AccessError) -> CliError {
    match error {
        AccessError::Store(StoreError::UnknownTeam(name)) => team::no_such_team(&name),
        AccessError::Store(error) => local::broken(error),
        error @ AccessError::Randomness(_) => {
            CliError::failed("no link can be made").with_source(error)
        }
    }
}
