//! Starts real servers for a benchmark: Restate and PostgreSQL on loopback, through the scripts in
//! `tools/`, and our own programs. Each process ends when its value is dropped.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use moothall_store::now_ms;
use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::machine;

/// Time limit for the start of a server.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A process that is terminated on drop.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SIGTERM and not SIGKILL: a server deletes its own directory.
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// Starts a program and waits for its first line of output.
pub(crate) fn start(command: &mut Command, log: &Path) -> Result<(Running, String)> {
    let log_file = fs_err::File::create(log)?.into_parts().0;
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_file).spawn();
    let mut child = child.with_context(|| format!("{name} cannot be started"))?;
    let printed = child.stdout.take();
    let running = Running(child);
    let mut line = String::new();
    BufReader::new(printed.context("no pipe")?).read_line(&mut line)?;
    if line.is_empty() {
        let output = fs_err::read_to_string(log)?;
        bail!("{name} ended at once: {output}");
    }
    Ok((running, line.trim().to_owned()))
}

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools")
}

/// Unused ports.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    // All are bound until the last one is found, which prevents duplicates.
    let mut listeners = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// `moothall serve`, with the demo model.
#[derive(Debug)]
pub(crate) struct Server {
    process: Running,
    base: String,
    pub(crate) client: Client,
}

impl Server {
    /// Starts the program with an empty environment except for these variables.
    pub(crate) fn start(
        program: &Path,
        folder: &Path,
        demo_delay: &str,
        environment: &[(&str, &Path)],
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--auth", "none", "--addr", "127.0.0.1:0", "--model", "demo"]);
        command.args(["--pace", demo_delay]).current_dir(folder).env_clear().env("HOME", folder);
        command.envs(environment.iter().copied());
        let (process, base) = start(&mut command, &folder.join("server.log"))?;
        // The client requires a crypto provider even though the loopback connection is not
        // encrypted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self { process, base, client: Client::builder().no_proxy().build()? })
    }

    pub(crate) fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// The address of the event stream of a run.
    pub(crate) fn events(&self, run: &str) -> String {
        format!("{}/api/runs/{run}/events", self.base)
    }

    /// Starts a run and returns its id.
    pub(crate) async fn begin(&self, body: Value) -> Result<String> {
        let request = self.client.post(format!("{}/api/runs", self.base));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let text = request.send().await?.text().await?;
        let answer: Value = serde_json::from_str(&text)?;
        Ok(answer["run_id"].as_str().with_context(|| text.clone())?.to_owned())
    }

    /// Waits until a run has ended and returns its events.
    pub(crate) async fn ended(&self, run: &str) -> Result<Vec<Value>> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let answer = self.client.get(format!("{}.json?limit=100", self.events(run))).send();
            let mut page: Value = serde_json::from_str(&answer.await?.text().await?)?;
            if page["terminal"] == true {
                return Ok(serde_json::from_value(page["events"].take())?);
            }
            ensure!(Instant::now() < deadline, "the run did not end: {page}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        machine::resident_bytes(self.process.id())
    }
}

/// Milliseconds since midnight, which is enough for a short run: viewers run in the same minute.
pub(crate) fn committed_ms(at: &str) -> Result<u64> {
    let time = at.get(11..23).context("an event without a time")?;
    let number = |range: std::ops::Range<usize>| -> Result<u64> {
        Ok(time.get(range).context("an odd time")?.parse()?)
    };
    let seconds = number(0..2)? * 3600 + number(3..5)? * 60 + number(6..8)?;
    let day = now_ms() / 86_400_000 * 86_400_000;
    Ok(day + seconds * 1000 + number(9..12)?)
}

/// A separate PostgreSQL server, which deletes its data at the end.
#[derive(Debug)]
pub(crate) struct Postgres {
    process: Running,
    /// Contains the password; never printed.
    pub(crate) address: String,
    _folder: TempDir,
}

