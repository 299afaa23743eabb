//! Where policies are found.

use std::io;
use std::path::{Path, PathBuf};

use moothall_core::gate::{Layer, LayerName, Policy};

use super::Options;
use super::error::DraftError;

/// Of the workspace. Drafts cannot reach it: `.moothall` is refused in every path.
const OF_WORKSPACE: &str = ".moothall/policy.toml";
/// Of the task, in the view that other tools write.
const OF_TASK: &str = "_handoff/TASK_CONTRACT.json";

/// The layers that exist for a workspace, with where they were read.
pub fn policy_layers(
    workspace: &Path,
    organisation: Option<&Path>,
) -> Result<Vec<(PathBuf, Layer)>, DraftError> {
    let places = [
        (LayerName::Organisation, organisation.map(Path::to_owned)),
        (LayerName::Workspace, Some(workspace.join(OF_WORKSPACE))),
        (LayerName::Task, Some(workspace.join(OF_TASK))),
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
    Ok(layers)
}

pub(super) fn load(options: &Options) -> Result<Policy, DraftError> {
    let layers = policy_layers(&options.workspace, options.organisation_policy.as_deref())?;
    let layers: Vec<Layer> = layers.into_iter().map(|(_, layer)| layer).collect();
    Ok(Policy::of(&layers)?)
}
