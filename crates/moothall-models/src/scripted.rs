//! A backend for tests: answers come from a queue or a function.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use moothall_core::model::{FailureKind, ModelFailure, ModelRequest};

use crate::backend::{AnswerFuture, Answered, Backend, Bill, Call, FailedTry};
use crate::wire::{Answer, AnswerStop};

/// Answers by script. See [`Scripted::queue`] and [`Scripted::function`].
pub struct Scripted {
    script: Box<Script>,
}

type Script = dyn Fn(&ModelRequest) -> Result<Answer, ModelFailure> + Send + Sync;

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

impl Scripted {
    /// Gives the texts one after the other; a call too many fails, so that a test notices.
    pub fn queue<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let queue: Mutex<VecDeque<String>> =
            Mutex::new(texts.into_iter().map(Into::into).collect());
        Self::function(move |_| {
            match queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
                Some(text) => Ok(said(text)),
                None => Err(ModelFailure::new(
                    FailureKind::NotFound,
                    "the script has no further answer",
                )),
            }
        })
    }

    /// Answers with a function of the request.
    pub fn function(
        script: impl Fn(&ModelRequest) -> Result<Answer, ModelFailure> + Send + Sync + 'static,
    ) -> Self {
        Self { script: Box::new(script) }
    }
}

/// A complete answer with nothing but its text.
pub fn said(text: impl Into<String>) -> Answer {
    Answer { text: text.into(), stop: AnswerStop::End, usage: None, model: None }
}

impl Backend for Scripted {
    fn answer<'a>(&'a self, call: Call<'a>) -> AnswerFuture<'a> {
        Box::pin(async move {
            let answer = (self.script)(call.request)
                .map_err(|failure| FailedTry { failure, bill: Bill::None })?;
            if let Some(listener) = call.listener {
                listener.text(&answer.text);
            }
            Ok(Answered { answer, window: None })
        })
    }
}
