//! Measures the cost of drafts: the gate compared with `git diff --no-index`, writing a draft
//! compared with a plain write and flush, and a journal with many drafts. Each edit is a model
//! reply that must be parsed first.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use moothall_core::drafts::{DraftState, Principal};
use moothall_core::edit::read_change;
use moothall_core::gate::{
    CheckResults, FingerprintKey, GateAction, Policy, PolicyDate, scan_secrets,
};
use moothall_core::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftStore, DraftStoreOptions, FileRequirement, GitDiffSelection,
    GitEnvironment, GitRepository, judge_git_diff,
};

use crate::{Size, machine, say};

/// The promises of SPECIFICATION.md.
const GATE_P99: Duration = Duration::from_millis(100);
const WRITE_P99: Duration = Duration::from_millis(20);
const SUBMIT_P95: Duration = Duration::from_secs(5);
/// Maximum growth of the scan time for four times the text.
const SCAN_GROWTH: f64 = 5.0;

// Limits that find regressions; they are not promised.
const MAX_OPEN_TIME: Duration = Duration::from_secs(5);
const MAX_DIFF_TIME: Duration = Duration::from_secs(2);
const SCAN_MIB: Duration = Duration::from_secs(2);
// How long other callers wait while a large submission is judged.
const MAX_WAIT: Duration = Duration::from_secs(3);

const LINES: usize = 2_000;
/// Texts that cause quadratic work in a naive scan.
const HOSTILE: &str = include_str!("../../crates/moothall-gate/src/gate/secrets_hostile.json");

/// The journal is in memory if this file system exists: every record is flushed, but only reading
/// is measured.
const IN_MEMORY: &str = "/dev/shm";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
}

struct Plan {
    edits: usize,
    drafts: usize,
    /// Sizes of the scanned texts in bytes, each four times the previous one.
    texts: &'static [usize],
    /// Number of 1 MiB files that are submitted together.
    files: usize,
    /// Number of changed files in a git diff, each with 200 changed lines.
    diff_files: usize,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let plan = args.size.pick(
        Plan { edits: 10, drafts: 50, texts: &[16 << 10, 64 << 10], files: 2, diff_files: 10 },
        Plan {
            edits: 500,
            drafts: 10_000,
            texts: &[64 << 10, 256 << 10, 1 << 20, 4 << 20],
            files: 64,
            diff_files: 1_000,
        },
    );
    say(&format!("gate benchmark on {}", machine::description()));
    let passed =
        [edits(&plan)?, journal(&plan)?, scans(&plan)?, waiting(&plan)?, git_diffs(&plan)?];
    if !args.size.smoke && passed.contains(&false) {
        bail!("a threshold is not met");
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Times(Vec<Duration>);

impl Times {
    fn of<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let done = work()?;
        self.0.push(start.elapsed());
        Ok(done)
    }

    fn at(&mut self, percent: usize) -> Duration {
        self.0.sort_unstable();
        self.0
            .get(self.0.len() * percent / 100)
            .or_else(|| self.0.last())
            .copied()
            .unwrap_or_default()
    }

    fn shown(&mut self) -> String {
        let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
        format!("p50 {:>5} p99 {:>5} ms", ms(self.at(50)), ms(self.at(99)))
    }
}

/// Measures edits and returns whether the thresholds are met.
fn edits(plan: &Plan) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let (workspace, plain) = (folder.path().join("ws"), folder.path().join("plain"));
    fs_err::create_dir(&workspace)?;
    let file = workspace.join("a.py");
    fs_err::write(&file, source(0))?;
    let store = DraftStore::open(DraftStoreOptions::new(workspace, folder.path().join("state")))?;
    let worker = DraftCaller::new(Principal::worker("bench"));
    let [mut writes, mut gates, mut submits, mut flushed, mut diffs] =
        [(); 5].map(|()| Times::default());
    let (mut unreadable, mut violations) = (0, 0);
    for at in 1..=plan.edits {
        let start = Instant::now();
        let (draft, text) =
            store.request(&worker, &format!("t{at}"), "a.py", FileRequirement::Must)?;
        let texts = [(draft.path.clone(), text.clone())].into();
        let Ok(change) = read_change(&answer(at), &texts) else {
            unreadable += 1;
            continue;
        };
        let new = change.files.get(&draft.path).cloned().flatten().context("another file")?;
        let edit = DraftEdit::Content(new.clone());
        writes.of(|| Ok(store.write(&worker, draft.id, edit, None)?))?;
        let judged = gates.of(|| Ok(store.check(&worker, &[draft.id])?))?;
        submits.0.push(start.elapsed());
        ensure!(judged.verdict.action == GateAction::Allow, "edit {at}: {:?}", judged.verdict);
        // The workspace must not change before the gate has accepted the draft.
        violations += usize::from(fs_err::read_to_string(&file)? != text);
        flushed.of(|| write_and_flush(&plain, new.as_bytes()))?;
        diffs.of(|| git_diff(&file, &plain))?;
        let submitted = store.submit(&worker, &[draft.id], &change.summary)?;
        let applied = submitted.drafts.iter().all(|one| one.state == DraftState::Applied);
        violations += usize::from(!applied || fs_err::read_to_string(&file)? != new);
    }
    let p95 = submits.at(95);
    say(&format!(
        "{} edits of {LINES} lines: {unreadable} unreadable, {violations} violations; read, write and check p95 {:.0} ms (promise: {} s)",
        plan.edits,
        p95.as_secs_f64() * 1e3,
        SUBMIT_P95.as_secs()
    ));
    say(&format!(
        "gate   {}   git diff --no-index    {}   (promise: p99 below {} ms)",
        gates.shown(),
        diffs.shown(),
        GATE_P99.as_millis()
    ));
    say(&format!(
        "write  {}   plain write and flush  {}   (promise: p99 below {} ms)",
        writes.shown(),
        flushed.shown(),
        WRITE_P99.as_millis()
    ));
    Ok(violations == 0
        && unreadable * 100 < plan.edits
        && p95 < SUBMIT_P95
        && gates.at(99) < GATE_P99
        && writes.at(99) < WRITE_P99)
}

