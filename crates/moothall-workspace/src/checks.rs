//! Runs the sandboxed checks and the model review before drafts are judged. Both are slow and
//! untrusted, so the store lock is not held in the meantime. Results count only for exactly the drafts
//! that were checked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};

use moothall_core::Sha256Hex;
use moothall_core::gate::reviewer::{self, MAX_DIFF_BYTES, ModelReview, ReviewDoubt};
use moothall_core::gate::{
    CheckOutcome, CheckResult, CheckResults, GateAction, PolicyCheck, check_outcome, check_request,
    scan_secrets,
};
use moothall_core::model::{ModelReply, ModelRequest};
use moothall_core::sandbox::{ExecuteRequest, FileRef, GuestPath, SandboxExecution};
use moothall_core::structured::ask_again;
use tokio_util::sync::CancellationToken;

use super::DraftStore;
use super::check_cache::CheckCache;
use super::error::DraftError;
use super::prepared_drafts::{PreparedDrafts, PreparedFile, difference};
use super::workspace::TreeFile;

/// The submitter sees at most this much of a check's output.
const MAX_OUTPUT_BYTES: usize = 4_000;

/// Runs programs, each in a fresh sandbox.
pub trait CheckRunner: fmt::Debug + Send + Sync {
    /// Runs one program. The error says why nothing ran. `engine` is the sandbox engine the policy
    /// requires. Returns soon after `stop` is cancelled.
    fn execute(
        &self,
        engine: Option<&str>,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
        stop: &CancellationToken,
    ) -> Result<SandboxExecution, String>;
}

/// Calls the reviewing model.
pub trait ModelReviewer: fmt::Debug + Send + Sync {
    /// Sends the request. The error says why there is no answer. Returns soon after `stop` is
    /// cancelled.
    fn ask(&self, request: &ModelRequest, stop: &CancellationToken) -> Result<ModelReply, String>;
}

/// A check result for the submitter. Not written to the journal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckReport {
    pub id: String,
    pub passed: bool,
    /// The output, or why the check did not run.
    pub output: String,
}

/// Results for the drafts with this seal.
#[derive(Debug, Clone)]
pub(crate) struct DraftCheckRun {
    pub(crate) seal: Sha256Hex,
    pub(crate) results: CheckResults,
    pub(crate) checks: Vec<CheckReport>,
    pub(crate) doubts: Vec<ReviewDoubt>,
}

impl DraftStore {
    /// Runs the checks and the review that the policy requires. Returns `None` if it requires none.
    /// Skips them if the rules alone already reject the drafts, so the submitter does not wait
    /// for more reasons.
    ///
    /// Runs one set of checks at a time, so that workers cannot fill the machine with sandboxes and
    /// two equal requests run only once.
    pub(crate) fn run_checks(
        &self,
        prepared: &PreparedDrafts,
        summary: &str,
    ) -> Result<Option<DraftCheckRun>, DraftError> {
        if self.policy.checks.is_empty() && self.policy.reviewing_model.is_none() {
            return Ok(None);
        }
        let PreparedDrafts { seal, files } = prepared;
        let seal = *seal;
        let paths =
            || files.iter().flat_map(|one| std::iter::once(&one.path).chain(&one.rename_to));
        let required = self.policy.checks_for(paths());
        let all_passed = CheckResults {
            checks: required
                .iter()
                .map(|check| CheckResult { id: check.id.clone(), outcome: CheckOutcome::Passed })
                .collect(),
            review: Some(ModelReview::Said(Vec::new())),
        };
        let without = self.verdict(Arc::clone(files), all_passed.clone());
        if without.action == GateAction::Reject {
            let (checks, doubts) = (Vec::new(), Vec::new());
            return Ok(Some(DraftCheckRun { seal, results: all_passed, checks, doubts }));
        }
        let mut found = DraftCheckRun {
            seal,
            results: CheckResults::default(),
            checks: Vec::new(),
            doubts: Vec::new(),
        };
        let mut cache = self.check_cache.lock().unwrap_or_else(PoisonError::into_inner);
        for check in required {
            let (outcome, output) = self.cached_check(&mut cache, check, files)?;
            let id = check.id.clone();
            let passed = outcome == CheckOutcome::Passed;
            found.checks.push(CheckReport { id: id.clone(), passed, output });
            found.results.checks.push(CheckResult { id, outcome });
        }
        if let Some(review) = self.model_review(&mut cache, files, summary)? {
            if let ModelReview::Said(doubts) = &review {
                found.doubts.clone_from(doubts);
            }
            found.results.review = Some(review);
        }
        Ok(Some(found))
    }

