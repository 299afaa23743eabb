use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::tests::Fixture;
use super::*;

/// Installs the fixture's image, as a build would.
fn build<'a>(
    store: &'a ImageStore,
    from: &'a Fixture,
    builds: &'a AtomicUsize,
) -> PendingBuild<'a> {
    Box::pin(async move {
        builds.fetch_add(1, Ordering::SeqCst);
        // Long enough for others to arrive.
        tokio::task::yield_now().await;
        store.import(&*packed(from), |_| true).map(drop)
    })
}

fn packed(fixture: &Fixture) -> Vec<u8> {
    let mut bytes = Vec::new();
    fixture.store.export(&["python".to_owned()], &mut bytes).unwrap();
    bytes
}

/// The origin of the image and the number of builds, with this bundle.
async fn provided(bundle: Option<&[u8]>) -> (ImageOrigin, usize) {
    let (folder, fixture, builds) =
        (tempfile::tempdir().unwrap(), Fixture::new(), AtomicUsize::new(0));
    let store = ImageStore::at(folder.path().join("images"));
    let path = folder.path().join("python.tar");
    if let Some(bytes) = bundle {
        fs_err::write(&path, bytes).unwrap();
    }
    let build = build(&store, &fixture, &builds);
    let origin = store.provide("python", Some(&path), build).await.unwrap();
    assert_eq!(store.verify("python").unwrap(), []);
    (origin, builds.load(Ordering::SeqCst))
}

#[tokio::test]
async fn an_intact_bundle_is_used_before_a_build() {
    let bytes = packed(&Fixture::new());
    assert_eq!(provided(Some(&bytes)).await, (ImageOrigin::Bundle, 0));
}

#[tokio::test]
async fn a_bundle_with_a_changed_byte_is_not_used() {
    let mut bytes = packed(&Fixture::new());
    let at = bytes.windows(6).rposition(|window| window == b"kernel").unwrap();
    bytes[at] ^= 1;
    assert_eq!(provided(Some(&bytes)).await, (ImageOrigin::Built, 1));
}

#[tokio::test]
async fn without_a_bundle_the_image_is_built() {
    assert_eq!(provided(None).await, (ImageOrigin::Built, 1));
}

#[tokio::test]
async fn an_existing_image_is_neither_imported_nor_built() {
    let (fixture, builds) = (Fixture::new(), AtomicUsize::new(0));
    let build = build(&fixture.store, &fixture, &builds);
    let origin = fixture.store.provide("python", None, build).await.unwrap();
    assert_eq!((origin, builds.load(Ordering::SeqCst)), (ImageOrigin::Existing, 0));
}

#[tokio::test]
async fn a_failed_build_is_reported_and_releases_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::at(folder.path());
    for _ in 0..2 {
        let missing = SandboxError::Missing { program: "mmdebstrap".to_owned() };
        let build: PendingBuild<'_> = Box::pin(async { Err(missing) });
        let error = store.provide("python", None, build).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot find `mmdebstrap`");
    }
}

#[tokio::test]
async fn an_image_is_built_once_if_several_need_it_at_the_same_time() {
    let (folder, fixture, builds) =
        (tempfile::tempdir().unwrap(), Fixture::new(), AtomicUsize::new(0));
    let store = ImageStore::at(folder.path().join("images"));
    let provide = || store.provide("python", None, build(&store, &fixture, &builds));
    let (first, second, third) = tokio::join!(provide(), provide(), provide());
    let origins = [first.unwrap(), second.unwrap(), third.unwrap()];
    assert_eq!(origins, [ImageOrigin::Built, ImageOrigin::Existing, ImageOrigin::Existing]);
    assert_eq!(builds.load(Ordering::SeqCst), 1);
}
