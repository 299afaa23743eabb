//! Bare QEMU doing the same work: no jail, no records, no async runtime, and a plain socket to the
//! agent. The command lines are copied from our own QEMU processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use command_fds::{CommandFdExt as _, FdMapping};
use moothall_core::guest::{
    ExitCause, FrameReader, GuestFrame, GuestMessage, GuestRunRequest, GuestStream, HostMessage,
    Place, ProgramExit, write_data, write_message,
};
use moothall_core::sandbox::SandboxLimits;
use moothall_sandbox::image::init_archive;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use serde_json::{Value, json};

use super::setup::{PRINTED, PROGRAM, World, argv, labels, spec};

/// Longer than any step takes; ends a measurement that hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The command lines and files for bare QEMU.
pub(crate) struct BareMachine {
    boot: Vec<String>,
    clone: Vec<String>,
    ram_bytes: u64,
    kernel: PathBuf,
    initramfs: PathBuf,
    root: PathBuf,
    /// One of our templates, kept in memory like our own.
    template_ram: OwnedFd,
    template_state: PathBuf,
}

/// Time until the agent answered, and until the program's result arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) answer: Duration,
    pub(crate) result: Duration,
}

impl BareMachine {
    /// Copies the command lines of our own machines and the template that they are cloned from.
    pub(crate) async fn like(world: &World) -> Result<Self> {
        let started = SystemTime::now();
        let boot = boot_command_line(world).await?;
        world.microvm.prepare(&spec()).await?;
        let sandbox = world.cloned().start(&spec(), &labels()).await?;
        let cleanup = world.record(sandbox.end.name())?.leaves;
        let clone = super::command_line(cleanup.processes.first().context("no process")?.pid)?;
        sandbox.end.finish().await;

        // Uses the most recently used template.
        let mut templates = Vec::new();
        for entry in fs_err::read_dir(world.cache.join("templates"))? {
            let label = entry?.path().join("label.json");
            if let Ok(used) = fs_err::metadata(&label).and_then(|label| label.modified()) {
                templates.push((used, label));
            }
        }
        let (used, label) = templates.into_iter().max().context("there is no template")?;
        if used < started {
            bail!("no template was used just now");
        }
        let template = label.parent().context("a template has a folder")?;
        let (template_ram, ram_bytes) = in_memory(&template.join("ram"))?;

        let initramfs = world.folder.path().join("initramfs");
        let mut parts = fs_err::read(&world.image.modules)?;
        parts.extend(init_archive(&world.guest)?);
        fs_err::write(&initramfs, parts)?;
        Ok(Self {
            boot,
            clone,
            ram_bytes,
            kernel: world.image.vmlinuz.clone(),
            initramfs,
            root: world.image.rootfs.clone().context("the image has no root file system")?,
            template_ram,
            template_state: template.join("state"),
        })
    }

    /// Boots the kernel and waits for the result.
    pub(crate) fn boot(&self) -> Result<Taken> {
        let started = Instant::now();
        let (mut agent, agent_end) = Agent::pair()?;
        let (_monitor, monitor_end) = UnixStream::pair()?;
        let files = vec![
            (file_number(&self.boot, "id=agent,fd=")?, agent_end.into()),
            (file_number(&self.boot, "id=qmp,fd=")?, monitor_end.into()),
            (file_number(&self.boot, "mem-path=/proc/self/fd/")?, memory(self.ram_bytes)?),
            (file_number(&self.boot, "file=/dev/fdset/")?, open(&self.root)?),
            (word_number(&self.boot, "-kernel")?, open(&self.kernel)?),
            (word_number(&self.boot, "-initrd")?, open(&self.initramfs)?),
        ];
        let _machine = Machine::start(&self.boot, files)?;
        match agent.read_frame()? {
            GuestFrame::Message(GuestMessage::Ready { .. }) => {}
            other => bail!("the agent said {other:?}"),
        }
        let answer = started.elapsed();
        agent.run()?;
        Ok(Taken { answer, result: started.elapsed() })
    }