impl Postgres {
    pub(crate) fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(tools().join("postgres/up.sh"));
        // Two hundred concurrent runs are more than the checkpoints of a small server are made for.
        command.args(["max_connections=200", "max_wal_size=4GB", "shared_buffers=512MB"]);
        let (process, line) = start(&mut command, &folder.path().join("log"))?;
        let mut words = line.split(' ');
        ensure!(words.next() == Some("READY"), "PostgreSQL did not start");
        let address = words.next().context("PostgreSQL does not say where it is")?.to_owned();
        Ok(Self { process, address, _folder: folder })
    }

    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        machine::family_cpu_time(self.process.id())
    }
}

/// A separate Restate server.
#[derive(Debug)]
pub(crate) struct Restate {
    process: Running,
    pub(crate) ingress: String,
    pub(crate) admin: String,
    client: Client,
    folder: TempDir,
}

impl Restate {
    pub(crate) async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let [node, ingress, admin] = free_ports()?;
        let log = fs_err::File::create(folder.path().join("log"))?.into_parts().0;
        let mut command = Command::new(tools().join("restate/up.sh"));
        command.arg(folder.path()).stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
        for (name, port) in [("NODE_PORT", node), ("INGRESS_PORT", ingress), ("ADMIN_PORT", admin)]
        {
            command.env(name, port.to_string());
        }
        let process = Running(command.spawn().context("tools/restate/up.sh cannot be started")?);
        // The client requires a crypto provider even though the loopback connection is not
        // encrypted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().tcp_nodelay(true).build()?;
        let at = |port| format!("http://127.0.0.1:{port}");
        let mut restate = Self { process, ingress: at(ingress), admin: at(admin), client, folder };
        restate.until_healthy().await?;
        Ok(restate)
    }

    async fn until_healthy(&mut self) -> Result<()> {
        let began = Instant::now();
        let addresses =
            [format!("{}/restate/health", self.ingress), format!("{}/health", self.admin)];
        for address in addresses {
            while !self
                .client
                .get(&address)
                .send()
                .await
                .is_ok_and(|response| response.status().is_success())
            {
                ensure!(began.elapsed() < START_TIMEOUT, "Restate does not come up");
                ensure!(!self.process.has_ended()?, "Restate ended at once");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Registers a worker.
    pub(crate) async fn register(&self, url: &str) -> Result<()> {
        let body = json!({ "uri": url }).to_string();
        let request = self.client.post(format!("{}/deployments", self.admin)).body(body);
        let answer = request.header("content-type", "application/json").send().await?;
        ensure!(answer.status().is_success(), "Restate does not take the workers at {url}");
        Ok(())
    }

    /// Invokes a handler and waits for its end.
    pub(crate) fn invoke(
        &self,
        path: &str,
        body: Option<String>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let mut request = self.client.post(format!("{}/{path}", self.ingress));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        async move {
            let answer = request.send().await?;
            let status = answer.status();
            ensure!(status.is_success(), "Restate answers {status}: {}", answer.text().await?);
            Ok(())
        }
    }

    /// The first number in the result of a query on Restate's own tables.
    pub(crate) async fn count(&self, query: &str) -> Result<u64> {
        let body = json!({ "query": query }).to_string();
        let request = self.client.post(format!("{}/query", self.admin)).body(body);
        let request = request.header("content-type", "application/json");
        let answer = request.header("accept", "application/json").send().await?.text().await?;
        let answer: Value = serde_json::from_str(&answer)?;
        let row = answer.pointer("/rows/0").and_then(|row| row.as_object());
        let number = row.and_then(|row| row.values().next()).and_then(|value| value.as_u64());
        number.with_context(|| format!("Restate answered a query with {answer}"))
    }

    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        machine::cpu_time(self.process.id())
    }

    /// Size of the stored data in bytes.
    pub(crate) fn kept_bytes(&self) -> Result<u64> {
        machine::folder_bytes(self.folder.path())
    }
}
