use super::*;

fn measurement(models: &[&str], shared_error: u32) -> JudgeMeasurement {
    JudgeMeasurement {
        models: models.iter().map(|one| (*one).to_owned()).collect(),
        shared_error,
        single_model: 600,
        single_debate: 500,
        set: "synthetic-1".to_owned(),
        set_sha256: "0".repeat(64),
        companies: 40,
    }
}

#[test]
fn allowances_are_found_for_exactly_the_same_models() {
    let mut file = JudgeFile::default();
    file.replace(measurement(&["b/2", "a/1"], 300));
    file.replace(measurement(&["a/1"], 700));
    file.replace(measurement(&["a/1", "b/2"], 800));
    assert_eq!(file.measurement.len(), 2);
    let hash = Sha256Hex::of(b"file");
    let models = |names: &[&str]| names.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let found = file.allowances(&models(&["a/1", "b/2", "a/1"]), hash).unwrap();
    assert_eq!((found.shared_error, found.source), (800, AllowanceSource::Measured(hash)));
    assert_eq!(file.allowances(&models(&["a/1"]), hash).unwrap().shared_error, 700);
    assert!(file.allowances(&models(&["b/2"]), hash).is_none());
    assert!(file.is_valid());
    file.replace(measurement(&["c/3"], 10_000));
    assert!(!file.is_valid());
}
