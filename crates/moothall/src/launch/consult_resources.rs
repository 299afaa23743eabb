//! What a consultation needs on this machine: models, evidence and sandboxes.

use std::sync::Arc;

use moothall_core::consult::EvidenceSource;
use moothall_core::evidence::Evidence;
use moothall_core::sandbox::{SandboxFailure, SandboxFailureKind};
use moothall_core::{ConsultSpec, IsolationChoice};
use moothall_engine::{DebateRooms, Lobby, OnFailure, Walls};
use moothall_models::Gateway;
use moothall_sandbox::PoolOptions;

use super::{PARALLEL_MOVES, recording};
use crate::config::{EngineChoice, Loaded};
use crate::context::Context;
use crate::error::CliError;
use crate::filings::Filings;
use crate::isolation;
use crate::pdf_sandbox::PdfSandbox;

/// What a consultation needs.
pub(super) struct ConsultResources {
    pub(super) gateway: Arc<Gateway>,
    pub(super) filings: Arc<Filings>,
    pub(super) walls: Walls,
    /// Why debates have no sandbox although they should, with the remedy.
    pub(super) without_walls: Option<String>,
    rooms: Option<DebateRooms>,
}

impl ConsultResources {
    /// Opens models, evidence and sandboxes. Nothing is spent if one is missing.
    pub(super) async fn open(context: &Context, spec: &ConsultSpec) -> Result<Self, CliError> {
        let models = spec.input.models.distinct();
        let gateway = Arc::new(context.gateway_for(&models, recording(&spec.settings)?)?);
        let filings = evidence(context, spec).await?;
        let Found { walls, rooms, without_walls } = walls(&context.loaded, spec).await?;
        Ok(Self { gateway, filings: Arc::new(filings), walls, without_walls, rooms })
    }

    /// Gathers the evidence before there is a run, to refuse a company that is unknown, ambiguous or
    /// stale. Nothing is gathered where a model makes it up.
    pub(super) async fn gather(&self, spec: &ConsultSpec) -> Result<Option<Evidence>, CliError> {
        match spec.input.gather.source {
            EvidenceSource::Synthetic => Ok(None),
            EvidenceSource::Filings | EvidenceSource::Files => {
                self.filings.gather(&spec.input.gather).await.map(Some)
            }
        }
    }

    /// Starts sandboxes before a debate needs one.
    pub(super) fn warm_up(&self) {
        if let Some(rooms) = &self.rooms {
            rooms.expect();
        }
    }

    /// Waits until nothing is left of any sandbox.
    pub(super) async fn shut_down(&self) {
        self.filings.shut_down().await;
        if let Some(rooms) = &self.rooms {
            rooms.shut_down().await;
        }
    }
}

/// Where evidence comes from. Nothing is read yet.
async fn evidence(context: &Context, spec: &ConsultSpec) -> Result<Filings, CliError> {
    let loaded = &context.loaded;
    let (settings, gather) = (&spec.settings, &spec.input.gather);
    let mut filings = match gather.source {
        EvidenceSource::Files => Filings::none(),
        EvidenceSource::Filings | EvidenceSource::Synthetic => {
            let (offline, turnstile) = (settings.offline.as_deref(), context.turnstile.clone());
            Filings::open(loaded, offline, &gather.ticker, turnstile).await?
        }
    };
    if let Some(folder) = &settings.documents {
        let engine = settings.isolation.and_then(EngineChoice::of);
        let pdf = PdfSandbox::new(loaded, engine, settings.allow_shared_kernel);
        filings = filings.with_documents(folder, pdf);
    }
    if let Some(news) = &settings.news {
        filings = filings.with_news(news);
    }
    Ok(filings)
}

/// Where debates run.
struct Found {
    walls: Walls,
    rooms: Option<DebateRooms>,
    without_walls: Option<String>,
}

/// Finds where debates run. A debate is text: where there is no sandbox it may go on without one, unless
/// somebody demanded walls, and its events, its receipt and the memo say so.
async fn walls(loaded: &Loaded, spec: &ConsultSpec) -> Result<Found, CliError> {
    let settings = &spec.settings;
    let needs_walls = isolation::debate_needs_walls(loaded)?;
    let engine = settings.isolation.unwrap_or(IsolationChoice::Auto);
    if engine == IsolationChoice::None {
        return match needs_walls {
            false => Ok(Found { walls: Walls::None, rooms: None, without_walls: None }),
            true => Err(CliError::usage(
                "`--isolation none` is refused: your configuration demands a sandbox",
            )
            .with_hint(
                "see `isolation.minimum` and `isolation.on_failure` in `moothall config show`",
            )),
        };
    }
    let named = settings.isolation.and_then(EngineChoice::of);
    let policy = isolation::policy(loaded, named, settings.allow_shared_kernel)?;
    let on_failure = if needs_walls { OnFailure::Fail } else { OnFailure::Fallback };
    let host = match isolation::host(loaded) {
        Ok(host) => host,
        // The program was built without the agent.
        Err(error) => {
            return without(SandboxFailureKind::NoEngine, error, engine, on_failure);
        }
    };
    let options = PoolOptions {
        idle: settings.parallel_moves.unwrap_or(PARALLEL_MOVES).min(MOST_IDLE) as usize,
        memory_bytes: isolation::memory_bytes(loaded),
    };
    match DebateRooms::open(&host, &policy, options).await {
        Ok(rooms) => {
            let lobby = Arc::new(Lobby::new(rooms.clone()));
            let walls = Walls::Rooms { lobby, on_failure };
            Ok(Found { walls, rooms: Some(rooms), without_walls: None })
        }
        Err(error) => {
            let (kind, hint) = (error.failure().kind, isolation::hint(&error));
            let refused = CliError::failed("debates have no sandbox").with_source(error);
            let refused = match hint {
                Some(hint) => refused.with_hint(hint),
                None => refused,
            };
            without(kind, refused, engine, on_failure)
        }
    }
}

/// Rooms that wait, already started, at most.
const MOST_IDLE: u32 = 4;

/// Whoever named an engine wants it; otherwise debates go on without walls where that is allowed,
/// and everything that is shown says why.
fn without(
    kind: SandboxFailureKind,
    error: CliError,
    engine: IsolationChoice,
    on_failure: OnFailure,
) -> Result<Found, CliError> {
    if engine != IsolationChoice::Auto || on_failure == OnFailure::Fail {
        return Err(error);
    }
    let mut detail = error.words();
    if let Some(hint) = &error.hint {
        detail.push_str(&format!("; {hint}"));
    }
    let failure = SandboxFailure { kind, detail: detail.clone() };
    let walls = Walls::Rooms { lobby: Arc::new(Lobby::closed(failure)), on_failure };
    Ok(Found { walls, rooms: None, without_walls: Some(detail) })
}
