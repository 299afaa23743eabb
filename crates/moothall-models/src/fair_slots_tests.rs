use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn a_run_with_many_waiting_calls_does_not_delay_a_run_with_few() {
    let slots = FairSlots::new(1);
    let (large, small) = (RunKey::of("large"), RunKey::of("small"));
    let held = poll(pin!(slots.acquire(large))).unwrap();
    let mut first = pin!(slots.acquire(large));
    let mut second = pin!(slots.acquire(large));
    let mut other = pin!(slots.acquire(small));
    assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
    assert!(poll(other.as_mut()).is_none());
    drop(held);
    let held = poll(first.as_mut()).unwrap();
    drop(held);
    // The second call of the large run arrived earlier, but it is the small run's turn.
    assert!(poll(second.as_mut()).is_none());
    let held = poll(other.as_mut()).unwrap();
    drop(held);
    assert!(poll(second.as_mut()).is_some());
}

#[test]
fn cancelled_waiters_and_unclaimed_slots_are_not_lost() {
    let slots = FairSlots::new(1);
    let run = RunKey::of("run");
    let held = poll(pin!(slots.acquire(run))).unwrap();
    {
        let mut gone = pin!(slots.acquire(run));
        assert!(poll(gone.as_mut()).is_none());
    }
    {
        let mut unclaimed = pin!(slots.acquire(run));
        assert!(poll(unclaimed.as_mut()).is_none());
        drop(held);
        // The slot was sent to this call, which ends without reading it.
    }
    assert!(poll(pin!(slots.acquire(run))).is_some());
}

#[test]
fn fewer_slots_take_effect_when_calls_end_and_more_slots_immediately() {
    let slots = FairSlots::new(2);
    let run = RunKey::of("run");
    let one = poll(pin!(slots.acquire(run))).unwrap();
    let two = poll(pin!(slots.acquire(run))).unwrap();
    slots.set_width(1);
    let mut waiting = pin!(slots.acquire(run));
    assert!(poll(waiting.as_mut()).is_none());
    drop(one);
    assert!(poll(waiting.as_mut()).is_none());
    slots.set_width(2);
    assert!(poll(waiting.as_mut()).is_some());
    drop(two);
}
