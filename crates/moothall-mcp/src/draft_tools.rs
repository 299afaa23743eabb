//! The gate's side: tools that are called, done by the store of drafts.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Account, Client, Draft, DraftId, Principal, Refusal, Say, State};
use moothall_core::gate::{Action, Elicitation, Rule};
use moothall_core::text;
use moothall_workspace::{Caller, DraftError, DraftStore, Edit, Existing, FileFault, Submitted};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::draft_schemas::{
    BriefOut, CheckArgs, CheckOut, ContentOut, DraftArgs, EditArgs, ListArgs, ListOut, MAX_WAIT_S,
    RequestArgs, StatusArgs, StatusOut, SubmitArgs, SubmitOut, WriteArgs, WrittenOut, decision,
    next,
};
use crate::ipc::{Answer, Ask, Asking};
use crate::tools::ToolName;

/// The longest name or version of a client that is written down.
const MAX_CLIENT_CHARS: usize = 64;
/// The most of a difference that a form shows.
const MAX_FORM_DIFF_CHARS: usize = 4_000;
/// Where the handle stands in the address of a review page.
const DRAFT: &str = "{draft}";

/// What the gate knows by itself, and takes from no caller.
#[derive(Debug)]
pub struct Terms {
    /// Whose drafts these are.
    pub worker: Principal,
    /// The user of this machine, for whom a client may speak.
    pub user: String,
    /// The id of that user.
    pub uid: u32,
    /// Where a person reviews a draft in a browser, with `{draft}` for its handle.
    pub review_url: Option<String>,
}

/// Answers for one worker.
#[derive(Debug)]
pub struct Gate {
    store: DraftStore,
    terms: Terms,
}

impl Gate {
    /// A gate in front of a store.
    pub fn new(store: DraftStore, terms: Terms) -> Self {
        Self { store, terms }
    }

    /// Nobody asks any more: what is being looked at ends, and is not handed in.
    pub fn leave(&self) {
        self.store.stop();
    }

    /// Answers one question.
    pub fn answer(&self, ask: Ask) -> Answer {
        let answered = match ask {
            Ask::Call { tool, arguments, client } => {
                self.call(tool, arguments, &self.worker(client))
            }
            Ask::Diff { draft } => self.diff(&draft),
            Ask::Drafts => self.list(&self.worker(None), false),
            Ask::Outcome { draft } => id_of(&draft).and_then(|id| self.outcome(id)),
            Ask::Decide { draft, seal, approve, reason, client } => {
                self.decide(&draft, &seal, approve, &reason, client)
            }
        };
        answered.unwrap_or_else(refused)
    }

    fn worker(&self, client: Option<Client>) -> Caller {
        Caller { who: self.terms.worker.clone(), client: client.map(short) }
    }

    fn call(
        &self,
        tool: ToolName,
        arguments: Map<String, Value>,
        worker: &Caller,
    ) -> Result<Answer, DraftError> {
        let store = &self.store;
        match tool {
            ToolName::DraftRequest => {
                let RequestArgs { source_path, task_id, create } = read(arguments)?;
                let existing = if create { Existing::MayNot } else { Existing::Must };
                // Old drafts are closed by whoever comes by.
                store.tidy()?;
                let (draft, text) = store.request(worker, &task_id, &source_path, existing)?;
                Ok(Answer::done(&ContentOut::of(&draft, text)))
            }
            ToolName::DraftRead => {
                let DraftArgs { draft_id } = read(arguments)?;
                let (draft, text) = store.read(worker, id_of(&draft_id)?)?;
                Ok(Answer::done(&ContentOut::of(&draft, text)))
            }
            ToolName::DraftWrite => {
                let WriteArgs { draft_id, content, if_match } = read(arguments)?;
                self.write(worker, &draft_id, Edit::Content(content), if_match)
            }
            ToolName::DraftEdit => {
                let args: EditArgs = read(arguments)?;
                let (id, if_match) = (args.draft_id.clone(), args.if_match.clone());
                self.write(worker, &id, edit_of(args)?, if_match)
            }
            ToolName::DraftCheck => {
                let CheckArgs { draft_id, together_with } = read(arguments)?;
                let judged = store.check(worker, &ids_of(&draft_id, &together_with)?)?;
                Ok(Answer::done(&CheckOut::of(&judged)))
            }
            ToolName::DraftSubmit => self.submit(worker, read(arguments)?),
            ToolName::DraftStatus => {
                let StatusArgs { draft_id, wait_s } = read(arguments)?;
                if wait_s > MAX_WAIT_S {
                    let words = format!("`wait_s` is at most {MAX_WAIT_S}");
                    return Err(DraftError::Input(words));
                }
                let draft = store.status(worker, id_of(&draft_id)?)?;
                Ok(Answer::done(&StatusOut::of(&draft)))
            }
            ToolName::DraftList => {
                let ListArgs { all } = read(arguments)?;
                self.list(worker, all)
            }
            ToolName::DraftDiscard => {
                let DraftArgs { draft_id } = read(arguments)?;
                let draft = store.discard(worker, id_of(&draft_id)?)?;
                Ok(Answer::done(&StatusOut::of(&draft)))
            }
            ToolName::DraftRebase => {
                let DraftArgs { draft_id } = read(arguments)?;
                let (draft, clean) = store.rebase(worker, id_of(&draft_id)?)?;
                let (_, text) = store.read(worker, draft.id)?;
                Ok(Answer::done(&WrittenOut::of(&draft, &text, Some(clean))))
            }
            ToolName::SandboxRun | ToolName::Facts | ToolName::Check => {
                Ok(Answer::Broken { words: "the gate runs no programs".to_owned() })
            }
        }
    }

