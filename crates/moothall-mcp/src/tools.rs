//! The tools, their names and their descriptions.
//!
//! Descriptions are constants: they never contain text from a file or a client.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{command_schemas, draft_schemas};

/// A tool, independent of the name it is listed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Open a draft.
    DraftRequest,
    /// Read a draft.
    DraftRead,
    /// Replace the content of a draft.
    DraftWrite,
    /// Change part of a draft.
    DraftEdit,
    /// Check a draft without submitting it.
    DraftCheck,
    /// Submit a draft.
    DraftSubmit,
    /// Get the status of a draft.
    DraftStatus,
    /// List drafts.
    DraftList,
    /// Discard a draft.
    DraftDiscard,
    /// Merge a draft with the current file.
    DraftRebase,
    /// Run a program in a sandbox.
    SandboxRun,
    /// Get the facts a company filed.
    Facts,
    /// Compare a text with a company's filings.
    Check,
    /// Start a consultation about a company.
    Consult,
    /// Get the progress or the memo of a consultation.
    RunStatus,
}

/// The set of offered tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSet {
    /// Only the draft tools.
    Drafts,
    /// The draft tools and the tools that run moothall commands.
    All,
}

/// The names under which tools are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolNames {
    /// `draft_request` and so on.
    Neutral,
    /// `ollama_request_draft` and so on, for tools that have a name in the draft pattern.
    Seed,
    /// Both names.
    Both,
}

/// Behavior of a tool, reported to clients as annotations.
#[derive(Debug, Clone, Copy)]
enum ToolBehavior {
    Reads,
    /// Changes a draft; idempotent.
    Drafts,
    /// May change a file of the workspace.
    Applies,
    Withdraws,
    Runs,
    /// Starts a run that spends money.
    Starts,
}

impl ToolName {
    const DRAFTS: [Self; 10] = [
        Self::DraftRequest,
        Self::DraftRead,
        Self::DraftWrite,
        Self::DraftEdit,
        Self::DraftCheck,
        Self::DraftSubmit,
        Self::DraftStatus,
        Self::DraftList,
        Self::DraftDiscard,
        Self::DraftRebase,
    ];
    const RUN: [Self; 5] =
        [Self::SandboxRun, Self::Facts, Self::Check, Self::Consult, Self::RunStatus];

    /// Finds a tool of this set by name. Both names are accepted, whichever are listed.
    pub fn find(name: &str, set: ToolSet) -> Option<Self> {
        Self::of(set).find(|tool| tool.name() == name || tool.seed_name() == Some(name))
    }

    fn of(set: ToolSet) -> impl Iterator<Item = Self> {
        let run = match set {
            ToolSet::Drafts => &[][..],
            ToolSet::All => &Self::RUN[..],
        };
        Self::DRAFTS.iter().chain(run).copied()
    }

    /// Reports whether the runner executes the tool, rather than the gate.
    pub fn is_run(self) -> bool {
        Self::RUN.contains(&self)
    }

