//! `moothall models`: lists models, prices and API keys, and tests a model.

use std::fmt::Write as _;

use moothall_core::MicroUsd;
use moothall_core::model::{CallPurpose, ModelFailure, ModelName, ModelReply, ModelRequest};
use moothall_core::receipt::EffectTiming;
use moothall_core::text::sanitize_line;
use moothall_models::catalog::{ModelCard, ModelPrices, ModelProvider};
use moothall_models::settings::WireFormat;
use moothall_models::{RecordingMode, RunLedger, ServedModel, list_provider_models};
use serde_json::{Value, json};

use super::config_edit::{self, ConfigFile};
use super::{InterruptibleResult, block_on, failure};
use crate::args::{GlobalArgs, ModelsArgs};
use crate::config::ConfigOrigin;
use crate::context::{CommandContext, ConfigFlags};
use crate::display::table::{Table, TableColumn};
use crate::error::{CliError, CliExit};
use crate::keys::KeySource;
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Enough for a reasoning model to answer with one word.
const PROBE_TOKENS: u32 = 512;

/// More models of a server are not shown.
const MAX_SERVED_MODELS: usize = 20;

pub(crate) fn run(global: &GlobalArgs, args: &ModelsArgs) -> anyhow::Result<CliExit> {
    let mut flags = ConfigFlags::default();
    if let Some(base_url) = &args.base_url {
        flags.set_base_url(args.check.as_ref().and_then(Option::as_ref), "--check", base_url)?;
    }
    let context = CommandContext::load(global.config.as_deref(), flags.into_table())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    match &args.check {
        Some(model) => check(&context, model.as_ref(), args),
        None => list(&context, args),
    }
}

fn list(context: &CommandContext, args: &ModelsArgs) -> anyhow::Result<CliExit> {
    let is_selected = |provider: &&ModelProvider| {
        args.provider.as_ref().is_none_or(|name| *name == provider.name)
    };
    let providers: Vec<_> = context.catalog.providers().filter(is_selected).collect();
    if let (Some(name), []) = (&args.provider, providers.as_slice()) {
        let known: Vec<_> =
            context.catalog.providers().map(|provider| provider.name.as_str()).collect();
        return Err(CliError::usage(format!("no provider named `{name}`"))
            .with_hint(format!("known providers: {}", known.join(", ")))
            .into());
    }
    if args.json {
        let report = json!({
            "prices_dated": context.catalog.dated(),
            "providers": providers.iter().map(|provider| provider_json(context, provider)).collect::<Vec<_>>(),
        });
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        terminal::print(&table(context, &providers))?;
    }
    Ok(CliExit::Fine)
}

fn provider_json(context: &CommandContext, provider: &ModelProvider) -> Value {
    json!({
        "name": provider.name,
        "wire": provider.wire,
        "base_url": provider.base_url,
        "needs_key": provider.needs_key(),
        "key_present": context.keys.get(&provider.name).is_some(),
        "key_source": context.keys.source(&provider.name).map(KeySource::to_string),
        "default_model": provider.default_model,
        "models": context.catalog.models_of(&provider.name).iter().map(card_json).collect::<Vec<_>>(),
    })
}

fn card_json(card: &ModelCard) -> Value {
    let decimal = |amount: Option<MicroUsd>| amount.map(MicroUsd::decimal);
    let price = card.prices.as_ref().map(|prices| {
        json!({
            "input": prices.base.input.decimal(),
            "output": prices.base.output.decimal(),
            "cache_read": decimal(prices.base.cache_read),
            "cache_write_5m": decimal(prices.base.cache_write_5m),
            "cache_write_1h": decimal(prices.base.cache_write_1h),
            "above_prompt_tokens": prices.above.map(|(threshold, _)| threshold),
            "input_above": prices.above.map(|(_, price)| price.input.decimal()),
            "output_above": prices.above.map(|(_, price)| price.output.decimal()),
        })
    });
    json!({
        "model": card.model,
        "context_tokens": card.context,
        "max_output_tokens": card.max_output,
        "takes_temperature": card.temperature,
        "takes_effort": card.effort,
        "structured_output": card.structured,
        "cache_minimum_tokens": card.cache_minimum,
        "usd_per_million_tokens": price,
    })
}

