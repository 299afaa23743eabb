//! `moothall serve` end to end: the real program on a real port.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use moothall_core::RunId;
use moothall_engine::RunLock;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::world::{World, signal};

/// A server that is killed at the end of the test.
pub(crate) struct Server {
    child: Child,
    base: String,
    client: Client,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) fn start(world: &World, more: &[&str]) -> Self {
        // Nothing is encrypted on one machine, but a client cannot be built without a crypto
        // provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Loopback requests must not go through a proxy.
        let client = Client::builder().no_proxy().build().unwrap();
        let usual = ["serve", "--auth", "none", "--addr", "127.0.0.1:0", "--model", "demo"];
        let mut command = world.command(&[&usual, more].concat());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, base: line.trim().to_owned(), client }
    }

    /// Asks the server to stop, as a service manager does, and waits.
    pub(crate) fn stop(mut self) {
        let order = ["-c", "kill -TERM \"$0\"", &self.child.id().to_string()];
        assert!(Command::new("sh").args(order).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.base)).send().await.unwrap()
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        self.keyed(path, body, None).await
    }

    async fn keyed(&self, path: &str, body: &Value, key: Option<&str>) -> Response {
        let mut request = self.client.post(format!("{}{path}", self.base));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.header("content-type", "application/json");
        request.body(body.to_string()).send().await.unwrap()
    }

    /// Whether a body is refused because of its size. The server does not read the rest of such a
    /// body, so the connection may close before the client has the response.
    pub(crate) async fn is_too_large(&self, path: &str, body: &Value) -> bool {
        let once = Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let request = once.post(format!("{}{path}", self.base)).body(body.to_string());
        match request.header("content-type", "application/json").send().await {
            Ok(answer) => answer.status() == StatusCode::PAYLOAD_TOO_LARGE,
            Err(error) => error.is_request(),
        }
    }

    /// Starts a consultation and returns its id.
    pub(crate) async fn consult(&self, more: Value) -> String {
        let mut wanted = json!({
            "workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": 2, "rounds": 2, "isolation": "none",
        });
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.begin(&wanted).await
    }

    /// Starts a run and returns its id.
    pub(crate) async fn begin(&self, wanted: &Value) -> String {
        let answer = self.post("/api/runs", wanted).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
        let started: Value = body(answer).await;
        started["run_id"].as_str().unwrap().to_owned()
    }

    /// Waits until a run is in this state.
    pub(crate) async fn until_state(&self, run: &str, state: &str) {
        let until = Instant::now() + Duration::from_secs(240);
        loop {
            let view = self.json(&format!("/api/runs/{run}")).await;
            if view["status"]["state"] == state {
                return;
            }
            assert!(Instant::now() < until, "it is not {state}: {view:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a run has ended.
    pub(crate) async fn over(&self, run: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let page = self.json(&format!("/api/runs/{run}/events.json?limit=1")).await;
            if page["terminal"] == true {
                return self.json(&format!("/api/runs/{run}")).await;
            }
            assert!(Instant::now() < until, "the run does not end: {page}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

pub(crate) async fn body(answer: Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

/// An event of a stream: name, number and data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) name: String,
    id: Option<u64>,
    data: Value,
}

pub(crate) fn frames(text: &str) -> Vec<Frame> {
    let frame = |block: &str| {
        let fields: BTreeMap<&str, &str> =
            block.lines().filter_map(|line| line.split_once(": ")).collect();
        let data = serde_json::from_str(fields.get("data")?).unwrap();
        let id = fields.get("id").map(|id| id.parse().unwrap());
        Some(Frame { name: (*fields.get("event")?).to_owned(), id, data })
    };
    text.split("\n\n").filter_map(frame).collect()
}

pub(crate) fn numbered(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn consultation_is_started_followed_read_and_exported_over_http() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let run = server.consult(json!({})).await;
        // The stream ends with the run.
        let text = server.get(&format!("/api/runs/{run}/events")).await.text().await.unwrap();
        assert!(text.starts_with("retry: 1000\n: ok\n\nevent: hello\n"), "{}", &text[..80]);
        let all = frames(&text);
        assert_eq!(all[0].data["schema"], 1);
        let numbers = numbered(&all);
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(all.last().unwrap().name, "pipeline_complete");
        assert!(all.iter().filter(|frame| frame.id.is_some()).all(|frame| {
            frame.data["type"] == frame.name.as_str() && frame.data["run_id"] == run.as_str()
        }));

        // The store contains the streamed events, and folding them gives the snapshot.
        let page = server.json(&format!("/api/runs/{run}/events.json?limit=1000")).await;
        let streamed: Vec<&Value> =
            all.iter().filter(|frame| frame.id.is_some()).map(|frame| &frame.data).collect();
        assert_eq!(page["events"].as_array().unwrap().iter().collect::<Vec<_>>(), streamed);
        let snapshot = server.json(&format!("/api/runs/{run}")).await;
        assert_eq!(snapshot["as_of_seq"].as_u64().unwrap(), numbers.len() as u64);
        assert_eq!(snapshot["status"]["state"], "complete");
        assert_eq!(snapshot["about"]["committee"]["decision_makers"][1]["id"], "D2");
        assert_eq!(snapshot["consult"]["gathered"]["fictional"], true);

        // Documents, debates and exports; unchanged responses are not sent again.
        let thread = format!("/api/runs/{run}/moves/m1/threads/D2");
        let answer = server.get(&thread).await;
        let tag = answer.headers()["etag"].clone();
        assert_eq!(body(answer).await["turns"].as_array().unwrap().len(), 4);
        let again = server.client.get(format!("{}{thread}", server.base));
        let again = again.header("if-none-match", tag).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let names = server.json(&format!("/api/runs/{run}/artifacts")).await;
        let names: Vec<&str> = names["artifacts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        for name in ["F0.json", "F1.md", "F2.md", "m1.md", "scores.json"] {
            assert!(names.contains(&name), "{names:?}");
            let answer = server.get(&format!("/api/runs/{run}/artifacts/{name}")).await;
            assert_eq!(answer.status(), StatusCode::OK, "{name}");
        }
        let fact = server.json(&format!("/api/runs/{run}/facts/F0:NetMargin:FY2025")).await;
        assert_eq!(fact["inputs"][0], "F0:NetIncome:FY2025", "{fact}");
        for (form, kind) in [
            ("md", "text/markdown; charset=utf-8"),
            ("csv", "text/csv; charset=utf-8"),
            ("json", "application/json"),
            ("html", "text/html; charset=utf-8"),
            ("pdf", "application/pdf"),
        ] {
            let answer = server.get(&format!("/api/runs/{run}/export.{form}")).await;
            assert_eq!(answer.status(), StatusCode::OK, "{form}");
            assert_eq!(answer.headers()["content-type"], kind);
            assert!(!answer.bytes().await.unwrap().is_empty());
        }
        let memo = server.get(&format!("/api/runs/{run}/export.md")).await.text().await.unwrap();
        assert_eq!(memo, world.run(&["report", &run, "--format", "md"]).stdout);
        let listed = server.json("/api/runs").await;
        assert_eq!(listed["runs"][0]["run_id"], run.as_str());
    });
}

#[test]
fn an_event_stream_resumes_at_any_event_without_gaps_or_duplicates() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let run = server.consult(json!({})).await;
        let last = server.over(&run).await["as_of_seq"].as_u64().unwrap();
        let path = format!("/api/runs/{run}/events");
        for after in [0, 1, 2, last / 2, last - 1] {
            let text = server.get(&format!("{path}?after={after}")).await.text().await.unwrap();
            assert_eq!(numbered(&frames(&text)), (after + 1..=last).collect::<Vec<_>>());
        }
        // The `Last-Event-ID` header takes precedence over the URL.
        let request = server.client.get(format!("{}{path}?after=1", server.base));
        let seen = request.header("last-event-id", (last - 2).to_string()).send().await.unwrap();
        assert_eq!(numbered(&frames(&seen.text().await.unwrap())), [last - 1, last]);
        let status = async |query: String| server.get(&format!("{path}?{query}")).await.status();
        assert_eq!(status(format!("after={last}")).await, StatusCode::NO_CONTENT);
        assert_eq!(status(format!("after={}", last + 1)).await, StatusCode::CONFLICT);
        for wrong in ["after=-1", "after=x", "after=", "after=99999999999999999999999"] {
            assert_eq!(status(wrong.to_owned()).await, StatusCode::BAD_REQUEST, "{wrong}");
        }
    });
}

