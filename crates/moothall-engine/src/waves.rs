//! The same workflows on an engine that keeps them alive on many machines.
//!
//! The engine behind the port [`Durable`] remembers *that* a step was made; the store keeps *what*
//! came of it. So the engine's own journal stays small, and an answer that is in the store is never
//! asked for again, even where the step that brought it has to be repeated.
//!
//! ```text
//! machine ─ effects ─► wave ─ Durable::step ─► performed at once, each answer kept as it comes
//!    ▲                                                     │
//!    └────────────── answers, from the store ◄─────────────┘
//! ```
//!
//! A replay runs this code from its beginning and must do the same steps in the same order. So
//! nothing outside of a step decides by what it reads, other than by answers that cannot change.

mod child;
mod lookout;
mod port;
mod room;
mod root;
mod wave;

pub use self::child::drive_child;
pub use self::lookout::Lookout;
pub use self::port::{ChildCall, ChildLeft, Durable, Noted, Stop, Work};
pub use self::root::{RunLeft, drive_run};
pub use self::wave::{Hands, Heard, Stage};