/// Measures how long reading a journal with many drafts takes and returns whether the threshold is
/// met.
fn journal(plan: &Plan) -> Result<bool> {
    let in_memory = Path::new(IN_MEMORY);
    let folder = match in_memory.is_dir() {
        true => tempfile::tempdir_in(in_memory)?,
        false => tempfile::tempdir()?,
    };
    let (workspace, state) = (folder.path().join("ws"), folder.path().join("state"));
    fs_err::create_dir(&workspace)?;
    fs_err::write(workspace.join("a.py"), "a = 0\n")?;
    let options = || DraftStoreOptions::new(workspace.clone(), state.clone());
    let store = DraftStore::open(options())?;
    let worker = DraftCaller::new(Principal::worker("bench"));
    for at in 1..=plan.drafts {
        let (draft, _) =
            store.request(&worker, &format!("t{at}"), "a.py", FileRequirement::Must)?;
        store.write(&worker, draft.id, DraftEdit::Content(format!("a = {at}\n")), None)?;
        store.submit(&worker, &[draft.id], "counts")?;
    }
    let records = store.head()?.seq;
    drop(store);
    let start = Instant::now();
    let store = DraftStore::open(options())?;
    let opened = start.elapsed();
    let mut lists = Times::default();
    for _ in 0..20 {
        let listed = lists.of(|| Ok(store.list(&worker)?))?;
        ensure!(listed.len() == plan.drafts, "{} of {} drafts", listed.len(), plan.drafts);
    }
    say(&format!(
        "journal of {} drafts, {records} records: opened in {:.0} ms (limit: {} s), listed in p50 {:.1} ms",
        plan.drafts,
        opened.as_secs_f64() * 1e3,
        MAX_OPEN_TIME.as_secs(),
        lists.at(50).as_secs_f64() * 1e3
    ));
    Ok(opened < MAX_OPEN_TIME)
}

/// Judges a large git diff and returns whether it takes less than the threshold.
fn git_diffs(plan: &Plan) -> Result<bool> {
    const HALF: usize = 100;
    let folder = tempfile::tempdir()?;
    let git = |arguments: &[&str]| {
        let settings = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
        let mut command = Command::new("git");
        command.args(settings).args(arguments).current_dir(folder.path());
        ensure!(command.status()?.success(), "git {arguments:?} failed");
        Ok(())
    };
    git(&["init", "--quiet"])?;
    fs_err::create_dir(folder.path().join("src"))?;
    for version in ["old", "new"] {
        for file in 0..plan.diff_files {
            // Every other line changes.
            let line = |at: usize| match at % 2 {
                0 => format!("    total_{at} = compute({file}, {at})\n"),
                _ => format!("    {version}_{at} = compute({file}, other={at})\n"),
            };
            let text: String = (0..2 * HALF).map(line).collect();
            fs_err::write(folder.path().join(format!("src/file_{file}.py")), text)?;
        }
        git(&["add", "--all"])?;
        git(&["commit", "--quiet", "--message", version])?;
    }
    let environment = GitEnvironment::of(|name| std::env::var_os(name));
    let repository = GitRepository::discover(folder.path(), &environment)?;
    let (base, head) = (repository.commit("HEAD~1")?, repository.commit("HEAD")?);
    let selection = GitDiffSelection::Commits { base, head };
    let today = PolicyDate { year: 2026, month: 1, day: 1 };
    let (policy, looked) = (Policy::built_in(), CheckResults::default());
    let start = Instant::now();
    let decision = judge_git_diff(&repository, &selection, &policy, Some(&looked), today)?;
    let took = start.elapsed();
    let changed = decision.stats.added + decision.stats.removed;
    ensure!(decision.files.len() == plan.diff_files, "{} files", decision.files.len());
    ensure!(changed == plan.diff_files * 2 * HALF, "{changed} changed lines");
    say(&format!(
        "git diff of {} files and {changed} changed lines: judged in {:.2} s (limit: {} s)",
        plan.diff_files,
        took.as_secs_f64(),
        MAX_DIFF_TIME.as_secs()
    ));
    Ok(took < MAX_DIFF_TIME)
}

