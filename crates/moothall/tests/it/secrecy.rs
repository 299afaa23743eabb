//! The API key is sent in requests and appears nowhere else.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;

use moothall_testkit::{ProviderBehaviour, ProviderFault};

use crate::fake::Fake;
use crate::world::{Ran, World};

/// A unique key. Its prefix is searched for as well, because half a key is also a leak.
const KEY: &str = "sk-moothall-8f2c1d7e-5b1bd1f7c0a94e6e";
const BEGINNING: &str = "sk-moothall-8f2c";

/// All places that contain a part of the key: standard output, standard error, or files below
/// `folder`.
fn leaks(runs: &[Ran], folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for ran in runs {
        for (name, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            if text.contains(BEGINNING) {
                found.push(format!("{name} of {ran}"));
            }
        }
    }
    for path in files(folder) {
        let bytes = fs_err::read(&path).unwrap();
        let named = path.to_string_lossy().contains(BEGINNING);
        if named || bytes.windows(BEGINNING.len()).any(|part| part == BEGINNING.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

/// A server that rejects every call and quotes the headers with the key, as real ones do. Returns
/// its address.
fn quoting_server(calls: usize) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let quoted = thread::spawn(move || {
        let answer_one = |_| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.windows(4).any(|part| part == b"\r\n\r\n") {
                let read = stream.read(&mut piece).unwrap();
                assert_ne!(read, 0, "the request broke off");
                request.extend_from_slice(&piece[..read]);
            }
            let text = String::from_utf8_lossy(&request);
            let key =
                text.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
            let key = key.unwrap_or_default().to_owned();
            let body =
                format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {key}\"}}}}");
            write!(
                stream,
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            key
        };
        (0..calls).map(answer_one).collect()
    });
    (url, quoted)
}

#[test]
fn key_of_a_full_run_is_found_nowhere() {
    let fake = Fake::scripted([
        ProviderBehaviour::from(ProviderFault::ServerError),
        ProviderBehaviour::text("The answer is two."),
        ProviderBehaviour::from(ProviderFault::RateLimited { retry_after: None }),
        ProviderBehaviour::text("{\"moons\": 2}"),
        ProviderBehaviour::from(ProviderFault::Unauthorized),
    ]);
    let world = World::new().with("OPENAI_API_KEY", KEY).with("MOOTHALL_LOG__FORMAT", "json");
    fake.configure(&world, "");
    world.write("schema.json", "{\"type\": \"object\", \"required\": [\"moons\"]}");
    let ask = ["ask", "-vvv", "--config", "fake.toml", "--model", "openai/gpt-4.1-mini"];
    let (url, quoted) = quoting_server(2);
    let runs = [
        // A retry, a rejected answer, a second call with a retry, and an answer; all recorded.
        world.run(
            &[
                &ask[..],
                &[
                    "--json",
                    "--schema",
                    "schema.json",
                    "--record",
                    "kept",
                    "--receipt",
                    "receipt",
                    "--events",
                    "events.ndjson",
                    "How many moons has Mars?",
                ],
            ]
            .concat(),
        ),
        // Failures: a provider that rejects the call, and one that quotes the key in its error.
        world.run(
            &[&ask[..], &["--receipt", "receipt-2", "--events", "events-2.ndjson", "hello"]]
                .concat(),
        ),
        world.run(
            &[
                &ask[..],
                &[
                    "--base-url",
                    &url,
                    "--receipt",
                    "receipt-3",
                    "--events",
                    "events-3.ndjson",
                    "--json",
                    "hello",
                ],
            ]
            .concat(),
        ),
        world.run(&["models", "-vvv", "--check", "openai/m", "--base-url", &url, "--json"]),
        // All commands that print the configuration.
        world.run(&["models", "--json"]),
        world.run(&["models"]),
        world.run(&["config", "show", "--json"]),
        world.run(&["config", "path", "--json"]),
        world.run(&["config", "check", "--json"]),
        world.run(&["verify", "--json", "receipt"]),
        world.run(&["verify", "--json", "receipt-3"]),
    ];
    let codes: Vec<_> = runs.iter().map(|ran| ran.code).collect();
    assert_eq!(codes, [0, 4, 4, 4, 0, 0, 0, 0, 0, 0, 1].map(Some), "{}", runs[0]);
    assert!(files(world.root()).len() >= 10, "{:?}", files(world.root()));

    // Every call carried the key, and the errors quoted it, so it could have leaked.
    let calls = fake.calls();
    assert_eq!(calls.len(), 5);
    for call in calls {
        assert_eq!(call.header("authorization"), Some(&*format!("Bearer {KEY}")));
    }
    for line in quoted.join().unwrap() {
        assert!(line.ends_with(KEY), "{line}");
    }
    assert!(
        runs[2].stdout.contains("Incorrect API key provided") && runs[2].stdout.contains("***"),
        "{}",
        runs[2]
    );

    assert_eq!(leaks(&runs, world.root()), Vec::<String>::new());
}

/// The command lines of all processes that contain a part of the key.
fn leaking_processes() -> Vec<String> {
    let entries = fs_err::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| {
        let line = fs_err::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(PLANTED)).collect()
}

/// Planted by one test only, because another test puts the other key on a command line.
const PLANTED: &str = "sk-moothall-8f2c-planted-c0a94e6e";

#[test]
fn key_that_was_stored_or_printed_by_a_command_is_found_nowhere() {
    // The source of the key is outside of everything that is searched.
    let outside = tempfile::tempdir().unwrap();
    let source = outside.path().join("source");
    fs_err::write(&source, format!("{PLANTED}\n")).unwrap();
    let (fake, arrivals) = Fake::hanging();
    // The key of another provider must not reach the command.
    let world = World::new().with("GROQ_API_KEY", PLANTED).with("MOOTHALL_LOG__FORMAT", "json");
    world.write(
        "print.sh",
        "env > environment\ntr '\\0' ' ' < /proc/$PPID/cmdline > parent\ncat \"$1\"\n",
    );
    let url = fake.url();
    let lab = |script: &str| {
        let command = format!("sh {script} {}", source.display());
        format!("[provider.lab]\nbase_url = \"{url}\"\nkey_command = \"{command}\"\n")
    };
    world.write("lab.toml", &lab("print.sh"));
    let ask = ["ask", "-vvv", "--config", "lab.toml", "--model", "lab/m", "--receipt", "receipt"];
    let ask = [&ask[..], &["--events", "events.ndjson", "hello"]].concat();

    // While the call hangs, no process has the key in its command line.
    let mut child = world.command(&ask).spawn().unwrap();
    arrivals.recv_timeout(std::time::Duration::from_secs(120)).unwrap();
    assert_eq!(leaking_processes(), Vec::<String>::new());
    child.kill().unwrap();
    child.wait().unwrap();
    let sent = format!("Bearer {PLANTED}");
    assert_eq!(fake.calls()[0].header("authorization"), Some(&*sent));

    // The provider quotes the key, then rejects it.
    fake.always(ProviderBehaviour::text(format!("your key is {PLANTED}")));
    let mut runs = vec![world.run(&ask)];
    assert_eq!(runs[0].code, Some(0), "{}", runs[0]);
    fake.always(ProviderFault::Unauthorized);
    // A command that fails after it has printed the key on both streams.
    world.write("fail.sh", "cat \"$1\"\ncat \"$1\" >&2\nexit 1\n");
    world.write("fail.toml", &lab("fail.sh"));
    for file in ["lab.toml", "fail.toml"] {
        let test = ["key", "test", "lab", "-vvv", "--config", file, "--model", "lab/m"];
        let failed = world.run(&test);
        assert_eq!(failed.code, Some(4), "{failed}");
        runs.push(failed);
        runs.push(world.run(&["key", "list", "--json", "--config", file]));
        runs.push(world.run(&["config", "show", "--config", file]));
        runs.push(world.run(&["models", "--json", "--config", file]));
    }
    runs.push(world.run_with_input(&["key", "set", "openai", "-vvv"], PLANTED.as_bytes()));
    runs.push(world.run(&["key", "list"]));

    // The file in which `key set` stores the key is its only place.
    let keys_file = world.root().join("home/.config/moothall/keys.toml");
    assert!(fs_err::read_to_string(&keys_file).unwrap().contains(PLANTED));
    assert_eq!(leaks(&runs, world.root()), [keys_file.display().to_string()]);
    assert!(world.path("receipt").exists() && world.path("events.ndjson").exists());
    let environment = world.read("environment");
    assert!(environment.contains("HOME=") && !environment.contains("GROQ_API_KEY"));
    assert!(world.read("parent").contains("key test lab -vvv"), "{}", world.read("parent"));
}

#[test]
fn search_for_leaks_finds_them() {
    let world = World::new();
    world.write("notes", &format!("before {BEGINNING} after"));
    let ran = world.run(&["ask", "--model", "demo", "--base-url", KEY, "--json", "hello"]);
    let echo = world.run(&["ask", "--model", KEY, "hello"]);
    let found = leaks(&[ran, echo], world.root());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("stderr of $ moothall ask --model sk-"), "{found:?}");
    assert!(found[1].ends_with("work/notes"), "{found:?}");
}

