use super::*;

const SHARED: &str = r#"
suite = "bookworm"

[kernel]
package = "linux-image-cloud-amd64"
without = ["kmod"]
modules = ["virtio", "squashfs"]
folders = ["proc"]

[root]
folders = ["tmp"]
without = ["dpkg"]
remove = ["usr/share/man"]
"#;

#[track_caller]
fn check_refused(own: &str, problem: &str) {
    let refused = ImageRecipe::parse(SHARED, own).unwrap_err();
    assert!(refused.contains(problem), "{refused}");
}

#[test]
fn every_built_in_recipe_is_valid() {
    let read: Vec<_> = ImageRecipe::names()
        .map(|name| {
            let recipe = ImageRecipe::named(name).unwrap();
            (recipe.name, recipe.root.map(|root| root.packages.len() > 1))
        })
        .collect();
    let expected =
        [("debate", None), ("python", Some(true)), ("documents", Some(true)), ("data", Some(true))]
            .map(|(name, root)| (name.to_owned(), root));
    assert_eq!(read, expected);
}

#[test]
fn a_recipe_extends_the_shared_base_recipe() {
    let own = "name = \"x\"\nsummary = \"y\"\n[root]\npackages = [\"dash\"]\nremove = [\"opt\"]\n[root.files]\n\"etc/a\" = \"b\"";
    let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<BTreeSet<_>>();
    let expected = ImageRecipe {
        name: "x".to_owned(),
        summary: "y".to_owned(),
        suite: "bookworm".to_owned(),
        kernel: KernelRecipe {
            package: "linux-image-cloud-amd64".to_owned(),
            without: set(&["kmod"]),
            modules: vec!["virtio".to_owned(), "squashfs".to_owned()],
            folders: set(&["proc"]),
        },
        root: Some(RootRecipe {
            packages: set(&["dash"]),
            without: set(&["dpkg"]),
            folders: set(&["tmp"]),
            remove: set(&["opt", "usr/share/man"]),
            files: [("etc/a".to_owned(), "b".to_owned())].into(),
            ..RootRecipe::default()
        }),
    };
    assert_eq!(ImageRecipe::parse(SHARED, own).unwrap(), expected);
}

#[test]
fn recipe_values_that_look_like_flags_or_escape_the_root_are_refused() {
    check_refused(
        "name = \"X\"\nsummary = \"\"",
        "an image name may contain only lower-case letters",
    );
    check_refused(
        "name = \"../x\"\nsummary = \"\"",
        "an image name may contain only lower-case letters",
    );
    let root = |line: &str| format!("name = \"x\"\nsummary = \"\"\n[root]\n{line}");
    check_refused(&root("packages = [\"--hook\"]"), "`--hook` is not a valid package");
    check_refused(&root("packages = [\"a,b\"]"), "`a,b` is not a valid package");
    check_refused(&root("remove = [\"../etc\"]"), "`../etc` is not a valid path");
    check_refused(&root("remove = [\"/etc\"]"), "`/etc` is not a valid path");
    check_refused(&root("remove = [\"\"]"), "`` is not a valid path");
    check_refused(&root("surprise = 1"), "unknown field `surprise`");
}

#[test]
fn the_recipe_hash_ignores_the_summary() {
    let recipe = |summary: &str, package: &str| {
        let own =
            format!("name = \"x\"\nsummary = \"{summary}\"\n[root]\npackages = [\"{package}\"]");
        ImageRecipe::parse(SHARED, &own).unwrap().hash().unwrap()
    };
    assert_eq!(recipe("one", "dash"), recipe("other", "dash"));
    assert_ne!(recipe("one", "dash"), recipe("one", "mawk"));
}

#[test]
fn an_unknown_recipe_lists_the_available_images() {
    let error = ImageRecipe::named("rust").unwrap_err();
    assert_eq!(
        error.to_string(),
        "image `rust`: unknown image; available images: debate, python, documents, data"
    );
}