#[test]
fn a_run_of_a_killed_server_resumes_without_repeating_calls() {
    let world = World::new();
    let mut server = Server::start(&world, &["--pace", "0.2"]);
    let run = runtime().block_on(async {
        let run = server.consult(json!({})).await;
        let mut head = 0;
        while head < 30 {
            let page = format!("/api/runs/{run}/events.json?after={head}&wait=20");
            head = server.json(&page).await["head_seq"].as_u64().unwrap();
        }
        run
    });
    signal(&server.child, "KILL");
    server.child.wait().unwrap();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let before = server.json(&format!("/api/runs/{run}")).await;
        assert_eq!(before["status"]["state"], "running");
        assert_eq!(before["about"]["driven"], false);
        let answer = server.post(&format!("/api/runs/{run}/resume"), &json!({})).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let after = before["as_of_seq"].as_u64().unwrap();
        let path = format!("/api/runs/{run}/events?after={after}");
        let rest = frames(&server.get(&path).await.text().await.unwrap());
        let last = *numbered(&rest).last().unwrap();
        assert_eq!(numbered(&rest), (after + 1..=last).collect::<Vec<_>>());
        assert_eq!(rest.last().unwrap().name, "pipeline_complete");
        // As many calls as in an uninterrupted run.
        let other = server.consult(json!({})).await;
        let (killed, whole) = (server.over(&run).await, server.over(&other).await);
        assert_eq!(killed["usage"], whole["usage"]);
        assert_eq!(killed["consult"]["recommended"], whole["consult"]["recommended"]);
    });
}

