//! Access control of the real server: sign-in, token limits, and exported spans.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use reqwest::{Client, Response};
use serde_json::{Value, json};

use crate::world::{World, set_mode};

/// A server that is killed at the end of the test.
struct Server {
    child: Child,
    base: String,
    /// The sign-in link from standard error.
    link: Option<String>,
    client: Client,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(world: &World, more: &[&str]) -> Self {
        let usual = ["serve", "--addr", "127.0.0.1:0", "--model", "demo", "--pace", "0"];
        let mut child = world.command(&[&usual, more].concat()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut link = None;
        while !more.contains(&"none") && !more.contains(&"tokens") && link.is_none() {
            let line = told.next().unwrap().unwrap();
            link = line.strip_prefix("single-use sign-in link: ").map(str::to_owned);
        }
        // Keep reading, so the server never blocks on a full pipe.
        std::thread::spawn(move || told.for_each(drop));
        // The first test in the process sets the provider; any provider works.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redirects = reqwest::redirect::Policy::none();
        let client = Client::builder().no_proxy().redirect(redirects).build().unwrap();
        Self { child, base: line.trim().to_owned(), link, client }
    }

    async fn consult(&self, token: &str, more: Value) -> Response {
        let mut wanted = json!({
            "workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": 2, "rounds": 2, "isolation": "none",
        });
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.client
            .post(format!("{}/api/runs", self.base))
            .header("authorization", format!("Bearer {token}"))
            .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"))
            .header("content-type", "application/json")
            .body(wanted.to_string())
            .send()
            .await
            .unwrap()
    }

    async fn get(&self, token: &str, path: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.base));
        request.header("authorization", format!("Bearer {token}")).send().await.unwrap()
    }

    /// Waits until a run has ended.
    async fn over(&self, token: &str, run: &str) {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let page = body(self.get(token, &format!("/api/runs/{run}/events.json")).await).await;
            if page["terminal"] == true {
                return;
            }
            assert!(Instant::now() < until, "the run does not end: {page}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn body(answer: Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn token(world: &World, more: &[&str]) -> String {
    let made = world.run(&[&["token", "create"], more].concat());
    assert_eq!(made.code, Some(0), "{made}");
    made.stdout.trim().to_owned()
}

#[test]
fn help_of_login_shows_every_flag() {
    assert_snapshot!(World::new().run(&["login", "--help"]));
}

#[test]
fn login_links_of_serve_and_login_work_once_each() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    runtime().block_on(async {
        let runs = format!("{}/api/runs", server.base);
        assert_eq!(server.client.get(&runs).send().await.unwrap().status(), 401);
        let another = world.run(&["login", &server.base]).stdout;
        for link in [server.link.clone().unwrap(), another.trim().to_owned()] {
            let opened = server.client.get(&link).send().await.unwrap();
            assert_eq!(opened.status(), 303, "{link}");
            let cookie = opened.headers()["set-cookie"].to_str().unwrap().to_owned();
            let cookie = cookie.split(';').next().unwrap();
            let listed = server.client.get(&runs).header("cookie", cookie).send().await.unwrap();
            assert_eq!(listed.status(), 200);
            assert_eq!(server.client.get(&link).send().await.unwrap().status(), 401);
        }
    });
}

