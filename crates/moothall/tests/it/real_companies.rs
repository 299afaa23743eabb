//! Consultations about real companies, from their recorded SEC facts: every number of the memo is
//! checked, and every format is opened.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::evidence::recorded;
use crate::world::World;

/// The companies of the recordings, with a day on which their newest filing was known.
const COMPANIES: [(&str, &str); 9] = [
    ("AAPL", "2026-03-25"),
    ("NVDA", "2026-07-09"),
    ("GOOGL", "2026-06-10"),
    ("MRVL", "2026-06-10"),
    ("SNOW", "2025-06-10"),
    ("LPA", "2025-05-01"),
    ("JPM", "2026-05-01"),
    ("WMT", "2026-06-01"),
    ("MSFT", "2026-03-05"),
];

/// Model calls of a consultation without rewrites and retries: three decision makers, each with two
/// calls per round and one for the scores, share one opening; two inferences and up to five analysts.
fn planned_calls(moves: u64, rounds: u64) -> u64 {
    moves * (1 + 3 * (2 * rounds - 1) + 3) + 2 + moves.min(5)
}

/// The text of a PDF as a third-party library reads it, and its number of pages.
fn read_pdf(path: &Path) -> (usize, String) {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/pdf-check/run.sh");
    let cache = PathBuf::from(std::env::var("HOME").unwrap()).join(".cache/moothall/pdf-check");
    let output = Command::new("bash").arg(tool).arg(path).arg(cache).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (pages, text) = text.split_once('\n').unwrap();
    (pages.parse().unwrap(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Runs a consultation and checks everything that it leaves. Returns a line for the figures.
fn consult(ticker: &str, as_of: &str, moves: u64, rounds: u64) -> String {
    let (world, folder, began) = (World::new(), recorded(), Instant::now());
    let (moves_flag, rounds_flag) = (moves.to_string(), rounds.to_string());
    let known = ["--as-of", as_of, "--offline", &folder];
    let size = ["--moves", &moves_flag, "--rounds", &rounds_flag, "--isolation", "none"];
    let consult = ["consult", ticker, "--verdict", "off", "--model", "demo", "--yes", "--json"];
    let ran = world.run(&[&consult[..], &size, &known].concat());
    assert_eq!(ran.code, Some(0), "{ticker}: {ran}");
    let (seconds, report) = (began.elapsed().as_secs_f64(), ran.json());
    let number = |name: &str| report[name].as_u64().unwrap();
    let calls = number("calls") - number("extra_calls") - number("beside_calls");
    assert_eq!(calls, planned_calls(moves, rounds), "{ticker}");
    assert_eq!(report["complete"], true, "{ticker}");
    let scored = report["policy_scores"].as_array().unwrap();
    assert_eq!(scored.len() as u64, moves, "{ticker}");

    let run = report["run_id"].as_str().unwrap();
    for (format, file) in [
        ("md", "memo.md"),
        ("html", "memo.html"),
        ("pdf", "memo.pdf"),
        ("csv", "scores.csv"),
        ("jsonl", "receipt"),
    ] {
        let wrote = world.run(&["report", run, "--format", format, "--output", file]);
        assert_eq!(wrote.code, Some(0), "{ticker}: {wrote}");
    }
    let checked =
        world.run(&[&["check", "memo.md", "--facts", ticker, "--json"], &known[..]].concat());
    assert_eq!(checked.code, Some(0), "{ticker}: {checked}");
    let checked = checked.json();
    assert_eq!(checked["verdict"], "pass", "{ticker}");
    let support = |name: &str| checked["support"][name].as_u64().unwrap();
    assert!(support("supported") > 0, "{ticker}: {checked:#}");
    assert_eq!(support("flagged"), 0, "{ticker}: {checked:#}");

    let name = report["company"]["name"].as_str().unwrap();
    let titles: Vec<&str> = titles(&report);
    let page = world.read("memo.html");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{ticker}");
    let links = page.matches("href=\"https://").count();
    let to_filings = page.matches("href=\"https://www.sec.gov/Archives/edgar/data/").count();
    assert_eq!(links, to_filings, "{ticker}");
    let (pages, text) = read_pdf(&world.path("memo.pdf"));
    assert!(pages >= 2, "{ticker}: {pages}");
    let memo = world.read("memo.md");
    for title in titles {
        assert!(memo.contains(title), "{ticker}: {title}");
        assert!(text.contains(title), "{ticker}: {title} is not in the PDF:\n{text}");
    }
    assert!(text.contains(name), "{ticker}: {name}");
    let lines = world.read("scores.csv").lines().count() as u64;
    assert_eq!(lines, 1 + moves * (3 * 5 + 1), "{ticker}");
    let verified = world.run(&["verify", "receipt"]);
    assert_eq!(verified.code, Some(0), "{ticker}: {verified}");
    let [supported, assumed, flagged] = ["supported", "assumed", "flagged"].map(support);
    format!(
        "{ticker}: {calls} calls in {seconds:.1} s, {pages} pages, numbers: {supported} supported, {assumed} assumed, {flagged} flagged"
    )
}

fn titles(report: &Value) -> Vec<&str> {
    let lists = ["recommended_moves", "other_moves"].map(|list| report[list].as_array().unwrap());
    lists.into_iter().flatten().map(|one| one["title"].as_str().unwrap()).collect()
}

/// `.ci/long` sets `MOOTHALL_TEST_COMPANIES` and runs all companies at full size.
#[test]
fn consultations_about_real_companies_end_with_checked_memos_in_every_format() {
    let began = Instant::now();
    if std::env::var_os("MOOTHALL_TEST_COMPANIES").is_none() {
        let (ticker, as_of) = COMPANIES[0];
        println!("{}", consult(ticker, as_of, 2, 2));
        return;
    }
    assert_eq!(planned_calls(15, 10), 922);
    for (ticker, as_of) in COMPANIES {
        println!("{}", consult(ticker, as_of, 15, 10));
    }
    println!(
        "{} companies in {:.1} minutes",
        COMPANIES.len(),
        began.elapsed().as_secs_f64() / 60.0
    );
}
