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
        Err(error) => Err(error.words().replace(&shown, "FILE")),
    }
}

#[test]
fn moves_are_read_in_every_form_that_people_write() {
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
fn mistakes_are_told_with_their_place() {
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
fn brief_is_words_or_a_file() {
    let (_folder, path) = written("brief.md", "Shall we grow?\r\nNot with debt.\n");
    assert_eq!(brief(path.to_str().unwrap()).unwrap(), "Shall we grow?\nNot with debt.");
    assert_eq!(brief(" Shall we grow? ").unwrap(), "Shall we grow?");
    assert_eq!(brief("missing.md").unwrap_err().words(), "no file `missing.md`");
}

#[test]
fn file_to_edit_is_read_back_as_the_same_move() {
    let (_folder, path) = written(
        "m.json",
        r#"{"title": "A \"quoted\" one", "thesis": "a.", "actions": ["x", "y"], "cost": "3"}"#,
    );
    let (first, unsealed) = one_move(&path).unwrap();
    assert_eq!(unsealed, None);
    let seal = Sha256Hex::of(b"as it was");
    let file = file_of("m1\nby analyst_1", &first, &seal).unwrap();
    let (_folder, again) = written("m.toml", &file);
    assert_eq!(one_move(&again).unwrap(), (first, Some(seal)));
    let (_folder, broken) = written("m.toml", &file.replace(&seal.to_string(), "mine"));
    assert!(one_move(&broken).unwrap_err().message.contains("`seal` must be 64 lowercase hex"));
}
