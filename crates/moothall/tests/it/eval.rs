//! Benchmarks of a panel with known answers, end to end, without an API key, a network or an image.
#![allow(clippy::print_stdout, reason = "prints the measured figures")]

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::evidence::recorded;
use crate::world::World;

fn eval(world: &World, more: &[&str]) -> Value {
    let ran = world.run(&[&["eval", "--json"], more].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    ran.json()
}

fn number(report: &Value, path: &str) -> f64 {
    report
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {path} in {report:#}"))
}

/// No move of the set is held back by a check, and every control is planted.
fn check_runs(found: &Value, companies: f64) {
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len() as f64, companies);
    for run in runs {
        assert_eq!(run["held_back"], serde_json::json!([]), "{run:#}");
        assert!(run["best"].is_string(), "{run:#}");
    }
    assert_eq!(number(found, "/report/controls/planted"), companies * 5.0);
    assert_eq!(number(found, "/report/companies"), companies);
}

#[test]
fn scripted_judges_are_measured_with_four_companies() {
    let world = World::new();
    // Short debates: a debug build needs milliseconds for each call.
    let found = eval(&world, &["--companies", "4", "--rounds", "1"]);
    check_runs(&found, 4.0);
    assert!(number(&found, "/report/best_in_lead") >= 3.0, "{found:#}");
    assert!(number(&found, "/report/coverage") >= 0.85, "{found:#}");
    assert_eq!(found["report"]["judges"].as_array().unwrap().len(), 5);
    assert!(world.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().is_empty());
    // The same figures in every process, however many companies run in parallel.
    let one = eval(&world, &["--companies", "1", "--rounds", "1", "--parallel", "1"]);
    assert_eq!(one["runs"][0], found["runs"][0]);
    assert_eq!(one["sha256"], found["sha256"]);
}

#[test]
fn a_benchmark_with_too_few_moves_for_a_verdict_says_so() {
    let ran = World::new().run(&["eval", "--companies", "1", "--moves", "3", "--rounds", "1"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.contains("1 company with 3 moves each\n"), "{ran}");
    assert!(ran.stdout.contains("none: a verdict needs at least 6 moves\n"), "{ran}");
    assert!(!ran.stdout.contains("NaN"), "{ran}");
}

#[test]
fn exact_judges_find_the_planted_order_of_two_companies() {
    let world = World::new();
    let found = eval(
        &world,
        &["--companies", "2", "--rounds", "1", "--profile", "exact", "--no-allowances"],
    );
    check_runs(&found, 2.0);
    assert!(number(&found, "/report/tau") >= 0.93, "{found:#}");
    assert_eq!(number(&found, "/report/lead_is_best"), 2.0, "{found:#}");
    assert_eq!(number(&found, "/report/controls/caught"), 10.0, "{found:#}");
}

#[test]
fn a_consultation_uses_the_measured_errors_of_its_models() {
    let world = World::new();
    let written = eval(
        &world,
        &["--companies", "1", "--rounds", "1", "--panel", "demo", "--write", "judges.toml"],
    );
    let text = world.read("judges.toml");
    assert!(text.contains("models = [\"demo\"]"), "{text}");
    let consult = |more: &[&str]| {
        let arguments = [
            "consult",
            "HLXI",
            "--model",
            "demo",
            "--rounds",
            "1",
            "--isolation",
            "none",
            "--yes",
            "--verdict",
            "panel",
            "--json",
        ];
        world.run(&[&arguments, more].concat())
    };
    let allowances = |report: &Value| report["panel_verdict"]["allowances"].clone();
    let default = consult(&[]).json();
    assert_eq!(allowances(&default)["source"], "default");
    let measured = consult(&["--judges", "judges.toml"]).json();
    let found = allowances(&measured);
    assert_eq!(found["shared_error"], written["allowances"]["shared_error"]);
    let sha256 = found["source"]["measured"].as_str().unwrap();
    assert_eq!(sha256.len(), 64);
    // A file in the configuration directory is used without a flag.
    world.write_config("judges.toml", &text);
    assert_eq!(allowances(&consult(&[]).json()), found);
    let other = consult(&["--panel", "demo/other", "--judges", "judges.toml"]);
    assert_eq!(other.code, Some(2), "{other}");
    assert!(other.stderr.contains("moothall eval --panel demo/other --write"), "{other}");
    let off = world.run(&[
        "consult",
        "HLXI",
        "--model",
        "demo",
        "--verdict",
        "off",
        "--judges",
        "judges.toml",
    ]);
    assert_eq!(off.code, Some(2), "{off}");
}

#[test]
fn unusable_requests_of_a_benchmark_are_refused_with_a_hint() {
    let world = World::new();
    world.write("bad.toml", "[judge.one]\ntaste = -1");
    world.write("unknown.toml", "tastes = 1");
    for (arguments, expected) in [
        (vec!["eval", "--profile", "bad.toml"], "errors are 0 to 10"),
        (vec!["eval", "--profile", "unknown.toml"], "not a valid profile"),
        (vec!["eval", "--profile", "none.toml"], "cannot read the profile"),
        (vec!["eval", "--set", "other"], "synthetic-1"),
        (vec!["eval", "--panel", "anthropic/claude-haiku-5-5"], "pass `--yes`"),
        (vec!["eval", "--panel", "anthropic/claude-haiku-5-5", "--yes"], "API key"),
        (vec!["consult", "HLXI", "--model", "scripted-judge/judge-1"], "moothall eval"),
    ] {
        let ran = world.run(&arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(expected), "{ran}");
    }
}

#[test]
#[ignore = "takes minutes in a debug build; `bash .ci/long eval` runs it"]
fn forty_companies_meet_every_threshold() {
    let world = World::new();
    let started = Instant::now();
    let found = eval(&world, &["--chart", "chart.svg"]);
    let took = started.elapsed();
    println!("{}", world.run(&["eval", "--companies", "40"]).stdout);
    println!("40 companies in {:.1} s", took.as_secs_f64());
    check_runs(&found, 40.0);
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/guides/eval-calibration.svg");
    assert_eq!(world.read("chart.svg"), fs_err::read_to_string(book).unwrap());
    assert!(took <= Duration::from_secs(120), "{took:?}");
    assert!(number(&found, "/report/best_in_lead") >= 34.0, "{found:#}");
    // Planted: taste 0.65, lens 0.3, self-preference 0.4 in a fifth of the moves, card 0.6,
    // debate 0.56, in units of 9.6 points.
    let points = 9.6_f64.powi(2);
    let per_debate = number(&found, "/report/components/per_debate");
    let taste = 0.65_f64.powi(2) + 0.3_f64.powi(2) + 0.4_f64.powi(2) * 0.16;
    for (path, planted) in [
        ("/report/components/between_models", (taste + 0.36 * per_debate) * points),
        ("/report/components/between_debates", (0.56_f64.powi(2) + 0.36 / 5.0) * points),
        ("/report/components/between_cards", 0.36 * points),
        ("/report/components/shared_error", 0.4),
        ("/report/verbosity", 4.0),
    ] {
        let ratio = number(&found, path) / planted;
        println!("{path}: found / planted {ratio:.3}");
        assert!((0.75..=1.25).contains(&ratio), "{path} {ratio}");
    }
    let exact = eval(&world, &["--profile", "exact", "--no-allowances"]);
    let (tau, lead) = (number(&exact, "/report/tau"), number(&exact, "/report/lead_is_best"));
    println!("exact judges: tau {tau:.3}, lead is exactly the best move in {lead} of 40");
    assert!(tau >= 0.93 && lead >= 38.0, "{tau} {lead}");
}

#[test]
fn a_panel_is_tested_on_the_past_with_filings_that_came_later() {
    let world = World::new();
    world.write("catalog.toml", "[model.\"demo\"]\nknowledge_until = \"2024-06-30\"\n");
    let path = world.path("catalog.toml");
    world.write_config("moothall.toml", &format!("catalog = \"{}\"\n", path.display()));
    let past = ["--as-of", "2024-12-31", "--tickers", "hlxi", "--model", "demo", "--rounds", "1"];
    let found = eval(&world, &[&past[..], &["--keep"]].concat());
    let company = &found["companies"][0];
    assert_eq!(company["company"], "HLXI", "{found:#}");
    let answered = number(company, "/answered");
    assert!(answered > 0.0 && answered <= number(company, "/questions"), "{found:#}");
    // Five members, and only questions about figures: nobody noted which moves were taken.
    assert_eq!(number(&found, "/report/headline/forecasts"), 5.0 * answered, "{found:#}");
    // The kept run has the same outcomes.
    let score = world.run(&["outcome", "score", "--json"]).json();
    assert_eq!(score["report"], found["report"]);

    let text = world.run(&[&["eval"][..], &past].concat());
    assert_eq!(text.code, Some(0), "{text}");
    assert!(text.stdout.contains(" questions answered\n\nForecasts of 1 run"), "{text}");
    // Without later filings there is nothing to score.
    let late =
        ["eval", "--as-of", "2026-11-01", "--tickers", "HLXI", "--model", "demo", "--rounds", "1"];
    let ran = world.run(&late);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("choose an earlier day"), "{ran}");
    let ran = world.run(&["eval", "--as-of", "2024-12-31"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    // Few moves have no lead to ask about.
    let ran = world.run(&[&["eval"][..], &past, &["--moves", "3"]].concat());
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("hint: omit `--moves`"), "{ran}");
}

/// Regression: results that were paid for were lost.
#[test]
fn a_company_that_fails_does_not_lose_the_results_of_the_others() {
    let world = World::new();
    let tickers = ["--as-of", "2024-12-31", "--tickers", "HLXI,NOSUCH"];
    let flags = ["--model", "demo", "--rounds", "1", "--json"];
    let ran = world.run(&[&["eval"][..], &tickers, &flags].concat());
    assert!(matches!(ran.code, Some(2 | 4)), "{ran}");
    let found = ran.json();
    assert_eq!(found["companies"][0]["company"], "HLXI", "{found:#}");
    assert_eq!(found["failed"][0]["company"], "NOSUCH", "{found:#}");
    assert!(found["report"]["possibly_known"].is_object(), "{found:#}");
    // A name that cannot be one is refused before anything is paid.
    let tickers = ["--as-of", "2024-12-31", "--tickers", "HLXI,"];
    let ran = world.run(&[&["eval"][..], &tickers, &flags].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
}

/// Regression: the last failure was reported if all companies failed, but the first one otherwise.
#[test]
fn the_first_failure_ends_a_back_test_without_any_answer() {
    let world = World::new();
    let folder = recorded();
    let tickers = ["--as-of", "2024-12-31", "--tickers", "ZZZY,ZZZX", "--offline", &folder];
    let ran = world.run(&[&["eval", "--model", "demo", "--rounds", "1"][..], &tickers].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    assert!(ran.stderr.contains("error: no company has the ticker ZZZY\n"), "{ran}");
}

#[test]
fn a_benchmark_with_a_few_moves_knows_the_best_of_them() {
    let world = World::new();
    let few = ["--companies", "2", "--rounds", "1", "--moves", "3", "--profile", "exact"];
    let found = eval(&world, &few);
    check_runs(&found, 2.0);
    for run in found["runs"].as_array().unwrap() {
        assert!(["m1", "m2", "m3"].contains(&run["best"].as_str().unwrap()), "{run:#}");
    }
    assert!(number(&found, "/report/tau") >= 0.99, "{found:#}");
}
