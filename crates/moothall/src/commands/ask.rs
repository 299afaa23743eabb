//! `moothall ask`: sends one question through workflow, gateway, events and receipt.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::ask::AskWorkflow;
use moothall_core::model::{
    FailureKind, ModelFailure, ModelFallback, ModelList, ModelName, ModelReply, ModelRequest,
    PromptBlock, StopReason,
};
use moothall_core::structured::OutputCheck;
use moothall_core::text;
use moothall_core::{
    Conclusion, Effect, EffectId, EffectResult, Outcome, RuleId, RunFinding, StoredSpec,
};
use moothall_engine::{
    EffectPerformer, ModelPerformer, PerformFuture, RunDriver, RunExit, RunPause, RunRecord, cancel,
};
use moothall_models::{Gateway, ReplyListener, RunLedger, SchemaCheck};
use moothall_store::{SqliteStore, Store};
use serde_json::{Value, json};

use super::{InterruptibleResult, failure, interruptible, runtime};
use crate::args::{AskArgs, GlobalArgs};
use crate::context::{CommandContext, ConfigFlags};
use crate::error::{CliError, CliExit};
use crate::received_text::{ReceivedText, large_prompt};
use crate::terminal::{self, DIM, YELLOW};
use crate::work_progress::{WorkProgress, WorkSize};
use crate::{files, launch};
use crate::{logging, run_store};

/// Limit for questions from standard input.
const MAX_QUESTION_BYTES: u64 = 8 * 1024 * 1024;

const QUESTION_HINT: &str = "pass it as an argument, `moothall ask \"…\"`, or pipe it in";

