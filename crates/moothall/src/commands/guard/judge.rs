//! Judges the copy of a guarded run, applies what is accepted, and describes the result.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use fs_err as fs;
use moothall_core::gate::{ChangeFinding, GateRule};
use moothall_core::text::sanitize_line;
use moothall_sandbox::guard::{AgentExit, AgentOutput, GuardPlan, PrivateCopy};
use moothall_workspace::{CopyChanges, CopyOutcome, CopyVerdict, DraftCaller};

use super::WORKER;
use super::agent::{CHECK_TIMEOUT, GuardSession, base_environment, home_directory};
use super::record::{
    GuardFileRow, GuardFindingRow, GuardRecord, GuardResult, GuardRun, GuardState, remove_tree,
};
use crate::commands::draft::store::{OpenDraftStore, failed};
use crate::commands::{InterruptibleResult, block_on};
use crate::error::{CliError, CliExit};
use crate::terminal::{BOLD, DIM, GREEN, YELLOW};
use crate::work_progress::{WorkProgress, WorkSize};

/// Judges the copy as one change set and submits it. The result is in the record.
pub(crate) fn judge_run(
    opened: &OpenDraftStore,
    run: &mut GuardRun,
    json: bool,
) -> Result<CliExit, CliError> {
    let store = &opened.store;
    let worker = opened.worker(WORKER)?;
    let progress = WorkProgress::start("reading the changes", json);
    let changes = store.copy_changes(&run.copy_folder()).map_err(failed)?;
    let mut base = run.base();
    progress.step("judging the changes", WorkSize::Unknown);
    let mut verdict = store.judge_copy(&changes, &base);
    for command in run.record.options.checks.clone() {
        if !verdict.has_accepted() {
            break;
        }
        progress.step(&format!("running `{command}`"), WorkSize::Unknown);
        if let Some(problem) = run_check(run, &changes, &verdict, &command)? {
            let message = format!("check `{}` {problem}", sanitize_line(&command));
            verdict.hold(GateRule::CheckFailed, message);
        }
    }
    progress.step("submitting the changes", WorkSize::Unknown);
    discard_old_drafts(opened, &worker, run);
    let findings = verdict.findings().map(row).collect();
    let task = format!("guard-{}", run.record.id);
    let agent = run.record.agent.first().map(String::as_str).unwrap_or_default();
    let name = agent.rsplit('/').next().unwrap_or_default();
    let summary = format!("changes by `{}` in a private copy", sanitize_line(name));
    let results =
        store.submit_copy(&worker, &task, &summary, &changes, &base, verdict).map_err(failed)?;
    drop(progress);
    let applied = |outcome: CopyOutcome| outcome == CopyOutcome::Applied;
    base.update(
        &run.record.workspace,
        results.iter().filter(|one| applied(one.outcome)).map(|one| one.path.clone()),
    );
    let files = results.iter().map(|one| GuardFileRow {
        path: one.path.clone(),
        outcome: one.outcome.as_str().to_owned(),
        draft: one.draft,
        findings: one.findings.iter().map(row).collect(),
    });
    run.record.result = Some(GuardResult {
        files: files.collect(),
        findings,
        git: changes.git.clone(),
        ignored: changes.ignored,
    });
    let has = |outcome: CopyOutcome| results.iter().any(|one| one.outcome == outcome);
    let is_left = has(CopyOutcome::Rejected) || has(CopyOutcome::Left);
    match (run.record.options.keep, is_left) {
        (true, _) => run.save_base(&base)?,
        // The agent can be started again to correct what was rejected.
        (false, true) => {
            run.save_base(&base)?;
            run.remove_home();
        }
        (false, false) => run.remove_copy()?,
    }
    run.save(GuardState::Judged)?;
    Ok(match (is_left, has(CopyOutcome::NeedsReview)) {
        (true, _) => CliExit::VerdictNegative,
        (false, true) => CliExit::NeedsPerson,
        (false, false) => CliExit::Fine,
    })
}

fn row(finding: &ChangeFinding) -> GuardFindingRow {
    GuardFindingRow {
        rule: finding.rule.name().to_owned(),
        action: finding.action.as_str().to_owned(),
        line: finding.line,
        message: finding.message.clone(),
    }
}

/// Drafts of an earlier judgment of this copy are replaced.
fn discard_old_drafts(opened: &OpenDraftStore, worker: &DraftCaller, run: &GuardRun) {
    let result = run.record.result.iter().flat_map(|result| &result.files);
    for draft in result.filter_map(|file| file.draft) {
        // Reviewed in the meantime: nothing to replace.
        let _ = opened.store.discard(worker, draft);
    }
}

