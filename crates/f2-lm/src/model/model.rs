//! A decoder with its parameters on a device.

use f2_engine::{Device, Parameter};

use super::Decoder;
use crate::Error;

/// A decoder with its parameters on a device.
pub struct Model<D: Device> {
    /// The device that holds the parameters and computes.
    pub device: D,
    /// The layout of the parameters.
    pub decoder: Decoder,
    /// The parameters.
    pub weights: D::Weights,
}

impl<D: Device> Model<D> {
    /// A model whose parameters are all zero.
    pub fn zeros(device: D, decoder: Decoder) -> Result<Self, Error> {
        let weights = device.weights(decoder.layout.len())?;
        Ok(Self { device, decoder, weights })
    }

    /// A model before training, its parameters drawn at random from `seed`.
    pub fn initialised(device: D, decoder: Decoder, seed: u64) -> Result<Self, Error> {
        let mut model = Self::zeros(device, decoder)?;
        model.initialise(seed);
        Ok(model)
    }

    /// The values of a parameter, row by row.
    pub fn values(&self, parameter: Parameter) -> Result<Vec<f32>, Error> {
        let mut values = vec![0.0; parameter.len()];
        self.device.read_weights(&self.weights, parameter, &mut values)?;
        Ok(values)
    }

    /// Overwrites the values of a parameter, row by row.
    pub fn set_values(&mut self, parameter: Parameter, values: &[f32]) {
        self.device.write_weights(values, parameter, &mut self.weights);
    }
}
