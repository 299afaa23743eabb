use moothall_core::built_in_texts;
use tempfile::TempDir;

use super::*;

/// A directory with the built-in committee and these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join(COMMITTEE_FILE), committee_file::render(&board())).unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    folder
}

fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let folder = folder(files);
    let found = read(folder.path()).unwrap().unwrap_err();
    let root = format!("{}/", folder.path().display());
    let shown = |one: ConfigProblem| {
        format!("{} ({})", one.message.replace(&root, ""), one.hint.unwrap_or_default())
    };
    found.into_iter().map(shown).collect()
}

#[test]
fn texts_beside_the_committee_file_become_part_of_the_committee() {
    let text = "Serve it well:\r\n{{brief}}\r\n";
    let folder =
        folder(&[("prompts/brief.md", text), ("prompts/.hidden", "x"), ("README.md", "mine")]);
    let committee = read(folder.path()).unwrap().unwrap();
    assert_eq!(committee.prompts.get("brief"), Some("\n\nServe it well:\n{{brief}}\n"));
    assert!(committee.memo.is_empty());
    let file = committee_file::render(&committee);
    assert_eq!(committee_file::parse("c.toml", &file), Ok(committee));
}

#[test]
fn built_in_texts_in_a_directory_change_nothing() {
    let all = built_in_texts();
    let files: Vec<(String, &str)> = all.iter().map(|one| (one.file(), one.text)).collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(file, text)| (file.as_str(), *text)).collect();
    assert_eq!(read(folder(&files).path()).unwrap(), Ok(board()));
}

#[test]
fn every_mistake_in_a_directory_is_reported_with_file_line_and_hint() {
    let found = problems(&[
        ("memo/marks.md", "# Marks\n\n{{content}} and {{day}}\n"),
        ("memo/nothing.md", "x"),
        ("prompts/analyst.txt", "x"),
        ("prompts/brief.md", "one\n{{brif}}\n"),
        ("prompts/cite.md", "{{"),
        ("prompts/propose.md", "Propose {{share}}.\n"),
    ]);
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn a_text_in_the_committee_file_is_checked_as_well() {
    let inline = |text: &str| {
        let file = committee_file::render(&board()) + &format!("\n[prompts]\nbrief = {text:?}\n");
        committee_file::parse("c.toml", &file)
    };
    assert_eq!(inline("Own {{brief}}").unwrap().prompts.get("brief"), Some("\n\nOwn {{brief}}\n"));
    let found = inline("Own\n{{brif}}").unwrap_err();
    let shown: Vec<_> = found.iter().map(|one| (&*one.message, one.hint.as_deref())).collect();
    assert_eq!(
        shown,
        [(
            "c.toml: prompts/brief.md, line 2: unknown placeholder `{{brif}}`",
            Some("placeholders of this text: {{brief}}")
        )]
    );
}

#[test]
#[cfg(unix)]
fn a_link_is_not_followed() {
    let folder = folder(&[("secret", "key"), ("prompts/brief.md", "Own {{brief}}")]);
    let link = folder.path().join("prompts/propose.md");
    std::os::unix::fs::symlink(folder.path().join("secret"), link).unwrap();
    let found = read(folder.path()).unwrap().unwrap_err();
    assert!(found[0].message.ends_with("propose.md: not a text file `NAME.md`"), "{found:?}");
}
