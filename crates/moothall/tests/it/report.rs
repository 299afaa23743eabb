//! `moothall report`.

use insta::assert_snapshot;

use crate::evidence::recorded;
use crate::world::{Ran, World};

fn report(world: &World, run: &str, more: &[&str]) -> Ran {
    let ran = world.run(&[&["report", run], more].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    ran
}

/// A report without values that differ between runs.
fn fixed(text: &str, run: &str) -> String {
    let text = text.replace(run, "[RUN]").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let before = "[RUN], started ";
    let day = text.find(before).map(|at| at + before.len());
    match day {
        Some(day) => format!("{}[DAY]{}", &text[..day], &text[day + 10..]),
        None => text,
    }
}

/// The number of pages of a PDF: the root of the page tree comes first.
fn pages(pdf: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(pdf);
    let (_, behind) = text.split_once("/Count ")?;
    behind.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn help_of_report_shows_every_flag_and_examples() {
    assert_snapshot!(World::new().run(&["report", "--help"]));
}

#[test]
fn memo_of_the_fictional_company_is_made_in_every_format() {
    let world = World::new();
    let ran = world.run(&["consult", "HLXI", "--verdict", "off", "--model", "demo", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let run = world.only_run();
    let memo = report(&world, &run, &[]).stdout;
    assert_snapshot!("memo_md", fixed(&memo, &run));
    assert_eq!(memo, world.run(&["show", &run, "--memo"]).stdout);
    assert_snapshot!(
        "scores_csv",
        report(&world, &run, &["--format", "csv"]).stdout.replace('\r', "")
    );
    // Fifteen moves, three decision makers, four metrics; one total per decision maker and per
    // move.
    assert_eq!(report(&world, &run, &["-f", "csv"]).stdout.lines().count(), 1 + 15 * (3 * 5 + 1));
    report(&world, &run, &["--format", "html", "--output", "memo.html"]);
    let page = world.read("memo.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("size: a4"), "{page}");
    assert_eq!(page.matches("FICTIONAL COMPANY").count(), 2);
    report(&world, &run, &["--format", "jsonl", "--output", "receipt"]);
    assert_eq!(world.run(&["verify", "receipt"]).code, Some(0));
    for paper in ["a4", "letter"] {
        report(&world, &run, &["--paper", paper, "--output", "memo.pdf", "--force"]);
        let bytes = fs_err::read(world.path("memo.pdf")).unwrap();
        assert!(bytes.starts_with(b"%PDF-"), "{paper}");
        assert_eq!(pages(&bytes), Some(7), "{paper}");
    }
    world.write("memo.md", &memo);
    let checked = world.run(&["check", "memo.md", "--facts", "HLXI"]);
    assert_eq!(checked.code, Some(0), "{checked}");
    assert!(checked.stdout.contains(" 0 flagged"), "{checked}");
}

#[test]
fn memo_and_terminal_use_the_same_words_for_objections() {
    let world = World::new();
    let small = ["consult", "HLXI", "--verdict", "off", "--moves", "2", "--rounds", "2"];
    world.run(&[&small[..], &["--model", "demo", "--yes"]].concat());
    let run = world.only_run();
    let memo = report(&world, &run, &[]).stdout;
    for one in ["m1", "m2"] {
        let shown = world.run(&["show", &run, "--move", one]).stdout;
        let (_, behind) = shown.split_once("### Objections\n").unwrap();
        let objections: Vec<&str> =
            behind.lines().take_while(|line| line.starts_with("- ")).collect();
        let count = |state: &&str| {
            let has_state = |line: &&&str| line.contains(&format!(", {state}: "));
            let count = objections.iter().filter(has_state).count();
            (count > 0).then(|| format!("{count} {state}"))
        };
        let counts: Vec<String> =
            ["answered", "partly answered", "open", "conceded"].iter().filter_map(count).collect();
        let (all, counts) = (objections.len(), counts.join(", "));
        let sentence = format!("The critic raised {all} objections: {counts}.");
        assert!(memo.contains(&sentence), "{sentence} is not in {memo}");
    }
    // Regression: an objection that was answered in part was called open.
    let shown = world.run(&["show", &run]).stdout;
    let strongest: Vec<&str> = memo
        .split("### Strongest objection\n\n**")
        .skip(1)
        .map(|part| part.split_once(":**").unwrap().0)
        .collect();
    assert_eq!(strongest.len(), 2, "{memo}");
    for words in strongest.into_iter().filter(|words| !words.ends_with(", answered")) {
        assert!(shown.contains(&format!("strongest objection ({words}): ")), "{shown}");
    }
}

#[test]
fn memos_of_real_companies_link_to_their_filings() {
    for (ticker, as_of, cik) in [("AAPL", "2026-03-25", "320193"), ("JPM", "2026-05-01", "19617")] {
        let world = World::new();
        let folder = recorded();
        let small = ["--moves", "5", "--rounds", "2", "--as-of", as_of, "--offline", &folder];
        let ran = world.run(
            &[&["consult", ticker, "--verdict", "off", "--model", "demo"], &small[..]].concat(),
        );
        assert_eq!(ran.code, Some(0), "{ran}");
        let run = world.only_run();
        let memo = report(&world, &run, &[]).stdout;
        let page = report(&world, &run, &["--format", "html"]).stdout;
        let place = format!("https://www.sec.gov/Archives/edgar/data/{cik}/");
        let links = page.matches("href=\"https://").count();
        assert!(links > 10, "{page}");
        assert_eq!(page.matches(&format!("href=\"{place}")).count(), links);
        assert!(memo.contains(&format!("]: {place}")), "{memo}");
        assert!(!page.contains("FICTIONAL"), "{page}");
        report(&world, &run, &["--format", "pdf", "--output", "memo.pdf"]);
        report(&world, &run, &["--format", "csv", "--output", "scores.csv"]);
        assert_eq!(world.read("scores.csv").lines().count(), 1 + 5 * 16);
        world.write("memo.md", &memo);
        let offline = ["--offline", &folder, "--as-of", as_of];
        let checked = world.run(&[&["check", "memo.md", "--facts", ticker], &offline[..]].concat());
        assert_eq!(checked.code, Some(0), "{checked}");
        assert!(checked.stdout.contains(" 0 flagged"), "{checked}");
    }
}

#[test]
fn the_output_file_selects_the_format_and_is_replaced_only_by_force() {
    let world = World::new();
    let small =
        ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--moves", "1", "--rounds", "1"];
    assert_eq!(world.run(&small).code, Some(0));
    let run = world.only_run();
    report(&world, &run, &["--output", "memo.html"]);
    assert!(world.read("memo.html").starts_with("<!doctype html>"));
    report(&world, &run, &["--output", "result.json"]);
    let result: serde_json::Value = serde_json::from_str(&world.read("result.json")).unwrap();
    assert_eq!(result["run_id"], run.as_str());
    for (flags, problem) in [
        (&["--output", "memo.html"][..], "`memo.html` already exists"),
        (&["--format", "md", "--output", "memo.pdf"], "`md` to `memo.pdf`, a pdf file"),
        (&["--output", "memo.docx"], "`memo.docx` does not select a format"),
    ] {
        let refused = world.run(&[&["report", &run], flags].concat());
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(problem), "{refused}");
        assert!(refused.stderr.contains("hint:"), "{refused}");
    }
    assert!(!world.path("memo.pdf").exists());
    report(&world, &run, &["--output", "memo.html", "--force"]);
}

/// Regression: the Markdown memo replaced a PDF of the same name.
#[test]
fn a_memo_does_not_replace_a_file_of_another_format() {
    let world = World::new();
    world.write("memo.pdf", "%PDF-1.7");
    world.write("memo.md", "an earlier memo");
    let small =
        ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--moves", "1", "--rounds", "1"];
    let refused = world.run(&[&small[..], &["--memo", "memo.pdf"]].concat());
    assert_eq!(refused.code, Some(2), "{refused}");
    assert_eq!(
        refused.stderr,
        "error: `--memo` writes Markdown, but `memo.pdf` has another format\n\
         hint: pass `--memo memo.md`, and export other formats of the finished run with \
         `moothall report RUN --format pdf --output memo.pdf`\n"
    );
    assert_eq!(world.read("memo.pdf"), "%PDF-1.7");
    // A new run replaces the memo of an earlier one.
    assert_eq!(world.run(&[&small[..], &["--memo", "memo.md"]].concat()).code, Some(0));
    assert!(world.read("memo.md").starts_with("# Board memo"), "{}", world.read("memo.md"));
    world.only_run();
}

#[test]
fn a_report_that_cannot_be_created_fails_with_a_hint() {
    let world = World::new();
    let ran = world.run(&[
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--moves",
        "2",
        "--rounds",
        "2",
        "--budget-tokens",
        "60000",
    ]);
    assert_eq!(ran.code, Some(5), "{ran}");
    let run = world.only_run();
    assert!(report(&world, &run, &[]).stdout.contains("Not finished"));
    let refused = [
        world.run(&["report", &run, "--format", "jsonl"]),
        world.run(&["report", "no-such-run"]),
        world.run(&["report", &run, "--format", "docx"]),
    ];
    for ran in refused {
        assert!(
            ran.code == Some(2) && ran.stderr.contains("hint:")
                || ran.stderr.contains("possible values"),
            "{ran}"
        );
    }
}
