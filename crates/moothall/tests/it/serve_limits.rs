//! Limits of a provider apply to the whole server, measured at the provider.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use moothall_testkit::{ProviderBehaviour, ProviderCall};
use serde_json::json;

use crate::consult::careless;
use crate::fake::Fake;
use crate::outages::diligent;
use crate::serve::{Server, runtime};
use crate::world::World;

/// When calls arrived at a provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrivals(Arc<Mutex<Vec<Instant>>>);

impl Arrivals {
    /// A slow committee whose calls are recorded.
    pub(crate) fn record(
        &self,
    ) -> impl Fn(&ProviderCall) -> ProviderBehaviour + Send + Sync + 'static {
        let arrivals = self.clone();
        move |call| {
            arrivals.0.lock().unwrap().push(Instant::now());
            careless(call).with_latency(Duration::from_millis(50))
        }
    }

    /// No minute has more calls than the limit. A tenth may come at once and the rest is spread
    /// evenly, so this also holds for shorter times.
    pub(crate) fn check(&self, per_minute: u32) {
        let arrivals = self.0.lock().unwrap();
        let (burst, rate) = (f64::from(per_minute) / 10.0, f64::from(per_minute) * 0.9 / 60.0);
        for (first, began) in arrivals.iter().enumerate() {
            for (last, arrived) in arrivals.iter().enumerate().skip(first) {
                let calls = (last - first + 1) as f64;
                let allowed = burst + rate * (*arrived - *began).as_secs_f64();
                // Calls may arrive a little closer together than they were sent.
                assert!(calls <= allowed + 3.0, "{calls} calls, {allowed:.1} allowed");
            }
        }
    }
}

/// A world whose only provider is the fake one, with these limits.
fn limited(fake: &Fake, limits: &str) -> World {
    let world = World::new();
    fake.configure(&world, "");
    let block = format!("[provider.openai]\n{limits}");
    world.write("fake.toml", &world.read("fake.toml").replace("[provider.openai]\n", &block));
    world
}

#[test]
fn ten_consultations_at_once_stay_within_the_limits_of_the_provider() {
    const PER_MINUTE: u32 = 480;
    let (fake, arrivals) = (Fake::start(), Arrivals::default());
    fake.respond_with(arrivals.record());
    let limits = format!("concurrent = 8\nrequests_per_minute = {PER_MINUTE}\n");
    let world = limited(&fake, &limits);
    let server = Server::start(&world, &["--config", "fake.toml"]);
    runtime().block_on(async {
        let wanted = json!({"workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": 1, "rounds": 1,
                            "model": "openai/m", "isolation": "none"});
        let mut runs = Vec::new();
        for _ in 0..10 {
            runs.push(server.begin(&wanted).await);
        }
        for run in &runs {
            server.over(run).await;
        }
    });
    let stats = fake.stats();
    assert!(stats.answered >= 100 && stats.max_concurrent <= 8, "{stats:?}");
    arrivals.check(PER_MINUTE);
}

/// Four large runs debate ten moves each, in three threads per move, so each has 30 calls waiting
/// for the four slots. The small run has about 15 calls, at most three at once, in five stages or
/// more.
/// - In turn, a call of the small run waits until each other run had one slot, and meanwhile the
///   calls in progress end: at most 15 × (4 + 4) = 120 answers, and some while no call is waiting.
/// - In order of arrival, each stage waits for the 4 × 30 - 4 calls before it: 580 answers.
const MOST_ANSWERS: u64 = 250;

/// By then all large runs are in their debates.
const DEBATES_STARTED: u64 = 200;

#[test]
fn a_small_run_started_last_ends_before_large_ones() {
    let fake = Fake::start();
    let received = AtomicU64::new(0);
    fake.respond_with(move |call| {
        let is_early = received.fetch_add(1, Ordering::Relaxed) < DEBATES_STARTED;
        // Slow answers, so that little is answered while the small run has no call.
        diligent(call).with_latency(Duration::from_millis(if is_early { 5 } else { 200 }))
    });
    let world = limited(&fake, "concurrent = 4\n");
    let server = Server::start(&world, &["--config", "fake.toml"]);
    runtime().block_on(async {
        let consult = |moves: u32, rounds: u32| {
            json!({"workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": moves, "rounds": rounds,
                   "parallel_moves": 10, "model": "openai/m", "isolation": "none"})
        };
        let mut large = Vec::new();
        for _ in 0..4 {
            large.push(server.begin(&consult(10, 6)).await);
        }
        let until = Instant::now() + Duration::from_secs(120);
        while fake.stats().answered < DEBATES_STARTED {
            assert!(Instant::now() < until, "{:?}", fake.stats());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let before = fake.stats().answered;
        let small = server.begin(&consult(1, 1)).await;
        server.over(&small).await;
        let answered = fake.stats().answered - before;
        assert!(answered <= MOST_ANSWERS, "{answered} answers until the small run ended");
        for run in &large {
            assert_eq!(
                server.json(&format!("/api/runs/{run}")).await["status"]["state"],
                "running"
            );
        }
    });
}
