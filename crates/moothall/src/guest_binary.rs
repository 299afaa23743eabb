//! The guest agent that runs inside sandboxes, embedded by `build.rs`.

include!(concat!(env!("OUT_DIR"), "/guest_bytes.rs"));
