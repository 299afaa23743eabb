//! `moothall team` and `moothall token`.

use insta::assert_snapshot;
use serde_json::json;

use crate::world::World;

#[test]
fn help_of_token_and_team_shows_their_commands() {
    let world = World::new();
    let pages = [
        &["token", "--help"][..],
        &["token", "create", "--help"],
        &["token", "list", "--help"],
        &["token", "revoke", "--help"],
        &["team", "--help"],
        &["team", "create", "--help"],
        &["team", "list", "--help"],
    ]
    .map(|arguments| world.run(arguments).to_string());
    assert_snapshot!(pages.join("\n\n"));
}

#[test]
fn token_is_shown_once_and_only_its_hash_is_kept() {
    let world = World::new();
    let made = world.run(&["token", "create", "--scope", "run,review", "--spend", "20"]);
    assert_eq!(made.code, Some(0), "{made}");
    let token = made.stdout.trim_end();
    assert!(token.starts_with("moot_") && token.len() == 69, "{made}");
    assert!(!made.stderr.contains(token), "{made}");
    let mut files = Vec::new();
    for file in fs_err::read_dir(world.root().join("home/.local/share/moothall")).unwrap() {
        files.push(fs_err::read(file.unwrap().path()).unwrap());
    }
    assert!(!files.is_empty());
    for bytes in files {
        assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()));
    }
    let listed = world.run(&["token", "list"]);
    assert!(!listed.stdout.contains(token), "{listed}");
    let listed = world.run(&["token", "list", "--json"]).json();
    let one = &listed["tokens"][0];
    assert_eq!(
        [&one["scopes"], &one["state"], &one["limits"], &one["team"], &one["last_used_at_ms"]],
        [
            &json!("run,review"),
            &json!("active"),
            &json!({"runs_at_once": 4, "usd_a_day": 20_000_000, "requests_a_minute": 600}),
            &json!("local"),
            &json!(null),
        ]
    );
    let lives_ms = one["expires_at_ms"].as_u64().unwrap() - one["created_at_ms"].as_u64().unwrap();
    assert_eq!(lives_ms, 90 * 24 * 60 * 60 * 1_000);
}

#[test]
fn token_is_taken_back_by_its_id() {
    let world = World::new();
    let made = world.run(&["token", "create", "--expires", "never", "--json"]).json();
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["expires_at_ms"], json!(null));
    let revoked = world.run(&["token", "revoke", id]);
    assert_eq!((revoked.code, revoked.stdout), (Some(0), format!("token {id} is revoked\n")));
    let listed = world.run(&["token", "list", "--json"]).json();
    assert_eq!(listed["tokens"][0]["state"], "revoked");
    assert_snapshot!(world.run(&["token", "revoke", "000000000000"]));
    // A secret passed instead of an id is not printed.
    let secret = made["token"].as_str().unwrap();
    let pasted = world.run(&["token", "revoke", secret]);
    assert!(!pasted.stdout.contains(secret) && !pasted.stderr.contains(secret));
    assert_snapshot!(pasted.stderr, @r"
    error: not a valid token id: expected 12 lowercase hexadecimal digits
    hint: see `moothall token list`
    ");
}

#[test]
fn team_names_are_validated_and_teams_have_their_own_tokens() {
    let world = World::new();
    assert_snapshot!(world.run(&["token", "list"]));
    assert_snapshot!(world.run(&["token", "create", "--team", "research"]));
    assert_snapshot!(world.run(&["team", "create", "research"]));
    assert_snapshot!(world.run(&["team", "create", "research"]));
    assert_snapshot!(world.run(&["team", "create", "Research Team"]));
    assert_snapshot!(world.run(&["token", "create", "--scope", "all"]));
    assert_snapshot!(world.run(&["token", "create", "--expires", "soon"]));
    world.run(&["token", "create", "--team", "research", "--label", "\u{1b}[2J screen"]);
    let listed = world.run(&["token", "list", "--team", "research"]);
    assert!(listed.stdout.contains("\u{fffd}[2J screen"), "{listed}");
    assert_eq!(world.run(&["token", "list", "--team", "local"]).stdout, "no tokens\n");
    let teams = world.run(&["team", "list", "--json"]).json();
    assert_eq!([&teams["teams"][0]["team"], &teams["teams"][1]["team"]], ["local", "research"]);
}
