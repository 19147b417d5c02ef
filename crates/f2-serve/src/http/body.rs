//! Reading the body of a request, within limits of size and time.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use serde_json::{Map, Value};

use super::error::Refusal;
use crate::Limits;

/// Reads a body that is a JSON object.
pub(crate) async fn read_object(
    request: Request,
    limits: &Limits,
) -> Result<Map<String, Value>, Refusal> {
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.body as u64) {
        return Err(too_large(limits));
    }
    let reading = axum::body::to_bytes(Body::new(request.into_body()), limits.body);
    let patience = Duration::from_secs(limits.patience_seconds);
    let bytes = match tokio::time::timeout(patience, reading).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_too_large(&error) => return Err(too_large(limits)),
        Ok(Err(_)) => return Err(Refusal::new(StatusCode::BAD_REQUEST, "the body was cut off")),
        Err(_) => {
            let message =
                format!("the body was not received within {} seconds", limits.patience_seconds);
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message));
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is not a JSON object")),
        Err(error) => {
            Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the body is not JSON: {error}")))
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    // The limit's error type is not exported. Its message distinguishes it from a broken
    // connection, whose client cannot receive a response anyway.
    std::error::Error::source(error).is_some_and(|source| source.to_string().contains("limit"))
}

fn too_large(limits: &Limits) -> Refusal {
    let message = format!("the body is larger than {} bytes", limits.body);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}
