//! A program for a task that nobody sits in front of: started and driven for a server, with what the
//! command starts and drives it with.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::RunId;
use moothall_core::reflexion::{Contract, Expectation, InvalidPattern, Reflexion};
use moothall_engine::Ended;
use moothall_models::Ledger;
use moothall_store::{NewRun, RunRow, Store, StoredEvent};

use super::drive::{Ready, driver, have_inputs, log, workflow};
use super::kept::{Kept, Settings};
use super::wanted::Wanted;
use super::{TITLE_CHARS, reflexion_input};
use crate::args::RunArgs;
use crate::commands::words;
use crate::context::Context;
use crate::error::CliError;
use crate::local;
use crate::pace::Pace;

/// A run that can be driven.
pub(in crate::commands) struct Opened {
    kept: Kept,
    ready: Ready,
    ledger: Ledger,
    new: Option<NewRun>,
}

impl Opened {
    /// What the arguments ask for; `expect` is found in what the program prints. No file of this
    /// machine is read.
    pub(in crate::commands) async fn new(
        context: &Context,
        args: &RunArgs,
        expect: Option<&str>,
    ) -> Result<Self, CliError> {
        let mut settings = Settings::from_args(args)?;
        settings.set_budget(context.budget());
        let pattern = expect.map(str::parse).transpose().map_err(|error: InvalidPattern| {
            CliError::usage("what is expected cannot be used").with_source(error)
        })?;
        let contract = Contract {
            expect: pattern.map(|pattern| Expectation::Pattern { pattern }),
            check: None,
            outputs: Vec::new(),
        };
        let wanted = Wanted {
            task: args.task.clone().unwrap_or_default(),
            model: args.model.clone(),
            inputs: BTreeMap::new(),
            contract,
            attempts: args.attempts,
        };
        let model = context.model(wanted.model.as_ref())?;
        let input = reflexion_input(context, args, &model, &wanted)?;
        workflow(input.clone())?;
        let kept = Kept { reflexion: input, settings };
        let ready = Self::ready(context, &kept).await?;
        let title = words::cut(&wanted.task, TITLE_CHARS);
        let input = serde_json::to_value(&kept)
            .map_err(|error| CliError::failed("the run cannot be written").with_source(error))?;
        let new = local::new_run(Reflexion::NAME, &title, &model, input)?;
        let ledger = Ledger::new(context.budget());
        Ok(Self { kept, ready, ledger, new: Some(new) })
    }

    /// One that stands still.
    pub(in crate::commands) async fn again(
        context: &Context,
        kept: Kept,
        row: &RunRow,
    ) -> Result<Self, CliError> {
        let ready = Self::ready(context, &kept).await?;
        let ledger = Ledger::resume(kept.settings.budget(), row.spent.unwrap_or_default());
        Ok(Self { kept, ready, ledger, new: None })
    }

    async fn ready(context: &Context, kept: &Kept) -> Result<Ready, CliError> {
        let input = &kept.reflexion;
        let (model, image, limits) = (&input.model, &input.image, input.limits);
        Box::pin(Ready::find(context, &kept.settings, model, image, limits)).await
    }

    /// The run that is to be made, once.
    pub(in crate::commands) fn take_new(&mut self) -> Option<NewRun> {
        self.new.take()
    }

    /// Gives back what it needs: somebody else drives it.
    pub(in crate::commands) async fn leave(self) {
        self.ready.shut_down().await;
    }

    /// Drives it to where it stops. The caller holds its lock.
    pub(in crate::commands) async fn drive(
        self,
        store: &Arc<dyn Store>,
        run_id: &RunId,
        pace: Pace,
        mut heard: impl FnMut(&StoredEvent) + Send + 'static,
    ) -> Result<Ended, CliError> {
        let Self { kept: Kept { reflexion, .. }, ready, ledger, .. } = self;
        let (model, task_bytes) = (reflexion.model.clone(), reflexion.task.len());
        have_inputs(&**store, run_id, &reflexion).await?;
        let mut workflow = workflow(reflexion)?;
        let (_, driver) = driver(&ready, store, run_id, ledger, pace);
        let driver = driver.heed_pause().on_event(move |stored| {
            log(stored, &model, task_bytes);
            heard(stored);
        });
        // Boxed: a sandbox under way is large.
        let ended = Box::pin(driver.drive(&mut workflow))
            .await
            .map_err(|error| CliError::failed("the run cannot be driven").with_source(error));
        ready.shut_down().await;
        ended
    }
}
