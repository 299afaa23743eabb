use super::*;
use crate::tidy::headlines;

#[test]
fn the_sdk_is_named_at_home_only() {
    let import = format!("use {SDK}::prelude::*;\n");
    let words = format!("// not {SDK}\n");
    let tree = Tree::of(&[
        (HOME, &import),
        (BASELINE, &import),
        ("crates/moothall-engine/src/lib.rs", &words),
    ]);
    assert_eq!(headlines(&check(&tree)), Vec::<String>::new());
    let tree = Tree::of(&[("crates/moothall-engine/src/lib.rs", &import)]);
    assert_eq!(
        headlines(&check(&tree)),
        [format!(
            "crates/moothall-engine/src/lib.rs:1: [one-sdk] names `{SDK}`, which only {HOME} may"
        )]
    );
}
