//! What every store decides in the same way, whatever it is made of.

use moothall_core::access::InUse;
use moothall_core::consult::Approval;
use moothall_core::{MicroUsd, RunId, Sha256Hex};

use crate::rows::{self, Record};
use crate::{
    MAX_ARTIFACT_BYTES, MAX_LABEL_BYTES, MAX_REQUEST_KEY_BYTES, MAX_TEXT_BYTES, NewRun, NewToken,
    RunMatch, StoreError, Terms,
};

/// How many candidates [`RunMatch::Several`] names.
pub(crate) const CANDIDATES: u32 = 10;

/// Refuses a request whose key is too long.
pub(crate) fn check_key(terms: &Terms) -> Result<(), StoreError> {
    let bytes = terms.once.as_ref().map_or(0, |once| once.key.len());
    at_most("the key of a request", bytes, MAX_REQUEST_KEY_BYTES)
}

/// Refuses a run whose id was there already, so that no row was written.
pub(crate) fn made(run: &NewRun, rows: u64) -> Result<(), StoreError> {
    if rows == 0 { Err(StoreError::RunExists(run.run_id.clone())) } else { Ok(()) }
}

/// Refuses a token whose label is too long.
pub(crate) fn check_label(token: &NewToken) -> Result<(), StoreError> {
    at_most("the label of a token", token.label.len(), MAX_LABEL_BYTES)
}

/// Refuses a word on a move that is too long.
pub(crate) fn check_approval(approval: &Approval) -> Result<(), StoreError> {
    let bytes = approval.note.len() + approval.by.len() + approval.move_id.len();
    at_most("an approval", bytes, MAX_TEXT_BYTES)
}

/// Refuses a file that is too large, and says under which hash it is kept.
pub(crate) fn name_artifact(content: &[u8]) -> Result<Sha256Hex, StoreError> {
    at_most("an artefact", content.len(), MAX_ARTIFACT_BYTES)?;
    Ok(Sha256Hex::of(content))
}

/// The bytes that are there, if they are those that were kept.
pub(crate) fn check_artifact(
    content: Option<Vec<u8>>,
    sha256: &Sha256Hex,
) -> Result<Option<Vec<u8>>, StoreError> {
    match content {
        Some(content) if Sha256Hex::of(&content) != *sha256 => {
            Err(StoreError::unreadable("artefact", "its bytes are not the ones that were kept"))
        }
        content => Ok(content),
    }
}

/// What the ids that begin alike stand for, the newest first.
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

/// What the runs of a token use of its limits: those that go on in the worst case, those that ended
/// as they were.
pub(crate) fn in_use(found: &[impl Record]) -> Result<InUse, StoreError> {
    let mut used = InUse::default();
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

fn at_most(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit { Err(StoreError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}
