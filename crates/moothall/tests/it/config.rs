use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::{World, set_mode};

/// A world in which every layer sets a value.
fn layered() -> World {
    let world = World::new()
        .with("MOOTHALL_BUDGET__USD", "0.50")
        .with("MOOTHALL_PROVIDER__LAB__CONCURRENT", "3");
    world.write(
        "moothall.toml",
        "model = \"openai/from-file\"\n\
         [budget]\nusd = 2.5\ntokens = 1000\n\
         [retry]\nretries = 1\n\
         [provider.lab]\nbase_url = \"http://127.0.0.1:8080/v1\"\nkey_file = \"lab.key\"\n",
    );
    world.write(
        ".env",
        "MOOTHALL_BUDGET__TOKENS=2000\nMOOTHALL_BUDGET__USD=1\nGROQ_API_KEY=secret-of-groq\n",
    );
    world
}

#[test]
fn show_names_the_origin_of_every_value() {
    let ran = layered().run(&["config", "show"]);
    assert!(!ran.stdout.contains("secret-of-groq"), "{ran}");
    assert_snapshot!(ran);
}

#[test]
fn show_prints_a_file_that_can_be_used() {
    let world = layered();
    let shown = world.run(&["config", "show"]).stdout;
    let other = World::new();
    other.write("moothall.toml", &shown);
    let values = |world: &World| -> Vec<Value> {
        let entries = world.run(&["config", "show", "--json"]).json();
        let entries = entries.as_array().unwrap().clone();
        entries.into_iter().map(|entry| json!([entry["key"], entry["value"]])).collect()
    };
    let key_file = |values: Vec<Value>| -> Vec<Value> {
        values.into_iter().filter(|value| value[0] != "provider.lab.key_file").collect()
    };
    assert_eq!(key_file(values(&other)), key_file(values(&world)));
}

#[test]
fn show_prints_the_same_as_json() {
    let entries = layered().run(&["config", "show", "--json"]).json();
    let of = |key: &str| {
        let entry = entries.as_array().unwrap().iter().find(|entry| entry["key"] == key);
        entry.map(|entry| json!([entry["value"], entry["origin"]])).unwrap_or_default()
    };
    let file = |line: u32| json!({"from": "file", "path": "moothall.toml", "line": line});
    assert_eq!(of("model"), json!(["openai/from-file", file(1)]));
    assert_eq!(
        of("budget.usd"),
        json!(["0.50", {"from": "environment", "name": "MOOTHALL_BUDGET__USD"}])
    );
    assert_eq!(
        of("budget.tokens"),
        json!([2000, {"from": "dot-env", "name": "MOOTHALL_BUDGET__TOKENS"}])
    );
    assert_eq!(of("retry.first_delay"), json!(["500ms", {"from": "default"}]));
    assert_eq!(of("provider.lab.base_url"), json!(["http://127.0.0.1:8080/v1", file(8)]));
}

#[test]
fn file_of_the_working_folder_beats_the_one_of_the_config_folder() {
    let world = World::new();
    world.write_config("moothall.toml", "model = \"openai/users\"\n");
    let model = |world: &World, more: &[&str]| {
        let entries = world.run(&[&["config", "show", "--json"], more].concat()).json();
        entries[0]["value"].clone()
    };
    assert_eq!(model(&world, &[]), "openai/users");
    world.write("moothall.toml", "model = \"openai/folders\"\n");
    assert_eq!(model(&world, &[]), "openai/folders");
    world.write("other.toml", "model = \"openai/other\"\n");
    assert_eq!(model(&world, &["--config", "other.toml"]), "openai/other");
    world.write("third.toml", "model = \"openai/third\"\n");
    let world = world.with("MOOTHALL_CONFIG", "third.toml");
    assert_eq!(model(&world, &[]), "openai/third");
    assert_eq!(model(&world, &["--config", "other.toml"]), "openai/other");
}

#[test]
fn config_path_lists_every_location_and_whether_it_exists() {
    let world = World::new();
    let nothing = world.run(&["config", "path"]).to_string();
    world.write("moothall.toml", "");
    world.write_config("moothall.toml", "");
    world.write_config("keys.toml", "");
    let everything = world.run(&["config", "path"]).to_string();
    assert_snapshot!([nothing, everything].join("\n\n"));
    assert_snapshot!(world.run(&["config", "path", "--json"]));
}

#[test]
fn path_follows_the_data_folder_of_the_environment_and_of_dotenv() {
    // Regression: commands used the variable from `.env`, but none showed it.
    let world = World::new();
    world.write_config("moothall.toml", "");
    world.write_config(".env", "MOOTHALL_DATA_DIR=/from/dotenv\n");
    let folder = |world: &World| world.run(&["config", "path", "--json"]).json()["data"].clone();
    assert_eq!(folder(&world), "/from/dotenv");
    let world = world.with("MOOTHALL_DATA_DIR", "/from/environment");
    assert_eq!(folder(&world), "/from/environment");
}

