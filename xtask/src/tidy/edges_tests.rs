use super::*;
use crate::tidy::headlines;

const SMALL: &[AllowedEdges] = &[
    AllowedEdges { name: "top", uses: &["base"], tests_use: &["kit"] },
    AllowedEdges { name: "kit", uses: &[], tests_use: &[] },
    AllowedEdges { name: "base", uses: &[], tests_use: &[] },
];

fn member(name: &str, edges: &[(&str, EdgeKind)]) -> WorkspaceMember {
    WorkspaceMember {
        name: name.to_owned(),
        manifest: format!("crates/{name}/Cargo.toml"),
        edges: edges
            .iter()
            .map(|(to, kind)| CrateEdge { to: (*to).to_owned(), kind: *kind })
            .collect(),
    }
}

#[track_caller]
fn check_members(members: &[WorkspaceMember], expected: &[&str]) {
    assert_eq!(headlines(&check(SMALL, members)), expected);
}

#[test]
fn allowed_edges_pass() {
    check_members(
        &[
            member(
                "top",
                &[("base", EdgeKind::Product), ("base", EdgeKind::Test), ("kit", EdgeKind::Test)],
            ),
            member("kit", &[]),
            member("base", &[]),
        ],
        &[],
    );
}

#[test]
fn a_dependency_on_a_higher_crate_fails() {
    check_members(
        &[member("top", &[]), member("kit", &[]), member("base", &[("top", EdgeKind::Product)])],
        &["crates/base/Cargo.toml: [edges] `base` may not depend on `top`"],
    );
}

#[test]
fn a_product_dependency_on_the_testkit_fails() {
    check_members(
        &[member("top", &[("kit", EdgeKind::Product)]), member("kit", &[]), member("base", &[])],
        &["crates/top/Cargo.toml: [edges] `top` may not depend on `kit`"],
    );
}

#[test]
fn forbidden_edge_of_tests_fails() {
    check_members(
        &[member("top", &[]), member("kit", &[]), member("base", &[("kit", EdgeKind::Test)])],
        &["crates/base/Cargo.toml: [edges] `base` may not use in tests `kit`"],
    );
}

#[test]
fn crate_without_a_row_fails() {
    check_members(
        &[member("top", &[]), member("kit", &[]), member("base", &[]), member("new", &[])],
        &["crates/new/Cargo.toml: [edges] crate `new` has no row in the table of allowed edges"],
    );
}

#[test]
fn row_without_a_crate_fails() {
    check_members(
        &[member("top", &[]), member("kit", &[])],
        &["xtask/src/tidy/edges.rs: [edges] row `base` does not match a crate of the workspace"],
    );
}

#[test]
fn crates_that_must_never_depend_on_each_other_always_fail() {
    let table = [
        AllowedEdges { name: "moothall-models", uses: &["moothall-store"], tests_use: &[] },
        AllowedEdges { name: "moothall-store", uses: &[], tests_use: &[] },
    ];
    let members = [
        member("moothall-models", &[("moothall-store", EdgeKind::Product)]),
        member("moothall-store", &[]),
    ];
    assert_eq!(
        headlines(&check(&table, &members)),
        [
            "crates/moothall-models/Cargo.toml: [edges] `moothall-models` and `moothall-store` must never depend on each other"
        ]
    );
}

#[test]
fn members_are_read_with_the_kind_of_each_edge() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    };
    write("Cargo.toml", "[workspace]\nmembers = [\"top\", \"kit\"]\nresolver = \"3\"\n");
    write("top/src/lib.rs", "");
    write("kit/src/lib.rs", "");
    write(
        "top/Cargo.toml",
        "[package]\nname = \"top\"\nedition = \"2024\"\n[dev-dependencies]\nrenamed = { package = \"kit\", path = \"../kit\" }\n",
    );
    write("kit/Cargo.toml", "[package]\nname = \"kit\"\nedition = \"2024\"\n");

    let mut found = members(folder.path()).unwrap();
    found.sort_by(|a, b| a.name.cmp(&b.name));

    let mut expected = [member("kit", &[]), member("top", &[("kit", EdgeKind::Test)])];
    for member in &mut expected {
        member.manifest = format!("{}/Cargo.toml", member.name);
    }
    assert_eq!(found, expected);
}
