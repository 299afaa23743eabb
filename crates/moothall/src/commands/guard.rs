//! `moothall guard`: runs a coding agent on a private copy of the workspace and judges what it
//! changed.

mod agent;
mod judge;
mod record;
mod review_notes;
mod view_paths;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use moothall_core::gate::{EntryContent, EntryKind, FileEntry, shown_path, unified};
use moothall_core::text::sanitize_line;
use moothall_sandbox::guard::{GuardFault, GuardPart};
use serde_json::json;

use self::agent::run_agent;
use self::judge::{judge_run, result_text};
use self::record::{GuardEnd, GuardOptions, GuardRun, GuardState};
use self::review_notes::{REVIEW_FILE, REVIEW_VARIABLE, review_notes, write_review_notes};
use super::draft::store::{OpenDraftStore, failed, open};
use super::review::painted;
use crate::args::{GlobalArgs, GuardArgs, GuardCommand, GuardFlags};
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM};

pub(crate) use self::agent::probe;

const WORKER: &str = "guard";

pub(crate) fn run(global: &GlobalArgs, args: &GuardArgs) -> anyhow::Result<CliExit> {
    let opened = open(global, &args.workspace)?;
    let json = args.workspace.json;
    match &args.command {
        None => {
            if args.agent.is_empty() {
                return Err(CliError::usage("missing agent command")
                    .with_hint("pass it after `--`: `moothall guard -- claude -p 'fix the tests'`")
                    .into());
            }
            opened.warn_about_policy();
            let options = GuardOptions::of(&args.flags)?;
            let mut run = GuardRun::create(&opened, &args.agent, options)?;
            start_and_judge(&opened, &mut run, &args.agent, &args.flags, json)
        }
        Some(GuardCommand::Resume { run, flags, agent }) => {
            let mut run = GuardRun::open_unlocked(&opened, run.as_deref())?;
            run.require_copy()?;
            run.record.options.replace(flags)?;
            let agent = match agent.is_empty() {
                true => run.record.agent.iter().map(OsString::from).collect(),
                false => agent.clone(),
            };
            run.set_agent(&agent)?;
            run.continue_base(&opened.store)?;
            let notes = review_notes(&opened, &run)?;
            write_review_notes(&run, &notes)?;
            if !notes.is_empty() && !json {
                terminal::note(&format!(
                    "{notes}{DIM}the agent finds this review in {REVIEW_FILE} \
                     (${REVIEW_VARIABLE}){DIM:#}\n"
                ));
            }
            start_and_judge(&opened, &mut run, &agent, flags, json)
        }
        Some(GuardCommand::Submit { run, check }) => {
            let mut run = GuardRun::open_unlocked(&opened, run.as_deref())?;
            run.require_copy()?;
            if !check.is_empty() {
                run.record.options.checks.clone_from(check);
            }
            judge_and_print(&opened, &mut run, json)
        }
        Some(GuardCommand::Status { run, all }) => status(&opened, run.as_deref(), *all, json),
        Some(GuardCommand::Diff { run }) => diff(&opened, run.as_deref(), json),
        Some(GuardCommand::Discard { run }) => {
            let mut run = GuardRun::open_unlocked(&opened, run.as_deref())?;
            run.discard()?;
            let text = format!("discarded the copy of {}\n", run.record.id);
            super::draft::print_report(json, &json!({ "discarded": run.record.id }), &text)
        }
    }
}

