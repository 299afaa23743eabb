//! `moothall calls`: lists the model calls of a run, or prints one with its prompt and answer.

use std::cmp::Reverse;
use std::fmt::Write as _;

use moothall_core::view::{
    CallDetail, CallFilter, CallPage, CallResult, CallSum, ModelCall, RunCalls,
};
use moothall_core::{EffectId, text};
use moothall_engine::RunRecord;
use serde_json::json;

use super::runtime;
use crate::args::{CallSortArg, CallsArgs, GlobalArgs};
use crate::display;
use crate::display::table::{Table, TableColumn};
use crate::error::{CliError, CliExit};
use crate::run_store::{self, open_and_find};
use crate::terminal::{self, BOLD, DIM};
use crate::{config, logging};

/// Limit for one reason in the table.
const REASON_CHARS: usize = 120;

pub(crate) fn run(global: &GlobalArgs, args: &CallsArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let record = runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        RunRecord::read(&*local.store, &row.run_id).await.map_err(run_store::store_error)
    })?;
    match &args.call {
        Some(call) => print_call(&record, call, args.json)?,
        None => print_calls(&record, args)?,
    }
    Ok(CliExit::Fine)
}

fn print_calls(record: &RunRecord, args: &CallsArgs) -> anyhow::Result<()> {
    let log = record.calls();
    let filter = CallFilter {
        role: args.role.clone(),
        stage: args.stage.clone(),
        move_id: args.move_id.clone(),
        round: args.round,
        model: args.model.clone(),
        result: args.result,
        only_retries: args.retries,
        text: args.text.clone(),
    };
    let mut matching = log.matching(&filter, &|id| record.answer(id));
    match args.sort {
        CallSortArg::Time => {}
        CallSortArg::Length => matching.sort_by_key(|call| Reverse(call.length_ms)),
        CallSortArg::Cost => matching.sort_by_key(|call| Reverse(call.cost_micro_usd)),
        CallSortArg::Tokens => matching
            .sort_by_key(|call| Reverse(call.prompt_tokens.saturating_add(call.output_tokens))),
    }
    let page = log.page(&matching, 0, usize::MAX);
    let limit = args.limit.map_or(usize::MAX, |limit| limit as usize);
    let shown: Vec<&ModelCall> = page.calls.iter().take(limit).collect();
    if args.jsonl {
        let lines: Result<Vec<String>, _> = shown.iter().map(serde_json::to_string).collect();
        let lines = lines?.into_iter().map(|line| line + "\n").collect::<String>();
        return Ok(terminal::print(&lines)?);
    }
    if args.json {
        let report = json!({
            "run_id": record.row.run_id,
            "calls": shown,
            "matching": page.matching,
            "all": page.all,
        });
        return Ok(terminal::print(&format!("{report:#}\n"))?);
    }
    let id = run_store::short_id(&record.row.run_id);
    if shown.is_empty() {
        terminal::print("no calls\n")?;
        terminal::note(&format!("{DIM}{}{DIM:#}\n", empty_hint(&log, id)));
        return Ok(());
    }
    terminal::print(&table(&shown, page.first_start_ms, terminal::stdout_columns()))?;
    terminal::print(&sums(&page, shown.len()))?;
    terminal::note(&format!("{DIM}one call in full: moothall calls {id} CALL{DIM:#}\n"));
    Ok(())
}

/// What to do if no call is shown.
fn empty_hint(log: &RunCalls, id: &str) -> String {
    match log.calls.is_empty() {
        true => format!("no call has finished yet; see `moothall show {id}`"),
        false => {
            let calls = log.calls.len();
            format!("the filters match none of {calls} calls; all of them: moothall calls {id}")
        }
    }
}

fn table(calls: &[&ModelCall], first_start_ms: u64, terminal_width: Option<usize>) -> String {
    let cells = |cell: &dyn Fn(&ModelCall) -> String| -> Vec<String> {
        calls.iter().map(|call| cell(call)).collect()
    };
    let start = |call: &ModelCall| duration(call.started_at_ms.saturating_sub(first_start_ms));
    let queued = |call: &ModelCall| call.queued_ms.map_or_else(String::new, duration);
    let cost = |call: &ModelCall| match (call.cost_micro_usd, call.result) {
        (Some(cost), _) => cost.to_string(),
        (None, CallResult::Failed) => String::new(),
        (None, _) => "unknown".to_owned(),
    };
    let columns = vec![
        TableColumn::number("START", 3, cells(&start)),
        TableColumn::number("QUEUED", 7, cells(&queued)),
        TableColumn::number("LENGTH", 1, cells(&|call| duration(call.length_ms))),
        TableColumn::text("CALL", 0, cells(&|call| call.call.to_string())),
        TableColumn::text("ROLE", 8, cells(&|call| display::line(&call.role))),
        TableColumn::text("MODEL", 5, cells(&|call| display::line(&call.model.to_string()))),
        TableColumn::number("IN", 4, cells(&|call| grouped(call.prompt_tokens))),
        TableColumn::number("CACHED", 6, cells(&|call| grouped(call.cached_tokens))),
        TableColumn::number("OUT", 4, cells(&|call| grouped(call.output_tokens))),
        TableColumn::number("COST", 2, cells(&cost)),
        TableColumn::number("ATTEMPTS", 6, cells(&|call| call.attempts.to_string())),
        TableColumn::text("RESULT", 0, cells(&result)),
    ];
    Table::new(columns, terminal_width).render()
}

