//! The gate process: executes draft tool calls on the draft store.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    ClientInfo, Draft, DraftId, DraftRefusal, DraftState, Principal, PrincipalAccount,
    ReviewDecision,
};
use moothall_core::gate::{ElicitationMode, GateAction, GateRule};
use moothall_core::text;
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftError, DraftStore, FileFault, FileRequirement, SubmissionResult,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::draft_schemas::{
    DraftCheckOut, DraftCheckToolArgs, DraftContentOut, DraftEditToolArgs, DraftIdToolArgs,
    DraftListOut, DraftListToolArgs, DraftRequestToolArgs, DraftStatusOut, DraftStatusToolArgs,
    DraftSubmitOut, DraftSubmitToolArgs, DraftSummaryOut, DraftWriteOut, DraftWriteToolArgs,
    MAX_WAIT_S, decision, next,
};
use crate::ipc::{ElicitationPrompt, IpcRequest, IpcResponse};
use crate::tools::ToolName;

/// Maximum length of a recorded client name or version.
const MAX_CLIENT_CHARS: usize = 64;
/// Maximum length of a diff in an elicitation form.
const MAX_FORM_DIFF_CHARS: usize = 4_000;
/// Placeholder for the draft id in the review URL.
const DRAFT: &str = "{draft}";

/// Identity and settings of the gate. They never come from a caller.
#[derive(Debug)]
pub struct DraftGateSettings {
    /// Owner of the drafts.
    pub worker: Principal,
    /// Name of this machine's user, on whose behalf a client may answer.
    pub user: String,
    /// User id of that user.
    pub uid: u32,
    /// URL of the review page, with `{draft}` for the draft id.
    pub review_url: Option<String>,
}

/// Handles the requests of one agent.
#[derive(Debug)]
pub struct DraftGate {
    store: DraftStore,
    terms: DraftGateSettings,
}

impl DraftGate {
    /// Creates a gate for a draft store.
    pub fn new(store: DraftStore, terms: DraftGateSettings) -> Self {
        Self { store, terms }
    }

    /// Aborts checks in progress without submitting their drafts, because the client is gone.
    pub fn leave(&self) {
        self.store.stop();
    }

    /// Handles one request.
    pub fn answer(&self, request: IpcRequest) -> IpcResponse {
        let answered = match request {
            IpcRequest::Call { tool, arguments, client } => {
                self.call(tool, arguments, &self.worker(client))
            }
            IpcRequest::Diff { draft } => self.diff(&draft),
            IpcRequest::Drafts => self.list(&self.worker(None), false),
            IpcRequest::Outcome { draft } => id_of(&draft).and_then(|id| self.outcome(id)),
            IpcRequest::Decide { draft, seal, approve, reason, client } => {
                self.decide(&draft, &seal, approve, &reason, client)
            }
        };
        answered.unwrap_or_else(refused)
    }

    fn worker(&self, client: Option<ClientInfo>) -> DraftCaller {
        DraftCaller { principal: self.terms.worker.clone(), client: client.map(short) }
    }

