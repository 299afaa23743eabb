use super::*;

fn program_in(folder: &Path, marker: Option<&str>) -> Installation {
    let share = folder.join("share/moothall");
    fs_err::create_dir_all(&share).unwrap();
    fs_err::create_dir_all(folder.join("bin")).unwrap();
    if let Some(marker) = marker {
        fs_err::write(share.join("install.json"), marker).unwrap();
    }
    Installation::of(folder.join("bin/moothall"))
}

#[test]
fn the_file_of_a_package_says_how_the_program_was_installed() {
    for kind in ["wheel", "npm", "deb", "rpm", "homebrew", "container", "tarball", "install-script"]
    {
        let folder = tempfile::tempdir().unwrap();
        let marker = format!(r#"{{"kind":"{kind}","version":"{VERSION}"}}"#);
        let found = program_in(folder.path(), Some(&marker));
        assert_eq!((found.kind(), found.other_version.as_deref()), (kind, None));
    }
}

#[test]
fn a_package_of_another_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let found = program_in(folder.path(), Some(r#"{"kind":"deb","version":"0.0.1"}"#));
    let shown = found.to_string();
    assert!(shown.ends_with("bin/moothall (its package has version 0.0.1)"), "{shown}");
}

#[test]
fn an_unreadable_file_is_ignored() {
    let long = format!(r#"{{"kind":"deb","version":"{}"}}"#, "1".repeat(5000));
    for marker in [None, Some(""), Some(r#"{"kind":"source","version":"1"}"#), Some(long.as_str())]
    {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(program_in(folder.path(), marker).kind(), "unknown", "{marker:?}");
    }
}

#[test]
fn a_program_in_a_target_directory_is_built_from_source() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("CACHEDIR.TAG"), "").unwrap();
    let found = Installation::of(folder.path().join("debug/moothall"));
    assert_eq!(found.kind(), "source");
    assert!(found.to_string().starts_with(&format!("moothall {VERSION}, built from source: /")));
}
