//! Which tools there are, under which names, and how they are described.
//!
//! Descriptions are constants: nothing that a file or a client says ever stands in one.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{command_schemas, draft_schemas};

/// A tool, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Open a draft.
    DraftRequest,
    /// Read it.
    DraftRead,
    /// Replace its content.
    DraftWrite,
    /// Change a part of it.
    DraftEdit,
    /// Ask what the gate would say.
    DraftCheck,
    /// Hand it in.
    DraftSubmit,
    /// See what became of it.
    DraftStatus,
    /// See all of them.
    DraftList,
    /// Give it up.
    DraftDiscard,
    /// Move it onto the file as it is now.
    DraftRebase,
    /// Run a program in a sandbox.
    SandboxRun,
    /// What a company filed.
    Facts,
    /// Compare a text with what a company filed.
    Check,
}

/// Which tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSet {
    /// Those of drafts.
    Drafts,
    /// And those that run commands of this program.
    All,
}

/// Under which names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolNames {
    /// `draft_request` and so on.
    Neutral,
    /// `ollama_request_draft` and so on, where the draft pattern has a name.
    Seed,
    /// Both.
    Both,
}

/// How a tool behaves, as clients are told.
#[derive(Debug, Clone, Copy)]
enum Manner {
    Reads,
    /// Changes a draft, and doing it twice is doing it once.
    Drafts,
    /// May change a file of the workspace.
    Applies,
    Withdraws,
    Runs,
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
    const RUN: [Self; 3] = [Self::SandboxRun, Self::Facts, Self::Check];

    /// The tool of a name, if this set has it. Both names are understood, whichever are listed.
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

    /// Whether the runner does it, and not the gate.
    pub fn is_run(self) -> bool {
        Self::RUN.contains(&self)
    }

    /// Its name.
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
        }
    }

    /// Its name in the draft pattern, where it has one.
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
            Self::DraftRequest => tool::<draft_schemas::RequestArgs, draft_schemas::ContentOut>(
                self,
                "Open a draft",
                "Open a draft of one file of the workspace, or get the one that is open for this \
                 task. Returns its draft_id and the content. The file itself stays as it is until \
                 a submission is accepted. A draft that nobody touches expires after 7 days.",
                Manner::Drafts,
            ),
            Self::DraftRead => tool::<draft_schemas::DraftArgs, draft_schemas::ContentOut>(
                self,
                "Read a draft",
                "Read the content of a draft as it is now.",
                Manner::Reads,
            ),
            Self::DraftWrite => tool::<draft_schemas::WriteArgs, draft_schemas::WrittenOut>(
                self,
                "Write a draft",
                "Replace the whole content of a draft. Write the complete file: words such as \
                 `rest unchanged` are rejected. For a small change, draft_edit is safer.",
                Manner::Drafts,
            ),
            Self::DraftEdit => tool::<draft_schemas::EditArgs, draft_schemas::WrittenOut>(
                self,
                "Change a part of a draft",
                "Replace one piece of text of a draft: `old` must stand there exactly once. \
                 Instead of `old` and `new`, one of `rename_to`, `delete` and `executable` says \
                 what else shall become of the file.",
                Manner::Drafts,
            ),
            Self::DraftCheck => tool::<draft_schemas::CheckArgs, draft_schemas::CheckOut>(
                self,
                "Ask what the gate would say",
                "Show the difference and what the gate would say about it, without submitting.",
                Manner::Reads,
            ),
            Self::DraftSubmit => tool::<draft_schemas::SubmitArgs, draft_schemas::SubmitOut>(
                self,
                "Submit a draft",
                "Hand a draft in. The decision is `accepted` (it is in the workspace), `rejected` \
                 (mend what the findings name and submit again), `escalated` (a person decides: \
                 ask draft_status) or `conflict` (the file changed: draft_rebase).",
                Manner::Applies,
            ),
            Self::DraftStatus => tool::<draft_schemas::StatusArgs, draft_schemas::StatusOut>(
                self,
                "See what became of a draft",
                "Say where a draft stands, what the gate found and what a person said. With \
                 `wait_s` it answers as soon as something changes, at the latest after so many \
                 seconds.",
                Manner::Reads,
            ),
            Self::DraftList => tool::<draft_schemas::ListArgs, draft_schemas::ListOut>(
                self,
                "List drafts",
                "List your drafts that are open; with `all`, the closed ones too.",
                Manner::Reads,
            ),
            Self::DraftDiscard => tool::<draft_schemas::DraftArgs, draft_schemas::StatusOut>(
                self,
                "Give a draft up",
                "Give a draft up. The workspace stays as it is.",
                Manner::Withdraws,
            ),
            Self::DraftRebase => tool::<draft_schemas::DraftArgs, draft_schemas::WrittenOut>(
                self,
                "Move a draft onto the present file",
                "Merge a draft with the file as it is now, after a conflict. If `clean` is false, \
                 conflict markers are in it: mend them. It has to be submitted again.",
                Manner::Drafts,
            ),
            Self::SandboxRun => {
                tool::<command_schemas::SandboxRunArgs, command_schemas::SandboxRunOut>(
                    self,
                    "Run a Python program in a sandbox",
                    "Run a Python program in a sandbox of its own, without network and without the \
                 files of this machine. Nothing of it stays.",
                    Manner::Runs,
                )
            }
            Self::Facts => tool::<command_schemas::FactsArgs, command_schemas::FactsOut>(
                self,
                "What a company filed",
                "The sheet of facts of a listed company, from its filings and from no model. A \
                 cell is cited as [F0:Revenue:FY2025]. HLXI is fictional and needs no network.",
                Manner::Runs,
            ),
            Self::Check => tool::<command_schemas::CheckTextArgs, command_schemas::CheckTextOut>(
                self,
                "Check the numbers of a text",
                "Compare every number of a text with the facts that its own sentence cites.",
                Manner::Runs,
            ),
        }
    }
}

/// All tools, in an order that never changes.
pub(super) fn listed(set: ToolSet, names: ToolNames) -> Vec<Tool> {
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

/// The tool under the name of the draft pattern, whose clients say `draft_path`.
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
    manner: Manner,
) -> Tool {
    let (reads, destroys, idempotent, open) = match manner {
        Manner::Reads => (true, false, true, false),
        Manner::Drafts => (false, false, true, false),
        Manner::Applies => (false, true, false, false),
        Manner::Withdraws => (false, true, true, false),
        Manner::Runs => (true, false, true, true),
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

/// A schema that every dialect reads: one object without references or names of Rust.
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

/// Takes away what only Rust knows: names of types, widths of numbers.
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