    /// Returns the name of the tool.
    pub fn name(self) -> &'static str {
        match self {
            Self::DraftRequest => "draft_request",
            Self::DraftRead => "draft_read",
            Self::DraftWrite => "draft_write",
            Self::DraftEdit => "draft_edit",
            Self::DraftCheck => "draft_check",
            Self::DraftSubmit => "draft_submit",
            Self::DraftStatus => "draft_status",
            Self::DraftList => "draft_list",
            Self::DraftDiscard => "draft_discard",
            Self::DraftRebase => "draft_rebase",
            Self::SandboxRun => "sandbox_run",
            Self::Facts => "facts",
            Self::Check => "check",
            Self::Consult => "consult",
            Self::RunStatus => "run_status",
        }
    }

    /// Returns the name in the draft pattern, if there is one.
    fn seed_name(self) -> Option<&'static str> {
        match self {
            Self::DraftRequest => Some("ollama_request_draft"),
            Self::DraftRead => Some("ollama_read_draft"),
            Self::DraftWrite => Some("ollama_write_draft"),
            Self::DraftSubmit => Some("ollama_submit_draft"),
            _ => None,
        }
    }

    fn tool(self) -> Tool {
        match self {
            Self::DraftRequest => {
                tool::<draft_schemas::DraftRequestToolArgs, draft_schemas::DraftContentOut>(
                    self,
                    "Open a draft",
                    "Open a draft of one file of the workspace, or return the draft already open for this \
                 task. Returns its draft_id and the content. The file itself does not change until \
                 a submission is accepted. An unused draft expires after 7 days.",
                    ToolBehavior::Drafts,
                )
            }
            Self::DraftRead => {
                tool::<draft_schemas::DraftIdToolArgs, draft_schemas::DraftContentOut>(
                    self,
                    "Read a draft",
                    "Read the current content of a draft.",
                    ToolBehavior::Reads,
                )
            }
            Self::DraftWrite => {
                tool::<draft_schemas::DraftWriteToolArgs, draft_schemas::DraftWriteOut>(
                    self,
                    "Write a draft",
                    "Replace the whole content of a draft. Write the complete file: placeholders such as \
                 `rest unchanged` are rejected. For a small change, draft_edit is safer.",
                    ToolBehavior::Drafts,
                )
            }
            Self::DraftEdit => {
                tool::<draft_schemas::DraftEditToolArgs, draft_schemas::DraftWriteOut>(
                    self,
                    "Change part of a draft",
                    "Replace one piece of text in a draft: `old` must occur exactly once. \
                 Instead of `old` and `new`, pass one of `rename_to`, `delete` and `executable` \
                 to rename the file, delete it or set its executable bit.",
                    ToolBehavior::Drafts,
                )
            }
            Self::DraftCheck => {
                tool::<draft_schemas::DraftCheckToolArgs, draft_schemas::DraftCheckOut>(
                    self,
                    "Check a draft",
                    "Show the diff and the gate's decision without submitting the draft.",
                    ToolBehavior::Reads,
                )
            }
            Self::DraftSubmit => {
                tool::<draft_schemas::DraftSubmitToolArgs, draft_schemas::DraftSubmitOut>(
                    self,
                    "Submit a draft",
                    "Submit a draft. The decision is `accepted` (the change is in the workspace), `rejected` \
                 (fix the findings and submit again), `escalated` (a person decides: \
                 call draft_status) or `conflict` (the file changed: call draft_rebase).",
                    ToolBehavior::Applies,
                )
            }
            Self::DraftStatus => {
                tool::<draft_schemas::DraftStatusToolArgs, draft_schemas::DraftStatusOut>(
                    self,
                    "Get the status of a draft",
                    "Get the state of a draft, the gate's findings and the review. With \
                 `wait_s`, returns as soon as something changes, or after this many \
                 seconds.",
                    ToolBehavior::Reads,
                )
            }
            Self::DraftList => {
                tool::<draft_schemas::DraftListToolArgs, draft_schemas::DraftListOut>(
                    self,
                    "List drafts",
                    "List your open drafts; with `all`, closed ones too.",
                    ToolBehavior::Reads,
                )
            }
            Self::DraftDiscard => {
                tool::<draft_schemas::DraftIdToolArgs, draft_schemas::DraftStatusOut>(
                    self,
                    "Discard a draft",
                    "Discard a draft. The workspace does not change.",
                    ToolBehavior::Withdraws,
                )
            }
            Self::DraftRebase => {
                tool::<draft_schemas::DraftIdToolArgs, draft_schemas::DraftWriteOut>(
                    self,
                    "Merge a draft with the current file",
                    "Merge a draft with the current file after a conflict. If `clean` is false, the draft \
                 contains conflict markers: resolve them. Then submit the draft again.",
                    ToolBehavior::Drafts,
                )
            }
            Self::SandboxRun => {
                tool::<command_schemas::SandboxRunToolArgs, command_schemas::SandboxRunOut>(
                    self,
                    "Run a Python program in a sandbox",
                    "Run a Python program in a new sandbox, without network access and without access to the \
                 files of this machine. The sandbox is deleted afterwards.",
                    ToolBehavior::Runs,
                )
            }
            Self::Facts => tool::<command_schemas::FactsToolArgs, command_schemas::FactsOut>(
                self,
                "Get the facts a company filed",
                "Get the fact sheet of a listed company, taken from its filings and not from a model. \
                 Cite a cell as [F0:Revenue:FY2025]. HLXI is fictional and needs no network.",
                ToolBehavior::Runs,
            ),
            Self::Check => {
                tool::<command_schemas::CheckTextToolArgs, command_schemas::CheckTextOut>(
                    self,
                    "Check the numbers in a text",
                    "Compare every number in a text with the facts that its sentence cites.",
                    ToolBehavior::Runs,
                )
            }
            Self::Consult => {
                tool::<command_schemas::ConsultToolArgs, command_schemas::RunStatusOut>(
                    self,
                    "Start a consultation",
                    "Let a committee of models propose strategic moves for a listed company and debate \
                 them, let a blind panel judge them, and write a memo. A full consultation takes from minutes to an hour \
                 and may cost money, within the limit the user set. Returns a run_id without waiting; with \
                 `wait_s`, waits for the end. Call run_status for the progress and the memo.",
                    ToolBehavior::Starts,
                )
            }
            Self::RunStatus => {
                tool::<command_schemas::RunStatusToolArgs, command_schemas::RunStatusOut>(
                    self,
                    "Get the status of a consultation",
                    "Get the progress of a consultation that you started, and its memo when it is \
                 finished. With `wait_s`, returns when it ends, or after this many seconds.",
                    ToolBehavior::Reads,
                )
            }
        }
    }
}

