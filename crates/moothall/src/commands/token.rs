//! `moothall token`: who may call a server, and what they may do.

use std::fmt::Write as _;

use moothall_core::access::{Caller, InvalidName, Limits, TokenId};
use moothall_core::text::shown_line;
use moothall_store::{
    Accounts, Credential, NewToken, StoreError, Teams, TokenRow, now_ms, random_token_id,
};
use serde_json::{Value, json};

use super::{runtime, team};
use crate::args::{CreateTokenArgs, Global, Lifetime, TokenCommand};
use crate::display;
use crate::error::{CliError, Exit};
use crate::local::{self, Local};
use crate::terminal::{self, BOLD, DIM};
use crate::{config, logging};

/// The longest label in a list.
const LABEL_CHARS: usize = 40;

pub(super) fn run(global: &Global, command: &TokenCommand) -> anyhow::Result<Exit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let local = Local::open(&loaded).await?;
        match command {
            TokenCommand::Create(args) => create(local.accounts(), args).await?,
            TokenCommand::List { team, json } => {
                let teams = team.clone().map_or(Teams::All, Teams::Only);
                let tokens = local.accounts().tokens(teams).await.map_err(local::broken)?;
                list(&tokens, *json)?;
            }
            TokenCommand::Revoke { id, json } => {
                revoke(local.accounts(), &parse_id(id)?, *json).await?;
            }
        }
        local.close().await;
        Ok(Exit::Fine)
    })
}

async fn create(accounts: &dyn Accounts, args: &CreateTokenArgs) -> anyhow::Result<()> {
    let no_randomness =
        |error| CliError::failed("no randomness").with_source(anyhow::Error::new(error));
    let secret = Credential::token().map_err(no_randomness)?;
    let id = random_token_id().map_err(no_randomness)?;
    let created_at_ms = now_ms();
    let token = NewToken {
        id: id.clone(),
        team: args.team.clone(),
        label: args.label.clone(),
        secret: secret.sha256(),
        scopes: args.scope,
        limits: Limits {
            runs_at_once: Some(args.runs),
            usd_a_day: args.spend,
            requests_a_minute: Some(args.rate),
        },
        created_at_ms,
        expires_at_ms: match args.expires {
            Lifetime::Never => None,
            Lifetime::Ends(time) => {
                let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                // SQLite's integers have a sign; such a time is as good as never.
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
    // The token alone: `TOKEN=$(moothall token create)`.
    terminal::print(&format!("{}\n", secret.reveal()))?;
    let ends = token
        .expires_at_ms
        .map_or_else(|| "never ends".to_owned(), |at_ms| format!("ends {}", display::time(at_ms)));
    terminal::note(&format!(
        "token {id} · team {} · {} · {ends}\n{DIM}{}\nthis is the only time it is shown; only its \
         hash is kept{DIM:#}\n",
        token.team,
        token.scopes,
        limits_in_words(token.limits),
    ));
    Ok(())
}

/// The error does not repeat the words: they may be the token itself.
fn parse_id(words: &str) -> Result<TokenId, CliError> {
    words.parse().map_err(|error: InvalidName| {
        CliError::usage(error.to_string()).with_hint("`moothall token list` shows all")
    })
}

async fn revoke(accounts: &dyn Accounts, id: &TokenId, as_json: bool) -> anyhow::Result<()> {
    accounts.revoke_token(id, now_ms()).await.map_err(refusal)?;
    if as_json {
        terminal::print(&format!("{:#}\n", json!({ "id": id, "state": "revoked" })))?;
    } else {
        terminal::print(&format!("token {id} counts no more\n"))?;
    }
    Ok(())
}

fn list(tokens: &[TokenRow], as_json: bool) -> anyhow::Result<()> {
    let now_ms = now_ms();
    if as_json {
        let tokens: Vec<Value> = tokens.iter().map(|token| token_json(token, now_ms)).collect();
        terminal::print(&format!("{:#}\n", json!({ "tokens": tokens })))?;
    } else if tokens.is_empty() {
        terminal::print("there is no token\n")?;
        terminal::note(&format!("{DIM}make one: moothall token create --scope read{DIM:#}\n"));
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
            display::cut(&shown_line(&token.label), LABEL_CHARS),
        );
    }
    text
}

fn state(token: &TokenRow, now_ms: u64) -> &'static str {
    match token.caller(now_ms) {
        Caller::Known(_) => "active",
        Caller::Expired => "expired",
        Caller::Revoked => "revoked",
        // A row is a token that was given out.
        Caller::Nobody | Caller::Unknown => "unknown",
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

fn limits_in_words(limits: Limits) -> String {
    let runs = limits.runs_at_once.map(|runs| format!("{runs} runs at once"));
    let spend = limits.usd_a_day.map(|usd| format!("{usd} within 24 hours"));
    let rate = limits.requests_a_minute.map(|rate| format!("{rate} requests a minute"));
    runs.into_iter().chain(spend).chain(rate).collect::<Vec<_>>().join(" · ")
}

fn refusal(error: StoreError) -> CliError {
    match error {
        StoreError::UnknownTeam(name) => team::no_such_team(&name),
        StoreError::UnknownToken(id) => CliError::usage(format!("there is no token {id}"))
            .with_hint("`moothall token list` shows all"),
        StoreError::TooLarge { what, limit, .. } => {
            CliError::usage(format!("{what} is longer than {limit} bytes"))
        }
        error => local::broken(error),
    }
}