    fn write(
        &self,
        worker: &Caller,
        id: &str,
        edit: Edit,
        if_match: Option<String>,
    ) -> Result<Answer, DraftError> {
        let if_match = if_match.as_deref().map(hash_of).transpose()?;
        let draft = self.store.write(worker, id_of(id)?, edit, if_match)?;
        let (_, text) = self.store.read(worker, draft.id)?;
        Ok(Answer::done(&WrittenOut::of(&draft, &text, None)))
    }

    fn list(&self, worker: &Caller, all: bool) -> Result<Answer, DraftError> {
        let drafts = self.store.list(worker)?;
        let shown = drafts.iter().filter(|one| all || one.state.is_open());
        Ok(Answer::done(&ListOut { drafts: shown.map(BriefOut::of).collect() }))
    }

    fn diff(&self, draft: &str) -> Result<Answer, DraftError> {
        Ok(Answer::done(&self.store.diff(&self.worker(None), id_of(draft)?)?))
    }

    fn submit(&self, worker: &Caller, args: SubmitArgs) -> Result<Answer, DraftError> {
        let ids = ids_of(&args.draft_id, &args.together_with)?;
        let first = self.store.status(worker, ids[0])?;
        // Before anything happens: whoever is wrong about the file is wrong about the change.
        let differs = |what: &str, said: &Option<String>, is: &str| match said {
            Some(said) if said != is => {
                Err(DraftError::Input(format!("the draft has another {what}: it is `{is}`")))
            }
            _ => Ok(()),
        };
        differs("original_path", &args.original_path, first.path.as_str())?;
        differs("task_id", &args.task_id, first.task.as_str())?;
        let submitted = self.store.submit(worker, &ids, &args.change_summary)?;
        let asking = submitted.drafts.first().and_then(|first| self.asking(first, &submitted));
        Ok(match answer_of(&submitted) {
            Answer::Done { result, .. } => Answer::Done { result, asking },
            other => other,
        })
    }

    /// What became of a submission.
    fn outcome(&self, id: DraftId) -> Result<Answer, DraftError> {
        Ok(answer_of(&self.store.outcome(&self.worker(None), id)?))
    }

    /// What the person at the client may be asked about an escalated submission. A form is never
    /// offered for credentials and guarded paths: who answers it is not known.
    fn asking(&self, draft: &Draft, submitted: &Submitted) -> Option<Asking> {
        if draft.state != State::Escalated {
            return None;
        }
        let verdict = &submitted.judged.verdict;
        let why: Vec<String> = verdict
            .findings
            .iter()
            .filter(|one| one.action >= Action::Escalate)
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
        // Whoever saw a part cannot answer for the whole.
        let guarded = diff.chars().count() > MAX_FORM_DIFF_CHARS
            || verdict.findings.iter().any(|one| is_guarded(one.rule));
        match (self.store.policy().elicitation, &self.terms.review_url) {
            (Elicitation::Form, _) if !guarded => Some(Asking::Form {
                draft: draft.id.to_string(),
                seal: seal_of(draft),
                message: format!("{message}\n\n{}", text::escaped_lines(diff)),
            }),
            (Elicitation::Url | Elicitation::Form, Some(url)) => Some(Asking::Url {
                draft: draft.id.to_string(),
                url: url.replace(DRAFT, &draft.id.to_string()),
                message,
            }),
            _ => None,
        }
    }

    /// A decision that came through a form. The front is not believed: the policy must allow forms,
    /// and nothing about the draft may be guarded.
    fn decide(
        &self,
        draft: &str,
        seal: &str,
        approve: bool,
        reason: &str,
        client: Option<Client>,
    ) -> Result<Answer, DraftError> {
        let no = |words: &str| Err(DraftError::Input(words.to_owned()));
        if self.store.policy().elicitation != Elicitation::Form {
            return no("the policy takes no decisions from a client");
        }
        let (id, seal) = (id_of(draft)?, hash_of(seal)?);
        let worker = self.worker(None);
        let known = self.store.status(&worker, id)?;
        let (together, findings) =
            known.submission.map(|one| (one.drafts, one.findings)).unwrap_or_default();
        let mut chars = 0;
        for id in together {
            chars += self.store.diff(&worker, id)?.chars().count();
        }
        if chars > MAX_FORM_DIFF_CHARS || findings.iter().any(|one| is_guarded(one.rule)) {
            return no("the policy takes no decision about this from a client");
        }
        // Its own name and account: who answered is not known, and a list of approvers has to say
        // that it trusts whoever sits at this client.
        let who = Principal::human(format!("elicitation/{}", self.terms.user))
            .with_account(Account::Elicitation(self.terms.uid));
        let caller = Caller { who, client: client.map(short) };
        let say = if approve { Say::Approve } else { Say::Reject };
        self.store.review(&caller, id, seal, say, reason)?;
        self.outcome(id)
    }
}

