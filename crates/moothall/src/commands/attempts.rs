//! The attempts of a run, gathered from its events.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::reflexion::{Attempted, read_program};
use moothall_core::sandbox::{FileRef, GuestPath};
use moothall_core::view::{Attempt, CodeView};
use moothall_core::{Conclusion, EffectResult};
use moothall_engine::RunRecord;
use moothall_sandbox::version_warning;
use serde_json::{Value, json};

/// All attempts of a run, the first one first.
pub(super) fn attempts(record: &RunRecord) -> Vec<Attempt> {
    CodeView::of(record.events.iter().map(|stored| &stored.event.body)).attempts
}

/// An attempt as programs read it: what is not there yet has no field.
pub(super) fn attempt_json(attempt: &Attempt) -> Value {
    let mut shown = json!(attempt);
    for part in ["program", "executed", "checked"] {
        leave_out_gaps(&mut shown[part]);
    }
    leave_out_gaps(&mut shown);
    shown
}

fn leave_out_gaps(value: &mut Value) {
    let is_there = |name: &str, field: &Value| match (name, field) {
        (_, Value::Null) => false,
        ("rejected", Value::Array(items)) => !items.is_empty(),
        ("files", Value::Object(files)) => !files.is_empty(),
        // It follows from the findings.
        ("verdict", _) => false,
        _ => true,
    };
    if let Value::Object(fields) = value {
        fields.retain(|name, field| is_there(name, field));
    }
}

/// What the last attempt came to, where the run has ended with one.
pub(super) fn attempted(record: &RunRecord) -> Option<&Attempted> {
    match &record.row.outcome.as_ref()?.conclusion {
        Conclusion::Ran(attempted)
        | Conclusion::Passed(attempted)
        | Conclusion::Questioned(attempted)
        | Conclusion::NotPassed(attempted) => Some(attempted),
        _ => None,
    }
}

/// What is known to be open in the versions of the engines that the programs ran in.
pub(super) fn isolation_warnings(record: &RunRecord) -> BTreeSet<String> {
    let executed = record.journal.values().filter_map(|entry| match &entry.result {
        EffectResult::Executed(execution) => Some(&execution.attestation),
        _ => None,
    });
    executed.filter_map(|one| version_warning(&one.engine, &one.engine_version)).collect()
}

/// Files that the last program left, whether the run has ended or not.
pub(super) fn files(record: &RunRecord) -> BTreeMap<GuestPath, FileRef> {
    let last = attempts(record).into_iter().rev().find_map(|attempt| attempt.executed);
    last.map(|executed| executed.files).unwrap_or_default()
}

/// The text of the last program that was written.
pub(super) fn code(record: &RunRecord) -> Option<String> {
    let program = attempts(record).into_iter().rev().find_map(|attempt| attempt.program)?;
    match &record.journal.get(&program.effect_id)?.result {
        EffectResult::ModelReplied(reply) => Some(read_program(reply).ok()?.code),
        _ => None,
    }
}