pub(crate) fn run(global: &GlobalArgs, args: &AskArgs) -> anyhow::Result<CliExit> {
    let context = CommandContext::load(global.config.as_deref(), flags(args)?)?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let models = context.model(args.model.model.as_ref())?;
    let model = models.first();
    let recording = files::recording(
        args.calls.replies.record.as_deref(),
        args.calls.replies.replay.as_deref(),
    )?;
    let gateway = context.gateway_of(&models, recording)?;
    let request = request(args, &models, &gateway)?;
    let check: Box<dyn OutputCheck> = match (&request.schema, &args.schema) {
        (Some(schema), Some(path)) => Box::new(SchemaCheck::new(schema).map_err(|error| {
            CliError::usage(format!("{} is not a usable schema", path.display()))
                .with_source(error)
                .with_hint("pass a JSON schema; references to other documents are not resolved")
        })?),
        _ => Box::new(|_: &Value| Vec::new()),
    };
    let prompt_tokens = request.prompt_tokens_expected();
    let workflow = AskWorkflow::new(request, check)?;
    let ledger = Arc::new(RunLedger::new(context.budget()));
    let live = !args.json && args.schema.is_none() && terminal::stdout_is_terminal();
    let notice = waiting_notice(model, prompt_tokens);
    let waiting = WorkProgress::start(&notice, args.json);
    let received = ReceivedText::default();
    waiting.step(&notice, WorkSize::Answer(received.clone()));
    let waiting = Arc::new(Mutex::new(Some(waiting)));

    let listener = match live {
        true => AnswerListener::Print(Arc::clone(&waiting)),
        false if !args.json && terminal::stderr_is_terminal() => AnswerListener::Count(received),
        false => AnswerListener::None,
    };
    let ask_result = runtime()?.block_on(ask(workflow, model, gateway, &ledger, listener));
    stop_waiting(&waiting);
    let ask_result = ask_result?;
    let AskResult { record, last } = &ask_result;
    let Some(last) = last else {
        if let Err(unsaved) = write_events(args, record) {
            terminal::show_error(&unsaved.into());
        }
        return Err(CliError::new(CliExit::Cancelled, "cancelled").into());
    };
    let saved = write_events(args, record).and_then(|()| write_receipt(args, record));
    let outcome = record.row.outcome.as_ref();
    let (context, model, ledger) = (&context, model, &*ledger);
    let report = AskReport { context, model, record, outcome, last, ledger, live };
    // The answer is shown even if it cannot be saved, because it is paid for.
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

type SharedProgress = Arc<Mutex<Option<WorkProgress>>>;

fn stop_waiting(waiting: &SharedProgress) {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// What the terminal shows until the answer arrives.
fn waiting_notice(model: &ModelName, prompt_tokens: u64) -> String {
    match large_prompt(prompt_tokens) {
        None => format!("waiting for {model}"),
        Some(size) => format!("waiting for {model}, {size}"),
    }
}

fn flags(args: &AskArgs) -> Result<toml::Table, CliError> {
    let base_url = args.model.base_url.as_deref();
    ConfigFlags::of_calls(
        args.calls.budget,
        args.calls.budget_tokens,
        base_url,
        args.model.model.as_ref().map(ModelList::first),
    )
}

fn request(
    args: &AskArgs,
    models: &ModelList,
    gateway: &Gateway,
) -> Result<ModelRequest, CliError> {
    let cards: Vec<_> = models.iter().map(|model| gateway.catalog().card(model)).collect();
    let longest = launch::max_output(&cards);
    let question = args.question.as_deref();
    let question =
        files::argument_or_stdin(question, "question", QUESTION_HINT, MAX_QUESTION_BYTES)?;
    let mut request =
        ModelRequest::ask(models.first().clone(), question, args.max_tokens.min(longest));
    request.fallbacks = models.fallbacks().to_vec();
    request.system = args.system.iter().map(|text| PromptBlock::new(text.as_str())).collect();
    request.temperature = args.temperature;
    request.effort = args.effort.map(Into::into);
    request.timeout_ms = args.timeout.map(|seconds| seconds * 1000);
    request.schema = args.schema.as_deref().map(files::read_schema).transpose()?;
    Ok(request)
}

fn write_events(args: &AskArgs, record: &RunRecord) -> anyhow::Result<()> {
    args.calls.files.events.as_deref().map_or(Ok(()), |path| files::write_events(path, record))
}

/// A paused run has no verdict, so it has no receipt.
fn write_receipt(args: &AskArgs, record: &RunRecord) -> anyhow::Result<()> {
    match (&args.calls.files.receipt, record.receipt()) {
        (Some(path), Some(receipt)) => files::write_receipt(path, &receipt),
        _ => Ok(()),
    }
}

type LastAnswer = Result<ModelReply, ModelFailure>;

/// `last` is `None` if the user interrupted the run.
struct AskResult {
    record: RunRecord,
    last: Option<LastAnswer>,
}

/// What happens with an answer while it arrives.
enum AnswerListener {
    Print(SharedProgress),
    Count(ReceivedText),
    None,
}

impl AnswerListener {
    fn of_call(&self, request: &ModelRequest) -> Option<Box<dyn ReplyListener>> {
        match self {
            Self::Print(waiting) => {
                Some(Box::new(AnswerPrinter { shown: false, waiting: Arc::clone(waiting) }))
            }
            Self::Count(received) => Some(received.listener(request.prompt_tokens_expected())),
            Self::None => None,
        }
    }
}

/// Runs the workflow on an in-memory store: questions are not saved.
async fn ask(
    mut workflow: AskWorkflow,
    model: &ModelName,
    gateway: Gateway,
    ledger: &Arc<RunLedger>,
    listener: AnswerListener,
) -> anyhow::Result<AskResult> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().await?);
    let run =
        run_store::new_run(StoredSpec::from_columns(AskWorkflow::NAME, Value::Null), model, "")?;
    let run_id = run.run_id.clone();
    store.create_run(run).await?;
    let models = ModelPerformer::new(Arc::new(gateway), Arc::clone(ledger))
        .with_listeners(move |request| listener.of_call(request));
    let performer = Arc::new(LastReplyPerformer { models, last: Mutex::default() });
    let driver =
        RunDriver::new(Arc::clone(&store), performer.clone(), run_id.clone()).without_resume();
    let last = match interruptible(driver.drive(&mut workflow)).await {
        InterruptibleResult::Done(ended) => match ended? {
            RunExit::Paused(RunPause::Budget(failure) | RunPause::Failure(_, failure)) => {
                Some(Err(failure))
            }
            RunExit::Done(_)
            | RunExit::Paused(RunPause::Person | RunPause::Question(_))
            | RunExit::Cancelled => performer.last(),
        },
        InterruptibleResult::Cancelled => {
            cancel(&*store, &run_id, None).await?;
            None
        }
    };
    Ok(AskResult { record: RunRecord::read(&*store, &run_id).await?, last })
}

/// Keeps the last answer unmodified. The journal drops values that differ between two equal runs,
/// such as the retry delay of a provider, but the error message shows them.
#[derive(Debug)]
struct LastReplyPerformer {
    models: ModelPerformer,
    last: Mutex<Option<LastAnswer>>,
}

