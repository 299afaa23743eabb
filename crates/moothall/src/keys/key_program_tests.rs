use super::*;

const KEY: &str = "sk-of-the-password-manager";

fn settings() -> ProviderSettings {
    ProviderSettings {
        key_command_shell: Some(true),
        key_command_timeout: Some(Duration::from_secs(60)),
        ..ProviderSettings::default()
    }
}

fn program(command: &str, settings: &ProviderSettings) -> KeyProgram {
    let setting = "provider.lab.key_command".to_owned();
    KeyProgram::new(setting, command, settings, vec!["HIDDEN_API_KEY".to_owned()]).unwrap()
}

#[track_caller]
fn check(got: Result<ApiKey, String>, expected: Result<&str, &str>) {
    let got = got.as_ref().map(ApiKey::expose).map_err(String::as_str);
    assert_eq!(got, expected);
}

#[tokio::test]
async fn the_output_of_a_key_command_is_the_key() {
    let no_shell = ProviderSettings { key_command_shell: None, ..settings() };
    check(program(&format!("echo '{KEY}'"), &no_shell).run().await, Ok(KEY));
    check(program(&format!("printf '\\n %s \\n' {KEY}"), &settings()).run().await, Ok(KEY));
    // JSON of `aws configure export-credentials`.
    let json = r#"printf '{\n "AccessKeyId": "ASIA",\n "SecretAccessKey": "s"\n}\n'"#;
    check(program(json, &settings()).run().await, Ok("ASIA:s"));
}

#[tokio::test]
async fn a_key_command_runs_without_a_shell_unless_configured() {
    let no_shell = ProviderSettings { key_command_shell: None, ..settings() };
    check(program("echo $HOME;id", &no_shell).run().await, Ok("$HOME;id"));
    check(program("echo \"a'b\" | tr -d \"'\"", &settings()).run().await, Ok("ab"));
    for command in ["", "  ", "'unclosed"] {
        let error = KeyProgram::new("s".to_owned(), command, &no_shell, Vec::new()).unwrap_err();
        assert_eq!(error.message, "`s` is not a command");
    }
}

#[tokio::test]
async fn a_failed_key_command_shows_one_bounded_line_of_its_errors() {
    let run = async |command: &str| program(command, &settings()).run().await;
    check(
        run("echo first >&2; echo 'not signed in' >&2; exit 3").await,
        Err("`provider.lab.key_command` failed with exit code 3: not signed in"),
    );
    check(run("exit 1").await, Err("`provider.lab.key_command` failed with exit code 1"));
    check(run("kill -9 $$").await, Err("`provider.lab.key_command` was ended by a signal"));
    check(run("true").await, Err("`provider.lab.key_command` printed nothing"));
    let missing = ProviderSettings { key_command_shell: None, ..settings() };
    check(
        program("/no/such/program", &missing).run().await,
        Err("`provider.lab.key_command` cannot be started: entity not found"),
    );
    let long = run("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1").await.unwrap_err();
    assert!(long.len() < 300, "{long}");
}

#[tokio::test]
async fn a_key_command_never_shows_what_it_printed() {
    let both = format!("echo {KEY}; echo 'cannot copy {KEY}' >&2; exit 1");
    check(
        program(&both, &settings()).run().await,
        Err("`provider.lab.key_command` failed with exit code 1: cannot copy ***"),
    );
    let two_lines = format!("echo {KEY}; echo {KEY}");
    let error = program(&two_lines, &settings()).run().await.unwrap_err();
    assert!(error.contains("contains a space") && !error.contains(KEY), "{error}");
}

#[tokio::test]
async fn a_key_command_that_hangs_is_stopped() {
    let impatient = ProviderSettings {
        key_command_timeout: Some(Duration::from_millis(500)),
        key_command_shell: None,
        ..settings()
    };
    check(
        program("sleep 600", &impatient).run().await,
        Err("`provider.lab.key_command` did not finish within 500ms"),
    );
}

#[tokio::test]
async fn a_key_command_with_huge_output_is_stopped() {
    // It would never end.
    let no_shell = ProviderSettings { key_command_shell: None, ..settings() };
    check(
        program("yes sk-1", &no_shell).run().await,
        Err("`provider.lab.key_command` printed more than 64 KiB"),
    );
}
