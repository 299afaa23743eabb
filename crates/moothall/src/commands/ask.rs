//! `moothall ask`: one question through the whole spine — workflow, gateway, events, receipt.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::ask::Ask;
use moothall_core::model::{Block, ModelFailure, ModelName, ModelReply, ModelRequest, StopReason};
use moothall_core::structured::OutputCheck;
use moothall_core::text;
use moothall_core::{Conclusion, Effect, EffectId, EffectResult, Outcome, StoredSpec};
use moothall_engine::{
    Driver, Ended, ModelPerformer, Pause, PerformFuture, Performer, RunRecord, cancel,
};
use moothall_models::{Gateway, Ledger, Listener, SchemaCheck};
use moothall_store::{SqliteStore, Store};
use serde_json::{Value, json};

use super::{Interruptible, failure, interruptible, runtime};
use crate::args::{AskArgs, Global};
use crate::context::{Context, Flags};
use crate::error::{CliError, Exit};
use crate::files;
use crate::terminal::{self, DIM, YELLOW};
use crate::{local, logging};

/// The longest question that is read from a pipe.
const MAX_QUESTION_BYTES: u64 = 8 * 1024 * 1024;

const QUESTION_HINT: &str = "write it after the command, `moothall ask \"…\"`, or pipe it in";

pub(super) fn run(global: &Global, args: &AskArgs) -> anyhow::Result<Exit> {
    let context = Context::load(global.config.as_deref(), flags(args)?)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let model = context.model(args.model.model.as_ref())?;
    let recording = files::recording(
        args.calls.replies.record.as_deref(),
        args.calls.replies.replay.as_deref(),
    )?;
    let gateway = context.gateway(&model, recording)?;
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
    let ledger = Arc::new(Ledger::new(context.budget()));
    let live = !args.json && args.schema.is_none() && terminal::stdout_is_terminal();

    let asked = runtime()?.block_on(ask(workflow, &model, gateway, &ledger, live))?;
    let Asked { record, last } = &asked;
    let Some(last) = last else {
        if let Err(unsaved) = write_events(args, record) {
            terminal::show_error(&unsaved.into());
        }
        return Err(CliError::new(Exit::Cancelled, "cancelled").into());
    };
    let saved = write_events(args, record).and_then(|()| write_receipt(args, record));
    let outcome = record.row.outcome.as_ref();
    let (context, model, ledger) = (&context, &model, &*ledger);
    let report = Report { context, model, record, outcome, last, ledger, live };
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
    let base_url = args.model.base_url.as_deref();
    Flags::of_calls(
        args.calls.budget,
        args.calls.budget_tokens,
        base_url,
        args.model.model.as_ref(),
    )
}

fn request(args: &AskArgs, model: ModelName, gateway: &Gateway) -> Result<ModelRequest, CliError> {
    let longest = gateway.catalog().card(&model).max_output.unwrap_or(u32::MAX);
    let question = args.question.as_deref();
    let question = files::words_or_stdin(question, "question", QUESTION_HINT, MAX_QUESTION_BYTES)?;
    let mut request = ModelRequest::ask(model, question, args.max_tokens.min(longest));
    request.system = args.system.iter().map(|text| Block::new(text.as_str())).collect();
    request.temperature = args.temperature;
    request.effort = args.effort.map(Into::into);
    request.timeout_ms = args.timeout.map(|seconds| seconds * 1000);
    request.schema = args.schema.as_deref().map(files::read_schema).transpose()?;
    Ok(request)
}

fn write_events(args: &AskArgs, record: &RunRecord) -> anyhow::Result<()> {
    args.calls.files.events.as_deref().map_or(Ok(()), |path| files::write_events(path, record))
}

/// A paused run has no verdict yet, so it has no receipt.
fn write_receipt(args: &AskArgs, record: &RunRecord) -> anyhow::Result<()> {
    match (&args.calls.files.receipt, record.receipt()) {
        (Some(path), Some(receipt)) => files::write_receipt(path, &receipt),
        _ => Ok(()),
    }
}

/// The last answer of a run, usable or not.
type LastAnswer = Result<ModelReply, ModelFailure>;

/// A question that was asked: what the run left, and its last answer where nobody interrupted it.
struct Asked {
    record: RunRecord,
    last: Option<LastAnswer>,
}

/// Drives the workflow over a store that ends with it: a question is not kept.
async fn ask(
    mut workflow: Ask,
    model: &ModelName,
    gateway: Gateway,
    ledger: &Arc<Ledger>,
    live: bool,
) -> anyhow::Result<Asked> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().await?);
    let run = local::new_run(StoredSpec::from_columns(Ask::NAME, Value::Null), model, "")?;
    let run_id = run.run_id.clone();
    store.create_run(run).await?;
    let models = ModelPerformer::new(Arc::new(gateway), Arc::clone(ledger))
        .watched_by(move |_| live.then(|| Box::new(Screen::default()) as Box<dyn Listener>));
    let performer = Arc::new(Remembering { models, last: Mutex::default() });
    let driver =
        Driver::new(Arc::clone(&store), performer.clone(), run_id.clone()).without_return();
    let last = match interruptible(driver.drive(&mut workflow)).await {
        Interruptible::Done(ended) => match ended? {
            Ended::Paused(Pause::Budget(failure) | Pause::Failure(_, failure)) => {
                Some(Err(failure))
            }
            Ended::Done(_)
            | Ended::Paused(Pause::Person | Pause::Question(_))
            | Ended::Cancelled => performer.last(),
        },
        Interruptible::Cancelled => {
            cancel(&*store, &run_id, None).await?;
            None
        }
    };
    Ok(Asked { record: RunRecord::read(&*store, &run_id).await?, last })
}

/// Keeps the last answer as it came. The journal drops what differs between two equal runs, such as
/// how long a provider wants to be left alone, and a person wants to know that.
#[derive(Debug)]
struct Remembering {
    models: ModelPerformer,
    last: Mutex<Option<LastAnswer>>,
}

impl Remembering {
    fn last(&self) -> Option<LastAnswer> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Performer for Remembering {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            let performed = self.models.perform(id, effect).await;
            let answer = match &performed.result {
                EffectResult::ModelReplied(reply) => Some(Ok(reply.clone())),
                EffectResult::ModelFailed(failure) => Some(Err(failure.clone())),
                // A question asks for nothing else.
                _ => None,
            };
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = answer;
            performed
        })
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
        let _ = stdout.write_all(text::shown(piece).as_bytes()).and_then(|()| stdout.flush());
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
        let answered_by = text::shown_line(&reply.model);
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
            "run_id": self.record.row.run_id,
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
