//! Notices by mail, to a real mail server: `tools/mail-check` runs aiosmtpd with TLS, a password and
//! a certificate of a test authority.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::world::{Ran, World};

const USER: &str = "moothall@example.com";
const PASSWORD: &str = "correct-horse";

/// A mail server that is stopped at the end of its test.
struct MailServer {
    process: Child,
    port: u16,
    folder: PathBuf,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl MailServer {
    /// Starts a server. A port of 0 is any; a folder that was used before has its certificate.
    fn start(folder: &Path, port: u16, mode: &str) -> Self {
        fs_err::create_dir_all(folder).unwrap();
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/mail-check/run.sh");
        let cache =
            PathBuf::from(std::env::var("HOME").unwrap()).join(".cache/moothall/mail-check");
        let mut command = Command::new("bash");
        command.arg(tool).arg(folder).arg(cache).arg(port.to_string()).arg(mode);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("READY ").and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("the mail server did not start: {line}"));
        Self { process, port, folder: folder.to_owned() }
    }

    /// The mails in order. Waits for at least this many.
    fn mails(&self, at_least: usize) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let mails: Vec<String> = (0..)
                .map(|number| self.folder.join(format!("{number}.eml")))
                .take_while(|path| path.exists())
                .map(|path| fs_err::read_to_string(path).unwrap())
                .collect();
            if mails.len() >= at_least || Instant::now() > until {
                return mails;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn world(scheme: &str, port: u16, ca: &Path) -> World {
    let world = World::new().with("USER", "ada").with("MAIL_PASSWORD", PASSWORD);
    fs_err::create_dir_all(world.path("ws")).unwrap();
    world.write("ws/Makefile", "all:\n");
    configure(&world, scheme, port, ca, "password_env = \"MAIL_PASSWORD\"\n");
    world
}

fn configure(world: &World, scheme: &str, port: u16, ca: &Path, more: &str) {
    let config = format!(
        "[notify]\nserver_url = \"https://moothall.example.com\"\n\n[notify.target.mail]\n\
         kind = \"email\"\nurl = \"{scheme}://127.0.0.1:{port}\"\nfrom = \"{USER}\"\n\
         to = [\"ada@example.com\", \"bob@example.com\"]\nca_file = \"{}\"\n{more}",
        ca.display()
    );
    world.write_config("moothall.toml", &config);
}

/// Submits a draft that needs review.
fn submit(world: &World, summary: &str) -> Ran {
    let request = ["draft", "request", "Makefile", "--task", "t1", "--json", "--workspace", "ws"];
    let draft = world.run(&request).json()["draft_id"].as_str().unwrap().to_owned();
    let write = ["draft", "write", &draft, "--file", "-", "--workspace", "ws"];
    assert_eq!(world.run_with_input(&write, b"all: swordfish\n").code, Some(0));
    let ran = world.run(&["draft", "submit", &draft, "--summary", summary, "--workspace", "ws"]);
    assert_eq!(ran.code, Some(3), "{ran}");
    ran
}

/// The value of a header.
fn header<'a>(mail: &'a str, name: &str) -> Vec<&'a str> {
    let head = mail.split("\r\n\r\n").next().unwrap();
    let prefix = format!("{name}: ");
    head.split("\r\n").filter_map(|line| line.strip_prefix(&prefix)).collect()
}

#[test]
fn a_draft_is_announced_by_mail_with_tls_and_with_starttls() {
    for (scheme, mode) in [("smtps", "tls"), ("smtp", "starttls")] {
        let folder = tempfile::tempdir().unwrap();
        let server = MailServer::start(folder.path(), 0, mode);
        let world = world(scheme, server.port, &folder.path().join("ca.pem"));
        // A title of a worker cannot add a header or a recipient.
        let ran = submit(&world, "Build\r\nBcc: eve@example.com\r\n\r\nbody");
        assert!(!ran.stderr.contains("warning"), "{ran}");
        let mails = server.mails(1);
        let mail = &mails[0];
        assert_eq!(mails.len(), 1, "{mails:?}");
        assert_eq!(header(mail, "X-Rcpt"), ["ada@example.com,bob@example.com"], "{mail}");
        assert_eq!(header(mail, "From"), [USER], "{mail}");
        assert_eq!(header(mail, "Bcc"), Vec::<&str>::new(), "{mail}");
        let subject = header(mail, "Subject")[0];
        assert!(subject.starts_with("moothall: a draft needs review"), "{mail}");
        let id = header(mail, "Message-ID")[0];
        assert!(id.starts_with("<drf") && id.ends_with(".mail@example.com>"), "{mail}");
        assert!(mail.contains("text/plain") && mail.contains("text/html"), "{mail}");
        assert!(!mail.contains("swordfish") && !mail.contains("eve@example.com"), "{mail}");
    }
}

