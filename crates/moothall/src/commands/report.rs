//! `moothall report`: exports a consultation as a document.

use std::io::{self, IsTerminal as _, Write as _};

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
    let to_terminal = args.out.is_none() && io::stdout().is_terminal();
    if to_terminal && args.format == ReportFormat::Pdf {
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
    let bytes = render_report(&record, args)?;
    match &args.out {
        Some(path) => {
            fs_err::write(path, &bytes)
                .map_err(|error| CliError::failed("cannot write the report").with_source(error))?;
            terminal::note(&format!("{DIM}wrote {}{DIM:#}\n", path.display()));
        }
        None => print(&bytes)?,
    }
    Ok(CliExit::Fine)
}

fn render_report(record: &RunRecord, args: &ReportArgs) -> anyhow::Result<Vec<u8>> {
    let consultation = || StoredConsultation::of(record);
    let paper = args.paper.into();
    Ok(match args.format {
        ReportFormat::Md => consultation()?.memo().into_bytes(),
        ReportFormat::Html => consultation()?.memo_html(paper).into_bytes(),
        ReportFormat::Csv => consultation()?.scores_csv().into_bytes(),
        ReportFormat::Pdf => {
            let _progress = WorkProgress::start("typesetting the PDF", false);
            runtime()?.block_on(consultation()?.memo_pdf(paper))?
        }
        ReportFormat::Json => show::receipt(record)?.write()?.into_bytes(),
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
