//! `moothall login`: prints a single-use link that signs a browser in.

use moothall_server::{AccessError, OriginGuard, login_code, login_link};
use moothall_store::StoreError;
use serde_json::json;

use super::{runtime, team};
use crate::args::{GlobalArgs, LoginArgs};
use crate::error::{CliError, CliExit};
use crate::run_store::{self, RunStore};
use crate::terminal::{self, DIM};
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, args: &LoginArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let origin = args.url.trim_end_matches('/');
    if OriginGuard::named(origin).is_none() {
        return Err(CliError::usage("invalid server URL")
            .with_hint("use the URL that `moothall serve` prints, such as http://127.0.0.1:7777")
            .into());
    }
    runtime()?.block_on(async {
        let local = RunStore::open(&loaded).await?;
        let code = login_code(local.accounts(), args.team.clone(), args.scope).await;
        local.close().await;
        let link = login_link(origin, &code.map_err(refusal)?);
        if args.json {
            terminal::print(&format!("{:#}\n", json!({ "link": link })))?;
        } else {
            terminal::print(&format!("{link}\n"))?;
            terminal::note(&format!("{DIM}valid once, for ten minutes{DIM:#}\n"));
        }
        Ok(CliExit::Fine)
    })
}

pub(crate) fn refusal(error: AccessError) -> CliError {
    match error {
        AccessError::Store(StoreError::UnknownTeam(name)) => team::no_such_team(&name),
        AccessError::Store(error) => run_store::store_error(error),
        error @ AccessError::Randomness(_) => {
            CliError::failed("cannot create a sign-in link").with_source(error)
        }
    }
}