/// Regression: the link was an argument of `xdg-open`, so other users could read it in the process
/// list and use it before the browser.
#[test]
fn login_link_reaches_the_browser_in_a_private_file_and_in_no_argument() {
    let mut world = World::new();
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    fs_err::create_dir(world.path("bin")).unwrap();
    let script = "#!/bin/sh\nprintf '%s' \"$*\" >opened.tmp && mv opened.tmp opened\n";
    world.write(&format!("bin/{opener}"), script);
    set_mode(&world.path(&format!("bin/{opener}")), 0o755);
    let path = std::env::var("PATH").unwrap();
    world.set("PATH", &format!("{}:{path}", world.path("bin").display()));
    let mut server = Server::start(&world, &["--open"]);
    let link = server.link.clone().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !world.path("opened").exists() {
        assert!(Instant::now() < until, "no browser was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let opened = world.read("opened");
    assert!(!opened.contains("http:") && !opened.contains("code="), "{opened}");
    let about = fs_err::metadata(&opened).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o600, "{opened}");
    let page = fs_err::read_to_string(&opened).unwrap();
    assert!(page.contains(&format!("content=\"0;url={link}\"")), "{page}");
    let process = server.child.id().to_string();
    std::process::Command::new("kill").arg(&process).status().unwrap();
    server.child.wait().unwrap();
    assert!(!std::path::Path::new(&opened).exists(), "the file is left behind");
}

#[test]
fn a_server_for_other_machines_needs_tokens_and_a_public_url() {
    let world = World::new();
    assert_snapshot!(world.run(&["serve", "--addr", "0.0.0.0:0"]));
    assert_snapshot!(world.run(&["serve", "--addr", "0.0.0.0:0", "--auth", "tokens"]));
    assert_snapshot!(world.run(&["serve", "--addr", "0.0.0.0:0", "--auth", "none"]));
    let named = ["--auth", "tokens", "--public-url", "moothall.example"];
    assert_snapshot!(world.run(&[&["serve", "--addr", "127.0.0.1:0"], &named[..]].concat()));
    assert_snapshot!(world.run(&["login", "moothall.example"]));
}

#[test]
fn a_public_url_without_tls_is_refused_unless_local_or_allowed() {
    let world = World::new();
    let serve = ["serve", "--addr", "127.0.0.1:0", "--auth", "tokens", "--public-url"];
    assert_snapshot!(world.run(&[&serve[..], &["http://moothall.example.com"]].concat()));
    for refused in ["http://10.0.0.7:7777", "HTTP://moothall.example", "http://[2001:db8::1]"] {
        let ran = world.run(&[&serve[..], &[refused]].concat());
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains("--insecure"), "{ran}");
    }
    let insecure = ["http://moothall.example.com", "--insecure"];
    for served in [&insecure[..], &["http://127.0.0.1:7777"], &["https://moothall.example.com"]] {
        let server = Server::start(&world, &[&serve[3..], served].concat());
        assert_eq!(server.base, served[0]);
    }
}

#[test]
fn the_hsts_header_is_sent_if_the_public_url_uses_tls() {
    let world = World::new();
    let public = ["--auth", "tokens", "--public-url", "https://moothall.example.com"];
    // The server prints its public URL, so the port is chosen here.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let serve = ["serve", "--model", "demo", "--addr", &address];
    let mut command = world.command(&[&serve[..], &public].concat());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let answered = runtime().block_on(async {
        let client = Client::builder().no_proxy().build().unwrap();
        client.get(format!("http://127.0.0.1:{port}/healthz")).send().await
    });
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(answered.unwrap().headers()["strict-transport-security"], "max-age=31536000");
}

