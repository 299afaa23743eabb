//! `moothall mcp` on standard streams. Numbers refer to the attacks in the specification.

use std::collections::BTreeMap;
use std::time::Instant;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use crate::init::Person;
use crate::mcp_client::{Client, ERAS, Era, FORMS, NOTHING, PAGES, PATIENCE, world};
use crate::world::{Ran, World};

const WITH_VERSION: &str = "import sys\n\n\ndef main():\n    if \"--version\" in sys.argv:\n        \
                            print(\"1.0\")\n    print(sys.argv)\n";

fn start(world: &World, era: Era) -> Client {
    Client::start(world, era, NOTHING, &[])
}

/// Regression: it waited silently, as if it hung.
#[test]
fn a_server_started_by_hand_says_what_it_waits_for() {
    let world = world();
    let arguments = ["mcp", "--workspace", "ws", "--color", "never"];
    let mut person = Person::start(world.command(&arguments));
    person.answer("Moothall · waiting for an MCP client on standard input", "");
    person.answer("press Ctrl-D to stop", "\u{4}");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
}

/// Content without findings.
fn lines(count: usize) -> String {
    (0..count).map(|number| format!("value_{number} = {number}\n")).collect()
}

/// A policy that accepts decisions from a client's forms.
fn with_forms(world: &World) {
    world.write_config("policy.toml", "version = 1\n[review]\nelicitation = \"form\"\n");
}

/// A draft that removes most of a file, which needs review.
fn escalated(world: &World, client: &mut Client) -> String {
    world.write("ws/big.py", &lines(40));
    client.drafts("big.py", "value_0 = 0\n")
}

