use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use moothall_core::Sha256Hex;

use super::super::VmAccelerator;
use super::super::memory::{blank, seal, sealed};
use super::super::template::{MicroVmTemplate, TemplateLabel, TemplateRecipe};
use super::{MAX_TEMPLATES, TemplateCache};
use crate::image::SandboxImage;

const RAM: u64 = 1 << 20;

fn recipe(name: &str, tsc_khz: u64) -> TemplateRecipe {
    TemplateRecipe {
        accel: VmAccelerator::Tcg,
        ram_bytes: RAM,
        command_line: String::new(),
        tsc_khz,
        key: Sha256Hex::of(name.as_bytes()),
    }
}

fn image() -> SandboxImage {
    SandboxImage {
        name: "debate".to_owned(),
        sha256: Sha256Hex::of(b"image"),
        folder: PathBuf::new(),
        vmlinuz: PathBuf::new(),
        modules: PathBuf::new(),
        rootfs: None,
        root_tree: None,
        packages: Vec::new(),
        python_modules: Vec::new(),
        kernel: String::new(),
        recipe: Sha256Hex::of(b"recipe"),
        bytes: 0,
    }
}

fn template(text: &[u8]) -> Arc<MicroVmTemplate> {
    let ram = std::fs::File::from(blank("ram", RAM).unwrap());
    std::os::unix::fs::FileExt::write_all_at(&ram, text, 70_000).unwrap();
    let ram = ram.into();
    seal(&ram).unwrap();
    Arc::new(MicroVmTemplate {
        label: TemplateLabel {
            image: "debate".to_owned(),
            ram_bytes: RAM,
            tsc_khz: 2_000_000,
            state_sha256: Sha256Hex::of(b"state"),
        },
        accel: VmAccelerator::Tcg,
        ram,
        state: sealed("state", &[b"state"]).unwrap(),
        root: None,
        image_sha256: Sha256Hex::of(b"image"),
        proven: true.into(),
    })
}

fn text_in(template: MicroVmTemplate) -> Vec<u8> {
    let mut text = vec![0; 5];
    let ram = std::fs::File::from(template.ram);
    std::os::unix::fs::FileExt::read_exact_at(&ram, &mut text, 70_000).unwrap();
    text
}