#[test]
fn a_repeated_request_with_an_idempotency_key_starts_one_run() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let wanted = json!({"workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": 1, "rounds": 1,
                            "isolation": "none"});
        let first = server.keyed("/api/runs", &wanted, Some("k1")).await;
        assert_eq!(first.status(), StatusCode::CREATED);
        let first = body(first).await;
        let again = server.keyed("/api/runs", &wanted, Some("k1")).await;
        assert_eq!(again.status(), StatusCode::OK);
        assert_eq!(body(again).await, first);
        let other = json!({"workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": 2});
        let reused = server.keyed("/api/runs", &other, Some("k1")).await;
        assert_eq!(reused.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(body(reused).await["code"], "idempotency-key-reused");
        assert_eq!(server.json("/api/runs").await["runs"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn a_server_shutdown_closes_streams_and_pauses_runs() {
    let world = World::new();
    let mut server = Server::start(&world, &["--pace", "0.3"]);
    let (run, text) = runtime().block_on(async {
        let run = server.consult(json!({"rounds": 10})).await;
        let stream = server.get(&format!("/api/runs/{run}/events")).await;
        signal(&server.child, "TERM");
        (run, stream.text().await.unwrap())
    });
    let last = frames(&text).pop().unwrap();
    assert_eq!((last.name.as_str(), &last.data), ("bye", &json!({"reason": "shutdown"})));
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let shown = world.run(&["show", &run, "--json"]).json();
    assert_eq!(shown["state"], "paused");
}

#[test]
fn run_is_paused_resumed_and_cancelled_over_http() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0.1"]);
    runtime().block_on(async {
        let run = server.consult(json!({"pause_after_moves": true})).await;
        let until = |state: &'static str| {
            let (server, path) = (&server, format!("/api/runs/{run}"));
            async move {
                for _ in 0..400 {
                    let view = server.json(&path).await;
                    if view["status"]["state"] == state && view["about"]["driven"] == false {
                        return view;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                panic!("the run is not {state}");
            }
        };
        let view = until("paused").await;
        assert_eq!(view["status"]["reason"], "question");
        let path = format!("/api/runs/{run}");
        // As a driver that still ends its sandboxes.
        let locks = world.root().join("home/.local/state/moothall/locks");
        let lock = RunLock::take(&locks, &run.parse::<RunId>().unwrap()).unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(lock);
        });
        let answer = server.post(&format!("{path}/resume"), &json!({})).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let busy = server.post(&format!("{path}/resume"), &json!({})).await;
        assert_eq!(body(busy).await["code"], "run-busy");
        let answer = server.post(&format!("{path}/pause"), &json!({})).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        until("paused").await;
        let answer = server.post(&format!("{path}/cancel"), &json!({})).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        assert_eq!(until("cancelled").await["status"]["state"], "cancelled");
        let over = server.post(&format!("{path}/cancel"), &json!({})).await;
        assert_eq!(body(over).await["code"], "run-over");
    });
}

#[test]
fn moves_can_be_vetoed_edited_and_restored_over_http() {
    let world = World::new().with("USER", "ada");
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let run = server.consult(json!({"pause_after_moves": true})).await;
        let path = format!("/api/runs/{run}/moves");
        let until = Instant::now() + Duration::from_secs(120);
        let waiting = loop {
            let view = server.json(&format!("/api/runs/{run}")).await;
            if view["status"]["state"] == "paused" && view["about"]["driven"] == false {
                assert_eq!(view["about"]["pauses_after_moves"], true);
                break server.json(&path).await;
            }
            assert!(Instant::now() < until, "the run does not wait: {view}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!((&waiting["waits_for_person"], &waiting["changes"]), (&json!(true), &json!([])));
        let veto = json!({"veto": {"move": "m1", "why": "we tried that"}});
        assert_eq!(server.post(&path, &veto).await.status(), StatusCode::OK);
        let mut proposal = waiting["moves"][1]["proposal"].clone();
        proposal["title"] = json!("Sell the idle plant");
        let edit = json!({"edit": {"move": "m2", "proposal": proposal}});
        let edited = body(server.post(&path, &edit).await).await;
        assert_eq!(edited["moves"][1]["title"], "Sell the idle plant");
        assert_eq!(edited["changes"].as_array().unwrap().len(), 2);
        assert_eq!(edited["changes"][0]["by"], "the web UI user");
        // The command shows the same.
        assert_eq!(world.run(&["moves", &run, "--json"]).json(), edited);
        // An exported move contains the seal of its original.
        assert_eq!(world.run(&["moves", &run, "--write", "seen"]).code, Some(0));
        proposal["title"] = json!("Sell it");
        let edit = json!({"edit": {"move": "m2", "proposal": proposal}});
        let edited = body(server.post(&path, &edit).await).await;
        let refused = world.run(&["moves", &run, "--edit", "m2=seen/m2.toml"]);
        assert_eq!(refused.code, Some(2), "{refused}");
        let words = "m2 has changed since you read it: it was edited by the web UI user";
        assert!(refused.stderr.contains(words), "{refused}");
        let nobody = json!({"veto": {"move": "m99", "why": ""}});
        let refused = server.post(&path, &nobody).await;
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
        // A client that saw an older move, or fewer changes, gets an error and changes nothing.
        let stale = [
            json!({"edit": {"move": "m2", "proposal": proposal, "seal": waiting["moves"][1]["seal"]}}),
            json!({"veto": {"move": "m2", "why": "", "seal": waiting["moves"][1]["seal"]}}),
            json!({"undo": {"seal": waiting["seal"]}}),
        ];
        for change in stale {
            let refused = server.post(&path, &change).await;
            assert_eq!(refused.status(), StatusCode::CONFLICT, "{change}");
            let refused = body(refused).await;
            assert_eq!(refused["code"], "move-changed", "{refused}");
            assert_eq!(refused["hint"], "review the current moves and make the change again");
        }
        assert_eq!(server.json(&path).await, edited);
        // Changing one move does not make another one stale.
        let seen = json!({"veto": {"move": "m2", "why": "", "seal": edited["moves"][1]["seal"]}});
        let vetoed = body(server.post(&path, &seen).await).await;
        assert_eq!(vetoed["moves"][0]["seal"], edited["moves"][0]["seal"]);
        let undo = json!({"undo": {"seal": vetoed["seal"]}});
        let undone = body(server.post(&path, &undo).await).await;
        assert_eq!(undone, waiting);
    });
}

#[test]
fn an_edit_run_must_be_resumed_where_its_files_are() {
    let world = World::new().with("USER", "ada").with("OPENAI_API_KEY", "k");
    fs_err::create_dir(world.path("ws")).unwrap();
    world.write("ws/notes.txt", "one\n");
    let (fake, arrivals) = Fake::hanging();
    fake.configure(&world, "");
    let model = ["--config", "fake.toml", "--model", "openai/gpt-4.1-mini"];
    let edit = ["edit", "say two", "--path", "ws", "--file", "notes.txt"];
    let mut child = world.command(&[&edit[..], &model].concat()).spawn().unwrap();
    arrivals.recv_timeout(Duration::from_secs(120)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = world.run(&["runs", "--json"]).json();
    let run = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let server = Server::start(&world, &[]);
    runtime().block_on(async {
        let refused = server.post(&format!("/api/runs/{run}/resume"), &json!({})).await;
        assert_eq!(refused.status(), StatusCode::CONFLICT);
        let refused = body(refused).await;
        let hint = format!("run `moothall resume {}` in its directory", &run[..13]);
        assert_eq!(
            (&refused["code"], &refused["hint"]),
            (&json!("resume-elsewhere"), &json!(hint))
        );
    });
}

#[test]
fn a_configured_committee_is_requested_by_name_and_never_by_file() {
    let world = World::new();
    assert_eq!(world.run(&["committee", "new", "mine.toml"]).code, Some(0));
    let text = world.read("mine.toml").replacen("name = \"board\"", "name = \"mine\"", 1);
    world.write("mine.toml", &text);
    let server = Server::start(&world, &["--committee", "mine.toml"]);
    runtime().block_on(async {
        let list = server.json("/api/committees").await;
        let names: Vec<&Value> =
            list["committees"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["board", "mine"]);
        let ask = async |committee: &str| {
            let wanted = json!({"ticker": "HLXI", "committee": committee, "isolation": "none"});
            server.post("/api/estimate", &wanted).await
        };
        assert_eq!(ask("mine").await.status(), StatusCode::OK);
        assert_eq!(body(ask("mine.toml").await).await["code"], "unknown-committee");
    });
}

#[test]
fn the_api_returns_the_same_facts_checks_and_estimates_as_the_cli() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        let found = server.json("/api/tickers?q=helix").await;
        assert_eq!(found["tickers"][0]["ticker"], "HLXI");
        let facts = server.json("/api/facts/HLXI").await;
        assert_eq!(facts, world.run(&["facts", "HLXI", "--json"]).json());
        let wrong = "Revenue was $9,999 million in FY2025 [F0:Revenue:FY2025].";
        let checked =
            body(server.post("/api/check", &json!({"ticker": "HLXI", "text": wrong})).await).await;
        assert_eq!(checked["verdict"], "needs-person", "{checked}");
        let estimate = body(server.post("/api/estimate", &json!({"ticker": "HLXI"})).await).await;
        let said =
            world.run(&["consult", "HLXI", "--model", "demo", "--estimate", "--json"]).json();
        assert_eq!(estimate, said);
        let committees = server.json("/api/committees").await;
        assert_eq!(committees["committees"][0]["name"], "board");
        let settings = server.json("/api/settings").await;
        assert_eq!(settings["model"], "demo");
    });
}

