//! From HTTP requests to runs. A request names no file of the server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use moothall_core::ErrorCode;
use moothall_core::consult::{Committee, EvidenceSource, GatherRequest, Terms, board};
use moothall_core::model::ModelName;
use moothall_core::reflexion::{
    Contract, Expectation, InvalidPattern, MAX_ATTEMPTS, ReflexionInput,
};
use moothall_core::sandbox::Limits;
use moothall_core::{IsolationChoice, MicroUsd, RunSettings};
use moothall_server::wire::{Source, StartCode, StartConsult};

use super::{ConsultRequest, PARALLEL_MOVES, ProgramRequest};
use crate::error::CliError;

/// The image of programs that name none.
const IMAGE: &str = "python";

/// What a server uses where a request says nothing.
#[derive(Debug)]
pub(crate) struct ServerDefaults {
    pub(crate) model: Option<ModelName>,
    /// A folder of recorded filings.
    pub(crate) offline: Option<PathBuf>,
    /// The committees that requests can name beside the built-in one.
    pub(crate) committees: Vec<(Committee, PathBuf)>,
    /// The cluster whose workers drive the runs.
    pub(crate) restate: Option<String>,
}

impl ConsultRequest {
    /// What `POST /api/runs` is asked for.
    pub(crate) fn from_http(
        request: StartConsult,
        defaults: &ServerDefaults,
    ) -> Result<Self, CliError> {
        let mut committee = find_committee(request.committee.as_deref(), defaults)?;
        if let Some(rounds) = within("rounds", request.rounds, 20)? {
            committee.rounds = rounds;
        }
        let brief = request.brief.map(|brief| brief.replace("\r\n", "\n").trim().to_owned());
        let parallel = within("parallel_moves", request.parallel_moves, 40)?;
        Ok(Self {
            gather: GatherRequest {
                ticker: request.ticker.trim().to_ascii_uppercase(),
                source: match request.source {
                    None | Some(Source::Filings) => EvidenceSource::Filings,
                    Some(Source::Synthetic) => EvidenceSource::Synthetic,
                },
                as_of: request.as_of,
                allow_stale: request.allow_stale,
                name: None,
                documents: None,
                news: None,
            },
            committee,
            moves: within("moves", request.moves, 40)?,
            model: parse_model(request.model.as_deref(), defaults)?,
            role_models: Vec::new(),
            accept_findings: false,
            terms: Terms {
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
    /// What `POST /api/runs` is asked for.
    pub(crate) fn from_http(
        request: &StartCode,
        defaults: &ServerDefaults,
    ) -> Result<Self, CliError> {
        let task = request.task.trim();
        if task.is_empty() {
            return Err(CliError::usage("there is no task").with_code(ErrorCode::NoTask));
        }
        let pattern = request.expect_regex.as_deref().map(str::parse).transpose();
        let pattern = pattern.map_err(|error: InvalidPattern| {
            CliError::usage("what is expected cannot be used").with_source(error)
        })?;
        let attempts = within("attempts", request.attempts, MAX_ATTEMPTS)?;
        Ok(Self {
            task: task.to_owned(),
            model: parse_model(request.model.as_deref(), defaults)?,
            inputs: BTreeMap::new(),
            contract: Contract {
                expect: pattern.map(|pattern| Expectation::Pattern { pattern }),
                check: None,
                outputs: Vec::new(),
            },
            attempts: attempts.unwrap_or(ReflexionInput::USUAL_ATTEMPTS),
            image: IMAGE.to_owned(),
            limits: Limits::default(),
            settings: RunSettings {
                restate: defaults.restate.clone(),
                budget_micro_usd: parse_budget(request.budget_usd.as_deref())?,
                ..RunSettings::default()
            },
        })
    }
}

/// A committee that the server was started with. A request's word for it is compared with names and never looked for on the disk.
fn find_committee(name: Option<&str>, defaults: &ServerDefaults) -> Result<Committee, CliError> {
    let Some(name) = name.filter(|name| *name != board().name) else { return Ok(board()) };
    let found = defaults.committees.iter().find(|(one, _)| one.name == name);
    found.map(|(committee, _)| committee.clone()).ok_or_else(|| {
        CliError::usage("there is no such committee")
            .with_hint("`GET /api/committees` lists them")
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
            let words = "`isolation` is auto, microvm, runsc or none";
            return Err(CliError::usage(words).with_code(ErrorCode::BadIsolation));
        }
    }))
}

/// An amount of dollars as a request writes it.
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

fn within(name: &str, number: Option<u32>, most: u32) -> Result<Option<u32>, CliError> {
    match number {
        Some(number) if number == 0 || number > most => {
            Err(CliError::usage(format!("`{name}` is from 1 to {most}"))
                .with_code(ErrorCode::OutOfRange))
        }
        number => Ok(number),
    }
}
