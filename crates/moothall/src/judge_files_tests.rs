use super::*;

fn measurement(model: &str, shared_error: u32) -> JudgeMeasurement {
    JudgeMeasurement {
        models: vec![model.to_owned()],
        shared_error,
        single_model: 0,
        single_debate: 500,
        set: "synthetic-1".to_owned(),
        set_sha256: "0".repeat(64),
        companies: 40,
    }
}

#[test]
fn written_measurements_are_read_back_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/judges.toml");
    assert!(read(&path).unwrap().is_none());
    write(&path, measurement("a/1", 300)).unwrap();
    write(&path, measurement("b/2", 400)).unwrap();
    let sha256 = write(&path, measurement("a/1", 800)).unwrap();
    let (file, found) = read(&path).unwrap().unwrap();
    assert_eq!((found, file.measurement.len()), (sha256, 2));
    let allowances = file.allowances(&["a/1".to_owned()], sha256).unwrap();
    assert_eq!((allowances.shared_error, allowances.single_model), (800, 0));
}

#[test]
fn invalid_judge_files_are_rejected_with_a_hint() {
    let path = Path::new("judges.toml");
    for text in [
        "measurement = 1",
        "[[measurement]]\nmodels = []",
        "\u{0}",
        "[[measurement]]\nmodels = [\"a/1\"]\nshared_error = 10000\nsingle_model = 0\n\
         single_debate = 0\nset = \"s\"\nset_sha256 = \"\"\ncompanies = 1",
    ] {
        let error = parse(path, text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("not a valid judges file"), "{error}");
    }
    assert!(parse(path, &[0xff, 0xfe]).is_err());
    assert!(parse(path, b"").unwrap().measurement.is_empty());
}
