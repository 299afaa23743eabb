//! Forecasts of a panel and their outcomes in later filings, without an API key and a network.

use std::collections::{BTreeSet, VecDeque};

use moothall_core::child::ChildRequest;
use moothall_core::consult::Consult;
use moothall_core::debate::Debate;
use moothall_core::evidence::{CalendarDay, CompanyFacts, Fact, FactSheet};
use moothall_core::{Effect, Workflow};
use moothall_engine::RunRecord;
use serde_json::Value;

use crate::chaos;
use crate::serve::{Server, runtime};
use crate::world::World;

/// A consultation as of the end of 2024, with forecasts; returns its id.
fn back_test(world: &World) -> String {
    let ran = world.run(&[
        "consult",
        "HLXI",
        "--as-of",
        "2024-12-31",
        "--verdict",
        "panel",
        "--model",
        "demo",
        "--rounds",
        "1",
        "--isolation",
        "none",
        "--yes",
        "--json",
    ]);
    assert!(ran.code == Some(0) || ran.code == Some(3), "{ran}");
    ran.json()["run_id"].as_str().unwrap().to_owned()
}

fn length(value: &Value) -> usize {
    value.as_array().unwrap().len()
}

/// The number of model calls of a run, and the different blocks of their prompts, derived again from
/// its journal.
fn prompts(world: &World, run: &str) -> (usize, BTreeSet<String>) {
    let record = runtime().block_on(async {
        let store = chaos::store(world).await.unwrap();
        let record = RunRecord::read(&store, &run.parse().unwrap()).await.unwrap();
        store.close().await;
        record
    });
    let mut consult = Consult::new(record.consult_input().unwrap().clone()).unwrap();
    let mut found = (0, BTreeSet::new());
    collect_prompts(&mut consult, &record, &mut found);
    found
}

fn collect_prompts(
    workflow: &mut dyn Workflow,
    record: &RunRecord,
    found: &mut (usize, BTreeSet<String>),
) {
    let mut open = VecDeque::from(workflow.start().perform);
    while let Some((id, effect)) = open.pop_front() {
        if let Effect::CallModel(request) = &effect {
            found.0 += 1;
            let blocks = request.system.iter().chain(request.turns.iter().map(|turn| &turn.block));
            found.1.extend(blocks.map(|block| (*block.text).to_owned()));
        } else if let Effect::StartChild(ChildRequest::Debate(input)) = &effect {
            collect_prompts(&mut Debate::new((**input).clone()).unwrap(), record, found);
        }
        let result = record.journal[&id].result.clone();
        open.extend(workflow.resume(&id, result).unwrap().perform);
    }
}

/// The words of a text without separators in numbers, alone and with the next word.
fn words(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | ',');
    let words = text.split(|c| !is_part(c));
    let words: Vec<String> =
        words.map(|word| word.trim_end_matches(['.', ',']).replace(',', "")).collect();
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let pairs: Vec<String> = words.windows(2).map(|pair| pair.join(" ")).collect();
    pairs.into_iter().chain(words).collect()
}

/// How prompts print the values of facts and their accession numbers. Short numbers can occur
/// anywhere and are left out.
fn figures(sheet: &FactSheet, is_wanted: impl Fn(&Fact) -> bool) -> BTreeSet<String> {
    let (mut found, mut in_tables) = (BTreeSet::new(), BTreeSet::new());
    for (id, fact) in sheet.facts.iter().filter(|(_, fact)| is_wanted(fact)) {
        let value: f64 = fact.value.abs().to_string().parse().unwrap();
        let (thousands, millions) = (value / 1e3, value / 1e6);
        found.extend([value.to_string(), format!("{thousands:.0}")]);
        found.extend([format!("{thousands:.1}"), format!("{millions:.1}")]);
        // Tables are in millions.
        in_tables.extend((millions >= 1e3).then(|| format!("{millions:.0}")));
        let texts = [sheet.display_value(id), fact.filed().map(|filing| filing.accession.clone())];
        let pairs = texts.iter().flatten().flat_map(|text| words(text));
        found.extend(pairs.filter(|text| text.contains(' ')));
    }
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    found.retain(|text| digits(text) >= if text.contains(' ') { 4 } else { 5 });
    found.append(&mut in_tables);
    found
}

