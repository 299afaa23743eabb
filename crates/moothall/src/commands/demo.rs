//! `moothall demo`: a guided tour that runs the program's own commands.
//!
//! Each step is a command line that the user could type. It runs as a child process with its own
//! data directory and without the user's settings; only the sandbox step uses the user's images and
//! policy. A step fails if a command ends with another exit code than the tour expects.

mod demo_folder;
mod keyboard;
mod step_process;
mod tour_text;

use std::process::Stdio;
use std::time::Duration;

use moothall_core::text::sanitize;
use moothall_sandbox::ProbedEngine;
use serde_json::Value;

use self::demo_folder::{
    ANSWERS, CHANGED_MEMO, CHANGED_RECEIPT, DemoFolder, EDITED_FILE, MEMO, MEMO_PAGE, PROGRAM_FILE,
    RECEIPT, WORKSPACE,
};
use self::keyboard::{Keyboard, TourKey};
use self::step_process::{StepScope, StopSignals};
use self::tour_text::{changed_number, memo_excerpt, wrap_command};
use super::{runtime, serve};
use crate::args::{DemoArgs, GlobalArgs};
use crate::error::{CliError, CliExit};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW, wrap};
use crate::{config, isolation, logging};

/// Image of the program in the sandbox.
const IMAGE: &str = "python";
/// Limit for testing the sandboxes of this machine.
const SANDBOX_TEST_TIMEOUT: Duration = Duration::from_secs(45);

/// Texts are not wider than this.
const MAX_COLUMNS: usize = 90;

pub(crate) fn run(global: &GlobalArgs, args: &DemoArgs) -> anyhow::Result<CliExit> {
    let folder = DemoFolder::create(args.dir.as_deref(), args.keep)?;
    let runtime = runtime()?;
    let (left, tally) = runtime.block_on(async {
        let mut tour = DemoTour::start(global, args, &folder)?;
        // Boxed because the future is large.
        let left = Box::pin(tour.play()).await;
        Ok::<_, CliError>((left, tour.tally))
    })?;
    drop(runtime);
    let (path, is_kept) = (folder.path().display().to_string(), folder.is_kept());
    drop(folder);
    match left {
        Ok(()) => {}
        Err(StepStop::Quit | StepStop::Skip(_)) => terminal::print("\n")?,
        Err(StepStop::Cancelled) => {
            return Err(CliError::new(CliExit::Cancelled, "demo cancelled").into());
        }
        Err(StepStop::Failed(error)) => return Err(error.into()),
    }
    terminal::print(&tour_text::ending(tally, &path, is_kept, columns()))?;
    Ok(CliExit::Fine)
}

/// The steps that ran and that were skipped.
#[derive(Debug, Default, Clone, Copy)]
struct StepTally {
    done: usize,
    skipped: usize,
}

/// Why a step ended early.
#[derive(Debug)]
enum StepStop {
    /// The tour continues. The reason is empty if the user skipped the step.
    Skip(String),
    Quit,
    Cancelled,
    Failed(CliError),
}

impl From<CliError> for StepStop {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

impl From<std::io::Error> for StepStop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(CliError::failed("cannot write to standard output").with_source(error))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TourStep {
    Consult,
    Memo,
    Check,
    Sandbox,
    Drafts,
    Receipt,
}

impl TourStep {
    const ALL: [Self; 6] =
        [Self::Consult, Self::Memo, Self::Check, Self::Sandbox, Self::Drafts, Self::Receipt];
}

struct DemoTour<'a> {
    global: &'a GlobalArgs,
    folder: &'a DemoFolder,
    size: ConsultSize,
    /// `None` without questions.
    keyboard: Option<Keyboard>,
    stop: StopSignals,
    /// Whether the user agreed to run the current step.
    confirmed: bool,
    tally: StepTally,
}

/// Moves, rounds and delay of the consultation.
#[derive(Debug, Clone, Copy)]
struct ConsultSize {
    moves: &'static str,
    rounds: &'static str,
    pace: Option<&'static str>,
}

/// With fewer than six moves there would be no tiers.
const SMALL: ConsultSize = ConsultSize { moves: "6", rounds: "2", pace: None };
/// Without questions, on a terminal: long enough to be seen.
const BRIEF: ConsultSize = ConsultSize { pace: Some("0.1"), ..SMALL };
const FULL: ConsultSize = ConsultSize { moves: "10", rounds: "4", pace: Some("0.5") };