/// The result and the first reason.
fn result(call: &ModelCall) -> String {
    let name = call.result.as_str();
    match call.reasons.first() {
        Some(reason) => format!("{name}: {}", display::cut(reason, REASON_CHARS)),
        None => name.to_owned(),
    }
}

/// The totals, and the sums by role, move and model.
fn sums(page: &CallPage, shown: usize) -> String {
    let total = &page.matching.total;
    let of = match total.calls == page.all.total.calls {
        true => String::new(),
        false => format!(" of {}", grouped(page.all.total.calls)),
    };
    let mut text = format!(
        "\n{BOLD}{}{of} calls{BOLD:#} · {} in ({} cached), {} out · {}\n",
        grouped(total.calls),
        grouped(total.prompt_tokens),
        grouped(total.cached_tokens),
        grouped(total.output_tokens),
        total.cost_text(),
    );
    if (shown as u64) < total.calls {
        let _ = writeln!(text, "the first {shown} are shown; the sums are of all {}", total.calls);
    }
    let part = |sum: &CallSum| {
        let calls =
            if sum.calls == 1 { "1 call".to_owned() } else { grouped(sum.calls) + " calls" };
        format!("{} {} ({calls})", display::line(&sum.name), sum.cost_text())
    };
    let divisions = [
        ("by role", &page.matching.roles),
        ("by move", &page.matching.moves),
        ("by model", &page.matching.models),
    ];
    for (title, parts) in divisions {
        // Without moves there is only one part.
        if title != "by move" || parts.len() > 1 {
            let parts: Vec<String> = parts.iter().map(part).collect();
            let _ = writeln!(text, "{title:<9} {}", parts.join(" · "));
        }
    }
    text
}

fn print_call(record: &RunRecord, call: &str, as_json: bool) -> anyhow::Result<()> {
    let id = run_store::short_id(&record.row.run_id);
    let unknown = || {
        CliError::usage(format!(
            "run {} has no finished call `{}`",
            record.row.run_id,
            display::line(call)
        ))
        .with_hint(format!("list the calls with `moothall calls {id}`"))
    };
    let call: EffectId = call.parse().map_err(|_| unknown())?;
    let detail = record.call_detail(&call).ok_or_else(unknown)?;
    if as_json {
        return Ok(terminal::print(&format!("{:#}\n", json!(detail)))?);
    }
    Ok(terminal::print_answer(&call_text(&detail))?)
}

fn call_text(detail: &CallDetail) -> String {
    let call = &detail.call;
    let mut text = String::new();
    let mut field = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<9} {}", text::sanitize_line(&value));
    };
    field("call", call.call.to_string());
    let member = call.member.as_ref().map_or_else(String::new, |member| format!(" ({member})"));
    field("role", format!("{}{member}, {}", call.role, call.stage));
    field("model", call.model.to_string());
    field("started", display::time(call.started_at_ms));
    let queued = call.queued_ms.map(|queued| format!(", after {} in the queue", duration(queued)));
    field("length", duration(call.length_ms) + &queued.unwrap_or_default());
    field("attempts", call.attempts.to_string());
    let (prompt, cached) = (grouped(call.prompt_tokens), grouped(call.cached_tokens));
    field("tokens", format!("{prompt} in ({cached} cached), {} out", grouped(call.output_tokens)));
    let cost = call.cost_micro_usd.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    field("cost", cost);
    field("result", call.result.as_str().to_owned());
    for reason in &call.reasons {
        field("reason", reason.clone());
    }
    if detail.hidden_secrets > 0 {
        field("hidden", format!("{} credentials in the texts below", detail.hidden_secrets));
    }
    let mut section = |title: &str, content: &str| {
        let _ = write!(text, "\n--- {title} ---\n{}\n", content.trim_end());
    };
    if let Some(problem) = &detail.prompt_problem {
        section("prompt", problem);
    }
    for message in detail.prompt.iter().flat_map(|prompt| &prompt.messages) {
        section(&message.role, &message.text);
    }
    match &detail.answer {
        Some(answer) if detail.truncated => section("answer (cut off at its limit)", answer),
        Some(answer) => section("answer", answer),
        None => section("answer", "none"),
    }
    text
}

/// `850ms`, `12.3s` or `4m05s`.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
    }
}

/// A number with separators: `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
