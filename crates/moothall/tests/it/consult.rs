//! `moothall consult` end to end, without an API key, a network or an image.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use insta::assert_snapshot;
use moothall_testkit::{ProviderBehaviour, ProviderCall, ProviderFault};
use serde_json::{Value, json};

use crate::evidence::recorded;
use crate::fake::Fake;
use crate::world::{Ran, World, check_paused, signal};

/// A small consultation: two moves, two rounds.
const SMALL: [&str; 10] =
    ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--moves", "2", "--rounds", "2"];

fn small(world: &World, more: &[&str]) -> Ran {
    world.run(&[&SMALL, more].concat())
}

fn is_made(world: &World) -> bool {
    world.root().join("home/.local/share/moothall/moothall.db").exists()
}

/// Checks that events are numbered from 1 without gaps or duplicates, and that the last one is
/// terminal.
#[track_caller]
fn check_events(world: &World, run: &str) {
    let printed = world.run(&["events", run, "--json"]);
    let events: Vec<Value> =
        printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let mut keys: Vec<&str> = events.iter().map(|event| event["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), events.len(), "duplicate event key");
    let terminal = |event: &&Value| event["event"] == "pipeline_complete";
    assert_eq!(events.iter().filter(terminal).count(), 1);
    assert_eq!(events.last().unwrap()["event"], "pipeline_complete");
}

#[test]
fn help_of_consult_shows_every_flag() {
    let world = World::new();
    let pages = ["consult", "pause", "approve", "replay"]
        .map(|command| world.run(&[command, "--help"]).to_string());
    assert_snapshot!(pages.join("\n\n"));
}

#[test]
fn the_bundled_company_is_consulted_without_key_network_or_image() {
    let world = World::new();
    let ran = world.run(&["consult", "HLXI", "--model", "demo", "--yes", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report = ran.json();
    let many = |field: &str| report[field].as_array().unwrap().len();
    let counted: BTreeMap<&str, usize> = [
        "move_suggestions",
        "policy_scores",
        "conversation_logs",
        "recommended_moves",
        "other_moves",
    ]
    .into_iter()
    .map(|field| (field, many(field)))
    .collect();
    assert_eq!(
        counted,
        BTreeMap::from([
            ("move_suggestions", 15),
            ("policy_scores", 15),
            ("conversation_logs", 15),
            ("recommended_moves", 3),
            ("other_moves", 12),
        ])
    );
    let counted = |field: &str| report[field].as_u64().unwrap();
    let beside = counted("beside_calls");
    assert_eq!((counted("calls") - counted("extra_calls") - beside, beside), (1_545, 3));
    assert_eq!(report["panel_verdict"]["check"], "passed");
    assert_eq!(report["panel_verdict"]["controls"].as_array().unwrap().len(), 5);
    assert_eq!(report["do_nothing"]["move_id"], "m0");
    assert_eq!(report["company_ticker"], "HLXI");
    assert_eq!((&report["fictional"], &report["demonstration"]), (&true.into(), &true.into()));
    for score in report["policy_scores"].as_array().unwrap() {
        assert_eq!(score["top_score"], 120);
        assert_eq!(score["rounds_done"], 10);
        assert_eq!(score["isolation"], "none");
        assert_eq!(score["conversation_logs"]["i2"].as_array().unwrap().len(), 20);
    }
    check_events(&world, &world.only_run());
}

#[test]
fn real_companies_are_consulted_over_recordings_of_their_filings() {
    for (ticker, as_of, missing) in [
        ("AAPL", "2026-03-25", "text of the annual report"),
        ("NVDA", "2026-07-09", "text of the annual report"),
        ("JPM", "2026-05-01", "list of filings"),
        ("SNOW", "2025-05-30", "list of filings"),
        ("LPA", "2025-04-07", "list of filings"),
        ("MSFT", "2025-07-30", "text of the annual report"),
    ] {
        let world = World::new();
        let folder = recorded();
        let small = ["--moves", "5", "--rounds", "2", "--as-of", as_of, "--offline", &folder];
        let ran = world.run(
            &[&["consult", ticker, "--verdict", "off", "--model", "demo", "--json"], &small[..]]
                .concat(),
        );
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let report = ran.json();
        assert_eq!((&report["as_of"], &report["fictional"]), (&as_of.into(), &false.into()));
        assert_eq!(report["policy_scores"].as_array().unwrap().len(), 5);
        let found = report["missing"].as_array().unwrap();
        assert!(found.iter().any(|one| one.as_str().unwrap().starts_with(missing)), "{found:?}");
        for ranked in report["recommended_moves"].as_array().unwrap() {
            assert_eq!(ranked["support"]["supported"], ranked["support"]["total"], "{ranked}");
        }
    }
}

#[test]
fn an_unknown_or_stale_company_or_a_missing_contact_is_refused() {
    let world = World::new();
    let folder = recorded();
    let refused = [
        world.run(&["consult", "APL", "--model", "demo", "--offline", &folder]),
        world.run(&["consult", "SNOW", "--model", "demo", "--offline", &folder]),
        world.run(&["consult", "AAPL", "--model", "demo"]),
    ];
    for (ran, words) in refused.iter().zip(["no company has the ticker", "18 months", "contact"]) {
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{ran}");
        assert!(ran.stderr.contains("\nhint: "), "{ran}");
    }
    assert!(!is_made(&world));
}

#[test]
fn synthetic_evidence_is_marked_everywhere() {
    let world = World::new();
    let ran = small(&world, &["--source", "synthetic", "--memo", "memo.md"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    assert!(ran.stderr.contains("AI-generated evidence (not real filings)"), "{ran}");
    assert!(ran.stdout.contains("AI-generated (not real filings)"), "{ran}");
    assert!(world.read("memo.md").contains("Synthetic data"), "{}", world.read("memo.md"));
    assert!(world.run(&["runs"]).stdout.contains("synthetic evidence"));
}

#[test]
fn the_ranking_without_a_panel_is_printed_as_text() {
    let world = World::new();
    let ran = small(&world, &[]);
    assert_snapshot!(ran.stdout);
    let end: Vec<&str> = ran.stderr.lines().rev().take(3).collect();
    assert_snapshot!("end", crate::world::filtered(&end.join("\n")));
    let told = |words: &str| ran.stderr.lines().any(|line| line.starts_with(words));
    for words in
        ["HLXI: 2 moves", "gather: done", "analyst_1: m1.md", "m1: 2 rounds debated", "m2: "]
    {
        assert!(told(words), "nothing says {words}: {ran}");
    }
    assert!(ran.stderr.lines().count() < 40, "{ran}");
}

/// Regression: the note, a line of the first debate, the last line and a line of the log explained
/// it.
#[test]
fn a_missing_debate_image_is_explained_once() {
    let world = World::new();
    let counts = |flags: &[&str]| {
        let ran = small(&world, flags);
        assert_eq!(ran.code, Some(0), "{ran}");
        let words = ["; to use a microVM, run `", "isolation class none", "no sandbox", " WARN "];
        words.map(|words| ran.stderr.matches(words).count())
    };
    // The second mention of the class is in the figures at the end.
    assert_eq!(counts(&[]), [1, 2, 0, 0]);
    assert_eq!(counts(&["-v"]), [1, 2, 1, 0]);
}

#[test]
fn all_results_of_a_consultation_can_be_shown_afterwards() {
    let world = World::new();
    let ran = small(&world, &["--memo", "memo.md", "--receipt", "receipt", "--events", "events"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran}");
    let run = world.only_run();
    let show = |more: &[&str]| world.run(&[&["show", run.as_str()], more].concat());
    assert_snapshot!("show", show(&[]));
    assert_snapshot!("runs", world.run(&["runs"]));
    assert_eq!(show(&["--memo"]).stdout, world.read("memo.md"));
    assert!(world.read("memo.md").contains("Fictional company"));
    assert_snapshot!("move", show(&["--move", "m1"]));
    let transcript = show(&["--move", "m1", "--thread", "D2"]);
    assert!(transcript.stdout.starts_with("**[Round 1] CRITIC:**\n"), "{transcript}");
    assert_eq!(transcript.stdout.matches("DECISION MAKER (D2)").count(), 2, "{transcript}");
    assert_eq!(transcript.stdout, show(&["--move", "m1", "--thread", "i2"]).stdout);
    assert_snapshot!("no_move", show(&["--move", "m9"]));
    assert_snapshot!("no_thread", show(&["--move", "m1", "--thread", "D9"]));
    assert_snapshot!("no_code", show(&["--code"]));
    let verified = world.run(&["verify", "receipt"]);
    assert_eq!(verified.code, Some(0), "{verified}");
    assert!(verified.stdout.contains("\nrank 1    m1 Open a direct channel"), "{verified}");
    let mut names: Vec<String> = {
        let written = show(&["--artifacts", "out"]);
        assert_eq!(written.code, Some(0), "{written}");
        let files = fs_err::read_dir(world.path("out")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    names.sort();
    assert_eq!(
        names,
        [
            "F0.json",
            "F1.md",
            "F2.md",
            "do-nothing.json",
            "m0.md",
            "m1.i1.json",
            "m1.i2.json",
            "m1.i3.json",
            "m1.md",
            "m2.i1.json",
            "m2.i2.json",
            "m2.i3.json",
            "m2.md",
            "scores.json",
        ]
    );
    assert_snapshot!("replay", world.run(&["replay", &run]));
    check_events(&world, &run);
    assert_eq!(world.read("events"), world.run(&["events", &run, "--json"]).stdout);
}

#[test]
fn an_estimate_needs_no_key_and_names_two_other_models() {
    let world = World::new();
    let ran = world.run(&["consult", "AAPL", "--estimate", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let estimate = ran.json();
    assert_eq!(estimate["roles"][0]["model"], "anthropic/claude-haiku-5-5", "{estimate:#}");
    let others = estimate["alternatives"].as_array().unwrap();
    assert_eq!(others.len(), 2, "{estimate:#}");
    assert!(others.iter().all(|other| other["high_usd"].is_string()), "{estimate:#}");
    let text = world.run(&["consult", "AAPL", "--estimate"]);
    assert_eq!(text.stdout.matches("with `--model ").count(), 2, "{text}");
    assert!(!is_made(&world));
}

#[test]
fn an_estimate_prints_the_cost_and_starts_nothing() {
    let world = World::new();
    let arguments = ["consult", "AAPL", "--model", "anthropic/claude-haiku-5-5", "--estimate"];
    assert_snapshot!(world.run(&arguments));
    let report = world.run(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!((&report["calls"], &report["moves"]), (&1_545.into(), &15.into()));
    assert_eq!((&report["beside_calls"], &report["all_calls"]), (&3.into(), &1_548.into()));
    let cheaper: Vec<(&Value, &Value)> = report["cheaper_verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["flag"], &one["all_calls"]))
        .collect();
    let expected = json!(["--rounds 4", 1_008, "--verdict panel", 1_116]);
    let expected = expected.as_array().unwrap();
    assert_eq!(cheaper, [(&expected[0], &expected[1]), (&expected[2], &expected[3])]);
    let off = world.run(&[&arguments[..], &["--verdict", "off", "--json"]].concat()).json();
    assert_eq!((&off["all_calls"], &off["cheaper_verdicts"]), (&925.into(), &json!([])));
    assert!(!world.root().join("home/.local").exists());
}

#[test]
fn an_expensive_run_without_confirmation_is_refused() {
    let world = World::new().with("ANTHROPIC_API_KEY", "a-key");
    let consult = ["consult", "HLXI", "--model", "anthropic/claude-opus-5-5"];
    assert_snapshot!(world.run(&consult));
    // An untrusted file cannot raise the spend limit.
    world.write("moothall.toml", "consult.ask_above_usd = 1000\n");
    assert_eq!(world.run(&consult).code, Some(2));
    assert!(!is_made(&world));
}

#[test]
fn an_invalid_consultation_is_refused_before_a_run_is_created() {
    let world = World::new();
    let refused = [
        &["consult", "BRK/A", "--model", "demo"][..],
        &["consult", "HLXI", "--model", "demo", "--moves", "16"],
        &["consult", "HLXI", "--model", "demo", "--as-of", "yesterday"],
        &["consult", "HLXI", "--model", "demo", "--model-for", "judge=demo"],
        &["consult", "HLXI", "--model", "demo", "--committee", "senate"],
        &["consult", "HLXI", "--model", "demo", "--isolation", "microvm"],
        &["consult", "HLXI"],
    ]
    .map(|arguments| {
        let ran = world.run(arguments);
        assert!(matches!(ran.code, Some(2 | 4)), "{ran}");
        ran.to_string()
    });
    assert_snapshot!(refused.join("\n\n"));
    assert!(!is_made(&world));
}

#[test]
fn debates_without_a_sandbox_are_refused_if_one_is_required() {
    let world = World::new();
    world.write_config("moothall.toml", "isolation.on_failure = \"fail\"\n");
    let refused =
        [small(&world, &[]).to_string(), small(&world, &["--isolation", "none"]).to_string(), {
            // A file in the working directory cannot remove the requirement.
            world.write("moothall.toml", "isolation.on_failure = \"fallback\"\n");
            small(&world, &["--isolation", "none"]).to_string()
        }];
    assert_snapshot!(refused.join("\n\n"));
    assert!(!is_made(&world));
}

#[test]
fn a_killed_consultation_resumes_without_repeating_calls() {
    let world = World::new();
    // Sequentially, so that moves remain when the first one is scored.
    let arguments = [&SMALL[..6], &["--moves", "6", "--parallel-moves", "1"]].concat();
    let mut child = world.command(&arguments).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let scored = |line: &String| line.contains("/120");
    assert!(lines.map(Result::unwrap).any(|line| scored(&line)), "no move was scored");
    child.kill().unwrap();
    child.wait().unwrap();
    let run = world.only_run();
    let before = world.run(&["show", &run]);
    assert!(before.stdout.contains("not finished: results so far"), "{before}");
    let resumed = world.run(&["resume", &run, "--json"]);
    assert!(matches!(resumed.code, Some(0 | 3)), "{resumed}");
    assert_eq!(resumed.json()["policy_scores"].as_array().unwrap().len(), 6);
    check_events(&world, &run);
    let repeated = world.run(&["replay", &run]);
    assert_eq!(repeated.code, Some(0), "{repeated}");
}

/// A consultation with the fake provider.
const WITH_FAKE: [&str; 9] = [
    "consult",
    "HLXI",
    "--verdict",
    "off",
    "--config",
    "fake.toml",
    "--model",
    "openai/m",
    "--yes",
];

#[test]
fn a_wrong_api_key_pauses_a_consultation_with_a_hint() {
    let fake = Fake::start();
    fake.always(ProviderFault::Unauthorized);
    let world = World::new().with("OPENAI_API_KEY", "wrong");
    fake.configure(&world, "");
    let ran = world.run(&WITH_FAKE);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("is paused: openai/m did not answer (auth: "), "{ran}");
    assert!(ran.stderr.contains("hint: check the key from OPENAI_API_KEY"), "{ran}");
    assert!(ran.stderr.contains("; then continue with `moothall resume "), "{ran}");
}

#[test]
fn an_api_key_refused_during_a_run_loses_no_answers() {
    // Regression: the whole run ended with a verdict although only the account was empty.
    let fake = Fake::start();
    let (answered, credit) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(2)));
    let (count, left) = (Arc::clone(&answered), Arc::clone(&credit));
    fake.respond_with(move |_| {
        if left.load(Ordering::SeqCst) == 0 {
            return ProviderFault::Unauthorized.into();
        }
        left.fetch_sub(1, Ordering::SeqCst);
        count.fetch_add(1, Ordering::SeqCst);
        ProviderBehaviour::text("Revenue grows slowly and cash is plenty.")
    });
    let world = World::new().with("OPENAI_API_KEY", "empty");
    fake.configure(&world, "");
    let model = ["--config", "fake.toml", "--model", "openai/m", "--yes"];
    let stopped =
        world.run(&[&["consult", "HLXI", "--verdict", "off", "--json"], &model[..]].concat());
    assert_eq!((stopped.code, &stopped.json()["state"]), (Some(4), &"paused".into()), "{stopped}");
    assert_eq!(answered.load(Ordering::SeqCst), 2);
    let run = world.only_run();
    let kept = |name: &str| {
        world
            .run(&["events", &run, "--json"])
            .stdout
            .matches(&format!("\"event\":\"{name}\""))
            .count()
    };
    assert_eq!((kept("model_replied"), kept("run_paused"), kept("model_failed")), (2, 1, 0));
    // With more credit it continues where it paused; completed calls are not repeated.
    credit.store(usize::MAX, Ordering::SeqCst);
    world.run(&["resume", &run, "--config", "fake.toml"]);
    assert!(answered.load(Ordering::SeqCst) > 2);
    assert_eq!(kept("model_replied"), answered.load(Ordering::SeqCst));
}

#[test]
fn board_is_drawn_again_in_place_on_a_terminal() {
    for (colour, painted) in [("NO_COLOR", false), ("CLICOLOR_FORCE", true)] {
        let world = World::new().with(colour, "1");
        let (code, drawn) = on_terminal(world.command(&SMALL), 80, 24);
        assert_eq!(code, Some(0), "{drawn}");
        assert!(drawn.contains("\u{1b}[?2026h") && drawn.contains("\u{1b}[J"), "{drawn:?}");
        let lane = " m1  Open a direct channel where demand already shows";
        let plain = anstream::adapter::strip_str(&drawn).to_string();
        assert!(plain.contains(lane) && plain.contains("✓ rank"), "{plain}");
        assert_eq!(drawn.contains("\u{1b}[1m"), painted, "{drawn:?}");
    }
    let (_, small) = on_terminal(World::new().command(&SMALL), 30, 24);
    assert!(!small.contains("● holds"), "{small}");
}

/// Runs the program with a terminal of this size as its standard error, and returns the output.
fn on_terminal(mut command: Command, columns: u16, rows: u16) -> (Option<i32>, String) {
    use rustix::{pty, termios};
    let flags = pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY;
    let main = pty::openpt(flags).unwrap();
    pty::grantpt(&main).unwrap();
    pty::unlockpt(&main).unwrap();
    let size = termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    termios::tcsetwinsize(&main, size).unwrap();
    let name = pty::ptsname(&main, Vec::new()).unwrap();
    let other =
        fs_err::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = command.stderr(std::process::Stdio::from(other.into_file())).spawn().unwrap();
    // Dropping the command closes our copies of the other end, so that reading ends.
    drop(command);
    let mut drawn = Vec::new();
    // Reading from a closed terminal ends with an error.
    let _ = std::fs::File::from(main).read_to_end(&mut drawn);
    (child.wait().unwrap().code(), String::from_utf8_lossy(&drawn).into_owned())
}

#[test]
fn a_consultation_pauses_at_its_budget_and_resumes_with_more() {
    let world = World::new();
    let ran = small(&world, &["--budget-tokens", "60000", "--memo", "memo.md"]);
    assert_eq!(ran.code, Some(5), "{ran}");
    assert!(ran.stderr.contains("hint: raise the limit with `moothall resume "), "{ran}");
    assert!(world.read("memo.md").contains("Not finished"), "{}", world.read("memo.md"));
    let run = world.only_run();
    let resumed = world.run(&["resume", &run, "--budget-tokens", "90000000"]);
    assert!(matches!(resumed.code, Some(0 | 3)), "{resumed}");
    check_events(&world, &run);
}

#[test]
fn ctrl_c_pauses_and_the_run_can_be_resumed() {
    let fake = Fake::start();
    let (arrived, arrivals) = std::sync::mpsc::channel();
    fake.respond_with(move |_| {
        let _ = arrived.send(());
        ProviderBehaviour::text("Nothing much.").with_latency(Duration::from_millis(700))
    });
    let world = World::new();
    fake.configure(&world, "");
    let child = world.command(&WITH_FAKE).spawn().unwrap();
    arrivals.recv_timeout(Duration::from_secs(20)).unwrap();
    signal(&child, "INT");
    let ran = world.ran(&WITH_FAKE, child.wait_with_output().unwrap());
    check_paused(&world, &ran);
    let run = world.only_run();
    let shown = world.run(&["show", &run]);
    assert!(shown.stdout.contains("state      paused"), "{shown}");
    assert_snapshot!(world.run(&["pause", &run]));
    fake.always(ProviderBehaviour::text("Nothing much."));
    // No usable move is proposed, so no ranking, but the run ends.
    let resumed = world.run(&["resume", &run, "--config", "fake.toml"]);
    assert!(matches!(resumed.code, Some(1 | 4)), "{resumed}");
    check_events(&world, &run);
}

#[test]
fn a_second_ctrl_c_exits_immediately() {
    let (fake, arrivals) = Fake::hanging();
    let world = World::new();
    fake.configure(&world, "");
    let mut child = world.command(&WITH_FAKE).spawn().unwrap();
    arrivals.recv_timeout(Duration::from_secs(20)).unwrap();
    signal(&child, "INT");
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Ctrl-C again") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "no message about a second Ctrl-C");
    }
    signal(&child, "INT");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("continue it with `moothall resume"), "{rest}");
    assert!(world.run(&["runs"]).stdout.contains("interrupted"));
}

/// A committee that proposes moves with a wrong number and scores them well.
pub(crate) fn careless(call: &ProviderCall) -> ProviderBehaviour {
    let body = call.body();
    let fields = &body["response_format"]["json_schema"]["schema"]["properties"];
    let scores = json!({
        "impact": 7, "feasibility": 7, "risk_adjusted_return": 7, "strategic_alignment": 7,
        "reasoning": "It is good.",
    });
    let answer = if fields.get("moves").is_some() {
        let proposal = json!({
            "title": "Double everything",
            "thesis": "Revenue was $9,999 million in FY2025 [F0:Revenue:FY2025].",
            "actions": ["Double it."], "what_must_be_true": ["It can be doubled."],
            "evidence": ["F0:Revenue:FY2025"], "risks": ["It cannot."], "cost": "None.",
            "horizon": "A year.", "kill_criteria": ["It is halved."],
        });
        json!({ "moves": [proposal] })
    } else if fields.get("objections").is_some() {
        json!({ "message": "Why?", "objections": [], "withdrawn": [] })
    } else if fields.get("stance").is_some() {
        json!({ "message": "Why not?", "stance": "hold", "answers": [], "conceded": [] })
    } else if fields.get("impact").is_some() {
        scores
    } else {
        json!("Nothing is known.")
    };
    ProviderBehaviour::text(answer.as_str().map_or_else(|| answer.to_string(), str::to_owned))
}

#[test]
fn a_model_on_this_machine_is_not_asked_about_its_price() {
    let fake = Fake::start();
    fake.respond_with(careless);
    let world = World::new();
    world.write("lab.toml", &format!("[provider.lab]\nbase_url = \"{}\"\n", fake.url()));
    let consult = ["consult", "HLXI", "--verdict", "off", "--moves", "1", "--rounds", "1"];
    let model = ["--isolation", "none", "--config", "lab.toml", "--model", "lab/m"];
    let ran = world.run(&[&consult[..], &model].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(!ran.stderr.contains("confirm") && !ran.stderr.contains("price"), "{ran}");
    // The same model on another machine has an unknown price.
    world.write("lab.toml", "[provider.lab]\nbase_url = \"https://model.example/v1\"\n");
    let ran = world.run(&[&consult[..], &model].concat());
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("needs confirmation"), "{ran}");
}

#[test]
fn an_escalated_move_is_ranked_after_its_approval() {
    let fake = Fake::start();
    fake.respond_with(careless);
    let world = World::new();
    fake.configure(&world, "");
    let consult = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--config",
        "fake.toml",
        "--model",
        "openai/m",
        "--yes",
    ];
    let ran = world.run(&[&consult[..], &["--moves", "1", "--rounds", "1"]].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(ran.stdout.contains("held back: claims.wrong-value"), "{ran}");
    assert!(ran.stderr.contains("moothall approve"), "{ran}");
    let run = world.only_run();
    let approve = ["approve", run.as_str(), "--move", "m1", "--by", "Ada", "--note", "I looked."];
    assert_snapshot!(world.run(&approve));
    assert_snapshot!(world.run(&approve));
    let shown = world.run(&["show", &run, "--receipt", "receipt"]);
    assert!(shown.stdout.contains("approved   m1 by Ada at "), "{shown}");
    assert!(shown.stdout.contains("approved despite: claims.wrong-value"), "{shown}");
    assert_eq!(world.run(&["verify", "receipt"]).code, Some(0));
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
}

#[test]
fn only_escalated_moves_can_be_approved() {
    let world = World::new();
    small(&world, &[]);
    let run = world.only_run();
    let refused = [
        world.run(&["approve", &run, "--move", "m1"]).to_string(),
        world.run(&["approve", &run, "--move", "m9", "--by", "a person"]).to_string(),
        world.run(&["approve", &run, "--move", "m1", "--by", "a person"]).to_string(),
    ];
    assert_snapshot!(refused.join("\n\n"));
}
