//! `facts` and `check`: with the built-in sample company, with recordings of real companies, and
//! with a service that rejects requests.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use insta::assert_snapshot;
use serde_json::Value;

use crate::world::{Ran, World};

/// Real SEC responses.
pub(crate) fn recorded() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../moothall-testkit/filings").to_owned()
}

fn offline(world: &World, arguments: &[&str]) -> Ran {
    world.run(&[arguments, &["--offline", &recorded()]].concat())
}

/// A real company as of the date of its recording.
fn real(ticker: &str, as_of: &str) -> Value {
    let ran = offline(&World::new(), &["facts", ticker, "--as-of", as_of, "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
    ran.json()
}

fn value<'a>(report: &'a Value, id: &str) -> &'a str {
    let facts = report["facts"].as_array().unwrap();
    let fact = facts.iter().find(|fact| fact["id"] == id);
    fact.unwrap_or_else(|| panic!("no {id}"))["value"].as_str().unwrap()
}

fn missing(report: &Value) -> Vec<&str> {
    report["missing"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

/// A report without hashes and lists.
fn summary(report: &Value) -> Value {
    let count = |name: &str| report[name].as_array().unwrap().len();
    let mut summary = report.clone();
    let fields = summary.as_object_mut().unwrap();
    for name in ["facts", "events", "passages", "sources", "gaps", "checks"] {
        fields.insert(name.to_owned(), count(name).into());
    }
    summary
}

#[test]
fn help_of_facts_and_check_shows_every_flag_and_examples() {
    let world = World::new();
    let pages = ["facts", "check"].map(|command| world.run(&[command, "--help"]).to_string());
    assert_snapshot!(pages.join("\n\n"));
}

#[test]
fn facts_of_the_bundled_company_work_offline_and_are_marked_fictional() {
    assert_snapshot!(World::new().run(&["facts", "hlxi"]));
}

#[test]
fn json_of_the_fictional_company_has_everything_that_can_be_cited() {
    let ran = World::new().run(&["facts", "HLXI", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let report = ran.json();
    assert_snapshot!(crate::world::filtered(&format!("{:#}", summary(&report))));
    assert_eq!(value(&report, "Revenue:FY2025"), "1214900000");
    assert!(report["events"][0]["subjects"].as_str().unwrap().starts_with("other event"));
    assert_eq!(report["passages"][0]["item"], "1");
}

#[test]
fn csv_has_a_line_for_each_fact_with_its_filing() {
    let world = World::new();
    let ran = world.run(&["facts", "HLXI", "--csv"]);
    let report = world.run(&["facts", "HLXI", "--json"]).json();
    let lines: Vec<&str> = ran.stdout.split("\r\n").collect();
    assert_eq!(lines.len(), report["facts"].as_array().unwrap().len() + 2);
    let of = |id: &str| lines.iter().find(|line| line.starts_with(&format!("{id},"))).unwrap();
    let shown = [lines[0], of("Revenue:FY2025"), of("GrossMargin:FY2025"), of("Inventory:FY2023")];
    assert_snapshot!(shown.join("\n"));
    assert!(ran.stderr.contains("fictional"), "{ran}");
}

#[test]
fn facts_as_of_a_past_day_exclude_later_filings() {
    let world = World::new();
    let then = world.run(&["facts", "HLXI", "--as-of", "2025-02-26", "--json"]).json();
    assert_eq!(then["as_of"], "2025-02-26");
    assert_eq!(then["newest_filing"]["form"], "10-Q");
    assert_eq!(value(&then, "Inventory:FY2023"), "194787000");
    let now = world.run(&["facts", "HLXI", "--json"]).json();
    assert_eq!(value(&now, "Inventory:FY2023"), "188587000");
}

#[test]
fn facts_of_a_recording_write_no_files() {
    let world = World::new();
    assert_eq!(world.run(&["facts", "HLXI"]).code, Some(0));
    let home: Vec<_> = fs_err::read_dir(world.root().join("home")).unwrap().collect();
    assert_eq!(home.len(), 0);
}

#[test]
fn apple_is_read_from_its_recording() {
    let report = real("AAPL", "2026-03-25");
    assert_eq!(report["company"]["name"], "Apple Inc.");
    assert_eq!(report["provenance"]["from"], "recorded");
    assert_eq!(report["fictional"], false);
    assert_eq!(value(&report, "Revenue:FY2025"), "416161000000");
    assert_eq!(value(&report, "Revenue:FY2025Q4"), "102466000000");
    assert_eq!(report["events"].as_array().unwrap().len(), 40);
    assert_eq!(
        missing(&report),
        ["text of the annual report (10-K of 2025-10-31): document not found"]
    );
}

#[test]
fn nvidia_is_read_from_its_recording_with_its_two_splits() {
    let report = real("NVDA", "2026-07-09");
    assert_eq!(value(&report, "Revenue:FY2026"), "215938000000");
    let checks: Vec<&str> =
        report["checks"].as_array().unwrap().iter().map(|check| check.as_str().unwrap()).collect();
    assert_eq!(checks.iter().filter(|check| check.contains("were split")).count(), 2);
}

#[test]
fn microsoft_is_read_from_its_recording_with_a_warning_of_its_age() {
    let report = real("MSFT", "2026-03-05");
    assert_eq!(value(&report, "Revenue:FY2025"), "281724000000");
    assert_eq!(
        report["warnings"],
        serde_json::json!([
            "the newest report used is 218 days old: 10-K of 2025-07-30",
            "an 8-K of 2026-01-28 announces results that are not in these facts"
        ])
    );
}

#[test]
fn companies_without_a_list_of_filings_are_read_and_the_gap_is_named() {
    let gap = ["list of filings: not found; events and passages are missing"];
    for (ticker, as_of, id, expected) in [
        ("JPM", "2026-05-01", "NetIncome:FY2025", "57048000000"),
        ("SNOW", "2025-05-30", "NetIncome:FY2025", "-1285640000"),
        ("LPA", "2025-04-07", "Revenue:FY2024", "43862372"),
    ] {
        let report = real(ticker, as_of);
        assert_eq!(value(&report, id), expected, "{ticker}");
        assert_eq!(missing(&report), gap, "{ticker}");
        assert_eq!(report["events"].as_array().unwrap().len(), 0, "{ticker}");
    }
}

#[test]
fn a_stale_company_is_refused_unless_allowed_or_viewed_as_of_a_past_day() {
    let world = World::new();
    let ran = offline(&world, &["facts", "SNOW"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    let words = "error: the last annual report of SNOW was filed on 2025-03-21, more than 18 months before ";
    assert!(ran.stderr.starts_with(words), "{ran}");
    assert!(ran.stderr.contains("hint: use `--as-of 2025-05-30` "), "{ran}");
    let allowed = offline(&world, &["facts", "SNOW", "--allow-stale", "--json"]);
    assert_eq!(allowed.code, Some(0), "{allowed}");
    assert_eq!(allowed.json()["as_of"], "2025-05-30");
}

#[test]
fn unknown_tickers_are_usage_errors_with_hints() {
    let world = World::new();
    let mistakes = ["AAPLE", "APPLE", "ZZZZZ", "TSLA", "../../x"];
    let runs = mistakes.map(|ticker| {
        let ran = offline(&world, &["facts", ticker]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
        ran.stderr
    });
    assert_snapshot!(runs.join("\n"));
}

#[test]
fn the_sec_is_not_contacted_without_a_contact_address() {
    assert_snapshot!(World::new().run(&["facts", "AAPL"]));
}

#[test]
fn a_directory_without_a_recording_is_a_usage_error() {
    let world = World::new();
    assert_snapshot!(world.run(&["facts", "AAPL", "--offline", "."]));
    assert_eq!(world.run(&["facts", "AAPL", "--offline", "missing"]).code, Some(2));
}

#[test]
fn wrong_values_of_flags_say_what_is_taken() {
    let world = World::new();
    let runs = [
        &["facts", "HLXI", "--as-of", "yesterday"][..],
        &["facts", "HLXI", "--json", "--csv"],
        &["facts"],
        &["check", "memo.md"],
    ]
    .map(|arguments| world.run(arguments).to_string());
    assert_snapshot!(runs.join("\n\n"));
}

/// A service that answers every request with one status, and the requests it received.
fn service(answer: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            let _ = sender.send(String::from_utf8(head).unwrap());
        }
    });
    (base, receiver)
}

#[test]
fn a_refusal_of_the_sec_fails_and_the_request_named_the_contact() {
    let (base, asked) = service("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    let world = World::new()
        .with("MOOTHALL_EVIDENCE__DATA_URL", &base)
        .with("MOOTHALL_EVIDENCE__WWW_URL", &base)
        .with("MOOTHALL_EVIDENCE__CONTACT", "Ada ada@example.com");
    assert_snapshot!(world.run(&["facts", "AAPL"]));
    let request = asked.recv().unwrap();
    assert!(request.starts_with("GET /files/company_tickers.json HTTP/1.1\r\n"), "{request}");
    let agent =
        concat!("user-agent: moothall/", env!("CARGO_PKG_VERSION"), " Ada ada@example.com\r\n");
    assert!(request.contains(agent), "{request}");
    assert!(asked.try_recv().is_err(), "it asked again");
}

#[test]
fn a_file_in_the_working_directory_cannot_set_the_evidence_urls() {
    let world = World::new();
    let file = "[evidence]\ncontact = \"ada@example.com\"\ndata_url = \"http://127.0.0.1:1\"\n";
    world.write("moothall.toml", file);
    assert_snapshot!(world.run(&["facts", "AAPL"]));
    let trusted = world.run(&["facts", "AAPL", "--config", "moothall.toml", "--offline", "."]);
    assert!(trusted.stderr.contains("is not a recording"), "{trusted}");
}

const MEMO: &str = "\
# Helix Instruments

Revenue was $1,214.9 million in fiscal 2025 [F0:Revenue:FY2025], up 2.2% [F0:Revenue.yoy:FY2025].
Gross margin was 54.1% in fiscal 2025 [F0:GrossMargin:FY2025].
Inventory reached $273.6 million. Services will grow 12% next year.
Net income was $125 billion [F0:NetIncome:FY2025]. Cash was $150 million [F0:Cash:FY2031].
We assume a price rise of 3% [A1: below the last three years].

Investors should buy the shares.
";

#[test]
fn flagged_claims_are_printed_with_the_correct_value() {
    let world = World::new();
    world.write("memo.md", MEMO);
    assert_snapshot!(world.run(&["check", "memo.md", "--facts", "HLXI"]));
}

#[test]
fn json_of_a_check_has_every_claim() {
    let ran =
        World::new().run_with_input(&["check", "-", "--facts", "HLXI", "--json"], MEMO.as_bytes());
    assert_eq!(ran.code, Some(3), "{ran}");
    let report = ran.json();
    let mut counted = BTreeMap::<&str, u32>::new();
    for claim in report["claims"].as_array().unwrap() {
        *counted.entry(claim["verdict"].as_str().unwrap()).or_default() += 1;
    }
    assert_snapshot!(format!("{counted:#?}\n{:#}", report["support"]));
    assert_eq!(report["verdict"], "needs-person");
    assert_eq!(report["fictional"], true);
}

#[test]
fn a_text_with_only_supported_numbers_passes() {
    let text = "Revenue was $1,214.9 million [F0:Revenue:FY2025]. Gross margin was 52.3% [F0:GrossMargin:FY2025].\n";
    let ran = World::new().run_with_input(&["check", "-", "--facts", "HLXI"], text.as_bytes());
    assert_snapshot!(ran);
}

#[test]
fn invented_numbers_need_a_person_unless_the_check_is_lenient() {
    let text = "Helix sells software. It has 4,321 employees and $9,999 million in cash.\n";
    let check = |flags: &[&str]| {
        let arguments = [&["check", "-", "--facts", "HLXI"], flags].concat();
        World::new().run_with_input(&arguments, text.as_bytes())
    };
    assert_snapshot!(check(&[]));
    let lenient = check(&["--lenient"]);
    assert_eq!(lenient.code, Some(0), "{lenient}");
    assert!(lenient.stdout.contains("2 flagged"), "{lenient}");
}

#[test]
fn findings_of_a_check_are_printed_as_sarif_and_as_annotations_of_github() {
    let world = World::new();
    world.write("memo.md", MEMO);
    let sarif = world.run(&["check", "memo.md", "--facts", "HLXI", "--format", "sarif"]);
    assert_eq!(sarif.code, Some(3), "{sarif}");
    let report = sarif.json();
    let lines: Vec<(&str, u64)> = report["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let region = &result["locations"][0]["physicalLocation"]["region"];
            (result["ruleId"].as_str().unwrap(), region["startLine"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        lines,
        [
            ("claims.wrong-period", 4),
            ("claims.uncited", 5),
            ("claims.projection", 5),
            ("claims.wrong-scale", 6),
            ("claims.bad-citation", 6),
            ("claims.unsupported", 6),
        ]
    );
    assert_snapshot!(world.run(&["check", "memo.md", "--facts", "HLXI", "--format", "github"]));
}

#[test]
fn checked_text_is_sanitized_for_the_terminal() {
    let text = "Revenue was $1,300\u{1b}[2J million\u{202e} [F0:Revenue:FY2025].";
    let ran = World::new().run_with_input(&["check", "-", "--facts", "HLXI"], text.as_bytes());
    assert!(!ran.stdout.contains(['\u{1b}', '\u{202e}']), "{ran}");
    assert_eq!(ran.code, Some(3), "{ran}");
}

#[test]
fn text_that_cannot_be_read_is_a_usage_error() {
    let world = World::new();
    let missing = world.run(&["check", "missing.md", "--facts", "HLXI"]);
    fs_err::write(world.path("bytes.md"), [0xff, 0xfe]).unwrap();
    let bytes = world.run(&["check", "bytes.md", "--facts", "HLXI"]);
    assert_snapshot!(format!("{missing}\n\n{bytes}"));
}