#[test]
fn a_token_cannot_exceed_its_run_and_spend_limits() {
    let world = World::new();
    let one = token(&world, &["--scope", "run", "--runs", "1"]);
    let poor = token(&world, &["--scope", "run", "--spend", "3"]);
    let reader = token(&world, &["--scope", "read"]);
    let server = Server::start(&world, &["--auth", "tokens"]);
    runtime().block_on(async {
        let refused = async |answer: Response| {
            let status = answer.status().as_u16();
            let waits = answer.headers().contains_key("retry-after");
            (status, body(answer).await["code"].as_str().unwrap().to_owned(), waits)
        };
        let read_only = server.consult(&reader, json!({})).await;
        assert_eq!(refused(read_only).await, (403, "scope-missing".to_owned(), false));
        let pausing = json!({ "pause_after_moves": true });
        assert_eq!(server.consult(&one, pausing.clone()).await.status(), 201);
        let second = server.consult(&one, json!({})).await;
        assert_eq!(refused(second).await, (429, "too-many-runs".to_owned(), true));
        // The budget of a run is reserved until the run ends.
        let two_dollars = json!({ "pause_after_moves": true, "budget_usd": "2.00" });
        let first = server.consult(&poor, two_dollars.clone()).await;
        assert_eq!(first.status(), 201);
        let first = body(first).await["run_id"].as_str().unwrap().to_owned();
        let second = server.consult(&poor, two_dollars).await;
        assert_eq!(refused(second).await, (429, "spend-limit".to_owned(), true));
        let more = server
            .client
            .post(format!("{}/api/runs/{first}/resume", server.base))
            .header("authorization", format!("Bearer {poor}"))
            .header("content-type", "application/json");
        let until = Instant::now() + Duration::from_secs(60);
        while body(server.get(&poor, &format!("/api/runs/{first}")).await).await["about"]["driven"]
            == true
        {
            assert!(Instant::now() < until);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let more = more.body(r#"{"budget_usd":"3.50"}"#).send().await.unwrap();
        assert_eq!(refused(more).await, (429, "spend-limit".to_owned(), true));
    });
}

/// Requests every route of the API, and returns the problems.
async fn problems(server: &Server, token: &str, run: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for route in moothall_server::routes() {
        // Streams and sign-in routes contain no messages of the program.
        if route.path.ends_with("/events") || ["/login", "/api/logout"].contains(&route.path) {
            continue;
        }
        let path = route.path.replace("{run}", run).replace("{ticker}", "HLXI");
        let path = path.replace("{draft}", "drf_00000000000000000000000000000001");
        let path = path.replace("{export}", "export.pdf").replace(['{', '}'], "");
        let bodies = match route.path {
            "/api/runs" | "/api/estimate" => [
                json!({"committee": "mine"}),
                json!({"isolation": "microvm"}),
                json!({"ticker": "AAPL"}),
                json!({"model": "anthropic/x"}),
                json!({"workflow": "reflexion", "task": "print 1"}),
            ]
            .map(|more| {
                let mut all = json!({
                    "workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": 1, "rounds": 1, "isolation": "none",
                });
                if more["workflow"] == "reflexion" {
                    all = json!({});
                }
                all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                if route.path == "/api/estimate" {
                    all.as_object_mut().unwrap().remove("workflow");
                }
                all
            })
            .to_vec(),
            "/api/check" => vec![json!({"ticker": "AAPL", "text": "Revenue was $1."})],
            "/api/runs/{run}/approve" => vec![json!({"move": "m1"})],
            "/api/runs/{run}/moves" => vec![json!({"undo": {}})],
            path if path.starts_with("/api/drafts/") => vec![json!({"seal": "0".repeat(64)})],
            _ => vec![json!({})],
        };
        for body in bodies {
            let address = format!("{}{path}", server.base);
            let request = match route.method.as_str() {
                "POST" => server.client.post(address).body(body.to_string()),
                _ => server.client.get(address),
            };
            let request = request.header("authorization", format!("Bearer {token}"));
            let answer = request.header("content-type", "application/json").send().await.unwrap();
            let is_problem = answer.status().is_client_error() || answer.status().is_server_error();
            let text = answer.text().await.unwrap();
            if is_problem || route.path == "/api/settings" {
                problems.push(format!("{} {path} {body}: {text}", route.method));
            }
        }
    }
    problems
}

/// Regression: messages and hints contained local paths for every client.
#[test]
fn responses_to_a_token_contain_no_local_paths() {
    let world = World::new();
    let secret = token(&world, &["--scope", "admin"]);
    let small = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--moves",
        "1",
        "--isolation",
        "none",
    ];
    let ran = world.run(&[&small[..], &["--yes", "--pause-after", "moves"]].concat());
    assert_eq!(ran.code, Some(3), "{ran}");
    let runs = world.run(&["runs", "--json"]).json();
    let run = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(world.run(&["committee", "new", "mine.toml"]).code, Some(0));
    let named = world.read("mine.toml").replacen("name = \"board\"", "name = \"mine\"", 1);
    world.write("mine.toml", &named);
    fs_err::create_dir(world.path("recorded")).unwrap();
    fs_err::create_dir(world.path("ws")).unwrap();
    let more =
        ["--committee", "mine.toml", "--offline", "recorded", "--workspace", "ws", "--by", "ada"];
    let server = Server::start(&world, &[&["--auth", "tokens"], &more[..]].concat());
    let root = world.root().to_str().unwrap();
    let mut hidden = 0;
    let mut check = |state: &str, problems: Vec<String>| {
        assert!(problems.len() > 10, "{state}: {problems:#?}");
        for problem in problems {
            assert!(!problem.contains(root), "{state}: {problem}");
            hidden += usize::from(problem.contains('…'));
        }
    };
    runtime().block_on(async {
        check("as it is", problems(&server, &secret, &run).await);
        fs_err::remove_file(world.path("mine.toml")).unwrap();
        fs_err::remove_dir(world.path("recorded")).unwrap();
        check("without its files", problems(&server, &secret, &run).await);
        world.write_config("keys.toml", "anthropic = [");
        check("with keys cannot read that", problems(&server, &secret, &run).await);
        world.write_config("moothall.toml", "nothing = \"known\"");
        check("with a configuration that is none", problems(&server, &secret, &run).await);
    });
    assert!(hidden > 0, "nothing that was provoked names a folder");
}

#[test]
fn only_server_administrators_can_run_the_sandbox_probe() {
    let world = World::new();
    let admin = token(&world, &["--scope", "admin"]);
    let runner = token(&world, &["--scope", "run"]);
    let server = Server::start(&world, &["--auth", "tokens"]);
    runtime().block_on(async {
        let refused = server.get(&runner, "/api/doctor").await;
        assert_eq!(refused.status(), 403);
        // Without an image nothing can be tested, and a hint is returned.
        let answer = server.get(&admin, "/api/doctor").await;
        assert_eq!(answer.status(), 409);
        let problem = body(answer).await;
        assert_eq!(problem["code"], "no-sandbox");
        assert_eq!(problem["hint"], "build the image: `moothall image build python`");
    });
}

/// A span collector on a free port, with plain sockets and none of our code.
fn collector() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&got);
    let hear = move |stream: std::net::TcpStream| -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                let line = line.trim().to_ascii_lowercase();
                if let Some(told) = line.strip_prefix("content-length: ") {
                    length = told.parse().ok()?;
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut bytes = vec![0; length];
            reader.read_exact(&mut bytes).ok()?;
            let body: Value = serde_json::from_slice(&bytes).ok()?;
            let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array()?.clone();
            kept.lock().unwrap().extend(spans);
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").ok()?;
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let hear = hear.clone();
            std::thread::spawn(move || hear(stream.unwrap()));
        }
    });
    (address, got)
}

