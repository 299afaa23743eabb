//! Converts HTTP request bodies to consult and program requests. Bodies cannot refer to files of the server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use moothall_core::ErrorCode;
use moothall_core::consult::{
    Committee, ConsultOptions, EvidenceSource, GatherRequest, MAX_REPEAT, VerdictConflict,
    VerdictMode, VerdictRequest, board,
};
use moothall_core::model::{ModelChoice, ModelList, ModelName, OutputSchema};
use moothall_core::program::{
    InvalidPattern, MAX_ATTEMPTS, OutputExpectation, ProgramContract, ProgramInput,
};
use moothall_core::sandbox::SandboxLimits;
use moothall_core::{IsolationChoice, MicroUsd, NewsChoice, RunSettings};
use moothall_server::dto::{ConsultSource, StartConsultRequest, StartProgramRequest};

use super::consult_request::{debated_moves, verdict_refusal};
use super::{ConsultRequest, PARALLEL_MOVES, ProgramRequest, RunFiles, request_files};
use crate::commands::committee;
use crate::context::parse_models;
use crate::error::CliError;
use crate::evidence_sources::news_source;
use crate::judge_files::JudgeFileSource;
use crate::{display, isolation, user_input};

/// Default image of programs.
const IMAGE: &str = "python";

/// Defaults for values that a request omits.
#[derive(Debug)]
pub(crate) struct ServerDefaults {
    pub(crate) model: Option<ModelList>,
    /// Directory of recorded filings.
    pub(crate) offline: Option<PathBuf>,
    /// Committees available in addition to the built-in one.
    pub(crate) committees: Vec<(Committee, PathBuf)>,
    /// URL of the cluster that executes the runs.
    pub(crate) restate: Option<String>,
    /// Whether requests can name a feed that the server fetches.
    pub(crate) allows_feeds: bool,
}

/// Name of the documents of a request, as evidence shows it. A directory has its own name.
const DOCUMENTS_LABEL: &str = "documents";

/// Sandbox limits of programs, as on the command line.
const MAX_TIMEOUT_SECONDS: u32 = 3600;
const MIN_MEMORY_MIB: u32 = 32;
const MAX_MEMORY_MIB: u32 = 16_384;

impl ConsultRequest {
    /// Converts the body of `POST /api/runs` or `POST /api/estimate`.
    pub(crate) fn from_http(
        request: StartConsultRequest,
        defaults: &ServerDefaults,
    ) -> Result<Self, CliError> {
        let mut committee = committee_of(&request, defaults)?;
        if let Some(rounds) = check_range("rounds", request.rounds, 20)? {
            committee.rounds = rounds;
        }
        let mut files = RunFiles::default();
        let documents = request_files::documents(&request.documents)?;
        let (ticker, name, source) = subject(&request, !documents.is_empty())?;
        let has_documents = source == EvidenceSource::Files || !documents.is_empty();
        let uploads = documents.into_iter().map(|(name, content)| (name, files.add(content)));
        let uploads = uploads.collect();
        let news = news(&request, defaults, &mut files)?;
        let news_label = news.as_ref().map(|news| news_source(news, &files)).transpose()?;
        let brief = request.brief.as_deref();
        let brief = brief.map(|brief| brief.replace("\r\n", "\n").trim().to_owned());
        let moves = request.add_moves.as_deref().filter(|text| !text.trim().is_empty());
        let moves = moves.map(|text| user_input::moves_in_text("add_moves", text)).transpose();
        let added = moves.map_err(|error| error.with_code(ErrorCode::BadMoves))?;
        let added = added.unwrap_or_default();
        let moves = check_range("moves", request.moves, 40)?;
        let verdict = VerdictRequest {
            moves: Some(debated_moves(&committee, moves, added.len())),
            ..verdict_of(request.verdict, &request.panel, &request.again, request.repeat)?
        };
        committee.request_verdict(&verdict).map_err(field_refusal)?;
        let parallel = check_range("parallel_moves", request.parallel_moves, 40)?;
        Ok(Self {
            gather: GatherRequest {
                ticker,
                source,
                as_of: request.as_of,
                allow_stale: request.allow_stale,
                name,
                documents: has_documents.then(|| DOCUMENTS_LABEL.to_owned()),
                news: news_label.map(|news| news.label()),
            },
            committee,
            moves,
            model: parse_model(request.model.as_deref(), defaults)?,
            member_models: parse_member_models(request.models)?,
            accept_findings: request.accept_findings,
            terms: ConsultOptions {
                brief: brief.filter(|brief| !brief.is_empty()),
                moves: added,
                pause_after_moves: request.pause_after_moves,
                do_nothing: true,
                baseline: request.baseline,
                calculations: request.calculations,
            },
            settings: RunSettings {
                restate: defaults.restate.clone(),
                isolation: parse_isolation(request.isolation.as_deref())?,
                parallel_moves: Some(parallel.unwrap_or(PARALLEL_MOVES)),
                budget_micro_usd: parse_budget(request.budget_usd.as_deref())?,
                budget_tokens: request.budget_tokens,
                offline: defaults.offline.clone(),
                uploads,
                news,
                ..RunSettings::default()
            },
            files,
            judge_file: JudgeFileSource::ConfigFolder,
        })
    }

