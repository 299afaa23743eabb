use super::*;

#[track_caller]
fn check(engine: &str, version: &str, expected: &[&str]) {
    let warning = version_warning(engine, version).unwrap_or_default();
    for part in expected {
        assert!(warning.contains(part), "{part} in {warning:?}");
    }
    assert_eq!(warning.is_empty(), expected.is_empty(), "{engine} {version}: {warning}");
}

#[test]
fn runc_versions_are_checked_against_the_fixes_of_their_branch() {
    let both = ["CVE-2024-21626", "CVE-2025-31133", "older than 1.2.8"];
    check("runc", "1.1.5+ds1 (user namespace)", &["runc 1.1.5+ds1 is older"]);
    check("runc", "1.1.5+ds1", &both);
    check("runc", "1.0.0-rc93", &both);
    check("runc", "1.1.11", &both);
    let masked = ["CVE-2025-31133, CVE-2025-52565, CVE-2025-52881", "older than 1.2.8"];
    check("runc", "1.1.12", &masked);
    check("runc", "1.2.7", &masked);
    assert!(!version_warning("runc", "1.1.12").unwrap().contains("21626"));
    check("runc", "1.3.2", &["CVE-2025-52881", "older than 1.3.3"]);
    for fixed in ["1.2.8", "1.2.9+ds1", "1.3.3", "1.4.0", "2.0.0"] {
        check("runc", fixed, &[]);
    }
}

#[test]
fn runsc_versions_are_checked_by_their_release_date() {
    check("runsc", "0.0~20221219.0", &["older than 20240729, the oldest tested release"]);
    check("runsc", "0.0~20240729.0", &[]);
    check("runsc", "release-20260302.0", &[]);
}

#[test]
fn an_unknown_runtime_version_gives_no_warning() {
    check("runc", "unknown", &[]);
    check("runc", "", &[]);
    check("runsc", "VERSION_MISSING", &[]);
    check("crun", "1.8.1", &[]);
    check("microvm", "7.2", &[]);
}
