use super::*;

const RELEASE: &str = "PRETTY_NAME=\"x\"\nVERSION_CODENAME=trixie\nID=debian\n";

fn host(release: &str, files: &[(&str, &str)]) -> Option<String> {
    let etc = tempfile::tempdir().unwrap();
    fs_err::write(etc.path().join("os-release"), release).unwrap();
    fs_err::create_dir_all(etc.path().join("apt/sources.list.d")).unwrap();
    for (name, text) in files {
        fs_err::write(etc.path().join("apt").join(name), text).unwrap();
    }
    of_host(etc.path(), "bookworm")
}

#[test]
fn host_apt_sources_are_mapped_to_the_image_release() {
    let own = "# a note\nTypes: deb deb-src\n# another\nURIs: mirror:/one\nSuites: trixie trixie-updates trixie-backports\n\
               Components: main contrib\nSigned-By: /key.gpg\n\nTypes: deb\nURIs: mirror:/security\nSuites: trixie-security\n\
               Components: main\n";
    let foreign = "Types: deb\nURIs: mirror:/node\nSuites: nodistro\nComponents: main\n";
    let expected = "Types: deb\nURIs: mirror:/one\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /key.gpg\n\n\
                    Types: deb\nURIs: mirror:/security\nSuites: bookworm-security\nComponents: main\n\n";
    let files = [("sources.list.d/debian.sources", own), ("sources.list.d/node.sources", foreign)];
    assert_eq!(host(RELEASE, &files).as_deref(), Some(expected));
}

#[test]
fn one_line_apt_sources_are_parsed() {
    let list = "# deb mirror:/no trixie main\ndeb-src mirror:/no trixie main\n\
                deb [arch=amd64 signed-by=/key.gpg] mirror:/one stable main contrib # here\ndeb mirror:/two cloud main\n";
    let expected = "Types: deb\nURIs: mirror:/one\nSuites: bookworm\nComponents: main\nSigned-By: /key.gpg\n\n";
    assert_eq!(host(RELEASE, &[("sources.list", list)]).as_deref(), Some(expected));
}

#[test]
fn an_inline_apt_signing_key_is_kept() {
    let own = "Types: deb\nURIs: mirror:/one\nSuites: trixie\nSigned-By:\n -----BEGIN\n .\n abc\n -----END\n";
    let expected = "Types: deb\nURIs: mirror:/one\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n -----END\n\n";
    assert_eq!(host(RELEASE, &[("sources.list.d/a.sources", own)]).as_deref(), Some(expected));
}

#[test]
fn disabled_apt_sources_are_left_out() {
    let own = "Enabled: no\nTypes: deb\nURIs: mirror:/one\nSuites: trixie\n";
    let files = [("sources.list.d/a.sources", own), ("sources.list.d/b.sources.off", own)];
    assert_eq!(host(RELEASE, &files), None);
}

#[test]
fn a_host_that_is_not_debian_gives_no_apt_sources() {
    let line = [("sources.list", "deb mirror:/one stable main")];
    assert_eq!(host("ID=fedora\n", &line), None);
}