    /// Refuses a consultation about documents without any. An estimate needs none.
    pub(crate) fn require_documents(self) -> Result<Self, CliError> {
        if self.gather.documents.is_some() && self.settings.uploads.is_empty() {
            return Err(CliError::usage("missing documents")
                .with_hint("the source `files` needs at least one file in `documents`")
                .with_code(ErrorCode::BadFile));
        }
        Ok(self)
    }
}

pub(crate) fn field_refusal(conflict: VerdictConflict) -> CliError {
    let refused = verdict_refusal(conflict).with_code(ErrorCode::BadCommittee);
    refused.with_hint("set `verdict` to `full`, or omit `again` and `panel`")
}

/// What the fields of a request want for its verdict.
pub(crate) fn verdict_of(
    mode: Option<VerdictMode>,
    panel: &[String],
    again: &[u32],
    repeat: Option<u32>,
) -> Result<VerdictRequest, CliError> {
    let model = |name: &String| {
        name.parse::<ModelName>().map_err(|error| {
            CliError::usage(format!("invalid model in `panel`: {error}"))
                .with_hint("write it as provider/name")
                .with_code(ErrorCode::BadModel)
        })
    };
    let panel_models = panel.iter().map(model).collect::<Result<_, _>>()?;
    let again = (!again.is_empty()).then(|| again.to_vec());
    let repeat = check_range("repeat", repeat, MAX_REPEAT)?;
    Ok(VerdictRequest { mode, again, panel_models, repeat, moves: None })
}

/// The ticker, the name and the source of evidence.
fn subject(
    request: &StartConsultRequest,
    has_documents: bool,
) -> Result<(String, Option<String>, EvidenceSource), CliError> {
    let source = match request.source {
        None | Some(ConsultSource::Filings) => EvidenceSource::Filings,
        Some(ConsultSource::Files) => EvidenceSource::Files,
        Some(ConsultSource::Synthetic) => EvidenceSource::Synthetic,
    };
    let ticker = request.ticker.trim().to_ascii_uppercase();
    let name = request.name.as_deref().map(str::trim).map(str::to_owned);
    let bad_name = |message: &str, hint: &str| {
        Err(CliError::usage(message).with_hint(hint).with_code(ErrorCode::BadName))
    };
    if name.is_some() && !ticker.is_empty() {
        return bad_name("a ticker and a name cannot be combined", "send `ticker` or `name`");
    }
    if name.is_some() && source != EvidenceSource::Files {
        return bad_name(
            "an unlisted company has no filings",
            "set `source` to `files` and send `documents`",
        );
    }
    if name.is_none() && ticker.is_empty() && source == EvidenceSource::Files {
        return bad_name("missing company", "send the `ticker` or the `name` of the company");
    }
    if has_documents && source == EvidenceSource::Synthetic {
        return Err(CliError::usage("synthetic evidence cannot be combined with documents")
            .with_hint("remove the documents, or use the source `files`")
            .with_code(ErrorCode::BadFile));
    }
    Ok((ticker, name, source))
}

/// The source of news. The content of a file is added to `files`.
fn news(
    request: &StartConsultRequest,
    defaults: &ServerDefaults,
    files: &mut RunFiles,
) -> Result<Option<NewsChoice>, CliError> {
    let bad_news = |message: &str, hint: &str| {
        Err(CliError::usage(message).with_hint(hint).with_code(ErrorCode::BadNews))
    };
    match (request.news.as_deref().filter(|news| !news.is_empty()), &request.news_file) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            bad_news("`news` and `news_file` cannot be combined", "send one of them")
        }
        (Some("gdelt"), None) => Ok(Some(NewsChoice::Gdelt)),
        (Some(text), None) => match text.strip_prefix("rss:") {
            Some(url) if defaults.allows_feeds => Ok(Some(NewsChoice::Rss(url.to_owned()))),
            // Other people could make the server fetch addresses of its own network.
            Some(_) => bad_news(
                "a server with access tokens fetches no feeds",
                "use `gdelt`, or send the feed as `news_file`",
            ),
            None => bad_news("unknown source of news", "use `gdelt` or `rss:URL`"),
        },
        (None, Some(file)) => {
            let (name, content) = request_files::news(file)?;
            Ok(Some(NewsChoice::Upload { name, file: files.add(content) }))
        }
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
        let attempts = check_range("attempts", request.attempts, MAX_ATTEMPTS)?;
        let timeout = check_range("timeout_seconds", request.timeout_seconds, MAX_TIMEOUT_SECONDS)?;
        let memory = check_range("memory_mib", request.memory_mib, MAX_MEMORY_MIB)?;
        if memory.is_some_and(|memory| memory < MIN_MEMORY_MIB) {
            return Err(out_of_range("memory_mib", MIN_MEMORY_MIB, MAX_MEMORY_MIB));
        }
        let mut limits = match timeout {
            Some(seconds) => isolation::limits_with_timeout(seconds.into()),
            None => SandboxLimits::default(),
        };
        if let Some(memory) = memory {
            limits.memory_bytes = u64::from(memory) << 20;
        }
        let output = |path: &String| {
            path.parse().map_err(|_| {
                let path = display::line(path);
                CliError::usage(format!("invalid file name `{path}` in `expect_files`"))
                    .with_hint("use a path below /workspace/out, such as chart.png")
                    .with_code(ErrorCode::BadExpectation)
            })
        };
        let check = request.check.clone().filter(|script| !script.trim().is_empty());
        let request = Self {
            task: task.to_owned(),
            model: parse_model(request.model.as_deref(), defaults)?,
            inputs: request_files::inputs(&request.inputs)?,
            contract: ProgramContract {
                expect: expectation(request)?,
                check,
                outputs: request.expect_files.iter().map(output).collect::<Result<_, _>>()?,
            },
            attempts: attempts.unwrap_or(ProgramInput::DEFAULT_ATTEMPTS),
            image: request.image.clone().unwrap_or_else(|| IMAGE.to_owned()),
            limits,
            settings: RunSettings {
                restate: defaults.restate.clone(),
                isolation: parse_isolation(request.isolation.as_deref())?,
                budget_micro_usd: parse_budget(request.budget_usd.as_deref())?,
                budget_tokens: request.budget_tokens,
                ..RunSettings::default()
            },
        };
        request.check_limits()
    }
}

