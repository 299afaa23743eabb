//! The result of a consultation as text, starting with the ranking.

use std::fmt::Write as _;

use moothall_core::consult::{CloseCall, ConsultResult, RankedMove};
use moothall_core::debate::DebateResult;
use moothall_core::evidence::Evidence;
use moothall_core::report::{self, ConsultReport, VerdictSummary};
use moothall_core::{Conclusion, FindingSeverity};

use super::verdict_table;
use crate::display;
use crate::display::table::{Table, TableColumn};
use crate::terminal::{self, BOLD, DIM, YELLOW};

/// Longer titles are cut in tables.
const TITLE_CHARS: usize = 60;

/// Longer objections are cut.
const OBJECTION_CHARS: usize = 300;

/// Longer lines about the do-nothing option and the value of the debates are cut.
const SECTION_CHARS: usize = 600;

/// Disclaimer below every recommendation.
pub(crate) const NOT_ADVICE: &str = "AI-generated research aid, not investment, \
    legal, tax or accounting advice; not a recommendation to buy or sell securities";

/// Shown with the sample company HLXI.
pub(crate) const FICTIONAL_LABEL: &str = "fictional company";

/// Company, evidence, ranking, missing evidence.
pub(crate) fn text(view: &ConsultReport) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut text, view);
    text
}

fn write_all(text: &mut String, view: &ConsultReport) -> std::fmt::Result {
    let ticker = view.input.gather.subject();
    match view.evidence() {
        Some(evidence) => write_company(text, evidence)?,
        None => writeln!(text, "{BOLD}{ticker}{BOLD:#}")?,
    }
    if let Some(outcome) = &view.outcome
        && let Conclusion::Failed { .. } | Conclusion::NotGathered { .. } = outcome.conclusion
    {
        writeln!(text, "{YELLOW}no ranking{YELLOW:#}")?;
        for finding in &outcome.findings {
            writeln!(text, "  {}", display::finding(finding))?;
        }
    }
    if let Some(ranked) = &view.ranked {
        if view.outcome.is_none() {
            writeln!(text, "\n{YELLOW}not finished: results so far{YELLOW:#}")?;
        }
        write_ranked(text, view, ranked)?;
    }
    Ok(())
}

fn write_company(text: &mut String, evidence: &Evidence) -> std::fmt::Result {
    let company = &evidence.company;
    let name = display::line(&company.name);
    match &company.ticker {
        Some(ticker) => writeln!(text, "{BOLD}{name}{BOLD:#} ({ticker})")?,
        None => writeln!(text, "{BOLD}{name}{BOLD:#}")?,
    }
    if company.fictional {
        writeln!(text, "{YELLOW}{FICTIONAL_LABEL}; its sample filings are built in{YELLOW:#}")?;
    }
    let mut parts = vec![display::line(&evidence.provenance.to_string())];
    if let Some(sheet) = &evidence.sheet {
        parts.push(format!("as of {}", sheet.as_of));
    }
    if let Some(newest) = evidence.newest_filing() {
        parts.push(format!("newest filing: {} of {}", newest.form, newest.filed));
    }
    parts.extend(user_sources(evidence));
    writeln!(text, "{DIM}evidence: {}{DIM:#}", display::line(&parts.join(" · ")))?;
    for warning in evidence.warnings() {
        writeln!(text, "{YELLOW}note: {}{YELLOW:#}", display::line(&warning))?;
    }
    Ok(())
}

/// Counts of the user's documents and of headlines.
pub(crate) fn user_sources(evidence: &Evidence) -> Vec<String> {
    let (files, headlines) = (evidence.documents.len(), evidence.headlines.len());
    let passages: usize = evidence.documents.iter().map(|one| one.passages.len()).sum();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut parts = Vec::new();
    if files > 0 {
        let (of_files, of_passages) = (plural(files), plural(passages));
        parts.push(format!("{files} user document{of_files} with {passages} passage{of_passages}"));
    }
    if headlines > 0 {
        parts.push(format!("{headlines} headline{}", plural(headlines)));
    }
    parts
}

