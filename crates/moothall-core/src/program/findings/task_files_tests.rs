use super::*;

#[track_caller]
fn check(task: &str, expected: &[(&str, FileRole)]) {
    let found: Vec<_> =
        mentions(task).into_iter().map(|mention| (mention.name, mention.role)).collect();
    let expected: Vec<_> =
        expected.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect();
    assert_eq!(found, expected, "{task}");
}

#[test]
fn a_file_that_the_program_reads_is_an_input() {
    for task in [
        "Read data from x.csv and print usernames",
        "Parse the given \"x.csv\", then print the total.",
        "Write a program that finds the largest value in data of x.csv",
        "Write a script to sum the numbers in x.csv",
        "Print the contents of /data/x.csv",
        "Plot x.csv",
        "Draw a histogram of the values in `x.csv`.",
        "Sort x.csv",
        "Compare it to x.csv",
    ] {
        check(task, &[("x.csv", FileRole::Input)]);
    }
}

#[test]
fn a_file_that_the_program_writes_is_an_output() {
    for task in [
        "Write the result to x.png",
        "Save it as x.png.",
        "Plot a sine wave as x.png",
        "Plot a sine wave and save it to the file x.png",
        "Create x.png with a red dot, then read x.png and print its size",
        "Export everything into a new file called x.png",
        "Put the curve in x.png",
        "Store the table in x.png",
    ] {
        check(task, &[("x.png", FileRole::Output)]);
    }
}

#[test]
fn inputs_and_outputs_in_one_sentence_are_distinguished() {
    check(
        "Read users.json and write the names to names.txt; convert a.csv to b.json.",
        &[
            ("users.json", FileRole::Input),
            ("names.txt", FileRole::Output),
            ("a.csv", FileRole::Input),
            ("b.json", FileRole::Output),
        ],
    );
    check("users.json: print the names", &[("users.json", FileRole::Unsaid)]);
}

#[test]
fn words_that_are_not_data_files_are_ignored() {
    for task in [
        "Print pi as 3.14, e.g. with math.pi, using numpy.array and Node.js",
        "Print the .json files",
        "List *.csv",
        "Fetch https://example.com/data.csv",
        "Print hello.",
    ] {
        check(task, &[]);
    }
}

#[test]
fn a_task_that_requests_sample_data_is_recognised() {
    for (task, asks) in [
        ("Read users.json; if it does not exist, create it", true),
        ("Generate sample data in users.json and read it", true),
        ("Use mock users.json", true),
        ("Read the sample data from users.json", false),
        ("Read users.json", false),
    ] {
        assert_eq!(asks_for_made_up_data(task), asks, "{task}");
    }
}