    /// Returns the outcome of a check and the output for the submitter.
    fn cached_check(
        &self,
        cache: &mut CheckCache,
        check: &PolicyCheck,
        files: &[PreparedFile],
    ) -> Result<(CheckOutcome, String), DraftError> {
        let (request_hash, ran) = match self.tree_request(check, files) {
            Ok((request, inputs)) => {
                // The hash covers the whole tree, so a change by anyone else is a different
                // request.
                let request_hash =
                    request.hash().map_err(|error| DraftError::Input(error.to_string()))?;
                let request_hash = Sha256Hex::of(format!("{} {request_hash}", check.id).as_bytes());
                if let Some(known) = cache.checks.get(request_hash) {
                    return Ok(known);
                }
                self.count_start(cache)?;
                (Some(request_hash), self.run(check, &request, &inputs))
            }
            Err(reason) => (None, Err(reason)),
        };
        if self.stopped.is_cancelled() {
            return Err(DraftError::Stopped);
        }
        let (outcome, output) = match ran {
            Ok(execution) => (check_outcome(&execution.exit), output_of(&execution)),
            Err(reason) => (CheckOutcome::NotRun, reason),
        };
        // Workers are models, so they must not see secrets that a check read in the workspace. Scan
        // before truncating: many credentials are recognized by their prefix.
        let output = match self.may_be_shown(&output) {
            true => end_of(&output),
            false => "(withheld: may contain a credential)".to_owned(),
        };
        // Do not cache timeouts or a missing sandbox; the next attempt may succeed.
        if let (Some(request_hash), CheckOutcome::Passed | CheckOutcome::Failed) =
            (request_hash, outcome)
        {
            cache.checks.keep(request_hash, (outcome, output.clone()));
        }
        Ok((outcome, output))
    }

    /// Counts a start against the hourly limit.
    fn count_start(&self, cache: &mut CheckCache) -> Result<(), DraftError> {
        if self.stopped.is_cancelled() {
            return Err(DraftError::Stopped);
        }
        let most = self.policy.limits.max_looks_per_hour;
        match cache.begin(self.now(), most) {
            true => Ok(()),
            false => Err(DraftError::TooManyChecks { most }),
        }
    }

    fn run(
        &self,
        check: &PolicyCheck,
        request: &ExecuteRequest,
        inputs: &BTreeMap<GuestPath, Vec<u8>>,
    ) -> Result<SandboxExecution, String> {
        let checker = self.options.checker.as_ref().ok_or("no sandbox is available")?;
        checker.execute(check.sandbox.as_deref(), request, inputs, &self.stopped)
    }

    /// Builds the request for a check: the workspace with the drafts applied.
    fn tree_request(
        &self,
        check: &PolicyCheck,
        files: &[PreparedFile],
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
                .map_err(|_| format!("{path}: path is too long or too deep"))?;
            named.insert(inside.clone(), (FileRef::of(&bytes), executable));
            inputs.insert(inside, bytes);
        }
        let request = check_request(check, &named).map_err(|error| error.to_string())?;
        Ok((request, inputs))
    }

    /// Asks the reviewing model, if the policy names one. Files that may contain a credential, new
    /// or old, are not sent.
    fn model_review(
        &self,
        cache: &mut CheckCache,
        files: &[PreparedFile],
        summary: &str,
    ) -> Result<Option<ModelReview>, DraftError> {
        let Some(model) = &self.policy.reviewing_model else { return Ok(None) };
        let sides = files.iter().flat_map(|file| [&file.base, &file.after]).flatten();
        let mut texts = sides.map(|(bytes, _)| bytes.as_slice()).chain([summary.as_bytes()]);
        if texts.any(|text| !scan_secrets(text, &self.key).is_clean()) {
            return Ok(Some(ModelReview::Withheld));
        }
        let diff: String = files.iter().map(difference).collect();
        if diff.len() > MAX_DIFF_BYTES {
            return Ok(Some(ModelReview::TooLong));
        }
        let request = reviewer::request(model, summary, &diff);
        let request_hash = request.hash().map_err(|error| DraftError::Input(error.to_string()))?;
        if let Some(doubts) = cache.reviews.get(request_hash) {
            return Ok(Some(ModelReview::Said(doubts)));
        }
        let Some(doubts) = self.ask_reviewer(cache, &request)? else {
            return Ok(Some(ModelReview::Failed));
        };
        cache.reviews.keep(request_hash, doubts.clone());
        Ok(Some(ModelReview::Said(doubts)))
    }

    /// Parses the doubts from the model's answer. An invalid answer is retried once.
    fn ask_reviewer(
        &self,
        cache: &mut CheckCache,
        request: &ModelRequest,
    ) -> Result<Option<Vec<ReviewDoubt>>, DraftError> {
        let Some(reviewer) = &self.options.reviewer else { return Ok(None) };
        let mut send = |request: &ModelRequest| {
            self.count_start(cache)?;
            let reply = reviewer.ask(request, &self.stopped);
            if self.stopped.is_cancelled() {
                return Err(DraftError::Stopped);
            }
            let log = |why: &String| tracing::warn!(%why, "reviewing model did not answer");
            Ok(reply.inspect_err(log).ok())
        };
        let Some(reply) = send(request)? else { return Ok(None) };
        let fault = match reviewer::read(&reply) {
            Ok(doubts) => return Ok(Some(doubts)),
            Err(fault) => fault,
        };
        let again = send(&ask_again(request, &reply.text, &fault))?;
        Ok(again.and_then(|reply| reviewer::read(&reply).ok()))
    }
}

/// The output of a check, with standard error last because it usually has the reason.
fn output_of(execution: &SandboxExecution) -> String {
    format!("{}{}{}\n", execution.stdout.text, execution.stderr.text, execution.exit)
}

fn end_of(output: &str) -> String {
    let from = output.ceil_char_boundary(output.len().saturating_sub(MAX_OUTPUT_BYTES));
    output[from..].to_owned()
}