/// Runs a command on the workspace with the accepted changes, offline and in its own view. Returns
/// what is wrong, or `None` if it passed.
fn run_check(
    run: &GuardRun,
    changes: &CopyChanges,
    verdict: &CopyVerdict,
    command: &str,
) -> Result<Option<String>, CliError> {
    let failed = |error: io::Error| CliError::failed("cannot prepare the check").with_source(error);
    if run.record.options.full_copy {
        return Ok(Some("cannot run on a full copy".to_owned()));
    }
    let folder = run.folder("check");
    remove_tree(&folder).map_err(failed)?;
    let at = |name: &str| folder.join(name);
    for name in ["upper", "work", "home", "tmp/agent", "root"] {
        fs::create_dir_all(at(name)).map_err(failed)?;
    }
    verdict.write_accepted(changes, &at("upper")).map_err(failed)?;
    let home_at = home_directory();
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut read = run.record.options.read.clone();
    read.extend(std::env::split_paths(&search).filter(|path| {
        path.is_absolute()
            && path.exists()
            && !home_at.starts_with(path)
            && path.components().count() > 2
    }));
    let read: Vec<PathBuf> =
        read.into_iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    let session = GuardSession {
        plan: GuardPlan {
            workspace: run.record.workspace.clone(),
            copy: PrivateCopy::Overlay { upper: at("upper"), work: at("work") },
            home: at("home"),
            home_at: home_at.clone(),
            tmp: at("tmp"),
            root: at("root"),
            read,
            ports: Vec::new(),
            limits: run.record.options.limits,
        },
        environment: base_environment(&home_at),
        command_line: ["/bin/sh", "-c", command].map(OsString::from).to_vec(),
        output: AgentOutput::Stderr,
    };
    let ended = block_on(async {
        let mut started = match session.start().await {
            Ok(started) => started,
            Err(fault) => return Some(format!("did not run: {fault}")),
        };
        match tokio::time::timeout(CHECK_TIMEOUT, started.process.wait()).await {
            Ok(Ok(AgentExit::Exited(0))) => None,
            Ok(Ok(AgentExit::Exited(code))) => Some(format!("failed with exit code {code}")),
            Ok(Ok(AgentExit::Signalled(signal))) => Some(format!("was ended by signal {signal}")),
            Ok(Ok(AgentExit::Killed)) => Some("was killed".to_owned()),
            Ok(Err(fault)) => Some(format!("did not run: {fault}")),
            Err(_) => {
                started.process.kill().await;
                Some("timed out".to_owned())
            }
        }
    })?;
    remove_tree(&folder).map_err(failed)?;
    match ended {
        InterruptibleResult::Done(problem) => Ok(problem),
        InterruptibleResult::Cancelled => {
            let id = &run.record.id;
            Err(CliError::notice(CliExit::Cancelled, "stopped; nothing was applied")
                .with_hint(format!("`moothall guard submit {id}` judges the copy again")))
        }
    }
}

/// The result of a run for people.
pub(crate) fn result_text(record: &GuardRecord) -> String {
    let id = &record.id;
    let mut text = format!("{BOLD}guard {id}{BOLD:#}  {}", record.state.as_str());
    if let Some(end) = record.end {
        let _ = write!(text, ": {}", end.text());
    }
    text.push('\n');
    if !record.hosts.is_empty() {
        let hosts = |allowed: bool| -> Vec<String> {
            let of_kind = record.hosts.iter().filter(|host| host.allowed == allowed);
            of_kind.map(|host| format!("{}:{}", host.host, host.port)).collect()
        };
        let (reached, blocked) = (hosts(true), hosts(false));
        if !reached.is_empty() {
            let _ = writeln!(text, "{DIM}hosts: {}{DIM:#}", reached.join(", "));
        }
        if !blocked.is_empty() {
            let _ = writeln!(text, "{YELLOW}blocked hosts: {}{YELLOW:#}", blocked.join(", "));
        }
    }
    match &record.result {
        Some(result) => result_rows(&mut text, record, result),
        None if record.has_copy && record.state == GuardState::Stopped => {
            let _ = writeln!(
                text,
                "not judged yet\nhint: `moothall guard resume {id}`, `moothall guard submit {id}` or \
                 `moothall guard discard {id}`"
            );
        }
        None => {}
    }
    text
}

fn result_rows(text: &mut String, record: &GuardRecord, result: &GuardResult) {
    let id = &record.id;
    if result.files.is_empty() {
        text.push_str("no changes\n");
    }
    for finding in &result.findings {
        let _ = writeln!(text, "{YELLOW}{}{YELLOW:#}  {}", finding.rule, finding.message);
    }
    for file in &result.files {
        let (label, style) = match file.outcome.as_str() {
            "applied" => ("applied", GREEN),
            "needs_review" => ("needs review", YELLOW),
            "rejected" => ("rejected", YELLOW),
            _ => ("not applied", YELLOW),
        };
        let _ = writeln!(text, "{style}{label:<12}{style:#}  {}", file.path);
        for finding in &file.findings {
            let line = finding.line.map_or_else(String::new, |line| format!("line {line}: "));
            let message = sanitize_line(&finding.message);
            let _ = writeln!(text, "              {DIM}{}: {line}{message}{DIM:#}", finding.rule);
        }
    }
    let git = &result.git;
    if !git.settings.is_empty() {
        let first = git.settings.first.join(", ");
        let _ = writeln!(
            text,
            "{YELLOW}git settings changed in the copy, not applied: {first}{YELLOW:#}"
        );
    }
    if !git.history.is_empty() {
        text.push_str("git commits, branches and the index of the copy are not carried over\n");
    }
    if !result.ignored.is_empty() {
        let count = result.ignored.count;
        let _ = writeln!(text, "{count} changed files that git ignores are not carried over");
    }
    let has = |outcome: &str| result.files.iter().any(|file| file.outcome == outcome);
    if has("needs_review") {
        text.push_str("hint: `moothall review` lists the drafts that need review\n");
    }
    if record.has_copy && (has("rejected") || has("left")) {
        let _ = writeln!(
            text,
            "hint: the copy is kept; `moothall guard resume {id} -- AGENT` continues, `moothall guard \
             discard {id}` deletes it"
        );
    }
}
