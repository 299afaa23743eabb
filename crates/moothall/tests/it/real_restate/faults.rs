//! Consultations on a cluster whose parts are killed, suspended or terminated at random moments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::RunId;
use moothall_engine::RunRecord;
use moothall_store::{RunRow, Store};
use serde_json::Value;

use super::cluster::{Cluster, PATIENCE, Plan, of_one_machine, runs};
use crate::chaos::{Dice, Left};

/// Number of faults, a seed and the number of Restate nodes, for a longer run than the default.
const SIZE: &str = "MOOTHALL_TEST_CHAOS_RESTATE";

const LOOK: Duration = Duration::from_millis(20);

/// A fault injected into a part of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    WorkerKilled,
    WorkerStopped,
    WorkerEnded,
    NodeKilled,
    NodeStopped,
    PostgresKilled,
}

impl Fault {
    const ALL: [Self; 6] = [
        Self::WorkerKilled,
        Self::NodeKilled,
        Self::PostgresKilled,
        Self::WorkerStopped,
        Self::NodeStopped,
        Self::WorkerEnded,
    ];

    async fn inject(self, cluster: &mut Cluster, dice: &mut Dice) {
        let mut one_of = |many: usize| usize::try_from(dice.below(many as u64)).unwrap();
        let (worker, node) = (one_of(cluster.workers.len()), one_of(cluster.nodes.len()));
        let pause = Duration::from_millis(500 + dice.below(3000));
        match self {
            Self::WorkerKilled => {
                cluster.workers.remove(worker).kill();
                cluster.add_worker();
            }
            Self::WorkerEnded => {
                let worker = cluster.workers.remove(worker);
                worker.signal("-TERM");
                worker.wait();
                cluster.add_worker();
            }
            Self::NodeKilled => cluster.nodes[node].kill_and_restart(),
            Self::PostgresKilled => cluster.postgres.as_ref().unwrap().kill(),
            Self::WorkerStopped | Self::NodeStopped => {
                let stopped = match self {
                    Self::WorkerStopped => &cluster.workers[worker],
                    _ => &cluster.nodes[node].server,
                };
                stopped.signal("-STOP");
                tokio::time::sleep(pause).await;
                stopped.signal("-CONT");
            }
        }
    }
}

/// Run id and effect id.
type Asked = (String, String);

/// The effects that workers started to perform, according to their logs.
fn started(log: &str) -> Vec<Asked> {
    let asked = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let word = |name: &str| line[name].as_str().map(str::to_owned);
        (line["message"] == "effect started").then_some(())?;
        Some((word("run_id")?, word("effect")?))
    };
    log.lines().filter_map(asked).collect()
}

/// The completed effects of these runs.
async fn answered(store: &dyn Store, rows: &[RunRow]) -> BTreeSet<Asked> {
    let mut answered = BTreeSet::new();
    for RunRow { run_id, .. } in rows {
        let journal = store.journal(run_id).await.unwrap();
        answered.extend(journal.keys().map(|id| (run_id.to_string(), id.to_string())));
    }
    answered
}

/// One cluster and its concurrent consultations.
struct Round {
    cluster: Cluster,
    store: Arc<dyn Store>,
    /// Runs of earlier rounds.
    over: BTreeSet<RunId>,
}

impl Round {
    async fn rows(&self) -> Vec<RunRow> {
        let mut rows = runs(&*self.store).await;
        rows.retain(|row| !self.over.contains(&row.run_id));
        rows
    }

