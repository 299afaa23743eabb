//! `moothall report`: exports a consultation as a document.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use clap::ValueEnum as _;
use moothall_core::RunKind;
use moothall_engine::RunRecord;

use super::consult::StoredConsultation;
use super::{runtime, show};
use crate::args::{GlobalArgs, ReportArgs, ReportFormat};
use crate::error::{CliError, CliExit};
use crate::run_store::{self, open_and_find};
use crate::terminal::{self, DIM};
use crate::work_progress::WorkProgress;
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, args: &ReportArgs) -> anyhow::Result<CliExit> {
    let format = select_format(args)?;
    let to_terminal = args.out.is_none() && io::stdout().is_terminal();
    if to_terminal && format == ReportFormat::Pdf {
        return Err(CliError::usage("cannot show a PDF in a terminal")
            .with_hint("write it to a file with `--output memo.pdf`")
            .into());
    }
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let record = runtime()?.block_on(async {
        let (local, row) = open_and_find(&loaded, &args.run).await?;
        RunRecord::read(&*local.store, &row.run_id).await.map_err(run_store::store_error)
    })?;
    if !record.row.spec.is_kind(RunKind::Consult) {
        return Err(CliError::usage("reports are available only for consultations")
            .with_hint("use `moothall show` for this run")
            .into());
    }
    let bytes = render_report(&record, format, args)?;
    match &args.out {
        Some(path) => {
            write(path, &bytes, args.force)?;
            terminal::note(&format!("{DIM}wrote {}{DIM:#}\n", path.display()));
        }
        None => print(&bytes)?,
    }
    Ok(CliExit::Fine)
}

/// The requested format, which the name of the output file must not contradict.
fn select_format(args: &ReportArgs) -> Result<ReportFormat, CliError> {
    let Some(path) = &args.out else { return Ok(args.format.unwrap_or(ReportFormat::Md)) };
    match (args.format, ReportFormat::of_file(path)) {
        (Some(format), Some(named)) if format != named => {
            let name = |format: ReportFormat| {
                format.to_possible_value().map(|value| value.get_name().to_owned())
            };
            let (format, named) = (name(format), name(named));
            let (format, named) = (format.unwrap_or_default(), named.unwrap_or_default());
            let problem =
                format!("cannot write format `{format}` to `{}`, a {named} file", path.display());
            Err(CliError::usage(problem).with_hint(format!(
                "leave out `--format`, or rename the file to end in `.{format}`"
            )))
        }
        (Some(format), _) | (None, Some(format)) => Ok(format),
        (None, None) => {
            let problem = format!("the name `{}` does not select a format", path.display());
            Err(CliError::usage(problem).with_hint("pass `--format md`, or another format"))
        }
    }
}

fn write(path: &Path, bytes: &[u8], is_forced: bool) -> Result<(), CliError> {
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!is_forced);
    let written = options.open(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            CliError::usage(format!("`{}` already exists", path.display()))
                .with_hint("choose another name, or pass `--force` to replace it")
        }
        _ => CliError::failed("cannot write the report").with_source(error),
    })
}

fn render_report(
    record: &RunRecord,
    format: ReportFormat,
    args: &ReportArgs,
) -> anyhow::Result<Vec<u8>> {
    let consultation = || StoredConsultation::of(record);
    let paper = args.paper.into();
    Ok(match format {
        ReportFormat::Md => consultation()?.memo().into_bytes(),
        ReportFormat::Html => consultation()?.memo_html(paper).into_bytes(),
        ReportFormat::Csv => consultation()?.scores_csv().into_bytes(),
        ReportFormat::Pdf => {
            let _progress = WorkProgress::start("typesetting the PDF", false);
            runtime()?.block_on(consultation()?.memo_pdf(paper))?
        }
        ReportFormat::Json => format!("{:#}\n", consultation()?.json(record, false)).into_bytes(),
        ReportFormat::Jsonl => show::receipt(record)?.write()?.into_bytes(),
    })
}

/// Text from models is sanitized for terminals; binary data is written unchanged.
fn print(bytes: &[u8]) -> io::Result<()> {
    match str::from_utf8(bytes) {
        Ok(text) => terminal::print_answer(text),
        Err(_) => match io::stdout().lock().write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        },
    }
}
