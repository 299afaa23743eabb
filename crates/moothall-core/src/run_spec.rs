//! The typed request behind every run. Commands, the HTTP API and workers exchange it, and the
//! store keeps it.
//!
//! API keys are never part of it; each process reads its own.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::MicroUsd;
use crate::consult::{Consult, ConsultInput};
use crate::edit::{EditInput, EditWorkflow};
use crate::model::ModelName;
use crate::program::{ProgramInput, ProgramRun};
use crate::sandbox::FileRef;

/// The version of the stored form. A form without a version predates versioning and is version 1.
const VERSION: u64 = 1;
const VERSION_KEY: &str = "version";

/// The kinds of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunKind {
    /// A committee debates strategic moves for a company.
    Consult,
    /// A model writes a program for a task.
    Program,
    /// A model edits files through drafts.
    Edit,
}

impl RunKind {
    /// The name in the store, the API and receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consult => Consult::NAME,
            Self::Program => ProgramRun::NAME,
            Self::Edit => EditWorkflow::NAME,
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Consult, Self::Program, Self::Edit].into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a run does and how: enough to start it, resume it in another process, and verify it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "few instances exist per process")]
pub enum RunSpec {
    /// A consultation.
    Consult(ConsultSpec),
    /// A program for a task.
    Program(ProgramSpec),
    /// Edits in a workspace.
    Edit(EditSpec),
}

/// A consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsultSpec {
    /// The input of the workflow.
    #[serde(rename = "consult")]
    pub input: ConsultInput,
    /// How it runs.
    pub settings: RunSettings,
}

/// A program for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// The input of the workflow.
    #[serde(rename = "reflexion")]
    pub input: ProgramInput,
    /// How it runs.
    pub settings: RunSettings,
}

/// Edits in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EditForm", into = "EditForm")]
pub struct EditSpec {
    /// The input of the workflow.
    pub input: EditInput,
    /// The workspace whose files it edits.
    pub workspace: PathBuf,
    /// The worker that owns the drafts.
    pub worker: String,
    /// How it runs.
    pub settings: RunSettings,
}

/// Settings of a run besides the input of its workflow. Paths are absolute, because a run may be
/// resumed in another directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    /// The URL of the Restate cluster whose workers drive the run; without it a local process
    /// drives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restate: Option<String>,
    /// The sandbox engine; defaults to the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationChoice>,
    /// Allows `auto` to choose an engine that shares the host's kernel.
    #[serde(default)]
    pub allow_shared_kernel: bool,
    /// The number of debates that run in parallel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_moves: Option<u32>,
    /// The budget in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro_usd: Option<MicroUsd>,
    /// The budget in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// The URL of the model provider, if not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// A directory of recorded filings to use instead of the SEC's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline: Option<PathBuf>,
    /// The directory where model replies are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// The directory from which model replies are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<PathBuf>,
    /// The file the memo is written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<PathBuf>,
    /// The directory all documents of a consultation are written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<PathBuf>,
    /// The directory of the user's documents.
    #[serde(default, rename = "files", skip_serializing_if = "Option::is_none")]
    pub documents: Option<PathBuf>,
    /// Documents that were sent with the request, by name. Their content is stored with the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uploads: BTreeMap<String, FileRef>,
    /// The source of headlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<NewsChoice>,
    /// The directory a program's output files are written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// The span that started the run, as a W3C `traceparent`. Every process that drives the run
    /// continues this trace; without it the trace id is derived from the run id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
}

impl RunSettings {
    /// The uploaded files that the run reads: documents and news.
    pub fn uploaded_files(&self) -> impl Iterator<Item = &FileRef> {
        let news = match &self.news {
            Some(NewsChoice::Upload { file, .. }) => Some(file),
            Some(NewsChoice::Gdelt | NewsChoice::Rss(_) | NewsChoice::File(_)) | None => None,
        };
        self.uploads.values().chain(news)
    }
}

/// The sandbox engine of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationChoice {
    /// The strongest engine that works on this host.
    Auto,
    /// A QEMU microVM.
    Microvm,
    /// gVisor.
    Runsc,
    /// A container that shares the host's kernel, run by runc.
    Runc,
    /// A container that shares the host's kernel, run by crun.
    Crun,
    /// No sandbox. Only allowed for debates, which execute no code.
    None,
}

impl IsolationChoice {
    /// The name in flags, settings and stored forms.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Microvm => "microvm",
            Self::Runsc => "runsc",
            Self::Runc => "runc",
            Self::Crun => "crun",
            Self::None => "none",
        }
    }
}

/// The source of headlines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewsChoice {
    /// GDELT.
    Gdelt,
    /// A feed, by its URL.
    Rss(String),
    /// A file in either format.
    File(PathBuf),
    /// A file in either format that was sent with the request. Its content is stored with the run.
    Upload {
        /// Its name.
        name: String,
        /// Its content.
        file: FileRef,
    },
}

/// The stored form of an [`EditSpec`], which has always been flat.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditForm {
    edit: EditInput,
    workspace: PathBuf,
    worker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    record: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_parent: Option<String>,
}

impl From<EditForm> for EditSpec {
    fn from(form: EditForm) -> Self {
        let settings = RunSettings {
            budget_micro_usd: form.budget_micro_usd,
            budget_tokens: form.budget_tokens,
            base_url: form.base_url,
            record: form.record,
            replay: form.replay,
            trace_parent: form.trace_parent,
            ..RunSettings::default()
        };
        Self { input: form.edit, workspace: form.workspace, worker: form.worker, settings }
    }
}

