//! Runs with debates in microVMs: fewer, because each debate has a separate microVM.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::cluster::World;
use crate::say;

const RUNS: usize = 10;

/// Memory limit, in MiB, for the sandboxes of one run on one worker: ten runs on two workers fit on
/// a machine with 16 GiB.
const MEMORY_MIB: &str = "640";

pub(crate) async fn run(program: &Path) -> Result<()> {
    let world = World::start(program, &[("MOOTHALL_ISOLATION__MEMORY_MIB", MEMORY_MIB)]).await?;
    let began = Instant::now();
    let what = json!({"moves": 15, "rounds": 10, "isolation": "microvm"});
    let ids = world.consult(RUNS, &what).await?;
    let (mut sandboxes, mut bytes) = (0, 0);
    let (mut live, mut queue) = (0, 0);
    let (mut ended, mut since) = (0, Instant::now());
    loop {
        let now = world.in_state(&ids, "finished").await?;
        if now == ids.len() {
            break;
        }
        if now > ended {
            (ended, since) = (now, Instant::now());
        }
        let (now, taken) = world.sandboxes()?;
        (sandboxes, bytes) = (now.max(sandboxes), taken.max(bytes));
        // Debates that have started but not ended; debates without a sandbox wait for one.
        let debates = world
            .restate
            .count(
                "SELECT count(*) AS live FROM sys_invocation
                 WHERE target_service_name LIKE 'Debate-%' AND status <> 'completed'",
            )
            .await?;
        live = live.max(debates);
        queue = queue.max(debates.saturating_sub(now as u64));
        ensure!(since.elapsed() < super::TIMEOUT, "{ended} ended: {}", world.worker_logs());
        tokio::time::sleep(super::POLL_INTERVAL).await;
    }
    let (calls, _) = world.check(&ids).await?;
    let wall = began.elapsed();
    say(&format!(
        "{RUNS} runs at once in microVMs: {:.1} s, {calls} calls, {:.0} a second; at most {live} \
         debates at once, {sandboxes} machines with {} MiB, {queue} debates in the queue",
        wall.as_secs_f64(),
        calls as f64 / wall.as_secs_f64(),
        bytes >> 20,
    ));
    Ok(())
}
