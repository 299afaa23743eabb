//! Real coding agents from npm in `moothall guard`, with a fake model on loopback.
//!
//! `tools/agent-clients/install.sh` installs them; `MOOTHALL_TEST_AGENT_CLIENTS` is their directory
//! (default: `~/.cache/moothall/agent-clients`). The gate tests one client; `.ci/long guard` sets
//! `MOOTHALL_TEST_AGENTS=all`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::agent_provider::{AgentProvider, AgentStep};
use crate::guard::{outcomes, world};
use crate::world::World;

/// A client, its files in the private home directory, and how it is started.
struct AgentClient {
    name: &'static str,
    /// Its program, below the directory of clients.
    program: &'static str,
    args: &'static [&'static str],
    /// `PORT` is replaced.
    variables: &'static [&'static str],
    /// Path in the home directory and content.
    settings: Option<(&'static str, &'static str)>,
}

const PROMPT: &str = "change the files";

const CLIENTS: [AgentClient; 4] = [
    AgentClient {
        name: "gemini",
        program: "gemini/node_modules/.bin/gemini",
        args: &["-p", PROMPT, "-o", "json", "--approval-mode", "yolo", "-m", "gemini-2.5-flash"],
        variables: &[
            "GEMINI_API_KEY=dummy",
            "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:PORT",
            "GEMINI_CLI_NO_RELAUNCH=true",
            "GEMINI_CLI_TRUST_WORKSPACE=true",
        ],
        settings: Some((
            ".gemini/settings.json",
            r#"{"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}"#,
        )),
    },
    AgentClient {
        name: "claude",
        program: "claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        args: &["-p", PROMPT, "--output-format", "json", "--dangerously-skip-permissions"],
        variables: &[
            "ANTHROPIC_BASE_URL=http://127.0.0.1:PORT",
            "ANTHROPIC_API_KEY=dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
            "DISABLE_AUTOUPDATER=1",
            "IS_SANDBOX=1",
        ],
        settings: None,
    },
    AgentClient {
        name: "codex",
        program: "codex/node_modules/.bin/codex",
        args: &[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            PROMPT,
        ],
        variables: &["FAKE_KEY=dummy"],
        settings: Some((
            ".codex/config.toml",
            "model = \"fake-model\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"http://127.0.0.1:PORT/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n[analytics]\nenabled = false\n[features]\nplugins = false\n",
        )),
    },
    AgentClient {
        name: "opencode",
        program: "opencode/node_modules/.bin/opencode",
        args: &["run", "--format", "json", "--title", "t", PROMPT],
        variables: &[
            "npm_config_offline=true",
            "OPENCODE_DISABLE_AUTOUPDATE=1",
            "OPENCODE_DISABLE_MODELS_FETCH=1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
        ],
        settings: Some((
            ".config/opencode/opencode.json",
            r#"{"autoupdate":false,"share":"disabled","snapshot":false,"permission":"allow","model":"fake/fake-model","small_model":"fake/fake-model","enabled_providers":["fake"],"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://127.0.0.1:PORT/v1","apiKey":"dummy"},"models":{"fake-model":{"tool_call":true,"limit":{"context":100000,"output":8000}}}}}}"#,
        )),
    },
];

/// The clients to test. A missing one fails the test.
fn clients() -> impl Iterator<Item = &'static AgentClient> {
    let all = std::env::var("MOOTHALL_TEST_AGENTS").is_ok_and(|which| which == "all");
    CLIENTS.iter().take(if all { CLIENTS.len() } else { 1 })
}

fn program(client: &AgentClient) -> PathBuf {
    let folder = std::env::var_os("MOOTHALL_TEST_AGENT_CLIENTS").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/moothall/agent-clients"),
        PathBuf::from,
    );
    let program = folder.join(client.program);
    assert!(
        program.exists(),
        "{} is missing: run tools/agent-clients/install.sh",
        program.display()
    );
    program
}

/// Runs a client with a scripted model.
struct AgentRun {
    world: World,
    code: Option<i32>,
    record: Value,
    text: String,
}

