//! Errors in the format of OpenAI's API.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A refused request: its status, and the error object of OpenAI's API.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
    param: Option<&'static str>,
    code: Option<&'static str>,
    retry_after: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None, retry_after: None }
    }

    /// A bad request, with the parameter at fault.
    pub(crate) fn bad(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), ..Self::new(StatusCode::BAD_REQUEST, message) }
    }

    /// A failure of the server.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Adds a code for programs.
    pub(crate) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Adds the seconds after which the client may try again.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The body of the response.
    pub(crate) fn json(&self) -> Value {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let Self { message, param, code, .. } = self;
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = self.json().to_string();
        let mut response = (self.status, [(header::CONTENT_TYPE, JSON)], body).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The content type of all responses but the page, the metrics and streams.
pub(crate) const JSON: &str = "application/json";

/// A response with a JSON body.
pub(crate) fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, JSON)], value.to_string()).into_response()
}
