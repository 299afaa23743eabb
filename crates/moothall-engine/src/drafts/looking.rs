//! What is found out about drafts before they are judged: checks that run in a sandbox, and a model
//! that reviews. Both take long and are not trusted, so the lock of the store is not held meanwhile.
//! What was found counts only for exactly the drafts that were looked at.

use std::collections::BTreeMap;
use std::fmt;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{DraftId, Refusal};
use moothall_core::gate::reviewer::{self, Doubt, MAX_DIFF_BYTES, Review};
use moothall_core::gate::{
    Action, Check, CheckOutcome, CheckResult, Looked, check_outcome, check_request, scan_secrets,
};
use moothall_core::model::{ModelReply, ModelRequest};
use moothall_core::sandbox::{ExecuteRequest, Execution, FileRef, GuestPath};
use moothall_core::structured::ask_again;

use super::error::DraftError;
use super::judging::{Owned, difference};
use super::{Caller, DraftStore};

/// How much of a check's output whoever submitted is shown.
const MAX_OUTPUT_BYTES: usize = 4_000;

/// Runs programs in sandboxes, each in one that nobody used before.
pub trait Checker: fmt::Debug + Send + Sync {
    /// Runs one; an error says in words why nothing ran. `engine` is what the policy asks for.
    fn execute(
        &self,
        engine: Option<&str>,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
    ) -> Result<Execution, String>;
}

/// Asks the model that reviews.
pub trait Reviewer: fmt::Debug + Send + Sync {
    /// Asks; an error says in words why there is no answer.
    fn ask(&self, request: &ModelRequest) -> Result<ModelReply, String>;
}

/// A check as whoever submitted is told about it. Its words are not for the journal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckReport {
    /// Which.
    pub id: String,
    /// Whether it passed.
    pub passed: bool,
    /// What it printed, or why it did not run.
    pub output: String,
}

/// What was found out, and about what.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) seal: Sha256Hex,
    pub(super) looked: Looked,
    pub(super) checks: Vec<CheckReport>,
    pub(super) doubts: Vec<Doubt>,
}

/// A file of the tree that a check runs on.
pub(super) struct TreeFile {
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

impl DraftStore {
    /// Runs what the policy asks for. Nothing where it asks for nothing, or where code alone already
    /// rejects: then nobody needs to wait for more reasons.
    pub(super) fn look(
        &self,
        caller: &Caller,
        ids: &[DraftId],
        summary: &str,
    ) -> Result<Option<Found>, DraftError> {
        let most = self.policy.limits.max_files_per_changeset;
        if ids.len() > most {
            let words = format!("at most {most} drafts are looked at together");
            return Err(DraftError::Input(words));
        }
        if self.policy.checks.is_empty() && self.policy.reviewing_model.is_none() {
            return Ok(None);
        }
        let (seal, files) = self.with(|store, inner| {
            let mut files = Vec::new();
            for id in ids {
                let draft = inner.drafts.of(&caller.who, *id);
                files.push(store.owned(draft.ok_or(Refusal::Unknown)?)?);
            }
            Ok((inner.drafts.seal(ids), files))
        })?;
        let paths =
            || files.iter().flat_map(|one| std::iter::once(&one.path).chain(&one.rename_to));
        let wanted = self.policy.checks_for(paths());
        let spotless = Looked {
            checks: wanted
                .iter()
                .map(|check| CheckResult { id: check.id.clone(), outcome: CheckOutcome::Passed })
                .collect(),
            review: Some(Review::Said(Vec::new())),
        };
        let without = self.verdict(files.clone(), spotless.clone());
        if without.action == Action::Reject {
            let (checks, doubts) = (Vec::new(), Vec::new());
            return Ok(Some(Found { seal, looked: spotless, checks, doubts }));
        }
        let mut found =
            Found { seal, looked: Looked::default(), checks: Vec::new(), doubts: Vec::new() };
        for check in wanted {
            let (outcome, output) = match self.run(check, &files) {
                Ok(execution) => (check_outcome(&execution.exit), output_of(&execution)),
                Err(why) => (CheckOutcome::NotRun, why),
            };
            // Workers are models: what a check read in the workspace is not theirs to hear. Before
            // the beginning goes, because that is what many credentials are known by.
            let output = match self.may_be_shown(&output) {
                true => end_of(&output),
                false => "(withheld: it looks like it holds a credential)".to_owned(),
            };
            let id = check.id.clone();
            let passed = outcome == CheckOutcome::Passed;
            found.checks.push(CheckReport { id: id.clone(), passed, output });
            found.looked.checks.push(CheckResult { id, outcome });
        }
        if let Some(review) = self.reviewed(&files, summary) {
            if let Review::Said(doubts) = &review {
                found.doubts.clone_from(doubts);
            }
            found.looked.review = Some(review);
        }
        Ok(Some(found))
    }

