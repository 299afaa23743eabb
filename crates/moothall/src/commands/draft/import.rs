//! A plain answer becomes drafts: what models without tools can do.

use moothall_core::drafts::{Draft, Proposal, RelPath, apply_hunks, read_answer};
use moothall_workspace::{Caller, DraftStore, Edit, Existing};

use super::store::failed;
use crate::error::CliError;

/// Makes a draft of every file of the answer. The first that does not fit ends it; what was made
/// before stays open and can be given up.
pub(super) fn import(
    store: &DraftStore,
    worker: &Caller,
    text: &str,
    task: &str,
    path: Option<&str>,
) -> Result<Vec<Draft>, CliError> {
    let unusable = |words: String| {
        CliError::usage(format!("the answer cannot be used: {words}")).with_hint(
            "name the file at each block (```python src/a.py), or answer with a unified diff",
        )
    };
    let single =
        path.map(RelPath::parse).transpose().map_err(|fault| CliError::usage(fault.to_string()))?;
    let proposed =
        read_answer(text, single.as_ref()).map_err(|fault| unusable(fault.to_string()))?;
    let mut drafts = Vec::new();
    for one in proposed {
        let existing = match one.what {
            Proposal::Delete => Existing::Must,
            Proposal::Whole(_) | Proposal::Hunks(_) => Existing::MayNot,
        };
        let (draft, now) =
            store.request(worker, task, one.path.as_str(), existing).map_err(failed)?;
        let edit = match one.what {
            Proposal::Whole(text) => Edit::Content(text),
            Proposal::Delete => Edit::Delete,
            Proposal::Hunks(hunks) => Edit::Content(
                apply_hunks(&now, &hunks)
                    .map_err(|fault| unusable(format!("{}: {fault}", draft.path)))?,
            ),
        };
        drafts.push(store.write(worker, draft.id, edit, None).map_err(failed)?);
    }
    Ok(drafts)
}
