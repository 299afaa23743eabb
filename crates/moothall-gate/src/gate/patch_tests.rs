use proptest::prelude::*;

use super::*;

fn fault(text: &str) -> PatchFaultKind {
    read_patch(text.as_bytes()).unwrap_err().kind
}

const EDIT: &str = "\
diff --git a/a.py b/a.py
index 1234567..89abcde 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
";

#[test]
fn a_patch_of_git_is_read_and_applied() {
    let files = read_patch(EDIT.as_bytes()).unwrap();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(file.old_path.as_deref(), Some(&b"a.py"[..]));
    assert_eq!(file.new_mode, Some(0o100_644));
    assert_eq!(file.apply(Some(b"one\ntwo\nthree\nfour\n")).unwrap(), b"one\n2\nthree\nfour\n");
    let other = file.apply(Some(b"zero\none\ntwo\nthree\n")).unwrap_err();
    assert_eq!((other.line, other.kind), (5, PatchFaultKind::Fit));
    assert_eq!(file.apply(None).unwrap_err().kind, PatchFaultKind::Fit);
}

#[test]
fn new_deleted_renamed_and_binary_files_are_read() {
    let text = "\
From 1234 Mon Sep 17 00:00:00 2001
Subject: [PATCH] text of a mail

---
 a.py | 1 +
diff --git a/new.sh b/new.sh
new file mode 100755
index 0000000..89abcde
--- /dev/null
+++ b/new.sh
@@ -0,0 +1 @@
+echo
\\ No newline at end of file
diff --git a/old.py b/old.py
deleted file mode 100644
index 89abcde..0000000
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-a
diff --git a/x y.py \"b/caf\\303\\251.py\"
similarity index 100%
rename from x y.py
rename to \"caf\\303\\251.py\"
diff --git a/run b/run
old mode 100644
new mode 100755
diff --git a/a.png b/a.png
new file mode 100644
index 0000000..89abcde
GIT binary patch
literal 4
LcmZQzWMT#Y01f~L

literal 0
HcmV?d00001

-- 
2.47.3
";
    let files = read_patch(text.as_bytes()).unwrap();
    let [new, old, renamed, mode, binary] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!((&new.old_path, new.new_mode), (&None, Some(0o100_755)));
    assert_eq!(new.apply(None).unwrap(), b"echo");
    assert_eq!((old.new_path.as_ref(), old.apply(Some(b"a\n")).unwrap()), (None, Vec::new()));
    assert_eq!(old.apply(Some(b"a\nb\n")).unwrap_err().kind, PatchFaultKind::Fit);
    assert_eq!(renamed.old_path.as_deref(), Some(&b"x y.py"[..]));
    assert_eq!(renamed.new_path.as_deref(), Some("café.py".as_bytes()));
    assert_eq!(renamed.apply(Some(b"a\n")).unwrap(), b"a\n");
    assert_eq!(mode.new_mode, Some(0o100_755));
    assert_eq!(binary.body, PatchBody::Binary);
}

#[test]
fn a_quoted_path_may_be_renamed() {
    let text = "\
diff --git \"a/caf\\303\\251.py\" b/x.py
similarity index 100%
rename from \"caf\\303\\251.py\"
rename to x.py
";
    let files = read_patch(text.as_bytes()).unwrap();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(file.old_path.as_deref(), Some("café.py".as_bytes()));
    assert_eq!(file.new_path.as_deref(), Some(&b"x.py"[..]));
    assert_eq!(fault(&text.replacen("251", "252", 1)), PatchFaultKind::Path);
}

#[test]
fn malformed_binary_content_is_refused() {
    let text =
        |block: &str| format!("diff --git a/a b/a\nindex 1..2 100644\nGIT binary patch\n{block}");
    let good = "literal 4\nLcmZQzWMT#Y01f~L\n\n";
    assert!(read_patch(text(good).as_bytes()).is_ok());
    for (from, to) in [
        ("LcmZ", "1cmZ"),
        ("LcmZQzWMT#Y01f~L", "LcmZ"),
        ("LcmZQzWMT#Y01f~L", "L"),
        ("MT#Y", "MT Y"),
        ("literal 4", "literal x"),
        ("literal 4", "literal"),
        ("f~L\n\n", "f~L\n"),
    ] {
        assert_eq!(
            fault(&text(&good.replacen(from, to, 1))),
            PatchFaultKind::Binary,
            "{from} {to}"
        );
    }
    assert_eq!(fault(&text(&good.repeat(3))), PatchFaultKind::Binary);
}

