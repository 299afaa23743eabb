use std::os::unix::ffi::OsStringExt as _;

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<&[(&str, &str)], &str>) {
    let found =
        EnvVars::from_dotenv(Path::new("etc/.env"), text).map_err(|error| error.to_string());
    assert_eq!(
        found,
        expected.map(|pairs| pairs.iter().copied().collect()).map_err(str::to_owned),
        "{text}"
    );
}

#[test]
fn a_dotenv_file_is_read_with_comments_quotes_and_export() {
    check(
        "# keys\nexport OPENAI_API_KEY=sk-1 # mine\n\nMOOTHALL_MODEL='a b'\r\nEMPTY=\n",
        Ok(&[("OPENAI_API_KEY", "sk-1"), ("MOOTHALL_MODEL", "a b"), ("EMPTY", "")]),
    );
    check("\u{feff}A=1", Ok(&[("A", "1")]));
    check("A=1 ", Ok(&[("A", "1")]));
    check("", Ok(&[]));
}

#[test]
fn the_last_of_two_equal_names_counts() {
    check("A=1\nA=2\n", Ok(&[("A", "2")]));
}

#[test]
fn an_invalid_dotenv_line_is_reported_by_number_without_its_text() {
    check("A=1\nsk-secret\n", Err("etc/.env:2: expected `NAME=value`"));
    check("A=1\nB='sk-secret\nC=2\n", Err("etc/.env:2: expected `NAME=value`"));
}

#[test]
fn only_variables_that_locate_our_files_must_be_valid_unicode() {
    let bytes = || OsString::from_vec(vec![b'/', 0xff]);
    let read = |name: &str| {
        EnvVars::from_os([(OsString::from(name), bytes())].into_iter())
            .map_err(|error| error.to_string())
    };
    assert_eq!(read("OTHER"), Ok([("OTHER", "/\u{fffd}")].into_iter().collect()));
    for name in ["MOOTHALL_CONFIG", "XDG_DATA_HOME", "HOME"] {
        assert_eq!(
            read(name),
            Err(format!("the environment variable `{name}` is not valid UTF-8"))
        );
    }
}

#[test]
fn debug_output_shows_names_and_no_values() {
    let environment: EnvVars = [("OPENAI_API_KEY", "sk-1")].into_iter().collect();
    assert_eq!(format!("{environment:?}"), "{\"OPENAI_API_KEY\"}");
}
