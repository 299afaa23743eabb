use std::path::PathBuf;

use super::*;

/// Regression: token holders saw local paths in causes, messages and hints.
#[test]
fn error_causes_and_paths_are_shown_only_to_the_local_user() {
    let told = |causes: ErrorDisclosure| {
        let cause = std::io::Error::other("/home/ada/secret/plan.db is locked");
        let error = CliError::failed("/home/ada/secret/runs cannot be read")
            .with_hint("move `/home/ada/secret/plan.db` away")
            .with_source(cause);
        let problem = causes.problem(&error);
        (problem.detail, problem.hint.unwrap())
    };
    let redactor = PathRedactor::from_paths([PathBuf::from("/home/ada")]);
    assert_eq!(
        told(ErrorDisclosure::Logged(redactor)),
        ("… cannot be read".to_owned(), "move `…` away".to_owned())
    );
    assert_eq!(
        told(ErrorDisclosure::Told),
        (
            "/home/ada/secret/runs cannot be read: /home/ada/secret/plan.db is locked".to_owned(),
            "move `/home/ada/secret/plan.db` away".to_owned()
        )
    );
}
