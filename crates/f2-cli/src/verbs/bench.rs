//! `f2 bench`: the speed of training and of matrix products on this machine.

mod products;
mod train;

use clap::{Args, Subcommand};

use crate::failure::Outcome;

/// Measure the speed of training and of matrix products on this machine.
#[derive(Args)]
#[command(after_help = "Examples:\n  f2 bench train --objective f2 --vocab 30000 --classes 10\n  \
                        f2 bench products --threads 2")]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Train(train::BenchTrain),
    Products(products::BenchProducts),
}

impl Bench {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::Train(train) => train.run(),
            What::Products(products) => products.run(),
        }
    }
}
