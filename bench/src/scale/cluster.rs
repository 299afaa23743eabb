//! The servers and workers of the benchmark.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Client;
use serde_json::{Value, json};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::types::Uuid;
use tempfile::TempDir;

use crate::servers::{Postgres, Restate, Running, free_ports, start};
use crate::{machine, sandbox, store};

/// Workers that share the runs.
const WORKERS: usize = 2;

/// Delay of each answer of the demo model, in seconds.
const DEMO_DELAY_SECONDS: &str = "0.05";

/// Number of concurrent requests to start runs.
const CONCURRENT_STARTS: usize = 8;

pub(crate) struct World {
    // Declared in this order, so programs are dropped before their servers, and these before their
    // directories.
    server: Running,
    workers: Vec<Running>,
    pub(crate) restate: Restate,
    postgres: Postgres,
    pool: PgPool,
    client: Client,
    base: String,
    folder: TempDir,
}

impl World {
    /// Starts everything, with these settings for the workers.
    pub(crate) async fn start(program: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let postgres = Postgres::start()?;
        let restate = Restate::start().await?;
        let folder = tempfile::tempdir()?;
        let data = folder.path().join(".local/share/moothall");
        fs_err::create_dir_all(&data)?;
        if let Ok(images) = sandbox::images() {
            fs_err::os::unix::fs::symlink(images, data.join("images"))?;
        }
        let run = |name: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .env("HOME", folder.path())
                .env("MOOTHALL_DATABASE_URL", &postgres.address)
                .envs(settings.iter().copied());
            start(&mut command, &folder.path().join(format!("{name}.log")))
        };
        let [port] = free_ports()?;
        let listen = format!("127.0.0.1:{port}");
        let (ingress, admin) = (restate.ingress.as_str(), restate.admin.as_str());
        let mut workers = Vec::new();
        for number in 1..=WORKERS {
            let arguments = ["worker", "--listen", &listen, "--register", admin];
            let arguments = [&arguments[..], &["--pace", DEMO_DELAY_SECONDS]].concat();
            workers.push(run(&format!("worker-{number}"), &arguments)?.0);
        }
        let engine = format!("restate={ingress}");
        let arguments = ["serve", "--auth", "none", "--addr", "127.0.0.1:0", "--model", "demo"];
        let (server, base) = run("serve", &[&arguments[..], &["--runner", &engine]].concat())?;
        let options: PgConnectOptions = postgres.address.parse()?;
        let options = options.options([("search_path", "moothall")]);
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
        let client = Client::builder().no_proxy().build()?;
        Ok(Self { server, workers, restate, postgres, pool, client, base, folder })
    }

    /// Starts this many runs.
    pub(crate) async fn consult(&self, runs: usize, more: &Value) -> Result<Vec<Uuid>> {
        let mut body =
            json!({"workflow": "consult", "ticker": "HLXI", "verdict": "off", "isolation": "none"});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more.clone()) {
            body.extend(more);
        }
        let mut ids = Vec::new();
        let mut starts = tokio::task::JoinSet::new();
        for _ in 0..runs {
            if starts.len() == CONCURRENT_STARTS
                && let Some(answer) = starts.join_next().await
            {
                ids.push(answer??);
            }
            let request = self.client.post(format!("{}/api/runs", self.base));
            let request = request.header("content-type", "application/json");
            let request = request.body(body.to_string());
            starts.spawn(async move {
                let text = request.send().await?.text().await?;
                let answer: Value = serde_json::from_str(&text).context("the server's answer")?;
                let id = answer["run_id"].as_str().with_context(|| text.clone())?;
                anyhow::Ok(id.parse::<Uuid>()?)
            });
        }
        while let Some(answer) = starts.join_next().await {
            ids.push(answer??);
        }
        Ok(ids)
    }

    /// How many of these runs are in a state.
    pub(crate) async fn in_state(&self, ids: &[Uuid], state: &str) -> Result<usize> {
        let (in_state_count, failed): (i64, i64) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE state = $2), count(*) FILTER (WHERE state = 'failed')
             FROM runs WHERE run_id = ANY ($1)",
        )
        .bind(ids)
        .bind(state)
        .fetch_one(&self.pool)
        .await?;
        ensure!(failed == 0, "{failed} runs failed");
        Ok(usize::try_from(in_state_count)?)
    }

    /// Checks that these runs have the same number of calls and events and no gaps, and returns
    /// both numbers.
    pub(crate) async fn check(&self, ids: &[Uuid]) -> Result<(u64, u64)> {
        let (runs, calls, events, gaps, kinds): (i64, i64, i64, i64, i64) = sqlx::query_as(
            "WITH called AS (
                 SELECT run_id, count(*) AS calls FROM journal
                 WHERE run_id = ANY ($1) AND result LIKE '{\"result\":\"model_replied\"%'
                 GROUP BY run_id
             ), happened AS (
                 SELECT run_id, count(*) AS events, max(seq) AS last FROM events
                 WHERE run_id = ANY ($1) GROUP BY run_id
             )
             SELECT count(*), sum(calls)::bigint, sum(events)::bigint,
                    count(*) FILTER (WHERE events <> last), count(DISTINCT (calls, events))
             FROM called JOIN happened USING (run_id)",
        )
        .bind(ids)
        .fetch_one(&self.pool)
        .await?;
        ensure!(usize::try_from(runs)? == ids.len(), "{runs} of {} runs have calls", ids.len());
        ensure!(gaps == 0, "{gaps} runs have gaps in their events");
        ensure!(kinds == 1, "equal runs have {kinds} different numbers of calls and events");
        Ok((u64::try_from(calls)?, u64::try_from(events)?))
    }

    pub(crate) fn workers_bytes(&self) -> Result<u64> {
        self.workers.iter().map(|worker| machine::resident_bytes(worker.id())).sum()
    }

    /// Number of microVMs of the workers, and their memory.
    pub(crate) fn sandboxes(&self) -> Result<(usize, u64)> {
        let (mut count, mut bytes) = (0, 0);
        for worker in &self.workers {
            for pid in machine::family(worker.id())?.into_iter().skip(1) {
                // A process that has just exited uses no memory.
                let Ok(name) = machine::name(pid) else { continue };
                if name.starts_with("qemu") {
                    count += 1;
                    bytes += machine::proportional_bytes(pid).unwrap_or_default();
                }
            }
        }
        Ok((count, bytes))
    }

    /// CPU time of all processes.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let mut time = self.restate.cpu_time()? + self.postgres.cpu_time()?;
        for program in self.workers.iter().chain([&self.server]) {
            time += machine::cpu_time(program.id())?;
        }
        Ok(time)
    }

    pub(crate) async fn postgres_bytes(&self) -> Result<u64> {
        store::tables_bytes(&self.postgres.address).await
    }

    /// The last log lines of the workers.
    pub(crate) fn worker_logs(&self) -> String {
        let tails = (1..=WORKERS).map(|number| {
            let log = self.folder.path().join(format!("worker-{number}.log"));
            let log = fs_err::read_to_string(log).unwrap_or_default();
            log.lines().last().unwrap_or("nothing").to_owned()
        });
        tails.collect::<Vec<_>>().join(" · ")
    }
}