impl<'a> DemoTour<'a> {
    fn start(
        global: &'a GlobalArgs,
        args: &DemoArgs,
        folder: &'a DemoFolder,
    ) -> Result<Self, CliError> {
        let keyboard = if args.yes { None } else { Keyboard::open() };
        let size = match (&keyboard, terminal::stderr_is_terminal()) {
            _ if args.fast => SMALL,
            (Some(_), _) => FULL,
            (None, true) => BRIEF,
            (None, false) => SMALL,
        };
        let stop = StopSignals::listen()?;
        Ok(Self {
            global,
            folder,
            size,
            keyboard,
            stop,
            confirmed: false,
            tally: StepTally::default(),
        })
    }

    async fn play(&mut self) -> Result<(), StepStop> {
        let path = self.folder.path().display().to_string();
        self.say(&tour_text::introduction(&path, self.folder.is_kept()))?;
        for (number, step) in TourStep::ALL.into_iter().enumerate() {
            let (title, text) = tour_text::step(step);
            let count = TourStep::ALL.len();
            terminal::print(&format!(
                "\n{BOLD}{} of {count}  {title}{BOLD:#}\n",
                number.saturating_add(1)
            ))?;
            self.say(text)?;
            self.confirmed = self.keyboard.is_none();
            match self.play_step(step).await {
                Ok(shown) => {
                    self.tally.done += 1;
                    self.mark(GREEN, "✓", &shown)?;
                }
                Err(StepStop::Skip(why)) => {
                    self.tally.skipped += 1;
                    let shown = match why.as_str() {
                        "" => "skipped".to_owned(),
                        why => format!("skipped: {why}"),
                    };
                    self.mark(YELLOW, "–", &shown)?;
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    async fn play_step(&mut self, step: TourStep) -> Result<String, StepStop> {
        match step {
            TourStep::Consult => self.consult().await,
            TourStep::Memo => self.show_memo().await,
            TourStep::Check => self.check().await,
            TourStep::Sandbox => self.run_program().await,
            TourStep::Drafts => self.edit_file().await,
            TourStep::Receipt => self.verify().await,
        }
    }

    async fn consult(&mut self) -> Result<String, StepStop> {
        let arguments = consult_arguments(self.size);
        self.expect(0, StepScope::Tour, &arguments).await?;
        Ok("a verdict in tiers, and a memo in memo.md".to_owned())
    }

    async fn show_memo(&mut self) -> Result<String, StepStop> {
        self.require_consultation().await?;
        let runs = self.read(&["runs", "--json"]).await?;
        let runs: Value = serde_json::from_str(&runs)
            .map_err(|error| CliError::failed("cannot read the list of runs").with_source(error))?;
        let run = runs["runs"][0]["run_id"].as_str().unwrap_or_default().to_owned();
        let short = run.get(..13).unwrap_or(&run);
        let report = ["report", short, "--format", "html", "--output", MEMO_PAGE];
        self.expect(0, StepScope::Tour, &report).await?;
        let memo = self.folder.read(MEMO)?;
        let excerpt = memo_excerpt(&memo, columns());
        terminal::print(&format!("\n{}\n", sanitize(&excerpt)))?;
        self.offer_browser().await?;
        Ok("numbers cite the filing that they come from".to_owned())
    }

    async fn check(&mut self) -> Result<String, StepStop> {
        self.require_consultation().await?;
        let memo = self.folder.read(MEMO)?;
        let change = changed_number(&memo).ok_or_else(|| {
            CliError::failed("the memo of the demo has no number with a citation")
        })?;
        self.folder.write(CHANGED_MEMO, &change.text)?;
        for (sign, style, line) in [("-", YELLOW, &change.before), ("+", GREEN, &change.after)] {
            let lines = wrap(&sanitize(line), columns().saturating_sub(4));
            for (number, line) in lines.iter().enumerate() {
                let sign = if number == 0 { sign } else { " " };
                terminal::print(&format!("  {style}{sign} {line}{style:#}\n"))?;
            }
        }
        let arguments = ["check", CHANGED_MEMO, "--facts", "HLXI"];
        self.expect(3, StepScope::Tour, &arguments).await?;
        Ok("caught; exit code 3 means that a person must look".to_owned())
    }

    async fn run_program(&mut self) -> Result<String, StepStop> {
        self.show_command(&["exec", PROGRAM_FILE])?;
        self.confirm().await?;
        let global = self.global;
        // Boxed because the future is large.
        let finding = Box::pin(async {
            let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
            logging::start(&loaded.resolved.config.log, global.verbose);
            isolation::usable_sandbox(&loaded, IMAGE).await
        });
        terminal::note(&format!("{DIM}testing sandboxes (slow the first time) …{DIM:#}\n"));
        let found =
            self.unless_stopped(tokio::time::timeout(SANDBOX_TEST_TIMEOUT, finding)).await?;
        let ProbedEngine { report, .. } = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(StepStop::Skip(tour_text::no_sandbox(&error))),
            Err(_) => {
                let why = "the test takes too long on this machine; try `moothall doctor`";
                return Err(StepStop::Skip(why.to_owned()));
            }
        };
        let program = self.folder.file(PROGRAM_FILE);
        let program = program.to_string_lossy();
        self.run_command(0, StepScope::User, &["exec", &program]).await?;
        Ok(tour_text::isolation(report.class))
    }

    async fn edit_file(&mut self) -> Result<String, StepStop> {
        let submit = |answer| {
            [
                "draft",
                "import",
                answer,
                "--task",
                "version-flag",
                "--workspace",
                WORKSPACE,
                "--submit",
            ]
        };
        let before = self.folder.read(EDITED_FILE)?;
        let [bad, good] = ANSWERS;
        self.expect(1, StepScope::Tour, &submit(bad)).await?;
        let is_same = self.folder.read(EDITED_FILE)? == before;
        self.require(is_same, "the rejected edit changed the file")?;
        self.say("The file is unchanged. The agent reads the reasons and tries again.")?;
        self.expect(0, StepScope::Tour, &submit(good)).await?;
        let is_same = self.folder.read(EDITED_FILE)? == before;
        self.require(!is_same, "the accepted edit was not applied")?;
        self.expect(0, StepScope::Tour, &["audit", "verify", "--workspace", WORKSPACE]).await?;
        Ok("the bad edit was stopped, the good one applied, both are in the audit log".to_owned())
    }

    async fn verify(&mut self) -> Result<String, StepStop> {
        self.require_consultation().await?;
        self.expect(0, StepScope::Tour, &["verify", RECEIPT]).await?;
        let receipt = self.folder.read(RECEIPT)?;
        let changed = tour_text::changed_score(&receipt)
            .ok_or_else(|| CliError::failed("the receipt of the demo has no score"))?;
        self.folder.write(CHANGED_RECEIPT, &changed)?;
        self.say("A copy of the receipt with a better score for the first move:")?;
        self.expect(4, StepScope::Tour, &["verify", CHANGED_RECEIPT]).await?;
        Ok("the receipt is valid, and the changed copy was refused".to_owned())
    }

    /// Runs the consultation without output if its step was skipped.
    async fn require_consultation(&mut self) -> Result<(), StepStop> {
        if self.folder.has(MEMO) && self.folder.has(RECEIPT) {
            return Ok(());
        }
        self.confirm().await?;
        self.read(&consult_arguments(SMALL)).await.map(drop)
    }

    /// Shows a command, asks whether to run the step if this is its first command, and runs it.
    async fn expect(
        &mut self,
        code: i32,
        scope: StepScope,
        arguments: &[&str],
    ) -> Result<(), StepStop> {
        self.show_command(arguments)?;
        self.confirm().await?;
        self.run_command(code, scope, arguments).await
    }

    async fn run_command(
        &mut self,
        code: i32,
        scope: StepScope,
        arguments: &[&str],
    ) -> Result<(), StepStop> {
        let command = step_process::command(self.global, self.folder, scope, arguments);
        let mut child = step_process::spawn(command)?;
        let ended = self.unless_stopped(child.wait()).await;
        let status = match ended {
            Ok(status) => status.map_err(|error| {
                CliError::failed("cannot wait for a step of the demo").with_source(error)
            })?,
            Err(stop) => {
                step_process::stop(&mut child, scope).await;
                terminal::end_killed_frame();
                return Err(stop);
            }
        };
        let got = step_process::exit_code(status);
        let shown = arguments.join(" ");
        self.require(
            got == code,
            &format!("`moothall {shown}` ended with exit code {got} instead of {code}"),
        )
    }

    /// Runs a command that is not part of the tour and returns what it prints.
    async fn read(&mut self, arguments: &[&str]) -> Result<String, StepStop> {
        let mut command =
            step_process::command(self.global, self.folder, StepScope::Tour, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = step_process::spawn(command)?;
        let output = self.unless_stopped(child.wait_with_output()).await?.map_err(|error| {
            CliError::failed("cannot wait for a step of the demo").with_source(error)
        })?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or_default();
        self.require(
            output.status.success(),
            &format!("`moothall {}` failed: {last}", arguments.join(" ")),
        )?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Waits for a future until it is done, or the user stops the step or the tour.
    async fn unless_stopped<T>(&mut self, future: impl Future<Output = T>) -> Result<T, StepStop> {
        let mut future = std::pin::pin!(future);
        loop {
            let key = async {
                match &mut self.keyboard {
                    Some(keyboard) => keyboard.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                done = &mut future => return Ok(done),
                () = self.stop.recv() => return Err(StepStop::Cancelled),
                key = key => match key {
                    Some(TourKey::Skip) => return Err(StepStop::Skip(String::new())),
                    Some(TourKey::Quit) => return Err(StepStop::Quit),
                    Some(_) => {}
                    None => self.keyboard = None,
                },
            }
        }
    }

    /// Asks once per step whether to run it.
    async fn confirm(&mut self) -> Result<(), StepStop> {
        if self.confirmed {
            return Ok(());
        }
        self.confirmed = true;
        self.ask_key("Enter runs it, s skips it, q quits", |key| key == TourKey::Run)
            .await
            .map(drop)
    }

    async fn offer_browser(&mut self) -> Result<(), StepStop> {
        if self.keyboard.is_none() {
            return Ok(());
        }
        let is_answer = |key| matches!(key, TourKey::Run | TourKey::Open);
        let key = self.ask_key("o opens it in a browser, Enter continues", is_answer).await;
        if matches!(key, Ok(Some(TourKey::Open))) {
            serve::browser::open_file(&self.folder.file(MEMO_PAGE));
        }
        match key {
            Err(StepStop::Skip(_)) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Shows a prompt until a key is an answer; `None` at the end of input.
    async fn ask_key(
        &mut self,
        prompt: &str,
        is_answer: impl Fn(TourKey) -> bool,
    ) -> Result<Option<TourKey>, StepStop> {
        let Some(keyboard) = &mut self.keyboard else { return Ok(None) };
        terminal::show(&format!("{YELLOW}› {prompt} {YELLOW:#}"));
        let key = loop {
            let key = tokio::select! {
                key = keyboard.next() => key,
                () = self.stop.recv() => {
                    terminal::show("\n");
                    return Err(StepStop::Cancelled);
                }
            };
            match key {
                Some(TourKey::Skip) => break Err(StepStop::Skip(String::new())),
                Some(TourKey::Quit) => break Err(StepStop::Quit),
                Some(key) if is_answer(key) => break Ok(Some(key)),
                Some(_) => {}
                None => break Ok(None),
            }
        };
        terminal::clear_line();
        if let Ok(None) = key {
            self.keyboard = None;
        }
        key
    }

    fn require(&self, holds: bool, message: &str) -> Result<(), StepStop> {
        match holds {
            true => Ok(()),
            false => Err(CliError::failed(message)
                .with_hint("run the command above in the same directory with `--dir DIR --keep`")
                .into()),
        }
    }

    fn show_command(&self, arguments: &[&str]) -> Result<(), StepStop> {
        let line = wrap_command(arguments, columns());
        Ok(terminal::print(&format!("{DIM}${DIM:#} {BOLD}{line}{BOLD:#}\n"))?)
    }

    /// Prints an explanation.
    fn say(&self, text: &str) -> Result<(), StepStop> {
        if self.global.quiet {
            return Ok(());
        }
        let lines = wrap(text, columns()).join("\n");
        Ok(terminal::print(&format!("{lines}\n"))?)
    }

    fn mark(&self, style: anstyle::Style, mark: &str, text: &str) -> Result<(), StepStop> {
        let lines = wrap(text, columns().saturating_sub(2)).join("\n  ");
        Ok(terminal::print(&format!("{style}{mark} {lines}{style:#}\n"))?)
    }
}

fn consult_arguments(size: ConsultSize) -> Vec<&'static str> {
    let mut arguments = vec!["consult", "HLXI", "--model", "demo"];
    arguments.extend(["--moves", size.moves, "--rounds", size.rounds, "--isolation", "none"]);
    arguments.extend(size.pace.into_iter().flat_map(|pace| ["--pace", pace]));
    arguments.extend(["--memo", MEMO, "--receipt", RECEIPT]);
    arguments
}

fn columns() -> usize {
    match terminal::stdout_is_terminal() {
        true => terminal::size().0.min(MAX_COLUMNS),
        false => MAX_COLUMNS,
    }
}
