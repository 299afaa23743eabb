use super::*;

#[test]
fn every_pattern_compiles_and_names_its_runner_and_month() {
    for one in AUTO_RUN {
        PathGlobs::new(vec![one.pattern.to_owned()]).unwrap();
        assert!(!one.runner.is_empty() && one.added.len() == 7, "{one:?}");
    }
}

#[test]
fn files_run_automatically_are_recognised_with_their_program() {
    let runner = |path: &str| auto_run_by(&RelPath::parse(path).unwrap());
    assert_eq!(runner("sub/CLAUDE.md"), Some("coding agents"));
    assert_eq!(runner(".cargo/config.toml"), Some("cargo"));
    assert_eq!(runner("a/b/Conftest.py"), Some("python or its tools"));
    assert_eq!(
        runner("sub/.unheard-of/x"),
        Some("a program that keeps its settings in a hidden directory")
    );
    for plain in ["src/main.rs", "README.md", "tests/test_a.py", "docs/config.md", "src/build.ts"] {
        assert_eq!(runner(plain), None, "{plain}");
    }
}
