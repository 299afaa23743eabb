//! A backend for tests, with replies from a queue or a function.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use moothall_core::model::{FailureKind, ModelFailure, ModelRequest};

use crate::backend::{
    AnswerFuture, BackendReply, BillingRisk, FailedAttempt, ModelAttempt, ModelBackend,
};
use crate::wire::{RawReply, RawStopReason};

/// Gives scripted replies. See [`ScriptedBackend::queue`] and [`ScriptedBackend::function`].
pub struct ScriptedBackend {
    script: Box<Script>,
}

type Script = dyn Fn(&ModelRequest) -> Result<RawReply, ModelFailure> + Send + Sync;

impl fmt::Debug for ScriptedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedBackend").finish_non_exhaustive()
    }
}

impl ScriptedBackend {
    /// Returns the texts in order. Calls beyond the last one fail, so a test notices.
    pub fn queue<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let queue: Mutex<VecDeque<String>> =
            Mutex::new(texts.into_iter().map(Into::into).collect());
        Self::function(move |_| {
            match queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
                Some(text) => Ok(said(text)),
                None => {
                    Err(ModelFailure::new(FailureKind::NotFound, "the script has no more replies"))
                }
            }
        })
    }

    pub fn function(
        script: impl Fn(&ModelRequest) -> Result<RawReply, ModelFailure> + Send + Sync + 'static,
    ) -> Self {
        Self { script: Box::new(script) }
    }
}

/// A complete reply with only a text.
pub fn said(text: impl Into<String>) -> RawReply {
    RawReply { text: text.into(), stop: RawStopReason::End, usage: None, model: None }
}

impl ModelBackend for ScriptedBackend {
    fn answer<'a>(&'a self, call: ModelAttempt<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            let answer = (self.script)(call.request)
                .map_err(|failure| FailedAttempt { failure, bill: BillingRisk::None })?;
            if let Some(listener) = call.listener {
                listener.text(&answer.text);
            }
            Ok(BackendReply { answer, window: None })
        })
    }
}
