//! How long the gate takes, beside plain writes and `git diff`, in the same run. The tests do a few
//! edits; `MOOTHALL_TEST_EDITS=500` does as many as the specification states figures for.

#![allow(clippy::print_stdout, reason = "tests print what they measured")]

use std::process::Command;
use std::time::{Duration, Instant};

use moothall_core::drafts::State;
use moothall_core::edit::read_change;
use moothall_core::gate::Action;
use moothall_core::model::{ModelReply, StopReason, Usage, UsageBasis};
use moothall_engine::drafts::{Edit, Existing};

use crate::drafts::{World, worker};

const LINES: usize = 2_000;

fn edits() -> usize {
    std::env::var("MOOTHALL_TEST_EDITS").map_or(40, |text| text.parse().unwrap())
}

/// A source file of this many lines, of which one is changed.
fn source(changed: usize) -> String {
    let line = |at: usize| match at == changed % LINES {
        true => format!("    total_{at} = compute({at}, {changed})\n"),
        false => format!("    value_{at} = compute({at}, other={})\n", at * 7),
    };
    (0..LINES).map(line).collect()
}

fn at_percent(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn timed<T>(times: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    times.push(begun.elapsed());
    done
}

#[test]
fn every_scripted_edit_is_read_and_judged_in_seconds() {
    let world = World::new(&[("a.py", &source(0)), ("plain", "")]);
    let store = world.open();
    let (mut writes, mut gates, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let (mut plain, mut diffs) = (Vec::new(), Vec::new());
    let mut unreadable = 0;
    for at in 1..=edits() {
        let begun = Instant::now();
        let task = format!("t{at}");
        let (draft, text) = store.request(&worker(), &task, "a.py", Existing::Must).unwrap();
        // As a model answers: prose, and a block that names its file.
        let reply = ModelReply {
            text: format!("Changes a line.\n\n```python a.py\n{}```\n", source(at)),
            stop: StopReason::End,
            model: "script".to_owned(),
            usage: Usage::default(),
            usage_basis: UsageBasis::Reported,
            cost_micro_usd: None,
        };
        let texts = [(draft.path.clone(), text)].into_iter().collect();
        let Ok(change) = read_change(&reply, &texts) else {
            unreadable += 1;
            continue;
        };
        let new = change.files[&draft.path].clone().unwrap();
        let edit = Edit::Content(new.clone());
        timed(&mut writes, || store.write(&worker(), draft.id, edit, None).unwrap());
        let judged = timed(&mut gates, || store.check(&worker(), &[draft.id]).unwrap());
        whole.push(begun.elapsed());
        assert_eq!(judged.verdict.action, Action::Allow, "edit {at}");

        let (old, other) = (world.workspace().join("a.py"), world.workspace().join("plain"));
        timed(&mut plain, || {
            let mut file = fs_err::File::create(&other).unwrap();
            std::io::Write::write_all(&mut file, new.as_bytes()).unwrap();
            file.sync_all().unwrap();
        });
        timed(&mut diffs, || {
            let git = ["diff", "--no-index", "--quiet"];
            Command::new("git").args(git).args([&old, &other]).status().unwrap()
        });
        let submitted = store.submit(&worker(), &[draft.id], &change.summary).unwrap();
        assert_eq!(submitted.drafts[0].state, State::Applied, "edit {at}");
    }
    let all = edits();
    assert!(unreadable * 100 < all, "{unreadable} of {all} could not be read");
    let p95 = at_percent(&mut whole, 95);
    println!(
        "{all} edits of {LINES} lines: {unreadable} unreadable; read, write and check p95 {p95:?}; \
         gate p50 {:?} p99 {:?}, git diff p50 {:?} p99 {:?}; write p50 {:?} p99 {:?}, plain write and flush p50 {:?} p99 {:?}",
        at_percent(&mut gates, 50),
        at_percent(&mut gates, 99),
        at_percent(&mut diffs, 50),
        at_percent(&mut diffs, 99),
        at_percent(&mut writes, 50),
        at_percent(&mut writes, 99),
        at_percent(&mut plain, 50),
        at_percent(&mut plain, 99),
    );
    assert!(p95 < Duration::from_secs(30), "{p95:?}");
}
