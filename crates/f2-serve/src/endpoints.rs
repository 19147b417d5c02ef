//! The small endpoints: models, health, metrics, and the tokenizer for other programs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use f2_corpus::END_OF_TEXT;
use f2_lm::decode::DecodingKeys;
use f2_metrics::BAND_NAMES;
use serde_json::{Value, json};

use crate::completions::{Fields, token_id};
use crate::http::body::read_object;
use crate::http::error::{Refusal, json_response};
use crate::http::router::Shared;
use crate::{Model, metrics};

/// `GET /health`: whether requests are accepted.
pub(crate) async fn health(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    if shared.ending.load(Ordering::SeqCst) {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"));
    }
    Ok(json_response(&json!({ "status": "ok" })))
}

/// `GET /metrics`: counters for Prometheus.
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let page = metrics::page(shared.models.iter().map(|model| &*model.served));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response()
}

/// `GET /v1/models`.
pub(crate) async fn models(State(shared): State<Arc<Shared>>) -> Response {
    let models: Vec<Value> = shared.models.iter().map(|model| describe(model, &shared)).collect();
    json_response(&json!({ "object": "list", "data": models }))
}

/// `GET /v1/models/NAME`.
pub(crate) async fn model(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let model = shared.model(Some(&name))?;
    Ok(json_response(&describe(model, &shared)))
}

fn describe(model: &Model, shared: &Shared) -> Value {
    let served = &model.served;
    let shape = &served.saved.shape;
    let bounds = served.bands.as_ref().map(f2_metrics::Bands::bounds);
    json!({
        "id": served.name,
        "object": "model",
        "created": shared.began,
        "owned_by": "f2",
        "max_model_len": shape.positions,
        "f2": {
            "vocabulary": shape.vocabulary,
            "parameters": served.saved.decoder().layout.len(),
            "class_ends": shape.class_ends,
            "bands": BAND_NAMES,
            "band_bounds": bounds,
            "human_shares": served.human_shares,
            "decoding": served.decoding.as_ref().map(DecodingKeys::from),
        },
    })
}

/// `GET /tokenizer_info`, of the first model.
pub(crate) async fn tokenizer_info(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    let served = &shared.model(None)?.served;
    let end = served.end.map(|_| END_OF_TEXT);
    Ok(json_response(&json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": end,
        "bos_token": end,
        "pad_token": end,
        "chat_template": null,
        "model_max_length": served.saved.shape.positions,
        "vocab_size": served.saved.shape.vocabulary,
    })))
}

/// `POST /tokenize`: `prompt` to `tokens`.
pub(crate) async fn tokenize(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Refusal> {
    let fields = read_object(request, &shared.limits).await?;
    let fields = Fields(&fields);
    let served = &shared.model(fields.text("model")?)?.served;
    let text =
        fields.text("prompt")?.ok_or_else(|| Refusal::bad("prompt", "`prompt` is missing"))?;
    let tokens =
        served.vocabulary().encode(text).map_err(|error| Refusal::failed(error.to_string()))?;
    Ok(json_response(&json!({
        "count": tokens.len(),
        "max_model_len": served.saved.shape.positions,
        "tokens": tokens,
    })))
}

/// `POST /detokenize`: `tokens` to `prompt`.
pub(crate) async fn detokenize(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Refusal> {
    let fields = read_object(request, &shared.limits).await?;
    let fields = Fields(&fields);
    let served = &shared.model(fields.text("model")?)?.served;
    let missing = || Refusal::bad("tokens", "`tokens` must be a list of token ids");
    let tokens = fields.any("tokens").and_then(Value::as_array).ok_or_else(missing)?;
    let ids: Result<Vec<u32>, String> = tokens.iter().map(|id| token_id(id, served)).collect();
    let ids = ids.map_err(|reason| Refusal::bad("tokens", reason))?;
    let text =
        served.vocabulary().decode(&ids).map_err(|error| Refusal::failed(error.to_string()))?;
    Ok(json_response(&json!({ "prompt": text })))
}