#[test]
fn every_failed_api_request_has_a_code_and_a_hint() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    let mut told = String::new();
    runtime().block_on(async {
        let missing = "/api/runs/01890a5d-ac96-774b-bcce-b302099a8057";
        let mut tell = async |what: &str, answer: Response| {
            let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
            assert_eq!(kind, "application/problem+json", "{what}");
            let problem = body(answer).await;
            told.push_str(&format!("{what}\n{problem:#}\n\n"));
        };
        tell("a run that is not there", server.get(missing).await).await;
        tell("an address that is not there", server.get("/api/nothing").await).await;
        tell("a wrong method", server.post("/api/settings", &json!({})).await).await;
        let post = server.client.post(format!("{}/api/runs", server.base));
        tell("a form", post.body("ticker=HLXI").send().await.unwrap()).await;
        tell("no workflow", server.post("/api/runs", &json!({"ticker": "HLXI"})).await).await;
        let unknown = json!({"workflow": "consult", "ticker": "!!"});
        tell("a ticker that is none", server.post("/api/runs", &unknown).await).await;
        let many = json!({"workflow": "consult", "ticker": "HLXI", "rounds": 99});
        tell("too many rounds", server.post("/api/runs", &many).await).await;
        let file = json!({"workflow": "consult", "ticker": "HLXI", "committee": "/etc/passwd"});
        tell("a file for a committee", server.post("/api/runs", &file).await).await;
        // Slightly above the limit: the server closes the connection, so it must not be reused.
        let large = json!({"ticker": "HLXI", "text": "x".repeat(1 << 20)});
        let once = Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let large = once.post(format!("{}/api/check", server.base)).body(large.to_string());
        let large = large.header("content-type", "application/json").send().await.unwrap();
        tell("a body that is too large", large).await;
        let evil =
            server.client.get(format!("{}/api/runs", server.base)).header("host", "evil.example");
        tell("another host", evil.send().await.unwrap()).await;
        let evil = server.client.get(format!("{}/api/runs", server.base));
        let evil = evil.header("origin", "http://evil.example");
        tell("another site", evil.send().await.unwrap()).await;
    });
    assert_snapshot!(told.replace(&server.base, "BASE"));
}

