//! `moothall diff`: compares two consultations.

use std::fmt::Write as _;

use moothall_core::RunKind;
use moothall_core::report::{ConsultDiff, DiffKind, MoveDiff, MovePlace, ScoreDiff, consult_diff};
use moothall_engine::RunRecord;
use serde_json::json;

use super::consult::StoredConsultation;
use super::runtime;
use crate::args::{DiffArgs, GlobalArgs};
use crate::display;
use crate::error::{CliError, CliExit};
use crate::run_store::{self, RunStore, no_such_run};
use crate::terminal::{self, BOLD, DIM};
use crate::{config, logging};

/// Limit for the facts and gaps of each kind; `--json` shows all.
const MAX_SHOWN: usize = 20;

pub(crate) fn run(global: &GlobalArgs, args: &DiffArgs) -> anyhow::Result<CliExit> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    runtime()?.block_on(async {
        let local = RunStore::open_existing(&loaded).await?;
        let local = local.ok_or_else(|| no_such_run(&args.before))?;
        let (before, after) = (read(&local, &args.before).await?, read(&local, &args.after).await?);
        if !args.force {
            same_company(&before.1, &after.1)?;
        }
        let diff = consult_diff(&before.1.view, &after.1.view);
        terminal::print(&match args.json {
            true => {
                let report = json!({
                    "before": before.0.row.run_id,
                    "after": after.0.row.run_id,
                    "same": diff.is_empty(),
                    "diff": diff,
                });
                format!("{report:#}\n")
            }
            false => text(&before.0, &after.0, &diff),
        })?;
        Ok(CliExit::Fine)
    })
}

async fn read(local: &RunStore, named: &str) -> anyhow::Result<(RunRecord, StoredConsultation)> {
    let row = local.find(named).await?;
    if !row.spec.is_kind(RunKind::Consult) {
        return Err(run_store::not_a_consultation(&row.run_id).into());
    }
    let record =
        RunRecord::read(&*local.store, &row.run_id).await.map_err(run_store::store_error)?;
    let consultation = StoredConsultation::of(&record)?;
    Ok((record, consultation))
}

/// Facts and moves of different companies always differ, so the comparison would mislead.
fn same_company(before: &StoredConsultation, after: &StoredConsultation) -> Result<(), CliError> {
    let subject = |one: &StoredConsultation| display::line(one.spec.input.gather.subject());
    let (before, after) = (subject(before), subject(after));
    if before == after {
        return Ok(());
    }
    let problem = format!("the consultations are about different companies: {before} and {after}");
    Err(CliError::usage(problem).with_hint("pass `--force` to compare them anyway"))
}

fn text(before: &RunRecord, after: &RunRecord, diff: &ConsultDiff) -> String {
    let mut text = String::new();
    for (name, record) in [("before", before), ("after", after)] {
        let _ = writeln!(
            text,
            "{BOLD}{name:<6}{BOLD:#}  {}  {}  {}",
            run_store::short_id(&record.row.run_id),
            display::time(record.row.created_at_ms),
            display::line(&record.row.title)
        );
    }
    if let Some(stability) = &diff.stability {
        let _ = writeln!(text, "{BOLD}Stability{BOLD:#}  {}", stability.headline());
        let _ = writeln!(text, "           {DIM}{}{DIM:#}", stability.figures());
    }
    if diff.is_empty() {
        text.push_str("no differences\n");
        return text;
    }
    if let Some(as_of) = &diff.as_of {
        let day = |day: &Option<_>| day.map_or_else(|| "-".to_owned(), |day| format!("{day}"));
        let _ = writeln!(text, "as of   {} → {}", day(&as_of.before), day(&as_of.after));
    }
    let _ =
        writeln!(text, "\n{BOLD}Moves{BOLD:#} {DIM}({} unchanged){DIM:#}", diff.moves_unchanged);
    for one in &diff.moves {
        text.push_str(&of_move(one));
    }
    let (facts, derived) = (diff.facts_unchanged, diff.derived_changed);
    let _ = writeln!(
        text,
        "\n{BOLD}Facts{BOLD:#} {DIM}({facts} unchanged, {derived} derived facts differ){DIM:#}"
    );
    for (sign, periods) in [('+', &diff.periods_appeared), ('-', &diff.periods_went)] {
        for (period, count) in periods {
            let _ = writeln!(text, "  {sign} {period}  {count} facts");
        }
    }
    for fact in diff.facts.iter().take(MAX_SHOWN) {
        let value = |value: &Option<String>| value.as_deref().unwrap_or("-").to_owned();
        let note = if fact.change == DiffKind::Restated { "  restated" } else { "" };
        let (before, after) = (value(&fact.before), value(&fact.after));
        let _ = writeln!(text, "  {} {}  {before} → {after}{note}", sign(fact.change), fact.id);
    }
    more(&mut text, diff.facts.len());
    if !(diff.gaps_appeared.is_empty() && diff.gaps_went.is_empty()) {
        let _ = writeln!(text, "\n{BOLD}Gaps{BOLD:#}");
        for (sign, gaps) in [('+', &diff.gaps_appeared), ('-', &diff.gaps_went)] {
            for gap in gaps.iter().take(MAX_SHOWN) {
                let _ = writeln!(text, "  {sign} {}", display::line(gap));
            }
            more(&mut text, gaps.len());
        }
    }
    text
}

