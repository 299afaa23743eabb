//! Keeps the guest of a child in sync on a durable engine.

use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::child::{ChildIsolation, ChildRequest};
use moothall_core::{EffectId, EffectResult};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::effect_batch::RunContext;
use crate::guest_runner::{GuestRunner, GuestUnavailable, Told};
use crate::guests::{GuestPool, IsolationMode};

/// Keeps a guest in step with a child. The guest is acquired when this worker performs the first
/// effect, so a pure replay needs none.
#[derive(Debug)]
pub(crate) struct GuestLease {
    context: Arc<RunContext>,
    guest_pool: Arc<GuestPool>,
    id: EffectId,
    request: ChildRequest,
    /// All results delivered to the machine, in order.
    delivered: Mutex<Vec<Told>>,
    task: tokio::sync::Mutex<Option<GuestTask>>,
}

/// A session in guests. Dropping it ends the guest.
#[derive(Debug)]
struct GuestTask {
    results_tx: UnboundedSender<Told>,
    /// How many of the delivered results were sent to the guest.
    sent: usize,
    confirmed_rx: UnboundedReceiver<(EffectId, usize)>,
    confirmed: usize,
    runners: JoinSet<(EffectId, Result<ChildIsolation, GuestUnavailable>)>,
}

impl GuestLease {
    /// Returns `None` if children run in this process.
    pub(crate) fn new(
        context: &Arc<RunContext>,
        id: &EffectId,
        request: &ChildRequest,
    ) -> Option<Self> {
        let IsolationMode::Guests { guest_pool, .. } = &context.isolation else { return None };
        Some(Self {
            context: Arc::clone(context),
            guest_pool: Arc::clone(guest_pool),
            id: id.clone(),
            request: request.clone(),
            delivered: Mutex::default(),
            task: tokio::sync::Mutex::new(None),
        })
    }

    /// Records a result delivered to the machine.
    pub(crate) fn deliver(&self, id: &EffectId, result: &EffectResult) {
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        delivered.push((id.clone(), result.clone()));
    }

    /// Waits until the guest has confirmed every step of the machine.
    pub(crate) async fn wait_confirmed(&self) -> Result<(), GuestUnavailable> {
        let mut task = self.task.lock().await;
        self.catch_up(&mut task).await
    }

    /// Waits until the guest has finished, and returns its isolation.
    pub(crate) async fn finish(&self) -> Result<ChildIsolation, GuestUnavailable> {
        let mut task = self.task.lock().await;
        self.catch_up(&mut task).await?;
        match task.as_mut() {
            Some(task) => task.ended().await,
            None => Err(GuestUnavailable::Differed),
        }
    }

    async fn catch_up(&self, task: &mut Option<GuestTask>) -> Result<(), GuestUnavailable> {
        let delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let task = task.get_or_insert_with(|| self.start_task());
        for result in delivered.get(task.sent..).unwrap_or_default() {
            // If the guest task has ended, its error is returned below.
            let _ = task.results_tx.send(result.clone());
        }
        task.sent = delivered.len();
        // The first step needs no result.
        while task.confirmed < delivered.len() + 1 {
            tokio::select! {
                biased;
                Some((_, confirmed)) = task.confirmed_rx.recv() => task.confirmed = confirmed,
                ended = task.runners.join_next() => match ended {
                    Some(Ok((_, Err(unavailable)))) => return Err(unavailable),
                    _ => return Err(GuestUnavailable::Differed),
                },
            }
        }
        Ok(())
    }

    fn start_task(&self) -> GuestTask {
        let (results_tx, results) = mpsc::unbounded_channel();
        let (confirmed_tx, confirmed_rx) = mpsc::unbounded_channel();
        let runner = GuestRunner {
            guest_pool: Arc::clone(&self.guest_pool),
            run_id: self.context.run_id.clone(),
            id: self.id.clone(),
            request: self.request.clone(),
            delivered: Vec::new(),
            results,
            confirmed: confirmed_tx,
        };
        let mut runners = JoinSet::new();
        runners.spawn(runner.run());
        GuestTask { results_tx, sent: 0, confirmed_rx, confirmed: 0, runners }
    }
}

impl GuestTask {
    async fn ended(&mut self) -> Result<ChildIsolation, GuestUnavailable> {
        match self.runners.join_next().await {
            Some(Ok((_, ended))) => ended,
            // A task panicked.
            _ => Err(GuestUnavailable::Differed),
        }
    }
}