/// Runs one of the helper processes of a guarded agent.
pub(crate) fn enter(args: impl Iterator<Item = OsString>) -> ExitCode {
    // The supervisor reports the problem.
    match moothall_sandbox::guard::enter(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn start_and_judge(
    opened: &OpenDraftStore,
    run: &mut GuardRun,
    agent: &[OsString],
    flags: &GuardFlags,
    json: bool,
) -> anyhow::Result<CliExit> {
    let started = run_agent(run, agent, flags, json);
    let end = match started {
        Ok(end) => end,
        Err(error) => {
            run.abandon();
            return Err(error.into());
        }
    };
    run.save(GuardState::Stopped)?;
    let id = &run.record.id;
    if end == GuardEnd::Interrupted {
        let hint = format!(
            "`moothall guard resume {id}` continues, `moothall guard submit {id}` judges the changes, \
             `moothall guard discard {id}` deletes them"
        );
        return Err(CliError::notice(
            CliExit::Cancelled,
            format!("stopped the agent; its copy {id} is kept and nothing was judged"),
        )
        .with_hint(hint)
        .into());
    }
    if !json {
        terminal::note(&format!("{DIM}guard {id}: {}{DIM:#}\n", end.text()));
    }
    judge_and_print(opened, run, json)
}

fn judge_and_print(
    opened: &OpenDraftStore,
    run: &mut GuardRun,
    json: bool,
) -> anyhow::Result<CliExit> {
    let exit = judge_run(opened, run, json)?;
    match json {
        true => terminal::print(&format!("{:#}\n", json!(run.record)))?,
        false => terminal::print(&result_text(&run.record))?,
    }
    Ok(exit)
}

fn status(
    opened: &OpenDraftStore,
    name: Option<&str>,
    all: bool,
    json: bool,
) -> anyhow::Result<CliExit> {
    if all {
        let runs = GuardRun::list(opened)?;
        let records: Vec<_> = runs.iter().map(|run| &run.record).collect();
        let mut text = String::new();
        if runs.is_empty() {
            text.push_str("no guarded runs\n");
        }
        for run in &runs {
            let record = &run.record;
            let agent = sanitize_line(&record.agent.join(" "));
            let agent = crate::display::cut(&agent, 60);
            let _ =
                writeln!(text, "{BOLD}{}{BOLD:#}  {:<9}  {agent}", record.id, run.state().as_str());
        }
        return super::draft::print_report(json, &json!({ "runs": records }), &text);
    }
    let run = GuardRun::find(opened, name)?;
    let mut record = run.record.clone();
    record.state = run.state();
    super::draft::print_report(json, &json!(record), &result_text(&record))
}

/// Prints the changes of a copy. Nothing may run in it, so that the copy is not changed while it is
/// read.
fn diff(opened: &OpenDraftStore, name: Option<&str>, json: bool) -> anyhow::Result<CliExit> {
    let run = GuardRun::open_unlocked(opened, name)?;
    run.require_copy()?;
    let changes = opened.store.copy_changes(&run.copy_folder()).map_err(failed)?;
    let mut text = String::new();
    for file in &changes.files {
        let path = shown_path(&file.path);
        match (side_text(&file.old), side_text(&file.new)) {
            (Some(old), Some(new)) => {
                if is_executable(&file.old) != is_executable(&file.new) && file.new.is_some() {
                    let mode =
                        if is_executable(&file.new) { "executable" } else { "not executable" };
                    let _ = writeln!(text, "# {path} is {mode}");
                }
                text.push_str(&unified(&path, &old, &new));
            }
            _ => {
                let _ = writeln!(text, "# {path}: not a text file");
            }
        }
    }
    for path in changes.git.settings.first.iter().chain(&changes.git.history.first) {
        let _ = writeln!(text, "# {path}: stays in the copy");
    }
    let report = json!({ "run": run.record.id, "diff": text });
    super::draft::print_report(json, &report, &painted(&text))
}

fn is_executable(side: &Option<FileEntry>) -> bool {
    side.as_ref().is_some_and(|entry| entry.kind == EntryKind::Executable)
}

fn side_text(side: &Option<FileEntry>) -> Option<String> {
    match side {
        None => Some(String::new()),
        Some(FileEntry {
            kind: EntryKind::File | EntryKind::Executable,
            content: EntryContent::Bytes(bytes),
        }) => String::from_utf8(bytes.clone()).ok(),
        Some(_) => None,
    }
}

/// Explains why an agent cannot be isolated on this machine.
pub(crate) fn guard_error(fault: &GuardFault) -> CliError {
    let hint = match fault.part {
        GuardPart::Namespaces => Some(
            "allow unprivileged user namespaces (`sysctl kernel.apparmor_restrict_unprivileged_userns=0` \
             on Ubuntu), or run outside of a container",
        ),
        GuardPart::Overlay => Some("pass `--full-copy`"),
        GuardPart::View => Some("inside a container, run it privileged or use a virtual machine"),
        GuardPart::Landlock => {
            Some("use Linux 6.2 or newer, with `landlock` in the kernel parameter `lsm`")
        }
        GuardPart::Limits => {
            Some("use a host with cgroups, as root, or omit `--memory` and `--processes`")
        }
        GuardPart::Program => Some("pass `--read PATH` if the program needs more directories"),
        GuardPart::Network | GuardPart::Filter | GuardPart::Control => None,
    };
    let exit = match fault.part {
        GuardPart::Program => CliExit::Usage,
        _ => CliExit::Failed,
    };
    let error = CliError::new(exit, fault.problem.clone());
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
