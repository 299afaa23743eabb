//! `moothall token`: manages the access tokens of a server.

use std::fmt::Write as _;

use moothall_core::access::{AccessCaller, CredentialLimits, InvalidName, TokenId};
use moothall_core::text::sanitize_line;
use moothall_store::{
    AccountStore, Credential, NewToken, StoreError, TeamFilter, TokenRow, now_ms, random_token_id,
};
use serde_json::{Value, json};

use super::{runtime, team};
use crate::args::{CreateTokenArgs, GlobalArgs, TokenCommand, TokenLifetime};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::run_store::{self, RunStore};
use crate::terminal::{self, BOLD, DIM};
use crate::{config, logging};

const LABEL_CHARS: usize = 40;

pub(crate) fn run(global: &GlobalArgs, command: &TokenCommand) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let local = RunStore::open(&loaded).await?;
        match command {
            TokenCommand::Create(args) => create(local.accounts(), args).await?,
            TokenCommand::List { team, json } => {
                let teams = team.clone().map_or(TeamFilter::All, TeamFilter::Only);
                let tokens =
                    local.accounts().tokens(teams).await.map_err(run_store::store_error)?;
                list(&tokens, *json)?;
            }
            TokenCommand::Revoke { id, json } => {
                revoke(local.accounts(), &parse_id(id)?, *json).await?;
            }
        }
        local.close().await;
        Ok(CliExit::Fine)
    })
}

async fn create(accounts: &dyn AccountStore, args: &CreateTokenArgs) -> anyhow::Result<()> {
    let no_randomness = |error| {
        CliError::failed("cannot get random bytes from the operating system")
            .with_source(anyhow::Error::new(error))
    };
    let secret = Credential::token().map_err(no_randomness)?;
    let id = random_token_id().map_err(no_randomness)?;
    let created_at_ms = now_ms();
    let token = NewToken {
        id: id.clone(),
        team: args.team.clone(),
        label: args.label.clone(),
        secret: secret.sha256(),
        scopes: args.scope,
        limits: CredentialLimits {
            runs_at_once: Some(args.runs),
            usd_a_day: args.spend,
            requests_a_minute: Some(args.rate),
        },
        created_at_ms,
        expires_at_ms: match args.expires {
            TokenLifetime::Never => None,
            TokenLifetime::Ends(time) => {
                let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                // SQLite's integers are signed; the clamped time is practically never.
                Some(created_at_ms.saturating_add(ms).min(u64::MAX >> 1))
            }
        },
    };
    accounts.create_token(token.clone()).await.map_err(refusal)?;
    if args.json {
        let report = json!({
            "id": id,
            "token": secret.reveal(),
            "team": token.team,
            "scopes": token.scopes,
            "limits": token.limits,
            "expires_at_ms": token.expires_at_ms,
        });
        terminal::print(&format!("{report:#}\n"))?;
        return Ok(());
    }
    // Only the token goes to standard output, for `TOKEN=$(moothall token create)`.
    terminal::print(&format!("{}\n", secret.reveal()))?;
    let ends = token.expires_at_ms.map_or_else(
        || "never expires".to_owned(),
        |at_ms| format!("expires {}", display::time(at_ms)),
    );
    terminal::note(&format!(
        "token {id} · team {} · {} · {ends}\n{DIM}{}\nsave the token now: only its hash is stored and it \
         cannot be shown again{DIM:#}\n",
        token.team,
        token.scopes,
        limits_line(token.limits),
    ));
    Ok(())
}

/// The error does not repeat the input, which may be the token itself.
fn parse_id(text: &str) -> Result<TokenId, CliError> {
    text.parse().map_err(|error: InvalidName| {
        CliError::usage(error.to_string()).with_hint("see `moothall token list`")
    })
}

async fn revoke(accounts: &dyn AccountStore, id: &TokenId, as_json: bool) -> anyhow::Result<()> {
    accounts.revoke_token(id, now_ms()).await.map_err(refusal)?;
    if as_json {
        terminal::print(&format!("{:#}\n", json!({ "id": id, "state": "revoked" })))?;
    } else {
        terminal::print(&format!("token {id} is revoked\n"))?;
    }
    Ok(())
}

fn list(tokens: &[TokenRow], as_json: bool) -> anyhow::Result<()> {
    let now_ms = now_ms();
    if as_json {
        let tokens: Vec<Value> = tokens.iter().map(|token| token_json(token, now_ms)).collect();
        terminal::print(&format!("{:#}\n", json!({ "tokens": tokens })))?;
    } else if tokens.is_empty() {
        terminal::print("no tokens\n")?;
        terminal::note(&format!("{DIM}create one: moothall token create --scope read{DIM:#}\n"));
    } else {
        terminal::print(&table(tokens, now_ms))?;
    }
    Ok(())
}

fn table(tokens: &[TokenRow], now_ms: u64) -> String {
    let wide = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let team = wide(&mut tokens.iter().map(|token| token.team.as_str().len())).max(4);
    let scopes = wide(&mut tokens.iter().map(|token| token.scopes.to_string().len())).max(6);
    let mut text = format!(
        "{BOLD}{:<12}  {:<team$}  {:<scopes$}  {:<7}  {:<20}  {:<20}  LABEL{BOLD:#}\n",
        "TOKEN", "TEAM", "SCOPES", "STATE", "ENDS", "LAST USED"
    );
    for token in tokens {
        let time = |at_ms: Option<u64>| at_ms.map_or_else(|| "never".to_owned(), display::time);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}  {:<team$}  {:<scopes$}  {:<7}  {:<20}  {:<20}  {}",
            token.id,
            token.team,
            token.scopes,
            state(token, now_ms),
            time(token.expires_at_ms),
            time(token.last_used_at_ms),
            display::cut(&sanitize_line(&token.label), LABEL_CHARS),
        );
    }
    text
}

fn state(token: &TokenRow, now_ms: u64) -> &'static str {
    match token.caller(now_ms) {
        AccessCaller::Known(_) => "active",
        AccessCaller::Expired => "expired",
        AccessCaller::Revoked => "revoked",
        // Unreachable: every row is an issued token.
        AccessCaller::Nobody | AccessCaller::Unknown => "unknown",
    }
}

fn token_json(token: &TokenRow, now_ms: u64) -> Value {
    json!({
        "id": token.id,
        "team": token.team,
        "label": token.label,
        "scopes": token.scopes,
        "state": state(token, now_ms),
        "limits": token.limits,
        "created_at_ms": token.created_at_ms,
        "expires_at_ms": token.expires_at_ms,
        "last_used_at_ms": token.last_used_at_ms,
        "revoked_at_ms": token.revoked_at_ms,
    })
}

fn limits_line(limits: CredentialLimits) -> String {
    let runs = limits.runs_at_once.map(|runs| format!("{runs} concurrent runs"));
    let spend = limits.usd_a_day.map(|usd| format!("{usd} per 24 hours"));
    let rate = limits.requests_a_minute.map(|rate| format!("{rate} requests per minute"));
    runs.into_iter().chain(spend).chain(rate).collect::<Vec<_>>().join(" · ")
}

fn refusal(error: StoreError) -> CliError {
    match error {
        StoreError::UnknownTeam(name) => team::no_such_team(&name),
        StoreError::UnknownToken(id) => CliError::usage(format!("no token with the id {id}"))
            .with_hint("see `moothall token list`"),
        StoreError::TooLarge { what, limit, .. } => {
            CliError::usage(format!("{what} is longer than {limit} bytes"))
        }
        error => run_store::store_error(error),
    }
}