/// A source file with one changed line.
fn source(changed: usize) -> String {
    let line = |at: usize| match at == changed % LINES {
        true => format!("    total_{at} = compute({at}, {changed})\n"),
        false => format!("    value_{at} = compute({at}, other={})\n", at * 7),
    };
    (0..LINES).map(line).collect()
}

/// A typical model reply: prose and a block that names its file.
fn answer(at: usize) -> ModelReply {
    ModelReply {
        fallback: None,
        text: format!("Changes a line.\n\n```python a.py\n{}```\n", source(at)),
        stop: StopReason::End,
        model: "script".to_owned(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    }
}

fn write_and_flush(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = fs_err::File::create(path)?;
    std::io::Write::write_all(&mut file, bytes)?;
    Ok(file.sync_all()?)
}

fn git_diff(old: &Path, new: &Path) -> Result<()> {
    let git = ["diff", "--no-index", "--quiet"];
    let status = Command::new("git").args(git).args([old, new]).status()?;
    // Exit code 1 means that the files differ.
    ensure!(matches!(status.code(), Some(0 | 1)), "git diff failed");
    Ok(())
}

/// Measures the credential scan on hostile texts and returns whether it is linear.
fn scans(plan: &Plan) -> Result<bool> {
    let pieces: Vec<String> = serde_json::from_str(HOSTILE)?;
    let key = FingerprintKey::new([1; 32]);
    let (mut growth, mut slowest) = ((0.0_f64, String::new()), Duration::ZERO);
    for piece in &pieces {
        let mut before: Option<Duration> = None;
        for bytes in plan.texts {
            let text = piece.repeat(bytes / piece.len());
            // The least of five, in CPU time: other programs can only add to it.
            let mut took = Duration::MAX;
            for _ in 0..5 {
                let start = machine::own_cpu_time()?;
                std::hint::black_box(scan_secrets(text.as_bytes(), &key));
                took = took.min(machine::own_cpu_time()?.saturating_sub(start));
            }
            if let Some(before) = before {
                let grew = took.as_secs_f64() / before.as_secs_f64();
                if grew > growth.0 {
                    growth = (grew, format!("{piece:?} at {} KiB", bytes >> 10));
                }
            }
            if *bytes <= 1 << 20 {
                slowest = slowest.max(took);
            }
            before = Some(took);
        }
    }
    say(&format!(
        "scan of {} hostile texts: at most {:.2} times for 4 times the text ({}; promise: {SCAN_GROWTH}), \
         at most {:.0} ms for 1 MiB (limit: {} s)",
        pieces.len(),
        growth.0,
        growth.1,
        slowest.as_secs_f64() * 1e3,
        SCAN_MIB.as_secs(),
    ));
    Ok(growth.0 <= SCAN_GROWTH && slowest <= SCAN_MIB)
}

/// Measures how long other callers wait while a large submission is judged, and returns whether the
/// threshold is met.
fn waiting(plan: &Plan) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("ws");
    fs_err::create_dir_all(&workspace)?;
    let policy = folder.path().join("policy.toml");
    fs_err::write(
        &policy,
        format!(
            "version = 1\n[limits]\nmax_files_per_changeset = {0}\nmax_open_drafts_per_task = {0}\n",
            plan.files
        ),
    )?;
    let open = || {
        let mut options = DraftStoreOptions::new(workspace.clone(), folder.path().join("state"));
        options.organisation_policy = Some(policy.clone());
        DraftStore::open(options)
    };
    let (store, other) = (open()?, open()?);
    let worker = DraftCaller::new(Principal::worker("bench"));
    let person = DraftCaller::new(Principal::human("person"));
    let text = "ghp_ password: \\\" eyJ.\n".repeat((1 << 20) / 24);
    let mut ids = Vec::new();
    for at in 0..plan.files {
        let id = store.request(&worker, "t", &format!("{at}.txt"), FileRequirement::MayNot)?.0.id;
        store.write(&worker, id, DraftEdit::Content(text.clone()), None)?;
        ids.push(id);
    }
    let mut reads = Times::default();
    let start = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let submitting = scope.spawn(|| store.submit(&worker, &ids, "large"));
        while !submitting.is_finished() {
            reads.of(|| Ok(other.list(&person)?))?;
            std::thread::sleep(Duration::from_millis(20));
        }
        submitting.join().map_err(|_| anyhow::anyhow!("the submission panicked"))??;
        Ok(())
    })?;
    let took = start.elapsed();
    let longest = reads.at(100);
    say(&format!(
        "{} MiB submitted in {:.1} s: {} looks of another store meanwhile, p50 {:.1} ms, longest {:.0} ms (limit: {} s)",
        plan.files,
        took.as_secs_f64(),
        reads.0.len(),
        reads.at(50).as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
        MAX_WAIT.as_secs(),
    ));
    Ok(longest <= MAX_WAIT)
}
