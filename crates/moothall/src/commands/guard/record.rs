//! The directory of a guarded run: its private copy and its record.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use moothall_core::drafts::DraftId;
use moothall_sandbox::guard::{AgentExit, EgressRecord, GuardLimits, PrivateCopy};
use moothall_workspace::{
    AgentStart, BaseIndex, CopyFolder, DraftStore, GitFolderChanges, ShownPaths, workspace_id,
};
use serde::{Deserialize, Serialize};

use crate::args::GuardFlags;
use crate::commands::draft::store::{OpenDraftStore, failed};
use crate::error::CliError;

/// Records without a copy that are kept.
const MAX_RECORDS: usize = 50;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);

/// Where a guarded run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GuardState {
    /// An agent is running, or its supervisor was killed.
    Running,
    /// The copy was not judged.
    Stopped,
    /// The changes were judged.
    Judged,
    /// The copy was deleted before it was judged.
    Discarded,
}

impl GuardState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Judged => "judged",
            Self::Discarded => "discarded",
        }
    }
}

/// Why an agent ended, according to its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GuardEnd {
    Exited(i32),
    Signalled(i32),
    /// Something else killed its processes.
    Killed,
    Deadline,
    /// The user pressed Ctrl-C, or the supervisor was asked to end.
    Interrupted,
}

impl From<AgentExit> for GuardEnd {
    fn from(exit: AgentExit) -> Self {
        match exit {
            AgentExit::Exited(code) => Self::Exited(code),
            AgentExit::Signalled(signal) => Self::Signalled(signal),
            AgentExit::Killed => Self::Killed,
        }
    }
}

impl GuardEnd {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Exited(code) => format!("the agent ended with exit code {code}"),
            Self::Signalled(signal) => format!("the agent was ended by signal {signal}"),
            Self::Killed => "the agent was killed".to_owned(),
            Self::Deadline => "the agent was stopped at its time limit".to_owned(),
            Self::Interrupted => "the agent was interrupted".to_owned(),
        }
    }
}

/// Flags that a resumed run repeats. Values of environment variables are not stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct GuardOptions {
    pub(crate) timeout_seconds: u64,
    pub(crate) checks: Vec<String>,
    pub(crate) environment: Vec<String>,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) allow_host: Vec<String>,
    pub(crate) allow_loopback: Vec<u16>,
    pub(crate) offline: bool,
    pub(crate) full_copy: bool,
    pub(crate) keep: bool,
    #[serde(default)]
    pub(crate) limits: GuardLimits,
}

impl GuardOptions {
    pub(crate) fn of(flags: &GuardFlags) -> Result<Self, CliError> {
        let mut options = Self { timeout_seconds: DEFAULT_TIMEOUT.as_secs(), ..Self::default() };
        options.replace(flags)?;
        options.full_copy = flags.full_copy;
        Ok(options)
    }

    /// Replaces what the flags set.
    pub(crate) fn replace(&mut self, flags: &GuardFlags) -> Result<(), CliError> {
        if let Some(timeout) = flags.timeout {
            if timeout.is_zero() {
                return Err(CliError::usage("the time limit is zero"));
            }
            self.timeout_seconds = timeout.as_secs().max(1);
        }
        if !flags.check.is_empty() {
            self.checks.clone_from(&flags.check);
        }
        if !flags.env.is_empty() {
            let name = |one: &String| one.split('=').next().unwrap_or_default().to_owned();
            self.environment = flags.env.iter().map(name).collect();
        }
        if !flags.read.is_empty() {
            self.read.clone_from(&flags.read);
        }
        if !flags.allow_host.is_empty() {
            self.allow_host.clone_from(&flags.allow_host);
        }
        if !flags.allow_loopback.is_empty() {
            self.allow_loopback.clone_from(&flags.allow_loopback);
        }
        if let Some(processes) = flags.processes {
            self.limits.processes = processes;
        }
        if let Some(mebibytes) = flags.memory {
            self.limits.memory_bytes = Some(mebibytes << 20);
        }
        self.offline |= flags.offline;
        self.keep |= flags.keep;
        Ok(())
    }
}

/// The stored record of a run, also printed as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GuardRecord {
    pub(crate) version: u32,
    pub(crate) id: String,
    pub(crate) workspace: PathBuf,
    pub(crate) agent: Vec<String>,
    pub(crate) options: GuardOptions,
    pub(crate) state: GuardState,
    pub(crate) started_at_ms: u64,
    pub(crate) ended_at_ms: Option<u64>,
    pub(crate) end: Option<GuardEnd>,
    /// Hosts that the agent connected to or tried to.
    pub(crate) hosts: Vec<EgressRecord>,
    /// Whether the copy still exists.
    pub(crate) has_copy: bool,
    pub(crate) result: Option<GuardResult>,
}