#[test]
fn config_path_works_with_an_invalid_configuration_file() {
    let world = World::new();
    world.write("moothall.toml", "this is not toml");
    world.write(".env", "nor this a variable");
    let ran = world.run(&["config", "path"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.starts_with("config  moothall.toml (used)\n"), "{ran}");
}

#[test]
fn config_check_accepts_a_valid_configuration() {
    let world = layered();
    world.write("lab.key", "secret-of-lab\n");
    set_mode(&world.path("lab.key"), 0o600);
    let ran = world.run(&["config", "check"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "ok\n", ""));
    assert_eq!(
        world.run(&["config", "check", "--json"]).json(),
        json!({"ok": true, "problems": []})
    );
}

#[test]
fn config_check_reports_every_mistake_with_line_and_suggestion() {
    let world = World::new()
        .with("MOOTHALL_BUDGT__USD", "1")
        .with("MOOTHALL_LOG__LEVEL", "loud")
        .with("MOOTHALL_TEST_ANYTHING", "left alone");
    world.write(
        "moothall.toml",
        "modle = \"openai/m\"\n\
         [budget]\nusd = -3\n\
         [log]\nformat = \"jsn\"\n\
         [provider.opanai]\ntimeout = \"1m\"\n\
         [provider.openai]\napi_key = \"sk-in-the-wrong-place\"\nbase_url = \"https://user:pass@example.com\"\n",
    );
    world.write(".env", "MOOTHALL_RETRY__RETRYS=2\n");
    let ran = world.run(&["config", "check"]);
    for secret in ["sk-in-the-wrong-place", "user:pass"] {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran}");
    }
    assert_snapshot!(ran);
    assert_snapshot!(world.run(&["config", "check", "--json"]));
}

#[test]
fn other_commands_report_the_first_mistake_and_count_the_rest() {
    let world = World::new();
    world.write("moothall.toml", "modle = 1\n[budget]\nusd = -3\n[log]\nlevel = 5\n");
    let commands = [&["ask", "hello"][..], &["models"], &["config", "show"]];
    let runs = commands.map(|arguments| world.run(arguments).to_string());
    assert_snapshot!(runs.join("\n\n"));
}

#[test]
fn config_check_refuses_what_other_commands_refuse() {
    // Regression: keys and catalog were checked only after `ok` was printed.
    let world = World::new();
    world.write_config("keys.toml", "openai = sk-without-quotes\n");
    let ran = world.run(&["config", "check"]);
    assert!(
        !ran.stdout.contains("sk-without-quotes") && !ran.stderr.contains("sk-without"),
        "{ran}"
    );
    let keys = ran.to_string();
    world.write_config("keys.toml", "");
    world.write("moothall.toml", "catalog = \"missing.toml\"\n");
    let catalog = world.run(&["config", "check", "--json"]).to_string();
    assert_snapshot!([keys, catalog].join("\n\n"));
}

#[test]
fn a_missing_named_configuration_file_is_a_usage_error() {
    let world = World::new();
    let by_flag = world.run(&["ask", "--config", "missing.toml", "hello"]).to_string();
    let world = world.with("MOOTHALL_CONFIG", "missing.toml");
    let by_variable = world.run(&["models"]).to_string();
    assert_snapshot!([by_flag, by_variable].join("\n\n"));
}

#[test]
fn text_that_is_not_toml_is_a_usage_error_with_its_line() {
    let world = World::new();
    world.write("moothall.toml", "model = \"openai/m\"\n\n[budget\nusd = 1\n");
    assert_snapshot!(world.run(&["ask", "hello"]));
}

#[test]
fn a_keys_file_that_others_can_read_is_refused() {
    let world = World::new();
    world.write_config("keys.toml", "openai = \"sk-open-to-all\"\n");
    set_mode(&world.root().join("home/.config/moothall/keys.toml"), 0o644);
    let ran = world.run(&["ask", "--model", "openai/m", "hello"]);
    assert!(!ran.stderr.contains("sk-open-to-all"), "{ran}");
    assert_snapshot!(ran);
}

/// Regression: a variable of another version or program stopped every command.
#[test]
fn unknown_environment_variable_is_a_warning_and_the_command_runs() {
    let world = World::new().with("MOOTHALL_BUDGT__USD", "5");
    for arguments in [&["models"][..], &["config", "show"], &["policy", "check"]] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran}");
        let warning = "warning: unknown environment variable `MOOTHALL_BUDGT__USD`\n\
                       hint: did you mean `MOOTHALL_BUDGET__USD`?\n";
        assert!(ran.stderr.starts_with(warning), "{ran}");
    }
    // `config check` reports it as a problem.
    assert_eq!(world.run(&["config", "check"]).code, Some(2));
}
