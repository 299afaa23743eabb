//! `cargo xtask samples`: writes `samples/`, which shows results without an installation.
//!
//! Every sample comes from a real run of the debug build, in an empty home directory. A file is
//! written only if it differs in more than the id and date of its run.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::shell;

const FOLDER: &str = "samples";
/// The samples are in every clone, so they stay small.
const MAX_TOTAL_BYTES: u64 = 2_000_000;

const CONSULT: [&str; 16] = [
    "consult",
    "HLXI",
    "--model",
    "demo",
    "--moves",
    "8",
    "--rounds",
    "4",
    "--isolation",
    "none",
    "--memo",
    "memo.md",
    "--receipt",
    "receipt.jsonl",
    "--yes",
    "--quiet",
];

/// The file that the agent of the MCP session edits.
const EDITED: &str = "import sys\n\n\ndef main():\n    print(sys.argv)\n";

#[derive(Debug, clap::Args)]
pub(crate) struct SamplesArgs {
    /// Write nothing; fail if a sample is out of date or cannot be read
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &SamplesArgs) -> Result<()> {
    let root = shell::root()?;
    let programs = shell::build(&root, "dev", &["moothall", "moothall-pdf"])?;
    let scratch = ScratchFolder::create(&shell::target_dir(&root).join("samples"))?;
    let sampler = Sampler { program: programs.join("moothall"), folder: scratch.0.clone() };
    let fresh = sampler.produce(&root)?;
    let mut stale = Vec::new();
    for Sample { name, bytes, mask } in &fresh {
        let path = root.join(FOLDER).join(name);
        let before = fs_err::read(&path).ok();
        if before.is_some_and(|before| mask.is_same(&before, bytes)) {
            continue;
        }
        stale.push(*name);
        if !args.check {
            fs_err::write(&path, bytes)?;
            shell::say(&format!("written   {FOLDER}/{name}"));
        }
    }
    if args.check && !stale.is_empty() {
        bail!("out of date in {FOLDER}: {}\nhint: run `cargo xtask samples`", stale.join(", "));
    }
    sampler.open(&root.join(FOLDER))?;
    shell::say(&format!("{} samples are current and can be read", fresh.len()));
    Ok(())
}

/// Removed when dropped.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn create(path: &Path) -> Result<Self> {
        if path.exists() {
            fs_err::remove_dir_all(path)?;
        }
        fs_err::create_dir_all(path.join("workspace"))?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs_err::remove_dir_all(&self.0);
    }
}

struct Sample {
    name: &'static str,
    bytes: Vec<u8>,
    mask: SampleMask,
}

/// What may differ between two equal samples.
#[derive(Debug, Clone, Copy)]
enum SampleMask {
    /// Nothing.
    Exact,
    /// Ids, hashes of ids, and dates.
    Ids,
    /// The notes at the end of a receipt, which are not part of its hash chain.
    ReceiptNotes,
    /// The bytes: the document is typeset from a text that is compared instead.
    Bytes,
}

impl SampleMask {
    fn is_same(self, before: &[u8], after: &[u8]) -> bool {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Exact => before == after,
            Self::Ids => masked(&text(before)) == masked(&text(after)),
            Self::ReceiptNotes => chained(&text(before)) == chained(&text(after)),
            Self::Bytes => true,
        }
    }
}

/// The text without ids, hashes and the date of the run.
fn masked(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_digit) {
        let (before, from) = rest.split_at(start);
        let (run, after) = from.split_at(from.find(|c| !is_digit(c)).unwrap_or(from.len()));
        result.push_str(before);
        let is_id = run.len() >= 32 && !run.starts_with("--");
        let is_date = result.ends_with("started ") && run.len() == 10;
        result.push_str(if is_id || is_date { "#" } else { run });
        rest = after;
    }
    result + rest
}

/// The records of a receipt, which depend on nothing but the answers.
fn chained(receipt: &str) -> Vec<&str> {
    receipt.lines().filter(|line| line.starts_with("{\"prev\":")).collect()
}

struct Sampler {
    program: PathBuf,
    folder: PathBuf,
}

impl Sampler {
    fn produce(&self, root: &Path) -> Result<Vec<Sample>> {
        self.run(&CONSULT)?;
        let runs: Value = serde_json::from_str(&self.run(&["runs", "--json"])?)?;
        let run = runs["runs"][0]["run_id"].as_str().context("the consultation is not stored")?;
        for (format, name) in [("html", "memo.html"), ("pdf", "memo.pdf")] {
            self.run(&["report", run, "--format", format, "--output", name])?;
        }
        self.run(&["committee", "new", "committee.toml"])?;
        let session = self.mcp_session()?;
        fs_err::write(self.folder.join("mcp-session.md"), session)?;
        let memo_is_same = SampleMask::Ids.is_same(
            &fs_err::read(root.join(FOLDER).join("memo.html")).unwrap_or_default(),
            &fs_err::read(self.folder.join("memo.html"))?,
        ) && root.join(FOLDER).join("memo.pdf").exists();
        let pdf = if memo_is_same { SampleMask::Bytes } else { SampleMask::Exact };
        let samples = [
            ("memo.md", SampleMask::Ids),
            ("memo.html", SampleMask::Ids),
            ("memo.pdf", pdf),
            ("receipt.jsonl", SampleMask::ReceiptNotes),
            ("committee.toml", SampleMask::Exact),
            ("mcp-session.md", SampleMask::Ids),
        ];
        let read = |(name, mask): (&'static str, SampleMask)| {
            Ok(Sample { name, bytes: fs_err::read(self.folder.join(name))?, mask })
        };
        samples.into_iter().map(read).collect()
    }

