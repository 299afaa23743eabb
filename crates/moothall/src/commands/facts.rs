//! `moothall facts`: shows a company's filings as a fact sheet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use moothall_core::consult::{EvidenceSource, GatherRequest};
use moothall_core::evidence::{
    CompanyProfile, DataCheck, Evidence, FactRow, FactSheet, FilingEvent, FiscalPeriod, Ticker,
};
use moothall_core::report::csv_line;
use moothall_core::text::sanitize_line;
use moothall_sources::DocumentFolder;
use serde_json::{Value, json};

use super::{InterruptibleResult, block_on};
use crate::args::{EvidenceFlags, FactsCommandArgs, GlobalArgs};
use crate::config::{self, LoadedConfig};
use crate::error::{CliError, CliExit};
use crate::evidence_sources::EvidenceSources;
use crate::logging;
use crate::pdf_sandbox::PdfSandbox;
use crate::terminal::{self, BOLD, DIM, YELLOW};
use crate::work_progress::WorkProgress;

/// Disclaimer below everything about a company.
const NOTICE: &str = "Automated research aid based on filings. Not investment, legal, tax or accounting advice; not a recommendation to buy or sell securities. \
Figures are XBRL values as filed and are not audited here; check the filings.";

/// Years in the table.
const YEARS: i32 = 5;
/// Limit for the checks of each kind; JSON contains all.
const MAX_CHECKS: usize = 8;

pub(crate) fn run(global: &GlobalArgs, args: &FactsCommandArgs) -> anyhow::Result<CliExit> {
    let evidence = gather(global, Some(&args.ticker), None, &args.evidence, args.json)?;
    let sheet = sheet_of(&evidence)?;
    let text = if args.json {
        format!("{:#}\n", report(&evidence, sheet))
    } else if args.csv {
        csv(&rows(&evidence, sheet))
    } else {
        page(&evidence, sheet)
    };
    terminal::print(&text)?;
    if args.csv && evidence.company.fictional {
        terminal::note(&format!("{YELLOW}fictional: {FICTION}{YELLOW:#}\n"));
    }
    Ok(CliExit::Fine)
}

/// Gathers evidence as requested by the flags of a command.
pub(crate) fn gather(
    global: &GlobalArgs,
    ticker: Option<&Ticker>,
    files: Option<&Path>,
    flags: &EvidenceFlags,
    is_json: bool,
) -> anyhow::Result<Evidence> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let request = GatherRequest {
        ticker: ticker.map(ToString::to_string).unwrap_or_default(),
        source: if ticker.is_some() { EvidenceSource::Filings } else { EvidenceSource::Files },
        as_of: flags.as_of,
        allow_stale: flags.allow_stale,
        name: files.filter(|_| ticker.is_none()).map(DocumentFolder::label),
        documents: files.map(DocumentFolder::label),
        news: None,
    };
    let work = gather_evidence(&loaded, &request, files, flags.offline.as_deref());
    let progress = WorkProgress::start(&gather_step(ticker), is_json);
    let done = block_on(work);
    drop(progress);
    match done? {
        InterruptibleResult::Done(evidence) => Ok(evidence?),
        InterruptibleResult::Cancelled => {
            Err(CliError::new(CliExit::Cancelled, "cancelled").into())
        }
    }
}

fn gather_step(ticker: Option<&Ticker>) -> String {
    match ticker {
        Some(ticker) => format!("downloading the filings of {ticker}"),
        None => "reading the documents".to_owned(),
    }
}

pub(crate) async fn gather_evidence(
    loaded: &LoadedConfig,
    request: &GatherRequest,
    files: Option<&Path>,
    offline: Option<&Path>,
) -> Result<Evidence, CliError> {
    let mut filings = match request.source {
        EvidenceSource::Files => EvidenceSources::none(),
        EvidenceSource::Filings | EvidenceSource::Synthetic => {
            EvidenceSources::open(loaded, offline, &request.ticker, None)?
        }
    };
    if let Some(folder) = files {
        filings = filings.with_documents(folder, PdfSandbox::new(loaded, None, false));
    }
    let gathered = filings.gather(request).await;
    filings.shut_down().await;
    gathered
}