/// Checks that no text has a figure from a filing after a day, unless an earlier filing has it, too.
fn check_prompts(texts: &BTreeSet<String>, as_of: &str) {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/hlxi/companyfacts/CIK0009990001.json");
    let facts = CompanyFacts::parse(&fs_err::read(path).unwrap()).unwrap();
    let as_of = CalendarDay::parse(as_of).unwrap();
    let known = figures(&FactSheet::build(&facts, as_of).unwrap(), |_| true);
    let all = FactSheet::build(&facts, CalendarDay::MAX).unwrap();
    let late = figures(&all, |fact| fact.filed().is_some_and(|filing| filing.filed > as_of));
    let late: BTreeSet<&String> = late.difference(&known).collect();
    assert!(late.len() > 100, "{late:?}");
    let mut seen = BTreeSet::new();
    for text in texts {
        let words = words(text);
        let leaked: Vec<_> = late.iter().filter(|figure| words.contains(**figure)).collect();
        assert!(leaked.is_empty(), "{leaked:?} was filed later: {text}");
        seen.extend(known.intersection(&words).cloned());
    }
    assert!(seen.contains("1143") && seen.contains("1143 million"), "{seen:?}");
}

#[test]
fn forecasts_are_resolved_by_the_first_later_filing_and_scored() {
    let world = World::new();
    let run = back_test(&world);
    let calls = world.run(&["calls", &run, "--json"]).json();
    let calls = calls["calls"].as_array().unwrap();
    assert_eq!(calls.iter().filter(|call| call["purpose"] == "forecast").count(), 5);
    let (requests, texts) = prompts(&world, &run);
    assert_eq!(requests, calls.len());
    check_prompts(&texts, "2024-12-31");

    let early = ["outcome", "record", &run, "--as-of", "2025-02-01", "--json"];
    let early = world.run(&early).json();
    assert_eq!(length(&early["outcomes"]), 0, "{early:#}");
    let recorded = ["outcome", "record", &run, "--as-of", "2025-03-31", "--json"];
    let recorded = world.run(&recorded).json();
    let outcomes = recorded["outcomes"].as_array().unwrap();
    assert!(!outcomes.is_empty(), "{recorded:#}");
    for outcome in outcomes {
        assert_eq!(outcome["filed"], "2025-02-27", "{outcome:#}");
    }
    assert_eq!(
        length(&recorded["questions"]),
        outcomes.len() + recorded["open"].as_u64().unwrap() as usize
    );

    // The catalog does not say what the model has learned, and the answers were filed before the run.
    let score = world.run(&["outcome", "score", "--json"]).json();
    assert_eq!(score["report"]["headline"], Value::Null, "{score:#}");
    let text = world.run(&["outcome", "score"]);
    assert!(text.stdout.contains("too few to judge"), "{text}");
    let with_knowledge = |until: &str| {
        let catalog = format!("[model.\"demo\"]\nknowledge_until = \"{until}\"\n");
        world.write("catalog.toml", &catalog);
        let path = world.path("catalog.toml");
        world.write_config("moothall.toml", &format!("catalog = \"{}\"\n", path.display()));
        world.run(&["outcome", "score", &run, "--json"]).json()["report"].clone()
    };
    let counted = with_knowledge("2024-06-30");
    assert_eq!(counted["headline"]["forecasts"], 5 * outcomes.len(), "{counted:#}");
    assert_eq!(counted["possibly_known"], Value::Null);
    let known = with_knowledge("2025-06-30");
    assert_eq!(known["headline"], Value::Null, "{known:#}");
    assert_eq!(known["possibly_known"]["forecasts"], 5 * outcomes.len());
}

#[test]
fn a_taken_move_is_noted_and_unusable_requests_are_refused() {
    let world = World::new();
    let run = back_test(&world);
    let noted = ["outcome", "record", &run, "--move", "m2", "--taken", "2025-03-01"];
    let ran = world.run(&noted);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "m2 was taken on 2025-03-01\n"), "{ran}");
    let ran = world.run(&["outcome", "record", &run, "--move", "m99", "--taken", "2025-03-01"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("no move `m99`"), "{ran}");
    let ran = world.run(&["outcome", "score"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("moothall outcome record"), "{ran}");
    let plain = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--moves",
        "1",
        "--rounds",
        "1",
        "--isolation",
        "none",
        "--yes",
        "--json",
    ];
    let plain = world.run(&plain).json()["run_id"].as_str().unwrap().to_owned();
    let ran = world.run(&["outcome", "record", &plain]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("has no verdict of a panel"), "{ran}");
}

