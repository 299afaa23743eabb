//! `moothall hook`: tells an agent that its own edit would be rejected or escalated by the gate.
//!
//! A hook is early advice. It sees the tool calls of a client, not what shell commands write, and it
//! judges one call at a time without the checks of the policy.

mod proposed_edits;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use moothall_core::drafts::RelPath;
use moothall_core::gate::{
    CheckResults, FileChange, FileContent, FileContext, FingerprintKey, GateAction, GateDecision,
    Policy, PolicyLayer, auto_run_by, judge,
};
use moothall_workspace::{policy_layers, today};
use serde::Deserialize;
use serde_json::Value;

use self::proposed_edits::{EditPrediction, ProposedEdit, edits_of};
use super::draft::store::{failed, options_of};
use crate::args::{ConnectClient, GlobalArgs, HookArgs};
use crate::config::{self, LoadedConfig};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::terminal;

/// The largest call that is read. Files of drafts are smaller.
const MAX_BYTES: u64 = 64 << 20;
/// Findings that are shown to the agent.
const MAX_FINDINGS: usize = 20;

/// Clients refuse the edit if a hook ends with this code, and show its standard error to the agent.
const REFUSED: CliExit = CliExit::Usage;

/// What a client sends to a hook. It contains more, which is not needed.
#[derive(Debug, Deserialize)]
struct HookCall {
    cwd: PathBuf,
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
}

pub(crate) fn run(global: &GlobalArgs, args: &HookArgs) -> anyhow::Result<CliExit> {
    match check(global, args.client) {
        Ok(None) => Ok(CliExit::Fine),
        Ok(Some(advice)) => {
            terminal::show(&advice);
            Ok(REFUSED)
        }
        // An edit that cannot be judged is refused.
        Err(mut error) => {
            error.exit = REFUSED;
            Err(error.into())
        }
    }
}

/// Returns the advice against an edit, or `None`.
fn check(global: &GlobalArgs, client: ConnectClient) -> Result<Option<String>, CliError> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    let call = read_call()?;
    let edits = edits_of(&call.tool_name, &call.tool_input);
    if edits.is_empty() {
        return Ok(None);
    }
    let workspace = workspace_of(&loaded, client, &call.cwd);
    let options = options_of(global.config.as_deref(), &loaded, &workspace)?;
    let layers: Vec<PolicyLayer> =
        policy_layers(&options).map_err(failed)?.into_iter().map(|(_, layer)| layer).collect();
    let policy = Policy::of(&layers).map_err(|fault| {
        CliError::usage(fault.to_string()).with_hint("run `moothall policy check` for details")
    })?;
    let mut advice = None;
    for edit in &edits {
        // Clients ask before they write outside of the project.
        let Some(path) = inside(&options.workspace, &call.cwd, &edit.path) else { continue };
        let judged = judge_edit(&policy, &options.workspace, &path, edit)?;
        advice = advice.max(judged);
    }
    Ok(advice.map(|EditAdvice { text, .. }| text))
}

/// Text against an edit; the most severe one is shown.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EditAdvice {
    action: GateAction,
    text: String,
}

fn read_call() -> Result<HookCall, CliError> {
    let mut text = Vec::new();
    let invalid = || {
        CliError::usage("standard input is not a tool call of an agent")
            .with_hint("agents start this command; `moothall connect --hook` sets it up")
    };
    let read = std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| invalid().with_source(error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(CliError::usage("the tool call is too large"));
    }
    serde_json::from_slice(&text).map_err(|error| invalid().with_source(error))
}

/// The directory of the project. The agent may have changed its working directory since it started.
fn workspace_of(loaded: &LoadedConfig, client: ConnectClient, cwd: &Path) -> PathBuf {
    let variable = match client {
        ConnectClient::ClaudeCode => Some("CLAUDE_PROJECT_DIR"),
        ConnectClient::Gemini => Some("GEMINI_PROJECT_DIR"),
        _ => None,
    };
    let project = variable.and_then(|name| loaded.environment.get(name)).map(PathBuf::from);
    project.filter(|folder| folder.is_dir()).unwrap_or_else(|| cwd.to_owned())
}