/// The fact sheet. Evidence from filings always has one.
pub(crate) fn sheet_of(evidence: &Evidence) -> Result<&FactSheet, CliError> {
    evidence.sheet.as_ref().ok_or_else(|| CliError::failed("no facts found"))
}

/// The ticker, or an empty string.
pub(crate) fn symbol(company: &CompanyProfile) -> &str {
    company.ticker.as_ref().map_or("", Ticker::as_str)
}

/// Label for fictional companies.
pub(crate) const FICTION: &str = "this company does not exist; its sample filings are built in";

fn page(evidence: &Evidence, sheet: &FactSheet) -> String {
    let company = &evidence.company;
    let mut text = format!("{BOLD}{}{BOLD:#}  {}\n", sanitize_line(&company.name), symbol(company));
    if company.fictional {
        let _ = writeln!(text, "{YELLOW}fictional{YELLOW:#}    {FICTION}");
    }
    for (name, value) in header(evidence, sheet) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<12} {}", sanitize_line(&value));
    }
    for warning in evidence.warnings() {
        let _ = writeln!(text, "{YELLOW}warning{YELLOW:#}      {}", sanitize_line(&warning));
    }
    text.push('\n');
    text.push_str(&table(sheet));
    let _ = writeln!(text, "\n{DIM}{NOTICE}{DIM:#}");
    text
}

fn header(evidence: &Evidence, sheet: &FactSheet) -> Vec<(&'static str, String)> {
    let company = &evidence.company;
    let mut lines = vec![("CIK", sheet.cik.to_string())];
    lines.extend(company.industry.clone().map(|industry| ("industry", industry)));
    if let Some((year, end)) = sheet.fiscal_year_ends.last_key_value() {
        lines.push(("fiscal year", format!("FY{year} ended {end}")));
    }
    lines.push(("source", evidence.provenance.to_string()));
    lines.push(("as of", sheet.as_of.to_string()));
    lines.push(("F0", sheet.hash().to_string()));
    if let Some(newest) = evidence.newest_filing() {
        lines.push((
            "last filing",
            format!(
                "{} {}, filed {}, period ended {}",
                newest.form, newest.accession, newest.filed, newest.end
            ),
        ));
    }
    if let Some(newest) = evidence.events.first() {
        let (count, filed, subjects) = (evidence.events.len(), newest.filed, newest.subjects());
        lines.push(("events E0", format!("{count}, newest {filed}: {subjects}")));
    }
    if let Some(first) = evidence.passages.first() {
        let (count, form, accession) = (evidence.passages.len(), &first.form, &first.accession);
        lines.push(("passages T0", format!("{count} from {form} {accession}")));
    }
    lines.extend(evidence.missing.iter().map(|missing| ("missing", missing.clone())));
    lines.extend(sheet.missing_values().map(|gaps| ("gaps", gaps)));
    lines.extend(checks(sheet).into_iter().map(|check| ("check", check)));
    lines
}

