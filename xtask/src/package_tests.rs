use std::process::Command;

use super::*;

/// A small program that answers like `moothall`, compiled for this machine.
fn compile_program(folder: &Path) -> PathBuf {
    let source = root().join("tools/package-check/stand-in.c");
    let version = format!("-DVERSION=\"{VERSION}\"");
    let program = folder.join("moothall");
    let status = Command::new("cc")
        .args(["-s", &version, "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .unwrap();
    assert!(status.success());
    program
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Kinds that need no tool of a distribution.
const PLAIN_KINDS: [PackageKind; 8] = [
    PackageKind::Wheel,
    PackageKind::Npm,
    PackageKind::Tarball,
    PackageKind::Container,
    PackageKind::Mcpb,
    PackageKind::ClaudePlugin,
    PackageKind::InstallScript,
    PackageKind::Homebrew,
];

fn write_all(program: &Path, out: &Path, kinds: &[PackageKind]) -> Vec<String> {
    fs_err::create_dir_all(out).unwrap();
    let root = root();
    let options = PackageOptions {
        root: &root,
        out,
        repository: "https://example.org/m",
        epoch: 1_700_000_000,
    };
    let payload = PackagePayload::read(&root, program, Some(program), true).unwrap();
    let written = write_packages(&options, kinds, Some(&payload)).unwrap();
    write_sums(out).unwrap();
    written.into_iter().map(|package| package.name).collect()
}

fn tar_names(path: &Path) -> Vec<String> {
    let gzip = flate2::read::GzDecoder::new(fs_err::File::open(path).unwrap());
    let mut archive = tar::Archive::new(gzip);
    let name = |entry: std::io::Result<tar::Entry<'_, _>>| {
        entry.unwrap().path().unwrap().display().to_string()
    };
    archive.entries().unwrap().map(name).collect()
}

#[test]
fn packaging_twice_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile_program(folder.path());
    let mut kinds = PLAIN_KINDS.to_vec();
    for (tool, kind) in [("dpkg-deb", PackageKind::Deb), ("rpmbuild", PackageKind::Rpm)] {
        if shell::works(folder.path(), &[tool, "--version"]) {
            kinds.push(kind);
        }
    }
    kinds.sort_unstable();
    let outs = [folder.path().join("one"), folder.path().join("other")];
    let names = outs.clone().map(|out| write_all(&program, &out, &kinds));
    assert_eq!(names[0], names[1]);
    for name in names[0].iter().map(String::as_str).chain([SUMS]) {
        let bytes = outs.clone().map(|out| fs_err::read(out.join(name)).unwrap());
        assert!(bytes[0] == bytes[1], "{name} differs");
    }
    let sums = fs_err::read_to_string(outs[0].join(SUMS)).unwrap();
    assert_eq!(sums.lines().count(), names[0].len(), "{sums}");
}

#[test]
fn packages_contain_what_their_installers_expect() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile_program(folder.path());
    let out = folder.path().join("out");
    let names = write_all(&program, &out, &PLAIN_KINDS);
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let tarball = format!("moothall-{VERSION}-{target}");
    let files = tar_names(&out.join(format!("{tarball}.tar.gz")));
    for file in [
        "bin/moothall",
        "bin/moothall-pdf",
        "share/man/man1/moothall.1",
        "share/man/man1/moothall-check.1",
        "share/bash-completion/completions/moothall",
        "share/moothall/install.json",
        "share/doc/moothall/LICENSE-MIT",
    ] {
        assert!(files.contains(&format!("{tarball}/{file}")), "{file}: {files:?}");
    }
    assert!(files.is_sorted(), "{files:?}");
    let launcher = tar_names(&out.join(format!("moothall-{VERSION}.tgz")));
    assert!(launcher.contains(&"package/bin/moothall.js".to_owned()), "{launcher:?}");

    // A host with a newer glibc, as on every machine that tests run on, gives a local wheel.
    let wheel = names.iter().find(|name| name.starts_with("moothall-") && name.ends_with(".whl"));
    let wheel = out.join(wheel.unwrap());
    let mut wheel = zip::ZipArchive::new(fs_err::File::open(wheel).unwrap()).unwrap();
    let record = wheel.by_name(&format!("moothall-{VERSION}.dist-info/RECORD")).unwrap();
    let record = std::io::read_to_string(record).unwrap();
    assert_eq!(record.lines().count(), wheel.len(), "{record}");
    for name in wheel.file_names() {
        let name = name.unwrap();
        assert!(record.contains(&format!("{name},")), "{name} is not in RECORD");
    }

    let plugin = tar_names(&out.join(format!("moothall-claude-plugin-{VERSION}.tar.gz")));
    for file in [".claude-plugin/plugin.json", ".mcp.json", "hooks/hooks.json"] {
        assert!(plugin.contains(&format!("moothall-claude-plugin/{file}")), "{plugin:?}");
    }
    let bundle = names.iter().find(|name| name.ends_with(".mcpb")).unwrap();
    let bundle = zip::ZipArchive::new(fs_err::File::open(out.join(bundle)).unwrap()).unwrap();
    let bundled: Vec<_> = bundle.file_names().map(|name| name.unwrap().into_owned()).collect();
    assert_eq!(bundled[..2], ["manifest.json", "server/moothall"]);

    let script = fs_err::read_to_string(out.join("install.sh")).unwrap();
    let sum = sha256(&fs_err::read(out.join(format!("{tarball}.tar.gz"))).unwrap());
    assert!(
        script.contains(&format!("{target}) sum={sum} ;;")) && !script.contains('@'),
        "{script}"
    );
    let formula = fs_err::read_to_string(out.join("moothall.rb")).unwrap();
    assert!(formula.contains(&sum) && !formula.contains('@'), "{formula}");
}

