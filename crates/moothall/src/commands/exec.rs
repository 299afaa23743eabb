//! `moothall exec`: runs one program in a sandbox, without a model.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use moothall_core::sandbox::{
    ExecuteRequest, GuestPath, InvalidGuestPath, SandboxAttestation, SandboxExecution,
};
use moothall_core::text;
use moothall_sandbox::{OutputListener, version_warning};
use serde_json::json;

use super::{InterruptibleResult, block_on};
use crate::args::{ExecArgs, GlobalArgs};
use crate::artifacts::{self, WrittenFiles};
use crate::config;
use crate::error::{CliError, CliExit};
use crate::isolation;
use crate::logging;
use crate::terminal::{self, DIM, YELLOW};
use crate::work_progress::WorkProgress;

/// Limit for the program and for standard input.
const MAX_TEXT_BYTES: u64 = 8 << 20;

pub(crate) fn run(global: &GlobalArgs, args: &ExecArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let flags = &args.sandbox;
    let policy = isolation::policy(&loaded, flags.isolation, flags.allow_shared_kernel)?;
    let inputs = artifacts::read_inputs(&args.input)?;
    let request = request(args, &inputs)?;
    let progress = WorkProgress::start("starting the sandbox and running the program", args.json);
    let mut screen = ProgramOutputPrinter { progress: Some(progress) };
    let listener = (!args.json).then_some(&mut screen as &mut dyn OutputListener);
    let labels = [("project", "moothall")];
    let work = isolation::execute(&loaded, &policy, &labels, &request, &inputs, listener);
    let done = block_on(work);
    drop(screen);
    let InterruptibleResult::Done(done) = done? else {
        return Err(CliError::new(CliExit::Cancelled, "cancelled").into());
    };
    let (execution, files) = done?;
    let written = match &args.output {
        Some(folder) => artifacts::write(folder, &files)?,
        None => WrittenFiles::default(),
    };
    written.report_skipped();
    if args.json {
        print_json(&execution, &written)?;
    } else {
        note(args, &execution, &written);
    }
    Ok(if execution.exit.is_zero() { CliExit::Fine } else { CliExit::VerdictNegative })
}

fn request(
    args: &ExecArgs,
    inputs: &BTreeMap<GuestPath, Vec<u8>>,
) -> Result<ExecuteRequest, CliError> {
    let source = read_text(&args.program)?;
    let name = args.program.file_name().and_then(|name| name.to_str()).unwrap_or("main.py");
    let path: GuestPath = name.parse().map_err(|error: InvalidGuestPath| {
        CliError::usage("the file name of the program cannot be used in a sandbox")
            .with_source(error)
            .with_hint(artifacts::FILE_NAME_HINT)
    })?;
    let mut request = ExecuteRequest::python(&args.sandbox.image, path, source);
    request.argv.extend_from_slice(&args.args);
    Ok(ExecuteRequest {
        inputs: artifacts::references(inputs),
        stdin: stdin()?,
        limits: isolation::limits(&args.sandbox),
        collect: args.output.is_some(),
        ..request
    })
}

fn read_text(path: &Path) -> Result<String, CliError> {
    let unreadable = || CliError::usage("cannot read the program");
    let file = fs_err::File::open(path).map_err(|error| unreadable().with_source(error))?;
    let mut text = String::new();
    file.take(MAX_TEXT_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable().with_source(error))?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(CliError::usage(format!(
            "the program is too long (limit: {MAX_TEXT_BYTES} bytes)"
        )));
    }
    Ok(text)
}

/// Piped standard input is passed to the program.
fn stdin() -> Result<String, CliError> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        return Ok(text);
    }
    let unreadable =
        |error: std::io::Error| CliError::usage("cannot read standard input").with_source(error);
    std::io::stdin().take(MAX_TEXT_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(CliError::usage(format!(
            "standard input is too long (limit: {MAX_TEXT_BYTES} bytes)"
        ))
        .with_hint("pass it as a file with `--input`"));
    }
    Ok(text)
}

/// Streams the program's output to the same stream. The program is untrusted, so escape sequences
/// are removed for terminals; pipes get the bytes unchanged.
struct ProgramOutputPrinter {
    /// Until the program writes something.
    progress: Option<WorkProgress>,
}

impl OutputListener for ProgramOutputPrinter {
    fn stdout(&mut self, bytes: &[u8]) {
        self.progress = None;
        let mut out = std::io::stdout().lock();
        let _ = match std::io::stdout().is_terminal() {
            true => out.write_all(text::sanitize(&String::from_utf8_lossy(bytes)).as_bytes()),
            false => out.write_all(bytes),
        }
        .and_then(|()| out.flush());
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.progress = None;
        let mut err = std::io::stderr().lock();
        let _ = match std::io::stderr().is_terminal() {
            true => err.write_all(text::sanitize(&String::from_utf8_lossy(bytes)).as_bytes()),
            false => err.write_all(bytes),
        };
    }
}

fn note(args: &ExecArgs, execution: &SandboxExecution, files: &WrittenFiles) {
    let attestation = &execution.attestation;
    terminal::note(&format!(
        "{DIM}{} · {} on {} · image {}{DIM:#}\n",
        execution.exit,
        attestation.class,
        text::sanitize_line(&attestation.engine),
        attestation.image,
    ));
    if let Some(warning) = version_warning_of(attestation) {
        let warning = text::sanitize_line(&warning);
        terminal::note(&format!("{YELLOW}{warning}{YELLOW:#}\n"));
    }
    for stream in [(&execution.stdout, "output"), (&execution.stderr, "error output")] {
        if stream.0.truncated {
            terminal::note(&format!(
                "{YELLOW}the {} was cut after {} bytes{YELLOW:#}\n",
                stream.1, attestation.limits.output_bytes
            ));
        }
    }
    for left in &execution.left_behind {
        let left = text::sanitize_line(left);
        terminal::note(&format!("{YELLOW}not collected: {left}{YELLOW:#}\n"));
    }
    for path in &files.written {
        terminal::note(&format!("{DIM}wrote {}{DIM:#}\n", path.display()));
    }
    if args.output.is_some() && *files == WrittenFiles::default() {
        terminal::note(&format!("{DIM}no files in /workspace/out{DIM:#}\n"));
    }
}

fn version_warning_of(attestation: &SandboxAttestation) -> Option<String> {
    version_warning(&attestation.engine, &attestation.engine_version)
}

fn print_json(execution: &SandboxExecution, files: &WrittenFiles) -> anyhow::Result<()> {
    let mut report = serde_json::to_value(execution)?;
    if let Some(fields) = report.as_object_mut() {
        fields
            .insert("limits_not_held".to_owned(), json!(execution.attestation.unenforced_limits()));
        fields.insert(
            "warnings".to_owned(),
            json!(Vec::from_iter(version_warning_of(&execution.attestation))),
        );
        fields.insert("written".to_owned(), json!(files.written));
        fields.insert("not_written".to_owned(), json!(files.skipped));
    }
    terminal::print(&format!("{report:#}\n"))?;
    Ok(())
}