    /// Checks that every sample can be used.
    fn open(&self, samples: &Path) -> Result<()> {
        let path = |name: &str| samples.join(name).to_string_lossy().into_owned();
        self.run(&["verify", &path("receipt.jsonl")])?;
        self.run(&["check", &path("memo.md"), "--facts", "HLXI"])?;
        self.run(&["committee", "check", &path("committee.toml")])?;
        let policy = self.folder.join("workspace/.moothall");
        fs_err::create_dir_all(&policy)?;
        fs_err::copy(samples.join("policy.toml"), policy.join("policy.toml"))?;
        self.run(&["policy", "check", "--workspace", "workspace"])?;
        let pdf = fs_err::read(samples.join("memo.pdf"))?;
        let tail = pdf.get(pdf.len().saturating_sub(32)..).unwrap_or_default();
        let is_whole = pdf.starts_with(b"%PDF-") && tail.windows(5).any(|part| part == b"%%EOF");
        ensure!(is_whole, "{FOLDER}/memo.pdf is not a PDF file");
        let html = fs_err::read_to_string(samples.join("memo.html"))?;
        ensure!(html.trim_end().ends_with("</html>"), "{FOLDER}/memo.html is incomplete");
        let mut total = 0;
        for entry in fs_err::read_dir(samples)? {
            total += entry?.metadata()?.len();
        }
        ensure!(total < MAX_TOTAL_BYTES, "{FOLDER} has {total} bytes (limit: {MAX_TOTAL_BYTES})");
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.folder).env("USER", "sample").stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let shown = format!("moothall {}", arguments.join(" "));
        let output =
            self.command(arguments).output().with_context(|| format!("cannot start `{shown}`"))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("`{shown}` ended with {}: {}", output.status, stderr.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Plays an agent whose first edit is rejected and whose second one is applied.
    fn mcp_session(&self) -> Result<String> {
        fs_err::write(self.folder.join("workspace/app.py"), EDITED)?;
        let mut command = self.command(&["mcp", "--workspace", "workspace"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot start `moothall mcp`")?;
        let mut session = McpTranscript {
            requests: child.stdin.take().context("no standard input")?,
            replies: BufReader::new(child.stdout.take().context("no standard output")?),
            text: MCP_HEADING.to_owned(),
            count: 0,
        };
        let client = json!({"name": "sample-agent", "version": "1.0"});
        session.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let task = json!({"source_path": "app.py", "task_id": "version-flag"});
        let opened = session.call("draft_request", task)?;
        let draft = opened["structuredContent"]["draft_id"].clone();
        let lazy = "import sys\n\n# ... rest of the code unchanged ...\n";
        session.call("draft_write", json!({"draft_id": draft, "content": lazy}))?;
        let submit = json!({"draft_id": draft, "change_summary": "Add --version"});
        let rejected = session.call("draft_submit", submit.clone())?;
        ensure!(rejected.to_string().contains("content.placeholder"), "not rejected: {rejected}");
        let whole = EDITED.replace(
            "    print(sys.argv)",
            "    if \"--version\" in sys.argv:\n        print(\"1.0\")\n        return\n    print(sys.argv)",
        );
        session.call("draft_write", json!({"draft_id": draft, "content": whole}))?;
        let applied = session.call("draft_submit", submit)?;
        ensure!(applied.to_string().contains("applied"), "not applied: {applied}");
        let McpTranscript { requests, text, .. } = session;
        drop(requests);
        ensure!(child.wait()?.success(), "`moothall mcp` failed");
        Ok(text)
    }
}

const MCP_HEADING: &str = "\
# A session with `moothall mcp`

An agent edits `app.py` over the Model Context Protocol. Its first submission leaves code out and is
rejected with a reason; the second one is applied. These are all messages, in order, as the client
sent and received them on standard input and output.
";

struct McpTranscript<Requests, Replies> {
    requests: Requests,
    replies: Replies,
    text: String,
    count: u64,
}

impl<Requests: std::io::Write, Replies: std::io::BufRead> McpTranscript<Requests, Replies> {
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.count += 1;
        let id = self.count;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        let mut reply: Value = serde_json::from_str(&line)
            .with_context(|| format!("`moothall mcp` replied `{}`", line.trim()))?;
        self.note("Moothall", &reply);
        ensure!(reply["id"] == id, "unexpected message: {reply}");
        Ok(reply["result"].take())
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        writeln!(self.requests, "{message}")?;
        self.requests.flush()?;
        self.note("Agent", message);
        Ok(())
    }

    fn note(&mut self, from: &str, message: &Value) {
        self.text.push_str(&format!("\n**{from}**\n\n```json\n{message:#}\n```\n"));
    }
}

#[cfg(test)]
#[path = "samples_tests.rs"]
mod tests;
