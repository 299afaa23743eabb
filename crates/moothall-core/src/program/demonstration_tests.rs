use super::*;
use crate::program::support::{files, reply};
use crate::program::{AnswerFormat, ProgramInput, prompt, read_program};

fn input(task: &str) -> ProgramInput {
    ProgramInput::new(task, "demo".parse().unwrap(), "python")
}

#[test]
fn what_it_writes_is_read_in_both_forms_and_says_what_it_is() {
    for task in ["print the first 7 primes", "sum up sales.csv", "names of users.json", "dance"] {
        let programs = [AnswerFormat::Structured, AnswerFormat::Fenced].map(|answer_form| {
            let input = ProgramInput { answer_form, ..input(task) };
            let answer = answer(&prompt::generate(&input, &[])).unwrap();
            read_program(&reply(&answer)).unwrap().code
        });
        assert_eq!(programs[0], programs[1]);
        assert!(programs[0].starts_with("# Written by the demo model (scripted answer).\n"));
    }
}

#[test]
fn it_counts_as_many_primes_as_the_task_wants() {
    for (task, wanted) in
        [("first 7 primes", "< 7:"), ("some primes", "< 20:"), ("999999 primes", "< 20:")]
    {
        let answer = answer(&prompt::generate(&input(task), &[])).unwrap();
        assert!(answer.contains(wanted), "{answer}");
    }
}

#[test]
fn users_that_were_given_are_read_and_not_made_up() {
    let given = ProgramInput { inputs: files(&["users.json"]), ..input("names of users.json") };
    let answer = answer(&prompt::generate(&given, &[])).unwrap();
    assert!(answer.contains("/inputs/users.json"), "{answer}");
}

#[test]
fn it_has_nothing_to_say_to_others() {
    let question = ModelRequest::ask("demo".parse().unwrap(), "Why?", 10);
    assert_eq!(answer(&question), None);
    let mut lookalike = prompt::generate(&input("primes"), &[]);
    lookalike.purpose = CallPurpose::Ask;
    assert_eq!(answer(&lookalike), None);
}
