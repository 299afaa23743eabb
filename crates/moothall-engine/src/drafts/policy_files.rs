//! Where policies are found.

use std::io;
use std::path::{Path, PathBuf};

use moothall_core::drafts::{RelPath, VIEW};
use moothall_core::gate::{Layer, LayerName, Policy};

use super::Options;
use super::error::DraftError;
use super::workspace::Workspace;

/// Of the workspace. Drafts cannot reach it: `.moothall` is refused in every path.
const OF_WORKSPACE: &str = ".moothall/policy.toml";
/// Of the task. Other tools write it where the view of drafts is, and it is all that is read there.
const OF_TASK: &str = "_handoff/TASK_CONTRACT.json";
/// The longest contract that is read.
const MAX_CONTRACT_BYTES: usize = 1 << 20;

/// The layers that exist for a workspace, with where they were read.
pub fn policy_layers(
    workspace: &Path,
    organisation: Option<&Path>,
) -> Result<Vec<(PathBuf, Layer)>, DraftError> {
    let places = [
        (LayerName::Organisation, organisation.map(Path::to_owned)),
        (LayerName::Workspace, Some(workspace.join(OF_WORKSPACE))),
    ];
    let mut layers = Vec::new();
    for (name, path) in places {
        let Some(path) = path else { continue };
        match fs_err::read_to_string(&path) {
            Ok(text) => layers.push((path, Layer { name, text })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A policy that cannot be read is not a policy that allows.
            Err(error) => return Err(DraftError::io("a policy cannot be read")(error)),
        }
    }
    if let Some(text) = contract(workspace)? {
        layers.push((workspace.join(OF_TASK), Layer { name: LayerName::Task, text }));
    }
    Ok(layers)
}

/// Whoever may write there is not trusted: a link is not followed, and nobody waits for a pipe.
fn contract(workspace: &Path) -> Result<Option<String>, DraftError> {
    // A file in the place of the directory has no contract in it, and must not keep people out.
    let parent = workspace.join(VIEW);
    if parent.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let path = RelPath::parse(OF_TASK)?;
    let Some(file) = Workspace::open(workspace, MAX_CONTRACT_BYTES)?.read(&path)? else {
        return Ok(None);
    };
    let no_text = |_| DraftError::File { path: path.to_string(), why: "it is not UTF-8 text" };
    String::from_utf8(file.bytes).map(Some).map_err(no_text)
}

pub(super) fn load(options: &Options) -> Result<Policy, DraftError> {
    let layers = policy_layers(&options.workspace, options.organisation_policy.as_deref())?;
    let layers: Vec<Layer> = layers.into_iter().map(|(_, layer)| layer).collect();
    Ok(Policy::of(&layers)?)
}