    fn run(&self, check: &Check, files: &[Owned]) -> Result<Execution, String> {
        let Some(checker) = &self.options.checker else {
            return Err("there is no sandbox here".to_owned());
        };
        let mut tree =
            self.workspace.tree(&self.policy, check).map_err(|error| error.to_string())?;
        for file in files {
            tree.remove(&file.path);
            if let Some((bytes, executable)) = &file.after {
                let path = file.rename_to.as_ref().unwrap_or(&file.path).clone();
                tree.insert(path, TreeFile { bytes: bytes.clone(), executable: *executable });
            }
        }
        let (mut named, mut inputs) = (BTreeMap::new(), BTreeMap::new());
        for (path, TreeFile { bytes, executable }) in tree {
            let inside: GuestPath = path
                .as_str()
                .parse()
                .map_err(|_| format!("{path}: too long or too deep a path"))?;
            named.insert(inside.clone(), (FileRef::of(&bytes), executable));
            inputs.insert(inside, bytes);
        }
        let request = check_request(check, &named).map_err(|error| error.to_string())?;
        checker.execute(check.sandbox.as_deref(), &request, &inputs)
    }

    /// Asks the model, if the policy names one. Files that hold something like a credential are not
    /// shown to it, whether the credential is new or not.
    fn reviewed(&self, files: &[Owned], summary: &str) -> Option<Review> {
        let model = self.policy.reviewing_model.as_ref()?;
        let sides = files.iter().flat_map(|file| [&file.base, &file.after]).flatten();
        let mut texts = sides.map(|(bytes, _)| bytes.as_slice()).chain([summary.as_bytes()]);
        if texts.any(|text| !scan_secrets(text, &self.key).is_empty()) {
            return Some(Review::Withheld);
        }
        let diff: String = files.iter().map(difference).collect();
        if diff.len() > MAX_DIFF_BYTES {
            return Some(Review::TooLong);
        }
        let request = reviewer::request(model, summary, &diff);
        Some(self.asked(&request).map_or(Review::Failed, Review::Said))
    }

    /// The doubts of an answer; a model that did not keep to the form is asked once more.
    fn asked(&self, request: &ModelRequest) -> Option<Vec<Doubt>> {
        let ask = |request: &ModelRequest| {
            let reply = self.options.reviewer.as_ref()?.ask(request);
            reply.inspect_err(|why| tracing::warn!(%why, "the reviewing model was not heard")).ok()
        };
        let reply = ask(request)?;
        reviewer::read(&reply)
            .or_else(|fault| {
                let again = ask(&ask_again(request, &reply.text, &fault)).ok_or(fault)?;
                reviewer::read(&again)
            })
            .ok()
    }
}

/// What a check printed, standard error last: that is where the reason stands.
fn output_of(execution: &Execution) -> String {
    format!("{}{}{}\n", execution.stdout.text, execution.stderr.text, execution.exit)
}

fn end_of(output: &str) -> String {
    let from = output.ceil_char_boundary(output.len().saturating_sub(MAX_OUTPUT_BYTES));
    output[from..].to_owned()
}