impl LastReplyPerformer {
    fn last(&self) -> Option<LastAnswer> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl EffectPerformer for LastReplyPerformer {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            let performed = self.models.perform(id, effect).await;
            let answer = match &performed.result {
                EffectResult::ModelReplied(reply) => Some(Ok(reply.clone())),
                EffectResult::ModelFailed(failure) => Some(Err(failure.clone())),
                // The `ask` workflow has no other effects.
                _ => None,
            };
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = answer;
            performed
        })
    }
}

/// Prints an answer while it streams in.
struct AnswerPrinter {
    /// Whether part of an answer is on the screen.
    shown: bool,
    /// Shown until the first piece arrives.
    waiting: SharedProgress,
}

impl ReplyListener for AnswerPrinter {
    fn text(&mut self, piece: &str) {
        self.shown = true;
        stop_waiting(&self.waiting);
        let mut stdout = anstream::stdout().lock();
        // Write errors are ignored: a closed terminal ends the process with a signal.
        let _ = stdout.write_all(text::sanitize(piece).as_bytes()).and_then(|()| stdout.flush());
    }

    fn restart(&mut self) {
        if std::mem::take(&mut self.shown) {
            terminal::note(&format!("\n{YELLOW}the answer was interrupted; retrying{YELLOW:#}\n"));
        }
    }
}

struct AskReport<'a> {
    context: &'a CommandContext,
    model: &'a ModelName,
    record: &'a RunRecord,
    /// `None` if the budget paused the run.
    outcome: Option<&'a Outcome>,
    last: &'a LastAnswer,
    ledger: &'a RunLedger,
    live: bool,
}

impl AskReport<'_> {
    fn print_text(&self) -> anyhow::Result<CliExit> {
        let (Some(Conclusion::Answered { text, value }), Ok(reply)) =
            (self.conclusion(), self.last)
        else {
            return Err(self.error().into());
        };
        match value {
            _ if self.live => terminal::print("\n")?,
            // The model wrapped its JSON in a code fence. Print the bare value, since it may be
            // piped into a program.
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
        if let Some(ModelFallback { model, reason }) = reply.fallback.as_deref() {
            let requested = self.model;
            terminal::note(&format!(
                "{YELLOW}{requested} is unavailable ({reason}); using {model}{YELLOW:#}\n"
            ));
        }
        let answered_by = text::sanitize_line(&reply.model);
        terminal::note(&format!(
            "{DIM}{answered_by} · {tokens} tokens · {cost} · {seconds:.1} s{DIM:#}\n"
        ));
        if reply.stop == StopReason::MaxTokens {
            terminal::note(&format!(
                "{YELLOW}the answer was cut off; raise the limit with --max-tokens{YELLOW:#}\n"
            ));
        }
        if self.findings().iter().any(|finding| finding.rule == RuleId::new("output.echo")) {
            terminal::note(&format!(
                "{YELLOW}the answer repeats the question; a larger model may answer it{YELLOW:#}\n"
            ));
        }
        Ok(CliExit::Fine)
    }

    fn print_json(&self) -> anyhow::Result<CliExit> {
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
            if let Ok(ModelReply { fallback: Some(fallback), .. }) = self.last {
                report.insert("fallback".to_owned(), json!(fallback));
            }
            if let Some(Conclusion::Answered { value: Some(value), .. }) = self.conclusion() {
                report.insert("value".to_owned(), value.clone());
            }
        }
        terminal::print(&format!("{report:#}\n"))?;
        match self.conclusion() {
            Some(Conclusion::Answered { .. }) => Ok(CliExit::Fine),
            _ => Err(self.error().into()),
        }
    }

    fn conclusion(&self) -> Option<&Conclusion> {
        self.outcome.map(|outcome| &outcome.conclusion)
    }

    fn findings(&self) -> &[RunFinding] {
        self.outcome.map_or(&[], |outcome| &outcome.findings)
    }

    fn error(&self) -> CliError {
        match self.last {
            Err(failure) => {
                let error = failure::of_call(self.context, self.model, failure);
                match failure.kind {
                    FailureKind::TimedOut => error.with_hint("allow more time with `--timeout`"),
                    _ => error,
                }
            }
            Ok(reply) => {
                let problems: Vec<_> =
                    self.findings().iter().map(|finding| &*finding.message).collect();
                let (model, problems) = (self.model, problems.join("; "));
                CliError::failed(format!("{model} gave an invalid answer: {problems}"))
                    .with_hint(match reply.stop {
                        StopReason::MaxTokens => "raise the limit with `--max-tokens`",
                        _ => {
                            "see the answer with `--json`, or try a larger model or a simpler schema"
                        }
                    })
            }
        }
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
