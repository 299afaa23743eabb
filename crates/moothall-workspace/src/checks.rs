//! What is found out about drafts before they are judged: checks that run in a sandbox, and a model
//! that reviews. Both take long and are not trusted, so the lock of the store is not held meanwhile.
//! What was found counts only for exactly the drafts that were looked at.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};

use moothall_core::Sha256Hex;
use moothall_core::gate::reviewer::{self, Doubt, MAX_DIFF_BYTES, Review};
use moothall_core::gate::{
    Action, Check, CheckOutcome, CheckResult, Looked, check_outcome, check_request, scan_secrets,
};
use moothall_core::model::{ModelReply, ModelRequest};
use moothall_core::sandbox::{ExecuteRequest, Execution, FileRef, GuestPath};
use moothall_core::structured::ask_again;
use tokio_util::sync::CancellationToken;

use super::DraftStore;
use super::check_cache::Memory;
use super::error::DraftError;
use super::prepared::{Owned, Prepared, difference};
use super::workspace::TreeFile;

/// How much of a check's output whoever submitted is shown.
const MAX_OUTPUT_BYTES: usize = 4_000;

/// Runs programs in sandboxes, each in one that nobody used before.
pub trait Checker: fmt::Debug + Send + Sync {
    /// Runs one; an error says in words why nothing ran. `engine` is what the policy asks for. Ends
    /// soon after `stop`.
    fn execute(
        &self,
        engine: Option<&str>,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        stop: &CancellationToken,
    ) -> Result<Execution, String>;
}

/// Asks the model that reviews.
pub trait Reviewer: fmt::Debug + Send + Sync {
    /// Asks; an error says in words why there is no answer. Ends soon after `stop`.
    fn ask(&self, request: &ModelRequest, stop: &CancellationToken) -> Result<ModelReply, String>;
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

impl DraftStore {
    /// Runs what the policy asks for. Nothing where it asks for nothing, or where code alone already
    /// rejects: then nobody needs to wait for more reasons.
    ///
    /// One look at a time: workers shall not fill the machine with sandboxes, and what two of them
    /// ask at once is found out once.
    pub(super) fn look(
        &self,
        prepared: &Prepared,
        summary: &str,
    ) -> Result<Option<Found>, DraftError> {
        if self.policy.checks.is_empty() && self.policy.reviewing_model.is_none() {
            return Ok(None);
        }
        let Prepared { seal, files } = prepared;
        let seal = *seal;
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
        let without = self.verdict(Arc::clone(files), spotless.clone());
        if without.action == Action::Reject {
            let (checks, doubts) = (Vec::new(), Vec::new());
            return Ok(Some(Found { seal, looked: spotless, checks, doubts }));
        }
        let mut found =
            Found { seal, looked: Looked::default(), checks: Vec::new(), doubts: Vec::new() };
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        for check in wanted {
            let (outcome, output) = self.checked(&mut memory, check, files)?;
            let id = check.id.clone();
            let passed = outcome == CheckOutcome::Passed;
            found.checks.push(CheckReport { id: id.clone(), passed, output });
            found.looked.checks.push(CheckResult { id, outcome });
        }
        if let Some(review) = self.reviewed(&mut memory, files, summary)? {
            if let Review::Said(doubts) = &review {
                found.doubts.clone_from(doubts);
            }
            found.looked.review = Some(review);
        }
        Ok(Some(found))
    }

    /// How a check ended, and what whoever submitted is told about it.
    fn checked(
        &self,
        memory: &mut Memory,
        check: &Check,
        files: &[Owned],
    ) -> Result<(CheckOutcome, String), DraftError> {
        let (asked, ran) = match self.tree_request(check, files) {
            Ok((request, inputs)) => {
                // The hash is of the whole tree: what others changed in it is another question.
                let asked = request.hash().map_err(|error| DraftError::Input(error.to_string()))?;
                let asked = Sha256Hex::of(format!("{} {asked}", check.id).as_bytes());
                if let Some(known) = memory.checks.get(asked) {
                    return Ok(known);
                }
                self.may_begin(memory)?;
                (Some(asked), self.run(check, &request, &inputs))
            }
            Err(why) => (None, Err(why)),
        };
        if self.stopped.is_cancelled() {
            return Err(DraftError::Stopped);
        }
        let (outcome, output) = match ran {
            Ok(execution) => (check_outcome(&execution.exit), output_of(&execution)),
            Err(why) => (CheckOutcome::NotRun, why),
        };
        // Workers are models: what a check read in the workspace is not theirs to hear. Before
        // the beginning goes, because that is what many credentials are known by.
        let output = match self.may_be_shown(&output) {
            true => end_of(&output),
            false => "(withheld: it looks like it holds a credential)".to_owned(),
        };
        // What the machine had no time or no sandbox for, it may have the next time.
        if let (Some(asked), CheckOutcome::Passed | CheckOutcome::Failed) = (asked, outcome) {
            memory.checks.keep(asked, (outcome, output.clone()));
        }
        Ok((outcome, output))
    }

