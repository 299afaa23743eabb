//! Asks the person at the client for a decision (MCP elicitation), in the old and the new version
//! of the protocol.
//!
//! With a URL, the client opens a page and the decision is made there, beyond the client's control.
//! A form is answered through the client, so it counts only if the policy allows it.

use std::time::Duration;

use moothall_core::canonical_json;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonObject, SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::frontend::{McpFrontend, client_of, tool_result};
use crate::ipc::{ElicitationPrompt, IpcRequest};

/// How long a question waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Name of the question in a result that requests input.
const REVIEW_FIELD: &str = "review";

/// State that the client returns with the answer, sealed against changes.
#[derive(Debug, Serialize, Deserialize)]
struct PendingElicitation {
    draft: String,
    /// `None` if a page was shown, so that there is no decision to apply here.
    seal: Option<String>,
}

/// Content of an answered form.
#[derive(Debug, Deserialize)]
struct ElicitationAnswer {
    decision: String,
    #[serde(default)]
    reason: String,
}

impl ElicitationPrompt {
    fn request(&self) -> Result<ElicitRequestParams, ErrorData> {
        match self {
            Self::Url { draft, url, message } => Ok(ElicitRequestParams::UrlElicitationParams {
                meta: None,
                message: message.clone(),
                url: url.clone(),
                elicitation_id: draft.clone(),
            }),
            Self::Form { message, .. } => Ok(ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: message.clone(),
                requested_schema: form()?,
            }),
        }
    }

    fn pending(&self) -> PendingElicitation {
        match self {
            Self::Url { draft, .. } => PendingElicitation { draft: draft.clone(), seal: None },
            Self::Form { draft, seal, .. } => {
                PendingElicitation { draft: draft.clone(), seal: Some(seal.clone()) }
            }
        }
    }
}

impl McpFrontend {
    /// Asks the person if the client supports it. Returns `None` if it does not or there was no
    /// answer; the caller then returns the plain result.
    pub(crate) async fn ask_person(
        &self,
        prompt: &ElicitationPrompt,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        if !can_be_asked(context, prompt) {
            return Ok(None);
        }
        let request = prompt.request()?;
        if self.is_modern(context) {
            let bound = bound_to(arguments)?;
            let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(ANSWER_TIMEOUT);
            let state = self
                .codec
                .seal_json_with(&prompt.pending(), &options)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            let question = InputRequest::Elicitation(ElicitRequest::new(request));
            let questions = InputRequests::from([(REVIEW_FIELD.to_owned(), question)]);
            return Ok(Some(InputRequiredResult::new(Some(questions), Some(state)).into()));
        }
        let answered =
            context.peer.create_elicitation_with_timeout(request, Some(ANSWER_TIMEOUT)).await;
        let Ok(answer) = answered else { return Ok(None) };
        let action = match answer.action {
            ElicitationAction::Accept => "accept",
            ElicitationAction::Decline => "decline",
            _ => "cancel",
        };
        let answer = json!({ "action": action, "content": answer.content });
        self.decided(&prompt.pending(), &answer, context).await.map(Some)
    }

    /// Handles a repeated call that carries the person's answer. It does not submit again.
    pub(crate) async fn resumed(
        &self,
        state: &str,
        answers: Option<&InputResponses>,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let bound = bound_to(arguments)?;
        let pending: PendingElicitation =
            self.codec.open_json_with(state, bound.as_bytes()).map_err(|_| {
                ErrorData::invalid_params(
                    "the request state belongs to another call or has expired",
                    None,
                )
            })?;
        let answer = answers.and_then(|all| all.get(REVIEW_FIELD)).cloned().unwrap_or_default();
        self.decided(&pending, &answer, context).await
    }

    async fn decided(
        &self,
        pending: &PendingElicitation,
        answer: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = match (&pending.seal, approval(answer)) {
            (Some(seal), Some((approve, reason))) => IpcRequest::Decide {
                draft: pending.draft.clone(),
                seal: seal.clone(),
                approve,
                reason,
                client: client_of(context),
            },
            // Only viewed or postponed: return the current result.
            _ => IpcRequest::Outcome { draft: pending.draft.clone() },
        };
        Ok(tool_result(self.gate.ask(&request).await).0.into())
    }
}

/// Returns the decision and its reason. Declining the form does not reject the draft; its state
/// stays the same.
fn approval(answer: &Value) -> Option<(bool, String)> {
    if answer["action"] != "accept" {
        return None;
    }
    let filled = ElicitationAnswer::deserialize(&answer["content"]).ok()?;
    match filled.decision.as_str() {
        "approve" => Some((true, filled.reason)),
        "reject" => Some((false, filled.reason)),
        _ => None,
    }
}

/// Binds a sealed state to a call with these arguments, in any order.
fn bound_to(arguments: &JsonObject) -> Result<String, ErrorData> {
    let text = canonical_json(arguments)
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    Ok(format!("draft_submit {text}"))
}

/// A client that lists no modes supports only forms.
fn can_be_asked(context: &RequestContext<RoleServer>, prompt: &ElicitationPrompt) -> bool {
    let Some(can) = context.client_capabilities().and_then(|all| all.elicitation) else {
        return false;
    };
    match prompt {
        ElicitationPrompt::Url { .. } => can.url.is_some(),
        ElicitationPrompt::Form { .. } => can.form.is_some() || can.url.is_none(),
    }
}

fn form() -> Result<ElicitationSchema, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "enum": ["approve", "reject", "later"],
                "default": "later"
            },
            "reason": { "type": "string", "title": "Why" }
        },
        "required": ["decision"]
    });
    serde_json::from_value(schema)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