#[tokio::test]
async fn a_cached_template_is_loaded_unchanged_and_sealed() {
    let cache = tempfile::tempdir().unwrap();
    let templates = TemplateCache::open(cache.path()).unwrap();
    let recipe = recipe("a", 2_000_000);
    assert!(templates.load(&recipe, &image()).await.is_none());
    let lock = templates.lock(&recipe).await.unwrap();
    templates.store(&recipe, &template(b"hello"), lock).await;
    let back = templates.load(&recipe, &image()).await.unwrap();
    assert_eq!(back.label, template(b"hello").label);
    assert!(rustix::fs::ftruncate(&back.ram, 0).is_err());
    assert_eq!(text_in(back), b"hello");
    for folder in ["templates".to_owned(), format!("templates/{}", recipe.key)] {
        let mode = cache.path().join(folder).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[tokio::test]
async fn a_template_is_valid_for_a_nearly_equal_tsc_frequency() {
    let cache = tempfile::tempdir().unwrap();
    let templates = TemplateCache::open(cache.path()).unwrap();
    let lock = templates.lock(&recipe("a", 2_000_000)).await.unwrap();
    templates.store(&recipe("a", 2_000_000), &template(b"hello"), lock).await;
    let mut found = Vec::new();
    for tsc_khz in [2_000_000, 2_003_000, 1_997_000, 2_005_000, 1_995_000] {
        found.push(templates.load(&recipe("a", tsc_khz), &image()).await.is_some());
    }
    assert_eq!(found, [true, true, true, false, false]);
}

#[tokio::test]
async fn a_truncated_or_changed_template_is_not_loaded() {
    let cut = |path: PathBuf| fs_err::OpenOptions::new().write(true).open(path).unwrap();
    let check = async |damage: &dyn Fn(PathBuf)| {
        let cache = tempfile::tempdir().unwrap();
        let templates = TemplateCache::open(cache.path()).unwrap();
        let recipe = recipe("a", 2_000_000);
        let lock = templates.lock(&recipe).await.unwrap();
        templates.store(&recipe, &template(b"first"), lock).await;
        damage(cache.path().join("templates").join(recipe.key.to_string()));
        assert!(templates.load(&recipe, &image()).await.is_none());
        // It can be built again.
        let lock = templates.lock(&recipe).await.unwrap();
        templates.store(&recipe, &template(b"again"), lock).await;
        assert_eq!(text_in(templates.load(&recipe, &image()).await.unwrap()), b"again");
    };
    check(&|folder| cut(folder.join("ram")).file().set_len(RAM - 1).unwrap()).await;
    check(&|folder| cut(folder.join("state")).file().set_len(4).unwrap()).await;
    check(&|folder| fs_err::write(folder.join("state"), "stats").unwrap()).await;
    check(&|folder| fs_err::write(folder.join("label.json"), "{}").unwrap()).await;
    check(&|folder| fs_err::remove_file(folder.join("label.json")).unwrap()).await;
    check(&|folder| fs_err::remove_file(folder.join("ram")).unwrap()).await;
}

#[tokio::test]
async fn the_least_recently_used_templates_are_removed_first() {
    let cache = tempfile::tempdir().unwrap();
    let templates = TemplateCache::open(cache.path()).unwrap();
    let folder = cache.path().join("templates");
    let keep = async |number: usize| {
        let recipe = recipe(&number.to_string(), 2_000_000);
        let lock = templates.lock(&recipe).await.unwrap();
        templates.store(&recipe, &template(b"hello"), lock).await;
        recipe
    };
    let used = |recipe: &TemplateRecipe, ago: u64| {
        let label = folder.join(recipe.key.to_string()).join("label.json");
        let label = fs_err::OpenOptions::new().append(true).open(label).unwrap();
        label.file().set_modified(SystemTime::now() - Duration::from_secs(ago)).unwrap();
    };
    let mut recipes = Vec::new();
    for number in 0..MAX_TEMPLATES {
        let recipe = keep(number).await;
        used(&recipe, 1_000 - number as u64);
        recipes.push(recipe);
    }
    // The first one is the oldest, but it is used again.
    templates.load(&recipes[0], &image()).await.unwrap();
    recipes.push(keep(MAX_TEMPLATES).await);
    let there: Vec<bool> = recipes
        .iter()
        .map(|recipe| folder.join(recipe.key.to_string()).join("ram").exists())
        .collect();
    let mut expected = vec![true; MAX_TEMPLATES + 1];
    expected[1] = false;
    assert_eq!(there, expected);
}

#[tokio::test(start_paused = true)]
async fn only_one_makes_a_template_at_a_time() {
    let cache = tempfile::tempdir().unwrap();
    let (first, second) =
        (TemplateCache::open(cache.path()).unwrap(), TemplateCache::open(cache.path()).unwrap());
    let recipe = recipe("a", 2_000_000);
    let lock = first.lock(&recipe).await.unwrap();
    let late = second.lock(&recipe).await.unwrap_err();
    assert_eq!(
        late.to_string(),
        "the template that another process builds was not ready after 180s"
    );
    drop(lock);
    second.lock(&recipe).await.unwrap();
}

/// Regression: a process killed while writing a template left hundreds of megabytes behind for an
/// hour.
#[tokio::test]
async fn the_holder_of_the_template_lock_removes_unfinished_templates() {
    let cache = tempfile::tempdir().unwrap();
    let template_cache = TemplateCache::open(cache.path()).unwrap();
    let templates = cache.path().join("templates");
    let (mine, other) = (recipe("mine", 2_000_000), recipe("other", 2_000_000));
    let begun = [&mine, &other].map(|recipe| templates.join(format!(".{}.begun", recipe.key)));
    for folder in &begun {
        fs_err::create_dir(folder).unwrap();
        fs_err::write(folder.join("ram"), "half").unwrap();
    }
    let _lock = template_cache.lock(&mine).await.unwrap();
    assert_eq!(begun.map(|folder| folder.exists()), [false, true]);
}
