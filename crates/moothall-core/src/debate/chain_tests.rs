use super::super::support::{Ran, in_form, input, run, said};
use super::super::{DebateDegradation, DebateInput};
use super::*;

/// A debate with a context window of this many tokens and messages of about a hundred tokens.
fn debated_in(window_tokens: u32, rounds: u32) -> Ran {
    let calls = CallSettings { message_tokens: 200, window_tokens, ..CallSettings::default() };
    let input = DebateInput { calls, ..input(rounds) };
    run(input, |id| said(in_form(id).replace("words of", &"many words about it in ".repeat(15))))
}

fn texts(request: &ModelRequest) -> Vec<&str> {
    request.turns.iter().map(|turn| &*turn.block.text).collect()
}

#[test]
fn old_rounds_are_summarized_once_and_the_new_prefix_is_stable() {
    let ran = debated_in(4_400, 10);
    let question = |round: u32| ran.question(&format!("m7/round-{round}/D2"));
    let first_cut = (2..=10).find(|round| question(*round).turns.len() < 2 * *round as usize - 1);
    let cut = first_cut.expect("the window was never full");
    let (before, at, after) = (question(cut - 1), question(cut), question(cut + 1));

    // Round 1, the summary with the first of the last three rounds, and the newest turn.
    assert_eq!(at.turns.len(), 2 + 2 * 3 + 1);
    assert_eq!(texts(at)[..2], texts(before)[..2]);
    let (summary, whole) = (texts(at)[2], texts(before)[2 * (cut as usize - 4)]);
    assert!(summary.starts_with(&format!("[Rounds 2 to {} are omitted", cut - 4)), "{summary}");
    assert!(summary.ends_with(whole), "{summary}");
    assert!(summary.contains("the decision maker's stance was round 2 hold"), "{summary}");
    assert!(summary.contains("O1 (major, answered in part): Nobody asked"), "{summary}");
    assert_eq!(texts(at)[3..7], texts(before)[before.turns.len() - 4..]);

    // After that it grows until the window is full again.
    assert_eq!(texts(at), texts(after)[..at.turns.len()]);
    assert_eq!((&at.system, &at.schema), (&before.system, &before.schema));
    for (id, request) in &ran.asked {
        assert!(fits(request, 4_400), "{id}");
    }

    let debated = ran.debated();
    assert_eq!((debated.rounds_done, debated.total_score), (10, 78));
    let chains: Vec<&str> = debated
        .degraded
        .iter()
        .map(|degraded| match degraded {
            DebateDegradation::Truncated { chain } => chain.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(chains, ["critic-D1", "D1", "critic-D2", "D2", "critic-D3", "D3"]);
    // The log itself is complete.
    assert!(ran.debate.logs().values().all(|log| log.len() == 20));
}

#[test]
fn a_context_window_that_fills_again_is_summarized_again() {
    let ran = debated_in(6_000, 20);
    let mut cuts: Vec<&str> = ran
        .asked
        .iter()
        .filter(|(id, _)| id.ends_with("/D1") && !id.contains("critic"))
        .filter_map(|(_, request)| texts(request).get(2)?.split(" are left out").next())
        .filter(|text| text.starts_with("[Rounds"))
        .collect();
    cuts.dedup();
    assert!(cuts.len() >= 2, "{cuts:?}");
    assert!(cuts.len() <= 4, "a change for nearly every call: {cuts:?}");
}

#[test]
fn a_very_small_window_keeps_fewer_than_three_rounds() {
    let ran = debated_in(2_048, 8);
    let shortest = ran.question("m7/round-8/D1");
    assert!(shortest.turns.len() < 9, "{}", shortest.turns.len());
    assert_eq!(ran.debated().rounds_done, 8);
}

#[test]
fn a_debate_that_fits_is_not_touched() {
    let ran = debated_in(200_000, 10);
    assert_eq!(ran.debated().degraded, []);
}