#[test]
fn calls_of_a_consultation_are_in_the_trace_of_the_request_that_started_it() {
    let world = World::new();
    let secret = token(&world, &["--scope", "admin"]);
    let (address, got) = collector();
    let world = world.with("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    let mut server = Server::start(&world, &["--auth", "tokens", "--otlp", &address]);
    let brief = "the board wants a confidential plan";
    let run = runtime().block_on(async {
        let started = server.consult(&secret, json!({ "brief": brief })).await;
        let run = body(started).await["run_id"].as_str().unwrap().to_owned();
        server.over(&secret, &run).await;
        let numbers = server.get(&secret, "/metrics").await.text().await.unwrap();
        assert!(
            numbers.contains(r#"moothall_model_calls_total{model="demo",outcome="answered"}"#),
            "{numbers}"
        );
        run
    });
    // On exit it sends the remaining spans.
    let process = server.child.id().to_string();
    std::process::Command::new("kill").arg(&process).stdout(Stdio::null()).status().unwrap();
    server.child.wait().unwrap();

    let got = got.lock().unwrap();
    let of_trace: Vec<&Value> = got.iter().filter(|span| span["traceId"] == TRACE).collect();
    let count = |name: &str| of_trace.iter().filter(|span| span["name"] == name).count();
    assert_eq!((count("http_request"), count("run")), (1, 1), "{of_trace:?}");
    assert!(count("chat demo") > 10, "{of_trace:?}");
    // The parents of every call lead to the request, and from there to the browser.
    let parent = |span: &Value| {
        of_trace.iter().find(|other| other["spanId"] == span["parentSpanId"]).copied()
    };
    for call in of_trace.iter().filter(|span| span["name"] == "chat demo") {
        let mut above = *call;
        while let Some(next) = parent(above) {
            above = next;
        }
        assert_eq!([&above["name"], &above["parentSpanId"]], ["http_request", "00f067aa0ba902b7"]);
    }
    let text = serde_json::to_string(&*got).unwrap();
    assert!(text.contains(&run) && !text.contains("confidential"));
    assert!(!text.contains(secret.trim_start_matches("moot_")));
}

/// Uploaded files belong to their run, and a server for several people fetches no addresses that
/// requests name.
#[test]
fn files_of_one_team_cannot_be_read_by_another() {
    let world = World::new();
    assert_eq!(world.run(&["team", "create", "research"]).code, Some(0));
    let (ours, theirs) = (
        token(&world, &["--scope", "run"]),
        token(&world, &["--scope", "run", "--team", "research"]),
    );
    let server = Server::start(&world, &["--auth", "tokens"]);
    runtime().block_on(async {
        let documents =
            json!([{"name": "plan.md", "text": "# Plan\n\nWe sell the plant in May.\n"}]);
        let started = server.consult(&ours, json!({"documents": documents})).await;
        assert_eq!(started.status(), 201);
        let run = body(started).await["run_id"].as_str().unwrap().to_owned();
        server.over(&ours, &run).await;
        for path in ["", "/facts/U0:plan:1", "/artifacts", "/export.json"] {
            let path = format!("/api/runs/{run}{path}");
            assert_eq!(server.get(&ours, &path).await.status(), 200, "{path}");
            assert_eq!(server.get(&theirs, &path).await.status(), 404, "{path}");
        }
        let reused = json!([{"name": "plan.md", "sha256": "0".repeat(64)}]);
        let refused = server.consult(&theirs, json!({"documents": reused})).await;
        assert_eq!(body(refused).await["code"], "unknown-field");
        let refused = server.consult(&theirs, json!({"news": "rss:https://10.0.0.1/"})).await;
        assert_eq!(body(refused).await["code"], "bad-news");
    });
}
