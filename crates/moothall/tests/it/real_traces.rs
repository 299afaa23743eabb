//! Traces as a real OpenTelemetry receiver gets them: `tools/otlp-check` decodes them with the
//! official protobuf classes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::real_restate::cluster::{CONSULT, Cluster, Plan, SMALL};
use crate::world::World;

/// A receiver that is stopped at the end of its test.
struct Receiver {
    process: Child,
    url: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Receiver {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spans.jsonl");
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/otlp-check/run.sh");
        let cache =
            PathBuf::from(std::env::var("HOME").unwrap()).join(".cache/moothall/otlp-check");
        let mut command = Command::new("bash");
        command.arg(tool).arg(&file).arg(cache).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(url.starts_with("http://"), "the receiver did not start; see its output above");
        Self { process, url, file, _folder: folder }
    }

    fn spans(&self) -> Spans {
        let text = fs_err::read_to_string(&self.file).unwrap();
        Spans(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }
}

struct Spans(Vec<Value>);

impl Spans {
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |span| span["name"] == name)
    }

    /// Checks that all spans are in one trace, each is received once, and every parent is there.
    /// Returns the only root.
    fn root_of_one_complete_trace(&self) -> &Value {
        let traces: BTreeSet<&str> =
            self.0.iter().filter_map(|span| span["trace"].as_str()).collect();
        assert_eq!(traces.len(), 1, "{traces:?}");
        let mut by_id: BTreeMap<&str, &Value> = BTreeMap::new();
        for span in &self.0 {
            let twin = by_id.insert(span["span"].as_str().unwrap(), span);
            assert!(twin.is_none(), "received twice: {span} {twin:?}");
        }
        let mut roots = Vec::new();
        for span in &self.0 {
            match span["parent"].as_str().unwrap() {
                "" => roots.push(span),
                parent => assert!(by_id.contains_key(parent), "the parent is missing: {span}"),
            }
        }
        assert_eq!(roots.len(), 1, "{roots:?}");
        roots[0]
    }
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    &span["attributes"][key]
}

#[test]
fn a_full_demo_consultation_arrives_as_one_complete_trace() {
    let receiver = Receiver::start();
    let world = World::new();
    let brief = "a confidential plan for the board";
    let ran =
        world.run(&[&CONSULT[..], &["--yes", "--brief", brief, "--otlp", &receiver.url]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let spans = receiver.spans();
    let root = spans.root_of_one_complete_trace();
    assert_eq!(root["name"], "run");
    assert_eq!(attribute(root, "moothall.workflow"), "consult");
    assert_eq!(attribute(root, "moothall.run_state"), "finished");

    let id = world.run(&["runs", "--json"]).json()["runs"][0]["run_id"].clone();
    assert_eq!(*attribute(root, "moothall.run_id"), id);
    let calls: Vec<&Value> = spans.named("chat demo").collect();
    assert!(calls.len() >= 900, "{} calls", calls.len());
    for call in &calls {
        assert_eq!(call["kind"], "SPAN_KIND_CLIENT");
        assert_eq!(attribute(call, "gen_ai.operation.name"), "chat");
        assert_eq!(attribute(call, "gen_ai.provider.name"), "demo");
        assert_eq!(attribute(call, "gen_ai.request.model"), "demo");
        for number in
            ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.request.max_tokens"]
        {
            assert!(attribute(call, number).as_u64().is_some_and(|tokens| tokens > 0), "{call}");
        }
    }
    let stages = ["gather", "infer", "analyze", "debate", "rank"];
    for stage in stages {
        let name = format!("stage {stage}");
        let found: Vec<&Value> = spans.named(&name).collect();
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0]["parent"], root["span"], "{name}");
    }
    let debates: Vec<&Value> = spans.named("debate").collect();
    assert_eq!(debates.len(), 15);
    let debate_stage = spans.named("stage debate").next().unwrap();
    for debate in debates {
        assert_eq!(debate["parent"], debate_stage["span"]);
        let inside = spans.named("call_model").filter(|call| call["parent"] == debate["span"]);
        assert!(inside.count() >= 61, "{debate}");
    }
    let text = fs_err::read_to_string(&receiver.file).unwrap();
    assert!(!text.contains("confidential"));
    println!("{} spans, {} model calls", spans.0.len(), calls.len());
}

#[test]
fn a_resumed_consultation_continues_the_trace_of_the_program_that_started_it() {
    let receiver = Receiver::start();
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let mut world = World::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url);
    world.set("TRACEPARENT", &format!("00-{trace}-{caller}-01"));
    let more = ["--moves", "2", "--rounds", "1", "--yes", "--pause-after", "moves"];
    let paused = world.run(&[&CONSULT[..], &more].concat());
    assert_eq!(paused.code, Some(3), "{paused}");
    assert_eq!(receiver.spans().named("run").count(), 0);

    let listed = world.run(&["runs", "--json"]).json();
    let id = listed["runs"][0]["run_id"].as_str().unwrap().to_owned();
    // The process that resumes it has another caller, which must not split the trace.
    world.set("TRACEPARENT", "00-11111111111111111111111111111111-2222222222222222-01");
    let resumed = world.run(&["resume", &id]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let mut spans = receiver.spans();
    let root = spans.named("run").next().unwrap().clone();
    assert_eq!((&root["trace"], &root["parent"]), (&trace.into(), &caller.into()));
    // The caller's own span is not ours to send.
    spans.0.push(
        serde_json::json!({ "trace": trace, "span": caller, "parent": "", "name": "caller" }),
    );
    assert_eq!(spans.root_of_one_complete_trace()["name"], "caller");
    let processes: BTreeSet<String> = spans
        .0
        .iter()
        .filter_map(|span| span.get("resource"))
        .map(|resource| resource["service.instance.id"].to_string())
        .collect();
    assert_eq!(processes.len(), 2);
}

#[test]
fn a_collector_that_never_answers_neither_fails_nor_delays_a_command() {
    // Accepts connections and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let world = World::new();
    for (url, limit) in [(silent.as_str(), 8), ("http://127.0.0.1:9", 5)] {
        let began = Instant::now();
        let ran = world.run(&["ask", "--model", "demo", "--otlp", url, "hello"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(began.elapsed() < Duration::from_secs(limit), "{:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consultation_on_two_workers_is_one_complete_trace() {
    let receiver = Receiver::start();
    let world = World::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url);
    let plan = Plan { workers: 2, postgres: true, ..SMALL };
    let mut cluster = Cluster::in_world(plan, world);
    cluster.consulted(&["--moves", "15", "--rounds", "3"]);
    // On SIGTERM, workers send their remaining spans.
    for worker in cluster.workers.drain(..) {
        worker.signal("-TERM");
        worker.wait();
    }
    let spans = receiver.spans();
    let root = spans.root_of_one_complete_trace();
    assert_eq!(root["name"], "run");
    assert_eq!(spans.named("debate").count(), 15);
    let processes: BTreeSet<&str> = spans
        .0
        .iter()
        .filter_map(|span| span["resource"]["service.instance.id"].as_str())
        .collect();
    assert_eq!(processes.len(), 2, "both workers took part");
}
