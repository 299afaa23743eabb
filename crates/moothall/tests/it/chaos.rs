//! Kills the process of consultations with SIGKILL at random moments. They must end as if
//! uninterrupted: no completed call is repeated, no event is lost or duplicated, and the receipt is
//! the same except for times and ids. `cargo xtask chaos` runs it longer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use moothall_core::receipt::Receipt;
use moothall_core::{RunEventBody, RunId};
use moothall_engine::RunRecord;
use moothall_store::{RunFilter, RunRow, SqliteStore, Store, TeamFilter};
use serde_json::Value;

use crate::world::World;

/// Number of kills and a seed, for a longer run than the default.
const SIZE: &str = "MOOTHALL_TEST_CHAOS";

/// Maximum number of kills per run.
const KILLS_OF_A_RUN: u64 = 5;

/// Timeout without progress. It includes building the first sandbox template.
const PATIENCE: Duration = Duration::from_secs(180);

/// Poll interval for the state of a run. A debug build needs a millisecond for each query, so a
/// shorter interval would take a core from the run.
const LOOK: Duration = Duration::from_millis(5);

#[test]
fn consultations_killed_anywhere_end_like_one_that_was_not() {
    let args =
        ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--yes", "--isolation", "none"];
    check(SIZE, "4 1", &args, World::new);
}

/// Kills hit debates, cards, weakened copies, and every stage of repeats at least once.
#[test]
fn consultations_with_a_panel_killed_anywhere_end_with_the_same_tiers() {
    let args = [
        "consult",
        "HLXI",
        "--model",
        "demo",
        "--yes",
        "--isolation",
        "none",
        "--rounds",
        "1",
        "--verdict",
        "full",
    ];
    let stages = check(SIZE, "4 1", &args, World::new);
    assert!(stages > 1, "moves were debated again");
}

/// Kills consultations until the number of kills is reached and every stage of their panel was
/// hit, and compares each with an uninterrupted one. Returns the number of these stages.
#[expect(clippy::print_stdout, reason = "the figures of a long run")]
pub(crate) fn check(size: &str, usual: &str, args: &[&str], world: impl Fn() -> World) -> usize {
    let size = std::env::var(size).unwrap_or_else(|_| usual.to_owned());
    let size: Vec<u64> = size.split(' ').map(|number| number.parse().unwrap()).collect();
    let [kills, seed] = size[..] else { panic!("two numbers: kills and a seed") };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let began = Instant::now();
    let whole = runtime.block_on(async {
        let mut run = Run::new(world(), args);
        run.start().wait();
        Left::in_world(&run.world).await
    });
    let mut dice = Dice(seed);
    let (mut killed, mut runs, mut calls) = (0, 0, 0);
    let mut hit = BTreeSet::new();
    let stages = whole.verdicts.len();
    while killed < kills || !(0..stages).all(|stage| hit.contains(&stage)) {
        assert!(runs < kills + 10, "kills hit only the stages {hit:?} of {stages}");
        let most = KILLS_OF_A_RUN.min(kills.saturating_sub(killed)).max(1);
        let moments = whole.moments(&mut dice, most, &hit);
        runtime.block_on(async {
            let mut run = Run::new(world(), args);
            killed += run.survive(&mut dice, &moments).await;
            hit.append(&mut run.hit);
            let left = Left::in_world(&run.world).await;
            assert_eq!(left.events, whole.events, "run {runs} of seed {seed}");
            assert_eq!(left.receipt, whole.receipt, "run {runs} of seed {seed}");
            calls += run.started.len();
        });
        runs += 1;
    }
    println!(
        "{killed} kills in {runs} consultations of {} effects and {} events, seed {seed}, in {:.0} s: \
         {calls} effects were performed, none that was answered before, and every receipt is the same; \
         finished stages of the panel at the kills: {hit:?}",
        whole.receipt.effects.len(),
        whole.events.len(),
        began.elapsed().as_secs_f64(),
    );
    stages
}

/// The results of a run, without values that may differ between equal runs.
#[derive(Debug, PartialEq)]
pub(crate) struct Left {
    pub(crate) events: BTreeMap<String, RunEventBody>,
    pub(crate) receipt: Receipt,
    /// The numbers of the events that end a stage of the panel.
    verdicts: Vec<u64>,
}

impl Left {
    /// The results of the only run of a world.
    pub(crate) async fn in_world(world: &World) -> Self {
        let store = store(world).await.unwrap();
        let found =
            store.runs(RunFilter { teams: TeamFilter::All, state: None, limit: 2 }).await.unwrap();
        assert_eq!(found.len(), 1, "there is one run");
        let record = RunRecord::read(&store, &found[0].run_id).await.unwrap();
        store.close().await;
        Self::of(record)
    }

