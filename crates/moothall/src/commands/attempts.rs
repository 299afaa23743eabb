//! Collects the attempts of a run from its events.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::program::{ProgramResult, read_program};
use moothall_core::sandbox::{FileRef, GuestPath};
use moothall_core::view::{AttemptView, ProgramView};
use moothall_core::{Conclusion, EffectResult};
use moothall_engine::RunRecord;
use moothall_sandbox::version_warning;
use serde_json::{Value, json};

/// All attempts of a run, oldest first.
pub(crate) fn attempts(record: &RunRecord) -> Vec<AttemptView> {
    ProgramView::of(record.events.iter().map(|stored| &stored.event.body)).attempts
}

/// JSON form of an attempt, without fields that have no value yet.
pub(crate) fn attempt_json(attempt: &AttemptView) -> Value {
    let mut shown = json!(attempt);
    for part in ["program", "executed", "checked"] {
        remove_empty_fields(&mut shown[part]);
    }
    remove_empty_fields(&mut shown);
    shown
}

fn remove_empty_fields(value: &mut Value) {
    let has_value = |name: &str, field: &Value| match (name, field) {
        (_, Value::Null) => false,
        ("rejected", Value::Array(items)) => !items.is_empty(),
        ("files", Value::Object(files)) => !files.is_empty(),
        // Derived from the findings.
        ("verdict", _) => false,
        _ => true,
    };
    if let Value::Object(fields) = value {
        fields.retain(|name, field| has_value(name, field));
    }
}

/// The last attempt of a finished run.
pub(crate) fn attempted(record: &RunRecord) -> Option<&ProgramResult> {
    match &record.row.outcome.as_ref()?.conclusion {
        Conclusion::Ran(attempted)
        | Conclusion::Passed(attempted)
        | Conclusion::Questioned(attempted)
        | Conclusion::NotPassed(attempted) => Some(attempted),
        _ => None,
    }
}

/// Known vulnerabilities in the sandbox engine versions that the programs ran in.
pub(crate) fn isolation_warnings(record: &RunRecord) -> BTreeSet<String> {
    let executed = record.journal.values().filter_map(|entry| match &entry.result {
        EffectResult::Executed(execution) => Some(&execution.attestation),
        _ => None,
    });
    executed.filter_map(|one| version_warning(&one.engine, &one.engine_version)).collect()
}

/// Files that the last executed program wrote, also for unfinished runs.
pub(crate) fn files(record: &RunRecord) -> BTreeMap<GuestPath, FileRef> {
    let last = attempts(record).into_iter().rev().find_map(|attempt| attempt.executed);
    last.map(|executed| executed.files).unwrap_or_default()
}

/// Source of the last generated program.
pub(crate) fn code(record: &RunRecord) -> Option<String> {
    let program = attempts(record).into_iter().rev().find_map(|attempt| attempt.program)?;
    match &record.journal.get(&program.effect_id)?.result {
        EffectResult::ModelReplied(reply) => Some(read_program(reply).ok()?.code),
        _ => None,
    }
}
