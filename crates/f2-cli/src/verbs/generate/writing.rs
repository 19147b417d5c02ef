//! Generation on a device: texts are shown as they come, and written to files at the end.

use std::path::{Path, PathBuf};
use std::time::Instant;

use f2_engine::Device;
use f2_files::write_text_atomically;
use f2_lm::Devices;
use f2_lm::decode::{
    Continuation, Event, Generated, Generator, Request, generate_against, generate_on,
};
use f2_lm::run::SavedModel;

use super::paint::Paint;
use super::prompts::Prompts;
use super::record::{self, Record};
use super::screen::Screen;
use super::{Generate, Inquiry};
use crate::failure::{Failure, Kind, Outcome};
use crate::progress::{Progress, Unit};
use crate::verbs::device::SharedTask;
use crate::{interrupt, output};

/// A request, for whichever devices share it.
#[derive(Clone, Copy)]
pub(super) struct Writing<'a> {
    pub(super) verb: &'a Generate,
    pub(super) inquiry: Inquiry<'a>,
    /// The amateur that the model is contrasted with.
    pub(super) amateur: Option<&'a SavedModel>,
    pub(super) prompts: &'a Prompts,
    pub(super) request: &'a Request<'a>,
}

impl SharedTask for Writing<'_> {
    type Output = (Generated, f64);

    fn run<D: Device>(self, devices: &Devices<'_, D, Failure>) -> Result<Self::Output, Failure> {
        let paint = Paint::new(self.inquiry.model);
        let shows_text = !self.verb.json && self.verb.out.is_none();
        if let Some(legend) = paint.legend().filter(|_| shows_text) {
            output::print_styled(&legend)?;
        }
        let load = |device| Ok(self.inquiry.model.load(device)?);
        self.show(&paint, |observer, stop| {
            let Some(amateur) = self.amateur else {
                return generate_on(devices, &load, self.request, observer, stop);
            };
            let load_amateur = |device| Ok(amateur.load(device)?);
            generate_against(devices, &load, &load_amateur, self.request, observer, stop)
        })
    }
}

/// The function that receives every event, and the one that says whether to stop.
type Observer<'a> = &'a mut dyn FnMut(Event<'_>);
type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

impl Writing<'_> {
    /// Generates and shows the texts with a model that is loaded.
    pub(super) fn write<D: Device>(
        &self,
        generator: &Generator<'_, D>,
        paint: &Paint,
    ) -> Result<(Generated, f64), Failure> {
        self.show(paint, |observer, stop| Ok(generator.generate(self.request, observer, stop)?))
    }

    /// Shows the texts that `generate` makes; also returns the seconds it took once the memory was
    /// allocated.
    fn show(
        &self,
        paint: &Paint,
        generate: impl FnOnce(Observer<'_>, Stop<'_>) -> Result<Generated, Failure>,
    ) -> Result<(Generated, f64), Failure> {
        let Self { verb, request, .. } = *self;
        let texts = request.texts();
        let mut screen = Screen::new(self, paint);
        let total = texts.saturating_mul(request.new_tokens) as u64;
        // A single text is its own progress.
        let progress = (texts > 1 || !screen.is_live())
            .then(|| Progress::new("writing", Some(total), Unit::Tokens));
        let mut failure = None;
        let mut began = Instant::now();
        let mut observer = |event: Event<'_>| {
            if let Event::Ready = event {
                began = Instant::now();
            }
            if let (Event::Step { tokens }, Some(progress)) = (event, &progress) {
                progress.advance(tokens as u64);
            }
            let shown = match &progress {
                Some(progress) => progress.aside(|| screen.see(event)),
                None => screen.see(event),
            };
            failure = failure.take().or(shown.err());
        };
        // On an interrupt, or when standard output is closed.
        let stop = || interrupt::asked() || (verb.out.is_none() && output::reader_left());
        let generated = generate(&mut observer, &stop)?;
        let seconds = began.elapsed().as_secs_f64();
        failure.map_or(Ok((generated, seconds)), Err)
    }

    /// Writes the files, and reports what is in them.
    pub(super) fn conclude(&self, generated: &Generated, seconds: f64) -> Outcome {
        let files = [self.verb.out.as_ref(), self.verb.prompts.references()];
        // An incomplete set of texts never replaces an older file, and neither do its references.
        let stays = |path: &&PathBuf| !generated.complete && path.is_file();
        let older: Vec<&PathBuf> = files.into_iter().flatten().filter(stays).collect();
        let [texts, references] = files.map(|path| path.filter(|path| !older.contains(path)));
        if let Some(path) = references {
            let lines = record::references(self.inquiry.model, self.prompts)?;
            write_text_atomically(path, &lines)?;
        }
        if let Some(path) = texts {
            self.write_texts(path, generated, seconds)?;
        }
        if generated.complete || !interrupt::asked() {
            return Ok(());
        }
        let saved = if texts.is_some() { "; they are saved" } else { "" };
        let kept = older.iter().map(|path| format!("; {} is left as it was", path.display()));
        let (made, all) = (generated.texts.len(), self.request.texts());
        let words =
            format!("stopped after {made} of {all} texts{saved}{}", kept.collect::<String>());
        Err(Failure::new(Kind::Interrupted, words)
            .advise("the same command writes the same texts again, and continues to the end"))
    }

    fn write_texts(&self, path: &Path, generated: &Generated, seconds: f64) -> Outcome {
        let Inquiry { model, stops, .. } = self.inquiry;
        let record = |text: &Continuation| {
            Record::new(&model.vocabulary, self.prompts, stops, text).map(|record| record.line())
        };
        let lines: String = generated.texts.iter().map(record).collect::<Result<_, Failure>>()?;
        write_text_atomically(path, &lines)?;
        let made = generated.texts.len();
        let tokens: usize = generated.texts.iter().map(|text| text.tokens.len()).sum();
        let rate = tokens as f64 / seconds.max(1e-9);
        remark!(
            "{made} {} written to {}: {tokens} tokens in {seconds:.2} s, {rate:.0} tokens/s",
            if made == 1 { "text" } else { "texts" },
            path.display()
        );
        Ok(())
    }
}