#[test]
fn anything_that_another_program_could_read_differently_is_refused() {
    // A diff without `diff --git`, which `git apply` and `patch` would apply.
    let plain = "--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(fault(plain), PatchFaultKind::Stray);
    assert_eq!(fault(&format!("{EDIT}{plain}")), PatchFaultKind::Hunk);
    assert_eq!(fault(&format!("{EDIT}-- \n{plain}")), PatchFaultKind::Stray);
    assert_eq!(fault(&format!("> {plain}")), PatchFaultKind::Stray);
    assert_eq!(fault("*** a.py\n--- b.py\n"), PatchFaultKind::Stray);
    assert_eq!(fault("Index: a.py\n"), PatchFaultKind::Stray);
    // Headers that contradict each other.
    let other = |from: &str, to: &str| fault(&EDIT.replacen(from, to, 1));
    assert_eq!(other("+++ b/a.py", "+++ b/Makefile"), PatchFaultKind::Path);
    assert_eq!(other("--- a/a.py", "--- a/Makefile"), PatchFaultKind::Path);
    assert_eq!(other("diff --git a/a.py", "diff --git a/b.py"), PatchFaultKind::Path);
    assert_eq!(other("--- a/a.py", "--- a.py"), PatchFaultKind::Path);
    assert_eq!(other(" 100644\n", " 100600\n"), PatchFaultKind::Mode);
    assert_eq!(other("--- a/", "new file mode 100644\n--- a/"), PatchFaultKind::Path);
    assert_eq!(other("--- a/", "rename from a.py\n--- a/"), PatchFaultKind::Header);
    assert_eq!(other("89abcde 1", "89abcdeg 1"), PatchFaultKind::Header);
    assert_eq!(other("1234567..89abcde", "123456789abcde"), PatchFaultKind::Header);
    let similar = |share: &str| format!("diff --git a/x b/x\nsimilarity index {share}\n");
    assert_eq!(fault(&similar("101%")), PatchFaultKind::Header);
    assert_eq!(fault(&similar("100")), PatchFaultKind::Header);
    // Counts that hide lines.
    assert_eq!(other("+1,3", "+1,2"), PatchFaultKind::Hunk);
    assert_eq!(other("-1,3", "-1,4"), PatchFaultKind::Hunk);
    assert_eq!(fault(&format!("{EDIT}+hidden\n")), PatchFaultKind::Hunk);
    assert_eq!(fault(&format!("{EDIT}{EDIT}")), PatchFaultKind::Twice);
    assert_eq!(fault("diff --git a/x b/x\ncopy from y\ncopy to x\n"), PatchFaultKind::Stray);
}

#[test]
fn a_patch_beyond_its_limits_is_refused() {
    let most = "x".repeat(MAX_PATCH_BYTES);
    assert_eq!(read_patch(most.as_bytes()), Ok(Vec::new()));
    assert_eq!(fault(&format!("{most}x")), PatchFaultKind::Size);
    let section =
        |at: usize| format!("diff --git a/{at} b/{at}\nold mode 100644\nnew mode 100755\n");
    let most: String = (0..MAX_FILES).map(section).collect();
    assert_eq!(read_patch(most.as_bytes()).map(|files| files.len()), Ok(MAX_FILES));
    assert_eq!(fault(&format!("{most}{}", section(MAX_FILES))), PatchFaultKind::Files);
}

#[test]
fn quoted_paths_are_decoded_strictly() {
    let path = |text: &str| whole_path(text.as_bytes());
    assert_eq!(path("\"a\\tb\\\\\\\"\\001\""), Some(b"a\tb\\\"\x01".to_vec()));
    for bad in ["\"a", "\"\\9\"", "\"\\400\"", "\"\\08x\"", "\"a\"b", "", "\"\\000\""] {
        assert_eq!(path(bad), None, "{bad}");
    }
}

proptest! {
    /// Any bytes are read or refused, and what is read applies or does not, without a panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(files) = read_patch(&bytes) {
            for file in files {
                let _ = (file.apply(None), file.apply(Some(&bytes)));
            }
        }
    }

    /// The same for texts that resemble a patch.
    #[test]
    fn any_lines_of_patches_are_read_or_refused(
        lines in prop::collection::vec(prop::sample::select(vec![
            "diff --git a/x b/x", "--- a/x", "+++ b/x", "--- /dev/null", "@@ -1 +1 @@",
            "@@ -0,0 +1,2 @@", "@@ -1,2 +0,0 @@", "@@ -999999999,9 +1 @@", "+a", "-a", " a",
            "\\ No newline at end of file", "new file mode 100644", "rename from x",
            "rename to x", "GIT binary patch", "literal 3", "LcmZQzWMT#Y", "", "-- ", "index 1..2",
        ]), 0..30),
    ) {
        let text = lines.join("\n");
        if let Ok(files) = read_patch(text.as_bytes()) {
            for file in files {
                let _ = (file.apply(None), file.apply(Some(b"a\na\n")));
            }
        }
    }

    /// A patch made from two texts, read and applied, gives the second text.
    #[test]
    fn a_made_patch_applies(old in texts(), new in texts()) {
        let diff = similar::TextDiff::from_lines(&old, &new);
        prop_assume!(old != new);
        let hunks = diff.unified_diff().header("a/f", "b/f").to_string();
        let made = format!("diff --git a/f b/f\n{hunks}");
        let files = read_patch(made.as_bytes());
        let files = files.map_err(|fault| TestCaseError::fail(format!("{fault}: {made}")))?;
        prop_assert_eq!(files[0].apply(Some(old.as_bytes())).unwrap(), new.as_bytes());
    }
}

fn texts() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a\n", "b\n", "c\n", "\n", "-- \n", "+++ x\n"]);
    (prop::collection::vec(line, 1..12), any::<bool>()).prop_map(|(lines, cut)| {
        let text = lines.concat();
        if cut { format!("{text}end") } else { text }
    })
}