    /// Clones a template and waits for the result.
    pub(crate) fn clone_template(&self) -> Result<Taken> {
        let started = Instant::now();
        let (mut agent, agent_end) = Agent::pair()?;
        let (monitor, monitor_end) = UnixStream::pair()?;
        let root = file_number(&self.clone, "file=/dev/fdset/")?;
        let state = root + 1;
        let files = vec![
            (file_number(&self.clone, "id=agent,fd=")?, agent_end.into()),
            (file_number(&self.clone, "id=qmp,fd=")?, monitor_end.into()),
            (file_number(&self.clone, "mem-path=/proc/self/fd/")?, self.template_ram.try_clone()?),
            (root, open(&self.root)?),
            (state, open(&self.template_state)?),
        ];
        let _machine = Machine::start(&self.clone, files)?;
        let mut monitor = Monitor::greet(monitor)?;
        let capabilities = ["x-ignore-shared", "events"]
            .map(|capability| json!({ "capability": capability, "state": true }));
        monitor.execute("qmp_capabilities", json!({}))?;
        monitor.execute("migrate-set-capabilities", json!({ "capabilities": capabilities }))?;
        monitor.execute("migrate-incoming", json!({ "uri": format!("fd:{state}") }))?;
        while !monitor.migrated {
            monitor.line()?;
        }
        monitor.execute("cont", json!({}))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let unix_ms = u64::try_from(now.as_millis())?;
        agent.say(&HostMessage::Reseed { seed: "5a".repeat(32), unix_ms })?;
        agent.done()?;
        let answer = started.elapsed();
        agent.run()?;
        Ok(Taken { answer, result: started.elapsed() })
    }
}

