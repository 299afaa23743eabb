//! `moothall ask`: one question through the whole spine — workflow, gateway, events, receipt.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use moothall_core::ask::Ask;
use moothall_core::model::{
    Block, FailureKind, ModelFailure, ModelName, ModelReply, ModelRequest, OutputSchema, StopReason,
};
use moothall_core::receipt::EffectRecord;
use moothall_core::structured::OutputCheck;
use moothall_core::{
    Conclusion, Effect, EffectResult, Outcome, PauseReason, RunEvent, RunEventBody, Workflow as _,
};
use moothall_models::{Gateway, Ledger, Listener, RecordingMode, Recordings, SchemaCheck};
use serde_json::{Value, json};

use super::run_record::RunRecord;
use super::{Interruptible, block_on, failure};
use crate::args::{AskArgs, Global};
use crate::context::{Context, Flags};
use crate::error::{CliError, Exit};
use crate::logging;
use crate::terminal::{self, DIM, YELLOW};

/// The longest question that is read from a pipe.
const MAX_QUESTION_BYTES: u64 = 8 * 1024 * 1024;

const QUESTION_HINT: &str = "write it after the command, `moothall ask \"…\"`, or pipe it in";

pub(super) fn run(global: &Global, args: &AskArgs) -> anyhow::Result<Exit> {
    let context = Context::load(global.config.as_deref(), flags(args)?)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let model = context.model(args.model.as_ref())?;
    let gateway = context.gateway(&model, recording(args)?)?;
    let request = request(args, model.clone(), &gateway)?;
    let check: Box<dyn OutputCheck> = match (&request.schema, &args.schema) {
        (Some(schema), Some(path)) => Box::new(SchemaCheck::new(schema).map_err(|error| {
            CliError::usage(format!("{} cannot be used", path.display()))
                .with_source(error)
                .with_hint(
                    "it must be a JSON schema; references to other documents are not followed",
                )
        })?),
        _ => Box::new(|_: &Value| Vec::new()),
    };
    let workflow = Ask::new(request, check)?;
    let ledger = Ledger::new(context.budget());
    let mut record = RunRecord::start()?;
    let live = !args.json && args.schema.is_none() && terminal::stdout_is_terminal();

    let driven = block_on(drive(workflow, &gateway, &ledger, live, &mut record))?;
    let Interruptible::Done(driven) = driven else {
        record.publish([RunEvent::of_run(RunEventBody::RunCancelled)]);
        if let Err(unsaved) = write_events(args, &record) {
            terminal::show_error(&unsaved.into());
        }
        return Err(CliError::new(Exit::Cancelled, "cancelled").into());
    };
    let (outcome, last) = driven?;
    let saved = write_events(args, &record)
        .and_then(|()| write_receipt(args, &record, &model, outcome.as_ref()));
    let report = Report {
        context: &context,
        model: &model,
        record: &record,
        outcome: outcome.as_ref(),
        last: &last,
        ledger: &ledger,
        live,
    };
    // An answer that cannot be kept is still shown: it is paid for.
    let printed = if args.json { report.print_json() } else { report.print_text() };
    match (printed, saved) {
        (printed, Ok(())) => printed,
        (Ok(_), Err(unsaved)) => Err(unsaved),
        (Err(error), Err(unsaved)) => {
            terminal::show_error(&unsaved.into());
            Err(error)
        }
    }
}

fn flags(args: &AskArgs) -> Result<toml::Table, CliError> {
    let mut flags = Flags::default();
    if let Some(usd) = args.budget {
        flags.set(&["budget", "usd"], usd.decimal());
    }
    if let Some(tokens) = args.budget_tokens {
        let tokens =
            i64::try_from(tokens).map_err(|_| CliError::usage("--budget-tokens is too large"))?;
        flags.set(&["budget", "tokens"], tokens);
    }
    if let Some(base_url) = &args.base_url {
        flags.set_base_url(args.model.as_ref(), "--model", base_url)?;
    }
    Ok(flags.into_table())
}

fn recording(args: &AskArgs) -> Result<RecordingMode, CliError> {
    Ok(match (&args.record, &args.replay) {
        (Some(folder), _) => {
            // Before anyone is asked: a reply that cannot be kept is a reply that is paid for in
            // vain.
            fs_err::create_dir_all(folder).map_err(|error| {
                CliError::usage("replies cannot be recorded").with_source(error)
            })?;
            RecordingMode::Record(Recordings::at(folder))
        }
        (None, Some(folder)) => RecordingMode::Replay(Recordings::at(folder)),
        (None, None) => RecordingMode::Off,
    })
}

