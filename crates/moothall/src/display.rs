//! Formats runs and events for people. Text from models, guests and providers is sanitized here.

pub(crate) mod annotations;
mod consult_events;
pub(crate) mod table;

use std::time::{Duration, UNIX_EPOCH};

use moothall_core::drafts::DraftState;
use moothall_core::money::{MicroUsd, SpendTotals};
use moothall_core::sandbox::ExecutionExit;
use moothall_core::text::sanitize_line;
use moothall_core::view::is_extra_call;
use moothall_core::{
    Conclusion, EffectId, Outcome, PauseReason, RunEventBody, RunFinding, RunVerdict,
};
use moothall_models::ProviderOutage;
use moothall_store::{RunRow, RunState, StoredEvent};
use serde_json::{Value, json};

pub(crate) use self::consult_events::{LAYERS, degradation, layer};

/// Limit for untrusted text on one line.
const LINE_CHARS: usize = 160;

/// The result of a run in one word or two.
pub(crate) fn verdict(outcome: &Outcome) -> &'static str {
    match &outcome.conclusion {
        Conclusion::Answered { .. } => "answered",
        Conclusion::Unusable { .. } => "unusable",
        Conclusion::Ran(_) => "ran",
        Conclusion::Passed(_) => "passed",
        Conclusion::Questioned(_) => "needs a person",
        Conclusion::NotPassed(_) => "not passed",
        Conclusion::Edited(edited) => match edited.state {
            Some(DraftState::Applied) => "applied",
            Some(DraftState::Escalated) => "needs a person",
            _ => "not applied",
        },
        Conclusion::Ranked(_) => "ranked",
        Conclusion::Debated(_) => "debated",
        Conclusion::Failed { .. }
        | Conclusion::NotExecuted { .. }
        | Conclusion::NotDebated { .. }
        | Conclusion::NotGathered { .. } => "failed",
    }
}

/// The displayed state of a run.
pub(crate) fn state(row: &RunRow, is_driven: bool) -> &'static str {
    match row.state {
        RunState::Running if !is_driven => "interrupted",
        state => state.as_str(),
    }
}

/// A time in UTC.
pub(crate) fn time(at_ms: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(at_ms));
    // RFC 3339 ends with the year 9999.
    match time.filter(|_| at_ms < 253_402_300_800_000) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => format!("{at_ms} ms after 1970"),
    }
}

pub(crate) fn spent(spent: &SpendTotals) -> String {
    let mut text = format!("{} · {} tokens", spent.usd, spent.tokens);
    if spent.uncertain_usd.micros() > 0 {
        text.push_str(&format!(" · up to {} of this may not be billed", spent.uncertain_usd));
    }
    if spent.unpriced_calls > 0 {
        text.push_str(&format!(" · {} calls with unknown price", spent.unpriced_calls));
    }
    text
}

pub(crate) fn spent_json(spent: &SpendTotals) -> Value {
    json!({
        "usd": spent.usd.decimal(),
        "uncertain_usd": spent.uncertain_usd.decimal(),
        "tokens": spent.tokens,
        "unpriced_calls": spent.unpriced_calls,
    })
}

/// Untrusted text on one line, truncated.
pub(crate) fn line(text: &str) -> String {
    cut(text, LINE_CHARS)
}

/// Untrusted text on one line, truncated to `chars` characters.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = sanitize_line(&joined);
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub(crate) fn finding(finding: &RunFinding) -> String {
    line(&format!("{}: {}", finding.rule, finding.message))
}

/// The content of a backup: `2 runs and the drafts of 1 workspace`. `run_count` is `None` without a
/// database.
pub(crate) fn backed_up(run_count: Option<u64>, draft_stores: usize) -> String {
    let workspaces = match draft_stores {
        1 => "1 workspace".to_owned(),
        many => format!("{many} workspaces"),
    };
    match (run_count, draft_stores) {
        (Some(count), 0) => runs(count),
        (Some(count), _) => format!("{} and the drafts of {workspaces}", runs(count)),
        (None, _) => format!("the drafts of {workspaces}"),
    }
}

pub(crate) fn runs(count: u64) -> String {
    format!("{count} run{}", if count == 1 { "" } else { "s" })
}

/// A provider that does not answer and is called again.
pub(crate) fn outage(outage: &ProviderOutage) -> String {
    let ProviderOutage { model, kind, lasted } = outage;
    format!("{model} has not answered for {} s ({kind}); trying again", lasted.as_secs())
}

/// Calls that wait for others to end. `None` if there are none.
pub(crate) fn queued(calls: usize) -> Option<String> {
    (calls > 0).then(|| format!("{} queued", counted(calls, "call")))
}

/// "1 worker", "2 workers".
pub(crate) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

pub(crate) fn lines_of_code(lines: u64) -> String {
    format!("program with {lines} line{}", if lines == 1 { "" } else { "s" })
}

pub(crate) fn exit(exit: &ExecutionExit) -> String {
    line(&exit.to_string())
}

