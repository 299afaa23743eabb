use std::path::PathBuf;

use super::*;

/// Paths of the machine came to whoever had a token: as causes of what failed, in messages and in
/// hints.
#[test]
fn causes_and_paths_are_for_the_user_of_the_machine_and_for_nobody_else() {
    let told = |causes: Causes| {
        let cause = std::io::Error::other("/home/ada/secret/plan.db is locked");
        let error = CliError::failed("/home/ada/secret/runs cannot be read")
            .with_hint("move `/home/ada/secret/plan.db` away")
            .with_source(cause);
        let problem = causes.problem(&error);
        (problem.detail, problem.hint.unwrap())
    };
    let veil = Veil::over([PathBuf::from("/home/ada")]);
    assert_eq!(
        told(Causes::Logged(veil)),
        ("… cannot be read".to_owned(), "move `…` away".to_owned())
    );
    assert_eq!(
        told(Causes::Told),
        (
            "/home/ada/secret/runs cannot be read: /home/ada/secret/plan.db is locked".to_owned(),
            "move `/home/ada/secret/plan.db` away".to_owned()
        )
    );
}