/// What became of the changes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct GuardResult {
    pub(crate) files: Vec<GuardFileRow>,
    /// Findings about the whole change set.
    pub(crate) findings: Vec<GuardFindingRow>,
    pub(crate) git: GitFolderChanges,
    pub(crate) ignored: ShownPaths,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GuardFileRow {
    pub(crate) path: String,
    /// `applied`, `needs_review`, `rejected` or `left`.
    pub(crate) outcome: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) draft: Option<DraftId>,
    pub(crate) findings: Vec<GuardFindingRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardFindingRow {
    pub(crate) rule: String,
    pub(crate) action: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

/// A guarded run on disk.
#[derive(Debug)]
pub(crate) struct GuardRun {
    pub(crate) record: GuardRecord,
    folder: PathBuf,
    /// Held while this process uses the copy.
    lock: Option<File>,
    /// Whether this process created it.
    is_new: bool,
}

impl GuardRun {
    /// Creates the directory of a new run.
    pub(crate) fn create(
        opened: &OpenDraftStore,
        agent: &[OsString],
        options: GuardOptions,
    ) -> Result<Self, CliError> {
        let cannot = |error: io::Error| {
            CliError::failed("cannot create the directory of the copy").with_source(error)
        };
        let root = runs_folder(opened)?;
        fs::create_dir_all(&root).map_err(cannot)?;
        remove_old_records(&root);
        let id: String = uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect();
        let folder = root.join(&id);
        fs::create_dir(&folder).map_err(cannot)?;
        fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).map_err(cannot)?;
        for name in ["upper", "work", "home", "tmp", "root"] {
            fs::create_dir(folder.join(name)).map_err(cannot)?;
        }
        let record = GuardRecord {
            version: 1,
            id,
            workspace: opened.store.workspace_folder().to_owned(),
            agent: agent.iter().map(|one| one.to_string_lossy().into_owned()).collect(),
            options,
            state: GuardState::Running,
            started_at_ms: moothall_store::now_ms(),
            ended_at_ms: None,
            end: None,
            hosts: Vec::new(),
            has_copy: true,
            result: None,
        };
        let lock = lock(&folder).map_err(cannot)?;
        let mut run = Self { record, folder, lock, is_new: true };
        run.save(GuardState::Running)?;
        Ok(run)
    }

    /// All runs of the workspace, newest first.
    pub(crate) fn list(opened: &OpenDraftStore) -> Result<Vec<Self>, CliError> {
        let root = runs_folder(opened)?;
        let mut runs: Vec<Self> = match fs::read_dir(root) {
            Ok(entries) => entries.flatten().filter_map(|entry| read(&entry.path())).collect(),
            Err(_) => Vec::new(),
        };
        runs.sort_by_key(|run| std::cmp::Reverse(run.record.started_at_ms));
        Ok(runs)
    }

    /// A run by the beginning of its id, or the newest.
    pub(crate) fn find(opened: &OpenDraftStore, name: Option<&str>) -> Result<Self, CliError> {
        let mut runs = Self::list(opened)?;
        if let Some(name) = name {
            runs.retain(|run| run.record.id.starts_with(name));
        }
        let unknown = || match name {
            Some(name) => CliError::usage(format!("no guarded run `{name}` in this workspace"))
                .with_hint("`moothall guard status --all` lists them"),
            None => CliError::usage("no guarded runs in this workspace")
                .with_hint("start one with `moothall guard -- AGENT`"),
        };
        if name.is_some() && runs.len() > 1 {
            return Err(CliError::usage("more than one run has an id that starts like this")
                .with_hint("`moothall guard status --all` lists them"));
        }
        runs.into_iter().next().ok_or_else(unknown)
    }

    /// Finds a run in which no agent is running, and locks it.
    pub(crate) fn open_unlocked(
        opened: &OpenDraftStore,
        name: Option<&str>,
    ) -> Result<Self, CliError> {
        let mut run = Self::find(opened, name)?;
        let cannot = |error: io::Error| CliError::failed("cannot lock the copy").with_source(error);
        run.lock = lock(&run.folder).map_err(cannot)?;
        if run.lock.is_none() {
            let id = &run.record.id;
            return Err(CliError::usage(format!("an agent is running in the copy {id}"))
                .with_hint("wait until it ends, or stop it with Ctrl-C"));
        }
        Ok(run)
    }

    /// The state, which a supervisor that was killed could not record.
    pub(crate) fn state(&self) -> GuardState {
        let is_alive = || matches!(lock(&self.folder), Ok(None));
        match self.record.state {
            GuardState::Running if self.lock.is_none() && !is_alive() => GuardState::Stopped,
            state => state,
        }
    }

    pub(crate) fn require_copy(&self) -> Result<(), CliError> {
        if self.record.has_copy {
            return Ok(());
        }
        let id = &self.record.id;
        Err(CliError::usage(format!("the copy of {id} is already removed"))
            .with_hint("start a new one with `moothall guard -- AGENT`"))
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// How the copy is mounted.
    pub(crate) fn copy(&self) -> PrivateCopy {
        match self.record.options.full_copy {
            true => PrivateCopy::Folder(self.folder("upper")),
            false => {
                PrivateCopy::Overlay { upper: self.folder("upper"), work: self.folder("work") }
            }
        }
    }

    /// Where the changes are.
    pub(crate) fn copy_folder(&self) -> CopyFolder {
        match self.record.options.full_copy {
            true => CopyFolder::Full(self.folder("upper")),
            false => CopyFolder::Upper(self.folder("upper")),
        }
    }

    /// The workspace when the agent started. An index that was never written makes every change a
    /// conflict.
    pub(crate) fn base(&self) -> BaseIndex {
        let read = fs::read(self.folder("base.json")).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    pub(crate) fn save_base(&self, base: &BaseIndex) -> Result<(), CliError> {
        write_base(&self.folder, base).map_err(cannot_write)
    }

    /// Renews the index for an agent that starts again: files that the copy did not change yet have
    /// their current version.
    pub(crate) fn continue_base(&self, store: &DraftStore) -> Result<(), CliError> {
        let cannot =
            |error: io::Error| CliError::failed("cannot read the workspace").with_source(error);
        let now =
            BaseIndex::read(&self.record.workspace, &AgentStart::default()).map_err(cannot)?;
        let touched = store.copy_paths(&self.copy_folder()).map_err(failed)?;
        self.save_base(&self.base().continued(now, &touched))
    }

    pub(crate) fn set_agent(&mut self, agent: &[OsString]) -> Result<(), CliError> {
        self.record.agent = agent.iter().map(|one| one.to_string_lossy().into_owned()).collect();
        self.save(GuardState::Running)
    }

    pub(crate) fn save(&mut self, state: GuardState) -> Result<(), CliError> {
        self.record.state = state;
        let write = || -> io::Result<()> {
            let text = serde_json::to_vec_pretty(&self.record)?;
            let staged = self.folder("guard.new");
            fs::write(&staged, text)?;
            fs::rename(staged, self.folder("guard.json"))
        };
        write().map_err(cannot_write)
    }

    /// Removes a new run whose agent never started.
    pub(crate) fn abandon(&mut self) {
        if !self.is_new {
            let _ = self.save(GuardState::Stopped);
            return;
        }
        let _ = remove_tree(&self.folder);
    }

    /// Deletes the copy and keeps the record.
    pub(crate) fn remove_copy(&mut self) -> Result<(), CliError> {
        let cannot =
            |error: io::Error| CliError::failed("cannot delete the copy").with_source(error);
        for name in ["upper", "work", "home", "tmp", "root", "check"] {
            remove_tree(&self.folder(name)).map_err(cannot)?;
        }
        let _ = fs::remove_file(self.folder("base.json"));
        self.record.has_copy = false;
        Ok(())
    }

    /// Deletes transcripts and temporary files, which contain what the agent read.
    pub(crate) fn remove_home(&self) {
        for name in ["home", "tmp"] {
            let _ = remove_tree(&self.folder(name));
            let _ = fs::create_dir(self.folder(name));
        }
    }

    pub(crate) fn discard(&mut self) -> Result<(), CliError> {
        self.remove_copy()?;
        let state = match self.record.state {
            GuardState::Judged => GuardState::Judged,
            _ => GuardState::Discarded,
        };
        self.save(state)
    }
}

fn cannot_write(error: io::Error) -> CliError {
    CliError::failed("cannot write the record of the run").with_source(error)
}

pub(crate) fn write_base(folder: &Path, base: &BaseIndex) -> io::Result<()> {
    let staged = folder.join("base.new");
    fs::write(&staged, serde_json::to_vec(base)?)?;
    fs::rename(staged, folder.join("base.json"))
}

fn runs_folder(opened: &OpenDraftStore) -> Result<PathBuf, CliError> {
    let workspace = opened.store.workspace_folder();
    let cannot = |error: io::Error| {
        CliError::usage(format!("`{}` is not a directory", workspace.display())).with_source(error)
    };
    Ok(opened.state_folder().join("guard").join(workspace_id(workspace).map_err(cannot)?))
}

fn read(folder: &Path) -> Option<GuardRun> {
    let bytes = fs::read(folder.join("guard.json")).ok()?;
    let record = serde_json::from_slice(&bytes).ok()?;
    Some(GuardRun { record, folder: folder.to_owned(), lock: None, is_new: false })
}

/// Takes the lock of a run. `None` if another process has it.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

fn remove_old_records(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    let mut ended: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for run in entries.flatten().filter_map(|entry| read(&entry.path())) {
        if !run.record.has_copy {
            ended.insert(run.record.started_at_ms, run.folder);
        }
    }
    let old = ended.len().saturating_sub(MAX_RECORDS);
    for folder in ended.into_values().take(old) {
        let _ = remove_tree(&folder);
    }
}

/// Removes a directory in which an agent may have made directories unreadable. Follows no links.
pub(crate) fn remove_tree(folder: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(folder) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.is_dir() {
        return fs::remove_file(folder);
    }
    if found.permissions().mode() & 0o700 != 0o700 {
        fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => remove_tree(&entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir(folder)
}
