//! Checks that all stores share.

use moothall_core::access::CredentialUsage;
use moothall_core::consult::MoveApproval;
use moothall_core::{MicroUsd, RunId, Sha256Hex};

use crate::rows::{self, RowReader};
use crate::{
    AdmissionTerms, MAX_ARTIFACT_BYTES, MAX_LABEL_BYTES, MAX_REQUEST_KEY_BYTES, MAX_TEXT_BYTES,
    NewRun, NewToken, RunMatch, StoreError,
};

/// Maximum number of candidates in [`RunMatch::Several`].
pub(crate) const MAX_MATCHES: u32 = 10;

pub(crate) fn check_key(terms: &AdmissionTerms) -> Result<(), StoreError> {
    let bytes = terms.idempotency_key.as_ref().map_or(0, |sent| sent.key.len());
    check_size("the idempotency key", bytes, MAX_REQUEST_KEY_BYTES)
}

/// Fails if no row was written because the run id already exists.
pub(crate) fn check_created(run: &NewRun, rows: u64) -> Result<(), StoreError> {
    if rows == 0 { Err(StoreError::RunExists(run.run_id.clone())) } else { Ok(()) }
}

pub(crate) fn check_label(token: &NewToken) -> Result<(), StoreError> {
    check_size("the token label", token.label.len(), MAX_LABEL_BYTES)
}

pub(crate) fn check_approval(approval: &MoveApproval) -> Result<(), StoreError> {
    let bytes = approval.note.len() + approval.by.len() + approval.move_id.len();
    check_size("an approval", bytes, MAX_TEXT_BYTES)
}

/// Checks the size of an artifact and returns its hash.
pub(crate) fn hash_artifact(content: &[u8]) -> Result<Sha256Hex, StoreError> {
    check_size("an artefact", content.len(), MAX_ARTIFACT_BYTES)?;
    Ok(Sha256Hex::of(content))
}

/// Checks that stored content still matches its hash.
pub(crate) fn check_artifact(
    content: Option<Vec<u8>>,
    sha256: &Sha256Hex,
) -> Result<Option<Vec<u8>>, StoreError> {
    match content {
        Some(content) if Sha256Hex::of(&content) != *sha256 => {
            Err(StoreError::unreadable("artefact", "content does not match its hash"))
        }
        content => Ok(content),
    }
}

/// The match for ids with a common prefix, newest first.
pub(crate) fn run_match(ids: &[String]) -> Result<RunMatch, StoreError> {
    let mut ids = ids.iter().map(|id| rows::run_id(id)).collect::<Result<Vec<RunId>, _>>()?;
    Ok(match (ids.pop(), ids.is_empty()) {
        (None, _) => RunMatch::None,
        (Some(only), true) => RunMatch::One(only),
        (Some(last), false) => {
            ids.push(last);
            RunMatch::Several(ids)
        }
    })
}

/// Usage of a token's limits: unfinished runs count with their worst case, ended runs with their
/// actual cost.
pub(crate) fn in_use(found: &[impl RowReader]) -> Result<CredentialUsage, StoreError> {
    let mut used = CredentialUsage::default();
    for row in found {
        let spent = rows::spent(row)?.map_or(MicroUsd::ZERO, |spent| spent.usd);
        let cost = if rows::run_state(row)?.is_terminal() {
            spent
        } else {
            used.runs = used.runs.saturating_add(1);
            let cap = rows::cap(row)?;
            used.unbounded |= cap.is_none();
            spent.max(cap.unwrap_or_default())
        };
        used.usd = used.usd.saturating_add(cost);
    }
    Ok(used)
}

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit { Err(StoreError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}
