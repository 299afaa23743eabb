//! The board memo, in Markdown: what is recommended, what speaks against it, what it rests on, and
//! what is missing.
//!
//! Agents' words are untrusted: they are flattened, their markup is taken away, and every number in
//! them is checked again here. What is not supported carries a mark, and the marks are explained
//! below. Numbers that the program itself says (scores, counts) come from values, never from words.

mod facts;
mod marks;

use std::fmt::Write as _;

use self::facts::cited_facts;
use self::marks::Marks;
use super::view::{ConsultView, DebateView};
use crate::consult::{Move, RankedMove};
use crate::debate::{Debated, Degradation, Objection, ObjectionState, Stance};
use crate::model::Usage;
use crate::sandbox::IsolationClass;
use crate::{Finding, MicroUsd, Severity};

/// What a memo says about the run and cannot be derived from the answers' words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// The run.
    pub run_id: String,
    /// The build that ran it.
    pub build: String,
    /// The day it began, as `2026-11-15`.
    pub started_on: String,
    /// Model calls that were answered.
    pub calls: u64,
    /// Of these, rewrites and questions asked again.
    pub extra_calls: u64,
    /// Tokens of all answers.
    pub usage: Usage,
    /// What they cost; unknown where one price is.
    pub cost: Option<MicroUsd>,
    /// Whether the demonstration model spoke.
    pub demonstration: bool,
}

const NOT_ADVICE: &str = "Not investment, legal, tax or accounting advice; no recommendation to buy or sell securities. \
    Figures come from XBRL as filed and are unaudited here; check the linked filings.";

/// The memo of a consultation, complete or not.
pub fn memo(view: &ConsultView, run: &RunFacts) -> String {
    let mut marks = Marks::new(view.evidence().filter(|_| !view.proceedings.is_synthetic()));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = header(&mut text, view, run);
    let _ = recommendation(&mut text, view);
    let _ = recommended(&mut text, view, &mut marks);
    let _ = others(&mut text, view, &mut marks);
    let _ = rests_on(&mut text, view);
    let _ = unknown(&mut text, view);
    let _ = marks.explain(&mut text);
    let _ = record(&mut text, view, run);
    text
}

type Written = std::fmt::Result;

fn header(text: &mut String, view: &ConsultView, run: &RunFacts) -> Written {
    let ticker = &view.input.gather.ticker;
    let name = view.evidence().map_or(view.input.gather.subject(), |one| &one.company.name);
    match ticker.as_str() {
        "" => writeln!(text, "# Board memo: {}\n", plain(name))?,
        ticker => writeln!(text, "# Board memo: {} ({ticker})\n", plain(name))?,
    }
    for label in labels(view, run) {
        writeln!(text, "> **{label}**\n")?;
    }
    if let Some(evidence) = view.evidence() {
        if let Some(cik) = evidence.company.cik {
            writeln!(text, "- Filer: {}, CIK {cik}", plain(&evidence.company.name))?;
        }
        writeln!(text, "- Evidence: {}", plain(&evidence.provenance.to_string()))?;
        if let Some(sheet) = &evidence.sheet {
            writeln!(text, "- As of: {}", sheet.as_of)?;
            if let Some(newest) = evidence.newest_filing() {
                writeln!(text, "- Newest filing used: {} of {}", newest.form, newest.filed)?;
            }
            writeln!(text, "- Fact sheet F0: sha256 {}", sheet.hash())?;
        }
        for warning in evidence.warnings() {
            writeln!(text, "- Note: {}", plain(&warning))?;
        }
    }
    writeln!(text)
}

/// What a reader must know before the first word.
fn labels(view: &ConsultView, run: &RunFacts) -> Vec<String> {
    let mut labels = Vec::new();
    let evidence = view.evidence();
    if evidence.is_some_and(|evidence| evidence.company.fictional) {
        labels.push("Fictional company: it exists to show how this program works.".to_owned());
    }
    if view.proceedings.is_synthetic() {
        labels.push("Synthetic data: a model invented the numbers and the news.".to_owned());
    }
    if run.demonstration {
        labels.push("Demonstration: no model was asked; the words are canned.".to_owned());
    }
    if view.outcome.is_none() {
        labels.push("Not finished: this is what there is so far.".to_owned());
    }
    labels
}