fn person(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

/// Submits, and answers the question for a person in the way of this protocol era.
fn submit_and_say(client: &mut Client, era: Era, draft: &str, said: &Value) -> Value {
    let arguments = json!({ "draft_id": draft, "change_summary": "less" });
    client.person = Some(said.clone());
    let first = client.call("draft_submit", &arguments);
    if era == Era::Legacy {
        return first["structuredContent"].clone();
    }
    assert_eq!(first["resultType"], "input_required", "{first}");
    assert_eq!(first["inputRequests"]["review"]["params"]["mode"], "form", "{first}");
    let again = answer(client, &arguments, &first["requestState"], said);
    again["result"]["structuredContent"].clone()
}

/// Repeats the call with the server's state and the person's answer.
fn answer(client: &mut Client, arguments: &Value, state: &Value, said: &Value) -> Value {
    let params = json!({
        "name": "draft_submit",
        "arguments": arguments,
        "requestState": state,
        "inputResponses": { "review": said },
    });
    client.request("tools/call", params)
}

#[test]
fn the_documented_mcp_draft_calls_end_in_the_workspace() {
    for era in ERAS {
        let world = world();
        let mut client = Client::start(&world, era, NOTHING, &["--tool-names", "seed"]);
        let asked = json!({ "source_path": "src/watchdog.py", "task_id": "phase10_version_flag" });
        let draft = client.does("ollama_request_draft", &asked);
        let path = &draft["draft_path"];
        assert_eq!((&draft["line_count"], &draft["draft_id"]), (&5.into(), path));
        assert_eq!(draft["original_hash"].as_str().unwrap().len(), 64);
        let write = json!({ "draft_path": path, "content": WITH_VERSION });
        let written = client.does("ollama_write_draft", &write);
        assert_eq!((&written["success"], &written["line_count"]), (&true.into(), &7.into()));
        let read = client.does("ollama_read_draft", &json!({ "draft_path": path }));
        assert_eq!((&read["content"], &read["hash"]), (&WITH_VERSION.into(), &written["new_hash"]));
        assert!(!world.read("ws/src/watchdog.py").contains("--version"));
        let submit = json!({
            "draft_path": path,
            "original_path": "src/watchdog.py",
            "task_id": "phase10_version_flag",
            "change_summary": "Added --version/-v flag handling in main()",
        });
        let told = client.does("ollama_submit_draft", &submit);
        assert_eq!((&told["submitted"], &told["decision"]), (&true.into(), &"accepted".into()));
        assert_eq!(told["message_id"].as_str().unwrap().len(), 64);
        assert_eq!(world.read("ws/src/watchdog.py"), WITH_VERSION);
    }
}

#[test]
fn mcp_tool_names_follow_the_flags() {
    let world = world();
    let names = |flags: &[&str]| {
        let mut client = Client::start(&world, Era::Modern, NOTHING, flags);
        let answer = client.request("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        for tool in &tools {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
            assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
        }
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let neutral = [
        "draft_request",
        "draft_read",
        "draft_write",
        "draft_edit",
        "draft_check",
        "draft_submit",
        "draft_status",
        "draft_list",
        "draft_discard",
        "draft_rebase",
    ];
    assert_eq!(names(&[]), neutral);
    let seed = names(&["--tool-names", "seed"]);
    assert_eq!(
        seed[..4],
        ["ollama_request_draft", "ollama_read_draft", "ollama_write_draft", "draft_edit"]
    );
    assert_eq!(names(&["--tool-names", "both"]).len(), 14);
    assert_eq!(
        names(&["--tools", "all"])[10..],
        ["sandbox_run", "facts", "check", "consult", "run_status"]
    );
}

/// 94, and 1 to 12 where the message reaches a model.
#[test]
fn invalid_mcp_tool_calls_are_refused_with_helpful_messages() {
    let world = world();
    for era in ERAS {
        let mut client = start(&world, era);
        let unknown = client.call("shell", &json!({ "cmd": "id" }));
        assert_eq!(unknown["code"], -32602, "{unknown}");
        let unlisted = client.call("sandbox_run", &json!({ "program": "1" }));
        assert_eq!(unlisted["code"], -32602, "{unlisted}");
        let words = client.refuses(
            "draft_request",
            &json!({ "source_path": "Makefile", "task_id": "t", "overwrite": true }),
        );
        assert!(words.contains("unknown field `overwrite`"), "{words}");
        for path in ["../x", "/etc/passwd", ".git/config", "a\\b", ""] {
            let asked = json!({ "source_path": path, "task_id": "t", "create": true });
            let words = client.refuses("draft_request", &asked);
            assert!(words.contains("hint: use a path inside the workspace"), "{path}: {words}");
        }
        let missing = json!({ "source_path": "missing.py", "task_id": "t" });
        let words = client.refuses("draft_request", &missing);
        assert!(words.contains("hint: pass `create: true`"), "{words}");
        for handle in ["drf_00000000000000000000000000000000", "../../etc/passwd", ""] {
            let words =
                client.refuses("draft_write", &json!({ "draft_id": handle, "content": "x" }));
            assert!(words.starts_with("draft not found\nhint: "), "{words}");
        }
        let draft = client.drafts("src/watchdog.py", WITH_VERSION);
        let other = json!({
            "draft_id": draft, "change_summary": "x", "original_path": "src/other.py",
        });
        let words = client.refuses("draft_submit", &other);
        assert!(words.contains("wrong original_path: the draft has `src/watchdog.py`"), "{words}");
        let edit = json!({ "draft_id": draft, "old": "nowhere", "new": "x" });
        let words = client.refuses("draft_edit", &edit);
        let hint = "hint: copy the exact text, including spaces, from draft_read";
        assert!(words.contains(hint), "{words}");
        client.does("draft_discard", &json!({ "draft_id": draft }));
    }
}

/// 29: a handle alone grants no access.
#[test]
fn a_draft_of_another_worker_is_unknown_over_mcp() {
    let world = world();
    let mut first = Client::start(&world, Era::Modern, NOTHING, &["--worker", "first"]);
    let draft = first.drafts("src/watchdog.py", WITH_VERSION);
    let mut second = Client::start(&world, Era::Modern, NOTHING, &["--worker", "second"]);
    let never = json!({ "draft_id": "drf_00000000000000000000000000000000" });
    let unknown = second.refuses("draft_read", &never);
    for tool in ["draft_read", "draft_check", "draft_status", "draft_discard", "draft_rebase"] {
        assert_eq!(second.refuses(tool, &json!({ "draft_id": draft })), unknown, "{tool}");
    }
    let uri = format!("moothall://draft/{draft}/diff");
    let read = second.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["error"]["message"], "draft not found", "{read}");
    let read = first.request("resources/read", json!({ "uri": uri }));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("+    if \"--version\" in sys.argv:"), "{text}");
}

