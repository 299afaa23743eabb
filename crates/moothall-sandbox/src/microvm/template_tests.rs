use super::{interpreter, ram_bytes};

#[test]
fn guest_memory_includes_the_kernel_and_is_rounded_up() {
    let check = |program_mib: u64, guest_mib: u64| {
        assert_eq!(ram_bytes(program_mib << 20), guest_mib << 20);
    };
    check(256, 352);
    check(257, 384);
    check(64, 160);
    check(1024, 1120);
    assert_eq!(ram_bytes(u64::MAX), u64::MAX);
}

#[test]
fn a_parked_interpreter_imports_the_modules_of_its_image() {
    let check = |modules: &[&str], first: &[&str], last: &[&str]| {
        let modules: Vec<String> = modules.iter().map(|module| (*module).to_owned()).collect();
        let words = interpreter(&modules);
        assert_eq!(words[..first.len()], *first);
        assert_eq!(words[words.len() - last.len()..], *last);
    };
    check(&["six"], &["python3"], &["python3"]);
    check(&["numpy", "six"], &["python3", "collections"], &["statistics", "numpy"]);
    let all = ["matplotlib", "numpy", "pandas"];
    check(&all, &["python3"], &["statistics", "numpy", "pandas", "matplotlib.pyplot"]);
}

/// In this module because only it can create a clone without reseeding.
mod real_microvm {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::super::super::real_microvm::{engine, python, run};

    /// Shows that `clones_draw_different_numbers_and_know_the_time` can fail. Checks the clock
    /// instead of the randomness, which is set by the same message: a kernel reseeds itself within
    /// seconds, so on a slow machine two stale clones do not draw the same number.
    #[tokio::test]
    async fn a_clone_without_reseeding_has_an_old_clock() {
        const PAST: Duration = Duration::from_secs(5);
        let (engine, _registry) = engine().await;
        let image = engine.images.find("python").unwrap();
        let recipe = engine.recipe(&image, &python().limits).unwrap();
        let template = engine.template(&image, &recipe, &python()).await.unwrap();
        tokio::time::sleep(PAST).await;
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut machine = template.clone_without_reseed(&engine.launcher).await.unwrap();
        let told = run(&mut machine.session, "import time; print(time.time())").await;
        let told: f64 = told.trim().parse().unwrap();
        assert!(told < before.as_secs_f64(), "{told} is not before {before:?}");
    }
}