/// The path below the workspace; `None` if it is outside.
fn inside(workspace: &Path, cwd: &Path, path: &str) -> Option<String> {
    let absolute = without_dots(&cwd.join(path));
    let parent = absolute.parent().and_then(|parent| fs_err::canonicalize(parent).ok());
    let real = match (parent, absolute.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => absolute.clone(),
    };
    let below = real.strip_prefix(workspace).or_else(|_| absolute.strip_prefix(workspace)).ok()?;
    Some(below.to_str()?.to_owned())
}

/// Resolves `.` and `..` by name only.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

fn judge_edit(
    policy: &Policy,
    workspace: &Path,
    path: &str,
    edit: &ProposedEdit,
) -> Result<Option<EditAdvice>, CliError> {
    let refuse = |action, text: String| Ok(Some(EditAdvice { action, text }));
    let path = match RelPath::parse(path) {
        Ok(path) => path,
        Err(fault) => return refuse(GateAction::Reject, format!("moothall: {fault}\n")),
    };
    let base = match fs_err::read(workspace.join(path.as_str())) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(CliError::failed("cannot read the file to edit").with_source(error));
        }
    };
    let text = base.as_deref().map(String::from_utf8_lossy);
    let after = match edit.apply(text.as_deref()) {
        EditPrediction::Content(after) => Some(after),
        EditPrediction::Deleted => None,
        // The content is unknown, so only the path is judged.
        EditPrediction::Unknown => {
            let is_special = policy.protects(&path) || auto_run_by(&path).is_some();
            let shown = display::line(path.as_str());
            return match (policy.denies(&path), is_special) {
                (true, _) => refuse(GateAction::Reject, rejection(&format!("  {shown}\n"))),
                (false, true) => refuse(GateAction::Escalate, escalation(&format!("  {shown}\n"))),
                (false, false) => Ok(None),
            };
        }
    };
    let content = |bytes| FileContent { bytes, executable: false };
    let change = FileChange {
        path: &path,
        rename_to: None,
        base: base.as_deref().map(content),
        draft: after.as_deref().map(str::as_bytes).map(content),
        around: FileContext::default(),
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let day = today(since.as_millis() as u64);
    let key = FingerprintKey::new([0; 32]);
    let verdict = judge(policy, &[change], &CheckResults::default(), &key, day);
    Ok(match verdict.action {
        GateAction::Allow | GateAction::Warn => None,
        GateAction::Escalate => Some(EditAdvice {
            action: GateAction::Escalate,
            text: escalation(&findings_text(&verdict)),
        }),
        GateAction::Reject => Some(EditAdvice {
            action: GateAction::Reject,
            text: rejection(&findings_text(&verdict)),
        }),
    })
}

fn escalation(findings: &str) -> String {
    format!(
        "moothall: this edit needs review by a person\n{findings}\
         Propose it with the moothall tools instead: draft_request, draft_edit, draft_submit. \
         Do not make it in another way.\n"
    )
}

fn rejection(findings: &str) -> String {
    format!(
        "moothall: the policy rejects this edit\n{findings}\
         Fix these findings first. Do not make it in another way.\n"
    )
}

fn findings_text(verdict: &GateDecision) -> String {
    let mut text = String::new();
    let severe = verdict.findings.iter().filter(|one| one.action >= GateAction::Escalate);
    for one in severe.take(MAX_FINDINGS) {
        let line = one.line.map_or_else(String::new, |line| format!(":{line}"));
        let path = display::line(one.path.as_str());
        let _ = writeln!(text, "  {} {path}{line}  {}", one.rule.name(), one.message);
    }
    text
}

#[cfg(test)]
#[path = "hook_tests.rs"]
mod tests;