fn recommendation(text: &mut String, view: &ConsultView) -> Written {
    writeln!(text, "## Recommendation\n")?;
    let recommended = view.ranked.as_ref().map(|ranked| ranked.recommended.as_slice());
    let recommended = recommended.unwrap_or_default();
    if recommended.is_empty() {
        writeln!(text, "No move is recommended. What is missing is said below.\n")?;
        return Ok(());
    }
    for one in recommended {
        let score = one.debated.as_ref().map(score_words).unwrap_or_default();
        let rank = one.rank.unwrap_or_default();
        writeln!(text, "{rank}. **{}** ({}; {score})", plain(&one.title), one.move_id)?;
    }
    writeln!(
        text,
        "\nDoing nothing stays an option: the strongest objection to each move stands beside it below.\n"
    )
}

fn recommended(text: &mut String, view: &ConsultView, marks: &mut Marks<'_>) -> Written {
    let Some(ranked) = &view.ranked else { return Ok(()) };
    for one in &ranked.recommended {
        writeln!(text, "## {}: {}\n", one.move_id, plain(&one.title))?;
        if let Some(found) = view.find_move(&one.move_id) {
            the_move(text, found, marks)?;
        }
        trial(text, one, view.debates.get(&one.move_id), marks)?;
    }
    Ok(())
}

fn the_move(text: &mut String, one: &Move, marks: &mut Marks<'_>) -> Written {
    let proposal = &one.proposal;
    writeln!(text, "{}\n", marks.checked(&proposal.thesis))?;
    let mut list = |title: &str, items: &[String]| {
        if items.is_empty() {
            return Ok(());
        }
        writeln!(text, "**{title}**\n")?;
        items.iter().try_for_each(|item| writeln!(text, "- {}", marks.checked(item)))?;
        writeln!(text)
    };
    list("What is done", &proposal.actions)?;
    list("What must be true", &proposal.what_must_be_true)?;
    list("Risks", &proposal.risks)?;
    list("Stop if", &proposal.kill_criteria)?;
    list(
        "Cost and horizon",
        &[format!("Cost: {}", proposal.cost), format!("Horizon: {}", proposal.horizon)],
    )
}

/// What the debate made of a move.
fn trial(
    text: &mut String,
    one: &RankedMove,
    debate: Option<&DebateView>,
    marks: &mut Marks<'_>,
) -> Written {
    let Some(debated) = &one.debated else { return Ok(()) };
    writeln!(text, "**The trial**: {}\n", score_words(debated))?;
    score_table(text, debated)?;
    match debated.hardest_open() {
        Some(objection) => {
            let words = marks.checked(&objection.text);
            writeln!(
                text,
                "**The strongest case against it** ({}, {}): {words}\n",
                severity_word(objection),
                state_word(objection.state)
            )?;
        }
        None => writeln!(text, "No objection stands open after the debate.\n")?,
    }
    let conceded: Vec<&Objection> = debated
        .objections
        .iter()
        .filter(|objection| objection.state == ObjectionState::Conceded)
        .collect();
    if !conceded.is_empty() {
        writeln!(text, "**Granted by the decision makers**\n")?;
        for objection in conceded {
            writeln!(text, "- {}: {}", objection.id, marks.checked(&objection.text))?;
        }
        writeln!(text)?;
    }
    let stances: Vec<String> = debated
        .stances
        .iter()
        .map(|(id, stance)| format!("{id} {}", stance_word(*stance)))
        .collect();
    if !stances.is_empty() {
        writeln!(text, "Last stances: {}.\n", stances.join(", "))?;
    }
    for mark in degraded_words(debated) {
        writeln!(text, "> Degraded: {mark}\n")?;
    }
    if let Some(isolation) = debate.and_then(|debate| debate.isolation.as_ref())
        && isolation.class == IsolationClass::None
    {
        writeln!(text, "> The debate ran in the program's own process, without a sandbox.\n")?;
    }
    Ok(())
}

