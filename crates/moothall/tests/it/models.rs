use insta::assert_snapshot;
use moothall_testkit::{ProviderBehaviour, ProviderFault, ReplyUsage};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::init::model_server;
use crate::world::World;

const KEY: &str = "sk-this-is-the-key";

#[test]
fn table_shows_prices_windows_and_how_to_give_a_key() {
    assert_snapshot!(World::new().run(&["models"]));
}

#[test]
fn json_lists_the_providers_with_their_models() {
    let ran = World::new().run(&["models", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let report = ran.json();
    let providers = report["providers"].as_array().unwrap();
    let names: Vec<&str> = providers.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 13, "{names:?}");
    for provider in providers {
        assert_eq!(provider["key_present"], false);
        let Some(default) = provider["default_model"].as_str() else { continue };
        let default = format!("{}/{default}", provider["name"].as_str().unwrap());
        let models = provider["models"].as_array().unwrap();
        assert!(models.iter().any(|model| model["model"] == *default), "{default}");
    }
}

#[test]
fn json_of_one_provider_has_every_field() {
    assert_snapshot!(World::new().run(&["models", "groq", "--json"]));
}

#[test]
fn one_provider_is_shown_alone() {
    assert_snapshot!(World::new().run(&["models", "groq"]));
}

#[test]
fn unknown_provider_is_a_usage_error_that_names_the_known_ones() {
    assert_snapshot!(World::new().run(&["models", "acme"]));
}

#[test]
fn source_of_a_key_is_shown_and_never_the_key() {
    let world = World::new().with("OPENAI_API_KEY", KEY);
    world.write("moothall.toml", "[provider.lab]\nbase_url = \"http://127.0.0.1:8080/v1\"\n");
    world.write(".env", &format!("GROQ_API_KEY={KEY}\n"));
    world.write_config("keys.toml", &format!("anthropic = \"{KEY}\"\n"));
    let table = world.run(&["models"]);
    let listing = world.run(&["models", "--json"]);
    for ran in [&table, &listing] {
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran}");
    }
    let sources: Vec<Value> = listing.json()["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["name"], row["key_present"], row["needs_key"], row["key_source"]]))
        .collect();
    let keys_file = world.root().join("home/.config/moothall/keys.toml");
    assert_eq!(
        sources,
        [
            json!(["anthropic", true, true, keys_file]),
            json!(["azure", false, true, null]),
            json!(["bedrock", false, true, null]),
            json!(["bedrock-claude", false, true, null]),
            json!(["google", false, true, null]),
            json!(["groq", true, true, "GROQ_API_KEY in .env"]),
            json!(["lab", false, false, null]),
            json!(["lmstudio", false, false, null]),
            json!(["mistral", false, true, null]),
            json!(["ollama", false, false, null]),
            json!(["openai", true, true, "OPENAI_API_KEY"]),
            json!(["openrouter", false, true, null]),
            json!(["vertex", false, true, null]),
            json!(["vllm", false, false, null]),
        ]
    );
    let heads = table.stdout.lines().filter(|line| line.contains("key"));
    let shown = heads.map(|line| format!("{line}\n")).collect::<String>();
    assert_snapshot!(shown.replace(&*world.root().to_string_lossy(), "[FOLDER]"));
}

#[test]
fn catalog_of_the_users_own_adds_and_replaces_rows() {
    let world = World::new();
    world.write(
        "prices.toml",
        "dated = \"2027-01-01\"\n\
         [model.\"groq/openai/gpt-oss-20b\"]\nprice = { input = \"9.00\", output = \"9.99\" }\n\
         [model.\"groq/brand-new\"]\ncontext = 8192\n",
    );
    world.write("moothall.toml", "catalog = \"prices.toml\"\n");
    assert_snapshot!(world.run(&["models", "groq"]));
}

#[test]
fn catalog_that_cannot_be_used_is_a_usage_error_that_names_the_file() {
    let world = World::new();
    world.write("prices.toml", "[model.\"groq/brand-new\"]\nwindow = 8192\n");
    world.write("moothall.toml", "catalog = \"prices.toml\"\n");
    assert_snapshot!(world.run(&["models", "groq"]));
    world.write("moothall.toml", "catalog = \"missing.toml\"\n");
    assert_snapshot!(world.run(&["models", "groq"]));
}

#[test]
fn catalog_text_is_sanitized_for_the_terminal() {
    let world = World::new();
    world.write(
        "prices.toml",
        "dated = \"to\\u001b[2Jday\"\n\
         [provider.\"e\\u001b[8mvil\"]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\nkey_env = [\"E\\u001b[8mVIL\"]\n",
    );
    world.write("moothall.toml", "catalog = \"prices.toml\"\n");
    let ran = world.run(&["models", "--color", "always"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(!ran.stdout.contains("\u{1b}[2J") && !ran.stdout.contains("\u{1b}[8m"), "{ran}");
}

#[test]
fn a_model_check_makes_one_small_call_and_prints_its_cost() {
    let fake = Fake::start();
    let usage = ReplyUsage { input: 20, output: 1, ..ReplyUsage::ZERO };
    fake.always(ProviderBehaviour::text("ok").with_usage(usage).with_model("gpt-4.1-mini-2025"));
    let world = World::new().with("OPENAI_API_KEY", KEY);
    let url = fake.url();
    let checked = ["models", "--check", "openai/gpt-4.1-mini", "--base-url", &url];
    let ran = world.run(&checked);
    assert_eq!(fake.stats().received, 1);
    assert_eq!(fake.calls()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_snapshot!(ran);
    assert_snapshot!(world.run(&[&checked[..], &["--json"]].concat()));
}

#[test]
fn a_model_check_without_a_name_calls_the_default_model() {
    let fake = Fake::saying("ok");
    let world = World::new().with("GROQ_API_KEY", KEY);
    fake.configure(&world, "");
    let ran = world.run(&["models", "--config", "fake.toml", "--check"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(fake.calls()[0].model, "openai/gpt-oss-20b");
}

#[test]
fn a_failed_model_check_prints_the_reason() {
    let fake = Fake::start();
    fake.always(ProviderFault::Unauthorized);
    let world = World::new().with("OPENAI_API_KEY", KEY);
    fake.configure(&world, "");
    let checked = ["models", "--config", "fake.toml", "--check", "openai/gpt-4.1-mini"];
    assert_snapshot!(world.run(&checked));
    assert_snapshot!(world.run(&[&checked[..], &["--json"]].concat()));
}

#[test]
fn a_failed_model_check_names_the_models_that_the_server_has() {
    let (world, server) = (World::new(), model_server());
    let file = format!("[provider.lab]\nbase_url = \"http://{server}/v1\"\n");
    world.write_config("moothall.toml", &file);
    let ran = world.run(&["models", "--check", "lab/tiny"]);
    let hint = "hint: tiny is not among the models of this server: small.gguf\n";
    assert!(ran.code == Some(4) && ran.stderr.ends_with(hint), "{ran}");
    let report = world.run(&["models", "--check", "lab/tiny", "--json"]).json();
    let expected = json!([{"name": "small.gguf", "context_tokens": 4096}]);
    assert_eq!(report["served_models"], expected, "{report}");
}

#[test]
fn a_model_check_saves_the_window_of_the_server() {
    let (world, server) = (World::new(), model_server());
    let file = format!("# mine\n[provider.lab]\nbase_url = \"http://{server}/v1\"\n");
    world.write("lab.toml", &file);
    // This server does not answer calls, which does not matter for its window.
    let save = ["models", "--config", "lab.toml", "--save", "--check"];
    let ran = world.run(&[&save[..], &["lab/small.gguf"]].concat());
    assert_eq!(ran.code, Some(4), "{ran}");
    assert_eq!(world.read("lab.toml"), format!("{file}context = 4096\n"));
    // The call is reported first.
    let ran = world.run(&[&save[..], &["lab/tiny"]].concat());
    let hint = "hint: tiny is not among the models of this server: small.gguf\n";
    assert!(ran.code == Some(4) && ran.stderr.ends_with(hint), "{ran}");
}

#[test]
fn a_model_check_saves_no_window_of_another_server_than_that_of_the_file() {
    let (world, server) = (World::new(), model_server());
    let file = "[provider.lab]\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    world.write("lab.toml", file);
    let other = format!("http://{server}/v1");
    let save = ["models", "--config", "lab.toml", "--save", "--check"];
    let ran = world.run(&[&save[..], &["lab/small.gguf", "--base-url", &other]].concat());
    assert_eq!(ran.code, Some(4), "{ran}");
    // The call failed, too, and neither hides the other.
    assert!(ran.stderr.contains("names another server for lab"), "{ran}");
    assert_eq!(world.read("lab.toml"), file);
}

#[test]
fn a_window_is_not_saved_without_an_own_server_that_lists_its_models() {
    let fake = Fake::saying("ok");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    let ran = world.run(&["models", "--save", "--check", "openai/gpt-4.1-mini"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("openai is not one"), "{ran}");
    let save = |url: &str| {
        world.write("lab.toml", &format!("[provider.lab]\nbase_url = \"{url}\"\n"));
        let ran = world.run(&["models", "--config", "lab.toml", "--save", "--check", "lab/tiny"]);
        assert_eq!(ran.code, Some(4), "{ran}");
        ran.stderr
    };
    assert!(save(&fake.url()).contains("states no context window"), "{}", save(&fake.url()));
    let closed = "http://127.0.0.1:9/v1";
    assert!(save(closed).contains("does not list its models"), "{}", save(closed));
}

#[test]
fn a_server_on_this_machine_with_a_price_is_not_called_free() {
    let world = World::new();
    let lab = "[provider.lab]\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    world.write_config("moothall.toml", lab);
    let listed = || world.run(&["models", "lab"]).stdout;
    assert!(listed().contains("any name works and is free"), "{}", listed());
    let priced = format!("{lab}price_input = \"0.20\"\nprice_output = \"0.40\"\n");
    world.write_config("moothall.toml", &priced);
    assert!(listed().contains("at the price of the configuration file"), "{}", listed());
}

/// Regression: the address in the `moothall.toml` of a cloned repository became the user's own.
#[test]
fn a_model_check_never_saves_the_address_of_an_untrusted_file() {
    let (world, server) = (World::new(), model_server());
    let config =
        format!("model = \"lab/small.gguf\"\n[provider.lab]\nbase_url = \"http://{server}/v1\"\n");
    world.write("moothall.toml", &config);
    let ran = world.run(&["models", "--check", "--save"]);
    assert!(ran.code.is_some_and(|code| code != 0), "{ran}");
    assert!(!world.root().join("home/.config/moothall/moothall.toml").exists());
    assert_eq!(world.read("moothall.toml"), config);
}

#[test]
fn a_base_url_without_a_model_to_check_is_a_usage_error() {
    // Regression: the URL was ignored, and the call went to the real provider.
    let fake = Fake::saying("ok");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    let url = fake.url();
    assert_snapshot!(world.run(&["models", "--check", "--base-url", &url]));
    assert_eq!(world.run(&["models", "--base-url", &url]).code, Some(2));
    assert_eq!(fake.stats().received, 0);
}