fn run_client(client: &AgentClient, steps: Vec<AgentStep>, kill_when_asked: bool) -> AgentRun {
    let world = world();
    // A git repository that git itself accepts.
    world.write("ws/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
    let root = fs_err::canonicalize(world.path("ws")).unwrap();
    let steps_count = steps.len();
    let provider = AgentProvider::start(root.to_str().unwrap(), steps);
    let port = provider.port.to_string();
    if let Some((path, text)) = client.settings {
        let path = world.root().join("home").join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text.replace("PORT", &port)).unwrap();
    }
    let agent = program(client).display().to_string();
    let variables: Vec<String> =
        client.variables.iter().map(|one| one.replace("PORT", &port)).collect();
    let mut args =
        vec!["guard", "--workspace", "ws", "--json", "--timeout", "3m", "--allow-loopback", &port];
    if let Some((path, _)) = client.settings {
        args.extend(["--copy-home", path]);
    }
    for variable in &variables {
        args.extend(["--env", variable]);
    }
    args.extend(["--", &agent]);
    args.extend(client.args);
    let child = world.command(&args).spawn().unwrap();
    if kill_when_asked {
        // The last step hangs; the request before it has all other results.
        while provider.requests.recv_timeout(Duration::from_secs(150)).unwrap() + 1 < steps_count {}
        let kill = "for pid in $(cat /proc/[0-9]*/stat 2>/dev/null | awk -v me=\"$0\" '$4 == me {print $1}'); do kill -9 $pid; done";
        std::thread::sleep(Duration::from_secs(2));
        // The child of the supervisor: the namespaces end with it.
        let killed =
            std::process::Command::new("sh").args(["-c", kill, &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
    }
    let ran = world.ran(&args, child.wait_with_output().unwrap());
    let record = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    AgentRun { code: ran.code, record, text: ran.to_string(), world }
}

fn write(path: &str, content: &str) -> AgentStep {
    AgentStep::Write { path: path.to_owned(), content: content.to_owned() }
}

#[track_caller]
fn check(
    client: &AgentClient,
    steps: Vec<AgentStep>,
    code: i32,
    path: &str,
    outcome: &str,
) -> AgentRun {
    let run = run_client(client, steps, false);
    let found = outcomes(&run.record).into_iter().find(|(one, _)| one == path);
    let name = client.name;
    assert_eq!(found.map(|(_, outcome)| outcome).as_deref(), Some(outcome), "{name}: {}", run.text);
    assert_eq!(run.code, Some(code), "{name}: {}", run.text);
    // Nothing but the fake model was reached.
    let hosts = run.record["hosts"].as_array().unwrap();
    assert!(hosts.iter().all(|host| host["host"] == "127.0.0.1"), "{name}: {}", run.text);
    run
}

#[test]
fn a_good_edit_of_a_real_agent_is_applied() {
    for client in clients() {
        let run = check(client, vec![write("notes.txt", "one\ntwo\n")], 0, "notes.txt", "applied");
        assert_eq!(run.world.read("ws/notes.txt"), "one\ntwo\n");
    }
}

#[test]
fn bad_edits_of_a_real_agent_are_not_applied() {
    let key = format!("KEY = \"AKIA{}\"\n", "Z7QWERTYUIOPASDF");
    for client in clients() {
        let run = check(client, vec![write("src/keys.py", &key)], 1, "src/keys.py", "rejected");
        assert!(!run.world.path("ws/src/keys.py").exists());
        let run =
            check(client, vec![write("src/big.py", "# gone\n")], 3, "src/big.py", "needs_review");
        assert!(run.world.read("ws/src/big.py").contains("def f0"));
        let policy = AgentStep::Shell(
            "mkdir -p .moothall && echo 'version = 1' > .moothall/policy.toml".to_owned(),
        );
        let run = check(client, vec![policy], 1, ".moothall/policy.toml", "left");
        assert!(!run.world.path("ws/.moothall").exists());
        let hook = AgentStep::Shell(
            "echo evil > .git/hooks/pre-commit && echo two >> notes.txt".to_owned(),
        );
        let run = check(client, vec![hook], 3, "notes.txt", "needs_review");
        assert!(!run.world.path("ws/.git/hooks/pre-commit").exists());
        let link =
            AgentStep::Shell("ln -s ../../outside.txt src/link; echo evil > src/link".to_owned());
        let run = check(client, vec![link], 1, "src/link", "rejected");
        assert_eq!(run.world.read("outside.txt"), "outside\n");
    }
}

#[test]
fn a_real_agent_that_is_killed_is_judged_by_what_it_changed() {
    for client in clients() {
        let hang = AgentStep::Shell("tail -f /dev/null".to_owned());
        let run = run_client(client, vec![write("notes.txt", "one\ntwo\n"), hang], true);
        let name = client.name;
        let expected = [("notes.txt".to_owned(), "applied".to_owned())];
        assert_eq!(outcomes(&run.record), expected, "{name}: {}", run.text);
        assert_eq!(run.record["end"], "killed", "{name}: {}", run.text);
    }
}