/// 75: a decision in a form is accepted in both eras; `later` and a declined form decide nothing.
#[test]
fn a_user_can_decide_in_a_form_if_the_policy_allows_it() {
    let declined = json!({ "action": "decline" });
    let said = [
        (person("approve"), "accepted"),
        (person("reject"), "rejected"),
        (person("later"), "escalated"),
        (declined, "escalated"),
    ];
    for era in ERAS {
        for (said, decision) in &said {
            let world = world();
            with_forms(&world);
            let mut client = Client::start(&world, era, FORMS, &[]);
            let draft = escalated(&world, &mut client);
            let told = submit_and_say(&mut client, era, &draft, said);
            assert_eq!(told["decision"], *decision, "{era:?} {said} {told}");
            let applied = world.read("ws/big.py") == "value_0 = 0\n";
            assert_eq!(applied, *decision == "accepted");
        }
    }
}

/// 76, 77, 78, 81.
#[test]
fn an_elicitation_state_is_valid_for_one_server_call_and_decision() {
    let world = world();
    with_forms(&world);
    let mut client = Client::start(&world, Era::Modern, FORMS, &[]);
    let draft = escalated(&world, &mut client);
    let arguments = json!({ "draft_id": draft, "change_summary": "less" });
    let first = client.call("draft_submit", &arguments);
    let state = first["requestState"].as_str().unwrap().to_owned();
    let yes = person("approve");
    let refused = |answer: &Value| {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(world.read("ws/big.py"), lines(40));
    };

    let other = if state.ends_with('A') { "B" } else { "A" };
    let tampered = format!("{}{other}", &state[..state.len() - 1]);
    refused(&answer(&mut client, &arguments, &tampered.into(), &yes));
    let others = json!({ "draft_id": draft, "change_summary": "other words" });
    refused(&answer(&mut client, &others, &state.clone().into(), &yes));
    let mut another = Client::start(&world, Era::Modern, FORMS, &[]);
    refused(&answer(&mut another, &arguments, &state.clone().into(), &yes));

    let done = answer(&mut client, &arguments, &state.clone().into(), &yes);
    assert_eq!(done["result"]["structuredContent"]["decision"], "accepted", "{done}");
    let again = answer(&mut client, &arguments, &state.into(), &person("reject"));
    assert_eq!(again["result"]["isError"], true, "{again}");
    assert_eq!(world.read("ws/big.py"), "value_0 = 0\n");
}

/// 79 over the protocol: content written after the form was shown is not covered by it.
#[test]
fn a_form_does_not_approve_content_written_after_it_was_shown() {
    let world = world();
    with_forms(&world);
    let mut client = Client::start(&world, Era::Modern, FORMS, &[]);
    let draft = escalated(&world, &mut client);
    let arguments = json!({ "draft_id": draft, "change_summary": "less" });
    let first = client.call("draft_submit", &arguments);
    client.does("draft_write", &json!({ "draft_id": draft, "content": "evil = 1\n" }));
    let swapped = answer(&mut client, &arguments, &first["requestState"], &person("approve"));
    assert_eq!(swapped["result"]["isError"], true, "{swapped}");
    assert_eq!(world.read("ws/big.py"), lines(40));
}

