//! `POST /v1/completions`: from a request's fields to texts.

mod answer;
mod fields;
#[cfg(test)]
mod fuzz;
mod request;
mod strategy;
mod stream;
mod text;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use f2_lm::decode::RandomStreams;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use self::answer::Answer;
pub(crate) use self::fields::Fields;
use self::request::Completion;
pub(crate) use self::request::token_id;
use crate::http::body::read_object;
use crate::http::error::{Refusal, json_response};
use crate::http::router::Shared;
use crate::job::{Job, Piece, Stopped};

pub(crate) async fn completions(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Refusal> {
    if shared.ending.load(Ordering::SeqCst) {
        let message = "the server is shutting down and accepts no new requests";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(5));
    }
    let fields = read_object(request, &shared.limits).await?;
    let completion = Completion::parse(&fields, &shared)?;
    let deadline = Instant::now() + Duration::from_secs(shared.limits.seconds);
    let mut pieces = Pieces::submit(&completion, &shared, deadline)?;
    if completion.stream {
        return Ok(stream::respond(completion, pieces));
    }
    let mut answer = Answer::new(&completion);
    while !answer.is_complete() {
        answer.take(pieces.next().await?, &pieces.stopped)?;
    }
    Ok(json_response(&answer.whole()?))
}

/// The stream of pieces that a model's thread sends for a request.
struct Pieces {
    receiver: UnboundedReceiver<Piece>,
    stopped: Stopped,
    deadline: Instant,
}

impl Pieces {
    /// Passes a request to its model's thread, unless too many texts wait there.
    fn submit(
        completion: &Completion,
        shared: &Shared,
        deadline: Instant,
    ) -> Result<Self, Refusal> {
        let texts = completion.texts();
        let served = &completion.model.served;
        if !served.begin_waiting(texts, shared.limits.waiting) {
            served.metrics.refused.add(1);
            let message = format!("{} texts wait already; try again later", served.waiting());
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
            return Err(refusal.code("rate_limit_exceeded").retry_after(1));
        }
        let (sender, receiver) = unbounded_channel();
        let stopped = Stopped::new(texts);
        let streams = RandomStreams::new(&completion.prompts, completion.samples)
            .repeating(completion.strategy.deterministic);
        let job = Job {
            prompts: completion.prompts.clone(),
            samples: completion.samples,
            new_tokens: completion.new_tokens,
            strategy: completion.strategy.clone(),
            seed: completion.seed,
            streams: (0..texts).map(|text| streams.of(text)).collect(),
            end: served.end.filter(|_| !completion.ignore_end),
            alternatives: completion.logprobs,
            score_prompts: completion.echo && completion.logprobs.is_some(),
            stopped: stopped.clone(),
            pieces: sender,
        };
        if completion.model.jobs.send(job).is_err() {
            served.end_waiting(texts);
            let message = format!("the model `{}` is not running any more", served.name);
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        served.metrics.requests.add(1);
        served.metrics.prompt_tokens.add(completion.prompt_tokens() as u64);
        Ok(Self { receiver, stopped, deadline })
    }

    async fn next(&mut self) -> Result<Piece, Refusal> {
        match timeout_at(self.deadline, self.receiver.recv()).await {
            Ok(Some(Piece::Failed(message))) => Err(Refusal::failed(message)),
            Ok(Some(piece)) => Ok(piece),
            Ok(None) => Err(Refusal::failed("the model stopped before the text was complete")),
            Err(_) => {
                let message = "the request took longer than the server allows";
                Err(Refusal::new(StatusCode::GATEWAY_TIMEOUT, message).code("timeout"))
            }
        }
    }
}