#[test]
fn every_response_has_the_security_headers() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        for path in ["/", "/healthz", "/readyz", "/api/runs", "/api/nothing", "/runs/7f3a"] {
            let answer = server.get(path).await;
            let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
            assert!(header("content-security-policy").starts_with("default-src 'self';"), "{path}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
            assert_eq!(header("referrer-policy"), "same-origin", "{path}");
            assert!(header("permissions-policy").contains("camera=()"), "{path}");
            // Browsers would require TLS for this machine for a year.
            assert!(!answer.headers().contains_key("strict-transport-security"), "{path}");
        }
        assert_eq!(server.get("/healthz").await.text().await.unwrap(), "ok");
        assert_eq!(server.get("/readyz").await.text().await.unwrap(), "ready");
    });
}

/// With inline styles allowed, injected HTML from a model could draw over the page.
#[test]
fn no_page_has_or_allows_styles_in_its_html() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    runtime().block_on(async {
        for path in ["/", "/login", "/login?code=wrong", "/api/docs"] {
            let answer = server.get(path).await;
            let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
            assert!(!policy.contains("unsafe-inline"), "{path}: {policy}");
            let page = answer.text().await.unwrap();
            assert!(!page.contains("<style") && !page.contains(" style="), "{path}: {page}");
            let (_, rest) = page.split_once("rel=\"stylesheet\"").unwrap();
            let (_, rest) = rest.split_once("href=\"").unwrap();
            let style = server.get(rest.split('"').next().unwrap()).await;
            assert!(style.headers()["content-type"].to_str().unwrap().starts_with("text/css"));
        }
        let run = server.consult(json!({ "moves": 1, "rounds": 1 })).await;
        server.over(&run).await;
        let memo = server.get(&format!("/api/runs/{run}/export.html")).await;
        let policy = memo.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(memo.text().await.unwrap().contains("<style"));
    });
}

#[test]
fn serving_other_machines_without_authentication_is_refused() {
    let world = World::new();
    let ran = world.run(&["serve", "--addr", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("is reachable from other machines"), "{}", ran.stderr);
}

#[test]
fn events_of_a_run_in_another_process_reach_the_stream() {
    let world = World::new();
    let server = Server::start(&world, &["--pace", "0"]);
    let paused = [
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
        "--pause-after",
        "moves",
        "--yes",
    ];
    assert_eq!(world.run(&paused).code, Some(3));
    runtime().block_on(async {
        let listed = server.json("/api/runs").await;
        let run = listed["runs"][0]["run_id"].as_str().unwrap().to_owned();
        let head = listed["runs"][0]["events"].as_u64().unwrap();
        let stream = server.get(&format!("/api/runs/{run}/events?after={head}")).await;
        let mut child = world.command(&["resume", &run]).spawn().unwrap();
        let rest = frames(&stream.text().await.unwrap());
        assert_eq!(rest.last().unwrap().name, "pipeline_complete");
        let last = *numbered(&rest).last().unwrap();
        assert_eq!(numbered(&rest), (head + 1..=last).collect::<Vec<_>>());
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        child.wait().unwrap();
    });
}
