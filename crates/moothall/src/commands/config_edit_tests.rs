use super::*;

fn answers() -> InitAnswers {
    InitAnswers {
        model: Some("local/qwen3".parse().unwrap()),
        server: Some(OwnServer {
            base_url: "http://127.0.0.1:8080/v1".to_owned(),
            context: Some(8192),
            is_free: true,
        }),
        contact: Some("ada@example.com".to_owned()),
    }
}

#[track_caller]
fn check(before: &str, answers: &InitAnswers, after: &str, lines: &[&str]) {
    let written = with(before, answers).unwrap();
    assert_eq!(written, after);
    assert_eq!(files::line_difference(before, &written), lines);
    toml::from_str::<Config>(&written).unwrap();
}

#[test]
fn a_new_configuration_file_contains_only_the_answers() {
    check(
        "",
        &answers(),
        "model = \"local/qwen3\"\n\n[provider.local]\nbase_url = \"http://127.0.0.1:8080/v1\"\ncontext = 8192\nprice_input = \"0\"\nprice_output = \"0\"\n\n\
         [evidence]\ncontact = \"ada@example.com\"\n",
        &[
            "+ model = \"local/qwen3\"",
            "+ ",
            "+ [provider.local]",
            "+ base_url = \"http://127.0.0.1:8080/v1\"",
            "+ context = 8192",
            "+ price_input = \"0\"",
            "+ price_output = \"0\"",
            "+ ",
            "+ [evidence]",
            "+ contact = \"ada@example.com\"",
        ],
    );
    check("", &InitAnswers::default(), "", &[]);
}

#[test]
fn existing_settings_and_comments_are_kept() {
    let before = "# mine\nmodel = \"demo\"\n\n[evidence]\n# work\ncontact = \"bob@example.com\"\n\n\
                  [budget]\ntokens = 8000 # enough\n";
    let changed = InitAnswers { model: None, server: None, ..answers() };
    check(
        before,
        &changed,
        &before.replace("bob@", "ada@"),
        &["- contact = \"bob@example.com\"", "+ contact = \"ada@example.com\""],
    );
    check(before, &InitAnswers::default(), before, &[]);
}

#[test]
fn repeating_the_same_answers_changes_nothing() {
    let once = with("", &answers()).unwrap();
    check(&once, &answers(), &once, &[]);
}

#[test]
fn a_context_window_is_added_to_the_section_of_its_provider() {
    let changed = |before| with_window(before, "lab", "http://127.0.0.1:1/v1", 4096);
    assert_eq!(
        changed("model = \"demo\" # for now\n").unwrap(),
        "model = \"demo\" # for now\n\n[provider.lab]\n\
         base_url = \"http://127.0.0.1:1/v1\"\ncontext = 4096\n"
    );
    let other = "[provider.lab]\nbase_url = \"http://10.0.0.1/v1\"\ncontext = 2048 # old\n";
    assert_eq!(
        changed(other).unwrap(),
        "[provider.lab]\nbase_url = \"http://10.0.0.1/v1\"\ncontext = 4096\n"
    );
}