/// Returns all tools in a stable order.
pub(crate) fn listed(set: ToolSet, names: ToolNames) -> Vec<Tool> {
    let mut all = Vec::new();
    for tool in ToolName::of(set) {
        let seed = tool.seed_name().filter(|_| names != ToolNames::Neutral);
        if seed.is_none() || names == ToolNames::Both {
            all.push(tool.tool());
        }
        if let Some(seed) = seed {
            all.push(as_seed(tool.tool(), seed));
        }
    }
    all
}

/// Renames a tool to its draft pattern name. Clients of that pattern send `draft_path`.
fn as_seed(mut tool: Tool, name: &'static str) -> Tool {
    tool.name = name.into();
    let mut schema = (*tool.input_schema).clone();
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        let renamed = std::mem::take(fields).into_iter().map(|(key, value)| match key.as_str() {
            "draft_id" => ("draft_path".to_owned(), value),
            _ => (key, value),
        });
        *fields = renamed.collect();
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for key in required.iter_mut().filter(|key| *key == "draft_id") {
            *key = "draft_path".into();
        }
    }
    tool.input_schema = Arc::new(schema);
    tool
}

fn tool<I: JsonSchema, O: JsonSchema>(
    name: ToolName,
    title: &'static str,
    description: &'static str,
    manner: ToolBehavior,
) -> Tool {
    let (reads, destroys, idempotent, open) = match manner {
        ToolBehavior::Reads => (true, false, true, false),
        ToolBehavior::Drafts => (false, false, true, false),
        ToolBehavior::Applies => (false, true, false, false),
        ToolBehavior::Withdraws => (false, true, true, false),
        ToolBehavior::Runs => (true, false, true, true),
        ToolBehavior::Starts => (false, false, false, true),
    };
    let annotations = ToolAnnotations::with_title(title)
        .read_only(reads)
        .destructive(destroys)
        .idempotent(idempotent)
        .open_world(open);
    Tool::new(name.name(), description, schema_of::<I>())
        .with_title(title)
        .with_raw_output_schema(schema_of::<O>())
        .with_annotations(annotations)
}

/// Generates a schema that every client can read: one object without references or Rust type names.
fn schema_of<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    plain(&mut schema);
    match schema {
        Value::Object(fields) => Arc::new(fields),
        _ => Arc::default(),
    }
}

/// Removes Rust-specific details: type names and integer widths.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let of_rust = |value: &Value| value.as_str().is_some_and(|it| it.starts_with("uint"));
            if fields.get("format").is_some_and(of_rust) {
                fields.remove("format");
            }
            if fields.get("title").is_some_and(Value::is_string) {
                fields.remove("title");
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(all) => all.iter_mut().for_each(plain),
        _ => {}
    }
}
