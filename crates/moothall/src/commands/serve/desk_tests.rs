use super::*;

/// Paths of the machine came to whoever had a token, as causes of what failed.
#[test]
fn causes_are_for_the_user_of_the_machine_and_for_nobody_else() {
    let failed = || {
        let cause = std::io::Error::other("/home/ada/secret/plan.db is locked");
        CliError::failed("the runs cannot be read").with_source(cause)
    };
    let told = |causes| problem(failed(), causes).detail;
    assert_eq!(told(Causes::Logged), "the runs cannot be read");
    assert_eq!(told(Causes::Told), "the runs cannot be read: /home/ada/secret/plan.db is locked");
}