#[test]
fn a_mail_server_that_is_down_gets_the_mail_later_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let port = {
        let server = MailServer::start(folder.path(), 0, "tls");
        server.port
    };
    let world = world("smtps", port, &folder.path().join("ca.pem"));
    let ran = submit(&world, "Build");
    assert!(ran.stderr.contains("warning: `notify.target.mail` failed: "), "{ran}");
    assert!(ran.stderr.contains("`moothall notify resend` try again"), "{ran}");
    let server = MailServer::start(folder.path(), port, "tls");
    let resent = world.run(&["notify", "resend", "mail"]);
    assert_eq!(resent.stdout, "messages sent: 1, left: 0\n", "{resent}");
    assert_eq!(world.run(&["notify", "resend"]).stdout, "messages sent: 0, left: 0\n");
    assert_eq!(server.mails(1).len(), 1);
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = MailServer::start(folder.path(), 0, "tls");
    drop(MailServer::start(other.path(), 0, "tls"));
    for ca in [other.path().join("ca.pem"), PathBuf::from("/nonexistent.pem")] {
        let world = world("smtps", server.port, &ca);
        let tested = world.run(&["notify", "test", "mail"]);
        assert_eq!(tested.code, Some(4), "{tested}");
        assert!(tested.stderr.contains("`notify.target.mail` failed: "), "{tested}");
        assert!(tested.stderr.contains("hint: "), "{tested}");
    }
    // Without the setting, only public authorities are trusted.
    let world = world("smtps", server.port, &folder.path().join("ca.pem"));
    let without = format!(
        "[notify.target.mail]\nkind = \"email\"\nurl = \"smtps://127.0.0.1:{}\"\n\
         from = \"{USER}\"\nto = [\"ada@example.com\"]\n",
        server.port
    );
    world.write_config("moothall.toml", &without);
    let tested = world.run(&["notify", "test"]);
    assert_eq!(tested.code, Some(4), "{tested}");
    assert!(tested.stderr.contains("notify.target.mail.ca_file"), "{tested}");
    assert_eq!(server.mails(0).len(), 0);
}

#[test]
fn a_mail_server_that_does_not_offer_tls_gets_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, commands) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"220 mail.example.com\r\n");
            for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                let _ = stream.write_all(b"250 mail.example.com\r\n");
                let _ = sender.send(line);
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    drop(MailServer::start(folder.path(), 0, "tls"));
    let tested = world("smtp", port, &folder.path().join("ca.pem")).run(&["notify", "test"]);
    assert_eq!(tested.code, Some(4), "{tested}");
    assert!(tested.stderr.contains("STARTTLS"), "{tested}");
    let commands: Vec<String> = commands.try_iter().collect();
    assert!(!commands.is_empty());
    let is_allowed = |line: &String| line.starts_with("EHLO") || line == "QUIT";
    assert!(commands.iter().all(is_allowed), "{commands:?}");
}

#[test]
fn a_wrong_password_is_explained_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = MailServer::start(folder.path(), 0, "starttls");
    let ca = folder.path().join("ca.pem");
    let world = world("smtp", server.port, &ca).with("MAIL_PASSWORD", "wrong-secret");
    let tested = world.run(&["--verbose", "notify", "test"]);
    assert_eq!(tested.code, Some(4), "{tested}");
    assert!(
        tested.stderr.contains("the mail server rejected the user name or password"),
        "{tested}"
    );
    let hint = "check `notify.target.mail.user_env` and `notify.target.mail.password_env`, or run `moothall key set notify.mail`";
    assert!(tested.stderr.contains(hint), "{tested}");
    assert!(!tested.stderr.contains("wrong-secret"), "{tested}");

    // The key store works as well.
    configure(&world, "smtp", server.port, &ca, "");
    let stored = world.run_with_input(&["key", "set", "notify.mail", "--file"], b"wrong-stored");
    assert_eq!(stored.code, Some(0), "{stored}");
    assert!(stored.stdout.contains("moothall notify test mail"), "{stored}");
    let tested = world.run(&["notify", "test"]);
    assert!(tested.stderr.contains("rejected the user name or password"), "{tested}");
    assert!(!tested.stderr.contains("wrong-stored"), "{tested}");
    let stored =
        world.run_with_input(&["key", "set", "notify.mail", "--file"], PASSWORD.as_bytes());
    assert_eq!(stored.code, Some(0), "{stored}");
    let tested = world.run(&["notify", "test"]);
    assert_eq!(tested.stdout, "sent a test message to mail (the mail server)\n", "{tested}");
    assert_eq!(server.mails(1).len(), 1);
    // Other commands accept the file.
    assert_eq!(world.run(&["key", "list"]).code, Some(0));
    assert_eq!(world.run(&["key", "remove", "notify.mail"]).code, Some(0));
    let unknown = world.run_with_input(&["key", "set", "notify.nobody", "--file"], b"secret");
    assert_eq!(unknown.code, Some(2), "{unknown}");
}