/// Why an answer was rejected, and whether the model is asked again: always after a first answer,
/// except for questions without a schema and files that the last attempt of an edit chose.
pub(crate) fn rejection(effect_id: &EffectId, problems: &[String]) -> String {
    let id = effect_id.as_str();
    let may_be_last = is_extra_call(effect_id)
        || id == "answer"
        || ["/choose", "/propose-3"].iter().any(|last| id.ends_with(last));
    let again = if may_be_last { "" } else { "; asking again" };
    format!("{}{again}", line(&problems.join("; ")))
}

/// An event on one line.
pub(crate) fn event(stored: &StoredEvent) -> String {
    match &stored.event.body {
        RunEventBody::RunStarted { workflow } => format!("{} started", sanitize_line(workflow)),
        RunEventBody::AttemptStarted { attempt, of, .. } => format!("attempt {attempt} of {of}"),
        RunEventBody::ModelReplied { model, usage, cost_micro_usd, instead_of, .. } => {
            let cost =
                cost_micro_usd.map_or_else(|| "price unknown".to_owned(), |cost| cost.to_string());
            let instead = instead_of.as_ref().map_or_else(String::new, |instead| {
                format!(" instead of {} ({})", instead.model, instead.reason)
            });
            format!("{model} answered{instead} · {} tokens · {cost}", usage.total())
        }
        RunEventBody::ModelFailed { model, kind, detail, .. } => {
            line(&format!("{model} failed ({kind}: {detail})"))
        }
        RunEventBody::OutputRejected { effect_id, problems } => {
            format!("answer rejected: {}", rejection(effect_id, problems))
        }
        RunEventBody::CodeGenerated { code_lines, dependencies, confidence_permille, .. } => {
            let mut summary = lines_of_code(*code_lines);
            if !dependencies.is_empty() {
                summary.push_str(&format!(", requires {}", dependencies.join(", ")));
            }
            if let Some(permille) = confidence_permille {
                summary.push_str(&format!("; model confidence {}%", permille / 10));
            }
            line(&summary)
        }
        RunEventBody::Executed { effect_id, exit: end, engine, class, files, .. } => {
            let what = if effect_id.as_str().ends_with("/check") { "checked" } else { "ran" };
            let mut summary = format!("{what} in {engine} ({class}): {}", exit(end));
            if !files.is_empty() {
                let names: Vec<&str> = files.keys().map(|path| path.as_str()).collect();
                summary.push_str(&format!(" · created {}", names.join(", ")));
            }
            line(&summary)
        }
        RunEventBody::Judged { findings, .. } => match RunVerdict::of(findings) {
            _ if findings.is_empty() => "checked: no findings".to_owned(),
            verdict => {
                let said: Vec<String> =
                    findings.iter().map(|f| format!("{}: {}", f.rule, f.message)).collect();
                line(&format!("checked: {verdict} ({})", said.join("; ")))
            }
        },
        RunEventBody::Critiqued { text, .. } => line(&format!("critique: {text}")),
        RunEventBody::RunPaused { reason: PauseReason::Person, detail, .. } => line(detail),
        RunEventBody::RunPaused { detail, .. } => line(&format!("paused: {detail}")),
        // Not "passed": without a contract `RunVerdict::Pass` only means that the program ran, and the
        // event does not say.
        RunEventBody::RunFinished { verdict: RunVerdict::Pass } => "finished".to_owned(),
        RunEventBody::RunFinished { verdict } => format!("finished: {verdict}"),
        RunEventBody::RunFailed { detail, .. } => line(&format!("failed: {detail}")),
        RunEventBody::RunCancelled => "cancelled".to_owned(),
        RunEventBody::ConsultStarted { .. }
        | RunEventBody::LayerStart { .. }
        | RunEventBody::LayerComplete { .. }
        | RunEventBody::AgentStart { .. }
        | RunEventBody::AgentComplete { .. }
        | RunEventBody::ClaimChecked { .. }
        | RunEventBody::MovesReviewed { .. }
        | RunEventBody::Isolation { .. }
        | RunEventBody::SandboxRound { .. }
        | RunEventBody::SandboxTurn { .. }
        | RunEventBody::Calculated { .. }
        | RunEventBody::SandboxScored { .. }
        | RunEventBody::VerdictUpdated { .. }
        | RunEventBody::PipelineComplete { .. } => consult_events::event(&stored.event.body),
    }
}

/// Dollars rounded up to cents; amounts below a cent keep all digits.
pub(crate) fn cents(amount: MicroUsd) -> String {
    match amount.micros() {
        0 => "$0.00".to_owned(),
        1..10_000 => amount.to_string(),
        micros => {
            let cents = micros.div_ceil(10_000);
            format!("${}.{:02}", cents / 100, cents % 100)
        }
    }
}

/// A number with at most four digits and a unit.
pub(crate) fn short_number(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{} k", number / 1000),
        _ => format!("{}.{} M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
#[path = "display_tests.rs"]
mod tests;
