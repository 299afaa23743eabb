use clap::Parser as _;
use serde_json::json;

use super::*;
use crate::args::{Cli, CliCommand};

fn defaults() -> ServerDefaults {
    ServerDefaults {
        model: None,
        offline: None,
        committees: Vec::new(),
        restate: None,
        allows_feeds: true,
    }
}

#[test]
fn a_program_is_the_same_request_over_http_as_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs_err::write(path("data.csv"), "a,b\n").unwrap();
    fs_err::write(path("check.py"), "assert True\n").unwrap();
    let (data, check) = (path("data.csv"), path("check.py"));
    let cli = Cli::try_parse_from([
        "moothall",
        "run",
        "sum it",
        "--model",
        "demo",
        "--input",
        &data,
        "--expect",
        "text:3",
        "--check",
        &check,
        "--expect-file",
        "chart.png",
        "--attempts",
        "2",
        "--image",
        "data",
        "--timeout",
        "5",
        "--memory",
        "64",
        "--isolation",
        "microvm",
        "--budget",
        "0.50",
        "--budget-tokens",
        "900",
    ])
    .unwrap();
    let Some(CliCommand::Run(args)) = cli.command else { panic!("not `run`") };
    let by_cli = ProgramRequest::from_args(&args).unwrap();
    let body = json!({
        "task": " sum it ", "model": "demo", "inputs": [{"name": "data.csv", "text": "a,b\n"}],
        "expect_text": "3", "check": "assert True\n", "expect_files": ["chart.png"],
        "attempts": 2, "image": "data", "timeout_seconds": 5, "memory_mib": 64,
        "isolation": "microvm", "budget_usd": "0.50", "budget_tokens": 900,
    });
    let request = serde_json::from_value(body).unwrap();
    let by_http = ProgramRequest::from_http(&request, &defaults()).unwrap();
    assert_eq!(format!("{by_http:?}"), format!("{by_cli:?}"));
}

#[test]
fn limits_of_programs_are_the_same_as_on_the_command_line() {
    let request = serde_json::from_value(json!({"task": "x"})).unwrap();
    let by_http = ProgramRequest::from_http(&request, &defaults()).unwrap();
    let cli = Cli::try_parse_from(["moothall", "run", "x"]).unwrap();
    let Some(CliCommand::Run(args)) = cli.command else { panic!("not `run`") };
    let by_cli = ProgramRequest::from_args(&args).unwrap();
    assert_eq!(format!("{by_http:?}"), format!("{by_cli:?}"));
}

/// The hash of a request with an idempotency key is stored, so a request that earlier versions
/// accepted must have the same serialized form.
#[test]
fn requests_of_earlier_versions_keep_their_serialized_form() {
    let request: StartConsultRequest = serde_json::from_value(json!({"ticker": "HLXI"})).unwrap();
    assert_eq!(
        serde_json::to_string(&request).unwrap(),
        "{\"ticker\":\"HLXI\",\"model\":null,\"committee\":null,\"rounds\":null,\"moves\":null,\
         \"parallel_moves\":null,\"source\":null,\"as_of\":null,\"allow_stale\":false,\
         \"brief\":null,\"pause_after_moves\":false,\"baseline\":false,\"budget_usd\":null,\
         \"isolation\":null}"
    );
    let request: StartProgramRequest = serde_json::from_value(json!({"task": "x"})).unwrap();
    assert_eq!(
        serde_json::to_string(&request).unwrap(),
        "{\"task\":\"x\",\"model\":null,\"expect_regex\":null,\"attempts\":null,\
         \"budget_usd\":null}"
    );
}