impl From<EditSpec> for EditForm {
    fn from(spec: EditSpec) -> Self {
        let EditSpec { input: edit, workspace, worker, settings } = spec;
        Self {
            edit,
            workspace,
            worker,
            budget_micro_usd: settings.budget_micro_usd,
            budget_tokens: settings.budget_tokens,
            base_url: settings.base_url,
            record: settings.record,
            replay: settings.replay,
            trace_parent: settings.trace_parent,
        }
    }
}

impl RunSpec {
    /// The kind of run.
    pub fn kind(&self) -> RunKind {
        match self {
            Self::Consult(_) => RunKind::Consult,
            Self::Program(_) => RunKind::Program,
            Self::Edit(_) => RunKind::Edit,
        }
    }

    /// The default model, used by roles without a model of their own.
    pub fn model(&self) -> &ModelName {
        match self {
            Self::Consult(spec) => spec.input.models.default.first(),
            Self::Program(spec) => spec.input.model.first(),
            Self::Edit(spec) => spec.input.model.first(),
        }
    }

    /// The run's settings.
    pub fn settings(&self) -> &RunSettings {
        match self {
            Self::Consult(spec) => &spec.settings,
            Self::Program(spec) => &spec.settings,
            Self::Edit(spec) => &spec.settings,
        }
    }

    /// The run's settings, mutable.
    pub fn settings_mut(&mut self) -> &mut RunSettings {
        match self {
            Self::Consult(spec) => &mut spec.settings,
            Self::Program(spec) => &mut spec.settings,
            Self::Edit(spec) => &mut spec.settings,
        }
    }

    fn to_json(&self) -> Result<Value, serde_json::Error> {
        let mut form = match self {
            Self::Consult(spec) => serde_json::to_value(spec),
            Self::Program(spec) => serde_json::to_value(spec),
            Self::Edit(spec) => serde_json::to_value(spec),
        }?;
        if let Value::Object(form) = &mut form {
            form.insert(VERSION_KEY.to_owned(), VERSION.into());
        }
        Ok(form)
    }

    fn from_json(kind: RunKind, form: &Value) -> Result<Self, String> {
        let mut form = form.clone();
        let version = form.as_object_mut().and_then(|form| form.remove(VERSION_KEY));
        match version {
            None => {}
            Some(version) if version == VERSION => {}
            Some(version) => {
                return Err(format!(
                    "unsupported format {version} (this version of moothall reads {VERSION})"
                ));
            }
        }
        let read = match kind {
            RunKind::Consult => serde_json::from_value(form).map(Self::Consult),
            RunKind::Program => serde_json::from_value(form).map(Self::Program),
            RunKind::Edit => serde_json::from_value(form).map(Self::Edit),
        };
        read.map_err(|error| error.to_string())
    }
}

/// A [`RunSpec`] as stored. Runs started by another version may be unreadable, but can still be
/// listed and deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredSpec {
    /// This version can read it.
    Readable(Box<RunSpec>),
    /// This version cannot.
    Unreadable(UnreadableSpec),
}

/// A stored request that this version cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the stored request of this `{workflow}` run: {reason}")]
pub struct UnreadableSpec {
    /// The stored name of the workflow.
    pub workflow: String,
    /// The stored form.
    pub form: Value,
    /// The reason.
    pub reason: String,
}

impl StoredSpec {
    /// Reads the two columns of the store.
    pub fn from_columns(workflow: &str, form: Value) -> Self {
        let read = RunKind::parse(workflow)
            .ok_or_else(|| "unknown workflow".to_owned())
            .and_then(|kind| RunSpec::from_json(kind, &form));
        match read {
            Ok(spec) => Self::Readable(Box::new(spec)),
            Err(reason) => {
                Self::Unreadable(UnreadableSpec { workflow: workflow.to_owned(), form, reason })
            }
        }
    }

    /// The name of the workflow.
    pub fn workflow(&self) -> &str {
        match self {
            Self::Readable(spec) => spec.kind().as_str(),
            Self::Unreadable(unreadable) => &unreadable.workflow,
        }
    }

    /// The spec, if this version can read it.
    pub fn read(&self) -> Result<&RunSpec, &UnreadableSpec> {
        match self {
            Self::Readable(spec) => Ok(spec),
            Self::Unreadable(unreadable) => Err(unreadable),
        }
    }

    /// The consultation, if it is one and is readable.
    pub fn consult(&self) -> Option<&ConsultSpec> {
        match self {
            Self::Readable(spec) => match &**spec {
                RunSpec::Consult(spec) => Some(spec),
                RunSpec::Program(_) | RunSpec::Edit(_) => None,
            },
            Self::Unreadable(_) => None,
        }
    }

    /// Whether it is of this kind, even if unreadable.
    pub fn is_kind(&self, kind: RunKind) -> bool {
        self.workflow() == kind.as_str()
    }
}

/// Writes the stored form.
impl Serialize for StoredSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Readable(spec) => {
                spec.to_json().map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            Self::Unreadable(unreadable) => unreadable.form.serialize(serializer),
        }
    }
}

impl From<RunSpec> for StoredSpec {
    fn from(spec: RunSpec) -> Self {
        Self::Readable(Box::new(spec))
    }
}

#[cfg(test)]
#[path = "run_spec_tests.rs"]
mod tests;