/// Inconsistencies and restatements in the years of the table. There are dozens of restatements, so
/// they are grouped by period.
fn checks(sheet: &FactSheet) -> Vec<String> {
    let oldest = sheet.newest_year().map_or(i32::MIN, |year| year - (YEARS - 1));
    let is_shown = |period: &FiscalPeriod| period.fiscal_year() >= oldest;
    let mut restated: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    let mut others: BTreeMap<u8, Vec<String>> = BTreeMap::new();
    for check in &sheet.checks {
        let kind = match check {
            DataCheck::Restated { id, .. } if is_shown(&id.period) => {
                restated.entry(id.period).or_default().push(&id.metric);
                continue;
            }
            DataCheck::Identity { period, .. } if is_shown(period) => 1,
            DataCheck::Candidates { id, .. } if is_shown(&id.period) => 2,
            DataCheck::Restated { .. }
            | DataCheck::Identity { .. }
            | DataCheck::Candidates { .. } => continue,
            DataCheck::Split { .. } => 0,
            DataCheck::UnreadableRows { .. } => 3,
        };
        others.entry(kind).or_default().push(check.to_string());
    }
    let restated = restated
        .into_iter()
        .map(|(period, metrics)| format!("restated in {period}: {}", metrics.join(", ")))
        .collect();
    let mut shown = Vec::new();
    for mut lines in others.into_values().chain([restated]) {
        let more = lines.len().saturating_sub(MAX_CHECKS);
        // Keep the newest periods, which come last.
        shown.extend(lines.drain(more..));
        if more > 0 {
            shown.push(format!("and {more} more of this kind (see --json)"));
        }
    }
    shown
}

/// The sheet's table with aligned columns.
fn table(sheet: &FactSheet) -> String {
    let written = sheet.table(u64::MAX);
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| sanitize_line(cell.trim())).collect()
    };
    let is_rule = |line: &str| line.starts_with("|---");
    let rows: Vec<Vec<String>> =
        written.lines().filter(|line| line.starts_with('|') && !is_rule(line)).map(cells).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    // The first line names the company, which is already shown above.
    for legend in written.lines().skip(1).take_while(|line| !line.starts_with('|')) {
        let _ = writeln!(text, "{DIM}{}{DIM:#}", sanitize_line(legend));
    }
    for (at, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = match line.is_empty() {
                true => write!(line, "{cell:<width$}"),
                false => write!(line, "  {cell:>width$}"),
            };
        }
        let line = line.trim_end();
        let _ = match at {
            0 => writeln!(text, "{BOLD}{line}{BOLD:#}"),
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

/// All facts. Fictional companies have no links to the SEC.
fn rows(evidence: &Evidence, sheet: &FactSheet) -> Vec<FactRow> {
    let mut rows = sheet.rows();
    if evidence.company.fictional {
        rows.iter_mut().for_each(|row| row.link.clear());
    }
    rows
}

fn csv(rows: &[FactRow]) -> String {
    let lines = rows.iter().map(|row| csv_line(&row.cells()));
    std::iter::once(csv_line(&FactRow::HEADINGS)).chain(lines).collect()
}

pub(crate) fn report(evidence: &Evidence, sheet: &FactSheet) -> Value {
    let link = |accession: &str| (!evidence.company.fictional).then(|| sheet.link(accession));
    let event = |event: &FilingEvent| {
        let mut value = json!(event);
        value["subjects"] = json!(event.subjects());
        value["link"] = json!(link(&event.accession));
        value
    };
    json!({
        "company": evidence.company,
        "fictional": evidence.company.fictional,
        "provenance": evidence.provenance,
        "currency": sheet.currency,
        "as_of": sheet.as_of,
        "f0_sha256": sheet.hash(),
        "newest_filing": evidence.newest_filing().map(|filed| json!({
            "form": filed.form,
            "accession": filed.accession,
            "filed": filed.filed,
            "period_end": filed.end,
            "link": link(&filed.accession),
        })),
        "fiscal_year_ends": sheet.fiscal_year_ends,
        "warnings": evidence.warnings(),
        "missing": evidence.missing,
        "gaps": sheet.gaps.iter().map(|gap| json!({"id": gap.id, "reason": gap.reason.to_string()})).collect::<Vec<_>>(),
        "checks": sheet.checks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "facts": rows(evidence, sheet),
        "events": evidence.events.iter().map(event).collect::<Vec<_>>(),
        "passages": evidence.passages,
        "sources": evidence.sources,
        "notice": NOTICE,
    })
}
