//! Converts HTTP request bodies to consult and program requests. Bodies cannot refer to files of the server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use moothall_core::ErrorCode;
use moothall_core::consult::{Committee, ConsultOptions, EvidenceSource, GatherRequest, board};
use moothall_core::model::ModelName;
use moothall_core::program::{
    InvalidPattern, MAX_ATTEMPTS, OutputExpectation, ProgramContract, ProgramInput,
};
use moothall_core::sandbox::SandboxLimits;
use moothall_core::{IsolationChoice, MicroUsd, RunSettings};
use moothall_server::dto::{ConsultSource, StartConsultRequest, StartProgramRequest};

use super::{ConsultRequest, PARALLEL_MOVES, ProgramRequest};
use crate::display;
use crate::error::CliError;

/// Default image of programs.
const IMAGE: &str = "python";

/// Defaults for values that a request omits.
#[derive(Debug)]
pub(crate) struct ServerDefaults {
    pub(crate) model: Option<ModelName>,
    /// Directory of recorded filings.
    pub(crate) offline: Option<PathBuf>,
    /// Committees available in addition to the built-in one.
    pub(crate) committees: Vec<(Committee, PathBuf)>,
    /// URL of the cluster that executes the runs.
    pub(crate) restate: Option<String>,
}

impl ConsultRequest {
    /// Converts the body of `POST /api/runs`.
    pub(crate) fn from_http(
        request: StartConsultRequest,
        defaults: &ServerDefaults,
    ) -> Result<Self, CliError> {
        let mut committee = find_committee(request.committee.as_deref(), defaults)?;
        if let Some(rounds) = check_range("rounds", request.rounds, 20)? {
            committee.rounds = rounds;
        }
        let brief = request.brief.map(|brief| brief.replace("\r\n", "\n").trim().to_owned());
        let parallel = check_range("parallel_moves", request.parallel_moves, 40)?;
        Ok(Self {
            gather: GatherRequest {
                ticker: request.ticker.trim().to_ascii_uppercase(),
                source: match request.source {
                    None | Some(ConsultSource::Filings) => EvidenceSource::Filings,
                    Some(ConsultSource::Synthetic) => EvidenceSource::Synthetic,
                },
                as_of: request.as_of,
                allow_stale: request.allow_stale,
                name: None,
                documents: None,
                news: None,
            },
            committee,
            moves: check_range("moves", request.moves, 40)?,
            model: parse_model(request.model.as_deref(), defaults)?,
            role_models: Vec::new(),
            accept_findings: false,
            terms: ConsultOptions {
                brief: brief.filter(|brief| !brief.is_empty()),
                moves: Vec::new(),
                pause_after_moves: request.pause_after_moves,
                do_nothing: true,
                baseline: request.baseline,
            },
            settings: RunSettings {
                restate: defaults.restate.clone(),
                isolation: parse_isolation(request.isolation.as_deref())?,
                parallel_moves: Some(parallel.unwrap_or(PARALLEL_MOVES)),
                budget_micro_usd: parse_budget(request.budget_usd.as_deref())?,
                offline: defaults.offline.clone(),
                ..RunSettings::default()
            },
        })
    }
}

impl ProgramRequest {
    /// Converts the body of `POST /api/runs`.
    pub(crate) fn from_http(
        request: &StartProgramRequest,
        defaults: &ServerDefaults,
    ) -> Result<Self, CliError> {
        let task = request.task.trim();
        if task.is_empty() {
            return Err(CliError::usage("missing task")
                .with_hint("describe the program in `task`")
                .with_code(ErrorCode::NoTask));
        }
        let pattern = request.expect_regex.as_deref().map(str::parse).transpose();
        let pattern = pattern.map_err(|error: InvalidPattern| {
            CliError::usage("invalid regular expression in `expect_regex`").with_source(error)
        })?;
        let attempts = check_range("attempts", request.attempts, MAX_ATTEMPTS)?;
        Ok(Self {
            task: task.to_owned(),
            model: parse_model(request.model.as_deref(), defaults)?,
            inputs: BTreeMap::new(),
            contract: ProgramContract {
                expect: pattern.map(|pattern| OutputExpectation::Pattern { pattern }),
                check: None,
                outputs: Vec::new(),
            },
            attempts: attempts.unwrap_or(ProgramInput::DEFAULT_ATTEMPTS),
            image: IMAGE.to_owned(),
            limits: SandboxLimits::default(),
            settings: RunSettings {
                restate: defaults.restate.clone(),
                budget_micro_usd: parse_budget(request.budget_usd.as_deref())?,
                ..RunSettings::default()
            },
        })
    }
}

/// Finds a committee by name. The name comes from a request and is never used as a path.
fn find_committee(name: Option<&str>, defaults: &ServerDefaults) -> Result<Committee, CliError> {
    let Some(name) = name.filter(|name| *name != board().name) else { return Ok(board()) };
    let found = defaults.committees.iter().find(|(one, _)| one.name == name);
    found.map(|(committee, _)| committee.clone()).ok_or_else(|| {
        CliError::usage(format!("unknown committee `{}`", display::line(name)))
            .with_hint("see `GET /api/committees`")
            .with_code(ErrorCode::UnknownCommittee)
    })
}

fn parse_isolation(name: Option<&str>) -> Result<Option<IsolationChoice>, CliError> {
    Ok(Some(match name {
        None => return Ok(None),
        Some("auto") => IsolationChoice::Auto,
        Some("microvm") => IsolationChoice::Microvm,
        Some("runsc") => IsolationChoice::Runsc,
        Some("none") => IsolationChoice::None,
        Some(_) => {
            let message = "`isolation` must be auto, microvm, runsc or none";
            return Err(CliError::usage(message).with_code(ErrorCode::BadIsolation));
        }
    }))
}

pub(crate) fn parse_budget(written: Option<&str>) -> Result<Option<MicroUsd>, CliError> {
    let parse = |text: &str| {
        text.parse().map_err(|error: moothall_core::money::InvalidAmount| {
            CliError::usage(error.to_string()).with_code(ErrorCode::BadBudget)
        })
    };
    written.map(parse).transpose()
}

fn parse_model(
    written: Option<&str>,
    defaults: &ServerDefaults,
) -> Result<Option<ModelName>, CliError> {
    let Some(text) = written.filter(|text| !text.is_empty()) else {
        return Ok(defaults.model.clone());
    };
    text.parse().map(Some).map_err(|error: moothall_core::model::InvalidModelName| {
        CliError::usage(error.to_string()).with_code(ErrorCode::BadModel)
    })
}

fn check_range(name: &str, number: Option<u32>, max: u32) -> Result<Option<u32>, CliError> {
    match number {
        Some(number) if number == 0 || number > max => {
            Err(CliError::usage(format!("`{name}` must be between 1 and {max}"))
                .with_code(ErrorCode::OutOfRange))
        }
        number => Ok(number),
    }
}
