use insta::assert_snapshot;
use moothall_core::consult::board;

use super::*;

fn problems(change: impl Fn(&str) -> String) -> Vec<String> {
    let text = change(&render(&board()));
    let found = parse("c.toml", &text).unwrap_err();
    found
        .into_iter()
        .map(|problem| match problem.hint {
            Some(hint) => format!("{} ({hint})", problem.message),
            None => problem.message,
        })
        .collect()
}

#[test]
fn a_committee_file_round_trips() {
    assert_eq!(parse("c.toml", &render(&board())), Ok(board()));
    let mut odd = board();
    odd.title = "quotes \" and ''' and \"\"\" and \\".to_owned();
    odd.critic.lens = "# not a comment\n\n[[analysts]]\n\ttab \u{1f} end\n".to_owned();
    odd.metrics[0].levels[0].means = "two\nlines".to_owned();
    assert_eq!(parse("c.toml", &render(&odd)), Ok(odd));
}

#[test]
fn the_built_in_board_is_rendered_with_comments() {
    assert_snapshot!(render(&board()));
}

#[test]
fn unknown_committee_keys_are_reported_with_line_and_suggestion() {
    let said = problems(|text| {
        text.replacen("rounds = 10", "round = 10", 1)
            .replacen("[critic]\nid", "[critic]\nmood = \"grim\"\nid", 1)
            .replacen("{ from = 1, means", "{ from = 1, meens", 1)
    });
    assert_snapshot!(said.join("\n"));
}

#[test]
fn invalid_committee_files_are_reported() {
    let said = [
        problems(|text| text.replacen("rounds = 10", "rounds = \"ten\"", 1)),
        problems(|text| text.replacen("title =", "# title =", 1)),
        problems(|text| text.replacen("rounds = 10", "rounds = 99", 1)),
        problems(|text| text.replacen("id = \"analyst_2\"", "id = \"analyst_1\"", 1)),
        problems(|text| text.replacen("name = ", "name ", 1)),
        problems(|_| "analysts = 3".to_owned()),
        problems(|_| String::new()),
    ];
    assert_snapshot!(said.concat().join("\n"));
}
