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
    stage: Arc<RunContext>,
    lobby: Arc<GuestPool>,
    id: EffectId,
    request: ChildRequest,
    /// All results delivered to the machine, in order.
    told: Mutex<Vec<Told>>,
    stay: tokio::sync::Mutex<Option<GuestTask>>,
}

/// A session in guests. Dropping it ends the guest.
#[derive(Debug)]
struct GuestTask {
    tell: UnboundedSender<Told>,
    /// How many of the delivered results were sent to the guest.
    heard: usize,
    hear_agreed: UnboundedReceiver<(EffectId, usize)>,
    agreed: usize,
    tenant: JoinSet<(EffectId, Result<ChildIsolation, GuestUnavailable>)>,
}

impl GuestLease {
    /// Returns `None` if children run in this process.
    pub(crate) fn new(
        stage: &Arc<RunContext>,
        id: &EffectId,
        request: &ChildRequest,
    ) -> Option<Self> {
        let IsolationMode::Rooms { lobby, .. } = &stage.walls else { return None };
        Some(Self {
            stage: Arc::clone(stage),
            lobby: Arc::clone(lobby),
            id: id.clone(),
            request: request.clone(),
            told: Mutex::default(),
            stay: tokio::sync::Mutex::new(None),
        })
    }

    /// Records a result delivered to the machine.
    pub(crate) fn tell(&self, id: &EffectId, result: &EffectResult) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push((id.clone(), result.clone()));
    }

    /// Waits until the guest has confirmed every step of the machine.
    pub(crate) async fn agree(&self) -> Result<(), GuestUnavailable> {
        let mut stay = self.stay.lock().await;
        self.catch_up(&mut stay).await
    }

    /// Waits until the guest has finished, and returns its isolation.
    pub(crate) async fn leave(&self) -> Result<ChildIsolation, GuestUnavailable> {
        let mut stay = self.stay.lock().await;
        self.catch_up(&mut stay).await?;
        match stay.as_mut() {
            Some(stay) => stay.ended().await,
            None => Err(GuestUnavailable::Differed),
        }
    }

    async fn catch_up(&self, stay: &mut Option<GuestTask>) -> Result<(), GuestUnavailable> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stay = stay.get_or_insert_with(|| self.enter());
        for one in told.get(stay.heard..).unwrap_or_default() {
            // If the guest task has ended, its error is returned below.
            let _ = stay.tell.send(one.clone());
        }
        stay.heard = told.len();
        // The first step needs no result.
        while stay.agreed < told.len() + 1 {
            tokio::select! {
                biased;
                Some((_, agreed)) = stay.hear_agreed.recv() => stay.agreed = agreed,
                ended = stay.tenant.join_next() => match ended {
                    Some(Ok((_, Err(no_room)))) => return Err(no_room),
                    _ => return Err(GuestUnavailable::Differed),
                },
            }
        }
        Ok(())
    }

    fn enter(&self) -> GuestTask {
        let (tell, more) = mpsc::unbounded_channel();
        let (say_agreed, hear_agreed) = mpsc::unbounded_channel();
        let tenant = GuestRunner {
            lobby: Arc::clone(&self.lobby),
            run_id: self.stage.run_id.clone(),
            id: self.id.clone(),
            request: self.request.clone(),
            told: Vec::new(),
            more,
            agreed: say_agreed,
        };
        let mut tenants = JoinSet::new();
        tenants.spawn(tenant.live());
        GuestTask { tell, heard: 0, hear_agreed, agreed: 0, tenant: tenants }
    }
}

impl GuestTask {
    async fn ended(&mut self) -> Result<ChildIsolation, GuestUnavailable> {
        match self.tenant.join_next().await {
            Some(Ok((_, ended))) => ended,
            // A task panicked.
            _ => Err(GuestUnavailable::Differed),
        }
    }
}