/// 82: the person who answers a form is unknown, so forms are never used for a guarded path or a
/// credential.
#[test]
fn no_form_is_offered_for_guarded_paths_or_possible_credentials() {
    let world = world();
    with_forms(&world);
    let looks_like = "password = \"hT9xK2mQ7vL4pW8zR3nB6cY1\"\n";
    for era in ERAS {
        let mut client = Client::start(&world, era, FORMS, &[]);
        world.write("ws/settings.py", "debug = False\n");
        let guarded = [("Makefile", "all: build\n"), ("settings.py", looks_like)];
        for (path, content) in guarded {
            let draft = client.drafts(path, content);
            let arguments = json!({ "draft_id": draft, "change_summary": "x" });
            let told = client.does("draft_submit", &arguments);
            assert_eq!(told["decision"], "escalated", "{path}: {told}");
            client.does("draft_discard", &json!({ "draft_id": draft }));
        }
    }
}

/// 80: tools alone are enough.
#[test]
fn a_client_without_forms_can_wait_for_the_decision_with_a_tool() {
    for era in ERAS {
        let world = world();
        with_forms(&world);
        let mut client = start(&world, era);
        let draft = escalated(&world, &mut client);
        let arguments = json!({ "draft_id": draft, "change_summary": "less" });
        let told = client.does("draft_submit", &arguments);
        assert_eq!(told["decision"], "escalated", "{told}");
        let uri = format!("moothall://draft/{draft}/diff");
        // Nothing changes without a decision.
        let status = client.does("draft_status", &json!({ "draft_id": draft, "wait_s": 1 }));
        assert_eq!(status["state"], "escalated");
        let listening = match era {
            Era::Modern => {
                let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
                Some(client.send("subscriptions/listen", filter))
            }
            Era::Legacy => {
                let subscribed = client.request("resources/subscribe", json!({ "uri": uri }));
                assert!(subscribed["result"].is_object(), "{subscribed}");
                None
            }
        };
        if listening.is_some() {
            let heard = client.hear();
            assert_eq!(heard["method"], "notifications/subscriptions/acknowledged", "{heard}");
        }
        let wait = json!({ "draft_id": draft, "wait_s": 100 });
        let waiting =
            client.send("tools/call", json!({ "name": "draft_status", "arguments": wait }));
        approve(&world, &draft);
        let (mut answered, mut updated) = (None, false);
        let until = Instant::now() + PATIENCE;
        while (answered.is_none() || !updated) && Instant::now() < until {
            let heard = client.hear();
            if heard["id"] == waiting {
                answered = Some(heard["result"]["structuredContent"].clone());
            } else if heard["method"] == "notifications/resources/updated" {
                assert_eq!(heard["params"]["uri"], uri);
                updated = true;
            }
        }
        let status = answered.unwrap();
        assert_eq!((&status["state"], &status["review"]), (&"applied".into(), &"approve".into()));
    }
}

#[test]
fn an_agent_reads_comments_on_lines_in_the_status_of_its_draft() {
    for era in ERAS {
        let world = world();
        with_forms(&world);
        let mut client = start(&world, era);
        let draft = escalated(&world, &mut client);
        let arguments = json!({ "draft_id": draft, "change_summary": "less" });
        client.does("draft_submit", &arguments);
        let shown = world.run(&["review", "show", &draft, "--workspace", "ws", "--json"]).json();
        let seal = shown["seal"].as_str().unwrap();
        let path = shown["drafts"][0]["path"].as_str().unwrap();
        for arguments in [
            vec!["review", "comment", &draft, "--line", "1", "--text", "keep this"],
            vec!["review", "send-back", &draft, "--reason", "see the comment"],
        ] {
            let more = ["--if-match", seal, "--workspace", "ws"];
            let ran = world.run(&[&arguments[..], &more].concat());
            assert_eq!(ran.code, Some(0), "{ran}");
        }
        let status = client.does("draft_status", &json!({ "draft_id": draft }));
        let comment = json!({ "path": path, "side": "new", "line": 1, "text": "keep this" });
        assert_eq!(status["comments"], json!([comment]), "{status}");
        assert_eq!(status["review_reason"], "see the comment");
    }
}

