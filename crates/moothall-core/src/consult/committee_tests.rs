use super::*;
use crate::consult::board;

#[test]
fn the_built_in_board_is_valid_and_scores_out_of_120() {
    let board = board();
    assert_eq!(board.validate(), Ok(()));
    assert_eq!(board.top_score(), 120);
    assert_eq!(board.shares(None), [3, 3, 3, 3, 3]);
}

#[test]
fn fewer_moves_are_split_evenly_among_the_analysts() {
    let board = board();
    assert_eq!(board.shares(Some(2)), [1, 1, 0, 0, 0]);
    assert_eq!(board.shares(Some(7)), [2, 2, 1, 1, 1]);
    assert_eq!(board.shares(Some(99)), [3, 3, 3, 3, 3]);
}

#[test]
fn an_invalid_committee_reports_every_kind_of_problem() {
    let broken = |change: fn(&mut Committee)| {
        let mut committee = board();
        change(&mut committee);
        committee.validate().map_err(|error| error.to_string())
    };
    let said = [
        broken(|committee| committee.rounds = 0),
        broken(|committee| committee.decision_makers.clear()),
        broken(|committee| committee.analysts[1].id = "analyst_1".to_owned()),
        broken(|committee| committee.critic.id = "../critic".to_owned()),
        broken(|committee| committee.critic.lens = " ".to_owned()),
        broken(|committee| committee.metrics[0].levels.reverse()),
    ];
    let said: Vec<String> = said.into_iter().filter_map(Result::err).collect();
    assert_eq!(
        said,
        [
            "invalid number of rounds: 0 (must be 1 to 20)",
            "invalid number of decision makers: 0 (must be 1 to 5)",
            "invalid id `analyst_1`: use 1 to 40 letters, digits, `-` or `_`; ids must be unique",
            "invalid id `../critic`: use 1 to 40 letters, digits, `-` or `_`; ids must be unique",
            "the lens of `critic` is empty or longer than 8192 bytes",
            "the levels of `impact` must start at 1, ascend and stay within 10",
        ]
    );
}
