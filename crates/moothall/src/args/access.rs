//! Arguments of `team` and `token`.

use std::time::Duration;

use clap::{Args, Subcommand};
use moothall_core::MicroUsd;
use moothall_core::access::{CredentialLimits, ScopeSet, TeamName};

const TOKEN_EXAMPLES: &str = "\
Examples:
  moothall token create --scope read --label \"wall screen\"
  moothall token create --team research --scope run --spend 20 --expires 30d
  moothall token list
  moothall token revoke 3f9a0c5b7e21";

#[derive(Debug, Subcommand)]
#[command(after_help = TOKEN_EXAMPLES)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it cannot be shown again
    Create(CreateTokenArgs),
    /// List tokens; their secrets are not stored
    List {
        /// List only the tokens of this team
        #[arg(long, value_name = "TEAM")]
        team: Option<TeamName>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token and end its sessions
    Revoke {
        /// Id of the token, as shown by `token list`
        #[arg(value_name = "ID")]
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateTokenArgs {
    /// Team that the token acts for
    #[arg(long, value_name = "TEAM", default_value = "local")]
    pub(crate) team: TeamName,
    /// Grant these scopes: read, run, review or admin, separated by commas; every scope includes
    /// read, and admin includes all
    #[arg(long, value_name = "SCOPES", default_value = "read")]
    pub(crate) scope: ScopeSet,
    /// Expire after this time, such as 12h, 90d or 1year, or `never`
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = parse_lifetime)]
    pub(crate) expires: TokenLifetime,
    /// Limit the active and paused runs started with the token
    #[arg(long, value_name = "N", default_value_t = CredentialLimits::DEFAULT_RUNS)]
    pub(crate) runs: u32,
    /// Limit the dollars that runs started with the token may cost in 24 hours [default: only each
    /// run's own limit]
    #[arg(long, value_name = "USD")]
    pub(crate) spend: Option<MicroUsd>,
    /// Limit the requests per minute
    #[arg(long, value_name = "N", default_value_t = CredentialLimits::DEFAULT_REQUESTS, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: u32,
    /// Describe what the token is for
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) label: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lifetime of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenLifetime {
    Ends(Duration),
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Create a team
    Create {
        /// Name of the team: lower-case letters, digits and dashes
        #[arg(value_name = "TEAM")]
        name: TeamName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List teams, including the built-in `local`
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn parse_lifetime(text: &str) -> Result<TokenLifetime, String> {
    if text == "never" {
        return Ok(TokenLifetime::Never);
    }
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(TokenLifetime::Ends(time)),
        _ => Err("expected a duration such as 12h, 90d or 1year, or `never`".to_owned()),
    }
}
