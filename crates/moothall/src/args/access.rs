//! Commands about teams and tokens.

use std::time::Duration;

use clap::{Args, Subcommand};
use moothall_core::MicroUsd;
use moothall_core::access::{Limits, Scopes, TeamName};

const TOKEN_EXAMPLES: &str = "\
Examples:
  moothall token create --scope read --label \"wall screen\"
  moothall token create --team research --scope run --spend 20 --expires 30d
  moothall token list
  moothall token revoke 3f9a0c5b7e21";

#[derive(Debug, Subcommand)]
#[command(after_help = TOKEN_EXAMPLES)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, once
    Create(CreateTokenArgs),
    /// List the tokens that were given out; their secrets are not kept
    List {
        /// Only those of this team
        #[arg(long, value_name = "TEAM")]
        team: Option<TeamName>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a token back; whoever signed in with it is signed out
    Revoke {
        /// The token's id, as `token list` shows it
        #[arg(value_name = "ID")]
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateTokenArgs {
    /// The team it acts for
    #[arg(long, value_name = "TEAM", default_value = "local")]
    pub(crate) team: TeamName,
    /// What it covers: read, run, review or admin, or several joined by commas. Each covers read,
    /// and admin covers all
    #[arg(long, value_name = "SCOPES", default_value = "read")]
    pub(crate) scope: Scopes,
    /// When it ends, such as 12h, 90d or 1year, or `never`
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = parse_lifetime)]
    pub(crate) expires: Lifetime,
    /// Runs started with it that may go on or stand still at once
    #[arg(long, value_name = "N", default_value_t = Limits::USUAL_RUNS)]
    pub(crate) runs: u32,
    /// Dollars that runs started with it within 24 hours may cost [default: no limit but each
    /// run's own]
    #[arg(long, value_name = "USD")]
    pub(crate) spend: Option<MicroUsd>,
    /// Requests within a minute
    #[arg(long, value_name = "N", default_value_t = Limits::USUAL_REQUESTS, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: u32,
    /// What it is for, in your words
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) label: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long a token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Ends(Duration),
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Make a team
    Create {
        /// Its name: small letters, digits and dashes
        #[arg(value_name = "TEAM")]
        name: TeamName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the teams; `local` is always there
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn parse_lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime::Never);
    }
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(Lifetime::Ends(time)),
        _ => Err("not a time such as 12h, 90d or 1year, or `never`".to_owned()),
    }
}
