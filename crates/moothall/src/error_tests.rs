use std::io;

use anyhow::Context;

use super::*;

#[track_caller]
fn check(error: impl Into<CliError>, expected_exit: u8, expected_text: &str) {
    let error = error.into();
    assert_eq!((error.exit.code(), error.render().as_str()), (expected_exit, expected_text));
}

#[test]
fn an_error_is_one_line_followed_by_its_hint() {
    check(
        CliError::usage("unknown key `budgt.usd`").with_hint("did you mean `budget.usd`?"),
        2,
        "error: unknown key `budgt.usd`\nhint: did you mean `budget.usd`?\n",
    );
    check(CliError::failed("the provider is down"), 4, "error: the provider is down\n");
}

#[test]
fn causes_follow_the_message_on_the_same_line() {
    let cause =
        anyhow::Error::from(io::Error::other("no space left")).context("cannot write the journal");
    check(
        CliError::new(CliExit::Failed, "the run stopped").with_source(cause),
        4,
        "error: the run stopped: cannot write the journal: no space left\n",
    );
}

#[test]
fn an_error_cause_already_in_its_parent_is_printed_once() {
    let cause = anyhow::Error::from(io::Error::other("no space left"))
        .context("cannot write: no space left");
    check(
        CliError::failed("the run stopped").with_source(cause),
        4,
        "error: the run stopped: cannot write: no space left\n",
    );
}

#[test]
fn exit_code_and_hint_survive_conversion_to_anyhow() {
    let there_and_back = anyhow::Error::from(
        CliError::new(CliExit::BudgetStopped, "the budget is spent").with_hint("raise it"),
    );
    check(there_and_back, 5, "error: the budget is spent\nhint: raise it\n");
    let under_context = Err::<(), _>(CliError::usage("no key").with_hint("set one"))
        .context("cannot ask")
        .unwrap_err();
    check(under_context, 2, "error: cannot ask: no key\nhint: set one\n");
}

#[test]
fn any_other_error_is_a_failure() {
    check(
        anyhow::anyhow!("disk on fire").context("cannot save"),
        4,
        "error: cannot save: disk on fire\n",
    );
}

#[test]
fn quoted_text_in_errors_is_escaped_for_the_terminal() {
    check(
        CliError::usage("unknown key `\u{1b}[2J`").with_hint("remove\u{7} it\nor rename it"),
        2,
        "error: unknown key `\\u{1b}[2J`\nhint: remove\\u{7} it\nor rename it\n",
    );
}

#[test]
fn exit_codes_are_the_documented_numbers() {
    let codes = [
        CliExit::Fine,
        CliExit::VerdictNegative,
        CliExit::Usage,
        CliExit::NeedsPerson,
        CliExit::Failed,
        CliExit::BudgetStopped,
        CliExit::Cancelled,
    ];
    assert_eq!(codes.map(CliExit::code), [0, 1, 2, 3, 4, 5, 130]);
}