    fn call(
        &self,
        tool: ToolName,
        arguments: Map<String, Value>,
        worker: &DraftCaller,
    ) -> Result<IpcResponse, DraftError> {
        let store = &self.store;
        match tool {
            ToolName::DraftRequest => {
                let DraftRequestToolArgs { source_path, task_id, create } = read(arguments)?;
                let existing = if create { FileRequirement::MayNot } else { FileRequirement::Must };
                // Also closes expired drafts.
                store.tidy()?;
                let (draft, text) = store.request(worker, &task_id, &source_path, existing)?;
                Ok(IpcResponse::done(&DraftContentOut::of(&draft, text)))
            }
            ToolName::DraftRead => {
                let DraftIdToolArgs { draft_id } = read(arguments)?;
                let (draft, text) = store.read(worker, id_of(&draft_id)?)?;
                Ok(IpcResponse::done(&DraftContentOut::of(&draft, text)))
            }
            ToolName::DraftWrite => {
                let DraftWriteToolArgs { draft_id, content, if_match } = read(arguments)?;
                self.write(worker, &draft_id, DraftEdit::Content(content), if_match)
            }
            ToolName::DraftEdit => {
                let args: DraftEditToolArgs = read(arguments)?;
                let (id, if_match) = (args.draft_id.clone(), args.if_match.clone());
                self.write(worker, &id, edit_of(args)?, if_match)
            }
            ToolName::DraftCheck => {
                let DraftCheckToolArgs { draft_id, together_with } = read(arguments)?;
                let judged = store.check(worker, &ids_of(&draft_id, &together_with)?)?;
                Ok(IpcResponse::done(&DraftCheckOut::of(&judged)))
            }
            ToolName::DraftSubmit => self.submit(worker, read(arguments)?),
            ToolName::DraftStatus => {
                let DraftStatusToolArgs { draft_id, wait_s } = read(arguments)?;
                if wait_s > MAX_WAIT_S {
                    let words = format!("`wait_s` must be at most {MAX_WAIT_S}");
                    return Err(DraftError::Input(words));
                }
                let draft = store.status(worker, id_of(&draft_id)?)?;
                Ok(IpcResponse::done(&DraftStatusOut::of(&draft)))
            }
            ToolName::DraftList => {
                let DraftListToolArgs { all } = read(arguments)?;
                self.list(worker, all)
            }
            ToolName::DraftDiscard => {
                let DraftIdToolArgs { draft_id } = read(arguments)?;
                let draft = store.discard(worker, id_of(&draft_id)?)?;
                Ok(IpcResponse::done(&DraftStatusOut::of(&draft)))
            }
            ToolName::DraftRebase => {
                let DraftIdToolArgs { draft_id } = read(arguments)?;
                let (draft, clean) = store.rebase(worker, id_of(&draft_id)?)?;
                let (_, text) = store.read(worker, draft.id)?;
                Ok(IpcResponse::done(&DraftWriteOut::of(&draft, &text, Some(clean))))
            }
            ToolName::SandboxRun
            | ToolName::Facts
            | ToolName::Check
            | ToolName::Consult
            | ToolName::RunStatus => Ok(IpcResponse::Broken {
                words: "the gate process does not run programs".to_owned(),
            }),
        }
    }

    fn write(
        &self,
        worker: &DraftCaller,
        id: &str,
        edit: DraftEdit,
        if_match: Option<String>,
    ) -> Result<IpcResponse, DraftError> {
        let if_match = if_match.as_deref().map(hash_of).transpose()?;
        let draft = self.store.write(worker, id_of(id)?, edit, if_match)?;
        let (_, text) = self.store.read(worker, draft.id)?;
        Ok(IpcResponse::done(&DraftWriteOut::of(&draft, &text, None)))
    }

    fn list(&self, worker: &DraftCaller, all: bool) -> Result<IpcResponse, DraftError> {
        let drafts = self.store.list(worker)?;
        let shown = drafts.iter().filter(|one| all || one.state.is_open());
        Ok(IpcResponse::done(&DraftListOut { drafts: shown.map(DraftSummaryOut::of).collect() }))
    }

    fn diff(&self, draft: &str) -> Result<IpcResponse, DraftError> {
        Ok(IpcResponse::done(&self.store.diff(&self.worker(None), id_of(draft)?)?))
    }

    fn submit(
        &self,
        worker: &DraftCaller,
        args: DraftSubmitToolArgs,
    ) -> Result<IpcResponse, DraftError> {
        let ids = ids_of(&args.draft_id, &args.together_with)?;
        let first = self.store.status(worker, ids[0])?;
        // Check first: an agent that is wrong about the file is wrong about the change.
        let differs = |what: &str, said: &Option<String>, is: &str| match said {
            Some(said) if said != is => {
                Err(DraftError::Input(format!("wrong {what}: the draft has `{is}`")))
            }
            _ => Ok(()),
        };
        differs("original_path", &args.original_path, first.path.as_str())?;
        differs("task_id", &args.task_id, first.task.as_str())?;
        let submitted = self.store.submit(worker, &ids, &args.change_summary)?;
        let asking =
            submitted.drafts.first().and_then(|first| self.elicitation_prompt(first, &submitted));
        Ok(match answer_of(&submitted) {
            IpcResponse::Done { result, .. } => IpcResponse::Done { result, asking },
            other => other,
        })
    }