fn more(text: &mut String, count: usize) {
    if count > MAX_SHOWN {
        let _ = writeln!(text, "  {DIM}… and {} more (--json){DIM:#}", count - MAX_SHOWN);
    }
}

fn sign(change: DiffKind) -> char {
    match change {
        DiffKind::Appeared => '+',
        DiffKind::Went => '-',
        DiffKind::Changed | DiffKind::Restated => '~',
    }
}

fn of_move(one: &MoveDiff) -> String {
    let id = |place: &Option<MovePlace>| {
        place.as_ref().map_or_else(String::new, |place| display::line(&place.move_id))
    };
    let ids = match (id(&one.before), id(&one.after)) {
        (before, after) if before == after || before.is_empty() => after,
        (before, after) if after.is_empty() => before,
        (before, after) => format!("{before} → {after}"),
    };
    let rank = |place: &Option<MovePlace>| {
        let rank = place.as_ref().and_then(|place| place.rank);
        rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string())
    };
    let tier = |place: &Option<MovePlace>| {
        place.as_ref().and_then(|place| place.tier.clone()).unwrap_or_else(|| "-".to_owned())
    };
    let total = |place: &Option<MovePlace>| {
        let total = place.as_ref().and_then(|place| place.total);
        total.map_or_else(|| "-".to_owned(), |total| total.to_string())
    };
    let both = |(before, after): (String, String)| match one.change {
        DiffKind::Appeared => after,
        DiffKind::Went => before,
        _ if before == after => after,
        _ => format!("{before} → {after}"),
    };
    // Ranks order moves of a tier, which means nothing.
    let has_tier = [&one.before, &one.after].into_iter().flatten().any(|one| one.tier.is_some());
    let place = match has_tier {
        true => format!("tier {}", both((tier(&one.before), tier(&one.after)))),
        false => format!("rank {}", both((rank(&one.before), rank(&one.after)))),
    };
    let totals = both((total(&one.before), total(&one.after)));
    let title = one.after.as_ref().or(one.before.as_ref()).map_or("", |place| &place.title);
    let recommended = |place: &Option<MovePlace>| place.as_ref().is_some_and(|one| one.recommended);
    let note = match (recommended(&one.before), recommended(&one.after)) {
        (false, true) => "  now recommended",
        (true, false) => "  no longer recommended",
        _ => "",
    };
    let mut text = format!(
        "  {} {ids}  {place}  score {totals}  {}{note}\n",
        sign(one.change),
        display::cut(title, 60)
    );
    let mut by_maker: Vec<(&str, Vec<String>)> = Vec::new();
    for ScoreDiff { decision_maker, metric, before, after } in &one.scores {
        let number =
            |score: &Option<u8>| score.map_or_else(|| "-".to_owned(), |score| score.to_string());
        let score_change =
            display::line(&format!("{metric} {} → {}", number(before), number(after)));
        match by_maker.last_mut() {
            Some((maker, scores)) if *maker == decision_maker => scores.push(score_change),
            _ => by_maker.push((decision_maker, vec![score_change])),
        }
    }
    for (maker, scores) in by_maker {
        let _ = writeln!(text, "      {DIM}{}: {}{DIM:#}", display::line(maker), scores.join(", "));
    }
    text
}
