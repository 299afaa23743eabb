//! Finds and reads policy files.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use moothall_core::drafts::{DraftEvent, RelPath, VIEW};
use moothall_core::gate::{Policy, PolicyLayer, PolicyLayerName};

use super::error::{DraftError, FileFault};
use super::workspace::ConfinedWorkspace;
use super::{DraftCaller, DraftStore, DraftStoreOptions};

/// The workspace policy. Drafts cannot reach it, because `.moothall` is refused in every path.
const POLICY_DIRECTORY: &str = ".moothall";
const POLICY_FILE: &str = "policy.toml";
/// The task contract. Other tools write it into the export directory; nothing else is read from
/// there.
const TASK_CONTRACT_PATH: &str = "_handoff/TASK_CONTRACT.json";
const MAX_CONTRACT_BYTES: usize = 1 << 20;

/// Policies that a person trusted, in the store's directory: one text hash per line.
const TRUSTED_POLICIES: &str = "trusted-policies";

/// The policy layers of a workspace and the files they were read from.
pub fn policy_layers(
    options: &DraftStoreOptions,
) -> Result<Vec<(PathBuf, PolicyLayer)>, DraftError> {
    let workspace = &options.workspace;
    let mut layers = Vec::new();
    if let Some(path) = &options.organisation_policy {
        match fs_err::read_to_string(path) {
            Ok(text) => {
                layers.push((path.clone(), PolicyLayer::new(PolicyLayerName::Organisation, text)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // An unreadable policy must not count as permissive.
            Err(error) => return Err(DraftError::io("cannot read a policy")(error)),
        }
    }
    // Do not follow links: one could point to a file that workers may draft.
    let opened = ConfinedWorkspace::open(workspace, MAX_CONTRACT_BYTES)?;
    if let Some(text) = opened.text_at(POLICY_DIRECTORY, POLICY_FILE)? {
        let trusted = is_trusted(&options.state, &text)?;
        let path = workspace.join(POLICY_DIRECTORY).join(POLICY_FILE);
        layers.push((path, PolicyLayer { name: PolicyLayerName::Workspace, text, trusted }));
    }
    if let Some(text) = contract(workspace)? {
        layers.push((
            workspace.join(TASK_CONTRACT_PATH),
            PolicyLayer::new(PolicyLayerName::Task, text),
        ));
    }
    Ok(layers)
}

/// Anyone may write there, so links are not followed and reading a pipe does not block.
fn contract(workspace: &Path) -> Result<Option<String>, DraftError> {
    // A file in place of the directory contains no contract and must not block the store.
    let parent = workspace.join(VIEW);
    if parent.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let path = RelPath::parse(TASK_CONTRACT_PATH)?;
    let Some(file) = ConfinedWorkspace::open(workspace, MAX_CONTRACT_BYTES)?.read(&path)? else {
        return Ok(None);
    };
    let no_text = |_| DraftError::file(path, FileFault::NotText);
    String::from_utf8(file.bytes).map(Some).map_err(no_text)
}

pub(crate) fn load(options: &DraftStoreOptions) -> Result<(Policy, Vec<PolicyLayer>), DraftError> {
    let layers = policy_layers(options)?;
    let layers: Vec<PolicyLayer> = layers.into_iter().map(|(_, layer)| layer).collect();
    Ok((Policy::of(&layers)?, layers))
}

/// Whether a person trusted exactly this text of a workspace policy.
pub fn is_policy_trusted(state: &Path, text: &str) -> io::Result<bool> {
    is_trusted(state, text).map_err(io::Error::other)
}

fn is_trusted(state: &Path, text: &str) -> Result<bool, DraftError> {
    let hash = Sha256Hex::of(text.as_bytes()).to_string();
    match fs_err::read_to_string(state.join(TRUSTED_POLICIES)) {
        Ok(known) => Ok(known.lines().any(|line| line == hash)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DraftError::io("cannot read the trusted policies")(error)),
    }
}

impl DraftStore {
    /// Warnings about the policy: what the workspace policy loosens or was not allowed to loosen,
    /// and whether the policy changed since the last submission was judged.
    pub fn policy_notes(&self) -> Vec<String> {
        let layers = &self.policy_layers;
        let mut notes = match layers.iter().any(|layer| layer.trusted) {
            true => Policy::loosened_by_workspace(layers)
                .unwrap_or_default()
                .iter()
                .map(|what| {
                    format!("the trusted workspace policy loosens the built-in policy: {what}")
                })
                .collect(),
            false => self.policy.notes.clone(),
        };
        let judged_by = {
            let inner = self.inner.lock();
            let judged = inner.drafts.all().filter_map(|draft| draft.submission.as_ref());
            let judged = judged.filter_map(|one| Some((one.at, one.policy?)));
            judged.max_by_key(|(at, _)| *at).map(|(_, policy)| policy)
        };
        if judged_by.is_some_and(|hash| hash != self.policy.hash()) {
            notes.push("the policy changed after it judged the last submission".to_owned());
        }
        notes
    }

    /// Lets the workspace policy replace the built-in one as long as its text does not change.
    pub fn trust_policy(&self, caller: &DraftCaller) -> Result<Sha256Hex, DraftError> {
        let of_workspace =
            self.policy_layers.iter().find(|one| one.name == PolicyLayerName::Workspace);
        let Some(layer) = of_workspace else {
            let message = "the workspace has no `.moothall/policy.toml` to trust".to_owned();
            return Err(DraftError::Input(message));
        };
        let text = Sha256Hex::of(layer.text.as_bytes());
        if layer.trusted {
            return Ok(text);
        }
        self.with(|store, inner| {
            store.record(inner, caller, DraftEvent::PolicyTrusted { text })?;
            let write = || -> io::Result<()> {
                let mut file = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .mode(0o600)
                    .open(store.options.state.join(TRUSTED_POLICIES))?;
                writeln!(file, "{text}")?;
                file.sync_all()
            };
            write().map_err(DraftError::io("cannot write the trusted policies"))
        })?;
        Ok(text)
    }
}