    /// Returns the current result of a submission.
    fn outcome(&self, id: DraftId) -> Result<IpcResponse, DraftError> {
        Ok(answer_of(&self.store.outcome(&self.worker(None), id)?))
    }

    /// Returns what to ask the person at the client about an escalated submission. Credentials and
    /// guarded paths never get a form, because it is unknown who answers it.
    fn elicitation_prompt(
        &self,
        draft: &Draft,
        submitted: &SubmissionResult,
    ) -> Option<ElicitationPrompt> {
        if draft.state != DraftState::Escalated {
            return None;
        }
        let verdict = &submitted.judged.verdict;
        let why: Vec<String> = verdict
            .findings
            .iter()
            .filter(|one| one.action >= GateAction::Escalate)
            .map(|one| format!("{}: {}", one.rule.name(), one.message))
            .collect();
        let stats = &verdict.stats;
        let message = format!(
            "{} (+{} -{}) needs your decision. {}",
            draft.path,
            stats.added,
            stats.removed,
            why.join("; ")
        );
        let diff = &submitted.judged.diff;
        // A person who has seen only part of the diff cannot approve all of it.
        let guarded = diff.chars().count() > MAX_FORM_DIFF_CHARS
            || verdict.findings.iter().any(|one| is_guarded(one.rule));
        match (self.store.policy().elicitation, &self.terms.review_url) {
            (ElicitationMode::Form, _) if !guarded => Some(ElicitationPrompt::Form {
                draft: draft.id.to_string(),
                seal: seal_of(draft),
                message: format!("{message}\n\n{}", text::escaped_lines(diff)),
            }),
            (ElicitationMode::Url | ElicitationMode::Form, Some(url)) => {
                Some(ElicitationPrompt::Url {
                    draft: draft.id.to_string(),
                    url: url.replace(DRAFT, &draft.id.to_string()),
                    message,
                })
            }
            _ => None,
        }
    }

    /// Applies a decision from a form. The frontend is not trusted: the policy must allow forms,
    /// and nothing in the draft may be guarded.
    fn decide(
        &self,
        draft: &str,
        seal: &str,
        approve: bool,
        reason: &str,
        client: Option<ClientInfo>,
    ) -> Result<IpcResponse, DraftError> {
        let no = |words: &str| Err(DraftError::Input(words.to_owned()));
        if self.store.policy().elicitation != ElicitationMode::Form {
            return no("the policy does not accept decisions from a client");
        }
        let (id, seal) = (id_of(draft)?, hash_of(seal)?);
        let worker = self.worker(None);
        let draft = self.store.status(&worker, id)?;
        let (submission_ids, findings) =
            draft.submission.map(|one| (one.drafts, one.findings)).unwrap_or_default();
        let mut chars = 0;
        for id in submission_ids {
            chars += self.store.diff(&worker, id)?.chars().count();
        }
        if chars > MAX_FORM_DIFF_CHARS || findings.iter().any(|one| is_guarded(one.rule)) {
            return no("the policy does not accept a decision from a client about this change");
        }
        // A separate name and account, because it is unknown who answered: a list of approvers must
        // trust this client's user explicitly.
        let principal = Principal::human(format!("elicitation/{}", self.terms.user))
            .with_account(PrincipalAccount::Elicitation(self.terms.uid));
        let caller = DraftCaller { principal, client: client.map(short) };
        let say = if approve { ReviewDecision::Approve } else { ReviewDecision::Reject };
        self.store.review(&caller, id, seal, say, reason)?;
        self.outcome(id)
    }
}

fn answer_of(submitted: &SubmissionResult) -> IpcResponse {
    let SubmissionResult { drafts, judged } = submitted;
    let Some(first) = drafts.first() else {
        return IpcResponse::Broken { words: "nothing was submitted".to_owned() };
    };
    IpcResponse::done(&DraftSubmitOut {
        submitted: true,
        message_id: seal_of(first),
        decision: decision(first.state, judged.verdict.action).to_owned(),
        next: next(first).to_owned(),
        judged: DraftCheckOut::of(judged),
        drafts: drafts.iter().map(DraftSummaryOut::of).collect(),
    })
}