    /// Counts what is about to begin, or refuses it.
    fn may_begin(&self, memory: &mut Memory) -> Result<(), DraftError> {
        if self.stopped.is_cancelled() {
            return Err(DraftError::Stopped);
        }
        let most = self.policy.limits.max_looks_per_hour;
        match memory.begin(self.now(), most) {
            true => Ok(()),
            false => Err(DraftError::TooManyChecks { most }),
        }
    }

    fn run(
        &self,
        check: &Check,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
    ) -> Result<Execution, String> {
        let checker = self.options.checker.as_ref().ok_or("there is no sandbox here")?;
        checker.execute(check.sandbox.as_deref(), request, inputs, &self.stopped)
    }

    /// What a check is given: the workspace with the drafts applied.
    fn tree_request(
        &self,
        check: &Check,
        files: &[Owned],
    ) -> Result<(ExecuteRequest, BTreeMap<GuestPath, Vec<u8>>), String> {
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
        Ok((request, inputs))
    }

    /// Asks the model, if the policy names one. Files that hold something like a credential are not
    /// shown to it, whether the credential is new or not.
    fn reviewed(
        &self,
        memory: &mut Memory,
        files: &[Owned],
        summary: &str,
    ) -> Result<Option<Review>, DraftError> {
        let Some(model) = &self.policy.reviewing_model else { return Ok(None) };
        let sides = files.iter().flat_map(|file| [&file.base, &file.after]).flatten();
        let mut texts = sides.map(|(bytes, _)| bytes.as_slice()).chain([summary.as_bytes()]);
        if texts.any(|text| !scan_secrets(text, &self.key).is_clean()) {
            return Ok(Some(Review::Withheld));
        }
        let diff: String = files.iter().map(difference).collect();
        if diff.len() > MAX_DIFF_BYTES {
            return Ok(Some(Review::TooLong));
        }
        let request = reviewer::request(model, summary, &diff);
        let asked = request.hash().map_err(|error| DraftError::Input(error.to_string()))?;
        if let Some(doubts) = memory.reviews.get(asked) {
            return Ok(Some(Review::Said(doubts)));
        }
        let Some(doubts) = self.asked(memory, &request)? else { return Ok(Some(Review::Failed)) };
        memory.reviews.keep(asked, doubts.clone());
        Ok(Some(Review::Said(doubts)))
    }

    /// The doubts of an answer; a model that did not keep to the form is asked once more.
    fn asked(
        &self,
        memory: &mut Memory,
        request: &ModelRequest,
    ) -> Result<Option<Vec<Doubt>>, DraftError> {
        let Some(reviewer) = &self.options.reviewer else { return Ok(None) };
        let mut ask = |request: &ModelRequest| {
            self.may_begin(memory)?;
            let reply = reviewer.ask(request, &self.stopped);
            if self.stopped.is_cancelled() {
                return Err(DraftError::Stopped);
            }
            let why = |why: &String| tracing::warn!(%why, "the reviewing model was not heard");
            Ok(reply.inspect_err(why).ok())
        };
        let Some(reply) = ask(request)? else { return Ok(None) };
        let fault = match reviewer::read(&reply) {
            Ok(doubts) => return Ok(Some(doubts)),
            Err(fault) => fault,
        };
        let again = ask(&ask_again(request, &reply.text, &fault))?;
        Ok(again.and_then(|reply| reviewer::read(&reply).ok()))
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
