//! A bare container runtime doing the same work: one command and the same bundle, with the program
//! itself instead of the agent.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use moothall_sandbox::{EngineName, SandboxEngine};
use serde_json::{Value, json};

use super::setup::{PRINTED, PROGRAM, World, labels, spec};

/// A bundle, and the command that runs it.
pub(crate) struct BareContainer {
    command_line: Vec<String>,
    bundle: PathBuf,
    config: Value,
    runs: u32,
}

impl BareContainer {
    /// Copies the bundle and the command line of one of our sandboxes. For runc without a user
    /// namespace, whose cost counts as ours.
    pub(crate) async fn like(engine: &Arc<dyn SandboxEngine>, world: &World) -> Result<Self> {
        let engine = match engine.name() {
            EngineName::Runc => &world.plain_runc,
            _ => engine,
        };
        let sandbox = engine.start(&spec(), &labels()).await?;
        let cleanup = world.record(sandbox.end.name())?.leaves;
        let ours = cleanup.folders.first().context("it has no bundle")?;
        let config: Value = serde_json::from_slice(&fs_err::read(ours.join("config.json"))?)?;
        let pid = cleanup.processes.first().context("it has no process")?.pid;
        let command_line = super::command_line(pid)?;
        sandbox.end.finish().await;

        let bundle = world.folder.path().join(format!("bare-{}", engine.name()));
        fs_err::create_dir_all(bundle.join("state"))?;
        let mut bare = Self { command_line, bundle, config, runs: 0 };
        bare.adapt()?;
        Ok(bare)
    }

    fn adapt(&mut self) -> Result<()> {
        // Keeping the container is needed only if it is inspected afterwards.
        self.command_line.retain(|word| word != "--keep");
        let bundle = self.bundle.display().to_string();
        for (option, value) in [("--root", format!("{bundle}/state")), ("--bundle", bundle)] {
            let at = self.command_line.iter().position(|word| word == option);
            let at = at.with_context(|| format!("the command has no {option}"))?;
            *self.command_line.get_mut(at + 1).context("the command is cut off")? = value;
        }
        self.command_line.pop();
        let process = &mut self.config["process"];
        process["args"] = json!(["python3", "-c", PROGRAM]);
        process["user"] = json!({ "uid": 1000, "gid": 1000 });
        process["cwd"] = json!("/workspace");
        process["capabilities"] = json!({});
        Ok(())
    }

    /// Runs one container, including its creation and removal.
    pub(crate) fn run(&mut self) -> Result<Duration> {
        self.runs += 1;
        let id = format!("mhbare{}-{}", std::process::id(), self.runs);
        self.config["linux"]["cgroupsPath"] = json!(format!("/moothall/{id}"));
        let (program, args) = self.command_line.split_first().context("no command")?;
        let started = Instant::now();
        fs_err::write(self.bundle.join("config.json"), serde_json::to_vec(&self.config)?)?;
        let output = Command::new(program)
            .args(args)
            .arg(&id)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .output()?;
        let elapsed = started.elapsed();
        if !output.status.success() || output.stdout != PRINTED.as_bytes() {
            bail!("bare {program}: {output:?}");
        }
        Ok(elapsed)
    }
}
