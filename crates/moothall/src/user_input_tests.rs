use super::*;

fn written(name: &str, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs_err::write(&path, text).unwrap();
    (folder, path)
}

fn titles(name: &str, text: &str) -> Result<Vec<String>, String> {
    let (_folder, path) = written(name, text);
    let shown = path.display().to_string();
    match moves(&path) {
        Ok(moves) => Ok(moves.into_iter().map(|one| one.title).collect()),
        Err(error) => Err(error.full_message().replace(&shown, "FILE")),
    }
}

#[test]
fn user_moves_are_parsed_in_every_supported_format() {
    let single = "title = \"A\"\nthesis = \"a.\"\n";
    assert_eq!(titles("m.toml", single).unwrap(), ["A"]);
    let list =
        "[[moves]]\ntitle = \"A\"\nthesis = \"a.\"\n[[moves]]\ntitle = \"B\"\nthesis = \"b.\"\n";
    assert_eq!(titles("m.toml", list).unwrap(), ["A", "B"]);
    assert_eq!(titles("m.json", r#"{"title": "A", "thesis": "a."}"#).unwrap(), ["A"]);
    assert_eq!(titles("m.json", r#"[{"title": "A", "thesis": "a."}]"#).unwrap(), ["A"]);
    assert_eq!(titles("m.json", r#"{"moves": [{"title": "A", "thesis": "a."}]}"#).unwrap(), ["A"]);
}

#[test]
fn mistakes_in_a_move_file_are_reported_with_their_location() {
    let refused = |name: &str, text: &str| titles(name, text).unwrap_err();
    assert_eq!(refused("m.toml", "title = \"A\"\n"), "FILE: missing field `thesis`");
    assert_eq!(
        refused("m.json", r#"[{"title": "A", "thesis": "a."}, {"title": "", "thesis": "b."}]"#),
        "FILE: move 2: `title` is empty"
    );
    assert_eq!(refused("m.json", "[]"), "FILE: no moves found");
    assert_eq!(refused("m.toml", "moves = 3\n"), "FILE: `moves` must be a list");
    assert_eq!(
        refused("m.toml", "by = \"x\"\n[[moves]]\ntitle = \"A\"\nthesis = \"a.\"\n"),
        "FILE: unexpected key `by` next to `moves`"
    );
    assert!(refused("m.toml", "title = \"A").starts_with("FILE is not valid TOML: "));
    assert!(refused("m.json", "{").starts_with("FILE is not valid JSON: "));
    let many = vec![r#"{"title": "A", "thesis": "a."}"#; 16].join(",");
    assert_eq!(refused("m.json", &format!("[{many}]")), "FILE: too many moves: 16 (limit: 15)");
}

#[test]
fn the_brief_may_be_a_text_or_a_file() {
    let (_folder, path) = written("brief.md", "Shall we grow?\r\nNot with debt.\n");
    assert_eq!(brief(path.to_str().unwrap()).unwrap(), "Shall we grow?\nNot with debt.");
    assert_eq!(brief(" Shall we grow? ").unwrap(), "Shall we grow?");
    assert_eq!(brief("missing.md").unwrap_err().full_message(), "no file `missing.md`");
}

#[test]
fn a_rendered_move_file_is_parsed_back_as_the_same_move() {
    let (_folder, path) = written(
        "m.json",
        r#"{"title": "A \"quoted\" one", "thesis": "a.", "actions": ["x", "y"], "cost": "3"}"#,
    );
    let (first, unsealed) = one_move(&path).unwrap();
    assert_eq!(unsealed, None);
    let seal = Sha256Hex::of(b"as it was");
    let file = render_move_file("m1\nby analyst_1", &first, &seal).unwrap();
    let (_folder, again) = written("m.toml", &file);
    assert_eq!(one_move(&again).unwrap(), (first, Some(seal)));
    let (_folder, broken) = written("m.toml", &file.replace(&seal.to_string(), "mine"));
    assert!(one_move(&broken).unwrap_err().message.contains("`seal` must be 64 lowercase hex"));
}
