//! Where policies are found.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Event, RelPath, VIEW};
use moothall_core::gate::{Layer, LayerName, Policy};

use super::error::{DraftError, FileFault};
use super::workspace::Workspace;
use super::{Caller, DraftStore, Options};

/// Of the workspace. Drafts cannot reach it: `.moothall` is refused in every path.
const POLICY_DIRECTORY: &str = ".moothall";
const POLICY_FILE: &str = "policy.toml";
/// Of the task. Other tools write it where the view of drafts is, and it is all that is read there.
const OF_TASK: &str = "_handoff/TASK_CONTRACT.json";
/// The longest contract that is read.
const MAX_CONTRACT_BYTES: usize = 1 << 20;

/// The policies that a person trusted, in the store's directory: the hash of each text on a line.
const TRUSTED: &str = "trusted-policies";

/// The layers that exist for a workspace, with where they were read.
pub fn policy_layers(options: &Options) -> Result<Vec<(PathBuf, Layer)>, DraftError> {
    let workspace = &options.workspace;
    let mut layers = Vec::new();
    if let Some(path) = &options.organisation_policy {
        match fs_err::read_to_string(path) {
            Ok(text) => layers.push((path.clone(), Layer::new(LayerName::Organisation, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A policy that cannot be read is not a policy that allows.
            Err(error) => return Err(DraftError::io("a policy cannot be read")(error)),
        }
    }
    // Through no link: it could lead to a file that workers may draft.
    let opened = Workspace::open(workspace, MAX_CONTRACT_BYTES)?;
    if let Some(text) = opened.text_at(POLICY_DIRECTORY, POLICY_FILE)? {
        let trusted = is_trusted(&options.state, &text)?;
        let path = workspace.join(POLICY_DIRECTORY).join(POLICY_FILE);
        layers.push((path, Layer { name: LayerName::Workspace, text, trusted }));
    }
    if let Some(text) = contract(workspace)? {
        layers.push((workspace.join(OF_TASK), Layer::new(LayerName::Task, text)));
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
    let no_text = |_| DraftError::file(path, FileFault::NotText);
    String::from_utf8(file.bytes).map(Some).map_err(no_text)
}

pub(super) fn load(options: &Options) -> Result<(Policy, Vec<Layer>), DraftError> {
    let layers = policy_layers(options)?;
    let layers: Vec<Layer> = layers.into_iter().map(|(_, layer)| layer).collect();
    Ok((Policy::of(&layers)?, layers))
}

fn is_trusted(state: &Path, text: &str) -> Result<bool, DraftError> {
    let hash = Sha256Hex::of(text.as_bytes()).to_string();
    match fs_err::read_to_string(state.join(TRUSTED)) {
        Ok(known) => Ok(known.lines().any(|line| line == hash)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DraftError::io("the trusted policies cannot be read")(error)),
    }
}

impl DraftStore {
    /// What people should know about the policy before they rely on it: what the workspace's policy
    /// loosens, or wants to and may not, and that it changed while no process was there to notice.
    pub fn policy_notes(&self) -> Vec<String> {
        let layers = &self.policy_layers;
        let mut notes = match layers.iter().any(|layer| layer.trusted) {
            true => Policy::loosened_by_workspace(layers)
                .unwrap_or_default()
                .iter()
                .map(|what| format!("the trusted policy of the workspace loosens: {what}"))
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
            notes.push("it is not the policy that judged the last submission".to_owned());
        }
        notes
    }

    /// Lets the workspace's policy replace the built-in one, as long as its text stays the same.
    pub fn trust_policy(&self, caller: &Caller) -> Result<Sha256Hex, DraftError> {
        let of_workspace = self.policy_layers.iter().find(|one| one.name == LayerName::Workspace);
        let Some(layer) = of_workspace else {
            let words = "the workspace has no `.moothall/policy.toml` to trust".to_owned();
            return Err(DraftError::Input(words));
        };
        let text = Sha256Hex::of(layer.text.as_bytes());
        if layer.trusted {
            return Ok(text);
        }
        self.with(|store, inner| {
            store.record(inner, caller, Event::PolicyTrusted { text })?;
            let write = || -> io::Result<()> {
                let mut file = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .mode(0o600)
                    .open(store.options.state.join(TRUSTED))?;
                writeln!(file, "{text}")?;
                file.sync_all()
            };
            write().map_err(DraftError::io("the trusted policies cannot be written"))
        })?;
        Ok(text)
    }
}
