use super::*;

#[test]
fn a_package_path_is_percent_encoded() {
    assert_eq!(address_of(Path::new("/a b/c%d/é-1_2.x")), "/a%20b/c%25d/%C3%A9-1_2.x");
}

#[test]
fn packages_that_are_not_installed_are_not_listed() {
    let cache = tempfile::tempdir().unwrap();
    for file in ["b_2_all.deb", "a_1%3a1_amd64.deb", "c_9999_all.deb", "lock"] {
        fs_err::write(cache.path().join(file), "").unwrap();
    }
    let package =
        |name: &str, version: &str| DebianPackage { name: name.into(), version: version.into() };
    let listed = packages_in(cache.path(), &["c".to_owned()].into()).unwrap();
    assert_eq!(listed, [package("a", "1:1"), package("b", "2")]);
}
