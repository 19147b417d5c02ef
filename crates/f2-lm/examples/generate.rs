//! Continues a text with a trained model on the CPU:
//! `cargo run --release -p f2-lm --example generate -- RUN "Once upon a time"`.

use std::path::Path;

use f2_corpus::END_OF_TEXT;
use f2_engine::Cpu;
use f2_lm::decode::{Generator, Request, Strategy};
use f2_lm::run::{Pick, SavedModel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(run), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("name a run folder, and a text to continue".into());
    };
    let saved = SavedModel::open(Path::new(&run), Pick::Best)?;
    let model = saved.load(Cpu::new(std::thread::available_parallelism()?.get())?)?;
    let request = Request {
        prompts: &[saved.vocabulary.encode(&prompt)?],
        samples: 3,
        new_tokens: 100,
        strategy: &Strategy::top_k(3),
        seed: 0,
        end: saved.vocabulary.token(END_OF_TEXT),
        stops: None,
        earlier: &[],
        batch: None,
    };
    let generated = Generator { model: &model }.generate(&request, &mut |_| {}, &|| false)?;
    for text in &generated.texts {
        println!("{prompt}{}\n", saved.vocabulary.decode(&text.ids())?);
    }
    Ok(())
}
