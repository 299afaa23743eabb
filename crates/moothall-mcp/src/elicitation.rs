//! Asking the person at the client, in both eras of the protocol.
//!
//! An address is opened by the client and the decision is made there, out of its reach. A form is
//! answered through the client, so it counts only where the policy says so.

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

use crate::front::{Front, client_of, said};
use crate::ipc::{Ask, Asking};

/// How long a question may stay unanswered.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The name of the question in an answer that asks for more.
const QUESTION: &str = "review";

/// What the client gives back with the person's answer, sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Pending {
    draft: String,
    /// None: a page was shown, and there is nothing to decide here.
    seal: Option<String>,
}

/// A person's answer to a form.
#[derive(Debug, Deserialize)]
struct Filled {
    decision: String,
    #[serde(default)]
    reason: String,
}

impl Asking {
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

    fn pending(&self) -> Pending {
        match self {
            Self::Url { draft, .. } => Pending { draft: draft.clone(), seal: None },
            Self::Form { draft, seal, .. } => {
                Pending { draft: draft.clone(), seal: Some(seal.clone()) }
            }
        }
    }
}

impl Front {
    /// Asks, if the client can; `None`: it cannot, or nobody answered, and the plain result stands.
    pub(super) async fn ask_person(
        &self,
        asking: &Asking,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        if !can_be_asked(context, asking) {
            return Ok(None);
        }
        let request = asking.request()?;
        if self.is_modern(context) {
            let bound = bound_to(arguments)?;
            let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(PATIENCE);
            let state = self
                .codec
                .seal_json_with(&asking.pending(), &options)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            let question = InputRequest::Elicitation(ElicitRequest::new(request));
            let questions = InputRequests::from([(QUESTION.to_owned(), question)]);
            return Ok(Some(InputRequiredResult::new(Some(questions), Some(state)).into()));
        }
        let answered = context.peer.create_elicitation_with_timeout(request, Some(PATIENCE)).await;
        let Ok(answer) = answered else { return Ok(None) };
        let action = match answer.action {
            ElicitationAction::Accept => "accept",
            ElicitationAction::Decline => "decline",
            _ => "cancel",
        };
        let answer = json!({ "action": action, "content": answer.content });
        self.decided(&asking.pending(), &answer, context).await.map(Some)
    }

    /// A call that comes back with the person's answer. It submits nothing a second time.
    pub(super) async fn resumed(
        &self,
        state: &str,
        answers: Option<&InputResponses>,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let bound = bound_to(arguments)?;
        let pending: Pending =
            self.codec.open_json_with(state, bound.as_bytes()).map_err(|_| {
                ErrorData::invalid_params("the request state is not of this call, or too old", None)
            })?;
        let answer = answers.and_then(|all| all.get(QUESTION)).cloned().unwrap_or_default();
        self.decided(&pending, &answer, context).await
    }

    async fn decided(
        &self,
        pending: &Pending,
        answer: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let ask = match (&pending.seal, approval(answer)) {
            (Some(seal), Some((approve, reason))) => Ask::Decide {
                draft: pending.draft.clone(),
                seal: seal.clone(),
                approve,
                reason,
                client: client_of(context),
            },
            // Looked at, or put off: what became of it meanwhile is the answer.
            _ => Ask::Outcome { draft: pending.draft.clone() },
        };
        Ok(said(self.gate.ask(&ask).await).0.into())
    }
}

/// Yes or no and why, where a person said one of them. To decline the form is not to reject the
/// draft: it stays where it is.
fn approval(answer: &Value) -> Option<(bool, String)> {
    if answer["action"] != "accept" {
        return None;
    }
    let filled = Filled::deserialize(&answer["content"]).ok()?;
    match filled.decision.as_str() {
        "approve" => Some((true, filled.reason)),
        "reject" => Some((false, filled.reason)),
        _ => None,
    }
}

/// What a sealed state belongs to: this call with these arguments, in whatever order.
fn bound_to(arguments: &JsonObject) -> Result<String, ErrorData> {
    let text = canonical_json(arguments)
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    Ok(format!("draft_submit {text}"))
}

/// A client that says nothing about modes knows forms only.
fn can_be_asked(context: &RequestContext<RoleServer>, asking: &Asking) -> bool {
    let Some(can) = context.client_capabilities().and_then(|all| all.elicitation) else {
        return false;
    };
    match asking {
        Asking::Url { .. } => can.url.is_some(),
        Asking::Form { .. } => can.form.is_some() || can.url.is_none(),
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