fn answer_of(submitted: &Submitted) -> Answer {
    let Submitted { drafts, judged } = submitted;
    let Some(first) = drafts.first() else {
        return Answer::Broken { words: "nothing was submitted".to_owned() };
    };
    Answer::done(&SubmitOut {
        submitted: true,
        message_id: seal_of(first),
        decision: decision(first.state, judged.verdict.action).to_owned(),
        next: next(first).to_owned(),
        judged: CheckOut::of(judged),
        drafts: drafts.iter().map(BriefOut::of).collect(),
    })
}

fn is_guarded(rule: Rule) -> bool {
    matches!(
        rule,
        // Nobody knows what is in something that the gate did not come to the end of.
        Rule::GateError
            | Rule::SecretSpecific
            | Rule::SecretGeneric
            | Rule::PathProtected
            | Rule::PathDenied
    )
}

fn short(client: Client) -> Client {
    let cut = |text: String| -> String {
        text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(MAX_CLIENT_CHARS).collect()
    };
    Client { name: cut(client.name), version: cut(client.version) }
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, DraftError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| DraftError::Input(format!("the arguments cannot be used: {error}")))
}

/// A handle. What is none gets the same words as one that nobody knows.
fn id_of(text: &str) -> Result<DraftId, DraftError> {
    DraftId::parse(text).ok_or_else(|| Refusal::Unknown.into())
}

fn ids_of(first: &str, others: &[String]) -> Result<Vec<DraftId>, DraftError> {
    std::iter::once(first).chain(others.iter().map(String::as_str)).map(id_of).collect()
}

fn hash_of(text: &str) -> Result<Sha256Hex, DraftError> {
    Sha256Hex::parse(text)
        .ok_or_else(|| DraftError::Input("a hash is 64 lower-case hexadecimal digits".to_owned()))
}

fn seal_of(draft: &Draft) -> String {
    draft.submission.as_ref().map_or_else(String::new, |one| one.seal.to_string())
}

fn edit_of(args: EditArgs) -> Result<Edit, DraftError> {
    let EditArgs { old, new, rename_to, delete, executable, .. } = args;
    match (old, new, rename_to, delete, executable) {
        (Some(old), Some(new), None, false, None) => Ok(Edit::Replace { old, new }),
        (None, None, Some(to), false, None) => Ok(Edit::Rename(to)),
        (None, None, None, true, None) => Ok(Edit::Delete),
        (None, None, None, false, Some(executable)) => Ok(Edit::Executable(executable)),
        _ => Err(DraftError::Input(
            "give `old` and `new`, or one of `rename_to`, `delete` and `executable`".to_owned(),
        )),
    }
}

fn refused(error: DraftError) -> Answer {
    if !error.is_refusal() && !matches!(error, DraftError::Busy) {
        return Answer::Broken { words: error.to_string() };
    }
    let hint = match &error {
        DraftError::Refused(Refusal::Unknown) => {
            Some("draft_list shows your drafts, draft_request opens one")
        }
        DraftError::Refused(Refusal::State { .. }) => {
            Some("draft_status says what became of it and what to do")
        }
        DraftError::Refused(Refusal::Stale { .. }) => {
            Some("read it again with draft_read, then change what is there now")
        }
        DraftError::Refused(Refusal::Limit { .. }) => {
            Some("submit or discard drafts that are open: draft_list shows them")
        }
        DraftError::Refused(Refusal::ContentRemoved) => {
            Some("draft_write the whole content again, without the credential")
        }
        DraftError::TooManyChecks { .. } => Some(
            "what was checked before is kept: the same contents cost nothing; else wait a while",
        ),
        DraftError::Busy => Some("nothing was done: call it again in a few seconds"),
        DraftError::Path(_) => Some("give a path inside of the workspace, such as src/app.py"),
        DraftError::File { fault: FileFault::Missing, .. } => {
            Some("say `create: true` to draft a new file")
        }
        DraftError::OldText(_) => {
            Some("draft_read shows the draft; copy the text from there, with its spaces")
        }
        _ => None,
    };
    Answer::Refused { words: error.to_string(), hint: hint.map(str::to_owned) }
}

#[cfg(test)]
#[path = "draft_tools_tests.rs"]
mod tests;