#[test]
fn announced_moves_of_the_lead_are_answered_by_notes_after_a_year_and_counted_by_tier() {
    let world = World::new();
    let run = back_test(&world);
    let record = |more: &[&str]| {
        let ran = world.run(&[&["outcome", "record", &run], more].concat());
        assert_eq!(ran.code, Some(0), "{ran}");
        ran
    };
    let early = record(&["--as-of", "2025-12-31", "--json"]).json();
    let questions = early["announcements"].as_array().unwrap();
    assert!(questions.len() >= 2, "{early:#}");
    let asked = world.run(&["calls", &run, "forecast/P1"]).stdout;
    for question in questions {
        assert_eq!(question["last_day"], "2025-12-31", "{question:#}");
        let title = question["title"].as_str().unwrap();
        assert!(asked.contains(&format!("8-K or 6-K by 2025-12-31: {title}")), "{asked}");
    }
    let move_of = |at: usize| questions[at]["move_id"].as_str().unwrap().to_owned();
    let noted = record(&["--move", &move_of(0), "--taken", "2025-05-01"]);
    assert!(noted.stdout.contains("was taken on 2025-05-01"), "{noted}");
    // Announced moves are not counted before the others can be.
    let early = record(&["--as-of", "2025-12-31", "--json"]).json();
    assert_eq!(length(&early["announced"]), 0, "{early:#}");
    let open = record(&["--as-of", "2026-01-01"]).stdout;
    assert!(open.contains(&format!("`--move {} --not-taken`", move_of(1))), "{open}");
    let noted = record(&["--move", &move_of(1), "--not-taken"]);
    assert!(noted.stdout.contains("was not taken until "), "{noted}");
    let late = record(&["--as-of", "2026-01-01", "--json"]).json();
    let happened: Vec<&Value> =
        late["announced"].as_array().unwrap().iter().map(|one| &one["happened"]).collect();
    assert_eq!(happened, [true, false], "{late:#}");
    // Filings of an earlier day answer nothing, and take no answer back.
    let again = record(&["--as-of", "2025-12-31", "--json"]).json();
    assert_eq!(again["announced"], late["announced"]);
    let report = world.run(&["outcome", "score", "--json"]).json()["report"].clone();
    let lead = &report["by_tier"]["lead"];
    assert_eq!((&lead["taken"], &lead["not_taken"]), (&1.into(), &1.into()), "{report:#}");
    assert_eq!(lead["moves"], questions.len(), "{report:#}");
    assert_eq!(report["by_tier"]["behind"]["taken"], 0, "{report:#}");
    assert_eq!(report["announcements"], Value::Null, "the catalog has no date for the model");
    assert_eq!(report["announcements_possibly_known"]["forecasts"], 2 * 5, "{report:#}");
    let text = world.run(&["outcome", "score"]).stdout;
    assert!(text.contains("moves taken, as noted: lead 1 of "), "{text}");
    // A corrected note takes its answer back.
    record(&["--move", &move_of(0), "--not-taken"]);
    let open = record(&["--as-of", "2025-12-31", "--json"]).json();
    assert_eq!(length(&open["announced"]), 1, "{open:#}");
    for wrong in
        [&["--move", "m2"][..], &["--not-taken"], &["--taken", "2025-05-01", "--not-taken"]]
    {
        let ran = world.run(&[&["outcome", "record", &run], wrong].concat());
        assert_eq!(ran.code, Some(2), "{ran}");
    }
}

#[test]
fn recorded_outcomes_are_in_backups_and_in_the_http_api() {
    let world = World::new();
    let run = back_test(&world);
    let recorded = world.run(&["outcome", "record", &run, "--json"]).json();
    let score = world.run(&["outcome", "score", "--json"]).stdout;
    let saved = world.run(&["backup", "runs.tar"]);
    assert_eq!(saved.code, Some(0), "{saved}");
    world.run(&["runs", "rm", &run, "--yes"]);
    assert_eq!(world.run(&["outcome", "score"]).code, Some(2));
    let restored = world.run(&["restore", "runs.tar", "--force"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(world.run(&["outcome", "score", "--json"]).stdout, score);

    let server = Server::start(&world, &[]);
    let shown = runtime().block_on(async {
        server.get(&format!("/api/runs/{run}/forecasts")).await.text().await.unwrap()
    });
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let rows = shown["questions"].as_array().unwrap();
    assert_eq!(rows.len(), length(&recorded["questions"]) + length(&recorded["announcements"]));
    let first = &recorded["outcomes"][0];
    let row = rows.iter().find(|row| row["id"] == first["question"]).unwrap();
    assert_eq!(row["happened"], first["happened"]);
    let filed = format!(" million, filed on {} (", first["filed"].as_str().unwrap());
    assert!(row["basis"].as_str().unwrap().contains(&filed), "{row:#}");
    assert!(row["chance"].as_u64().unwrap() <= 1_000, "{row:#}");
    assert_eq!(
        rows.iter().filter(|row| row["happened"] != Value::Null).count(),
        length(&recorded["outcomes"]) + length(&recorded["announced"])
    );
}
