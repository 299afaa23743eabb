use super::*;

#[track_caller]
fn check(words: &str, shown: &str) {
    let folders = ["/home/ada", "/home/ada/.local/share/moothall", "/", "relative", "/srv/a b/"];
    assert_eq!(PathRedactor::from_paths(folders.map(PathBuf::from)).hide(words), shown);
}

#[test]
fn local_paths_are_redacted_completely_anywhere_in_a_text() {
    check("/home/ada/moothall.toml cannot be read", "… cannot be read");
    check("see `/home/ada/.local/share/moothall/runs.db`: locked", "see `…`: locked");
    check("/home/ada and (/home/ada/x/y), '/home/ada'", "… and (…), '…'");
    check("the file /srv/a b/secret.toml:3", "the file …:3");
}

#[test]
fn text_that_only_resembles_a_local_path_is_not_redacted() {
    for words in
        ["list the runs with `GET /api/runs`", "/srv/a bc", "relative", "install QEMU, a / b"]
    {
        check(words, words);
    }
}
