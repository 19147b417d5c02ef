//! Trains an F² model on the CPU: `cargo run --release -p f2-lm --example train -- CORPUS RUN`,
//! with a corpus that `f2 prepare` and `f2 classes` made.

use std::path::PathBuf;

use f2_engine::Cpu;
use f2_lm::config::Preset;
use f2_lm::run::Event;
use f2_lm::train::{GivenSettings, NewRun};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(corpus), Some(run)) = (arguments.next(), arguments.next()) else {
        return Err("name a corpus folder, and a run folder to write".into());
    };
    let threads = std::thread::available_parallelism()?.get();
    let device = Cpu::new(threads)?;
    let settings = GivenSettings::preset(Preset::Demo).set("budget.steps", "200");
    let prepared = NewRun::new(&corpus, &run, settings).prepare(&device, threads)?;
    let mut observer = |event: &Event| match event {
        Event::Step { step, loss, .. } => println!("step {step}: loss {loss:.3}"),
        Event::Evaluated { perplexity, .. } => println!("validation perplexity {perplexity:.2}"),
        _ => {}
    };
    let (ending, state) = prepared.train(device, threads, &mut observer, &|| false)?;
    println!("{ending:?} after {} steps and {} tokens", state.step, state.tokens);
    Ok(())
}