    pub(crate) fn of(record: RunRecord) -> Self {
        let numbers: Vec<u64> = record.events.iter().map(|stored| stored.seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no gaps");
        let verdicts = verdicts(&record);
        let mut receipt = record.receipt().unwrap_or_else(|| panic!("{:?}", record.row.state));
        let mut events = BTreeMap::new();
        for stored in record.events {
            let key = stored.event.key;
            assert_eq!(events.insert(key.clone(), stored.event.body), None, "{key} stands twice");
        }
        // Times and the id are not compared.
        receipt.notes.run_id = "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c".parse().unwrap();
        receipt.notes.started_at_ms = 0;
        receipt.notes.timing.clear();
        Self { events, receipt, verdicts }
    }

    /// Random moments for kills, as numbers of events: in each stage of the panel in turn, first in
    /// those that no kill has hit.
    fn moments(&self, dice: &mut Dice, kills: u64, hit: &BTreeSet<usize>) -> Vec<u64> {
        let starts = [0].into_iter().chain(self.verdicts.iter().copied());
        let ends = self.verdicts.iter().copied().chain([self.events.len() as u64]);
        let stages: Vec<(u64, u64)> = starts.zip(ends).collect();
        let missed = (0..self.verdicts.len()).filter(|stage| !hit.contains(stage));
        let order = missed.chain((0..stages.len()).cycle()).take(usize::try_from(kills).unwrap());
        let mut moments: Vec<u64> = order
            .map(|stage| {
                let (start, end) = stages[stage];
                start + dice.below(end - start)
            })
            .collect();
        moments.sort_unstable();
        moments
    }
}

fn verdicts(record: &RunRecord) -> Vec<u64> {
    let is_verdict = |body: &RunEventBody| matches!(body, RunEventBody::VerdictUpdated { .. });
    let ends = record.events.iter().filter(|stored| is_verdict(&stored.event.body));
    ends.map(|stored| stored.seq).collect()
}

/// The run store of a world, if it exists.
pub(crate) async fn store(world: &World) -> Option<SqliteStore> {
    let path = world.root().join("home/.local/share/moothall/moothall.db");
    match path.exists() {
        true => SqliteStore::open(&path).await.ok(),
        false => None,
    }
}

/// The effects that a process started to perform, according to its log.
pub(crate) fn started(log: &str) -> Vec<String> {
    let started = log.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let is_start = line["message"] == "effect started";
        is_start.then(|| line["effect"].as_str().unwrap().to_owned())
    });
    started.collect()
}

/// One consultation across several processes.
struct Run {
    world: World,
    args: Vec<String>,
    id: Option<RunId>,
    lives: usize,
    /// Performed effects, in the order in which they started.
    started: Vec<String>,
    /// Effects that were completed when the last process ended.
    answered: BTreeSet<String>,
    /// The number of finished stages of the panel at each kill.
    hit: BTreeSet<usize>,
}

impl Run {
    fn new(world: World, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let world = world.with("MOOTHALL_LOG__LEVEL", "debug").with("MOOTHALL_LOG__FORMAT", "json");
        let (started, answered, hit) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        Self { world, args, id: None, lives: 0, started, answered, hit }
    }

    /// Starts or resumes the run.
    fn start(&mut self) -> Life {
        self.lives += 1;
        let log = self.log();
        let words: Vec<&str> = match &self.id {
            None => self.args.iter().map(String::as_str).collect(),
            Some(id) => vec!["resume", id.as_str()],
        };
        let mut command = self.world.command(&words);
        command.stdout(Stdio::null()).stderr(fs_err::File::create(log).unwrap().into_parts().0);
        Life(command.spawn().unwrap())
    }

    fn log(&self) -> PathBuf {
        self.world.path(&format!("life-{}.log", self.lives))
    }

    async fn store(&self) -> Option<SqliteStore> {
        store(&self.world).await
    }

    /// Kills the run shortly after these moments, resumes it each time, and finally lets it finish.
    /// Returns the number of kills.
    async fn survive(&mut self, dice: &mut Dice, moments: &[u64]) -> u64 {
        let mut killed = 0;
        for moment in moments {
            let mut life = self.start();
            if !self.comes_to(&mut life, *moment).await {
                self.check_calls().await;
                return killed;
            }
            tokio::time::sleep(Duration::from_micros(dice.below(3_000))).await;
            life.kill();
            killed += 1;
            self.check_calls().await;
            let finished = self.finished_stages().await;
            self.hit.insert(finished);
            // It may have ended just before it was killed, and an ended run cannot be resumed.
            if self.newest().await.is_some_and(|row| row.state.is_terminal()) {
                return killed;
            }
        }
        self.start().wait();
        self.check_calls().await;
        killed
    }

    /// Waits until the run has this many events. Returns `false` if it ended before.
    async fn comes_to(&mut self, life: &mut Life, events: u64) -> bool {
        let began = Instant::now();
        let mut store = None;
        loop {
            assert!(began.elapsed() < PATIENCE, "{}", self.world.read("life-1.log"));
            if store.is_none() {
                store = self.store().await;
            }
            if let Some(store) = &store
                && let Some(row) = newest(store).await
            {
                self.id = Some(row.run_id.clone());
                if row.state.is_terminal() {
                    life.0.wait().unwrap();
                    return false;
                }
                if row.events >= events {
                    return true;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn finished_stages(&self) -> usize {
        let Some((store, id)) = self.store().await.zip(self.id.as_ref()) else { return 0 };
        let record = RunRecord::read(&store, id).await.unwrap();
        store.close().await;
        verdicts(&record).len()
    }

    async fn newest(&self) -> Option<RunRow> {
        newest(&self.store().await?).await
    }

    /// Checks that this process repeated no effect completed by an earlier one.
    async fn check_calls(&mut self) {
        let log = fs_err::read_to_string(self.log()).unwrap();
        let started = started(&log);
        assert_eq!(started.len(), started.iter().collect::<BTreeSet<_>>().len(), "one life");
        let again: Vec<_> = started.iter().filter(|id| self.answered.contains(*id)).collect();
        assert!(again.is_empty(), "{again:?} were answered and asked again");
        self.started.extend(started);
        if let Some((store, id)) = self.store().await.zip(self.id.as_ref()) {
            let journal = store.journal(id).await.unwrap();
            self.answered = journal.keys().map(ToString::to_string).collect();
            store.close().await;
        }
    }
}

async fn newest(store: &SqliteStore) -> Option<RunRow> {
    let filter = RunFilter { teams: TeamFilter::All, state: None, limit: 1 };
    store.runs(filter).await.unwrap_or_default().into_iter().next()
}

struct Life(Child);

impl Life {
    fn wait(mut self) {
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    fn kill(mut self) {
        // It may have just exited by itself.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// Deterministic random numbers (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}
