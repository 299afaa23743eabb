//! The room of a child that is driven step by step.

use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::child::{ChildRequest, Isolation};
use moothall_core::{EffectId, EffectResult};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::wave::Stage;
use crate::guest_machine::{NoRoom, Tenant, Told};
use crate::rooms::{Lobby, Walls};

/// Keeps a room in step with a child. It is entered when the first effect is performed on this
/// worker: whoever only replays needs none.
#[derive(Debug)]
pub(super) struct Keeper {
    stage: Arc<Stage>,
    lobby: Arc<Lobby>,
    id: EffectId,
    request: ChildRequest,
    /// Everything that the machine was told, in order.
    told: Mutex<Vec<Told>>,
    stay: tokio::sync::Mutex<Option<Stay>>,
}

/// A stay in rooms. It ends with this value.
#[derive(Debug)]
struct Stay {
    tell: UnboundedSender<Told>,
    /// How much of what the machine was told the room has heard.
    heard: usize,
    hear_agreed: UnboundedReceiver<(EffectId, usize)>,
    agreed: usize,
    tenant: JoinSet<(EffectId, Result<Isolation, NoRoom>)>,
}

impl Keeper {
    /// Nobody where children live in this process.
    pub(super) fn new(stage: &Arc<Stage>, id: &EffectId, request: &ChildRequest) -> Option<Self> {
        let Walls::Rooms { lobby, .. } = &stage.walls else { return None };
        Some(Self {
            stage: Arc::clone(stage),
            lobby: Arc::clone(lobby),
            id: id.clone(),
            request: request.clone(),
            told: Mutex::default(),
            stay: tokio::sync::Mutex::new(None),
        })
    }

    /// The machine was told something.
    pub(super) fn tell(&self, id: &EffectId, result: &EffectResult) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push((id.clone(), result.clone()));
    }

    /// Waits until the room has made every step that the machine made.
    pub(super) async fn agree(&self) -> Result<(), NoRoom> {
        let mut stay = self.stay.lock().await;
        self.catch_up(&mut stay).await
    }

    /// Waits until the room is at the end of the machine, and says what is known about it.
    pub(super) async fn leave(&self) -> Result<Isolation, NoRoom> {
        let mut stay = self.stay.lock().await;
        self.catch_up(&mut stay).await?;
        match stay.as_mut() {
            Some(stay) => stay.ended().await,
            None => Err(NoRoom::Differed),
        }
    }

    async fn catch_up(&self, stay: &mut Option<Stay>) -> Result<(), NoRoom> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stay = stay.get_or_insert_with(|| self.enter());
        for one in told.get(stay.heard..).unwrap_or_default() {
            // A tenant that is gone says why below.
            let _ = stay.tell.send(one.clone());
        }
        stay.heard = told.len();
        // The first step is made without being told anything.
        while stay.agreed < told.len() + 1 {
            tokio::select! {
                biased;
                Some((_, agreed)) = stay.hear_agreed.recv() => stay.agreed = agreed,
                ended = stay.tenant.join_next() => match ended {
                    Some(Ok((_, Err(no_room)))) => return Err(no_room),
                    _ => return Err(NoRoom::Differed),
                },
            }
        }
        Ok(())
    }

    fn enter(&self) -> Stay {
        let (tell, more) = mpsc::unbounded_channel();
        let (say_agreed, hear_agreed) = mpsc::unbounded_channel();
        let tenant = Tenant {
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
        Stay { tell, heard: 0, hear_agreed, agreed: 0, tenant: tenants }
    }
}

impl Stay {
    async fn ended(&mut self) -> Result<Isolation, NoRoom> {
        match self.tenant.join_next().await {
            Some(Ok((_, ended))) => ended,
            // A task of ours panicked.
            _ => Err(NoRoom::Differed),
        }
    }
}