#[test]
fn a_misplaced_api_key_is_refused_and_not_quoted() {
    let in_config = |file: &str| {
        let world = World::new();
        world.write("moothall.toml", file);
        world
    };
    let in_dotenv = World::new();
    in_dotenv.write("moothall.toml", "");
    in_dotenv.write(".env", &format!("OPENAI_API_KEY = {KEY} and more\n"));
    let in_keys_file = World::new();
    in_keys_file.write_config("keys.toml", &format!("openai = {KEY}\n"));
    let worlds = [
        in_config(&format!("api_key = \"{KEY}\"\n")),
        in_config(&format!("[provider.openai]\napi_key = \"{KEY}\"\n")),
        in_config(&format!("[provider.openai]\nkey_env = \"{KEY}\"\n")),
        in_config(&format!("[provider.openai]\nbase_url = \"https://me:{KEY}@example.com/v1\"\n")),
        in_config(&format!("[provider.openai]\nbase_url = \"https://example.com/v1?key={KEY}\"\n")),
        in_config(&format!("[provider.openai]\napi_key = {KEY}\n")),
        in_dotenv,
        in_keys_file,
        World::new().with("OPENAI_API_KEY", &format!("{KEY}\u{e4}")),
    ];
    // An unknown variable is a warning, so a command that needs no key continues.
    let warned = ["MOOTHALL_PROVIDER__OPENAI__API_KEY", "MOOTHALL_API_KEY"]
        .map(|variable| World::new().with(variable, KEY));
    let worlds = worlds.into_iter().map(|world| (world, 2));
    for (world, models_code) in worlds.chain(warned.into_iter().map(|world| (world, 0))) {
        for (arguments, code) in [
            (&["ask", "-vvv", "--model", "openai/m", "hello"][..], 2),
            (&["config", "check"], 2),
            (&["config", "check", "--json"], 2),
            (&["models", "--json"], models_code),
        ] {
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(code), "{ran}");
            let empty = World::new();
            assert_eq!(leaks(&[ran], empty.root()), Vec::<String>::new());
        }
    }
}