/// The expected output of a program; at most one form.
fn expectation(request: &StartProgramRequest) -> Result<Option<OutputExpectation>, CliError> {
    let invalid = |error: CliError| error.with_code(ErrorCode::BadExpectation);
    let regex = request.expect_regex.as_deref().filter(|regex| !regex.is_empty());
    Ok(match (regex, &request.expect_text, &request.expect_schema) {
        (None, None, None) => None,
        (Some(regex), None, None) => {
            let pattern = regex.parse().map_err(|error: InvalidPattern| {
                let message = "invalid regular expression in `expect_regex`";
                invalid(CliError::usage(message).with_source(error))
            })?;
            Some(OutputExpectation::Pattern { pattern })
        }
        (None, Some(text), None) => Some(OutputExpectation::Text { text: text.clone() }),
        (None, None, Some(schema)) => {
            let schema = OutputSchema::parse("output", &schema.to_string())
                .map_err(|error| invalid(CliError::usage(error.to_string())))?;
            Some(OutputExpectation::Schema { schema })
        }
        _ => {
            return Err(invalid(
                CliError::usage("more than one expected output")
                    .with_hint("send one of `expect_regex`, `expect_text` and `expect_schema`"),
            ));
        }
    })
}

/// The committee of a request: its file, or a name that the server knows.
fn committee_of(
    request: &StartConsultRequest,
    defaults: &ServerDefaults,
) -> Result<Committee, CliError> {
    let Some(text) = request.committee_file.as_deref().filter(|text| !text.trim().is_empty())
    else {
        return find_committee(request.committee.as_deref(), defaults);
    };
    if request.committee.is_some() {
        return Err(CliError::usage("`committee` and `committee_file` cannot be combined")
            .with_hint("send one of them")
            .with_code(ErrorCode::BadCommittee));
    }
    let read = committee::in_text("committee_file", text);
    read.map_err(|error| error.with_code(ErrorCode::BadCommittee))
}

/// Finds a committee by name. The name comes from a request and is never used as a path.
pub(crate) fn find_committee(
    name: Option<&str>,
    defaults: &ServerDefaults,
) -> Result<Committee, CliError> {
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
) -> Result<Option<ModelList>, CliError> {
    let Some(text) = written.filter(|text| !text.is_empty()) else {
        return Ok(defaults.model.clone());
    };
    parse_model_list(text).map(Some)
}

/// A model, with its fallbacks after commas.
pub(crate) fn parse_model_list(text: &str) -> Result<ModelList, CliError> {
    parse_models(&ModelChoice::One(text.to_owned()))
}

/// Models by role or member. The committee determines which names are valid.
fn parse_member_models(
    models: BTreeMap<String, ModelChoice>,
) -> Result<Vec<(String, ModelList)>, CliError> {
    let parse = |(member, model): (String, ModelChoice)| {
        let model = parse_models(&model)?;
        Ok((display::line(&member), model))
    };
    models.into_iter().filter(|(_, model)| !model.is_empty()).map(parse).collect()
}

fn check_range(name: &str, number: Option<u32>, max: u32) -> Result<Option<u32>, CliError> {
    match number {
        Some(number) if number == 0 || number > max => Err(out_of_range(name, 1, max)),
        number => Ok(number),
    }
}

fn out_of_range(name: &str, min: u32, max: u32) -> CliError {
    CliError::usage(format!("`{name}` must be between {min} and {max}"))
        .with_code(ErrorCode::OutOfRange)
}

#[cfg(test)]
#[path = "http_request_tests.rs"]
mod tests;
