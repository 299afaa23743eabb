use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn document() -> ReportDocument {
    ReportDocument {
        title: "Memo".to_owned(),
        subtitle: String::new(),
        running_head: String::new(),
        watermark: None,
        running_foot: String::new(),
        blocks: Vec::new(),
    }
}

/// Uses this shell script as the helper.
async fn with_script(script: &str) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().unwrap();
    let helper = helper_path(&folder.path().join("moothall"));
    fs_err::write(&helper, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs_err::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    typeset_with(&helper, &document(), PaperSize::Letter).await.map_err(|error| error.render())
}

#[tokio::test]
async fn the_pdf_helper_converts_a_document() {
    let made = with_script("read -r document; echo \"$1 $document\"").await.unwrap();
    let made = String::from_utf8(made).unwrap();
    assert!(made.starts_with("letter {\"title\":\"Memo\""), "{made}");
}

#[tokio::test]
async fn the_pdf_helper_gets_no_environment_variables() {
    // A shell sets a few variables itself.
    let made = with_script("/usr/bin/env").await.unwrap();
    let made = String::from_utf8(made).unwrap();
    let foreign: Vec<_> = made
        .lines()
        .filter(|line| !["PWD=", "SHLVL=", "_=", "OLDPWD="].iter().any(|own| line.starts_with(own)))
        .collect();
    assert_eq!(foreign, Vec::<&str>::new());
}

#[tokio::test]
async fn a_pdf_helper_failure_is_reported_with_its_message() {
    assert_eq!(
        with_script("echo 'error: the template failed: bug' >&2; exit 1").await.unwrap_err(),
        "error: `moothall-pdf` failed (exit status: 1): the template failed: bug\n\
         hint: use `--format html`, which has the same content and can be printed\n"
    );
}

#[tokio::test]
async fn a_missing_pdf_helper_is_reported_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let helper = helper_path(&folder.path().join("moothall"));
    let error = typeset_with(&helper, &document(), PaperSize::A4).await.unwrap_err();
    assert_eq!(
        error.render(),
        "error: PDF output needs the program `moothall-pdf` next to `moothall`\n\
         hint: install both programs of the release, or use `--format html` and print it from a browser\n"
    );
}
