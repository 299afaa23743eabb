//! Runs and their events in words. What models, guests and providers wrote is made harmless here.

mod trial;

use std::time::{Duration, UNIX_EPOCH};

use moothall_core::drafts::State;
use moothall_core::money::{MicroUsd, Spent};
use moothall_core::sandbox::Exit;
use moothall_core::text::shown_line;
use moothall_core::{Conclusion, Finding, Outcome, RunEventBody, Verdict};
use moothall_store::{RunRow, RunState, StoredEvent};
use serde_json::{Value, json};

pub(super) use self::trial::{degradation, layer, objection_severity};

/// The longest text of others that stands in one line.
const LINE_CHARS: usize = 160;

/// The word for how a run ended.
pub(super) fn verdict(outcome: &Outcome) -> &'static str {
    match &outcome.conclusion {
        Conclusion::Answered { .. } => "answered",
        Conclusion::Unusable { .. } => "unusable",
        Conclusion::Ran(_) => "ran",
        Conclusion::Passed(_) => "passed",
        Conclusion::Questioned(_) => "needs a person",
        Conclusion::NotPassed(_) => "not passed",
        Conclusion::Edited(edited) => match edited.state {
            Some(State::Applied) => "applied",
            Some(State::Escalated) => "needs a person",
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

/// The word for where a run stands.
pub(super) fn state(row: &RunRow, is_driven: bool) -> &'static str {
    match row.state {
        RunState::Running if !is_driven => "interrupted",
        state => state.as_str(),
    }
}

/// A moment, in UTC.
pub(super) fn time(at_ms: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(at_ms));
    // What lies beyond the year 9999 has no such name.
    match time.filter(|_| at_ms < 253_402_300_800_000) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => format!("{at_ms} ms after 1970"),
    }
}

/// What was spent, in words.
pub(super) fn spent(spent: &Spent) -> String {
    let mut words = format!("{} · {} tokens", spent.usd, spent.tokens);
    if spent.uncertain_usd.micros() > 0 {
        words.push_str(&format!(" · up to {} of it may not be billed", spent.uncertain_usd));
    }
    if spent.unpriced_calls > 0 {
        words.push_str(&format!(" · {} calls without a known price", spent.unpriced_calls));
    }
    words
}

pub(super) fn spent_json(spent: &Spent) -> Value {
    json!({
        "usd": spent.usd.decimal(),
        "uncertain_usd": spent.uncertain_usd.decimal(),
        "tokens": spent.tokens,
        "unpriced_calls": spent.unpriced_calls,
    })
}

/// Text of others in one line, cut where it is too long.
pub(super) fn line(text: &str) -> String {
    cut(text, LINE_CHARS)
}

/// Text of others in one line of at most so many characters.
pub(super) fn cut(text: &str, chars: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = shown_line(&joined);
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub(super) fn finding(finding: &Finding) -> String {
    line(&format!("{}: {}", finding.rule, finding.message))
}

/// What a backup holds: `2 runs and the drafts of 1 workspace`. A backup without a database has no
/// number of runs.
pub(super) fn backed_up(run_count: Option<u64>, draft_stores: usize) -> String {
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

/// How many runs, in words.
pub(super) fn runs(count: u64) -> String {
    format!("{count} run{}", if count == 1 { "" } else { "s" })
}

/// How large something is.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

pub(super) fn lines_of_code(lines: u64) -> String {
    format!("a program of {lines} line{}", if lines == 1 { "" } else { "s" })
}

pub(super) fn exit(exit: &Exit) -> String {
    line(&exit.to_string())
}

/// One event in one line.
pub(super) fn event(stored: &StoredEvent) -> String {
    match &stored.event.body {
        RunEventBody::RunStarted { workflow } => format!("{} started", shown_line(workflow)),
        RunEventBody::AttemptStarted { attempt, of, .. } => format!("attempt {attempt} of {of}"),
        RunEventBody::ModelReplied { model, usage, cost_micro_usd, .. } => {
            let cost =
                cost_micro_usd.map_or_else(|| "price unknown".to_owned(), |cost| cost.to_string());
            format!("{model} answered · {} tokens · {cost}", usage.total())
        }
        RunEventBody::ModelFailed { model, kind, detail, .. } => {
            line(&format!("{model} gave no answer ({kind}: {detail})"))
        }
        RunEventBody::OutputRejected { problems, .. } => {
            line(&format!("the answer cannot be used: {}", problems.join("; ")))
        }
        RunEventBody::CodeGenerated { code_lines, dependencies, confidence_permille, .. } => {
            let mut words = lines_of_code(*code_lines);
            if !dependencies.is_empty() {
                words.push_str(&format!(", which needs {}", dependencies.join(", ")));
            }
            if let Some(permille) = confidence_permille {
                words.push_str(&format!("; the model says it is {}% sure", permille / 10));
            }
            line(&words)
        }
        RunEventBody::Executed { effect_id, exit: end, engine, class, files, .. } => {
            let what = if effect_id.as_str().ends_with("/check") { "checked" } else { "ran" };
            let mut words = format!("{what} in {engine} ({class}): {}", exit(end));
            if !files.is_empty() {
                let names: Vec<&str> = files.keys().map(|path| path.as_str()).collect();
                words.push_str(&format!(" · left {}", names.join(", ")));
            }
            line(&words)
        }
        RunEventBody::Judged { findings, .. } => match Verdict::of(findings) {
            _ if findings.is_empty() => "judged: nothing to object to".to_owned(),
            verdict => {
                let said: Vec<String> =
                    findings.iter().map(|f| format!("{}: {}", f.rule, f.message)).collect();
                line(&format!("judged: {verdict} ({})", said.join("; ")))
            }
        },
        RunEventBody::Critiqued { text, .. } => line(&format!("critique: {text}")),
        RunEventBody::RunPaused { detail, .. } => line(&format!("paused: {detail}")),
        // Without a contract a positive verdict is not a pass, and the event does not know.
        RunEventBody::RunFinished { verdict: Verdict::Pass } => "finished".to_owned(),
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
        | RunEventBody::SandboxScored { .. }
        | RunEventBody::PipelineComplete { .. } => trial::event(&stored.event.body),
    }
}

/// Dollars as people read them: cents, and more digits only below a cent.
pub(super) fn cents(amount: MicroUsd) -> String {
    match amount.micros() {
        0 => "$0.00".to_owned(),
        1..10_000 => amount.to_string(),
        micros => {
            let cents = micros.div_ceil(10_000);
            format!("${}.{:02}", cents / 100, cents % 100)
        }
    }
}

/// A number of at most four digits with its unit.
pub(super) fn short_number(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{} k", number / 1000),
        _ => format!("{}.{} M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
