//! A response streamed token by token, as server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as HttpBody, Bytes, Frame};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::Pieces;
use super::answer::Answer;
use super::request::Completion;
use crate::http::error::Refusal;

/// Events that may wait for a slow client; later tokens wait in the channel of pieces.
const WAITING: usize = 16;

/// Begins a streamed response. Its events come from a separate task, which ends when the client
/// disconnects.
pub(super) fn respond(completion: Completion, pieces: Pieces) -> Response {
    let (sender, receiver) = channel(WAITING);
    tokio::spawn(async move {
        if let Err(Some(refusal)) = send(&completion, pieces, &sender).await {
            let _ = sender.send(event(&refusal.json().to_string())).await;
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::new(Events(receiver))).into_response()
}

/// Sends all events. The error is a refusal to send to the client, or `None` if the client has
/// disconnected.
async fn send(
    completion: &Completion,
    mut pieces: Pieces,
    sender: &Sender<Bytes>,
) -> Result<(), Option<Refusal>> {
    let mut answer = Answer::new(completion);
    while !answer.is_complete() {
        let piece = tokio::select! {
            piece = pieces.next() => piece.map_err(Some)?,
            () = sender.closed() => return Err(None),
        };
        for text in answer.take(piece, &pieces.stopped).map_err(Some)? {
            if let Some(chunk) = answer.chunk(text) {
                sender.send(event(&chunk.to_string())).await.map_err(|_| None)?;
            }
        }
    }
    let usage = completion.stream_usage.then(|| answer.usage_chunk().to_string());
    for last in usage.into_iter().chain(["[DONE]".to_owned()]) {
        sender.send(event(&last)).await.map_err(|_| None)?;
    }
    Ok(())
}

fn event(data: &str) -> Bytes {
    format!("data: {data}\n\n").into()
}

/// The body of a stream.
struct Events(Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
