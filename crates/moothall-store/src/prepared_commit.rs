//! Serializes commits and checks them for consistency, for both databases.

use moothall_core::{EffectId, EffectResult, RunEvent, RunId};
use serde::Serialize;

use crate::rows::{digest, json, to_sql};
use crate::{JournalEntry, JournalMismatch, MAX_TEXT_BYTES, RunCommit, RunState, StoreError};

/// A serialized commit. Serialization happens before the run is locked, so that other writers do
/// not wait for it.
#[derive(Debug)]
pub(crate) struct PreparedCommit {
    pub(crate) commit: RunCommit,
    pub(crate) at_ms: i64,
    /// In the order of `commit.events`.
    pub(crate) bodies: Vec<String>,
    /// In the order of `commit.results`.
    pub(crate) results: Vec<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) spent: Option<String>,
}

impl PreparedCommit {
    pub(crate) fn new(commit: RunCommit) -> Result<Self, StoreError> {
        check_shape(&commit)?;
        let bodies = commit.events.iter().map(|event| text("an event", &event.body));
        let results = commit.results.iter().map(|(_, entry)| text("a result", &entry.result));
        let outcome = commit.outcome.as_ref().map(|outcome| text("an outcome", outcome));
        let spent = commit.spent.as_ref().map(|spent| text("an amount", spent));
        Ok(Self {
            at_ms: to_sql(commit.at_ms)?,
            bodies: bodies.collect::<Result<_, _>>()?,
            results: results.collect::<Result<_, _>>()?,
            outcome: outcome.transpose()?,
            spent: spent.transpose()?,
            commit,
        })
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = (&RunEvent, &String)> {
        self.commit.events.iter().zip(&self.bodies)
    }

    pub(crate) fn results(&self) -> impl Iterator<Item = (&EffectId, &JournalEntry, &String)> {
        self.commit.results.iter().zip(&self.results).map(|((id, entry), text)| (id, entry, text))
    }
}

/// Serializes a value for storage and checks its size.
pub(crate) fn text<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    let text = serde_json::to_string(value)
        .map_err(|_| StoreError::Misfit("a value cannot be serialized as JSON"))?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(StoreError::TooLarge { what, bytes: text.len(), limit: MAX_TEXT_BYTES });
    }
    Ok(text)
}

fn check_shape(commit: &RunCommit) -> Result<(), StoreError> {
    let ends = commit.state.is_some_and(RunState::is_terminal);
    let terminal = commit.events.iter().position(|event| event.body.is_terminal());
    match terminal {
        Some(at) if at + 1 < commit.events.len() => {
            Err(StoreError::Misfit("an event follows a terminal event"))
        }
        Some(_) if !ends => Err(StoreError::Misfit("a terminal event without a terminal state")),
        _ if commit.outcome.is_some() && !ends => {
            Err(StoreError::Misfit("an outcome without a terminal state"))
        }
        _ => Ok(()),
    }
}

/// Compares an entry with the stored one under the same id.
pub(crate) fn compare(
    run_id: &RunId,
    (effect_id, entry, text): (&EffectId, &JournalEntry, &String),
    stored_request: &str,
    stored_result: &str,
) -> Result<(), StoreError> {
    let (stored, offered) = (digest(stored_request)?, entry.request_sha256);
    let mismatch = if stored != offered {
        JournalMismatch::Request { stored, offered }
    } else if stored_result != text
        && json::<EffectResult>("result", stored_result)? != entry.result
    {
        JournalMismatch::Result
    } else {
        return Ok(());
    };
    let (run_id, effect_id) = (run_id.clone(), effect_id.clone());
    Err(StoreError::JournalConflict { run_id, effect_id, mismatch })
}
