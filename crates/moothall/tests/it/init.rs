//! `moothall init` on a real terminal.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::fake::Fake;
use crate::world::World;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A simulated user at a terminal.
pub(crate) struct Person {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    pub(crate) child: Child,
}

impl Person {
    /// Starts the program on a new terminal.
    pub(crate) fn start(mut command: Command) -> Self {
        use rustix::pty;
        let main = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&main).unwrap();
        pty::unlockpt(&main).unwrap();
        let name = pty::ptsname(&main, Vec::new()).unwrap();
        let open = || {
            let path = name.to_str().unwrap();
            fs_err::File::options().read(true).write(true).open(path).unwrap().into_file()
        };
        command.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.spawn().unwrap();
        // Dropping the command closes our copies, so the terminal ends with the program.
        drop(command);
        let keyboard = File::from(main);
        let mut reader = keyboard.try_clone().unwrap();
        let (tell, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if tell.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { keyboard, screen, seen: String::new(), child }
    }

    /// Waits until the screen shows this text, then types a line.
    pub(crate) fn answer(&mut self, question: &str, line: &str) {
        while !self.seen.contains(question) {
            let shown = self.screen.recv_timeout(PATIENCE);
            let shown = shown.unwrap_or_else(|_| panic!("no `{question}` in:\n{}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&shown));
        }
        let place = self.seen.find(question).unwrap() + question.len();
        self.seen.drain(..place);
        self.keyboard.write_all(line.as_bytes()).unwrap();
    }

    /// The remaining output and the exit code.
    pub(crate) fn leave(mut self) -> (String, Option<i32>) {
        while let Ok(shown) = self.screen.recv_timeout(PATIENCE) {
            self.seen.push_str(&String::from_utf8_lossy(&shown));
        }
        let code = self.child.wait().unwrap().code();
        (self.seen, code)
    }
}

fn config(world: &World) -> std::path::PathBuf {
    world.root().join("home/.config/moothall/moothall.toml")
}

#[test]
fn pressing_enter_only_leads_from_init_to_a_finished_demo() {
    let world = World::new();
    let mut person = Person::start(world.command(&["init", "--color", "never"]));
    person.answer("provider/name [demo]", "\n");
    person.answer("Email address [none]", "\n");
    person.answer("Write these changes? [Y/n]", "\n");
    person.answer("Run the demo now? [Y/n]", "\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(fs_err::read_to_string(config(&world)).unwrap(), "model = \"demo\"\n");
    let memo = world.root().join("home/.local/share/moothall/demonstration.md");
    assert!(shown.contains(&format!("The memo of the demo: {}", memo.display())));
    assert!(fs_err::read_to_string(memo).unwrap().starts_with("# "));
    let runs = world.run(&["runs", "--json"]).json();
    assert_eq!(runs["runs"][0]["state"], "finished");
}

#[test]
fn init_validates_and_shows_answers_and_keeps_existing_settings() {
    let mut world = World::new();
    world.set("GROQ_API_KEY", "gsk-very-secret");
    let before = "# mine\nmodel = \"demo\"\n\n[budget]\ntokens = 8000 # enough\n";
    world.write_config("moothall.toml", before);
    let arguments = ["init", "--color", "never", "--no-demo", "--no-call"];
    let mut person = Person::start(world.command(&arguments));
    person.answer("key from environment variable GROQ_API_KEY", "");
    person.answer("provider/name [demo]", "nonsense\n");
    person.answer("provider/name [demo]", "3\n");
    person.answer("Provider [anthropic]", "groq\n");
    person.answer("the API key comes from", "");
    person.answer("Email address [none]", "ada\n");
    person.answer("expected an address such as ada@example.com", "");
    person.answer("Email address [none]", "ada@example.com\n");
    person.answer("- model = \"demo\"", "");
    person.answer("Write these changes? [Y/n]", "y\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    let after = "# mine\nmodel = \"groq/openai/gpt-oss-20b\"\n\n[budget]\ntokens = 8000 # enough\n\n\
                 [evidence]\ncontact = \"ada@example.com\"\n";
    assert_eq!(fs_err::read_to_string(config(&world)).unwrap(), after);
    // The same answers change nothing.
    let again = world.run(&["init", "--yes", "--no-demo", "--no-call"]);
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.stderr.contains("moothall.toml is unchanged."), "{again}");
    assert_eq!(fs_err::read_to_string(config(&world)).unwrap(), after);
}

#[test]
fn init_offers_to_store_a_missing_api_key() {
    let world = World::new();
    let arguments = ["init", "--color", "never", "--no-demo", "--no-call"];
    let mut person = Person::start(world.command(&arguments));
    person.answer("provider/name [demo]", "mistral/mistral-small-latest\n");
    person.answer("No API key of mistral yet. Enter it now? [Y/n]", "\n");
    person.answer("API key of mistral (not shown): ", "sk-typed-secret\n");
    person.answer("stored the key of mistral in", "");
    person.answer("Email address [none]", "\n");
    person.answer("Write these changes? [Y/n]", "\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("sk-typed"), "{shown}");
    let keys = world.root().join("home/.config/moothall/keys.toml");
    assert_eq!(fs_err::read_to_string(keys).unwrap(), "mistral = \"sk-typed-secret\"\n");
    let file = fs_err::read_to_string(config(&world)).unwrap();
    assert_eq!(file, "model = \"mistral/mistral-small-latest\"\n");
}

#[test]
fn init_can_configure_a_local_server() {
    let world = World::new();
    let mut person = Person::start(world.command(&["init", "--color", "never", "--no-demo"]));
    person.answer("provider/name [demo]", "2\n");
    // Nothing listens on this port.
    person.answer("Server URL", "http://127.0.0.1:9/v1\n");
    person.answer("the server does not answer yet: ", "");
    person.answer("Model name on this server", "smollm2-135m\n");
    person.answer("Email address [none]", "\n");
    person.answer("Write these changes? [Y/n]", "\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    // The failed call is shown, and the configuration is kept.
    assert!(shown.contains("local/smollm2-135m did not answer (transport:"), "{shown}");
    assert!(shown.contains("moothall models --check local/smollm2-135m"), "{shown}");
    assert_eq!(
        fs_err::read_to_string(config(&world)).unwrap(),
        "model = \"local/smollm2-135m\"\n\n[provider.local]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         price_input = \"0\"\nprice_output = \"0\"\n"
    );
    assert_eq!(world.run(&["config", "check"]).code, Some(0));
}

#[test]
fn init_calls_a_model_on_this_machine_without_asking() {
    let (world, fake) = (World::new(), Fake::saying("ok"));
    let mut person = Person::start(world.command(&["init", "--color", "never", "--no-demo"]));
    person.answer("provider/name [demo]", "2\n");
    person.answer("Server URL", &format!("{}\n", fake.url()));
    person.answer("Model name on this server", "small\n");
    person.answer("Email address [none]", "\n");
    person.answer("Write these changes? [Y/n]", "\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("local/small answered as"), "{shown}");
    assert!(!shown.contains("One short call"), "{shown}");
    assert_eq!(fake.stats().received, 1);
}

/// Lists one model like llama.cpp and refuses everything else.
pub(crate) fn model_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = BufReader::new(connection.unwrap());
            let mut request = String::new();
            while connection.read_line(&mut request).unwrap() > 2 {}
            let (status, body) = match request.split(' ').nth(1) {
                Some("/v1/models") => ("200 OK", r#"{"data":[{"id":"small.gguf"}]}"#),
                Some("/props") => ("200 OK", r#"{"default_generation_settings":{"n_ctx":4096}}"#),
                _ => ("400 Bad Request", r#"{"error":{"message":"only a list"}}"#),
            };
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}");
            let _ = connection.get_mut().write_all(format!("{head}\r\n\r\n{body}").as_bytes());
        }
    });
    address
}

#[test]
fn init_reads_the_models_and_the_window_of_a_local_server() {
    let (world, server) = (World::new(), model_server());
    let mut person = Person::start(world.command(&["init", "--color", "never", "--no-demo"]));
    person.answer("provider/name [demo]", "2\n");
    person.answer("Server URL", &format!("http://{server}/v1\n"));
    person.answer("Model name on this server [small.gguf]", "\n");
    person.answer("small.gguf reads 4096 tokens at a time", "");
    person.answer("Email address [none]", "\n");
    person.answer("Write these changes? [Y/n]", "\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(
        fs_err::read_to_string(config(&world)).unwrap(),
        format!(
            "model = \"local/small.gguf\"\n\n[provider.local]\nbase_url = \"http://{server}/v1\"\n\
             context = 4096\nprice_input = \"0\"\nprice_output = \"0\"\n"
        )
    );
}

#[test]
fn declining_or_ctrl_c_in_init_changes_nothing() {
    let world = World::new();
    world.write_config("moothall.toml", "model = \"ollama/qwen3\"\n");
    let mut person = Person::start(world.command(&["init", "--color", "never", "--no-demo"]));
    person.answer("provider/name [ollama/qwen3]", "1\n");
    person.answer("Email address [none]", "\n");
    person.answer("Write these changes? [Y/n]", "n\n");
    let (shown, code) = person.leave();
    assert!(code == Some(0) && shown.contains("Nothing was written."), "{shown}");

    let mut person = Person::start(world.command(&["init", "--color", "never"]));
    person.answer("provider/name [ollama/qwen3]", "1\n");
    person.answer("Email address [none]", "\n");
    person.answer("Write these changes? [Y/n]", "");
    let process = person.child.id().to_string();
    Command::new("sh").args(["-c", "kill -INT \"$0\"", &process]).status().unwrap();
    let (shown, code) = person.leave();
    assert_eq!(code, Some(130), "{shown}");
    let folder = config(&world).parent().unwrap().to_owned();
    let names: Vec<_> =
        fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["moothall.toml"]);
    assert_eq!(fs_err::read_to_string(config(&world)).unwrap(), "model = \"ollama/qwen3\"\n");
}

#[test]
fn init_without_a_terminal_needs_yes_and_uses_defaults() {
    let world = World::new();
    let refused = world.run(&["init"]);
    insta::assert_snapshot!(refused);
    assert!(!config(&world).exists());
    let ran = world.run(&["init", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(fs_err::read_to_string(config(&world)).unwrap(), "model = \"demo\"\n");
    insta::assert_snapshot!(world.run(&["init", "--help"]));
}

#[test]
fn init_ends_with_one_real_call_and_shows_its_latency_tokens_and_cost() {
    let fake = Fake::saying("ok");
    let url = fake.url();
    let file =
        format!("model = \"openai/gpt-4.1-mini\"\n\n[provider.openai]\nbase_url = \"{url}\"\n");
    let arguments = ["init", "--color", "never", "--no-demo"];
    let world = || {
        let world = World::new().with("OPENAI_API_KEY", "sk-very-secret");
        world.write_config("moothall.toml", &file);
        world
    };
    let question = "One short call to openai/gpt-4.1-mini costs at most $0.0";
    // Declined: nothing is called.
    let declined = world();
    let mut person = Person::start(declined.command(&arguments));
    person.answer("provider/name [openai/gpt-4.1-mini]", "\n");
    person.answer("Email address [none]", "\n");
    person.answer(question, "n\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("moothall models --check openai/gpt-4.1-mini"), "{shown}");
    assert_eq!(fake.stats().received, 0);
    // Accepted.
    let accepted = world();
    let mut person = Person::start(accepted.command(&arguments));
    person.answer("provider/name [openai/gpt-4.1-mini]", "\n");
    person.answer("Email address [none]", "\n");
    person.answer(question, "\n");
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    let is_shown = |text: &str| {
        let line = text.lines().find(|line| line.contains("ok  openai/gpt-4.1-mini answered as "));
        line.is_some_and(|line| line.contains(" tokens, $0.0") && line.trim_end().ends_with(" ms"))
    };
    assert!(is_shown(&shown), "{shown}");
    assert_eq!(fake.stats().received, 1);
    // `--yes` does not ask, `--no-call` does not call.
    let ran = world().run(&["init", "--yes", "--no-demo"]);
    assert!(ran.code == Some(0) && is_shown(&ran.stderr), "{ran}");
    let ran = world().run(&["init", "--yes", "--no-demo", "--no-call"]);
    assert!(ran.code == Some(0) && !is_shown(&ran.stderr), "{ran}");
    assert_eq!(fake.stats().received, 2);
    assert!(!shown.contains("sk-very-secret") && !format!("{ran}").contains("sk-very-secret"));
}

#[test]
fn init_calls_no_model_without_a_key_and_keeps_fallbacks() {
    let world = World::new();
    let file = "model = [\"openai/gpt-5-mini\", \"groq/openai/gpt-oss-20b\"]\n";
    world.write_config("moothall.toml", file);
    let ran = world.run(&["init", "--yes", "--no-demo"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("Skipped: no API key for openai."), "{ran}");
    assert_eq!(fs_err::read_to_string(config(&world)).unwrap(), file);
}
