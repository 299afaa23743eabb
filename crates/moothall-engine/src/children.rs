//! What a child is: the machine that its request stands for, here and in a room.

use moothall_core::child::ChildRequest;
use moothall_core::debate::{Debate, InvalidDebate};
use moothall_core::guest::{GuestMachine, GuestWorkflow};

/// The machine that a request stands for, ready to start.
pub(crate) fn build(request: &ChildRequest) -> Result<GuestMachine, InvalidDebate> {
    match request {
        ChildRequest::Debate(input) => {
            Ok(GuestMachine::Debate(Box::new(Debate::new((**input).clone())?)))
        }
    }
}

/// The same machine, as a room is told of it.
pub(crate) fn inside(request: &ChildRequest) -> GuestWorkflow {
    match request {
        ChildRequest::Debate(input) => GuestWorkflow::Debate { input: input.clone() },
    }
}