fn write_ranked(
    text: &mut String,
    view: &ConsultReport,
    ranked: &ConsultResult,
) -> std::fmt::Result {
    writeln!(text)?;
    if let Some(verdict) = VerdictSummary::of(view) {
        verdict_table::write(text, &verdict, verdict_table::width())?;
        writeln!(text)?;
    }
    match ranked.recommended.is_empty() {
        true if ranked.verdict.is_some() && view.outcome.is_none() => {}
        true => writeln!(text, "{BOLD}No move is recommended.{BOLD:#}")?,
        false => writeln!(text, "{BOLD}Recommended{BOLD:#}")?,
    }
    for one in &ranked.recommended {
        recommended(text, view, one)?;
    }
    for call in ranked.close_calls() {
        writeln!(text, "{YELLOW}{}{YELLOW:#}", close_call(&call))?;
    }
    if ranked.verdict.is_some() {
        write_marks(text, view, ranked)?;
    } else if !ranked.other.is_empty() {
        writeln!(text, "\n{BOLD}Others{BOLD:#}")?;
        write_others(text, view, &ranked.other)?;
    }
    for section in report::sections(view).iter().filter(|section| section.is_about_scores()) {
        writeln!(text, "\n{BOLD}{}{BOLD:#}", section.heading)?;
        for line in &section.lines {
            writeln!(text, "  {}", display::cut(line, SECTION_CHARS))?;
        }
    }
    if !ranked.missing.is_empty() {
        writeln!(text, "\n{BOLD}Missing{BOLD:#}")?;
        for missing in &ranked.missing {
            writeln!(text, "  {}", display::cut(missing, OBJECTION_CHARS))?;
        }
    }
    Ok(())
}

fn recommended(text: &mut String, view: &ConsultReport, one: &RankedMove) -> std::fmt::Result {
    let has_verdict = view.ranked.as_ref().is_some_and(|ranked| ranked.verdict.is_some());
    // Positions within a tier mean nothing.
    let place = match one.rank {
        _ if has_verdict => "-".to_owned(),
        Some(rank) => format!("{rank}."),
        None => "-.".to_owned(),
    };
    let (id, title) = (display::line(&one.move_id), display::line(&one.title));
    writeln!(text, " {place} {BOLD}{title}{BOLD:#} {DIM}({id}){DIM:#}")?;
    if let Some(debated) = &one.debated {
        let score = match has_verdict {
            true => format!("defence score {}", debated.score_text()),
            false => debated.score_text(),
        };
        let mut parts = vec![score, cards(debated), format!("score range {}", debated.spread)];
        parts.extend(support(one));
        writeln!(text, "    {}", parts.join(" · "))?;
        match debated.hardest_open() {
            Some(objection) => {
                let (severity, state) = (objection.severity.word(), objection.state.word());
                let said = display::cut(&objection.text, OBJECTION_CHARS);
                writeln!(text, "    strongest objection ({severity}, {state}): {said}")?;
            }
            None => writeln!(text, "    no open objections")?,
        }
    }
    for mark in marks(view, one) {
        writeln!(text, "    {YELLOW}{mark}{YELLOW:#}")?;
    }
    Ok(())
}

