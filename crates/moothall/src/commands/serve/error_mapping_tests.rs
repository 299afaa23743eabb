use std::path::PathBuf;

use super::*;

/// Regression: token holders saw local paths in causes, messages and hints.
#[test]
fn causes_and_paths_are_for_the_user_of_the_machine_and_for_nobody_else() {
    let told = |causes: ErrorDisclosure| {
        let cause = std::io::Error::other("/home/ada/secret/plan.db is locked");
        let error = CliError::failed("/home/ada/secret/runs cannot be read")
            .with_hint("move `/home/ada/secret/plan.db` away")
            .with_source(cause);
        let problem = causes.problem(&error);
        (problem.detail, problem.hint.unwrap())
    };
    let veil = PathRedactor::over([PathBuf::from("/home/ada")]);
    assert_eq!(
        told(ErrorDisclosure::Logged(veil)),
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
