//! Provider limits shared by three workers, measured at the provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use moothall_testkit::{ProviderCall, ProviderProtocol};

use super::cluster::{Cluster, PATIENCE, Plan, Running, SMALL};
use crate::consult::careless;
use crate::fake::Fake;
use crate::serve_limits::Arrivals;
use crate::world::World;

const CONSULT: [&str; 13] = [
    "consult",
    "HLXI",
    "--verdict",
    "off",
    "--model",
    "openrouter/m",
    "--isolation",
    "none",
    "--yes",
    "--moves",
    "5",
    "--rounds",
    "2",
];

/// A slow provider, and three workers with a shared limit of concurrent calls.
fn cluster(fake: &Fake, concurrent: u32) -> Cluster {
    fake.respond_with(|call: &ProviderCall| {
        careless(call).with_latency(Duration::from_millis(150))
    });
    let world = World::new()
        .with("MOOTHALL_PROVIDER__OPENROUTER__BASE_URL", &fake.base_url(ProviderProtocol::OpenAi))
        .with("MOOTHALL_PROVIDER__OPENROUTER__CONCURRENT", &concurrent.to_string());
    Cluster::in_world(Plan { workers: 3, postgres: true, ..SMALL }, world)
}

#[test]
fn three_workers_never_exceed_the_concurrency_limit_of_a_provider() {
    let fake = Fake::start();
    let cluster = cluster(&fake, 8);
    let clients: Vec<_> = (0..4).map(|_| cluster.follow(&CONSULT)).collect();
    clients.into_iter().for_each(Running::wait);
    let stats = fake.stats();
    assert!(stats.answered > 100, "{stats:?}");
    assert_eq!(stats.max_concurrent, 8);
}

#[test]
fn a_limit_per_minute_holds_across_three_workers() {
    const PER_MINUTE: u32 = 600;
    let (fake, arrivals) = (Fake::start(), Arrivals::default());
    fake.respond_with(arrivals.record());
    let world = World::new()
        .with("MOOTHALL_PROVIDER__OPENROUTER__BASE_URL", &fake.base_url(ProviderProtocol::OpenAi))
        .with("MOOTHALL_PROVIDER__OPENROUTER__REQUESTS_PER_MINUTE", &PER_MINUTE.to_string());
    let cluster = Cluster::in_world(Plan { workers: 3, postgres: true, ..SMALL }, world);
    let clients: Vec<_> = (0..3).map(|_| cluster.follow(&CONSULT)).collect();
    clients.into_iter().for_each(Running::wait);
    assert!(fake.stats().answered > 150, "{:?}", fake.stats());
    arrivals.check(PER_MINUTE);
}

#[test]
fn a_budget_is_not_exceeded_by_three_workers_that_are_killed() {
    const BUDGET: u64 = 600_000;
    const CALLS_PER_KILL: u64 = 6;
    const KILLS: u64 = 4;
    let fake = Fake::start();
    let mut cluster = cluster(&fake, 30);
    // Calls after the last kill is due do not end before the workers die, however slow the machine.
    let are_killed = Arc::new(AtomicBool::new(false));
    let released = Arc::clone(&are_killed);
    fake.respond_with(move |call: &ProviderCall| {
        let is_held = call.number >= KILLS * CALLS_PER_KILL && !released.load(Ordering::SeqCst);
        let latency = if is_held { PATIENCE } else { Duration::from_millis(150) };
        careless(call).with_latency(latency)
    });
    let budget = BUDGET.to_string();
    let client = cluster.follow(&[&CONSULT[..], &["--budget-tokens", &budget]].concat());
    let began = Instant::now();
    for kill in 1..=KILLS {
        while fake.stats().received <= kill * CALLS_PER_KILL {
            assert!(began.elapsed() < PATIENCE, "{:?}", fake.stats());
            std::thread::sleep(Duration::from_millis(5));
        }
        // The last time all of them, because any of them may have made the calls in progress.
        let killed = if kill < KILLS { 1 } else { cluster.workers.len() };
        cluster.workers.drain(..killed).for_each(|mut worker| worker.kill());
        are_killed.store(kill == KILLS, Ordering::SeqCst);
        (0..killed).for_each(|_| cluster.add_worker());
    }
    client.wait();
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let spent = runs["runs"][0]["spent"]["tokens"].as_u64().unwrap();
    let billed = fake.stats().billed.total();
    assert!(billed <= spent && spent <= BUDGET, "{billed} billed, {spent} counted");
    assert!(fake.stats().abandoned > 0, "no call was in progress when workers died");
}