fn request(args: &AskArgs, model: ModelName, gateway: &Gateway) -> Result<ModelRequest, CliError> {
    let longest = gateway.catalog().card(&model).max_output.unwrap_or(u32::MAX);
    let mut request = ModelRequest::ask(model, question(args)?, args.max_tokens.min(longest));
    request.system = args.system.iter().map(|text| Block::new(text.as_str())).collect();
    request.temperature = args.temperature;
    request.effort = args.effort.map(Into::into);
    request.timeout_ms = args.timeout.map(|seconds| seconds * 1000);
    request.schema = args.schema.as_deref().map(read_schema).transpose()?;
    Ok(request)
}

fn question(args: &AskArgs) -> Result<String, CliError> {
    let question = match args.question.as_deref() {
        Some(question) if question != "-" => question.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(CliError::usage("there is no question").with_hint(QUESTION_HINT));
        }
        _ => {
            let mut text = String::new();
            let read = std::io::stdin().take(MAX_QUESTION_BYTES + 1).read_to_string(&mut text);
            read.map_err(|error| {
                CliError::usage("the question cannot be read from standard input")
                    .with_source(error)
            })?;
            if text.len() as u64 > MAX_QUESTION_BYTES {
                return Err(CliError::usage(format!(
                    "the question is longer than {MAX_QUESTION_BYTES} bytes"
                )));
            }
            text
        }
    };
    if question.trim().is_empty() {
        Err(CliError::usage("the question is empty").with_hint(QUESTION_HINT))
    } else {
        Ok(question)
    }
}

fn read_schema(path: &Path) -> Result<OutputSchema, CliError> {
    let text = fs_err::read_to_string(path)
        .map_err(|error| CliError::usage("the schema cannot be read").with_source(error))?;
    let name = path.file_stem().map_or_else(|| "answer".into(), |stem| stem.to_string_lossy());
    OutputSchema::parse(&name, &text)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}

fn write_events(args: &AskArgs, record: &RunRecord) -> anyhow::Result<()> {
    if let Some(path) = &args.events {
        let events = record.events_ndjson()?;
        fs_err::write(path, events)
            .map_err(|error| CliError::failed("the events cannot be written").with_source(error))?;
    }
    Ok(())
}

fn write_receipt(
    args: &AskArgs,
    record: &RunRecord,
    model: &ModelName,
    outcome: Option<&Outcome>,
) -> anyhow::Result<()> {
    // A paused run has no verdict yet, so it has no receipt.
    if let (Some(path), Some(outcome)) = (&args.receipt, outcome) {
        let receipt = record.receipt(Ask::NAME, model, &outcome.findings).write()?;
        fs_err::write(path, receipt).map_err(|error| {
            CliError::failed("the receipt cannot be written").with_source(error)
        })?;
    }
    Ok(())
}

/// The last answer of a run, usable or not.
type LastAnswer = Result<ModelReply, ModelFailure>;

/// Performs what the workflow asks for until it is done, or until the budget pauses it: then there
/// is no outcome, and the same question could be asked with more money.
async fn drive(
    mut workflow: Ask,
    gateway: &Gateway,
    ledger: &Ledger,
    live: bool,
    record: &mut RunRecord,
) -> anyhow::Result<(Option<Outcome>, LastAnswer)> {
    let mut last = None;
    let mut step = workflow.start();
    loop {
        record.publish(step.publish);
        if let (Some(outcome), Some(last)) = (step.outcome, last.take()) {
            return Ok((Some(outcome), last));
        }
        let mut perform = step.perform.into_iter();
        let (Some((id, effect)), None) = (perform.next(), perform.next()) else {
            anyhow::bail!("a question is one effect at a time")
        };
        let request_sha256 = effect.request_hash()?;
        let Effect::CallModel(request) = effect;
        let mut screen = Screen::default();
        let listener = live.then_some(&mut screen as &mut dyn Listener);
        let report = gateway.call(&request, ledger, listener).await;
        if let Err(failure) = &report.result
            && failure.kind == FailureKind::OverBudget
        {
            let detail = failure.detail.clone();
            let paused = RunEventBody::RunPaused { number: 1, reason: PauseReason::Budget, detail };
            record.publish([RunEvent::of_run(paused)]);
            return Ok((None, report.result));
        }
        last = Some(report.result.clone());
        let result = EffectResult::from(report.result);
        record.effect(
            id.clone(),
            EffectRecord { request_sha256, result: result.clone() },
            report.timing,
        );
        step = workflow.resume(&id, result)?;
    }
}

/// Shows an answer while it is written.
#[derive(Default)]
struct Screen {
    /// Whether part of an answer stands on the screen.
    shown: bool,
}

