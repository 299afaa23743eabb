//! `moothall models`: lists models, prices and API keys, and tests a model.

use std::fmt::Write as _;

use moothall_core::MicroUsd;
use moothall_core::model::{CallPurpose, ModelName, ModelReply, ModelRequest};
use moothall_core::receipt::EffectTiming;
use moothall_core::text::sanitize_line;
use moothall_models::catalog::{ModelCard, ModelPrices, ModelProvider};
use moothall_models::{RecordingMode, RunLedger};
use serde_json::{Value, json};

use super::{InterruptibleResult, block_on, failure};
use crate::args::{GlobalArgs, ModelsArgs};
use crate::context::{CommandContext, ConfigFlags};
use crate::error::{CliError, CliExit};
use crate::keys::KeySource;
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Enough for a reasoning model to answer with one word.
const PROBE_TOKENS: u32 = 512;

pub(crate) fn run(global: &GlobalArgs, args: &ModelsArgs) -> anyhow::Result<CliExit> {
    let mut flags = ConfigFlags::default();
    if let Some(base_url) = &args.base_url {
        flags.set_base_url(args.check.as_ref().and_then(Option::as_ref), "--check", base_url)?;
    }
    let context = CommandContext::load(global.config.as_deref(), flags.into_table())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    match &args.check {
        Some(model) => check(&context, model.as_ref(), args.json),
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
            let price = if provider.free { " and is free" } else { ", but its price is unknown" };
            let _ = writeln!(text, "  no models listed; any name works{price}");
        }
        for card in cards {
            let price = price_labels(card.prices.as_ref());
            let default = provider.default_model.as_deref() == Some(card.model.name());
            let _ = writeln!(
                text,
                "  {:<44} {:>8} context  {:>8} in  {:>8} out{}",
                card.model.to_string(),
                token_label(card.context),
                price.input,
                price.output,
                if default { "  (default)" } else { "" },
            );
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
    as_json: bool,
) -> anyhow::Result<CliExit> {
    let model = match named {
        Some(model) => model.clone(),
        None => context.model(None)?.first().clone(),
    };
    let gateway = context.gateway(&model, RecordingMode::Off)?;
    let ledger = RunLedger::new(context.budget());
    let request = probe_request(&model);
    let InterruptibleResult::Done(report) = block_on(gateway.call(&request, &ledger, None))? else {
        return Err(CliError::new(CliExit::Cancelled, "cancelled").into());
    };
    let reply = match report.result {
        Ok(reply) => reply,
        Err(failure) => {
            if as_json {
                terminal::print(&format!(
                    "{:#}\n",
                    json!({"model": model, "reachable": false, "failure": failure})
                ))?;
            }
            return Err(failure::of_call(context, &model, &failure).into());
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
        });
        terminal::print(&format!("{answer:#}\n"))?;
    } else {
        terminal::print(&answer_line(&model, &reply, report.timing))?;
    }
    Ok(CliExit::Fine)
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
