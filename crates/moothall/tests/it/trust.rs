//! A `moothall.toml` in the working directory is untrusted: it must not redirect the user's API
//! keys.

use insta::assert_snapshot;

use crate::fake::Fake;
use crate::world::World;

const KEY: &str = "sk-of-the-user";
const ASK: [&str; 4] = ["ask", "--model", "openai/m", "hello"];

/// A directory whose file sends OpenAI calls to the fake provider, and a user with a key.
fn folder(fake: &Fake) -> World {
    let world = World::new().with("OPENAI_API_KEY", KEY);
    world.write("moothall.toml", &format!("[provider.openai]\nbase_url = \"{}\"\n", fake.url()));
    world
}

/// The key sent with the only call.
fn key_sent(fake: &Fake) -> Option<String> {
    let calls = fake.calls();
    assert_eq!(calls.len(), 1);
    calls[0].header("authorization").map(str::to_owned)
}

#[test]
fn a_working_directory_cannot_send_the_api_key_to_another_url() {
    let fake = Fake::saying("thank you for the key");
    let world = folder(&fake);
    assert_snapshot!(world.run(&ASK));
    for arguments in [&["models", "--check", "openai/m"][..], &["ask", "hello"]] {
        let ran = world.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    }
    assert_eq!(fake.stats().received, 0);
}

#[test]
fn a_working_directory_cannot_send_the_api_key_to_another_machine() {
    let world = World::new().with("OPENAI_API_KEY", KEY);
    for url in ["https://collector.example/v1", "http://collector.example/v1"] {
        world.write("moothall.toml", &format!("[provider.openai]\nbase_url = \"{url}\"\n"));
        let ran = world.run(&ASK);
        assert_eq!(ran.code, Some(2), "{ran}");
        let words = format!("redirects your API key for openai: OPENAI_API_KEY to {url}\n");
        assert!(ran.stderr.contains(&words), "{ran}");
    }
}

#[test]
fn a_working_directory_cannot_redirect_the_api_key_with_dotenv() {
    let fake = Fake::saying("thank you for the key");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    world.write("moothall.toml", "");
    world.write(".env", &format!("MOOTHALL_PROVIDER__OPENAI__BASE_URL={}\n", fake.url()));
    assert_eq!(world.run(&ASK).code, Some(2));
    assert_eq!(fake.stats().received, 0);
}

#[test]
fn a_working_directory_cannot_redirect_the_api_key_with_a_catalog() {
    // Regression: a catalog entry could redirect any key.
    let fake = Fake::saying("thank you for the key");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    let row = format!(
        "[provider.openai]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nkey_env = [\"OPENAI_API_KEY\"]\n",
        fake.url()
    );
    world.write("rows.toml", &row);
    world.write("moothall.toml", "catalog = \"rows.toml\"\n");
    assert_snapshot!(world.run(&ASK));
    assert_eq!(fake.stats().received, 0);
}

#[test]
fn a_working_directory_cannot_read_other_secrets_of_the_user() {
    let fake = Fake::saying("thank you for the secret");
    let world = World::new().with("DATABASE_PASSWORD", KEY);
    let url = fake.url();
    let section =
        format!("[provider.lab]\nbase_url = \"{url}\"\nkey_env = \"DATABASE_PASSWORD\"\n");
    let row = format!(
        "[provider.lab]\nwire = \"openai-chat\"\nbase_url = \"{url}\"\nkey_env = [\"DATABASE_PASSWORD\"]\n"
    );
    let key_file = format!(
        "[provider.lab]\nbase_url = \"{url}\"\nkey_file = \"{}\"\n",
        world.root().join("home/.config/moothall/keys.toml").display()
    );
    world.write_config("keys.toml", &format!("# {KEY}\n"));
    world.write("rows.toml", &row);
    for file in [section.as_str(), "catalog = \"rows.toml\"\n", &key_file] {
        world.write("moothall.toml", file);
        let ran = world.run(&["ask", "--model", "lab/m", "hello"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{file}\n{ran}");
        assert!(!ran.stderr.contains(KEY), "{ran}");
    }
    assert_eq!(fake.stats().received, 0);
}

#[test]
fn a_configuration_file_named_by_the_user_is_trusted() {
    let fake = Fake::saying("fine");
    let world = folder(&fake);
    let ran = world.run(&["ask", "--config", "moothall.toml", "--model", "openai/m", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fine\n"), "{ran}");
    assert_eq!(key_sent(&fake), Some(format!("Bearer {KEY}")));
}

#[test]
fn a_configuration_file_in_the_users_config_directory_is_trusted() {
    let fake = Fake::saying("fine");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    let file = format!("[provider.openai]\nbase_url = \"{}\"\n", fake.url());
    world.write_config("moothall.toml", &file);
    assert_eq!(world.run(&ASK).code, Some(0));
    assert_eq!(key_sent(&fake), Some(format!("Bearer {KEY}")));
}

#[test]
fn a_base_url_set_by_the_user_is_trusted() {
    let fake = Fake::saying("fine");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    // The user's settings override those of the directory.
    world
        .write("moothall.toml", "[provider.openai]\nbase_url = \"https://collector.example/v1\"\n");
    let url = fake.url();
    let ran = world.run(&[&ASK[..], &["--base-url", &url]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(key_sent(&fake), Some(format!("Bearer {KEY}")));
}

#[test]
fn an_api_key_of_the_working_directory_may_be_sent_to_its_url() {
    let fake = Fake::saying("fine");
    let mut world = folder(&fake);
    world.set("OPENAI_API_KEY", "");
    world.write(".env", "OPENAI_API_KEY=sk-of-the-folder\n");
    let ran = world.run(&ASK);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(key_sent(&fake), Some("Bearer sk-of-the-folder".to_owned()));
}

#[test]
fn a_working_directory_may_set_a_url_if_no_api_key_is_sent() {
    let fake = Fake::saying("fine");
    let mut world = folder(&fake);
    world.set("OPENAI_API_KEY", "");
    let ran = world.run(&ASK);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(key_sent(&fake), None);
}

#[test]
fn a_working_directory_may_provide_a_catalog_of_models_and_prices() {
    let fake = Fake::saying("fine");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    world.write(
        "rows.toml",
        "[model.\"openai/m\"]\nprice = { input = \"1.00\", output = \"1.00\" }\n",
    );
    world.write("moothall.toml", "catalog = \"rows.toml\"\n");
    let url = fake.url();
    let ran = world.run(&[&ASK[..], &["--base-url", &url, "--budget", "1"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
}

#[test]
fn an_api_key_is_never_sent_to_another_machine_without_tls() {
    let world = World::new().with("OPENAI_API_KEY", KEY).with("MOOTHALL_RETRY__RETRIES", "0");
    let url = "http://collector.example/v1";
    assert_snapshot!(world.run(&[&ASK[..], &["--base-url", url]].concat()));
}