impl Listener for Screen {
    fn text(&mut self, piece: &str) {
        self.shown = true;
        let mut stdout = anstream::stdout().lock();
        // A terminal that went away ends the program by its signal, not here.
        let _ =
            stdout.write_all(terminal::harmless(piece).as_bytes()).and_then(|()| stdout.flush());
    }

    fn restart(&mut self) {
        if std::mem::take(&mut self.shown) {
            terminal::note(&format!("\n{YELLOW}the answer broke off; asking again{YELLOW:#}\n"));
        }
    }
}

struct Report<'a> {
    context: &'a Context,
    model: &'a ModelName,
    record: &'a RunRecord,
    /// None where the budget paused the run.
    outcome: Option<&'a Outcome>,
    last: &'a LastAnswer,
    ledger: &'a Ledger,
    live: bool,
}

impl Report<'_> {
    fn print_text(&self) -> anyhow::Result<Exit> {
        let (Some(Conclusion::Answered { text, value }), Ok(reply)) =
            (self.conclusion(), self.last)
        else {
            return Err(self.error().into());
        };
        match value {
            _ if self.live => terminal::print("\n")?,
            // The model wrapped its JSON in a fence; whoever asked for JSON pipes this into a
            // program.
            Some(value) if serde_json::from_str::<Value>(text).is_err() => {
                terminal::print_answer(&format!("{value:#}\n"))?
            }
            _ => terminal::print_answer(&format!("{text}\n"))?,
        }
        let spent = self.ledger.spent();
        let cost = reply
            .cost_micro_usd
            .map_or_else(|| "price unknown".to_owned(), |_| spent.usd.to_string());
        let (tokens, seconds) = (spent.tokens, self.record.timing().latency_ms as f64 / 1000.0);
        let answered_by = terminal::harmless_line(&reply.model);
        terminal::note(&format!(
            "{DIM}{answered_by} · {tokens} tokens · {cost} · {seconds:.1} s{DIM:#}\n"
        ));
        if reply.stop == StopReason::MaxTokens {
            terminal::note(&format!(
                "{YELLOW}the answer was cut off; allow more with --max-tokens{YELLOW:#}\n"
            ));
        }
        Ok(Exit::Fine)
    }

    fn print_json(&self) -> anyhow::Result<Exit> {
        let (spent, timing) = (self.ledger.spent(), self.record.timing());
        let mut report = json!({
            "run_id": self.record.run_id,
            "model": self.model,
            "demonstration": self.model.is_demo(),
            "paused": self.outcome.is_none(),
            "verdict": self.outcome.map(|outcome| outcome.verdict),
            "findings": self.outcome.map(|outcome| &outcome.findings),
            "latency_ms": timing.latency_ms,
            "tries": timing.tries,
            "spent": {
                "usd": spent.usd.decimal(),
                "uncertain_usd": spent.uncertain_usd.decimal(),
                "tokens": spent.tokens,
                "unpriced_calls": spent.unpriced_calls,
            },
        });
        let fields = match self.last {
            Ok(reply) => json!({
                "text": reply.text,
                "stop": reply.stop,
                "answered_by": reply.model,
                "usage": self.record.usage(),
                "usage_basis": reply.usage_basis,
                "cost_usd": self.record.cost().map(moothall_core::MicroUsd::decimal),
            }),
            Err(failure) => {
                json!({ "failure": failure, "retry_after_ms": failure.retry_after_ms })
            }
        };
        if let (Value::Object(report), Value::Object(fields)) = (&mut report, fields) {
            report.extend(fields);
            if let Some(Conclusion::Answered { value: Some(value), .. }) = self.conclusion() {
                report.insert("value".to_owned(), value.clone());
            }
        }
        terminal::print(&format!("{report:#}\n"))?;
        match self.conclusion() {
            Some(Conclusion::Answered { .. }) => Ok(Exit::Fine),
            _ => Err(self.error().into()),
        }
    }

    fn conclusion(&self) -> Option<&Conclusion> {
        self.outcome.map(|outcome| &outcome.conclusion)
    }

    fn error(&self) -> CliError {
        match self.last {
            Err(failure) => failure::of_call(self.context, self.model, failure),
            Ok(reply) => {
                let findings = self.outcome.map_or(&[][..], |outcome| &outcome.findings);
                let problems: Vec<_> = findings.iter().map(|finding| &*finding.message).collect();
                let (model, problems) = (self.model, problems.join("; "));
                CliError::failed(format!("{model} did not answer as it was asked to: {problems}"))
                    .with_hint(match reply.stop {
                        StopReason::MaxTokens => "allow more with `--max-tokens`",
                        _ => {
                            "`--json` shows the answer; a larger model or a simpler schema may help"
                        }
                    })
            }
        }
    }
}
