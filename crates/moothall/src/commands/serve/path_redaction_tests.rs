use super::*;

#[track_caller]
fn check(words: &str, shown: &str) {
    let folders = ["/home/ada", "/home/ada/.local/share/moothall", "/", "relative", "/srv/a b/"];
    assert_eq!(PathRedactor::over(folders.map(PathBuf::from)).hide(words), shown);
}

#[test]
fn paths_of_the_machine_are_hidden_to_their_end_wherever_they_stand() {
    check("/home/ada/moothall.toml cannot be read", "… cannot be read");
    check("see `/home/ada/.local/share/moothall/runs.db`: locked", "see `…`: locked");
    check("/home/ada and (/home/ada/x/y), '/home/ada'", "… and (…), '…'");
    check("the file /srv/a b/secret.toml:3", "the file …:3");
}

#[test]
fn words_that_only_look_alike_are_left_alone() {
    for words in
        ["list the runs with `GET /api/runs`", "/srv/a bc", "relative", "install QEMU, a / b"]
    {
        check(words, words);
    }
}
