use super::*;
use crate::program::support::{files, reply};
use crate::program::{AnswerFormat, ProgramInput, prompt, read_program};

fn input(task: &str) -> ProgramInput {
    ProgramInput::new(task, "demo".parse::<crate::model::ModelName>().unwrap(), "python")
}

#[test]
fn the_demo_program_is_the_same_in_both_answer_formats() {
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
fn the_demo_program_prints_the_requested_number_of_primes() {
    for (task, wanted) in
        [("first 7 primes", "< 7:"), ("some primes", "< 20:"), ("999999 primes", "< 20:")]
    {
        let answer = answer(&prompt::generate(&input(task), &[])).unwrap();
        assert!(answer.contains(wanted), "{answer}");
    }
}

#[test]
fn the_demo_program_reads_a_given_users_file() {
    let given = ProgramInput { inputs: files(&["users.json"]), ..input("names of users.json") };
    let answer = answer(&prompt::generate(&given, &[])).unwrap();
    assert!(answer.contains("/inputs/users.json"), "{answer}");
}

#[test]
fn the_demo_answers_only_program_requests() {
    let question = ModelRequest::ask("demo".parse().unwrap(), "Why?", 10);
    assert_eq!(answer(&question), None);
    let mut lookalike = prompt::generate(&input("primes"), &[]);
    lookalike.purpose = CallPurpose::Ask;
    assert_eq!(answer(&lookalike), None);
}