    /// Waits until the runs have this many events in total. Returns `None` if they all ended.
    async fn comes_to(&self, events: u64, at_once: usize) -> Option<Vec<RunRow>> {
        let mut moved = (Instant::now(), 0);
        loop {
            let rows = self.rows().await;
            let seen: u64 = rows.iter().map(|row| row.events).sum();
            // A run without events may not have reached the cluster yet.
            if rows.len() == at_once && rows.iter().all(|row| row.events > 0) {
                if rows.iter().all(|row| row.state.is_terminal()) {
                    return None;
                }
                if seen >= events {
                    return Some(rows);
                }
            }
            if seen > moved.1 {
                moved = (Instant::now(), seen);
            }
            let log = || self.cluster.world.read("consult.log");
            assert!(moved.0.elapsed() < PATIENCE, "{rows:#?} {}", log());
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The longest time without an event in a run.
fn stall(record: &RunRecord) -> Duration {
    let times = record.events.windows(2).map(|two| two[1].at_ms.saturating_sub(two[0].at_ms));
    Duration::from_millis(times.max().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the figures of a long run")]
async fn consultations_on_a_cluster_with_faults_end_like_an_undisturbed_one() {
    let size = std::env::var(SIZE).unwrap_or_else(|_| "6 1 1".to_owned());
    let size: Vec<u64> = size.split(' ').map(|number| number.parse().unwrap()).collect();
    let [wanted, seed, nodes] = size[..] else { panic!("three numbers: faults, seed and nodes") };
    let nodes = u16::try_from(nodes).unwrap();
    // With a panel, so that faults hit every stage. Single-node clusters are used in CI, which must
    // be fast.
    let (more, at_once): (&[&str], usize) = match nodes {
        1 => (&["--moves", "6", "--rounds", "2", "--verdict", "full", "--again", "4,2"], 2),
        _ => (&["--rounds", "4", "--verdict", "full"], 2),
    };
    let (_, whole) = of_one_machine(more).await;
    let began = Instant::now();
    let cluster = Cluster::new(Plan { nodes, workers: 3, postgres: true, settings: &[] });
    let store = cluster.store().await.unwrap();
    let mut round = Round { cluster, store, over: BTreeSet::new() };
    let (mut dice, mut faults, mut longest) = (Dice(seed), BTreeMap::new(), Duration::ZERO);
    // The completed effects before each fault, and the length of the logs at that time.
    let mut before: Vec<(BTreeSet<Asked>, Vec<usize>)> = Vec::new();
    let mut injected = 0;
    while injected < wanted {
        let clients: Vec<_> = (0..at_once).map(|_| round.cluster.consult(more)).collect();
        let events = whole.events.len() as u64 * at_once as u64;
        let mut moments: Vec<u64> =
            (0..6.min(wanted - injected)).map(|_| dice.below(events * 9 / 10)).collect();
        moments.sort_unstable();
        for moment in moments {
            let Some(rows) = round.comes_to(moment, at_once).await else { break };
            let answered = answered(&*round.store, &rows).await;
            before.push((answered, round.cluster.logs().iter().map(String::len).collect()));
            // In turn, so a short run covers all of them.
            let fault = Fault::ALL[usize::try_from(injected).unwrap() % Fault::ALL.len()];
            fault.inject(&mut round.cluster, &mut dice).await;
            *faults.entry(fault).or_insert(0) += 1;
            injected += 1;
        }
        while round.comes_to(u64::MAX, at_once).await.is_some() {}
        for row in round.rows().await {
            let record = RunRecord::read(&*round.store, &row.run_id).await.unwrap();
            longest = longest.max(stall(&record));
            let left = Left::of(record);
            assert_eq!(left.events, whole.events, "{} of seed {seed}", row.run_id);
            assert_eq!(left.receipt, whole.receipt, "{} of seed {seed}", row.run_id);
            round.over.insert(row.run_id);
        }
        drop(clients);
    }
    let logs = round.cluster.logs();
    for (answered, lengths) in before {
        for (life, log) in logs.iter().enumerate() {
            let since = &log[lengths.get(life).copied().unwrap_or(0)..];
            let again = started(since).into_iter().filter(|asked| answered.contains(asked));
            assert_eq!(again.collect::<Vec<_>>(), Vec::<Asked>::new(), "asked again");
        }
    }
    let all: Vec<Asked> = logs.iter().flat_map(|log| started(log)).collect();
    let again = all.len() - all.iter().collect::<BTreeSet<_>>().len();
    println!(
        "{injected} faults {faults:?} to {nodes} Restate nodes, PostgreSQL and three workers, in {} \
         consultations, seed {seed}, in {:.0} s: every receipt is the same, no answered effect of {} was \
         asked again, {again} that were under way were, and nothing happened for {:.1} s at most",
        round.over.len(),
        began.elapsed().as_secs_f64(),
        all.len(),
        longest.as_secs_f64(),
    );
}
