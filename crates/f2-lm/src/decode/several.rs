//! Generation on several devices at once.

use f2_engine::Device;

use super::{Continuation, Event, Generated, Generator, Request, Token};
use crate::model::Model;
use crate::{Devices, Error, Parts, Worker};

/// An owned [`Event`], to be sent to another thread.
enum Message {
    Ready,
    Token { text: usize, token: Token },
    Step { tokens: usize },
    Finished(Continuation),
}

/// Continues the prompts on all devices, each with a copy of the model loaded by `load`. `observer`
/// sees every token; `stop` is checked before every pass.
///
/// With several devices, texts are dealt out in whole batches, as many as a device processes at a
/// time. All matrix products then have the shapes they have on one device, and the results are
/// bit-identical.
pub fn generate_on<D: Device, E: From<Error> + Send>(
    devices: &Devices<'_, D, E>,
    load: &(dyn Fn(D) -> Result<Model<D>, E> + Sync),
    request: &Request<'_>,
    observer: &mut dyn FnMut(Event<'_>),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Generated, E> {
    let texts = request.texts();
    let size = if devices.deals() { request.texts_at_a_time(D::SEQUENCES) } else { texts.max(1) };
    let work = |device: D, worker: Worker<'_, Message>| {
        let model = load(device)?;
        let Worker { parts, tell, stop } = worker;
        let part = |number: usize| number * size..texts.min((number + 1) * size);
        let mut parts = std::iter::from_fn(|| parts.next().map(part));
        let mut observer = |event: Event<'_>| tell(Message::of(event));
        let generator = Generator { model: &model };
        Ok(generator.generate_parts(request, None, &mut parts, &mut observer, stop)?)
    };
    let mut is_ready = false;
    let mut observer = |message: Message| {
        // Only the first device's `Ready` is passed on.
        if !matches!(message, Message::Ready) || !std::mem::replace(&mut is_ready, true) {
            observer(message.event());
        }
    };
    let parts = Parts::new(texts.div_ceil(size));
    let made = devices.share(&parts, &work, &mut observer, stop)?;
    Ok(Generated::of(request, made.concat()))
}

/// Continues the prompts on one device, contrasting the model with the amateur that `load_amateur`
/// loads onto the same device.
pub fn generate_against<D: Device, E: From<Error> + Send>(
    devices: &Devices<'_, D, E>,
    load: &(dyn Fn(D) -> Result<Model<D>, E> + Sync),
    load_amateur: &(dyn Fn(D) -> Result<Model<D>, E> + Sync),
    request: &Request<'_>,
    observer: &mut dyn FnMut(Event<'_>),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Generated, E> {
    let model = load(devices.open_first()?)?;
    let amateur = load_amateur(devices.open_first()?)?;
    Ok(Generator { model: &model }.generate_against(&amateur, request, observer, stop)?)
}

impl Message {
    fn of(event: Event<'_>) -> Self {
        match event {
            Event::Ready => Self::Ready,
            Event::Token { text, token } => Self::Token { text, token: *token },
            Event::Step { tokens } => Self::Step { tokens },
            Event::Finished(text) => Self::Finished(text.clone()),
        }
    }

    fn event(&self) -> Event<'_> {
        match self {
            Self::Ready => Event::Ready,
            Self::Token { text, token } => Event::Token { text: *text, token },
            Self::Step { tokens } => Event::Step { tokens: *tokens },
            Self::Finished(text) => Event::Finished(text),
        }
    }
}