fn approve(world: &World, draft: &str) {
    let shown = world.run(&["review", "show", draft, "--json", "--workspace", "ws"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let seal = shown["seal"].as_str().unwrap();
    let ran = world.run(&["review", "approve", draft, "--if-match", seal, "--workspace", "ws"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_client_that_opens_urls_is_sent_to_the_review_page() {
    let page = "http://127.0.0.1:7777/drafts/{draft}";
    for era in ERAS {
        let world = world();
        let mut client = Client::start(&world, era, PAGES, &["--review-url", page]);
        let draft = client.drafts("Makefile", "all: build\n");
        let arguments = json!({ "draft_id": draft, "change_summary": "x" });
        let looked = json!({ "action": "accept" });
        client.person = Some(looked.clone());
        let first = client.call("draft_submit", &arguments);
        let (asked, told) = match era {
            Era::Modern => {
                let told = answer(&mut client, &arguments, &first["requestState"], &looked);
                let asked = first["inputRequests"]["review"]["params"].clone();
                (asked, told["result"]["structuredContent"].clone())
            }
            Era::Legacy => {
                (client.notified[0]["params"].clone(), first["structuredContent"].clone())
            }
        };
        assert_eq!(
            (&asked["mode"], &asked["url"]),
            (&"url".into(), &page.replace("{draft}", &draft).into())
        );
        assert_eq!(told["decision"], "escalated", "{told}");
        assert_eq!(world.read("ws/Makefile"), "all:\n");
    }
}

/// 95: tested in the serving process itself.
#[test]
fn the_mcp_front_end_cannot_open_files_start_programs_or_connect() {
    let world = world();
    let tried = world.run(&["mcp", "--workspace", "ws", "--check"]);
    assert_eq!(tried.code, Some(0), "{}", tried.stderr);
    let cannot = [
        "list the workspace",
        "create a folder in the workspace",
        "write to the store",
        "change the mode of a file",
        "change the owner of a file",
        "change an attribute of a file",
        "read a system file",
        "connect to the network",
        "send a datagram",
        "connect to another program's socket",
        "start a program",
        "send a signal",
        "make system calls through the x32 ABI",
    ];
    assert_eq!(tried.stdout.lines().skip(1).map(str::trim).collect::<Vec<_>>(), cannot);
    // The serving process has the same confinement, and another process writes the drafts.
    let mut client = start(&world, Era::Modern);
    let draft = client.drafts("src/watchdog.py", WITH_VERSION);
    let status = fs_err::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    client.does("draft_submit", &json!({ "draft_id": draft, "change_summary": "x" }));
    assert_eq!(world.read("ws/src/watchdog.py"), WITH_VERSION);
}

/// Runs the program without Landlock: processes inherit the seccomp filter of the thread that
/// starts them. The kernel answers `ENOSYS` if it has no Landlock, and `EOPNOTSUPP` if it is
/// disabled.
fn without_landlock(world: &World, errno: i32, arguments: &[&str]) -> Ran {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let filter = SeccompFilter::new(
                BTreeMap::from([(libc::SYS_landlock_create_ruleset, Vec::new())]),
                SeccompAction::Allow,
                SeccompAction::Errno(errno as u32),
                std::env::consts::ARCH.try_into().unwrap(),
            );
            let filter: BpfProgram = filter.unwrap().try_into().unwrap();
            seccompiler::apply_filter(&filter).unwrap();
            world.run(arguments)
        });
        run.join().unwrap()
    })
}

#[test]
fn an_mcp_server_that_cannot_be_confined_does_not_start_by_default() {
    let world = world();
    for (errno, cause, hint) in [
        (
            libc::ENOSYS,
            "the kernel supports Landlock ABI 0, but 4 is required\n",
            "hint: use Linux 6.7 or newer, or run without confinement with `--allow-unconfined`\n",
        ),
        (
            libc::EOPNOTSUPP,
            "Landlock is disabled on this kernel\n",
            "hint: add `landlock` to the `lsm=` boot parameter, or run without confinement with `--allow-unconfined`\n",
        ),
    ] {
        let ran = without_landlock(&world, errno, &["mcp", "--workspace", "ws"]);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        let error = format!("error: cannot confine the server: {cause}{hint}");
        assert!(ran.stderr.contains(&error), "{}", ran.stderr);
    }
    let flags = ["mcp", "--workspace", "ws", "--allow-unconfined", "--check"];
    let ran = without_landlock(&world, libc::ENOSYS, &flags);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: the server is not confined: "), "{}", ran.stderr);
    // With `--allow-unconfined` it serves, and exits because no client is connected.
    let ran = without_landlock(&world, libc::ENOSYS, &flags[..4]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn an_mcp_server_with_an_invalid_policy_does_not_start() {
    let world = world();
    fs_err::create_dir_all(world.path("ws/.moothall")).unwrap();
    world.write("ws/.moothall/policy.toml", "version = 1\nunknown = 1\n");
    let ran = world.run(&["mcp", "--workspace", "ws"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("unknown"), "{}", ran.stderr);
}

#[test]
fn invalid_mcp_messages_do_not_end_the_session() {
    let world = world();
    let mut client = start(&world, Era::Modern);
    client.does("draft_list", &json!({}));
    client.say_raw(b"{ this is no JSON\n");
    client.say_raw(format!("{}\n", "[".repeat(100_000)).as_bytes());
    client.say_raw(b"\xff\xfe\n");
    assert_eq!(client.does("draft_list", &json!({}))["drafts"], json!([]));
}

/// Each waiting call makes the gate check its draft repeatedly.
#[test]
fn the_number_of_waiting_mcp_calls_is_limited() {
    let world = world();
    let mut client = start(&world, Era::Modern);
    let draft = client.drafts("src/watchdog.py", WITH_VERSION);
    let arguments = json!({ "draft_id": draft, "wait_s": 300 });
    let call = json!({ "name": "draft_status", "arguments": arguments });
    for _ in 0..33 {
        client.send("tools/call", call.clone());
    }
    // The other calls wait for minutes.
    let refused = client.hear();
    let words = "too many waiting calls (limit: 32)\nhint: call it without `wait_s`, or wait for one draft at a time";
    assert_eq!(refused["result"]["content"][0]["text"], words);
    client.does("draft_discard", &json!({ "draft_id": draft }));
}

#[test]
fn an_mcp_server_ends_when_its_gate_process_dies() {
    let world = world();
    let mut client = start(&world, Era::Modern);
    client.does("draft_list", &json!({}));
    let children = format!("/proc/{0}/task/{0}/children", client.child.id());
    let gate: i32 = fs_err::read_to_string(children).unwrap().trim().parse().unwrap();
    let gate = rustix::process::Pid::from_raw(gate).unwrap();
    rustix::process::kill_process(gate, rustix::process::Signal::KILL).unwrap();
    let until = Instant::now() + PATIENCE;
    let ended = loop {
        if let Some(ended) = client.child.try_wait().unwrap() {
            break ended;
        }
        assert!(Instant::now() < until, "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(ended.code(), Some(4));
}

#[test]
fn mcp_facts_and_checks_run_in_the_unconfined_process() {
    let world = world();
    let mut client = Client::start(&world, Era::Modern, NOTHING, &["--tools", "all"]);
    let facts = client.does("facts", &json!({ "ticker": "HLXI" }));
    assert!(facts["sheet"].as_str().unwrap().contains("Revenue"), "{facts}");
    let text = "Revenue was $1,214.9 million [F0:Revenue:FY2025].";
    let told = client.does("check", &json!({ "text": text, "ticker": "HLXI" }));
    let claim = &told["claims"][0];
    assert_eq!((&told["verdict"], &claim["verdict"]), (&"pass".into(), &"ok".into()));
    // An agent's argument is never parsed as a flag.
    let words = client.refuses("facts", &json!({ "ticker": "--csv" }));
    assert!(words.contains("ticker"), "{words}");
}

#[test]
fn an_agent_starts_a_consultation_and_gets_progress_and_the_memo() {
    for era in ERAS {
        let world = World::new();
        fs_err::create_dir(world.path("ws")).unwrap();
        world.write_config("moothall.toml", "model = \"demo\"\n");
        let mut client = Client::start(&world, era, NOTHING, &["--tools", "all"]);
        let started = client.does("consult", &json!({ "ticker": "HLXI", "moves": 5, "rounds": 1 }));
        assert!(started["calls_expected"].as_u64().unwrap() > 10, "{started}");
        let params = json!({
            "name": "consult",
            "arguments": {
                "ticker": "HLXI", "moves": 5, "rounds": 1, "verdict": "off", "wait_s": 300,
            },
            "_meta": { "progressToken": "p1" },
        });
        let answer = client.request("tools/call", params);
        let progress = |message: &Value| {
            message["method"] == "notifications/progress"
                && message["params"]["progressToken"] == "p1"
                && message["params"]["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(" model calls"))
        };
        assert!(client.notified.iter().any(progress), "{:?}", client.notified);
        let status = &answer["result"]["structuredContent"];
        assert_eq!(status["state"], "finished", "{answer}");
        // Without its panel, a consultation makes fewer calls than by default.
        let expected = |of: &Value| of["calls_expected"].as_u64().unwrap();
        assert!(expected(status) < expected(&started), "{status} {started}");
        assert!(status["memo"].as_str().unwrap().starts_with("# "), "{status}");
        assert_eq!(status["spent_usd"], "$0.00", "{status}");
        let waited = json!({ "run_id": started["run_id"], "wait_s": 300 });
        assert_eq!(client.does("run_status", &waited)["state"], "finished");
        let runs = world.run(&["runs", "--json"]).json();
        assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "{runs}");
        let unknown = client
            .refuses("run_status", &json!({ "run_id": "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c" }));
        assert!(unknown.contains("unknown run"), "{unknown}");
    }
}

#[test]
fn a_consultation_that_costs_money_needs_a_budget_of_the_user() {
    let mut world = World::new();
    fs_err::create_dir(world.path("ws")).unwrap();
    world.set("OPENAI_API_KEY", "sk-not-used");
    world.write_config("moothall.toml", "model = \"openai/gpt-5-mini\"\n");
    let arguments = json!({ "ticker": "HLXI", "moves": 5, "rounds": 1 });
    let mut client = Client::start(&world, Era::Modern, NOTHING, &["--tools", "all"]);
    let words = client.refuses("consult", &arguments);
    assert!(words.contains("agents may spend only $0.00 more"), "{words}");
    assert!(words.contains("moothall mcp --budget USD"), "{words}");
    // A budget in the call cannot exceed the one of the user.
    let flags = ["--tools", "all", "--budget", "0.50"];
    let mut client = Client::start(&world, Era::Modern, NOTHING, &flags);
    let words = client.refuses("consult", &json!({ "ticker": "HLXI", "budget_usd": "0.51" }));
    assert!(words.contains("may cost $0.51, but agents may spend only $0.50 more"), "{words}");
    assert_eq!(world.run(&["runs", "--json"]).json()["runs"], json!([]));
}
