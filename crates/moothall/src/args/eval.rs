//! Arguments of `eval`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use moothall_core::MicroUsd;
use moothall_core::benchmark::BenchmarkSet;
use moothall_core::evidence::CalendarDay;
use moothall_core::model::{ModelList, ModelName};

const EVAL_EXAMPLES: &str = "\
The set synthetic-1 has 40 fictional companies with 15 moves each. The true value of a move is its
net present value, computed from the inputs that its text states. Without `--panel`, scripted judges
with known errors score the moves: this tests the statistics, needs no API key, and takes a minute
or two.

Scripted judges are described by a profile: `default`, `exact` (no errors), or a TOML file.

Examples:
  moothall eval --companies 4
  moothall eval --profile exact --no-allowances
  moothall eval --panel openai/gpt-5-mini --panel google/gemini-3-flash --companies 10 --yes
  moothall eval --write judges.toml

With `--as-of`, the panel is tested on the past: consultations see filings up to that day, and later
filings answer the forecasts.

  moothall eval --as-of 2024-12-31 --tickers AAPL,MSFT,KO --model openai/gpt-5-mini --yes
  moothall eval --as-of 2024-12-31 --tickers HLXI --model demo --rounds 1";

#[derive(Debug, Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub(crate) struct EvalArgs {
    /// Use this set of companies
    #[arg(long, value_name = "NAME", default_value = "synthetic-1", value_parser = PossibleValuesParser::new(BenchmarkSet::NAMES))]
    pub(crate) set: String,
    /// Score forecasts of consultations that see only filings up to this date; requires --tickers
    #[arg(long, value_name = "DATE", value_parser = super::consult::parse_day, requires = "tickers", conflicts_with_all = ["set", "companies", "profile", "no_allowances", "parallel", "write", "chart"])]
    pub(crate) as_of: Option<CalendarDay>,
    /// The companies of --as-of, separated by commas
    #[arg(long, value_name = "TICKER,…", value_delimiter = ',', requires = "as_of")]
    pub(crate) tickers: Vec<String>,
    /// With --as-of: use the recorded filings in this directory instead of the network
    #[arg(long, value_name = "DIR", requires = "as_of")]
    pub(crate) offline: Option<PathBuf>,
    /// Use only the first so many companies [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=40))]
    pub(crate) companies: Option<u32>,
    /// Use only the first so many moves of each company [default: all 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=15))]
    pub(crate) moves: Option<u32>,
    /// Measure this model as a member of the panel; several models are dealt to the members in turn
    /// (repeatable) [default: scripted judges]
    #[arg(long, value_name = "MODEL")]
    pub(crate) panel: Vec<ModelName>,
    /// Let this model speak in the debates [default: a script]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<ModelList>,
    /// Describe the scripted judges: `default`, `exact` or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "default", conflicts_with = "panel")]
    pub(crate) profile: String,
    /// Set the rounds of each debate
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) rounds: u32,
    /// Debate the best so many moves again, stage by stage [default: 8,4,4]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=30))]
    pub(crate) again: Option<Vec<u32>>,
    /// Set all allowances for errors that the panel cannot see to zero
    #[arg(long)]
    pub(crate) no_allowances: bool,
    /// Run this many companies in parallel
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) parallel: u32,
    /// Limit the cost of each run, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<MicroUsd>,
    /// Start without confirmation, whatever the cost
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Keep the runs; `moothall runs` lists them
    #[arg(long)]
    pub(crate) keep: bool,
    /// Store the measured errors of these models; `moothall consult` uses them from judges.toml in
    /// the configuration directory, or with `--judges FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Write a chart of the stated chances as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) chart: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