/// Marks of moves that the tier table shows without them.
fn write_marks(
    text: &mut String,
    view: &ConsultReport,
    ranked: &ConsultResult,
) -> std::fmt::Result {
    let marked = ranked.other.iter().map(|one| (one, marks(view, one)));
    let marked: Vec<_> = marked.filter(|(_, marks)| !marks.is_empty()).collect();
    if marked.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n{BOLD}Notes on other moves{BOLD:#}")?;
    for (one, marks) in marked {
        for mark in marks {
            writeln!(text, "  {:<4} {YELLOW}{mark}{YELLOW:#}", display::line(&one.move_id))?;
        }
    }
    Ok(())
}

fn write_others(text: &mut String, view: &ConsultReport, moves: &[RankedMove]) -> std::fmt::Result {
    let cells =
        |cell: &dyn Fn(&RankedMove) -> String| -> Vec<String> { moves.iter().map(cell).collect() };
    let of_debate = |one: &RankedMove, value: fn(&DebateResult) -> String| {
        one.debated.as_ref().map_or_else(|| "-".to_owned(), value)
    };
    let rank = |one: &RankedMove| one.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    let score = |one: &RankedMove| of_debate(one, DebateResult::score_text);
    let range = |one: &RankedMove| of_debate(one, |debated| debated.spread.to_string());
    let columns = vec![
        TableColumn::number("rank", 3, cells(&rank)),
        TableColumn::text("move", 0, cells(&|one| display::line(&one.move_id))),
        TableColumn::number("score", 1, cells(&score)).at_least(7),
        TableColumn::number("range", 2, cells(&range)).at_least(6),
        TableColumn::text("title", 0, cells(&|one| display::cut(&one.title, TITLE_CHARS))),
    ];
    let table = Table::new(columns, terminal::stdout_columns());
    writeln!(text, "{DIM}{}{DIM:#}", table.header())?;
    let indent = table.last_offset();
    for (one, row) in moves.iter().zip(table.rows()) {
        writeln!(text, "{row}")?;
        for mark in marks(view, one) {
            writeln!(text, "{:indent$}{YELLOW}{mark}{YELLOW:#}", "")?;
        }
    }
    Ok(())
}

/// The total score of each decision maker.
fn cards(debated: &DebateResult) -> String {
    let card = |(member, card): (&String, &moothall_core::debate::Scorecard)| {
        format!("{} {}", display::line(member), card.sum())
    };
    let given = debated.scorecards.iter().filter(|(_, card)| card.is_given());
    given.map(card).collect::<Vec<_>>().join(", ")
}

fn support(one: &RankedMove) -> Option<String> {
    let counted = one.support;
    (counted.total > 0)
        .then(|| format!("{} of {} numbers supported", counted.supported, counted.total))
}

/// Notes on a move that a reader needs besides its score.
pub(crate) fn marks(view: &ConsultReport, one: &RankedMove) -> Vec<String> {
    let mut marks = Vec::new();
    let grave =
        one.findings.iter().filter(|found| found.severity >= FindingSeverity::Escalate).count();
    marks.extend(one.said.iter().map(|said| display::line(&said.describe())));
    match (&one.debated, &view.outcome) {
        _ if one.is_vetoed() => return marks,
        (Some(_), _) => {}
        (None, Some(_)) => marks.push("not debated".to_owned()),
        (None, None) => marks.push(debate_progress(view, &one.move_id)),
    }
    if grave > 0 {
        let first = one.findings.iter().max_by_key(|found| found.severity);
        let first = first.map(display::finding).unwrap_or_default();
        let more = if grave > 1 { format!(" (and {} more)", grave - 1) } else { String::new() };
        let held = if one.rank.is_none() { "held back" } else { "approved despite" };
        marks.push(format!("{held}: {first}{more}"));
    } else if !one.findings.is_empty() {
        let plural = if one.findings.len() == 1 { "" } else { "s" };
        marks.push(format!("{} note{plural} on its numbers and wording", one.findings.len()));
    }
    if let Some(debated) = &one.debated {
        marks.extend(
            debated.degraded.iter().map(|one| format!("degraded: {}", display::degradation(one))),
        );
    }
    if !one.similar_to.is_empty() {
        let like: Vec<&str> = one.similar_to.iter().map(String::as_str).collect();
        marks.push(display::line(&format!("very similar to {}", like.join(", "))));
    }
    marks
}

/// Progress of an unfinished debate.
fn debate_progress(view: &ConsultReport, move_id: &str) -> String {
    let logs = view.debates.get(move_id).into_iter().flat_map(|debate| debate.logs.values());
    match logs.flatten().map(|entry| entry.round).max() {
        Some(round) => format!("round {round} of {}", view.input.committee.rounds),
        None => "not debated yet".to_owned(),
    }
}

fn close_call(call: &CloseCall) -> String {
    let CloseCall { upper, lower, apart, spread } = call;
    let plural = if *apart == 1 { "" } else { "s" };
    format!(
        "{} and {} are {apart} point{plural} apart, but scores of decision makers differ by up to \
         {spread}: too close to call",
        display::line(upper),
        display::line(lower)
    )
}
