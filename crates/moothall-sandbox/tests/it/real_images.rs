//! Builds real images from Debian packages. These tests fail if the required programs are missing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc;

use moothall_sandbox::image::{
    BuildOptions, BuildOutcome, BuildProgress, BuildStep, ExistingImagePolicy, ImageBuilder,
    ImageRecipe, ImageStore, RebuildComparison, SandboxImage,
};

fn options() -> BuildOptions {
    let environment: BTreeMap<String, OsString> =
        std::env::vars_os().map(|(name, value)| (name.into_string().unwrap(), value)).collect();
    BuildOptions { mirrors: Vec::new(), environment }
}

async fn build(
    store: &ImageStore,
    recipe: &ImageRecipe,
    existing: ExistingImagePolicy,
) -> BuildOutcome {
    let mut builder = ImageBuilder::new(store, options(), |_| ()).await.unwrap();
    builder.build(recipe, existing).await.unwrap()
}

fn new(built: BuildOutcome) -> SandboxImage {
    match built {
        BuildOutcome::New(image) => image,
        BuildOutcome::Kept(image) => panic!("{} was kept", image.name),
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_image_build_is_reproducible_in_another_directory() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = ImageRecipe::named("debate").unwrap();
    let one = ImageStore::at(folder.path().join("one"));
    let other = ImageStore::at(folder.path().join("of a longer name/other"));
    let image = new(build(&one, &recipe, ExistingImagePolicy::Keep).await);
    assert_eq!(one.verify("debate").unwrap(), []);
    assert_eq!((&image.rootfs, &image.root_tree), (&None, &None));

    let again = new(build(&other, &recipe, ExistingImagePolicy::Keep).await);
    assert_eq!(again.sha256, image.sha256);

    let BuildOutcome::Kept(kept) = build(&one, &recipe, ExistingImagePolicy::Keep).await else {
        panic!("it was built again");
    };
    assert_eq!(kept, image);
    let digest = image.sha256.to_string();
    let mut expected = vec!["building".to_owned(), digest, "tags".to_owned()];
    expected.sort();
    assert_eq!(entries(one.folder()), expected);
    assert_eq!(entries(&one.folder().join("building")), ["lock"]);
}

#[tokio::test]
async fn a_damaged_image_is_detected_and_repaired_by_a_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::at(folder.path());
    let recipe = ImageRecipe::named("debate").unwrap();
    let mut builder = ImageBuilder::new(&store, options(), |_| ()).await.unwrap();
    let image = new(builder.build(&recipe, ExistingImagePolicy::Keep).await.unwrap());
    let mut kernel = fs_err::read(&image.vmlinuz).unwrap();
    kernel[4711] ^= 1;
    fs_err::write(&image.vmlinuz, kernel).unwrap();
    let problems: Vec<_> =
        store.verify("debate").unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["vmlinuz was changed"]);

    // It compares what was built, not the modified files, and changes nothing.
    assert_eq!(builder.rebuild(&recipe).await.unwrap(), RebuildComparison::Same);
    assert_eq!(store.verify("debate").unwrap().len(), 1);

    assert_eq!(new(builder.build(&recipe, ExistingImagePolicy::Replace).await.unwrap()), image);
    assert_eq!(store.verify("debate").unwrap(), []);
}

#[tokio::test]
async fn a_cancelled_image_build_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::at(folder.path());
    let recipe = ImageRecipe::named("debate").unwrap();
    let (began, begun) = mpsc::channel();
    let tell = move |progress: BuildProgress<'_>| {
        if let BuildProgress::Started(_, BuildStep::Kernel) = progress {
            began.send(()).unwrap();
        }
    };
    let mut builder = ImageBuilder::new(&store, options(), tell).await.unwrap();
    let fetching = |work: &Path| {
        let unpacked = entries(work).into_iter().filter(|name| name.starts_with("kernel-"));
        unpacked.map(|name| work.join(name).join("unpacked")).any(|path| path.is_dir())
    };
    let work = {
        let building = store.folder().join("building");
        let name = entries(&building).into_iter().find(|name| name != "lock").unwrap();
        building.join(name)
    };
    {
        let mut build = std::pin::pin!(builder.build(&recipe, ExistingImagePolicy::Keep));
        // Wait until mmdebstrap works in its folder.
        while !fetching(&work) {
            let moment = std::time::Duration::from_millis(5);
            let result = tokio::time::timeout(moment, &mut build).await;
            assert!(result.is_err(), "it was built before it could be cancelled");
        }
    }
    begun.recv().unwrap();
    drop(builder);
    assert_eq!(entries(store.folder()), ["building"]);
    assert_eq!(entries(&store.folder().join("building")), ["lock"]);
    // Once the killed processes are gone, none uses the folder.
    let here = folder.path().to_str().unwrap().to_owned();
    let mentions = |pid: &str| {
        let command = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&here)
    };
    let left = || -> Vec<String> {
        let is_process = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
        let names = entries(Path::new("/proc")).into_iter();
        names.filter(|name| is_process(name) && mentions(name)).collect()
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !left().is_empty() && std::time::Instant::now() < until {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(left(), [] as [String; 0]);
}