fn score_table(text: &mut String, debated: &Debated) -> Written {
    let metrics: Vec<&String> = debated
        .scorecards
        .values()
        .next()
        .map(|card| card.scores.keys().collect())
        .unwrap_or_default();
    let names: Vec<String> = metrics.iter().map(|metric| metric.replace('_', " ")).collect();
    writeln!(text, "| | {} | sum |", names.join(" | "))?;
    writeln!(text, "|---|{}---|", "---|".repeat(metrics.len()))?;
    for (id, card) in &debated.scorecards {
        let scores: Vec<String> = metrics
            .iter()
            .map(|metric| card.scores.get(*metric).map(u8::to_string).unwrap_or_default())
            .collect();
        writeln!(text, "| {id} | {} | {} |", scores.join(" | "), card.sum())?;
    }
    writeln!(text)
}

fn others(text: &mut String, view: &ConsultView, marks: &mut Marks<'_>) -> Written {
    let Some(ranked) = view.ranked.as_ref().filter(|ranked| !ranked.other.is_empty()) else {
        return Ok(());
    };
    writeln!(
        text,
        "## Other moves\n\n| rank | move | score | spread | strongest open objection | marks |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|")?;
    for one in &ranked.other {
        let rank = one.rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string());
        let debated = one.debated.as_ref();
        let number = |number: Option<u32>| number.map_or_else(|| "–".to_owned(), |n| n.to_string());
        let objection = debated.and_then(Debated::hardest_open);
        let objection = objection.map(|objection| marks.checked(&objection.text));
        writeln!(
            text,
            "| {rank} | {}: {} | {} | {} | {} | {} |",
            one.move_id,
            cell(&plain(&one.title)),
            number(debated.map(|debated| debated.total_score)),
            number(debated.map(|debated| debated.spread)),
            cell(&objection.unwrap_or_default()),
            move_marks(one).join("; "),
        )?;
    }
    writeln!(text)?;
    let held: Vec<&RankedMove> =
        ranked.other.iter().filter(|one| !holding(one).is_empty() && one.rank.is_none()).collect();
    if held.is_empty() {
        return Ok(());
    }
    writeln!(text, "### Held back until a person looks\n")?;
    for one in held {
        for finding in holding(one) {
            let message = plain(&finding.message);
            writeln!(text, "- {}: {message} ({}) ⚠", one.move_id, finding.rule)?;
        }
    }
    writeln!(text)
}

fn holding(one: &RankedMove) -> Vec<&Finding> {
    one.findings.iter().filter(|finding| finding.severity >= Severity::Escalate).collect()
}

fn move_marks(one: &RankedMove) -> Vec<String> {
    let mut marks = Vec::new();
    if one.debated.is_none() {
        marks.push("not debated".to_owned());
    }
    if one.debated.as_ref().is_some_and(|debated| !debated.degraded.is_empty()) {
        marks.push("degraded".to_owned());
    }
    if one.rank.is_none() && !holding(one).is_empty() {
        marks.push("held back".to_owned());
    }
    if !one.similar_to.is_empty() {
        let similar: Vec<&str> = one.similar_to.iter().map(String::as_str).collect();
        marks.push(format!("like {}", similar.join(", ")));
    }
    marks
}

fn rests_on(text: &mut String, view: &ConsultView) -> Written {
    let (Some(evidence), Some(ranked)) = (view.evidence(), &view.ranked) else { return Ok(()) };
    let chosen = ranked.recommended.iter().filter_map(|one| view.find_move(&one.move_id));
    let chosen: Vec<&Move> = chosen.collect();
    let lines = cited_facts(evidence, &chosen);
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(text, "## What it rests on\n\n| fact | value | period ends | filed | source |")?;
    writeln!(text, "|---|---|---|---|---|")?;
    lines.iter().try_for_each(|line| writeln!(text, "{line}"))?;
    writeln!(text)
}

fn unknown(text: &mut String, view: &ConsultView) -> Written {
    let ranked = view.ranked.iter().flat_map(|ranked| ranked.missing.iter().cloned());
    let sheet = view.evidence().and_then(|evidence| evidence.sheet.as_ref());
    let missing: Vec<String> = ranked.chain(sheet.and_then(|sheet| sheet.gap_words())).collect();
    if missing.is_empty() {
        return Ok(());
    }
    writeln!(text, "## What is missing\n")?;
    missing.iter().try_for_each(|line| writeln!(text, "- {}", plain(line)))?;
    writeln!(text)
}