/// The command line of a booting QEMU, which is read without waiting for the boot.
async fn boot_command_line(world: &World) -> Result<Vec<String>> {
    let (spec, labels) = (spec(), labels());
    let find_qemu = async {
        loop {
            for pid in children()? {
                let arguments = super::command_line(pid).unwrap_or_default();
                // The jail process has the same arguments after its own.
                let is_qemu =
                    arguments.first().is_some_and(|argument| argument.contains("qemu-system"));
                if is_qemu && arguments.iter().any(|argument| argument == "-kernel") {
                    return Ok(arguments);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        found = find_qemu => found,
        booted = world.microvm.start_cold(&spec, &labels) => {
            bail!("nobody saw QEMU: {:?}", booted.map(|sandbox| sandbox.end));
        }
    }
}

/// The child processes of this process.
fn children() -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for task in fs_err::read_dir("/proc/self/task")? {
        let children = fs_err::read_to_string(task?.path().join("children")).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(found)
}

/// A QEMU process, which is killed on drop.
struct Machine(Child);

impl Machine {
    fn start(command_line: &[String], files: Vec<(i32, OwnedFd)>) -> Result<Self> {
        let (program, args) = command_line.split_first().context("no command")?;
        let mut command = Command::new(program);
        command.args(args).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        let mappings =
            files.into_iter().map(|(child_fd, parent_fd)| FdMapping { parent_fd, child_fd });
        command.fd_mappings(mappings.collect())?;
        Ok(Self(command.spawn()?))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A connection to the agent over a blocking socket.
struct Agent {
    stream: UnixStream,
    reader: FrameReader,
}

impl Agent {
    fn pair() -> Result<(Self, UnixStream)> {
        let (stream, other) = UnixStream::pair()?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok((Self { stream, reader: FrameReader::default() }, other))
    }

    fn say(&mut self, message: &HostMessage) -> Result<()> {
        let mut frame = Vec::new();
        write_message(&mut frame, message)?;
        Ok(self.stream.write_all(&frame)?)
    }

    fn read_frame(&mut self) -> Result<GuestFrame<GuestMessage>> {
        let mut piece = [0; 4096];
        loop {
            if let Some(frame) = self.reader.next()? {
                return Ok(frame);
            }
            match self.stream.read(&mut piece)? {
                0 => bail!("QEMU ended"),
                read => self.reader.push(&piece[..read]),
            }
        }
    }

    fn done(&mut self) -> Result<()> {
        match self.read_frame()? {
            GuestFrame::Message(GuestMessage::Done) => Ok(()),
            other => bail!("the agent said {other:?}"),
        }
    }

    fn run(&mut self) -> Result<()> {
        let mut frames = Vec::new();
        let put = HostMessage::Put { place: Place::Workspace, path: "main.py".parse()? };
        write_message(&mut frames, &put)?;
        write_data(&mut frames, GuestStream::File, PROGRAM.as_bytes());
        write_message(&mut frames, &HostMessage::End)?;
        self.stream.write_all(&frames)?;
        self.done()?;
        let (env, limits) = (BTreeMap::new(), SandboxLimits::default());
        let mut frames = Vec::new();
        write_message(
            &mut frames,
            &HostMessage::Run(GuestRunRequest { argv: argv(), env, limits }),
        )?;
        write_message(&mut frames, &HostMessage::End)?;
        self.stream.write_all(&frames)?;
        let mut printed = Vec::new();
        loop {
            match self.read_frame()? {
                GuestFrame::Data(GuestStream::Stdout, bytes) => printed.extend(bytes),
                GuestFrame::Message(GuestMessage::Ended(ProgramExit {
                    way: ExitCause::Exited(0),
                    ..
                })) if printed == PRINTED.as_bytes() => {
                    return Ok(());
                }
                other => bail!("the agent said {other:?} after {printed:?}"),
            }
        }
    }
}

/// A minimal client for QMP, QEMU's machine protocol.
struct Monitor {
    reader: BufReader<UnixStream>,
    migrated: bool,
}

impl Monitor {
    fn greet(stream: UnixStream) -> Result<Self> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut monitor = Self { reader: BufReader::new(stream), migrated: false };
        monitor.line()?;
        Ok(monitor)
    }

    fn execute(&mut self, command: &str, arguments: Value) -> Result<()> {
        let message = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        self.reader.get_mut().write_all(message.as_bytes())?;
        loop {
            let line = self.line()?;
            if let Some(problem) = line.get("error") {
                bail!("{command}: {problem}");
            }
            if line.get("return").is_some() {
                return Ok(());
            }
        }
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            bail!("QEMU ended");
        }
        let line: Value = serde_json::from_str(&line)?;
        if line["event"] == "MIGRATION" {
            match line["data"]["status"].as_str() {
                Some("completed") => self.migrated = true,
                Some("failed") => bail!("the template does not load"),
                _ => {}
            }
        }
        Ok(line)
    }
}

fn memory(bytes: u64) -> Result<OwnedFd> {
    let file = memfd_create("bare", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, bytes)?;
    Ok(file)
}

/// Copies a file into memory. Blocks of zeros are not written, so they take no space.
fn in_memory(path: &Path) -> Result<(OwnedFd, u64)> {
    let mut from = fs_err::File::open(path)?;
    let bytes = from.metadata()?.len();
    let to = File::from(memory(bytes)?);
    let mut piece = vec![0; 64 << 10];
    let mut at = 0;
    loop {
        let read = from.read(&mut piece)?;
        let piece = piece.get(..read).unwrap_or_default();
        if piece.is_empty() {
            return Ok((to.into(), bytes));
        }
        if piece.iter().any(|byte| *byte != 0) {
            to.write_all_at(piece, at)?;
        }
        at += u64::try_from(read)?;
    }
}

fn open(path: &Path) -> Result<OwnedFd> {
    Ok(fs_err::File::open(path)?.into_parts().0.into())
}

/// The file descriptor number that follows a text in one of the arguments.
fn file_number(command_line: &[String], before: &str) -> Result<i32> {
    let found = command_line.iter().find_map(|word| word.split_once(before));
    let rest = found.with_context(|| format!("QEMU has no `{before}`"))?.1;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().with_context(|| format!("QEMU has no file behind `{before}`"))
}

/// The file descriptor number in the value of an option.
fn word_number(command_line: &[String], option: &str) -> Result<i32> {
    let at = command_line.iter().position(|word| word == option);
    let value = at.and_then(|at| command_line.get(at + 1..=at + 1));
    file_number(value.with_context(|| format!("QEMU has no {option}"))?, "/proc/self/fd/")
}