/// Names and URLs may come from an untrusted catalog, so they are sanitized.
fn table(context: &CommandContext, providers: &[&ModelProvider]) -> String {
    // Rows are indented.
    let terminal_width = terminal::stdout_columns().map(|columns| columns.saturating_sub(2));
    let mut text = String::new();
    for provider in providers {
        let key = match (context.keys.source(&provider.name), provider.needs_key()) {
            (Some(source), _) => {
                format!("{GREEN}key from {}{GREEN:#}", sanitize_line(&source.to_string()))
            }
            (None, true) => {
                let variables = sanitize_line(&provider.key_env.join(" or "));
                format!("{YELLOW}no key: set {variables}{YELLOW:#}")
            }
            (None, false) => format!("{DIM}needs no key{DIM:#}"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{BOLD}{}{BOLD:#}  {key}  {DIM}{}{DIM:#}",
            sanitize_line(&provider.name),
            sanitize_line(&provider.base_url)
        );
        let cards = context.catalog.models_of(&provider.name);
        if cards.is_empty() {
            let price = match (&provider.stated.prices, provider.free) {
                (Some(_), _) => " at the price of the configuration file",
                (None, true) => " and is free",
                (None, false) => ", but its price is unknown",
            };
            let _ = writeln!(text, "  no models listed; any name works{price}");
        }
        let columns = card_columns(&cards, provider.default_model.as_deref());
        for row in Table::new(columns, terminal_width).rows() {
            let _ = writeln!(text, "  {row}");
        }
        text.push('\n');
    }
    let dated = sanitize_line(context.catalog.dated());
    let _ = writeln!(
        text,
        "{DIM}prices in dollars per million tokens, as of {dated}; `demo` needs no key and is free{DIM:#}"
    );
    text
}

/// The columns of a provider's models.
fn card_columns(cards: &[ModelCard], default: Option<&str>) -> Vec<TableColumn> {
    let cells =
        |cell: &dyn Fn(&ModelCard) -> String| -> Vec<String> { cards.iter().map(cell).collect() };
    let price = |card: &ModelCard| price_labels(card.prices.as_ref());
    let mark = |card: &ModelCard| match default == Some(card.model.name()) {
        true => "(default)".to_owned(),
        false => String::new(),
    };
    let context = |card: &ModelCard| format!("{} context", token_label(card.context));
    let input = |card: &ModelCard| format!("{} in", price(card).input);
    let output = |card: &ModelCard| format!("{} out", price(card).output);
    vec![
        TableColumn::text("", 0, cells(&|card| card.model.to_string())).at_least(43),
        TableColumn::number("", 4, cells(&context)).at_least(16),
        TableColumn::number("", 2, cells(&input)).at_least(11),
        TableColumn::number("", 2, cells(&output)).at_least(12),
        TableColumn::text("", 3, cells(&mark)),
    ]
}

pub(crate) struct PriceLabels {
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) cache_read: String,
}

pub(crate) fn price_labels(prices: Option<&ModelPrices>) -> PriceLabels {
    let label = |amount: Option<MicroUsd>| {
        amount.map_or_else(|| "–".to_owned(), |amount| amount.to_string())
    };
    match prices {
        Some(prices) if prices.is_free() => {
            PriceLabels { input: "free".into(), output: "free".into(), cache_read: "free".into() }
        }
        Some(ModelPrices { base, .. }) => PriceLabels {
            input: label(Some(base.input)),
            output: label(Some(base.output)),
            cache_read: label(base.cache_read),
        },
        None => PriceLabels {
            input: "unknown".into(),
            output: "unknown".into(),
            cache_read: "unknown".into(),
        },
    }
}

pub(crate) fn token_label(tokens: Option<u64>) -> String {
    match tokens {
        None => "unknown".to_owned(),
        Some(tokens) if tokens >= 1_000_000 => {
            let text = format!("{}.{:02}", tokens / 1_000_000, tokens % 1_000_000 / 10_000);
            format!("{}M", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Some(tokens) => format!("{}k", tokens / 1000),
    }
}

fn check(
    context: &CommandContext,
    named: Option<&ModelName>,
    args: &ModelsArgs,
) -> anyhow::Result<CliExit> {
    let model = match named {
        Some(model) => model.clone(),
        None => context.model(None)?.first().clone(),
    };
    let own_server = own_server(context, &model);
    if args.save && own_server.is_none() {
        let name = model.provider();
        return Err(CliError::usage(format!(
            "`--save` asks your own server for its context window, and {name} is not one"
        ))
        .with_hint(format!("set `context` in [provider.{name}] of the configuration file"))
        .into());
    }
    let gateway = context.gateway(&model, RecordingMode::Off)?;
    let ledger = RunLedger::new(context.budget());
    let request = probe_request(&model);
    let checking = async {
        let served = match own_server {
            Some(provider) => served_models(context, provider).await,
            None => Ok(Vec::new()),
        };
        (served, gateway.call(&request, &ledger, None).await)
    };
    let InterruptibleResult::Done((served, report)) = block_on(checking)? else {
        return Err(CliError::new(CliExit::Cancelled, "cancelled").into());
    };
    let as_json = args.json;
    // Also if the call fails: the window does not depend on it. An error is reported after that of
    // the call.
    let saved = match (args.save, &served) {
        (true, Ok(served)) => save_window(context, &model, served).map(Some),
        (true, Err(failure)) => {
            Err(CliError::failed(format!("the server of {model} does not list its models"))
                .with_source(failure.clone()))
        }
        (false, _) => Ok(None),
    };
    if let Ok(Some(preview)) = &saved
        && !as_json
    {
        terminal::print(preview)?;
    }
    let has_saved = saved.as_ref().is_ok_and(Option::is_some);
    // Without `--save`, the call reports why a server does not answer.
    let served = served.unwrap_or_default();
    let served_json: Vec<Value> =
        served.iter().map(|one| json!({"name": one.name, "context_tokens": one.context})).collect();
    let reply = match report.result {
        Ok(reply) => reply,
        Err(failure) => {
            if as_json {
                terminal::print(&format!(
                    "{:#}\n",
                    json!({
                        "model": model,
                        "reachable": false,
                        "failure": failure,
                        "served_models": served_json,
                        "saved": has_saved,
                    })
                ))?;
            }
            let mut error = failure::of_call(context, &model, &failure);
            error.hint = unserved_note(&model, &served).or(error.hint);
            if let Err(unsaved) = saved {
                let unsaved = unsaved.full_message();
                terminal::note(&format!("{YELLOW}not saved: {unsaved}{YELLOW:#}\n"));
            }
            return Err(error.into());
        }
    };
    let cost = reply.cost_micro_usd;
    if as_json {
        let answer = json!({
            "model": model,
            "reachable": true,
            "answered_by": reply.model,
            "usage": reply.usage,
            "usage_basis": reply.usage_basis,
            "cost_usd": cost.map(MicroUsd::decimal),
            "latency_ms": report.timing.latency_ms,
            "tries": report.timing.tries,
            "served_models": served_json,
            "saved": has_saved,
        });
        terminal::print(&format!("{answer:#}\n"))?;
    } else {
        let line = answer_line(&model, &reply, report.timing);
        let configured = match args.save {
            true => served_window(&model, &served),
            false => context.catalog.card(&model).context,
        };
        terminal::print(&format!("{line}{}", served_text(&model, &served, configured)))?;
    }
    saved?;
    Ok(CliExit::Fine)
}

/// The provider of a model, if it is the user's own server. Others list hundreds of models.
fn own_server<'a>(context: &'a CommandContext, model: &ModelName) -> Option<&'a ModelProvider> {
    let provider = context.catalog.provider(model.provider())?;
    let is_own = provider.own_address || provider.is_on_this_machine();
    (provider.wire == WireFormat::OpenAiChat && is_own).then_some(provider)
}

async fn served_models(
    context: &CommandContext,
    provider: &ModelProvider,
) -> Result<Vec<ServedModel>, ModelFailure> {
    let secrets = context.keys.secrets(&provider.name);
    let served = list_provider_models(provider, secrets, &context.connections).await?;
    Ok(usable_models(&provider.name, served))
}

/// Writes the window that the server states into the configuration file. Returns what changed.
fn save_window(
    context: &CommandContext,
    model: &ModelName,
    served: &[ServedModel],
) -> Result<String, CliError> {
    let name = model.provider();
    let provider = context.catalog.provider(name);
    let (Some(provider), Some(window)) = (provider, served_window(model, served)) else {
        return Err(CliError::failed(format!("the server of {model} states no context window"))
            .with_hint(format!("set `context` in [provider.{name}] of the configuration file")));
    };
    // The address of an untrusted file must not become the user's own.
    context.refuse_untrusted_provider(model)?;
    let file = ConfigFile::open(&context.loaded)?;
    let locations = &context.loaded.locations;
    if let Some(used) = locations.used().filter(|used| used.path != file.path()) {
        let unread = format!(
            "cannot save: {} is in use instead of {}",
            used.path.display(),
            file.path().display()
        );
        return Err(CliError::usage(unread)
            .with_hint(format!("to change it, pass `--config {}`", used.path.display())));
    }
    let origin = context.loaded.resolved.origin(&format!("provider.{name}.base_url"));
    if file.has_base_url(name) && !matches!(origin, ConfigOrigin::File { .. }) {
        return Err(CliError::usage(format!(
            "cannot save: {} names another server for {name} than the one that was checked",
            file.path().display()
        ))
        .with_hint(format!(
            "change `base_url` in [provider.{name}], or check the server of the file"
        )));
    }
    let change =
        file.change(|text| config_edit::with_window(text, name, &provider.base_url, window))?;
    change.write()?;
    Ok(change.preview())
}

fn served_window(model: &ModelName, served: &[ServedModel]) -> Option<u64> {
    find_served(model, served)?.context
}

/// The models whose names can be shown and typed.
pub(crate) fn usable_models(provider: &str, served: Vec<ServedModel>) -> Vec<ServedModel> {
    let is_usable =
        |one: &ServedModel| format!("{provider}/{}", one.name).parse::<ModelName>().is_ok();
    served.into_iter().filter(is_usable).collect()
}

pub(crate) fn served_names(served: &[ServedModel]) -> String {
    let names: Vec<&str> =
        served.iter().take(MAX_SERVED_MODELS).map(|one| one.name.as_str()).collect();
    let names = names.join(", ");
    match served.len().saturating_sub(MAX_SERVED_MODELS) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// What a server that lists its models says about this one. `stated` is the configured window.
fn served_text(model: &ModelName, served: &[ServedModel], stated: Option<u64>) -> String {
    if let Some(note) = unserved_note(model, served) {
        return format!("{YELLOW}{note}{YELLOW:#}\n");
    }
    let Some(found) = find_served(model, served) else { return String::new() };
    let window = match found.context {
        None => String::new(),
        Some(window) if stated == Some(window) => format!("context window: {window} tokens\n"),
        Some(window) => format!(
            "context window: {window} tokens; set `context = {window}` in [provider.{}], or pass `--save`\n",
            model.provider()
        ),
    };
    format!("models on this server: {}\n{window}", served_names(served))
}

/// Says that the server lists other models than this one.
fn unserved_note(model: &ModelName, served: &[ServedModel]) -> Option<String> {
    if served.is_empty() || find_served(model, served).is_some() {
        return None;
    }
    let names = served_names(served);
    Some(format!("{} is not among the models of this server: {names}", model.name()))
}

/// Ollama lists `llama3.2:latest` and also answers to `llama3.2`.
fn find_served<'a>(model: &ModelName, served: &'a [ServedModel]) -> Option<&'a ServedModel> {
    served.iter().find(|one| {
        let name = one.name.as_str();
        name == model.name() || name.strip_suffix(":latest") == Some(model.name())
    })
}

/// A small call that tests whether a model can be used.
pub(crate) fn probe_request(model: &ModelName) -> ModelRequest {
    let question = "Answer with the word ok and nothing else.";
    let mut request = ModelRequest::ask(model.clone(), question, PROBE_TOKENS);
    request.purpose = CallPurpose::Probe;
    request
}

/// The result of such a call: tokens, cost and latency.
pub(crate) fn answer_line(model: &ModelName, reply: &ModelReply, timing: EffectTiming) -> String {
    let cost = reply.cost_micro_usd;
    let cost = cost.map_or_else(|| "price unknown".to_owned(), |cost| cost.to_string());
    let (answered_by, latency_ms) = (sanitize_line(&reply.model), timing.latency_ms);
    let tokens = reply.usage.total();
    format!(
        "{GREEN}ok{GREEN:#}  {model} answered as {answered_by}: {tokens} tokens, {cost}, {latency_ms} ms\n"
    )
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
