use super::*;
use crate::tidy::headlines;

#[test]
fn the_sdk_is_used_in_one_crate_only() {
    let import = format!("use {SDK}::prelude::*;\n");
    let words = format!("// not {SDK}\n");
    let tree = SourceTree::of(&[
        (HOME, &import),
        (BASELINE, &import),
        ("crates/moothall-engine/src/lib.rs", &words),
    ]);
    assert_eq!(headlines(&check(&tree)), Vec::<String>::new());
    let tree = SourceTree::of(&[("crates/moothall-engine/src/lib.rs", &import)]);
    assert_eq!(
        headlines(&check(&tree)),
        [format!(
            "crates/moothall-engine/src/lib.rs:1: [one-sdk] names `{SDK}`; only {HOME} may use it"
        )]
    );
}