fn record(text: &mut String, view: &ConsultView, run: &RunFacts) -> Written {
    let committee = &view.input.committee;
    writeln!(text, "## Run record\n")?;
    writeln!(text, "- Run {}, begun {}, {}", run.run_id, run.started_on, plain(&run.build))?;
    let models: Vec<String> =
        view.input.models.distinct().into_iter().map(ToString::to_string).collect();
    writeln!(text, "- Models: {}", models.join(", "))?;
    writeln!(
        text,
        "- Committee {}: {} analysts, {} decision makers, {} rounds",
        plain(&committee.name),
        committee.analysts.len(),
        committee.decision_makers.len(),
        committee.rounds
    )?;
    let cost = run.cost.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    writeln!(
        text,
        "- {} model calls ({} of them rewrites or asked again), {} prompt tokens ({} read from cache), {} written, cost {cost}",
        run.calls,
        run.extra_calls,
        run.usage.prompt(),
        run.usage.cache_read,
        run.usage.output
    )?;
    let supported =
        view.ranked.iter().flat_map(|ranked| ranked.recommended.iter().chain(&ranked.other));
    let (supported, total) = supported.fold((0, 0), |(supported, total), one| {
        (supported + one.support.supported, total + one.support.total)
    });
    writeln!(
        text,
        "- Numbers in the moves: {supported} of {total} supported or marked as assumptions"
    )?;
    let classes: std::collections::BTreeSet<&str> = view
        .debates
        .values()
        .filter_map(|debate| Some(debate.isolation.as_ref()?.class.as_str()))
        .collect();
    if !classes.is_empty() {
        let classes: Vec<&str> = classes.into_iter().collect();
        writeln!(text, "- Isolation of the debates: {}", classes.join(", "))?;
    }
    for approval in &view.approvals {
        writeln!(
            text,
            "- {} approved by {}: {}",
            approval.move_id,
            plain(&approval.by),
            plain(&approval.note)
        )?;
    }
    let day = view.as_of().map_or_else(|| run.started_on.clone(), |day| day.to_string());
    writeln!(text, "\n*Machine-made research aid as of {day}. {NOT_ADVICE}*")
}

fn score_words(debated: &Debated) -> String {
    let (total, top, spread) = (debated.total_score, debated.top_score, debated.spread);
    format!("{total}/{top}, decision makers {spread} apart, {} rounds", debated.rounds_done)
}

fn severity_word(objection: &Objection) -> &'static str {
    use crate::debate::ObjectionSeverity as S;
    match objection.severity {
        S::Minor => "minor",
        S::Major => "major",
        S::Fatal => "fatal",
    }
}

fn state_word(state: ObjectionState) -> &'static str {
    match state {
        ObjectionState::Answered => "answered",
        ObjectionState::Partly => "answered in part",
        ObjectionState::Open => "open",
        ObjectionState::Conceded => "granted",
    }
}

fn stance_word(stance: Stance) -> &'static str {
    match stance {
        Stance::Hold => "holds",
        Stance::Partial => "grants a part",
        Stance::Concede => "concedes",
    }
}

fn degraded_words(debated: &Debated) -> Vec<String> {
    let words = |one: &Degradation| match one {
        Degradation::EndedEarly { thread, after_round, why } => {
            format!("the thread with {thread} ended after round {after_round} ({})", plain(why))
        }
        Degradation::Unstructured { thread, messages } => {
            format!("{messages} messages in thread {thread} were not in the form asked for")
        }
        Degradation::ScoreFromText { decision_maker } => {
            format!("the scores of {decision_maker} were read out of prose")
        }
        Degradation::NeutralScore { decision_maker } => {
            format!("{decision_maker} gave no usable scores; a neutral 5 stands for each")
        }
        Degradation::Truncated { chain } => {
            format!("earlier rounds of {chain} were replaced by a summary: the window was full")
        }
    };
    debated.degraded.iter().map(words).collect()
}

/// Words of others as one line without markup: no HTML, no links, no images, no line breaks.
fn plain(text: &str) -> String {
    let flat: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control())
        .collect();
    let flat = flat.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    flat.replace('<', "&lt;").replace("](", "] (").replace("![", "! [").replace('`', "'")
}

/// The same inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