#[test]
fn a_package_with_another_binary_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile_program(folder.path());
    let out = folder.path().join("out");
    let names = write_all(&program, &out, &[PackageKind::Tarball]);
    let root = root();
    let options = PackageOptions { root: &root, out: &out, repository: "", epoch: 0 };
    let mut payload = PackagePayload::read(&root, &program, None, true).unwrap();
    payload.binary.push(0);
    let package =
        WrittenPackage { name: names[0].clone(), kind: PackageKind::Tarball, has_binary: true };
    let refused = check_package(&options, &package, Some(&payload)).unwrap_err();
    assert!(refused.to_string().contains("contains another binary"), "{refused}");
}

#[test]
fn a_binary_that_needs_a_newer_glibc_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile_program(folder.path());
    let Err(refused) = PackagePayload::read(&root(), &program, None, false) else {
        panic!("this machine has glibc 2.17")
    };
    let shown = format!("{refused:#}");
    assert!(shown.contains("needs GLIBC_2.") && shown.contains("newer than GLIBC_2.17"), "{shown}");
    assert!(shown.contains("hint: build it with `cargo zigbuild"), "{shown}");
}

#[test]
fn the_install_script_refuses_a_changed_tarball() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile_program(folder.path());
    let out = folder.path().join("out");
    let names = write_all(&program, &out, &[PackageKind::Tarball, PackageKind::InstallScript]);
    let install = |prefix: &Path| {
        Command::new("sh")
            .arg(out.join("install.sh"))
            .env("MOOTHALL_DOWNLOAD_URL", format!("file://{}", out.display()))
            .env("MOOTHALL_PREFIX", prefix)
            .output()
            .unwrap()
    };
    let prefix = folder.path().join("prefix");
    // A second installation replaces the first.
    for _ in 0..2 {
        let installed = install(&prefix);
        let printed = String::from_utf8_lossy(&installed.stdout);
        assert!(installed.status.success(), "{installed:?}");
        assert!(printed.contains(&format!("installed moothall {VERSION} as ")), "{printed}");
    }
    let marker = prefix.join("lib/moothall/share/moothall/install.json");
    assert!(fs_err::read_to_string(marker).unwrap().contains("install-script"));

    let tarball = out.join(&names[0]);
    let mut bytes = fs_err::read(&tarball).unwrap();
    bytes.push(0);
    fs_err::write(&tarball, bytes).unwrap();
    let other = folder.path().join("other");
    let refused = install(&other);
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && printed.contains("error: the checksum of "), "{printed}");
    assert!(!other.exists());
}
