//! Turns a plain-text answer into drafts, for models without tools.

use moothall_core::drafts::{Draft, FileProposal, ImportFault, RelPath, apply_hunks, read_answer};
use moothall_workspace::{DraftCaller, DraftEdit, DraftStore, FileRequirement};

use super::store::{PATH_HINT, failed};
use crate::error::CliError;

/// Creates a draft for every file in the answer. Stops at the first error; the drafts created
/// before it stay open and can be discarded.
pub(crate) fn import(
    store: &DraftStore,
    worker: &DraftCaller,
    text: &str,
    task: &str,
    path: Option<&str>,
) -> Result<Vec<Draft>, CliError> {
    let single = path.map(RelPath::parse).transpose().map_err(|fault| failed(fault.into()))?;
    let proposed =
        read_answer(text, single.as_ref()).map_err(|fault| unusable(&fault, &fault.message()))?;
    let mut drafts = Vec::new();
    for one in proposed {
        let existing = match one.what {
            FileProposal::Delete => FileRequirement::Must,
            FileProposal::Whole(_) | FileProposal::Hunks(_) => FileRequirement::MayNot,
        };
        let (draft, now) =
            store.request(worker, task, one.path.as_str(), existing).map_err(failed)?;
        let edit = match one.what {
            FileProposal::Whole(text) => DraftEdit::Content(text),
            FileProposal::Delete => DraftEdit::Delete,
            FileProposal::Hunks(hunks) => DraftEdit::Content(
                apply_hunks(&now, &hunks)
                    .map_err(|fault| unusable(&fault, &format!("{}: {fault}", draft.path)))?,
            ),
        };
        drafts.push(store.write(worker, draft.id, edit, None).map_err(failed)?);
    }
    Ok(drafts)
}

fn unusable(fault: &ImportFault, detail: &str) -> CliError {
    let error = CliError::usage(format!("cannot use the answer: {detail}"));
    match fault {
        ImportFault::Nothing | ImportFault::Unnamed(_) => error
            .with_hint("name the file of each block (```python src/a.py), or use a unified diff"),
        ImportFault::Path { .. } => error.with_hint(PATH_HINT),
        // The message says what is wrong.
        ImportFault::Long
        | ImportFault::Unended(_)
        | ImportFault::Twice(_)
        | ImportFault::Diff { .. }
        | ImportFault::Fit(_) => error,
    }
}