fn is_guarded(rule: GateRule) -> bool {
    matches!(
        rule,
        // An incomplete check means that the content is unknown.
        GateRule::GateError
            | GateRule::SecretSpecific
            | GateRule::SecretGeneric
            | GateRule::PathProtected
            | GateRule::PathDenied
    )
}

fn short(client: ClientInfo) -> ClientInfo {
    let cut = |text: String| -> String {
        text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(MAX_CLIENT_CHARS).collect()
    };
    ClientInfo { name: cut(client.name), version: cut(client.version) }
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, DraftError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| DraftError::Input(format!("invalid arguments: {error}")))
}

/// Parses a draft id. A malformed id gives the same error as an unknown one.
fn id_of(text: &str) -> Result<DraftId, DraftError> {
    DraftId::parse(text).ok_or_else(|| DraftRefusal::Unknown.into())
}

fn ids_of(first: &str, others: &[String]) -> Result<Vec<DraftId>, DraftError> {
    std::iter::once(first).chain(others.iter().map(String::as_str)).map(id_of).collect()
}

fn hash_of(text: &str) -> Result<Sha256Hex, DraftError> {
    Sha256Hex::parse(text).ok_or_else(|| {
        DraftError::Input("invalid hash: expected 64 lower-case hexadecimal digits".to_owned())
    })
}

fn seal_of(draft: &Draft) -> String {
    draft.submission.as_ref().map_or_else(String::new, |one| one.seal.to_string())
}

fn edit_of(args: DraftEditToolArgs) -> Result<DraftEdit, DraftError> {
    let DraftEditToolArgs { old, new, rename_to, delete, executable, .. } = args;
    match (old, new, rename_to, delete, executable) {
        (Some(old), Some(new), None, false, None) => Ok(DraftEdit::Replace { old, new }),
        (None, None, Some(to), false, None) => Ok(DraftEdit::Rename(to)),
        (None, None, None, true, None) => Ok(DraftEdit::Delete),
        (None, None, None, false, Some(executable)) => Ok(DraftEdit::Executable(executable)),
        _ => Err(DraftError::Input(
            "pass `old` and `new`, or one of `rename_to`, `delete` and `executable`".to_owned(),
        )),
    }
}

fn refused(error: DraftError) -> IpcResponse {
    if !error.is_refusal() && !matches!(error, DraftError::Busy) {
        return IpcResponse::Broken { words: error.to_string() };
    }
    let hint = match &error {
        DraftError::Refused(DraftRefusal::Unknown) => {
            Some("list your drafts with draft_list, or open one with draft_request")
        }
        DraftError::Refused(DraftRefusal::State { .. }) => {
            Some("call draft_status for its state and the next step")
        }
        DraftError::Refused(DraftRefusal::Stale { .. }) => {
            Some("read the draft again with draft_read and change its current content")
        }
        DraftError::Refused(DraftRefusal::Limit { .. }) => {
            Some("submit or discard open drafts; list them with draft_list")
        }
        DraftError::Refused(DraftRefusal::ContentRemoved) => {
            Some("write the whole content again with draft_write, without the credential")
        }
        DraftError::TooManyChecks { .. } => {
            Some("checking unchanged content again does not count; otherwise try again later")
        }
        DraftError::Busy => Some("nothing was changed: try again in a few seconds"),
        DraftError::Path(_) => Some("use a path inside the workspace, such as src/app.py"),
        DraftError::File { fault: FileFault::Missing, .. } => {
            Some("pass `create: true` to draft a new file")
        }
        DraftError::OldText(_) => Some("copy the exact text, including spaces, from draft_read"),
        _ => None,
    };
    IpcResponse::Refused { words: error.to_string(), hint: hint.map(str::to_owned) }
}

#[cfg(test)]
#[path = "draft_tools_tests.rs"]
mod tests;
