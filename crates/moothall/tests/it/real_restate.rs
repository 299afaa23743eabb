//! Consultations executed by workers of a real Restate. They end like those of a single machine,
//! despite failures of workers, Restate nodes and the database.

pub(crate) mod cluster;
mod faults;
mod limits;

use moothall_core::EffectResult;
use moothall_core::receipt::EffectRecord;
use moothall_store::{NewRun, RunState};

use self::cluster::{CONSULT, Cluster, Plan, SMALL, of_one_machine, runs};
use crate::world::World;

/// The memo of the only run, without its id.
fn memo(world: &World) -> String {
    let listed = world.run(&["runs", "--json"]).json();
    let id = listed["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let told = world.run(&["report", &id, "--format", "md"]);
    assert_eq!(told.code, Some(0), "{told}");
    told.stdout.replace(&id, "RUN")
}

/// Runs a consultation on a cluster and on one machine with a local file, and compares the results.
async fn ends_like_one_of_this_machine(plan: Plan, more: &[&str]) {
    let cluster = Cluster::new(plan);
    cluster.consulted(more);
    let (left, (here, whole)) = (cluster.left().await, of_one_machine(more).await);
    assert_eq!(left.events, whole.events);
    assert_eq!(left.receipt, whole.receipt);
    assert_eq!(memo(&cluster.world), memo(&here));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consultation_on_three_workers_with_postgres_ends_like_a_local_one() {
    let plan = Plan { workers: 3, postgres: true, ..SMALL };
    ends_like_one_of_this_machine(plan, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consultation_that_is_suspended_and_replayed_at_every_wait_ends_the_same() {
    let settings = &[("RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT", "0s")];
    let plan = Plan { postgres: true, settings, ..SMALL };
    ends_like_one_of_this_machine(plan, &["--moves", "3", "--rounds", "2"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_on_three_workers_with_postgres_reaches_the_same_verdict_as_a_local_one() {
    let settings = &[("RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT", "0s")];
    let plan = Plan { workers: 3, postgres: true, settings, ..SMALL };
    let more = ["--moves", "6", "--rounds", "1", "--verdict", "full", "--again", "4,2"];
    ends_like_one_of_this_machine(plan, &more).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_never_reached_the_cluster_can_be_resumed_or_cancelled() {
    let cluster = Cluster::new(SMALL);
    let engine = cluster.engine();
    let moves = ["--moves", "3", "--rounds", "1", "--runner"];
    // No server listens there, so the run surely did not start, and it is removed.
    let nobody = [&CONSULT[..], &moves, &["restate=http://127.0.0.1:9"]].concat();
    let refused = cluster.world.run(&nobody);
    assert_ne!(refused.code, Some(0), "{refused}");
    let store = cluster.store().await.unwrap();
    assert_eq!(runs(&*store).await, []);
    cluster.world.run(&[&CONSULT[..], &moves, &[&engine]].concat());
    let begun = runs(&*store).await.remove(0);
    for (id, command) in [(1, "resume"), (2, "cancel")] {
        // The state after a process dies between creating a run and submitting it to the cluster.
        let run_id = format!("01932b5c-7d4e-7a31-9c55-3f6f0e8a4b0{id}").parse().unwrap();
        let new = NewRun {
            run_id,
            owner: begun.owner.clone(),
            cap: None,
            spec: begun.spec.clone(),
            title: begun.title.clone(),
            model: begun.model.clone(),
            build: begun.build.clone(),
            created_at_ms: begun.created_at_ms,
            inherited: Vec::new(),
        };
        let run_id = new.run_id.clone();
        store.create_run(new).await.unwrap();
        let ran = cluster.world.run(&[command, run_id.as_str()]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let state = store.run(&run_id).await.unwrap().unwrap().state;
        let wanted = if command == "resume" { RunState::Finished } else { RunState::Cancelled };
        assert_eq!(state, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_run_waits_for_review_and_can_be_resumed_or_cancelled() {
    let cluster = Cluster::new(SMALL);
    let more = ["--moves", "5", "--rounds", "1", "--pause-after", "moves"];
    let engine = cluster.engine();
    let words = [&CONSULT[..], &["--runner", &engine], &more].concat();
    let paused = cluster.world.run(&words);
    assert_eq!(paused.code, Some(3), "{paused}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let vetoed = cluster.world.run(&["moves", &id, "--veto", "m2", "--by", "ada"]);
    assert_eq!(vetoed.code, Some(0), "{vetoed}");
    let resumed = cluster.world.run(&["resume", &id, "--json"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let shown = cluster.world.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["state"], "finished", "{shown:#}");

    let paused = cluster.world.run(&words);
    assert_eq!(paused.code, Some(3), "{paused}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let cancelled = cluster.world.run(&["cancel", &id]);
    assert_eq!(cancelled.code, Some(0), "{cancelled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_on_a_cluster_repeats_no_call_before_its_debates() {
    let cluster = Cluster::new(SMALL);
    let engine = cluster.engine();
    let small = ["--moves", "2", "--rounds", "1", "--runner", &engine];
    let ran = cluster.world.run(&[&CONSULT[..], &small].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let id = runs["runs"][0]["run_id"].as_str().unwrap();
    cluster.world.write("m2.toml", "title = \"Sell the plant\"\nthesis = \"It costs too much.\"\n");
    let edit = ["--edit-move", "m2=m2.toml", "--by", "Ada", "--receipt", "fork.jsonl"];
    let forked = cluster.world.run(&[&["fork", id, "--from", "debates"], &edit[..]].concat());
    assert_eq!(forked.code, Some(0), "{forked}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    assert_eq!(runs["runs"][0]["parent"]["run_id"], id);
    let fork = runs["runs"][0]["run_id"].as_str().unwrap();
    let events = cluster.world.run(&["events", fork, "--json"]).stdout;
    let replied: Vec<&str> =
        events.lines().filter(|line| line.contains("\"event\":\"model_replied\"")).collect();
    assert!(!replied.is_empty());
    assert!(replied.iter().all(|line| line.contains("\"effect_id\":\"m")), "{replied:?}");
    let verified = cluster.world.run(&["verify", "fork.jsonl"]);
    assert!(verified.stdout.contains("its results are those of the parent"), "{verified}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_run_pauses_at_its_budget_and_resumes_with_more() {
    let cluster = Cluster::new(Plan { workers: 2, ..SMALL });
    let engine = cluster.engine();
    let moves = ["--moves", "5", "--rounds", "1"];
    let few = ["--runner", &engine, "--budget-tokens", "400000"];
    let paused = cluster.world.run(&[&CONSULT[..], &moves, &few].concat());
    assert_eq!(paused.code, Some(5), "{paused}");
    let runs = cluster.world.run(&["runs", "--json"]).json();
    let spent = runs["runs"][0]["spent"]["tokens"].as_u64().unwrap();
    assert!(spent <= 400_000, "{spent}");
    let id = runs["runs"][0]["run_id"].as_str().unwrap();
    let resumed = cluster.world.run(&["resume", id, "--budget-tokens", "5000000"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let (left, (_, whole)) = (cluster.left().await, of_one_machine(&moves).await);
    assert_eq!(left.receipt, whole.receipt);
    // All usage is counted exactly once.
    let shown = cluster.world.run(&["show", id, "--json"]).json();
    let used: u64 = whole.receipt.effects.values().map(tokens).sum();
    assert_eq!(shown["spent"]["tokens"], used);
}

fn tokens(effect: &EffectRecord) -> u64 {
    match &effect.result {
        EffectResult::ModelReplied(reply) => reply.usage.total(),
        _ => 0,
    }
}
