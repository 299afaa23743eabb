use super::*;

fn scope(changed: &[&str]) -> CheckScope {
    let crates = [("moothall", "crates/moothall/"), ("moothall-core", "crates/moothall-core/")];
    let crates = crates.map(|(name, folder)| (name.to_owned(), folder.to_owned()));
    let changed: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
    CheckScope::of(&changed, &crates)
}

fn reached(names: &[&str]) -> TestSelection {
    TestSelection::Reached(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn change_in_a_crate_reaches_that_crate_and_all_that_depend_on_it() {
    let scope = scope(&["crates/moothall-core/src/gate.rs", "README.md"]);
    assert_eq!(scope, CheckScope { rust: reached(&["moothall-core"]), web: false });
    assert_eq!(
        scope.rust.filter().unwrap(),
        "(rdeps(=moothall-core)) - test(/(^|::)(real_[a-z]+|local_model)::/)"
    );
}

#[test]
fn change_of_text_compiles_nothing() {
    let scope = scope(&["README.md", "docs/src/serve.md"]);
    assert_eq!(scope, CheckScope { rust: reached(&[]), web: false });
    assert_eq!(scope.rust.filter(), None);
}

#[test]
fn change_of_the_lock_file_reaches_everything() {
    assert_eq!(scope(&["Cargo.lock"]), CheckScope { rust: TestSelection::All, web: false });
}

#[test]
fn change_of_an_image_reaches_the_crate_that_embeds_it() {
    let expected = CheckScope { rust: reached(&["moothall-sandbox"]), web: false };
    assert_eq!(scope(&["images/python.toml"]), expected);
}

#[test]
fn change_of_a_page_reaches_the_web_ui() {
    assert_eq!(scope(&["web/src/main.tsx"]), CheckScope { rust: reached(&[]), web: true });
}
