//! Events that every workflow publishes about its calls to models.

use super::{RunEvent, RunEventBody, UnavailableModel};
use crate::EffectId;
use crate::model::{ModelFailure, ModelReply, ModelRequest};
use crate::structured::OutputFault;

impl RunEvent {
    /// A model answered `request`.
    pub(crate) fn model_replied(id: &EffectId, request: &ModelRequest, reply: &ModelReply) -> Self {
        let instead_of = reply.fallback.as_ref().map(|fallback| UnavailableModel {
            model: request.model.clone(),
            reason: fallback.reason,
        });
        let body = RunEventBody::ModelReplied {
            effect_id: id.clone(),
            purpose: request.purpose,
            model: request.answered_by(reply).clone(),
            usage: reply.usage,
            usage_basis: reply.usage_basis,
            cost_micro_usd: reply.cost_micro_usd,
            instead_of,
        };
        Self::about(id, body)
    }

    /// A model gave no usable answer to `request`.
    pub(crate) fn model_failed(
        id: &EffectId,
        request: &ModelRequest,
        failure: ModelFailure,
    ) -> Self {
        let body = RunEventBody::ModelFailed {
            effect_id: id.clone(),
            purpose: request.purpose,
            model: request.model.clone(),
            kind: failure.kind,
            detail: failure.detail,
        };
        Self::about(id, body)
    }

    /// An answer was invalid.
    pub(crate) fn output_rejected(id: &EffectId, fault: &OutputFault) -> Self {
        let (effect_id, problems) = (id.clone(), fault.problems());
        Self::about(id, RunEventBody::OutputRejected { effect_id, problems })
    }
}
